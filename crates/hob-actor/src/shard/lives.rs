//! Beginnings and ends of actors: spawn, stop, failure and restart, and who is told.
//!
//! ```text
//!            Start             panic, supervised           the pause is over
//!   spawned ──────▶ running ──────────────────▶ waiting ───────────────────▶ running
//!                      │ stop, escalation          │ messages are kept
//!                      ▼                           ▼ stop
//!                    ended: continuations dropped, their askers and the watchers told
//! ```

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::api::actor::AnyActor;
use crate::api::error::AskError;
use crate::memory::parcel::{Parcel, Slot};
use crate::memory::when::Place;
use crate::runtime::mailbox::Mailbox;
use crate::shard::records::Ties;
use crate::shard::{Control, Due, End, Make, Shard, Watcher, count, count_many};
use crate::supervision::{Group, Member, Supervision, Verdict};

impl Shard {
    /// An actor of a group, made anew when it fails.
    pub(crate) fn spawn_member(
        &self,
        slot: Slot,
        mut make: Make,
        mailbox: Arc<Mailbox>,
        group: u32,
    ) {
        let state = catch_unwind(AssertUnwindSafe(&mut make));
        let failed = {
            let own = &mut *self.state.borrow_mut();
            own.records.insert_at(slot, mailbox);
            let Some(record) = own.records.get(slot) else { return };
            let ties = Ties { group: Some(group), make: Some(make), ..Ties::default() };
            record.ties = Some(Box::new(ties));
            if let Some(group) = own.groups.get_mut(&group) {
                group.members.push(Member::Actor(slot));
            }
            match state {
                Ok(state) => {
                    record_state(own, slot, state);
                    None
                }
                Err(panic) => Some(panic),
            }
        };
        if let Some(panic) = failed {
            self.panicked(slot.index, panic);
        }
    }

    pub(crate) fn add_group(&self, number: u32, rules: Supervision, within: Option<u32>) {
        let own = &mut *self.state.borrow_mut();
        own.groups.insert(number, Group::new(rules, within));
        if let Some(outer) = within.and_then(|within| own.groups.get_mut(&within)) {
            outer.members.push(Member::Group(number));
        }
    }

    /// A handler panicked: that message is lost and its asker knows. An actor of a group has
    /// failed; any other goes on with the state that it has.
    #[cold]
    pub(super) fn panicked(&self, actor: u32, panic: Box<dyn Any + Send>) {
        count(&self.shared.counts.panics);
        // A payload's own drop may panic too.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
        let group = {
            let own = &mut *self.state.borrow_mut();
            own.records.at(actor).and_then(|(slot, record)| {
                let ties = record.ties.as_ref().filter(|ties| !ties.waiting)?;
                Some((slot, ties.group?))
            })
        };
        if let Some((slot, group)) = group {
            self.failed(group, Member::Actor(slot));
        }
    }

    fn failed(&self, group: u32, member: Member) {
        let (verdict, within) = {
            let own = &mut *self.state.borrow_mut();
            let Some(rules) = own.groups.get_mut(&group) else { return };
            (rules.failed(member, self.now()), rules.within)
        };
        match (verdict, within) {
            (Verdict::Restart { members, at }, _) => {
                members.into_iter().for_each(|member| self.pause(member, at));
            }
            (Verdict::Escalate, Some(outer)) => self.failed(outer, Member::Group(group)),
            (Verdict::Escalate, None) => self.end_group(group),
            (Verdict::Nothing, _) => {}
        }
    }

    /// Takes a member's state away until `at`.
    fn pause(&self, member: Member, at: u64) {
        match member {
            Member::Actor(slot) => self.pause_actor(slot, at),
            Member::Group(group) => {
                let members = {
                    let own = &mut *self.state.borrow_mut();
                    own.groups.get_mut(&group).map(|group| {
                        group.reset();
                        group.members.clone()
                    })
                };
                members.into_iter().flatten().for_each(|member| self.pause(member, at));
            }
        }
    }

