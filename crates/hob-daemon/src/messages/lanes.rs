//! Lanes: a worker that is lent to one sender, and how many messages went from one to the other.
//!
//! The daemon does not see them. A worker reports (`handled`) now and then, and counts in a tally
//! that the daemon can read at any time, also when the worker has ended in the middle of a
//! message. The tally is what is believed; a report says when to look, and a look soon after the
//! last report finds what came after it. `docs/why/lanes.md` goes through the ways to end.
//!
//! ```text
//!  want_lane ── lend ──▶ lent ── handled(over) ───────────────▶ counted, gone
//!                         └── lane_cut (its process has ended)
//!                               └── lane_lost (its last word was read) ──▶ counted, gone
//! ```

use std::sync::Arc;

use hob_core::ids::{LaneId, PoolId, Time, WorkerId};
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::WorkerPart;
use hob_core::requests::{Event, Over};
use hob_os::tally::{self, Tally};
use hob_os::{clock, uds};
use hob_wire::frame::Kind;
use hob_wire::message::{Handled, Judged, Lend, Lent, Passed, Reason};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::Shutdown;

use crate::channel;
use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::messages::Messages;
use crate::workers::hands::Process;

use super::loading::Face;
use super::settle::{part_of, stamp};
use super::thin::{ANSWERED, EVERY_US, Told};

/// A lane that is lent.
#[derive(Debug)]
pub(super) struct Lane {
    sender: SenderId,
    /// The sender's number of its request, until it is answered.
    request: u64,
    pool: PoolId,
    face: Arc<Face>,
    pid: u32,
    worker: Option<WorkerId>,
    /// The worker's end, to shut.
    end: Option<OwnedFd>,
    /// What the worker counts in.
    tally: Option<OwnedFd>,
    /// Messages that its reports name, and how many of them raised.
    reported: (u64, u64),
    /// The same of those that were counted: they have a receipt, or another stands for them.
    counted: (u64, u64),
    /// Its sender wants no more of it.
    left: bool,
    /// Its worker's process, when that has ended.
    ended: Option<WorkerPart>,
    /// When to look whether there was more after the last report.
    look_at: Option<Time>,
}

/// Messages of a lane that were not counted before and have one outcome, with the times of the
/// newest.
struct Newest {
    count: u64,
    outcome: &'static str,
    main_ns: u64,
    finished_ns: u64,
}

impl Lane {
    /// Lets nothing more onto the lane. What its worker has still to say goes out.
    fn shut(&self) {
        if let Some(end) = &self.end {
            let _ = rustix::net::shutdown(end, Shutdown::Read);
        }
    }

    pub(super) fn next_look(&self) -> Option<Time> {
        self.look_at
    }

    fn tally(&self) -> Tally {
        self.tally.as_ref().map(tally::read).unwrap_or_default()
    }

    /// What has ended and was not counted, and from now on is; by outcome.
    fn count(&mut self) -> [Newest; 3] {
        let tally = self.tally();
        let ended = tally.ended.max(self.reported.0);
        let raised = tally.raised.max(self.reported.1);
        let all = ended.saturating_sub(self.counted.0);
        let failed = raised.saturating_sub(self.counted.1).min(all);
        // It was still handled, and nobody waited for the answer any more.
        let is_late = tally.begun == ended && is_late(&tally, tally.ended_ns);
        let late = u64::from(is_late && failed < all);
        self.counted = (ended, raised);
        let newest = |count, outcome| Newest {
            count,
            outcome,
            // The one that is open now may have begun since.
            main_ns: if tally.begun == ended { tally.begun_ns } else { tally.ended_ns },
            finished_ns: tally.ended_ns,
        };
        [
            newest(all - failed - late, ANSWERED),
            newest(failed, Reason::Raised.code()),
            newest(late, Reason::TimedOut.code()),
        ]
    }

    /// The message that its worker has ended in, if it was in one. What it has not read its sender
    /// sends again by the daemon, where it is counted.
    fn open(&self) -> Option<Newest> {
        let tally = self.tally();
        if tally.begun <= tally.ended {
            return None;
        }
        let now_ns = clock::now_ns();
        let reason = match self.left {
            true if is_late(&tally, now_ns) => Reason::TimedOut,
            true => Reason::Cancelled,
            false => Reason::Lost,
        };
        let (main_ns, outcome) = (tally.begun_ns, reason.code());
        Some(Newest { count: 1, outcome, main_ns, finished_ns: now_ns })
    }
}

fn is_late(tally: &Tally, at_ns: u64) -> bool {
    tally.deadline_ns != 0 && at_ns >= tally.deadline_ns
}

