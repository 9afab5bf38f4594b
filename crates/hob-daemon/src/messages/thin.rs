//! Which messages have a receipt of their own, and who stands for the others.
//!
//! A receipt costs more than a small message does, so a pool leaves one each [`EVERY_US`] of each
//! reason and outcome, which says for how many of these it stands; what failed has its own at
//! once, within [`FAILURES_MAX`] in the same time. The newest message without one is kept: where no other comes
//! that could stand for it, it does so itself, that long after the last receipt at the latest. So
//! none is missing when a pool rests, is forgotten, or ends with the daemon.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::ids::{CallId, PoolId, Time};
use hob_core::phase::Marks;
use hob_core::receipt::WorkerPart;
use hob_core::receipt::trace::TracePart;

use hob_wire::message::{Judged, Protocol};

use super::loading::Face;

/// How often a pool leaves a receipt of a message that was answered.
pub(super) const EVERY_US: u64 = 10_000;
/// Receipts of failures of one pool in this time.
const FAILURES_MAX: u32 = 16;

/// Which pools have left a receipt lately.
#[derive(Debug, Default)]
pub(super) struct Thin {
    pools: HashMap<PoolId, Last>,
}

#[derive(Debug, Default)]
struct Last {
    at: Time,
    /// Messages since, without a receipt: of each reason and outcome the newest, and how many
    /// there are.
    kept: Vec<(Told, u64)>,
    failures: u32,
    /// Its pool is forgotten, and so is this when what is kept has been told.
    is_over: bool,
}

/// The outcome of a message that did not fail.
pub(super) const ANSWERED: &str = "answered";

/// What a receipt says of a message.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) face: Arc<Face>,
    /// Its number; one of a lane has none until it has a receipt.
    pub(super) call: Option<CallId>,
    pub(super) pid: u32,
    /// Whether it was given to a worker, and which.
    pub(super) given: bool,
    pub(super) worker: Option<WorkerPart>,
    pub(super) marks: Marks,
    pub(super) at: jiff::Timestamp,
    pub(super) reason: &'static str,
    pub(super) outcome: &'static str,
    pub(super) bytes: usize,
    /// What its client speaks, if its front has said.
    pub(super) protocol: Option<Protocol>,
    /// Where the answer about its rights came from.
    pub(super) judged: Judged,
    /// The other host that asked it, and its number there.
    pub(super) asked_by: Option<String>,
    /// The hosts that it has come over.
    pub(super) hops: u64,
    /// Where it stands in a trace.
    pub(super) trace: Option<TracePart>,
}

impl Thin {
    /// Takes in `count` messages, of which this is the newest. Returns what receipts are to be
    /// left of now, and for how many each stands.
    pub(super) fn take(
        &mut self,
        pool: PoolId,
        now: Time,
        told: Told,
        count: u64,
    ) -> Vec<(Told, u64)> {
        let last = self.pools.entry(pool).or_default();
        let outcome = told.outcome;
        let at = last.keep(told, count);
        if last.at == Time::default() || last.is_due(now) {
            return last.leave(now);
        }
        if outcome == ANSWERED || last.failures >= FAILURES_MAX {
            return Vec::new();
        }
        last.failures += 1;
        vec![last.kept.swap_remove(at)]
    }

    /// Takes in `count` messages of a lane that its front may still tell more of: what it tells comes
    /// in time to be in their receipt, which is left after the usual while.
    pub(super) fn hold(&mut self, pool: PoolId, now: Time, told: Told, count: u64) {
        let last = self.pools.entry(pool).or_default();
        if last.kept.is_empty() && last.is_due(now) {
            last.at = now;
        }
        if let Some(at) = last.place_of(&told)
            && last.kept[at].0.protocol.is_some()
            && told.protocol.is_none()
        {
            // More is known of that one.
            last.kept[at].1 += count;
            return;
        }
        last.keep(told, count);
    }

