//! What is of the moment is another in each call: numbers by chance, clocks, processes.
//!
//! Each thing is kept by a module, or made at the start of the interpreter. Four cold runs say what
//! never repeats; of that, four warm calls must have four values, too. A clock must not be from
//! before the call, either.
//!
//! Owns: the rounds, and the report. Between two rounds more than a second passes, since many
//! clocks tell no less.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::program::{self, Answers, Batch, Question, Spot};
use super::{Under, call_until_warm, go, short, with_input};
use crate::World;
use crate::run::{Outcome, Run};

const ROUNDS: usize = 4;
const BETWEEN: Duration = Duration::from_millis(1050);
/// A clock may be that much before the call began: what two clocks of a machine differ.
const SLACK_S: f64 = 0.01;
/// A number is taken for a clock if it is as near to now as this.
const NEAR_S: f64 = 3600.0;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Things, each in two places.
    pub things: usize,
    /// Those in their places that never repeat in cold runs.
    pub unique: usize,
    /// Programs that never were warm, with the reason.
    pub cold: Vec<String>,
    /// What repeats in warm calls, or is older than they.
    pub repeated: Vec<Repeated>,
}

/// A thing that is not of its call's moment.
#[derive(Debug, Clone)]
pub struct Repeated {
    /// What, and where it was made.
    pub thing: String,
    /// Where it was made.
    pub spot: Spot,
    /// What is wrong with it.
    pub fault: Fault,
    /// The values of the warm calls.
    pub values: Vec<String>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Two calls have the same value.
    Repeats,
    /// It is a clock, and from before the call.
    Older,
}

impl fmt::Display for Repeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = short(&self.values.join(" "));
        write!(f, "{:?}: {} at {:?}\n    {values}", self.fault, self.thing, self.spot)
    }
}

/// A run's answers, and when it began: by the clock of the day, and since the machine's start.
struct Round {
    answers: Answers,
    began: [f64; 2],
}

/// A program and its rounds.
struct Watched {
    batch: Batch,
    cold: Vec<Round>,
    warm: Vec<Round>,
    taught: bool,
    reason: String,
}

/// Runs everything; `tell` is told how many of how many rounds are done.
pub fn run(under: &Under, mut tell: impl FnMut(usize, usize)) -> Report {
    let world = World::of(under.hob.clone());
    let things = program::questions(under, &["things"]);
    let mut report = Report { things: things.len(), ..Report::default() };
    let walk = Walk { under, world: &world };
    let mut watched = Vec::new();
    for (index, batch) in program::batches(things).iter().enumerate() {
        for (half, spot) in under.spots(index).into_iter().enumerate() {
            let folder = world.path(format!("moments/{index:03}-{half}"));
            walk.taught(&folder, spot, batch, &mut watched);
        }
    }
    walk.rounds(&mut watched, &mut tell);
    for one in &watched {
        if one.warm.is_empty() {
            report.cold.push(one.reason.clone());
        }
        one.report(&mut report);
    }
    world.stop();
    report
}

struct Walk<'a> {
    under: &'a Under,
    world: &'a World,
}

impl Walk<'_> {
    /// A program that was taught. One that cannot be made warm is halved, for what keeps it cold
    /// may be a single thing.
    fn taught(&self, folder: &Path, spot: Spot, things: &[Question], watched: &mut Vec<Watched>) {
        let batch = Batch::make(self.under, folder, spot, things);
        // The first run writes what Python keeps of a module.
        go(&self.placed(&batch, self.world.run(&["python3"])));
        let run = self.placed(&batch, self.world.hob(&["run"]));
        let called = call_until_warm(self.world, &run, 1, |_| {});
        if called.warm || things.len() == 1 {
            let (cold, warm) = (Vec::new(), Vec::new());
            let (taught, reason) = (called.warm, called.reason);
            watched.push(Watched { batch, cold, warm, taught, reason });
            return;
        }
        let (first, rest) = things.split_at(things.len() / 2);
        for (name, part) in [("first", first), ("rest", rest)] {
            self.taught(&folder.join(name), spot, part, watched);
        }
    }

    /// The cold rounds of all programs, and then the warm ones.
    fn rounds(&self, watched: &mut [Watched], tell: &mut impl FnMut(usize, usize)) {
        for round in 0..2 * ROUNDS {
            tell(round, 2 * ROUNDS);
            let start = Instant::now();
            for one in &mut *watched {
                if round < ROUNDS {
                    let run = self.placed(&one.batch, self.world.run(&["python3"]));
                    let began = now();
                    one.cold.push(one.round(&go(&run), began));
                    continue;
                }
                // What never was warm is right, and called once more to see it stay so.
                let wanted = usize::from(one.taught);
                let run = self.placed(&one.batch, self.world.hob(&["run"]));
                let mut began = now();
                let called = call_until_warm(self.world, &run, wanted, |called| {
                    if !called.warm {
                        began = now();
                    }
                });
                if called.warm {
                    one.warm.push(one.round(&called.outcome, began));
                }
            }
            // sleeps: so that a clock of seconds has moved; there is no mark for that.
            std::thread::sleep(BETWEEN.saturating_sub(start.elapsed()));
        }
    }

    fn placed(&self, batch: &Batch, run: Run) -> Run {
        with_input(run.args(&[&batch.script])).env("PATH", batch.path(self.under))
    }
}

