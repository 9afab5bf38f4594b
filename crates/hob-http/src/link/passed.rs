//! What the loop is told of a request when the front is done with it, for its receipt.
//!
//! Of requests that went by the loop it is told each; of those on lanes now and then, since it would
//! wake the loop, for which lanes are there to leave in peace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Judged, Passed, Protocol, Traced, Turned};

use super::{Link, Out, encode};

/// Of the requests of a lane one is told in so long; and each whose client took so long for the rest
/// of its answer.
pub(super) const EVERY_NS: u64 = 10_000_000;

/// When a request came, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// What its client speaks.
    pub(crate) protocol: Protocol,
    /// Its head began to come; 0: that is not known.
    pub(crate) head_ns: u64,
    /// Its head was whole.
    pub(crate) begun_ns: u64,
    /// Its rights were judged; 0: it has none.
    pub(crate) judged_ns: u64,
    /// Where the answer about them came from.
    pub(crate) judged: Judged,
    /// Its body was whole, or it was known that it would not be.
    pub(crate) now_ns: u64,
    /// Where it stands in its client's trace.
    pub(crate) trace: Traced,
}

/// A request of which the loop knows. Dropped, it says that the front is done with it.
#[derive(Debug)]
pub(crate) struct Passing {
    link: Link,
    id: u64,
    times: Times,
    on: Option<OnLane>,
}

/// Where and when a request was on a lane.
#[derive(Debug)]
struct OnLane {
    lane: u64,
    given_ns: u64,
    /// When its app had come to its end; 0: it has not.
    ended_ns: Arc<AtomicU64>,
    /// Its lane was quiet about those before it.
    is_due: bool,
}

/// When the loop was last told of a request of a lane.
#[derive(Debug, Default)]
pub(super) struct Lately(u64);

impl Lately {
    /// Whether it is time to tell of a request that is given now; it is told then.
    fn falls_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns.saturating_sub(self.0) >= EVERY_NS;
        if is_due {
            self.0 = now_ns;
        }
        is_due
    }
}

impl Passing {
    pub(super) fn new(link: &Link, id: u64, times: Times) -> Passing {
        Passing { link: link.clone(), id, times, on: None }
    }

    /// Of a request that is given now to a lane, as its message of this number.
    pub(super) fn on_lane(
        link: &Link,
        lane: u64,
        id: u64,
        times: Times,
        lately: &mut Lately,
    ) -> Passing {
        let given_ns = clock::now_ns();
        let is_due = lately.falls_due(given_ns);
        let on = OnLane { lane, given_ns, ended_ns: Arc::default(), is_due };
        Passing { link: link.clone(), id, times, on: Some(on) }
    }

    /// Where it is to be said when its app has come to its end on a lane.
    pub(super) fn ends(&self) -> Option<Arc<AtomicU64>> {
        self.on.as_ref().map(|on| Arc::clone(&on.ended_ns))
    }
}

/// An app has come to its end.
pub(super) fn ended(ended_ns: Option<&AtomicU64>) {
    if let Some(ended_ns) = ended_ns {
        ended_ns.store(clock::now_ns(), Ordering::Relaxed);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let Times { protocol, head_ns, begun_ns, judged_ns, judged, now_ns, trace } = self.times;
        let passed_ns = clock::now_ns();
        let mut passed = Passed {
            id: self.id,
            lane: 0,
            turned: Turned::Not,
            protocol,
            head_ns,
            begun_ns,
            judged_ns,
            judged,
            whole_ns: now_ns,
            given_ns: 0,
            ended_ns: 0,
            passed_ns,
            trace,
            program: b"",
        };
        if let Some(on) = &self.on {
            let ended_ns = on.ended_ns.load(Ordering::Relaxed);
            let is_slow = passed_ns.saturating_sub(ended_ns) >= EVERY_NS;
            // What did not come to its end the loop knows better.
            if ended_ns == 0 || !on.is_due && !is_slow {
                return;
            }
            passed = Passed { lane: on.lane, given_ns: on.given_ns, ended_ns, ..passed };
        }
        self.link.passed(&passed);
    }
}

impl Link {
    /// Tells of a request that no worker is asked, though its app is known.
    pub(crate) fn turned_away(&self, app: &str, times: Times, turned: Turned) {
        let is_whole = matches!(turned, Turned::Queue | Turned::Timeout);
        self.passed(&Passed {
            id: 0,
            lane: 0,
            turned,
            protocol: times.protocol,
            head_ns: times.head_ns,
            begun_ns: times.begun_ns,
            judged_ns: times.judged_ns,
            judged: times.judged,
            whole_ns: if is_whole { times.now_ns } else { 0 },
            given_ns: 0,
            ended_ns: 0,
            passed_ns: clock::now_ns(),
            trace: times.trace,
            program: app.as_bytes(),
        });
    }

    fn passed(&self, passed: &Passed<'_>) {
        if let Some(bytes) = encode(Kind::Passed, 0, |out| passed.encode(out)) {
            self.send_surely(Out { bytes, file: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_requests_of_a_lane_one_is_told_now_and_then() {
        let mut lately = Lately::default();
        let begun = 5 * EVERY_NS;
        let due: Vec<u64> =
            (0..25).filter(|step| lately.falls_due(begun + step * EVERY_NS / 10)).collect();
        assert_eq!(due, [0, 10, 20]);
    }
}