    /// Tells more of a message that was taken in. Returns it where its receipt has been left.
    pub(super) fn amend(&mut self, pool: PoolId, told: Told) -> Option<Told> {
        let kept = self.pools.get_mut(&pool).and_then(|last| {
            let at = last.place_of(&told)?;
            last.kept.get_mut(at)
        });
        let Some((kept, _)) = kept else { return Some(told) };
        *kept = told;
        None
    }

    /// When the next message is due that no other has come to stand for.
    pub(super) fn next_due(&self) -> Option<Time> {
        let waiting = self.pools.values().filter(|last| !last.kept.is_empty());
        waiting.map(|last| last.at.after_us(EVERY_US)).min()
    }

    /// What is due of that.
    pub(super) fn due(&mut self, now: Time) -> Vec<(Told, u64)> {
        let due = self.pools.values_mut().filter(|last| !last.kept.is_empty() && last.is_due(now));
        let told = due.flat_map(|last| last.leave(now)).collect();
        self.pools.retain(|_, last| !last.is_over || !last.kept.is_empty());
        told
    }

    /// All of it, due or not.
    pub(super) fn all(&mut self, now: Time) -> Vec<(Told, u64)> {
        let waiting = self.pools.values_mut().filter(|last| !last.kept.is_empty());
        waiting.flat_map(|last| last.leave(now)).collect()
    }

    /// Forgets a pool that is over, once nothing of it is still to be told.
    pub(super) fn forget(&mut self, pool: PoolId) {
        match self.pools.get_mut(&pool) {
            Some(last) if last.kept.is_empty() => drop(self.pools.remove(&pool)),
            Some(last) => last.is_over = true,
            None => {}
        }
    }
}

impl Last {
    fn is_due(&self, now: Time) -> bool {
        now.us_since(self.at) >= EVERY_US
    }

    /// Keeps the newest of its kind; where.
    fn keep(&mut self, told: Told, count: u64) -> usize {
        if let Some(at) = self.place_of(&told) {
            let before = self.kept[at].1;
            self.kept[at] = (told, before + count);
            return at;
        }
        self.kept.push((told, count));
        self.kept.len() - 1
    }

    /// Where one of its kind is kept.
    fn place_of(&self, told: &Told) -> Option<usize> {
        let is_alike =
            |(kept, _): &(Told, u64)| (kept.reason, kept.outcome) == (told.reason, told.outcome);
        self.kept.iter().position(is_alike)
    }