impl Watched {
    /// Adds what is wrong to a report.
    fn report(&self, report: &mut Report) {
        let (unique, faults) = self.faults();
        report.unique += unique;
        for (key, fault) in faults {
            let question = self.batch.index(&key).and_then(|at| self.batch.questions.get(at));
            let values = self.warm.iter().filter_map(|round| round.answers.get(&key).cloned());
            report.repeated.push(Repeated {
                thing: question.map_or("(the end)".to_owned(), |one| one.text.clone()),
                spot: self.batch.spot,
                fault,
                values: values.collect(),
            });
        }
    }

    fn round(&self, outcome: &Outcome, began: [f64; 2]) -> Round {
        Round { answers: self.batch.answers(outcome, str::to_owned), began }
    }

    /// How many things never repeat cold, and which of them have a fault.
    fn faults(&self) -> (usize, Vec<(String, Fault)>) {
        let keys = self.cold.first().map(|round| round.answers.keys().cloned().collect::<Vec<_>>());
        let mut faults = Vec::new();
        let mut unique = 0;
        for key in keys.unwrap_or_default() {
            if repeats(&self.cold, &key) {
                continue;
            }
            unique += 1;
            if repeats(&self.warm, &key) {
                faults.push((key, Fault::Repeats));
            } else if older(&self.warm, &key) && !older(&self.cold, &key) {
                faults.push((key, Fault::Older));
            }
        }
        (unique, faults)
    }
}

fn repeats(rounds: &[Round], key: &str) -> bool {
    let values: Vec<Option<&String>> = rounds.iter().map(|one| one.answers.get(key)).collect();
    let mut pairs = values.iter().enumerate();
    pairs.any(|(index, value)| values[..index].contains(value))
}

/// Whether a value is a clock's, of before its run.
fn older(rounds: &[Round], key: &str) -> bool {
    rounds.iter().any(|round| {
        let Some(value) = round.answers.get(key).and_then(|text| seconds(text)) else {
            return false;
        };
        // One of whole seconds is rounded down.
        let slack = if value.fract() == 0.0 { 1.0 } else { SLACK_S };
        // The seconds since the machine was started are small, and so are numbers of processes.
        let clocks = if value.fract() == 0.0 { 1 } else { round.began.len() };
        let near = round.began[..clocks].iter().copied();
        let near = near.filter(|now| (value - now).abs() < NEAR_S);
        near.min_by(|one, other| (one - value).abs().total_cmp(&(other - value).abs()))
            .is_some_and(|now| value < now - slack)
    })
}

/// A number, in seconds if it looks like nanoseconds.
fn seconds(text: &str) -> Option<f64> {
    const NANOSECONDS_FROM: f64 = 1e11;
    let number: f64 = text.trim_matches('\'').parse().ok()?;
    Some(if number > NANOSECONDS_FROM { number / 1e9 } else { number })
}

fn now() -> [f64; 2] {
    let day = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let up = Duration::try_from(up).unwrap_or_default();
    [day.as_secs_f64(), up.as_secs_f64()]
}

#[cfg(test)]
mod tests {
    use super::{Answers, Round, older, repeats, seconds};

    fn rounds(values: &[(&str, f64)]) -> Vec<Round> {
        let round = |(value, now): &(&str, f64)| Round {
            answers: Answers::from([("q".to_owned(), format!("'{value}'"))]),
            began: [*now, 1e9],
        };
        values.iter().map(round).collect()
    }

    #[test]
    fn a_value_that_comes_twice_repeats_and_so_does_none() {
        assert!(!repeats(&rounds(&[("1", 0.0), ("2", 0.0)]), "q"));
        assert!(repeats(&rounds(&[("1", 0.0), ("2", 0.0), ("1", 0.0)]), "q"));
        assert!(repeats(&rounds(&[("1", 0.0), ("2", 0.0)]), "other"));
    }

    #[test]
    fn a_clock_of_before_the_call_is_older_and_another_number_is_none() {
        assert!(older(&rounds(&[("1790000000.5", 1_790_000_001.5)]), "q"));
        assert!(!older(&rounds(&[("1790000001.6", 1_790_000_001.5)]), "q"));
        assert!(!older(&rounds(&[("1790000001", 1_790_000_001.5)]), "q"));
        assert!(!older(&rounds(&[("7", 1_790_000_001.5)]), "q"));
        assert_eq!(seconds("1790000000500000000"), Some(1_790_000_000.5));
    }
}
