//! Faults of chance, seeded: `HOB_CHAOS_SEED` and `HOB_CHAOS_ROUNDS` repeat a run.

use std::time::Duration;

use hob_tests::chaos;

/// So many rounds, or as many as there is time for; a run that names its rounds gets the time.
const ROUNDS: usize = 150;
const TIME_MAX: Duration = Duration::from_secs(30);
const TIME_MAX_ASKED: Duration = Duration::from_secs(7200);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_fault_of_chance_hangs_runs_twice_or_leaves_anything() {
    let of_the_clock = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_secs() % 1_000_000)
    };
    let seed = number("HOB_CHAOS_SEED").unwrap_or_else(of_the_clock);
    let asked = number("HOB_CHAOS_ROUNDS").and_then(|rounds| usize::try_from(rounds).ok());
    let time = if asked.is_some() { TIME_MAX_ASKED } else { TIME_MAX };
    let report =
        chaos::run(&hob_tests::world::binary(), seed, asked.unwrap_or(ROUNDS), time, |_| ());
    eprintln!("{report}");
    assert!(report.is_clean(), "HOB_CHAOS_SEED={seed} HOB_CHAOS_ROUNDS={}", report.rounds);
}
