//! Which jobs have a receipt of their own, and who stands for the others.
//!
//! A receipt costs more than a small message does, so a kind of jobs leaves one each [`EVERY_US`] of
//! each reason and outcome, which says for how many of these it stands; what failed has its own at
//! once, within [`FAILURES_MAX`] in the same time. The newest job without one is kept: where no other
//! comes that could stand for it, it does so itself, that long after the last receipt at the latest.
//! So none is missing when a kind rests, when its pool is forgotten, or when the daemon ends.

use std::collections::HashMap;

use hob_core::ids::Time;
use hob_core::receipt::ACCEPTED;

use super::job::{Job, Kind};

/// How often a kind leaves a receipt of a job that was answered.
pub(crate) const EVERY_US: u64 = 10_000;
/// Receipts of failures of one kind in this time.
const FAILURES_MAX: u32 = 16;

/// The outcome of a job that did not fail.
pub(crate) const ANSWERED: &str = "answered";

/// Which kinds have left a receipt lately.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    kinds: HashMap<Kind, Last>,
}

/// A job that leaves a receipt, and for how many of its kind that stands.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) job: Job,
    pub(super) stands_for: u64,
}

#[derive(Debug, Default)]
struct Last {
    at: Time,
    /// Jobs since, without a receipt: of each reason and outcome the newest.
    kept: Vec<Due>,
    failures: u32,
}

impl Sampling {
    /// Takes in `count` jobs, of which this is the newest. Returns what receipts are to be left of
    /// now.
    pub(super) fn take(&mut self, now: Time, job: Job, count: u64) -> Vec<Due> {
        let is_failure = ![ANSWERED, ACCEPTED].contains(&job.ended.outcome);
        let last = self.last(&job);
        let at = last.keep(job, count);
        if last.at == Time::default() || last.is_due(now) {
            return last.leave(now);
        }
        if !is_failure || last.failures >= FAILURES_MAX {
            return Vec::new();
        }
        last.failures += 1;
        vec![last.kept.swap_remove(at)]
    }

    /// Takes in `count` jobs of which a front may still tell more: what it tells comes in time to be
    /// in their receipt, which is left after the usual while.
    pub(super) fn hold(&mut self, now: Time, job: Job, count: u64) {
        let last = self.last(&job);
        if last.kept.is_empty() && last.is_due(now) {
            last.at = now;
        }
        if let Some(at) = last.place_of(&job)
            && last.kept[at].job.front.protocol.is_some()
            && job.front.protocol.is_none()
        {
            // More is known of that one.
            last.kept[at].stands_for += count;
            return;
        }
        last.keep(job, count);
    }

    /// Tells more of a job that was taken in. Returns it where its receipt has been left.
    pub(super) fn amend(&mut self, job: Job) -> Option<Job> {
        let kept = self.kinds.get_mut(&job.performer.kind).and_then(|last| {
            let at = last.place_of(&job)?;
            last.kept.get_mut(at)
        });
        let Some(kept) = kept else { return Some(job) };
        kept.job = job;
        None
    }

    /// When the next job is due that no other has come to stand for.
    pub(super) fn next_due(&self) -> Option<Time> {
        let waiting = self.kinds.values().filter(|last| !last.kept.is_empty());
        waiting.map(|last| last.at.after_us(EVERY_US)).min()
    }

    /// What is due of that; kinds that have rested are forgotten.
    pub(super) fn due(&mut self, now: Time) -> Vec<Due> {
        self.kinds.retain(|_, last| !last.kept.is_empty() || !last.is_due(now));
        let due = self.kinds.values_mut().filter(|last| !last.kept.is_empty() && last.is_due(now));
        due.flat_map(|last| last.leave(now)).collect()
    }

    /// All of it, due or not.
    pub(super) fn all(&mut self, now: Time) -> Vec<Due> {
        let waiting = self.kinds.values_mut().filter(|last| !last.kept.is_empty());
        waiting.flat_map(|last| last.leave(now)).collect()
    }

    fn last(&mut self, job: &Job) -> &mut Last {
        self.kinds.entry(job.performer.kind.clone()).or_default()
    }
}

impl Last {
    fn is_due(&self, now: Time) -> bool {
        now.us_since(self.at) >= EVERY_US
    }

    /// Keeps the newest of its kind; where.
    fn keep(&mut self, job: Job, count: u64) -> usize {
        if let Some(at) = self.place_of(&job) {
            let stands_for = self.kept[at].stands_for + count;
            self.kept[at] = Due { job, stands_for };
            return at;
        }
        self.kept.push(Due { job, stands_for: count });
        self.kept.len() - 1
    }

    /// Where one of its reason and outcome is kept.
    fn place_of(&self, job: &Job) -> Option<usize> {
        let of = |job: &Job| (job.ended.reason, job.ended.outcome);
        self.kept.iter().position(|kept| of(&kept.job) == of(job))
    }

