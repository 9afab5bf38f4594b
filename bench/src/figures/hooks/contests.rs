//! Sides against each other in rounds, alternately (A B C, A B C) and in a row (A A, B B, C C).
//!
//! Owns: the order of the runs and what is told of them. Deliberately not here: what the sides are.

use std::collections::BTreeMap;

use anyhow::Result;

use super::ground::Ground;
use super::sides::{Ran, Side};
use crate::hob::Hob;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;

/// Sides that run the same hooks for the same targets.
#[derive(Debug)]
pub(super) struct Contest<'a> {
    pub(super) name: &'static str,
    pub(super) hob: &'a Hob,
    pub(super) ground: &'a Ground,
    pub(super) sides: Vec<Side>,
    pub(super) rounds: usize,
}

/// What the rounds gave for one side.
#[derive(Debug)]
pub(super) struct Rounds {
    /// Microseconds a hook, by round.
    pub(super) series: Series,
    /// The quantile 0.99 of the hooks' own times, by round.
    p99: Series,
    /// Every hook's own time, of all rounds.
    hooks_us: Vec<f64>,
    ways: BTreeMap<String, usize>,
}

impl Contest<'_> {
    /// A B C, A B C.
    pub(super) fn alternately(&self, figure: &mut Figure) -> Result<Vec<Rounds>> {
        let mut rounds: Vec<Rounds> = self.sides.iter().map(|side| Rounds::new(side, "")).collect();
        let mut progress = Progress::new(&format!("hooks: {}", self.name));
        for round in 0..self.rounds {
            for (at, side) in self.sides.iter().enumerate() {
                progress.at(round * self.sides.len() + at, self.rounds * self.sides.len());
                rounds[at].take(&side.run(self.hob, self.ground)?);
            }
        }
        progress.done();
        rounds.iter().for_each(|one| figure.series(&one.series));
        Ok(rounds)
    }

    /// A A, B B, C C.
    pub(super) fn in_a_row(&self, figure: &mut Figure) -> Result<Vec<Rounds>> {
        let mut all = Vec::new();
        let mut progress = Progress::new(&format!("hooks: {}, in a row", self.name));
        for (at, side) in self.sides.iter().enumerate() {
            let mut rounds = Rounds::new(side, ", in a row");
            for round in 0..self.rounds {
                progress.at(at * self.rounds + round, self.rounds * self.sides.len());
                rounds.take(&side.run(self.hob, self.ground)?);
            }
            figure.series(&rounds.series);
            all.push(rounds);
        }
        progress.done();
        Ok(all)
    }
}

impl Rounds {
    pub(super) fn new(side: &Side, how: &str) -> Rounds {
        Rounds::named(&format!("{}{how}", side.name))
    }

    pub(super) fn named(name: &str) -> Rounds {
        let series = |name: String| Series { name, us: Vec::new(), pids: Vec::new() };
        Rounds {
            series: series(name.to_owned()),
            p99: series(format!("{name}, p99 of a hook")),
            hooks_us: Vec::new(),
            ways: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, ran: &Ran) {
        self.series.us.push(ran.each_us);
        self.p99.us.push(stats::quantile(&ran.hooks_us, 0.99));
        self.hooks_us.extend(&ran.hooks_us);
        for (way, count) in &ran.ways {
            *self.ways.entry(way.clone()).or_default() += count;
        }
    }

    /// Tells the hooks' own times: all, and those of the first, which starts another program.
    pub(super) fn tell_hooks(&self, figure: &mut Figure) {
        let mut tell = |what: &str, us: Vec<f64>| {
            figure.series(&Series {
                name: format!("{}, {what}", self.series.name),
                us,
                pids: Vec::new(),
            });
        };
        let part = |first: bool| {
            let all = self.hooks_us.iter().enumerate();
            all.filter(|(at, _)| (at % 3 == 0) == first).map(|(_, us)| *us).collect()
        };
        tell("a hook that makes a directory", part(true));
        tell("a hook that says a line", part(false));
    }

    /// Tells which way hob's hooks went.
    pub(super) fn tell_ways(&self, figure: &mut Figure) {
        for (way, count) in &self.ways {
            let name = format!("{}: hooks that went {way}", self.series.name);
            figure.fact(&name, super::sides::number(*count));
        }
    }

    /// The quantile of the hooks' own times, all rounds together.
    pub(super) fn hooks(&self, part: f64) -> f64 {
        stats::quantile(&self.hooks_us, part)
    }
}

/// The times of the first over those of the second: the median of the rounds' own ratios.
pub(super) fn over(figure: &mut Figure, above: &Rounds, below: &Rounds) -> f64 {
    let name = format!("{} over {}", above.series.name, below.series.name);
    figure.ratio(&name, &above.series, &below.series).of_rounds
}

/// The same of each round's p99.
pub(super) fn over_p99(figure: &mut Figure, above: &Rounds, below: &Rounds) -> f64 {
    let name = format!("{} over {}", above.p99.name, below.p99.name);
    figure.ratio(&name, &above.p99, &below.p99).of_rounds
}

/// A target by [`over`].
pub(super) fn at_most(figure: &mut Figure, what: &str, bound: f64, pair: (&Rounds, &Rounds)) {
    let ratio = over(figure, pair.0, pair.1);
    figure.target(what, Want::AtMost(bound), ratio);
}

/// A target by [`over`].
pub(super) fn at_least(figure: &mut Figure, what: &str, bound: f64, pair: (&Rounds, &Rounds)) {
    let ratio = over(figure, pair.0, pair.1);
    figure.target(what, Want::AtLeast(bound), ratio);
}