impl Messages {
    /// Whether a lane is about to end: what was on it is not all counted yet.
    pub(crate) fn is_counting(&self) -> bool {
        self.lanes.values().any(|lane| lane.left || lane.ended.is_some())
    }

    fn lane_of(&mut self, worker: WorkerId) -> Option<(LaneId, &mut Lane)> {
        let mut lanes = self.lanes.iter_mut();
        lanes.find(|(_, lane)| lane.worker == Some(worker)).map(|(id, lane)| (*id, lane))
    }
}

impl Messages {
    pub(super) fn want_lane(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: SenderId,
        number: u64,
        program: &[u8],
    ) {
        let pid = match self.senders.get(&id) {
            Some(sender) => sender.pid,
            None => return,
        };
        let lane = LaneId(self.next_lane);
        self.next_lane += 1;
        // Whatever is wrong with the program is told to its first message.
        let routed = self.from(id).and_then(|from| self.route(ctx, &from, program)).ok();
        // What passes the daemon by has no receipt of its own, and so no place in a trace.
        let is_traced = self.mounts.is_empty() && self.is_traced(id);
        let routed = routed.filter(|_| !is_traced);
        let lendable = routed.filter(|(pool, route)| self.is_watched(*pool, *route));
        let lendable = lendable.and_then(|(pool, _)| {
            self.handlers.get(&pool).map(|loaded| (pool, Arc::clone(&loaded.face)))
        });
        let Some((pool, face)) = lendable else {
            self.no_lane(id, number);
            return;
        };
        let wanted = Lane {
            sender: id,
            request: number,
            pool,
            face,
            pid,
            worker: None,
            end: None,
            tally: None,
            reported: (0, 0),
            counted: (0, 0),
            left: false,
            ended: None,
            look_at: None,
        };
        self.lanes.insert(lane, wanted);
        ctx.request(Event::WantLane { lane, pool });
    }

    fn is_traced(&self, sender: SenderId) -> bool {
        self.from(sender).is_ok_and(|from| from.parent.is_some())
    }

    fn no_lane(&mut self, sender: SenderId, number: u64) {
        let lent = Lent { id: number, lane: 0 };
        self.say(sender, Kind::Lent, |out| lent.encode(out));
    }

    /// A lane does not come about.
    pub(super) fn refuse_lane(&mut self, id: LaneId) {
        if let Some(lane) = self.lanes.remove(&id) {
            self.no_lane(lane.sender, lane.request);
        }
    }

    /// Connects a lane's sender and its worker.
    pub(super) fn lend(&mut self, ctx: &mut Ctx<'_>, id: LaneId, worker: WorkerId, uses: u32) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        lane.worker = Some(worker);
        let (sender, request, pool) = (lane.sender, lane.request, lane.pool);
        let doorbell = self.handlers.get(&pool).and_then(|known| known.freshness.doorbell());
        let (Some(doorbell), Ok((ours, theirs)), Ok(tally)) = (doorbell, uds::pair(), tally::new())
        else {
            self.unlend(ctx, id, worker);
            return;
        };
        // Both ends wait in their reads: they have nothing else to do.
        let waits = [&ours, &theirs].map(|end| rustix::io::ioctl_fionbio(end, false));
        let lend = Lend { lane: id.0, uses };
        let bytes = channel::encode(Kind::Lend, 3, |out| lend.encode(out));
        let sent = waits.iter().all(Result::is_ok)
            && bytes.is_some_and(|bytes| {
                let with = [theirs.as_fd(), doorbell.as_fd(), tally.as_fd()];
                ctx.hands.tell(worker, bytes, &with)
            });
        let lent = Lent { id: request, lane: id.0 };
        let bytes = channel::encode(Kind::Lent, 1, |out| lent.encode(out));
        let known = self.senders.get(&sender);
        let told =
            sent && known.is_some_and(|sender| sender.outlet.send_with(bytes, &[ours.as_fd()]));
        if let Some(lane) = self.lanes.get_mut(&id) {
            (lane.end, lane.tally) = (Some(theirs), Some(tally));
        }
        if !sent {
            self.unlend(ctx, id, worker);
        } else if !told {
            self.leave_lane(ctx, id);
        }
    }

    /// A lane that did not come about: its worker is of no use to anybody.
    fn unlend(&mut self, ctx: &mut Ctx<'_>, id: LaneId, worker: WorkerId) {
        self.refuse_lane(id);
        ctx.request(Event::Unreached { worker, unread: None });
    }

    pub(super) fn recall(&mut self, worker: WorkerId) {
        if let Some((_, lane)) = self.lane_of(worker) {
            lane.shut();
        }
    }

    /// Shuts the workers' ends of a pool's lanes: what was sent before is read and refused, what
    /// comes after never arrives.
    pub(super) fn recall_lanes(&mut self, pool: PoolId) {
        for lane in self.lanes.values().filter(|lane| lane.pool == pool) {
            lane.shut();
        }
    }

