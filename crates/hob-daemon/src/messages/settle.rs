//! Outcomes of messages: to their senders, and to the recorder.
//!
//! A receipt costs more than a small message does, so a pool that handles many leaves one of each
//! [`EVERY_US`], which says for how many it stands; what failed always has its own, within
//! [`FAILURES_MAX`] in the same time.

use std::collections::HashMap;

use hob_core::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use hob_core::messages::{Found, Given, Refusal, Settled};
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::{OutcomePart, PhasePart, ProgramPart, Receipt, SCHEMA, WorkerPart};
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Answer, Failure, Handled, Reason};

use crate::channel;
use crate::owner::Owner;

use super::{Open, Said};

/// How often a pool leaves a receipt of a message that was answered.
const EVERY_US: u64 = 10_000;
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
    /// Messages since, without a receipt.
    without: u64,
    failures: u32,
}

/// How a message ended, for its receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Good,
    Bad,
}

impl Thin {
    /// For how many messages a receipt now would stand; `None`: there is none of this one.
    fn stands_for(&mut self, pool: PoolId, now: Time, (count, end): (u64, End)) -> Option<u64> {
        let last = self.pools.entry(pool).or_default();
        let due = last.at == Time::default() || now.us_since(last.at) >= EVERY_US;
        if due {
            (last.at, last.failures) = (now, 0);
        }
        let failed = end == End::Bad && last.failures < FAILURES_MAX;
        if !due && !failed {
            last.without += count;
            return None;
        }
        last.failures += u32::from(end == End::Bad);
        Some(std::mem::take(&mut last.without) + count)
    }
}

/// What a receipt says of a message.
struct Told<'a> {
    pool: PoolId,
    pid: u32,
    worker: Option<WorkerId>,
    marks: Marks,
    at: jiff::Timestamp,
    reason: &'a str,
    outcome: &'a str,
    bytes: usize,
    stands_for: u64,
}

impl Owner {
    /// Tells a message's outcome, once.
    pub(super) fn settle_message(&mut self, call: CallId, outcome: Settled) {
        let Some(open) = self.desk.open.remove(&call) else { return };
        self.desk.open_bytes -= open.payload.len();
        let (reason, text) = self.failure_of(&open, outcome);
        if let Some((id, number)) = open.sender
            && let Some(sender) = self.desk.senders.get_mut(&id)
        {
            sender.open.remove(&number);
            let bytes = match (&open.said, outcome) {
                (Some(Said::Answer { content_type, payload }), Settled::Answered) => {
                    let answer = Answer { id: number, content_type, payload };
                    channel::encode(Kind::Answer, 0, |out| answer.encode(out))
                }
                _ => {
                    let failure = Failure { id: number, reason, text: text.as_bytes() };
                    channel::encode(Kind::Failure, 0, |out| failure.encode(out))
                }
            };
            sender.outlet.send(bytes);
        }
        if let Some(id) = open.told {
            self.tell_settled(id, &open, outcome, &format!("{}: {text}", reason.code()));
        }
        self.record_message(call, &open, outcome, reason);
    }

    /// What a message without an answer is told; of no meaning for one with an answer.
    fn failure_of(&self, open: &Open, outcome: Settled) -> (Reason, String) {
        let loaded = self.desk.handlers.get(&open.pool);
        let name = loaded.map_or("?", |loaded| loaded.name.as_str());
        match outcome {
            Settled::Answered => match &open.said {
                Some(Said::Raised { text }) => {
                    (Reason::Raised, String::from_utf8_lossy(text).into_owned())
                }
                Some(Said::Answer { .. }) | None => (Reason::Raised, String::new()),
            },
            Settled::Lost => (Reason::Lost, format!("{name}: its worker ended before it answered")),
            Settled::TimedOut { given: Given::Yes } => {
                (Reason::TimedOut, format!("{name}: the time passed while its handler ran"))
            }
            Settled::TimedOut { given: Given::No } => {
                (Reason::TimedOut, format!("{name}: the time passed while it waited for a worker"))
            }
            Settled::Cancelled => (Reason::Cancelled, format!("{name}: taken back")),
            Settled::Refused(refusal) => match refusal {
                Refusal::QueueFull => (Reason::Busy, format!("{name}: too many messages wait")),
                Refusal::SessionsFull => (Reason::Busy, format!("{name}: too many sessions")),
                Refusal::Stopping => (Reason::Stopping, format!("{name}: hob stops")),
                Refusal::NotLoaded => {
                    let trouble = loaded.and_then(|loaded| loaded.trouble.clone());
                    let ended = loaded.map_or("", |loaded| loaded.host.ended());
                    let trouble = trouble.unwrap_or_else(|| ended.to_owned());
                    (Reason::NotLoaded, format!("{name}: cannot be loaded: {trouble}"))
                }
            },
        }
    }

