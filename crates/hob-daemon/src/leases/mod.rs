//! Leases: a worker that is lent to one sender, and how many messages went from one to the other on
//! the lane between them.
//!
//! The daemon does not see them. A worker reports (`handled`) now and then, and counts in a tally
//! that the daemon can read at any time, also when the worker has ended in the middle of a
//! message. The tally is what is believed; a report says when to look, and a look soon after the
//! last report finds what came after it. `docs/why/lanes.md` goes through the ways to end.
//!
//! ```text
//!  want ── lend ──▶ lent ── handled(over) ──────────▶ counted, gone
//!                    └── cut (its process has ended)
//!                          └── lost (its last word was read) ──▶ counted, gone
//! ```

mod lane;

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::ids::{LaneId, Time, WorkerId};
use hob_core::requests::{Event, Over};
use hob_os::{clock, tally, uds};
use hob_wire::frame::Kind;
use hob_wire::message::{Handled, Lend, Lent, Passed};
use rustix::fd::AsFd;

use crate::channel;
use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::jobs::job::part_of;
use crate::jobs::receipts::{ANSWERED, EVERY_US};
use crate::tables::Tables;
use crate::tables::senders::Senders;
use crate::workers::processes::Process;

use lane::{Lane, Newest};

/// The lanes that are wanted or lent.
#[derive(Debug)]
pub(crate) struct Leases {
    lanes: HashMap<LaneId, Lane>,
    next: u64,
}

impl Leases {
    pub(crate) fn new() -> Leases {
        Leases { lanes: HashMap::new(), next: 1 }
    }

    /// When a lane is looked at next.
    pub(crate) fn next_look(&self) -> Option<Time> {
        self.lanes.values().filter_map(|lane| lane.look_at).min()
    }

    /// Whether a lane is about to end: what was on it is not all counted yet.
    pub(crate) fn is_counting(&self) -> bool {
        self.lanes.values().any(|lane| lane.left || lane.ended.is_some())
    }

    fn lane_of(&mut self, worker: WorkerId) -> Option<(LaneId, &mut Lane)> {
        let mut lanes = self.lanes.iter_mut();
        lanes.find(|(_, lane)| lane.worker == Some(worker)).map(|(id, lane)| (*id, lane))
    }

    /// A sender wants a lane to a program's worker.
    pub(crate) fn want(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        id: SenderId,
        number: u64,
        program: &[u8],
    ) {
        let Ok(from) = tables.senders.from(id) else { return };
        let (lane, pid) = (LaneId(self.next), tables.senders.pid(id));
        self.next += 1;
        let catalog = &mut tables.catalog;
        // Whatever is wrong with the program is told to its first message.
        let routed = catalog.route(ctx, &from, program).ok();
        // What passes the daemon by has no receipt of its own, and so no place in a trace.
        let is_traced = !catalog.is_site() && from.parent.is_some();
        let routed = routed.filter(|_| !is_traced);
        let lendable = routed.filter(|(pool, route)| catalog.is_watched(*pool, *route));
        let lendable = lendable.and_then(|(pool, _)| Some((pool, catalog.performer(pool)?)));
        let Some((pool, performer)) = lendable else {
            return refuse(&mut tables.senders, id, number);
        };
        self.lanes.insert(lane, Lane::wanted(id, number, pid, pool, performer));
        ctx.request(Event::WantLane { lane, pool });
    }

    /// A lane does not come about.
    pub(crate) fn refuse(&mut self, senders: &mut Senders, id: LaneId) {
        if let Some(lane) = self.lanes.remove(&id) {
            refuse(senders, lane.sender, lane.request);
        }
    }

