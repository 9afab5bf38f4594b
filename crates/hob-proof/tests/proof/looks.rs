//! How often a comparison is wrong, and how often it finds what is there, in simulated machines
//! that drift and are held up in bursts. A failure tells the seed; `HOB_PROOF_SEED` sets it.

use hob_proof::looks::{Question, SAME, Verdict};
use hob_proof::many::{Many, differs, many};
use hob_proof::score::estimate;

use crate::chance::Chance;

/// A machine that grows slower and faster by turns, is held up in bursts by a neighbour, and in
/// which what runs second is slower by a twentieth.
struct Machine {
    seed: u64,
    chance: Chance,
    burst: bool,
    run: f64,
}

impl Machine {
    /// The time of a run that takes `alone` by itself.
    fn run(&mut self, alone: f64, second: bool) -> f64 {
        self.run += 1.0;
        if self.chance.unit() < 0.05 {
            self.burst = !self.burst;
        }
        let drift = 1.0 + 0.1 * (self.run / 37.0).sin();
        let held = if self.burst { 1.0 + 0.8 * self.chance.unit() } else { 1.0 };
        let order = if second { 1.05 } else { 1.0 };
        alone * drift * held * order * (0.03 * self.chance.normal()).exp()
    }

    /// The difference of one pair, its order by a coin.
    fn pair(&mut self, a: f64, b: f64) -> f64 {
        let (a, b) = if self.chance.coin() {
            let a = self.run(a, false);
            (a, self.run(b, true))
        } else {
            let b = self.run(b, false);
            (self.run(a, true), b)
        };
        (b / a).ln()
    }

    /// A whole comparison of a thing and one that takes `ratio` of its time.
    fn compare(&mut self, ratio: f64) -> Verdict {
        let question = Question { pairs: None, gate: None, same: SAME };
        let mut differences = Vec::new();
        loop {
            differences.push(self.pair(1.0, ratio));
            match question.look(&differences) {
                Some(look) if look.is_last => return look.verdict,
                _ => {}
            }
        }
    }
}

fn machine() -> Machine {
    let seed = std::env::var("HOB_PROOF_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(20_261_127);
    Machine { seed, chance: Chance(seed), burst: false, run: 0.0 }
}

/// How many of `series` comparisons end so.
fn count(series: usize, ratio: f64, wanted: &[Verdict]) -> (usize, u64) {
    let mut machine = machine();
    let found = (0..series).filter(|_| wanted.contains(&machine.compare(ratio))).count();
    (found, machine.seed)
}

#[test]
fn a_against_a_is_called_different_in_at_most_five_of_a_hundred_series() {
    let (alarms, seed) = count(2000, 1.0, &[Verdict::Slower, Verdict::Faster]);
    // Five standard deviations of a rate of 5 % in 2,000 are 49.
    assert!(alarms <= 100 + 49, "{alarms} of 2000, seed {seed}");
}

#[test]
fn nine_per_cent_are_found_although_neighbours_hold_runs_up() {
    let (found, seed) = count(300, 1.09, &[Verdict::Slower]);
    assert!(found >= 270, "{found} of 300, seed {seed}");
    let (turned, seed) = count(300, 1.0 / 1.09, &[Verdict::Faster]);
    assert!(turned >= 270, "{turned} of 300, seed {seed}");
}

#[test]
fn an_interval_covers_the_truth() {
    let mut machine = machine();
    for (pairs, ratio) in [(10, 1.0), (20, 1.05), (50, 1.3)] {
        let truth = f64::ln(ratio);
        let covered = (0..1000)
            .filter(|_| {
                let series: Vec<f64> = (0..pairs).map(|_| machine.pair(1.0, ratio)).collect();
                let found = estimate(&series, 1.96).expect("a series");
                (found.low..=found.high).contains(&truth)
            })
            .count();
        // 95 % by design, less five standard deviations.
        let seed = machine.seed;
        assert!(covered >= 915, "{covered} of 1000 with {pairs} pairs at {ratio}, seed {seed}");
    }
}

/// Forty cells of two servers, twenty pairs of each, round by round; the first one takes `ratio` of
/// its time, the others `rest` of theirs.
fn cells(machine: &mut Machine, ratio: f64, rest: f64) -> Many {
    let mut pairs = vec![Vec::new(); 40];
    for _ in 0..20 {
        for (at, pairs) in pairs.iter_mut().enumerate() {
            pairs.push(machine.pair(1.0, if at == 0 { ratio } else { rest }));
        }
    }
    many(&pairs)
}

#[test]
fn of_many_cells_one_is_called_different_in_at_most_five_of_a_hundred_series() {
    let mut machine = machine();
    let (mut one, mut all) = (0, 0);
    for _ in 0..400 {
        let found = cells(&mut machine, 1.0, 1.0);
        one += usize::from(found.cells.iter().flatten().any(differs));
        all += usize::from(found.all.as_ref().is_some_and(differs));
    }
    let seed = machine.seed;
    println!("{one} with a cell, {all} as a whole, of 400");
    // Five standard deviations of a rate of 5 % in 400 are 22.
    assert!(one <= 42 && all <= 42, "{one} with a cell, {all} as a whole, of 400, seed {seed}");
}

#[test]
fn of_many_cells_one_that_is_half_as_slow_again_is_found_and_a_small_move_of_all() {
    let mut machine = machine();
    let (mut one, mut all) = (0, 0);
    for _ in 0..200 {
        let found = cells(&mut machine, 1.5, 1.02);
        one += usize::from(found.cells[0].as_ref().is_some_and(|cell| cell.low > 0.0));
        all += usize::from(found.all.as_ref().is_some_and(|all| all.low > 0.0));
    }
    println!("{one} cells, {all} wholes, of 200");
    assert!(one >= 190 && all >= 190, "{one} and {all} of 200, seed {}", machine.seed);
}