    pub(super) fn lane_left(&mut self, ctx: &mut Ctx<'_>, sender: SenderId, lane: LaneId) {
        if self.lanes.get(&lane).is_some_and(|known| known.sender == sender) {
            self.leave_lane(ctx, lane);
        }
    }

    /// A sender has left all its lanes.
    pub(super) fn lanes_left(&mut self, ctx: &mut Ctx<'_>, sender: SenderId) {
        let lanes = self.lanes.iter().filter(|(_, lane)| lane.sender == sender);
        let lanes: Vec<LaneId> = lanes.map(|(lane, _)| *lane).collect();
        lanes.into_iter().for_each(|lane| self.leave_lane(ctx, lane));
    }

    fn leave_lane(&mut self, ctx: &mut Ctx<'_>, lane: LaneId) {
        if let Some(known) = self.lanes.get_mut(&lane) {
            known.left = true;
        }
        ctx.request(Event::LaneLeft { lane });
    }

    /// A worker says what it has handled on its lane.
    pub(super) fn handled(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, handled: &Handled) {
        self.active = true;
        let id = LaneId(handled.lane);
        let lane = self.lanes.get_mut(&id).filter(|lane| lane.worker == Some(worker));
        let Some(lane) = lane else { return };
        lane.reported.0 += u64::from(handled.count);
        lane.reported.1 += u64::from(handled.raised);
        self.count_lane(ctx, id, None);
        if handled.over {
            self.count_cut_off(ctx, id);
            self.lanes.remove(&id);
            let (lane, lane_over) = (id, Over::Yes);
            ctx.request(Event::Handled { worker, lane, count: 0, lane_over });
        } else {
            self.look_again(id);
        }
    }

    /// Counts the message in which a worker has ended its lane: whoever was to have the rest of its
    /// answer has left.
    fn count_cut_off(&mut self, ctx: &mut Ctx<'_>, id: LaneId) {
        let Some(lane) = self.lanes.get(&id) else { return };
        let (tally, worker) = (lane.tally(), lane.worker);
        if let Some(worker) = worker.filter(|_| tally.begun > tally.ended) {
            ctx.request(Event::Handled { worker, lane: id, count: 1, lane_over: Over::No });
            let outcome = Reason::Cancelled.code();
            let finished_ns = clock::now_ns();
            let newest = Newest { count: 1, outcome, main_ns: tally.begun_ns, finished_ns };
            self.record_lane(ctx, id, &newest);
        }
    }

    /// Counts what came after workers' last reports. One that rests reports nothing: it waits for
    /// its sender.
    pub(super) fn look_at_lanes(&mut self, ctx: &mut Ctx<'_>, now: Time) {
        let due = self.lanes.iter().filter(|(_, lane)| lane.look_at.is_some_and(|at| at <= now));
        let due: Vec<LaneId> = due.map(|(id, _)| *id).collect();
        for id in due {
            if self.count_lane(ctx, id, None) {
                self.look_again(id);
            }
        }
    }

