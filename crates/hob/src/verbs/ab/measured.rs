//! The times of A and of B by pair, and what a look makes of them.

use hob_proof::looks::{self, Look, Question};
use hob_proof::series;

use super::Metric;

/// One measured run, as it is told.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Recorded {
    /// The pair's number, from 1.
    pub(super) pair: usize,
    /// `A`, `B`; for a pair of A and A both are `A`, and `check` is set.
    pub(super) side: &'static str,
    pub(super) check: bool,
    /// Whether it was the first of its pair.
    pub(super) first: bool,
    pub(super) wall_us: f64,
    /// Of the processes that were started; what a warm worker used comes from its receipt.
    pub(super) cpu_us: f64,
    #[serde(skip)]
    pub(super) pid: u32,
}

/// The times of both, pair by pair, in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
}

/// What is told of one side's times, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) p25: f64,
    pub(super) median: f64,
    pub(super) p75: f64,
    pub(super) max: f64,
    /// Runs beyond Tukey's upper fence: they were held up. None is left out of anything.
    pub(super) held_up: usize,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Looked {
    pub(super) wall: Option<Look>,
    /// `None` where a run used no processor time that could be told.
    pub(super) cpu: Option<Look>,
    /// A against A, by what decides.
    pub(super) check: Option<Look>,
    /// A against A differs, so that nothing is to be believed.
    pub(super) at_fault: bool,
    /// The user stopped it.
    pub(super) unfinished: bool,
}

impl Times {
    pub(super) fn push(&mut self, a: f64, b: f64) {
        self.a.push(a);
        self.b.push(b);
    }

    /// `ln(B/A)` by pair; `None` where a time is nothing.
    pub(super) fn differences(&self) -> Option<Vec<f64>> {
        let pairs = self.a.iter().zip(&self.b);
        pairs.map(|(a, b)| (*a > 0.0 && *b > 0.0).then(|| (b / a).ln())).collect()
    }

    pub(super) fn spreads(&self) -> [Option<Spread>; 2] {
        [spread(&self.a), spread(&self.b)]
    }
}

impl Looked {
    /// The look that decides.
    pub(super) fn decides(&self, metric: Metric) -> Option<&Look> {
        match metric {
            Metric::Wall => self.wall.as_ref(),
            Metric::Cpu => self.cpu.as_ref(),
        }
    }
}

/// Looks at both metrics, and at A against A; `None`: it is not time, or there are too few pairs.
pub(super) fn look(
    question: &Question,
    metric: Metric,
    (wall, cpu, check): (&Times, &Times, &Times),
    unfinished: bool,
) -> Option<Looked> {
    let now = |times: &Times| question.look_now(&times.differences()?);
    let asked = match metric {
        Metric::Wall => wall,
        Metric::Cpu => cpu,
    };
    if !unfinished {
        let differences = asked.differences().unwrap_or_else(|| vec![0.0; asked.a.len()]);
        question.look(&differences)?;
    }
    let differences = check.differences().unwrap_or_default();
    Some(Looked {
        wall: now(wall),
        cpu: now(cpu),
        check: now(check),
        at_fault: looks::is_at_fault(&differences),
        unfinished,
    })
}

fn spread(times: &[f64]) -> Option<Spread> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part| series::at(&sorted, part);
    let [below, above] = series::middle(&sorted)?;
    let (p25, p75) = (at(0.25)?, at(0.75)?);
    let fence = p75 + 1.5 * (p75 - p25);
    Some(Spread {
        min: at(0.0)?,
        p25,
        median: f64::midpoint(below, above),
        p75,
        max: at(1.0)?,
        held_up: sorted.iter().filter(|time| **time > fence).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_times_are_times_that_were_seen() {
        let times: Vec<f64> = (1..=20).map(f64::from).chain([100.0]).collect();
        let found = spread(&times).unwrap();
        assert_eq!((found.min, found.median, found.max, found.held_up), (1.0, 11.0, 100.0, 1));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn without_processor_time_there_is_no_difference() {
        let mut times = Times::default();
        times.push(10.0, 20.0);
        assert!(times.differences().unwrap()[0] > 0.69);
        times.push(0.0, 20.0);
        assert_eq!(times.differences(), None);
    }
}