    fn leave(&mut self, now: Time) -> Vec<Due> {
        self.at = now;
        // What fails next has its own.
        self.failures = 0;
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use hob_core::ids::PoolId;
    use hob_core::receipt::ProgramPart;
    use hob_wire::message::Protocol;

    use crate::jobs::job::Performer;
    use crate::jobs::origin::Origin;

    const POOL: PoolId = PoolId(1);

    fn ended(outcome: &'static str) -> Job {
        let program = ProgramPart::named(String::new(), "python");
        let performer = Performer { kind: Kind::Pool(POOL), program, isolation: "prefork" };
        let mut job = Job::new(Origin::Lane, Arc::new(performer));
        (job.ended.reason, job.ended.outcome) = ("lane", outcome);
        job
    }

    fn at(us: u64) -> Time {
        Time(1 + us * 1000)
    }

    fn said(receipts: Vec<Due>) -> Vec<(&'static str, u64)> {
        let mut said: Vec<_> =
            receipts.into_iter().map(|due| (due.job.ended.outcome, due.stands_for)).collect();
        said.sort_unstable();
        said
    }

    fn take(
        sampling: &mut Sampling,
        us: u64,
        count: u64,
        outcome: &'static str,
    ) -> Vec<(&'static str, u64)> {
        said(sampling.take(at(us), ended(outcome), count))
    }

    const RAISED: &str = "raised";

    #[test]
    fn a_kind_leaves_a_receipt_now_and_then_and_one_of_each_failure() {
        let mut sampling = Sampling::default();
        assert_eq!(take(&mut sampling, 0, 1, ANSWERED), [(ANSWERED, 1)]);
        assert_eq!(take(&mut sampling, 1, 1, ANSWERED), []);
        assert_eq!(take(&mut sampling, 2, 5, ANSWERED), []);
        for _ in 0..FAILURES_MAX {
            assert_eq!(take(&mut sampling, 3, 1, RAISED), [(RAISED, 1)]);
        }
        assert_eq!(take(&mut sampling, 4, 1, RAISED), []);
        assert_eq!(take(&mut sampling, 5, 1, "lost"), []);
        assert_eq!(take(&mut sampling, 6, 2, RAISED), []);
        let all = [(ANSWERED, 7), ("lost", 1), (RAISED, 3)];
        assert_eq!(take(&mut sampling, EVERY_US, 1, ANSWERED), all);
        assert_eq!(take(&mut sampling, EVERY_US + 1, 1, RAISED), [(RAISED, 1)]);
    }

    #[test]
    fn what_a_front_tells_of_a_message_is_in_the_receipt_that_stands_for_it() {
        let by_front = |pid| {
            let mut job = ended(ANSWERED);
            (job.pid, job.front.protocol) = (pid, Some(Protocol::Http11));
            job
        };
        let mut sampling = Sampling::default();
        sampling.hold(at(0), ended(ANSWERED), 1);
        assert!(sampling.due(at(EVERY_US - 1)).is_empty(), "its front may still tell of it");
        assert!(sampling.amend(by_front(2)).is_none());
        sampling.hold(at(5), ended(ANSWERED), 3);
        let left = sampling.due(at(EVERY_US));
        assert_eq!((left[0].job.pid, left[0].stands_for), (2, 4));
        assert!(sampling.amend(by_front(3)).is_some(), "its receipt has been left");
        sampling.hold(at(EVERY_US), by_front(4), 1);
        assert!(sampling.due(at(2 * EVERY_US - 1)).is_empty());
        let left = sampling.due(at(2 * EVERY_US));
        assert_eq!((left[0].job.pid, left[0].stands_for), (4, 1));
    }

    #[test]
    fn the_last_jobs_of_a_kind_have_their_receipt_when_no_other_comes() {
        let mut sampling = Sampling::default();
        assert_eq!(take(&mut sampling, 0, 1, ANSWERED), [(ANSWERED, 1)]);
        assert_eq!(sampling.next_due(), None, "nosamplingg waits");
        assert_eq!(take(&mut sampling, 1, 3, ANSWERED), []);
        assert_eq!(take(&mut sampling, 2, 4, ANSWERED), []);
        assert_eq!(sampling.next_due(), Some(at(EVERY_US)));
        assert!(sampling.due(at(EVERY_US - 1)).is_empty());
        assert_eq!(said(sampling.due(at(EVERY_US))), [(ANSWERED, 7)]);
        assert_eq!(sampling.next_due(), None, "each is stood for once");
        // That was this time's receipt; and whoever asks for all has all.
        assert_eq!(take(&mut sampling, EVERY_US + 1, 2, ANSWERED), []);
        assert_eq!(said(sampling.all(at(EVERY_US + 2))), [(ANSWERED, 2)]);
        assert!(sampling.all(at(EVERY_US + 2)).is_empty());
    }

    #[test]
    fn a_kind_that_has_rested_is_forgotten() {
        let mut sampling = Sampling::default();
        assert_eq!(take(&mut sampling, 0, 1, ANSWERED), [(ANSWERED, 1)]);
        assert_eq!(take(&mut sampling, 1, 3, ANSWERED), []);
        assert!(sampling.due(at(EVERY_US - 1)).is_empty());
        assert_eq!(said(sampling.due(at(EVERY_US))), [(ANSWERED, 3)]);
        sampling.due(at(2 * EVERY_US - 1));
        assert_eq!(sampling.kinds.len(), 1, "its next one is too early for a receipt");
        sampling.due(at(2 * EVERY_US));
        assert!(sampling.kinds.is_empty());
        assert_eq!(take(&mut sampling, 2 * EVERY_US, 1, ANSWERED), [(ANSWERED, 1)]);
    }
}
