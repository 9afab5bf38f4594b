//! The decisions about messages in a seeded world that owns time, processes and crashes.
//!
//! `HOB_MESSAGES_SEED=n` repeats one world; a failure names its seed.
#![expect(clippy::unwrap_used, reason = "a world that cannot be made has failed its test")]

mod pools;
mod world;

use hob_core::isolation::{Name, Uses};
use hob_core::messages::{Affinity, Terms};
use world::World;

/// Worlds a test.
const WORLDS: u64 = 1_500;
/// Steps a world.
const STEPS: usize = 300;

fn terms(name: Name, workers_max: u32) -> Terms {
    let ahead = if name == Name::Session { 0 } else { 1 };
    let mut recipe = name.lower(ahead);
    if name == Name::Prefork {
        recipe.uses = Uses::Times(5);
    }
    Terms {
        recipe,
        affinity: if name == Name::Session { Affinity::Session } else { Affinity::Any },
        workers_max,
        queue_max: 8,
        worker_kib: 1000,
        idle_us: 2_000_000,
    }
}

fn worlds(name: Name) {
    let only = std::env::var("HOB_MESSAGES_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = only.map_or(0..WORLDS, |seed| seed..seed + 1);
    let mut answered = 0;
    for seed in seeds {
        let mut world = World::new(seed, terms(name, 1 + (seed % 4) as u32));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..STEPS {
                world.step();
            }
            world.end();
            world.answered
        }));
        answered += done.unwrap_or_else(|_| panic!("{name:?}: seed {seed} failed"));
    }
    assert!(only.is_some() || answered > WORLDS, "hardly anything was answered: {answered}");
}

#[test]
fn any_world_of_fork_keeps_what_is_promised() {
    worlds(Name::Fork);
}

#[test]
fn any_world_of_prefork_keeps_what_is_promised() {
    worlds(Name::Prefork);
}

#[test]
fn any_world_of_sessions_keeps_what_is_promised() {
    worlds(Name::Session);
}