    fn pause_actor(&self, slot: Slot, at: u64) {
        let state = {
            let own = &mut *self.state.borrow_mut();
            let Some(record) = own.records.get(slot) else { return };
            let state = record.state.take();
            let Some(ties) = record.ties.as_mut() else { return };
            if std::mem::replace(&mut ties.waiting, true) {
                return;
            }
            own.timers.push(at, Due::Restart(slot));
            own.restarting += 1;
            own.doomed.push((slot, super::state::Doom::Restart));
            state
        };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(state)));
    }

    /// The pause is over.
    pub(super) fn restart(&self, slot: Slot) {
        let make = {
            let own = &mut *self.state.borrow_mut();
            own.restarting = own.restarting.saturating_sub(1);
            let ties = own.records.get(slot).and_then(|record| record.ties.as_mut());
            let Some(ties) = ties.filter(|ties| ties.waiting) else { return };
            ties.waiting = false;
            ties.make.take()
        };
        let Some(mut make) = make else { return };
        count(&self.shared.counts.restarts);
        // What its last life left behind ends before the next one begins.
        self.sweep();
        let state = catch_unwind(AssertUnwindSafe(&mut make));
        let failed = {
            let own = &mut *self.state.borrow_mut();
            if let Some(ties) = own.records.get(slot).and_then(|record| record.ties.as_mut()) {
                ties.make = Some(make);
            }
            match state {
                Ok(state) => {
                    if let Some(record) = own.records.get(slot) {
                        record.state = Some(state);
                    }
                    None
                }
                Err(panic) => Some(panic),
            }
        };
        match failed {
            Some(panic) => self.panicked(slot.index, panic),
            None => {
                self.start(slot);
                self.catch_up(slot);
            }
        }
    }

    pub(super) fn start(&self, slot: Slot) {
        let started = self.with_actor(slot, |actor| actor.started(self, slot));
        if let Err(panic) = started {
            self.panicked(slot.index, panic);
        }
    }

    /// Handles what was kept, before anything that came later.
    fn catch_up(&self, slot: Slot) {
        loop {
            let next = {
                let own = &mut *self.state.borrow_mut();
                let record = own.records.get(slot).filter(|record| record.state.is_some());
                record.and_then(|record| record.ties.as_mut()?.backlog.pop_front())
            };
            let Some(mut parcel) = next else { return };
            self.perform(&mut parcel);
            if parcel.weight() > 0 {
                // The rest of a run, which goes before what came later.
                let own = &mut *self.state.borrow_mut();
                let ties = own.records.get(slot).and_then(|record| record.ties.as_mut());
                if let Some(ties) = ties {
                    ties.backlog.push_front(parcel);
                }
            }
        }
    }

    /// Keeps a message for an actor that waits to be restarted; it stays counted in its mailbox.
    pub(super) fn keep_for_later(&self, mut parcel: Parcel) {
        let own = &mut *self.state.borrow_mut();
        if let Some(record) = own.records.get(parcel.to) {
            record.queued += super::deliver::part(&parcel);
            // It has been counted out of the others' part already.
            parcel.when = parcel.when.uncounted();
            if let Some(ties) = record.ties.as_mut() {
                ties.backlog.push_back(parcel);
            }
        }
    }

    /// Takes a message back that was kept so, for its asker has gone; whether there was one. An
    /// asker of this shard needs no such word: that it has gone is seen when the message's turn
    /// comes.
    pub(super) fn take_back(&self, asker: Slot, place: Place) -> bool {
        let (taken, mailbox, waited) = {
            let own = &mut *self.state.borrow_mut();
            if own.restarting == 0 {
                return false;
            }
            let is_its = |kept: &Parcel| {
                kept.asker == asker && !kept.when.is_tell() && kept.when.place() == place
            };
            let members = own.groups.values().flat_map(|group| &group.members);
            let mut found = None;
            for member in members {
                let Member::Actor(slot) = member else { continue };
                let Some(record) = own.records.get(*slot) else { continue };
                let Some(ties) = record.ties.as_mut().filter(|ties| ties.waiting) else { continue };
                let at = ties.backlog.iter().position(is_its);
                if let Some(taken) = at.and_then(|at| ties.backlog.remove(at)) {
                    record.queued = record.queued.saturating_sub(1);
                    let waited = std::mem::take(&mut record.waited);
                    found = Some((taken, record.mailbox.clone(), waited));
                    break;
                }
            }
            let Some(found) = found else { return false };
            found
        };
        count(&self.shared.counts.cancelled);
        self.made_room(mailbox, false, waited);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(taken)));
        true
    }

    fn end_group(&self, group: u32) {
        let removed = self.state.borrow_mut().groups.remove(&group);
        for member in removed.into_iter().flat_map(|group| group.members) {
            match member {
                Member::Actor(slot) => self.end_actor(slot, End::Failed),
                Member::Group(group) => self.end_group(group),
            }
        }
    }

    /// Ends an actor; what still comes for it is a dead letter.
    pub(super) fn end_actor(&self, slot: Slot, end: End) {
        let (actor, ties, mailbox) = {
            let own = &mut *self.state.borrow_mut();
            let Some(record) = own.records.get(slot) else { return };
            let (ties, mailbox) = (record.ties.take(), record.mailbox.take());
            let actor = own.records.remove(slot);
            own.doomed.push((slot, super::state::Doom::End));
            if let Some(group) = ties.as_ref().and_then(|ties| ties.group)
                && let Some(group) = own.groups.get_mut(&group)
            {
                group.forget(Member::Actor(slot));
            }
            (actor, ties, mailbox)
        };
        let mut left = mailbox.map(|mailbox| mailbox.close()).unwrap_or_default();
        if let Some(mut actor) = actor {
            let ended = catch_unwind(AssertUnwindSafe(move || {
                actor.stopped();
                drop(actor);
            }));
            if let Err(panic) = ended {
                self.caught(&*panic);
            }
        }
        if let Some(ties) = ties {
            left.extend(ties.backlog);
            ties.watchers.into_iter().for_each(|tell| tell(self, end));
        }
        for parcel in left {
            count_many(&self.shared.counts.dead_letters, parcel.weight());
            self.unhandled(parcel, AskError::Stopped);
        }
    }

    /// Tells when an actor has ended; at once, if it has.
    pub(super) fn watch(&self, slot: Slot, tell: Watcher) {
        let mut tell = Some(tell);
        if let Some(record) = self.state.borrow_mut().records.get(slot) {
            record.ties.get_or_insert_default().watchers.extend(tell.take());
        }
        if let Some(tell) = tell {
            tell(self, End::Stopped);
        }
    }

    /// One message of a mailbox that drops its oldest.
    pub(super) fn ticket(&self, slot: Slot) {
        let mailbox = self.mailbox_of(slot);
        let Some((mut parcel, more)) = mailbox.and_then(|mailbox| mailbox.take_oldest()) else {
            return;
        };
        parcel.to = slot;
        self.message(&mut parcel);
        if more {
            let ticket = Shard::control_parcel(slot, Slot::NONE, Control::Ticket);
            self.state.borrow_mut().ring.push_parcel(ticket);
        }
    }
}

fn record_state(own: &mut super::state::State, slot: Slot, state: Box<dyn AnyActor>) {
    if let Some(record) = own.records.get(slot) {
        record.state = Some(state);
    }
    own.ring.push_parcel(Shard::control_parcel(slot, Slot::NONE, Control::Start));
}