    /// Connects a lane's sender and its worker.
    pub(crate) fn lend(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        id: LaneId,
        worker: WorkerId,
        uses: u32,
    ) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        lane.worker = Some(worker);
        let (sender, request, pool) = (lane.sender, lane.request, lane.pool);
        let ends = uds::pair().map(|(ours, theirs)| (ours, Arc::new(theirs)));
        let (Ok((ours, theirs)), Ok(tally)) = (ends, tally::new()) else {
            return self.unlend(ctx, tables, id, worker);
        };
        let Some(doorbell) = tables.catalog.doorbell(pool, Arc::downgrade(&theirs)) else {
            return self.unlend(ctx, tables, id, worker);
        };
        // Both ends wait in their reads: they have nothing else to do.
        let waits = [&ours, &*theirs].map(|end| rustix::io::ioctl_fionbio(end, false));
        let lend = Lend { lane: id.0, uses };
        let bytes = channel::encode(Kind::Lend, 3, |out| lend.encode(out));
        let sent = waits.iter().all(Result::is_ok)
            && bytes.is_some_and(|bytes| {
                let with = [theirs.as_fd(), doorbell.as_fd(), tally.as_fd()];
                ctx.processes.tell(worker, bytes, &with)
            });
        let lent = Lent { id: request, lane: id.0 };
        let bytes = channel::encode(Kind::Lent, 1, |out| lent.encode(out));
        let known = tables.senders.get(sender);
        let told =
            sent && known.is_some_and(|sender| sender.outlet.send_with(bytes, &[ours.as_fd()]));
        if let Some(lane) = self.lanes.get_mut(&id) {
            (lane.end, lane.tally) = (Some(theirs), Some(tally));
        }
        if !sent {
            self.unlend(ctx, tables, id, worker);
        } else if !told {
            self.leave(ctx, id);
        }
    }

    /// A lane that did not come about: its worker is of no use to anybody.
    fn unlend(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables, id: LaneId, worker: WorkerId) {
        self.refuse(&mut tables.senders, id);
        ctx.request(Event::Unreached { worker, unread: None });
    }

    pub(crate) fn recall(&mut self, worker: WorkerId) {
        if let Some((_, lane)) = self.lane_of(worker) {
            lane.shut();
        }
    }

    /// A sender leaves one of its lanes.
    pub(crate) fn left(&mut self, ctx: &mut Ctx<'_>, sender: SenderId, lane: LaneId) {
        if self.lanes.get(&lane).is_some_and(|known| known.sender == sender) {
            self.leave(ctx, lane);
        }
    }

    /// A sender has left all its lanes.
    pub(crate) fn sender_gone(&mut self, ctx: &mut Ctx<'_>, sender: SenderId) {
        let lanes = self.lanes.iter().filter(|(_, lane)| lane.sender == sender);
        let lanes: Vec<LaneId> = lanes.map(|(lane, _)| *lane).collect();
        lanes.into_iter().for_each(|lane| self.leave(ctx, lane));
    }

    fn leave(&mut self, ctx: &mut Ctx<'_>, lane: LaneId) {
        if let Some(known) = self.lanes.get_mut(&lane) {
            known.left = true;
        }
        ctx.request(Event::LaneLeft { lane });
    }

    /// A worker says what it has handled on its lane.
    pub(crate) fn handled(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        worker: WorkerId,
        handled: &Handled,
    ) {
        let id = LaneId(handled.lane);
        let lane = self.lanes.get_mut(&id).filter(|lane| lane.worker == Some(worker));
        let Some(lane) = lane else { return };
        lane.reported.ended += u64::from(handled.count);
        lane.reported.raised += u64::from(handled.raised);
        self.count_lane(ctx, tables, id, None);
        if !handled.over {
            return self.look_again(id);
        }
        let Some(lane) = self.lanes.remove(&id) else { return };
        if let Some(newest) = lane.cut_off() {
            ctx.request(Event::Handled { worker, lane: id, count: 1, lane_over: Over::No });
            record(ctx, tables, &lane, &newest);
        }
        ctx.request(Event::Handled { worker, lane: id, count: 0, lane_over: Over::Yes });
    }

    /// Counts what came after workers' last reports. One that rests reports nothing: it waits for
    /// its sender.
    pub(crate) fn tick(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables, now: Time) {
        let due = self.lanes.iter().filter(|(_, lane)| lane.look_at.is_some_and(|at| at <= now));
        let due: Vec<LaneId> = due.map(|(id, _)| *id).collect();
        for id in due {
            if self.count_lane(ctx, tables, id, None) {
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
    pub(crate) fn count(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables) {
        let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
        for lane in lanes {
            self.count_lane(ctx, tables, lane, None);
        }
    }

    /// A front is done with a request of a lane, whose worker had come to its end.
    pub(crate) fn passed(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        sender: SenderId,
        passed: &Passed<'_>,
    ) {
        let id = LaneId(passed.lane);
        let lane = self.lanes.get(&id).filter(|lane| lane.sender == sender);
        let Some(before) = lane.map(|lane| lane.counted.ended) else { return };
        self.count_lane(ctx, tables, id, Some(passed));
        self.look_again(id);
        if passed.id > before {
            return;
        }
        // It has been counted, and its receipt may have been left.
        let Some(lane) = self.lanes.get(&id) else { return };
        let is_slow = Time(passed.passed_ns).us_since(Time(passed.ended_ns)) >= EVERY_US;
        tables.receipts.amend(ctx.recorder, lane.told_by_front(ctx, passed), is_slow);
    }

    /// Counts what has ended on a lane since it was counted last; whether there was anything. Of
    /// one of these a front may have told.
    fn count_lane(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        id: LaneId,
        passed: Option<&Passed<'_>>,
    ) -> bool {
        let Some(lane) = self.lanes.get_mut(&id) else { return false };
        lane.look_at = None;
        let passed = passed.filter(|passed| passed.id > lane.counted.ended);
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
                    tables.receipts.hold(lane.told_by_front(ctx, passed), newest.count);
                }
                Some(_) | None => record(ctx, tables, lane, newest),
            }
        }
        true
    }

    /// A worker's process has ended. Its sender notices by its end of the lane, once ours is
    /// closed too; what it sends from now on was not given, and goes by the daemon.
    pub(crate) fn cut(&mut self, worker: WorkerId, process: &Process) {
        let part = part_of(worker, process);
        let Some((_, lane)) = self.lane_of(worker) else { return };
        lane.ended = Some(part);
        lane.shut();
        lane.end = None;
    }

    /// A worker has ended, and will say nothing more: what it has done on its lane is counted, and
    /// what it was in the middle of has failed.
    pub(crate) fn lost(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables, worker: WorkerId) {
        let Some((id, _)) = self.lane_of(worker) else { return };
        self.count_lane(ctx, tables, id, None);
        let Some(lane) = self.lanes.remove(&id) else { return };
        if let Some(open) = lane.open() {
            record(ctx, tables, &lane, &open);
        }
    }
}

/// A sender is lent no lane.
fn refuse(senders: &mut Senders, sender: SenderId, number: u64) {
    let lent = Lent { id: number, lane: 0 };
    senders.say(sender, Kind::Lent, |out| lent.encode(out));
}

/// Leaves the receipt of what was handled on a lane.
fn record(ctx: &Ctx<'_>, tables: &mut Tables, lane: &Lane, newest: &Newest) {
    let job = lane.job(ctx, newest);
    if newest.outcome == ANSWERED && tables.catalog.is_site() {
        tables.receipts.hold(job, newest.count);
    } else {
        tables.receipts.leave(ctx.recorder, job, newest.count);
    }
}
