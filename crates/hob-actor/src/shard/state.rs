//! What a shard knows: the ring, the actors' records, the open asks, what is to go elsewhere.
//!
//! Nothing here runs user code; what is to be dropped is handed out.

use std::collections::HashMap;
use std::task::Waker;

use crate::memory::asks::{Asks, By};
use crate::memory::parcel::{Parcel, Ring, Slot};
use crate::memory::tasks::Header;
use crate::memory::when::Place;
use crate::runtime::mailbox::Route;
use crate::shard::records::Records;
use crate::shard::timers::{Schedules, Timers};
use crate::shard::{Control, Due, Shard};
use crate::supervision::Group;

/// The line of the outbox that stands for the edge.
pub(crate) const EDGE_LINE: u32 = 0;

/// What is gathered for another shard until the turn's end.
pub(crate) struct Line {
    pub(crate) place: Place,
    /// None: the edge.
    pub(crate) route: Option<Route>,
    pub(crate) gathered: Vec<Parcel>,
}

/// Why an actor's continuations end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doom {
    /// It has ended: its index is free afterwards.
    End,
    /// It begins anew.
    Restart,
}

/// See the module.
pub(crate) struct State {
    pub(crate) ring: Ring,
    pub(crate) records: Records,
    pub(crate) asks: Asks,
    /// Answers that nobody has polled for yet, by ask slot.
    pub(crate) kept: HashMap<u32, Parcel>,
    /// Wakers of asks that are awaited through something that has its own.
    pub(crate) wakers: HashMap<u32, Waker>,
    /// Tasks whose asker is elsewhere: the way from a cancel to the task.
    pub(crate) foreign: HashMap<(Place, Slot), u32>,
    pub(crate) out: Vec<Line>,
    pub(crate) timers: Timers,
    /// Actors that have ended or failed, whose continuations are still there.
    pub(crate) doomed: Vec<(Slot, Doom)>,
    pub(crate) groups: HashMap<u32, Group>,
    pub(crate) schedules: Schedules,
    /// How many actors wait to be restarted.
    pub(crate) restarting: usize,
}

/// What a cancelled ask leaves behind; dropped when nothing is borrowed.
pub(crate) struct Leftovers {
    pub(crate) to_edge: bool,
    _kept: Option<Parcel>,
    _waker: Option<Waker>,
}

impl State {
    pub(crate) fn new() -> State {
        State {
            ring: Ring::default(),
            records: Records::default(),
            asks: Asks::new(),
            kept: HashMap::new(),
            wakers: HashMap::new(),
            foreign: HashMap::new(),
            out: vec![Line { place: 0, route: None, gathered: Vec::new() }],
            timers: Timers::default(),
            doomed: Vec::new(),
            groups: HashMap::new(),
            schedules: Schedules::default(),
            restarting: 0,
        }
    }

    /// The line for a shard; there are few, and the last ones are used again and again.
    pub(crate) fn line(&mut self, place: Place, route: &Route) -> u32 {
        let known = self.out.iter().position(|line| line.place == place);
        let line = known.unwrap_or_else(|| {
            let route = Some(route.clone());
            self.out.push(Line { place, route, gathered: Vec::new() });
            self.out.len() - 1
        });
        u32::try_from(line).unwrap_or(EDGE_LINE)
    }

    /// An answer that has come before anybody polled for it.
    pub(crate) fn keep(&mut self, slot: Slot, parcel: Parcel) -> Option<Waker> {
        self.asks.keep(slot);
        self.kept.insert(slot.index, parcel);
        self.wakers.remove(&slot.index)
    }

    /// The asker is gone: whoever works on it is told.
    pub(crate) fn cancel(&mut self, slot: Slot, place: Place) -> Option<Leftovers> {
        let closed = self.asks.close(slot)?;
        let kept = if closed.kept { self.kept.remove(&slot.index) } else { None };
        let waker = if closed.foreign { self.wakers.remove(&slot.index) } else { None };
        let mut to_edge = false;
        match closed.by {
            _ if closed.kept => {}
            // Found when its turn comes.
            By::Message => {}
            by @ (By::Task(_) | By::Elsewhere(_)) => to_edge = self.tell_cancelled(by, slot, place),
        }
        Some(Leftovers { to_edge, _kept: kept, _waker: waker })
    }

    /// True: the edge is to be told.
    pub(crate) fn tell_cancelled(&mut self, by: By, slot: Slot, place: Place) -> bool {
        match by {
            By::Message => false,
            By::Elsewhere(EDGE_LINE) => true,
            By::Task(task) => {
                let control = Control::Cancel { place, task: Some(task) };
                self.ring.push_parcel(Shard::control_parcel(Slot::NONE, slot, control));
                false
            }
            By::Elsewhere(line) => {
                let parcel = Shard::cancel_parcel(slot, place);
                self.out[line as usize].gathered.push(parcel);
                false
            }
        }
    }

    /// Whatever is due for nobody any more is swept away now and then.
    pub(crate) fn sweep_timers(&mut self) {
        let live = self.asks.timed_now() + self.schedules.len() + self.restarting;
        let (asks, schedules) = (&self.asks, &self.schedules);
        self.timers.sweep(live, |due| match due {
            Due::Ask(slot) => asks.is_timed(slot),
            Due::Scheduled(slot) => schedules.is_live(slot),
            Due::Restart(_) => true,
        });
    }

    /// A continuation was parked.
    #[inline]
    pub(crate) fn parked(&mut self, task: u32, header: Header, place: Place) {
        if let Some((_, record)) = self.records.at(header.actor) {
            record.parked += 1;
        }
        let when = header.when();
        if when.place() == place {
            self.asks.answered_by(header.asker, By::Task(task));
        } else if !when.is_tell() {
            self.foreign.insert((when.place(), header.asker), task);
        }
    }

    /// It has ended.
    #[inline]
    pub(crate) fn unparked(&mut self, header: Header, place: Place) {
        if let Some((_, record)) = self.records.at(header.actor) {
            record.parked = record.parked.saturating_sub(1);
        }
        let when = header.when();
        if when.place() != place && !when.is_tell() {
            self.foreign.remove(&(when.place(), header.asker));
        }
    }
}