    fn look_again(&mut self, id: LaneId) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            // A worker that goes on reports before that, so that only the last look finds any.
            lane.look_at = Some(Time(clock::now_ns()).after_us(2 * EVERY_US));
        }
    }

    /// Counts what was handled on all lanes by now.
    pub(crate) fn count_lanes(&mut self, ctx: &mut Ctx<'_>) {
        let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
        for lane in lanes {
            self.count_lane(ctx, lane, None);
        }
    }

    /// A front is done with a request of a lane, whose worker had come to its end.
    pub(super) fn passed_on_lane(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        passed: &Passed<'_>,
    ) {
        let id = LaneId(passed.lane);
        let lane = self.lanes.get(&id).filter(|lane| lane.sender == sender);
        let Some(before) = lane.map(|lane| lane.counted.0) else { return };
        self.count_lane(ctx, id, Some(passed));
        self.look_again(id);
        if passed.id > before {
            return;
        }
        // It has been counted, and its receipt may have been left.
        let Some((pool, told)) = self.told_by_front(ctx, id, passed) else { return };
        let slow = Time(passed.passed_ns).us_since(Time(passed.ended_ns)) >= EVERY_US;
        if let Some(told) = self.thin.amend(pool, told)
            && slow
        {
            self.leave_receipt(ctx, pool, Time(clock::now_ns()), told, 0);
        }
    }

    /// What a front tells of a request of a lane that was answered.
    fn told_by_front(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: LaneId,
        passed: &Passed<'_>,
    ) -> Option<(PoolId, Told)> {
        let tally = self.lanes.get(&id)?.tally();
        let mut marks = Marks::default();
        marks.stamp(Mark::Queued, Time(passed.given_ns));
        let mut main_ns = passed.given_ns;
        if tally.ended == passed.id && tally.begun == passed.id {
            // Its worker has not gone on since, and knows better.
            main_ns = tally.begun_ns;
            marks.stamp(Mark::Given, Time(main_ns));
            marks.stamp(Mark::Main, Time(main_ns));
            marks.stamp(Mark::Finished, Time(tally.ended_ns));
            marks.stamp(Mark::Settled, Time(passed.ended_ns));
        } else {
            marks.stamp(Mark::Finished, Time(passed.ended_ns));
        }
        let (pool, mut told) = self.told_of_lane(ctx, id, (ANSWERED, main_ns), marks)?;
        stamp(&mut told, passed);
        Some((pool, told))
    }

    /// Counts what has ended on a lane since it was counted last; whether there was anything. Of
    /// one of these a front may have told.
    fn count_lane(&mut self, ctx: &mut Ctx<'_>, id: LaneId, passed: Option<&Passed<'_>>) -> bool {
        let Some(lane) = self.lanes.get_mut(&id) else { return false };
        lane.look_at = None;
        let passed = passed.filter(|passed| passed.id > lane.counted.0);
        let counted = lane.count();
        let count: u64 = counted.iter().map(|newest| newest.count).sum();
        if count == 0 {
            return false;
        }
        if let Some(worker) = lane.worker {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            ctx.request(Event::Handled { worker, lane: id, count, lane_over: Over::No });
        }
        for newest in counted.iter().filter(|newest| newest.count > 0) {
            match passed {
                Some(passed) if newest.outcome == ANSWERED => {
                    if let Some((pool, told)) = self.told_by_front(ctx, id, passed) {
                        self.thin.hold(pool, Time(clock::now_ns()), told, newest.count);
                    }
                }
                Some(_) | None => self.record_lane(ctx, id, newest),
            }
        }
        true
    }

    /// A worker's process has ended. Its sender notices by its end of the lane, once ours is
    /// closed too; what it sends from now on was not given, and goes by the daemon.
    pub(super) fn lane_cut(&mut self, worker: WorkerId, process: &Process) {
        let part = part_of(worker, process);
        let Some((_, lane)) = self.lane_of(worker) else { return };
        lane.ended = Some(part);
        lane.shut();
        lane.end = None;
    }

    /// A worker has ended, and will say nothing more: what it has done on its lane is counted, and
    /// what it was in the middle of has failed.
    pub(super) fn lane_lost(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId) {
        let Some((id, _)) = self.lane_of(worker) else { return };
        self.count_lane(ctx, id, None);
        let open = self.lanes.get(&id).and_then(Lane::open);
        if let Some(open) = open {
            self.record_lane(ctx, id, &open);
        }
        self.lanes.remove(&id);
    }

    /// The receipt of what was handled on a lane.
    fn record_lane(&mut self, ctx: &mut Ctx<'_>, id: LaneId, newest: &Newest) {
        let mut marks = Marks::default();
        marks.stamp(Mark::Given, Time(newest.main_ns));
        marks.stamp(Mark::Main, Time(newest.main_ns));
        marks.stamp(Mark::Finished, Time(newest.finished_ns));
        let of = (newest.outcome, newest.main_ns);
        let Some((pool, told)) = self.told_of_lane(ctx, id, of, marks) else { return };
        let now = Time(clock::now_ns());
        if newest.outcome == ANSWERED && !self.mounts.is_empty() {
            self.thin.hold(pool, now, told, newest.count);
        } else {
            self.leave_receipt(ctx, pool, now, told, newest.count);
        }
    }

    /// What a receipt says of a message of a lane that was begun then.
    fn told_of_lane(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: LaneId,
        (outcome, main_ns): (&'static str, u64),
        marks: Marks,
    ) -> Option<(PoolId, Told)> {
        let lane = self.lanes.get(&id)?;
        let (pool, pid, ended) = (lane.pool, lane.pid, lane.ended);
        let face = Arc::clone(&lane.face);
        let worker = lane.worker.and_then(|id| self.worker_part(ctx, id)).or(ended);
        let ago = clock::now_ns().saturating_sub(main_ns);
        let ago = jiff::SignedDuration::from_nanos(i64::try_from(ago).unwrap_or(0));
        let told = Told {
            face,
            call: None,
            pid,
            given: true,
            worker,
            marks,
            at: jiff::Timestamp::now().checked_sub(ago).unwrap_or_default(),
            reason: "lane",
            outcome,
            bytes: 0,
            protocol: None,
            judged: Judged::Not,
            asked_by: None,
            hops: 0,
            trace: None,
        };
        Some((pool, told))
    }
}