    fn leave(&mut self, now: Time) -> Vec<(Told, u64)> {
        self.at = now;
        // What fails next has its own.
        self.failures = 0;
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_core::receipt::ProgramPart;

    const POOL: PoolId = PoolId(1);

    fn told(outcome: &'static str) -> Told {
        let program = ProgramPart {
            id: None,
            name: String::new(),
            target: String::new(),
            runtime: String::new(),
            interpreter: None,
            arguments: 0,
        };
        Told {
            face: Arc::new(Face { program, isolation: "prefork" }),
            call: None,
            pid: 1,
            given: true,
            worker: None,
            marks: Marks::default(),
            at: jiff::Timestamp::default(),
            reason: "lane",
            outcome,
            bytes: 0,
            protocol: None,
            judged: Judged::Not,
            trace: None,
            asked_by: None,
            hops: 0,
        }
    }

    fn at(us: u64) -> Time {
        Time(1 + us * 1000)
    }

    fn said(receipts: Vec<(Told, u64)>) -> Vec<(&'static str, u64)> {
        let mut said: Vec<_> =
            receipts.into_iter().map(|(told, stands_for)| (told.outcome, stands_for)).collect();
        said.sort_unstable();
        said
    }

    fn take(
        thin: &mut Thin,
        us: u64,
        (count, outcome): (u64, &'static str),
    ) -> Vec<(&'static str, u64)> {
        said(thin.take(POOL, at(us), told(outcome), count))
    }

    const RAISED: &str = "raised";

    #[test]
    fn a_pool_leaves_a_receipt_now_and_then_and_one_of_each_failure() {
        let mut thin = Thin::default();
        assert_eq!(take(&mut thin, 0, (1, ANSWERED)), [(ANSWERED, 1)]);
        assert_eq!(take(&mut thin, 1, (1, ANSWERED)), []);
        assert_eq!(take(&mut thin, 2, (5, ANSWERED)), []);
        for _ in 0..FAILURES_MAX {
            assert_eq!(take(&mut thin, 3, (1, RAISED)), [(RAISED, 1)]);
        }
        assert_eq!(take(&mut thin, 4, (1, RAISED)), []);
        assert_eq!(take(&mut thin, 5, (1, "lost")), []);
        assert_eq!(take(&mut thin, 6, (2, RAISED)), []);
        let all = [(ANSWERED, 7), ("lost", 1), (RAISED, 3)];
        assert_eq!(take(&mut thin, EVERY_US, (1, ANSWERED)), all);
        assert_eq!(take(&mut thin, EVERY_US + 1, (1, RAISED)), [(RAISED, 1)]);
    }

    #[test]
    fn what_a_front_tells_of_a_message_is_in_the_receipt_that_stands_for_it() {
        let by_front = |pid| Told { pid, protocol: Some(Protocol::Http11), ..told(ANSWERED) };
        let mut thin = Thin::default();
        thin.hold(POOL, at(0), told(ANSWERED), 1);
        assert!(thin.due(at(EVERY_US - 1)).is_empty(), "its front may still tell of it");
        assert!(thin.amend(POOL, by_front(2)).is_none());
        thin.hold(POOL, at(5), told(ANSWERED), 3);
        let left = thin.due(at(EVERY_US));
        assert_eq!((left[0].0.pid, left[0].1), (2, 4));
        assert!(thin.amend(POOL, by_front(3)).is_some(), "its receipt has been left");
        thin.hold(POOL, at(EVERY_US), by_front(4), 1);
        assert!(thin.due(at(2 * EVERY_US - 1)).is_empty());
        let left = thin.due(at(2 * EVERY_US));
        assert_eq!((left[0].0.pid, left[0].1), (4, 1));
    }

    #[test]
    fn the_last_messages_of_a_pool_have_their_receipt_when_no_other_comes() {
        let mut thin = Thin::default();
        assert_eq!(take(&mut thin, 0, (1, ANSWERED)), [(ANSWERED, 1)]);
        assert_eq!(thin.next_due(), None, "nothing waits");
        assert_eq!(take(&mut thin, 1, (3, ANSWERED)), []);
        assert_eq!(take(&mut thin, 2, (4, ANSWERED)), []);
        assert_eq!(thin.next_due(), Some(at(EVERY_US)));
        assert!(thin.due(at(EVERY_US - 1)).is_empty());
        assert_eq!(said(thin.due(at(EVERY_US))), [(ANSWERED, 7)]);
        assert_eq!(thin.next_due(), None, "each is stood for once");
        // That was this time's receipt; and whoever asks for all has all.
        assert_eq!(take(&mut thin, EVERY_US + 1, (2, ANSWERED)), []);
        assert_eq!(said(thin.all(at(EVERY_US + 2))), [(ANSWERED, 2)]);
        assert!(thin.all(at(EVERY_US + 2)).is_empty());
    }

    #[test]
    fn a_pool_that_is_forgotten_is_so_when_its_last_message_was_told() {
        let mut thin = Thin::default();
        thin.forget(POOL);
        assert_eq!(take(&mut thin, 0, (1, ANSWERED)), [(ANSWERED, 1)]);
        assert_eq!(take(&mut thin, 1, (3, ANSWERED)), []);
        thin.forget(POOL);
        assert!(thin.due(at(EVERY_US - 1)).is_empty());
        assert_eq!(said(thin.due(at(EVERY_US))), [(ANSWERED, 3)]);
        assert!(thin.pools.is_empty());
        assert_eq!(take(&mut thin, EVERY_US + 1, (1, ANSWERED)), [(ANSWERED, 1)]);
        thin.forget(POOL);
        assert!(thin.pools.is_empty(), "nothing was left to be told");
    }
}