    fn record_message(&mut self, call: CallId, open: &Open, outcome: Settled, reason: Reason) {
        let now = Time(clock::now_ns());
        let answered =
            matches!(open.said, Some(Said::Answer { .. })) && outcome == Settled::Answered;
        let end = if answered { End::Good } else { End::Bad };
        let Some(stands_for) = self.desk.thin.stands_for(open.pool, now, (1, end)) else { return };
        let mut marks = Marks::default();
        marks.stamp(Mark::Received, Time(open.received_ns));
        marks.stamp(Mark::Planned, Time(open.planned_ns));
        if let Some(given_ns) = open.given_ns {
            marks.stamp(Mark::Queued, Time(given_ns));
            marks.stamp(Mark::Main, Time(given_ns));
            marks.stamp(Mark::Finished, now);
        }
        marks.stamp(Mark::Settled, now);
        let told = Told {
            pool: open.pool,
            pid: open.pid,
            worker: open.worker,
            marks,
            at: open.at,
            reason: match (open.given_ns, open.found) {
                (None, _) => reason.code(),
                (Some(_), Found::Waiting) => "worker-ready",
                (Some(_), Found::Queued) => "queued",
            },
            outcome: if answered { "answered" } else { reason.code() },
            bytes: open.payload.len(),
            stands_for,
        };
        self.write_receipt(call, &told);
    }

    /// The receipt of what a worker reports of its lane.
    pub(super) fn record_lane(&mut self, lane: LaneId, worker: WorkerId, handled: &Handled) {
        let Some(known) = self.desk.lanes.get(&lane) else { return };
        if handled.count == 0 {
            return;
        }
        let (pool, pid) = (known.pool, known.pid);
        let now = Time(clock::now_ns());
        let end = if handled.newest_raised { End::Bad } else { End::Good };
        let count = u64::from(handled.count);
        let Some(stands_for) = self.desk.thin.stands_for(pool, now, (count, end)) else { return };
        let mut marks = Marks::default();
        marks.stamp(Mark::Given, Time(handled.main_ns));
        marks.stamp(Mark::Main, Time(handled.main_ns));
        marks.stamp(Mark::Finished, Time(handled.finished_ns));
        let ago = jiff::SignedDuration::from_nanos(
            i64::try_from(now.0.saturating_sub(handled.main_ns)).unwrap_or(0),
        );
        let told = Told {
            pool,
            pid,
            worker: Some(worker),
            marks,
            at: jiff::Timestamp::now().checked_sub(ago).unwrap_or_default(),
            reason: "lane",
            outcome: if handled.newest_raised { Reason::Raised.code() } else { "answered" },
            bytes: 0,
            stands_for,
        };
        self.write_receipt(CallId(self.recorder.next_call()), &told);
    }

    fn write_receipt(&mut self, call: CallId, told: &Told<'_>) {
        let Some(loaded) = self.desk.handlers.get(&told.pool) else { return };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let phases = PhasePart::all(&told.marks);
        let total_us = phases.last().map_or(0, |last| last.start_us + last.us);
        let process = told.worker.and_then(|id| self.hands.get(id).map(|known| (id, known)));
        let worker = process.map(|(id, known)| WorkerPart {
            pid: known.pid,
            generation: known.zygote.unwrap_or(id).0 - hob_core::messages::WORKERS_FROM,
        });
        let warm = told.worker.is_some();
        let isolation = if warm { loaded.terms.recipe.name().code() } else { "none" };
        self.recorder.record(Receipt {
            schema: SCHEMA.to_owned(),
            call: call.0,
            at: told.at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            program: ProgramPart {
                id: Some(loaded.digest.clone()),
                name: loaded.name.clone(),
                target: text(&loaded.target),
                runtime: loaded.host.runtime().to_owned(),
                interpreter: loaded.host.interpreter().map(text),
                arguments: 0,
            },
            caller_pid: told.pid,
            warm,
            reason: told.reason.to_owned(),
            isolation: isolation.to_owned(),
            outcome: OutcomePart {
                kind: told.outcome.to_owned(),
                code: None,
                signal: None,
                phase: None,
            },
            phases,
            total_us,
            usage: None,
            worker,
            cold_us: None,
            demoted: None,
            hooks: None,
            message: Some(hob_core::receipt::MessagePart {
                bytes: told.bytes,
                stands_for: told.stands_for,
            }),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_leaves_a_receipt_now_and_then_and_one_of_each_failure() {
        let mut thin = Thin::default();
        let pool = PoolId(1);
        let at = |us: u64| Time(1 + us * 1000);
        assert_eq!(thin.stands_for(pool, at(0), (1, End::Good)), Some(1));
        assert_eq!(thin.stands_for(pool, at(1), (1, End::Good)), None);
        assert_eq!(thin.stands_for(pool, at(2), (5, End::Good)), None);
        assert_eq!(thin.stands_for(pool, at(3), (1, End::Bad)), Some(7));
        for _ in 0..FAILURES_MAX - 1 {
            assert_eq!(thin.stands_for(pool, at(4), (1, End::Bad)), Some(1));
        }
        assert_eq!(thin.stands_for(pool, at(5), (1, End::Bad)), None);
        assert_eq!(thin.stands_for(pool, at(EVERY_US), (1, End::Good)), Some(2));
    }
}
