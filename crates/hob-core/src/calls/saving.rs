//! What a warm call saved: the start-up that it did not pay, and nothing else.
//!
//! A cold run and a warm one may do different work, so their whole times are not compared. A
//! start-up is bounded from three sides, and the smallest counts:
//!
//! - what its cold run took, less what the warm call's own main took: the rest was not its work;
//! - the processor time of that cold run: waiting is no start-up;
//! - what the preload took, which imports what the learning run saw: more is not spared.
//!
//! Only cold runs of the same arguments are a measure. Several give a range, whose lower end, less
//! a margin for what runs of the same work differ by, is what was saved. Of that goes what the warm
//! call paid instead. Without a run of the same arguments nothing is saved for sure, and there is
//! only an upper end.

use std::collections::VecDeque;

use crate::receipt::GainPart;

/// Kinds of arguments of one program whose cold runs are remembered, the newest.
const ARGUMENTS_MAX: usize = 16;
/// Cold runs of one kind of arguments that are remembered, the newest.
const RUNS_MAX: usize = 5;

/// The part of the lower end that is taken off: a machine's quiet minute differs by as much from its
/// other ones, and what was saved is never to be called more than it was.
const MARGIN: u64 = 10;

/// A cold run that can be compared with: unwatched, undisturbed, ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColdRun {
    /// From the start of its process to its end.
    pub wall_us: u64,
    /// The processor time that it used.
    pub cpu_us: u64,
}

/// A warm call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmRun {
    /// From the client's start to its end.
    pub total_us: u64,
    /// The program's own code in it.
    pub main_us: u64,
}

/// The cold runs of one program.
#[derive(Debug, Clone, Default)]
pub struct ColdRuns {
    /// By a digest of their arguments, the ones that ran last at the end.
    runs: VecDeque<(u64, VecDeque<ColdRun>)>,
}

impl ColdRuns {
    /// Remembers a cold run of these arguments.
    pub fn remember(&mut self, arguments: u64, run: ColdRun) {
        let known = self.runs.iter().position(|(each, _)| *each == arguments);
        let (_, mut runs) = known.and_then(|at| self.runs.remove(at)).unwrap_or_default();
        runs.push_back(run);
        if runs.len() > RUNS_MAX {
            runs.pop_front();
        }
        self.runs.push_back((arguments, runs));
        if self.runs.len() > ARGUMENTS_MAX {
            self.runs.pop_front();
        }
    }

    /// What a warm call of these arguments saved; `preload_us` is the processor time that the
    /// preload took. `None` if there is nothing to compare it with.
    #[must_use]
    pub fn gain(&self, arguments: u64, warm: WarmRun, preload_us: u64) -> Option<GainPart> {
        let paid_us = warm.total_us.saturating_sub(warm.main_us);
        let same = self.runs.iter().find(|(each, _)| *each == arguments).map(|(_, runs)| runs);
        let Some(same) = same else {
            let all = self.runs.iter().flat_map(|(_, runs)| runs);
            let most = all.map(|run| run.wall_us.min(run.cpu_us)).min();
            let most = most.unwrap_or(preload_us).min(preload_us);
            let most_us = most.saturating_sub(paid_us);
            return Some(GainPart { most_us, ..GainPart::default() });
        };
        let start_up = |run: &ColdRun| {
            run.wall_us.saturating_sub(warm.main_us).min(run.cpu_us).min(preload_us)
        };
        let least = same.iter().map(start_up).min()?;
        let most = same.iter().map(start_up).max()?;
        let slowest = same.iter().map(|run| run.wall_us).max()?;
        Some(GainPart {
            saved_us: (least - least / MARGIN).saturating_sub(paid_us),
            most_us: most.saturating_sub(paid_us),
            lost_us: warm.total_us.saturating_sub(slowest),
            cold_runs: same.len() as u64,
        })
    }
}

/// Whether a call spent more of its time waiting than working, by a margin that no machine's
/// load explains: at a terminal it waited for whoever sits there.
#[must_use]
pub fn has_waited(main_us: u64, cpu_us: u64) -> bool {
    main_us > cpu_us.saturating_mul(2).saturating_add(100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: u64 = 1;
    const OTHER: u64 = 2;

    fn cold(wall_us: u64, cpu_us: u64) -> ColdRun {
        ColdRun { wall_us, cpu_us }
    }

    fn runs(runs: &[ColdRun]) -> ColdRuns {
        let mut known = ColdRuns::default();
        runs.iter().for_each(|run| known.remember(SAME, *run));
        known
    }

    fn warm(total_us: u64, main_us: u64) -> WarmRun {
        WarmRun { total_us, main_us }
    }

    #[test]
    fn the_work_of_a_call_is_not_saved() {
        // Cold 130 ms, of which 100 are its work: 30 are start-up, and 1 was paid instead.
        let gain = runs(&[cold(130_000, 128_000)]).gain(SAME, warm(101_000, 100_000), 35_000);
        assert_eq!(gain.map(|gain| (gain.saved_us, gain.lost_us)), Some((26_000, 0)));
    }

    #[test]
    fn waiting_is_not_saved() {
        // It slept for three seconds when it ran cold, and not at all when it ran warm.
        let gain = runs(&[cold(3_030_000, 28_000)]).gain(SAME, warm(1_500, 500), 35_000).unwrap();
        assert_eq!((gain.saved_us, gain.most_us), (24_200, 27_000));
    }

    #[test]
    fn work_that_a_cold_run_alone_did_is_bounded_by_the_preload() {
        let gain = runs(&[cold(2_000_000, 1_990_000)]).gain(SAME, warm(1_500, 500), 35_000);
        assert_eq!(gain.unwrap().saved_us, 30_500);
    }

    #[test]
    fn the_lower_end_of_several_runs_counts_and_the_upper_is_told() {
        let known = runs(&[cold(30_000, 29_000), cold(44_000, 41_000)]);
        let gain = known.gain(SAME, warm(1_500, 500), 60_000).unwrap();
        assert_eq!((gain.saved_us, gain.most_us, gain.cold_runs), (25_100, 40_000, 2));
    }

    #[test]
    fn other_arguments_save_nothing_for_sure() {
        let gain = runs(&[cold(30_000, 29_000)]).gain(OTHER, warm(1_500, 500), 20_000).unwrap();
        let expected = GainPart { saved_us: 0, most_us: 19_000, lost_us: 0, cold_runs: 0 };
        assert_eq!(gain, expected);
        assert_eq!(ColdRuns::default().gain(OTHER, warm(1_500, 500), 20_000), Some(expected));
    }

    #[test]
    fn what_took_longer_than_every_cold_run_lost() {
        let known = runs(&[cold(30_000, 29_000), cold(20_000, 19_000)]);
        let gain = known.gain(SAME, warm(34_000, 1_000), 60_000).unwrap();
        assert_eq!((gain.saved_us, gain.lost_us), (0, 4_000));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = ColdRuns::default();
        for arguments in 0..100 {
            for _ in 0..20 {
                known.remember(arguments, cold(1, 1));
            }
        }
        assert_eq!(known.runs.len(), ARGUMENTS_MAX);
        assert!(known.runs.iter().all(|(_, runs)| runs.len() == RUNS_MAX));
        assert_eq!(known.gain(99, warm(1, 1), 9).unwrap().cold_runs, RUNS_MAX as u64);
    }

    #[test]
    fn who_waits_at_a_terminal_is_told_from_who_works() {
        assert!(has_waited(20_000_000, 60_000));
        assert!(!has_waited(150_000, 60_000));
        assert!(!has_waited(3_000_000, 2_000_000));
    }
}
