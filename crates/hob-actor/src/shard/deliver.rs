//! A shard's turns: each parcel to its actor, ask or task, and what follows from it.

use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use crate::api::actor::{AnyActor, Message};
use crate::api::error::{AskError, NotSent};
use crate::link::Names;
use crate::link::run::{self, Run};
use crate::memory::asks::{By, Meets};
use crate::memory::parcel::{Kind, Label, Parcel, Slot, Typed};
use crate::memory::when::{Millis, NEVER, NOBODY, OUTSIDE, Place, When};
use crate::remote::Edge;
use crate::runtime::mailbox::{Mailbox, Route};
use crate::runtime::places;
use crate::shard::state::{Doom, EDGE_LINE};
use crate::shard::{Again, Control, Due, End, Shard, count, count_many};

/// What a message meets.
enum Met {
    Actor(Box<dyn AnyActor>),
    Far(crate::remote::Far),
    /// The actor has ended.
    Nobody,
    /// Its asker no longer waits.
    Unwanted,
    /// Its asker's deadline is over.
    Late,
    /// The actor is about to be restarted.
    Waiting,
}

/// For how many messages a parcel's next part counts.
#[inline]
pub(super) fn part(parcel: &Parcel) -> u32 {
    if parcel.kind() == Kind::Messages { parcel.weight().min(run::AT_ONCE) } else { 1 }
}

#[cold]
fn not_delivered<M: Message>(
    why: NotSent,
    what: &'static Typed<M>,
    Label { to, asker, when }: Label,
    message: M,
) -> Box<(NotSent, Parcel)> {
    Box::new((why, Parcel::new(what, to, asker, when, message)))
}

impl Shard {
    /// Handles up to `budget` parcels, and what is due by `now`; None: it is looked up if something
    /// depends on it.
    pub(crate) fn turn(&self, now: Option<Millis>, budget: usize) {
        self.now.set(now);
        if self.next_due().is_some() {
            self.fire(self.now());
        }
        {
            let batch = &mut *self.batch.borrow_mut();
            let mut handled = 0;
            while handled < budget {
                let next = batch.next(|empty| self.state.borrow_mut().ring.swap(empty));
                let Some(parcel) = next else { break };
                if parcel.kind() == Kind::Messages {
                    handled += self.messages(parcel);
                    if parcel.weight() > 0 {
                        batch.again();
                    }
                } else {
                    self.perform(parcel);
                    handled += 1;
                }
            }
        }
        if !self.state.borrow().doomed.is_empty() {
            self.sweep();
        }
        let mut edge = self.edge.borrow_mut();
        if let Some(edge) = edge.as_mut() {
            self.hand_over_told(&mut **edge);
            edge.turn(self);
        }
    }

    #[inline]
    pub(super) fn perform(&self, parcel: &mut Parcel) {
        // One comparison that is mostly right is faster than a table of jumps.
        let kind = parcel.kind();
        if kind == Kind::Message {
            self.message(parcel);
        } else if kind == Kind::Answer {
            self.settle(parcel);
        } else {
            self.perform_rare(parcel);
        }
    }

    #[cold]
    fn perform_rare(&self, parcel: &mut Parcel) {
        match parcel.kind() {
            Kind::Messages => {
                self.messages(parcel);
            }
            Kind::Failure => self.settle(parcel),
            Kind::Control => self.control(parcel.take_whole()),
            Kind::Message | Kind::Answer | Kind::Taken => {}
        }
    }

    /// The actor that is to have a message, counted out of its mailbox, if nothing is to be seen to
    /// besides: it is here and at home, nobody waits for its mailbox, the asker still waits. None:
    /// nothing has changed, and [`Shard::meet`] looks at all of it.
    #[inline]
    fn meet_at_home(&self, parcel: &Parcel) -> Option<Box<dyn AnyActor>> {
        let state = &mut *self.state.borrow_mut();
        let when = parcel.when;
        if when != When::TELL {
            let wanted = when.place() != self.place || state.asks.is_open(parcel.asker);
            if when.is_counted_outside() || !wanted || self.is_late(when) {
                return None;
            }
        }
        let record = state.records.get(parcel.to)?;
        if record.waited {
            return None;
        }
        let actor = record.state.take()?;
        record.queued = record.queued.saturating_sub(1);
        Some(actor)
    }

    /// Who is to have a message: counted out of its mailbox.
    fn meet(&self, parcel: &Parcel) -> Met {
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        let Some(record) = state.records.get(parcel.to) else { return Met::Nobody };
        record.queued = record.queued.saturating_sub(part(parcel));
        if parcel.when.is_counted_outside() || record.waited {
            let waited = std::mem::take(&mut record.waited);
            let mailbox = record.mailbox.clone();
            // A waker is somebody else's code: nothing is borrowed while it runs.
            drop(guard);
            self.made_room(mailbox, parcel.when.is_counted_outside(), waited);
            return self.meet_counted(parcel);
        }
        self.met(state, parcel)
    }

    pub(super) fn made_room(&self, mailbox: Option<Arc<Mailbox>>, counted: bool, waited: bool) {
        let Some(mailbox) = mailbox else { return };
        if counted {
            mailbox.release();
        } else if waited {
            mailbox.wake_waiting();
        }
    }

    fn meet_counted(&self, parcel: &Parcel) -> Met {
        let mut guard = self.state.borrow_mut();
        self.met(&mut guard, parcel)
    }

    fn met(&self, state: &mut super::state::State, parcel: &Parcel) -> Met {
        let Some(record) = state.records.get(parcel.to) else { return Met::Nobody };
        if !parcel.when.is_tell() {
            if parcel.when.place() == self.place && !state.asks.is_open(parcel.asker) {
                return Met::Unwanted;
            }
            if self.is_late(parcel.when) {
                return Met::Late;
            }
        }
        match (record.state.take(), record.far.as_deref().copied()) {
            (Some(actor), _) => Met::Actor(actor),
            (None, Some(far)) => Met::Far(far),
            (None, None) if record.ties.as_ref().is_some_and(|ties| ties.waiting) => Met::Waiting,
            (None, None) => Met::Nobody,
        }
    }

    #[inline]
    pub(super) fn message(&self, parcel: &mut Parcel) {
        match self.meet_at_home(parcel) {
            Some(actor) => self.run(actor, parcel),
            None => self.message_otherwise(parcel),
        }
    }

    #[cold]
    fn message_otherwise(&self, parcel: &mut Parcel) {
        match self.meet(parcel) {
            Met::Actor(actor) => self.run(actor, parcel),
            Met::Far(far) => self.send_far(far, parcel),
            Met::Nobody => {
                count(&self.shared.counts.dead_letters);
                self.unhandled(parcel.take_whole(), AskError::Stopped);
            }
            Met::Unwanted => {
                count(&self.shared.counts.cancelled);
                self.unhandled(parcel.take_whole(), AskError::Stopped);
            }
            Met::Waiting => self.keep_for_later(parcel.take_whole()),
            Met::Late => self.unhandled(parcel.take_whole(), AskError::Expired),
        }
    }

    /// Some of a run of tells. Returns how many of its shard's turn that was.
    pub(super) fn messages(&self, parcel: &mut Parcel) -> usize {
        let mut handled = 0;
        while handled < run::AT_ONCE && parcel.weight() > 0 {
            let (before, counted_out) = (parcel.weight(), part(parcel));
            let to = parcel.to;
            match self.meet(parcel) {
                Met::Actor(actor) => {
                    self.run(actor, parcel);
                    let done = before - parcel.weight();
                    handled += done;
                    if let Some(record) = self.state.borrow_mut().records.get(to) {
                        record.queued += counted_out.saturating_sub(done);
                    }
                    if done == 0 {
                        // Of another type than it says; never seen again.
                        drop(parcel.take_whole());
                    }
                }
                Met::Waiting if handled > 0 => {
                    // It has failed at one of them: the rest keeps its place.
                    if let Some(record) = self.state.borrow_mut().records.get(to) {
                        record.queued += counted_out;
                    }
                    break;
                }
                Met::Waiting => self.keep_for_later(parcel.take_whole()),
                Met::Nobody | Met::Far(_) | Met::Unwanted | Met::Late => {
                    count_many(&self.shared.counts.dead_letters, before);
                    drop(parcel.take_whole());
                }
            }
        }
        (handled as usize).max(1)
    }

    #[expect(clippy::inline_always, reason = "a call is a tenth of a hop")]
    #[inline(always)]
    fn run(&self, mut actor: Box<dyn AnyActor>, parcel: &mut Parcel) {
        let to = parcel.to;
        let run = parcel.run();
        let state = &mut *actor;
        let ran = catch_unwind(AssertUnwindSafe(|| run(state, parcel, self)));
        self.put_back(to, actor);
        match ran {
            Ok(task) => {
                self.came_back();
                if let Some(task) = task {
                    self.proceed(task);
                }
            }
            Err(panic) => {
                self.caught(&*panic);
                self.panicked(to.index, panic);
            }
        }
    }

    #[expect(clippy::inline_always, reason = "a call is a tenth of a hop")]
    #[inline(always)]
    pub(super) fn put_back(&self, slot: Slot, actor: Box<dyn AnyActor>) {
        let mut actor = Some(actor);
        if let Some(record) = self.state.borrow_mut().records.get(slot) {
            record.state = actor.take();
        }
        drop(actor);
    }

    /// Tells the asker of a message that nobody handles.
    pub(super) fn unhandled(&self, parcel: Parcel, why: AskError) {
        self.fail(parcel.asker, parcel.when, why);
    }

    fn send_far(&self, far: crate::remote::Far, parcel: &mut Parcel) {
        let sent = match self.edge.borrow_mut().as_mut() {
            Some(edge) => self.hand_over(&mut **edge, far, parcel),
            None => Err(NotSent::Stopped),
        };
        let Err(why) = sent else { return };
        // Its sender has gone on: it is counted, and an asker is told.
        if let Some(mailbox) = self.mailbox_of(parcel.to) {
            mailbox.note(why);
        }
        self.unhandled(parcel.take_whole(), why.into());
    }

    /// Gives a message to the edge.
    #[inline]
    pub(super) fn hand_over(
        &self,
        edge: &mut dyn Edge,
        far: crate::remote::Far,
        parcel: &mut Parcel,
    ) -> Result<(), NotSent> {
        if !parcel.when.is_tell() && parcel.when.place() == self.place {
            let edge = By::Elsewhere(EDGE_LINE);
            self.state.borrow_mut().asks.answered_by(parcel.asker, edge);
        }
        self.hand_over_told(edge);
        edge.send(far, parcel, self)
    }

    /// An answer, or a failure, to the ask that it names. It is taken where it lies: a copy of
    /// what was just written has to wait for it.
    #[inline]
    fn settle(&self, parcel: &mut Parcel) {
        let (place, slot) = (parcel.when.place(), parcel.to);
        if place == self.place || place == NOBODY {
            let met = self.state.borrow_mut().asks.meets(slot);
            if let Meets::Task(task) = met {
                self.arrived.during(parcel, || self.proceed(task));
            }
        }
        if parcel.kind() != Kind::Taken {
            self.settle_otherwise(parcel.take_whole());
        }
    }

    /// One for a peer, or that nobody has taken: it may be looked for later.
    #[cold]
    fn settle_otherwise(&self, mut parcel: Parcel) {
        let (place, slot) = (parcel.when.place(), parcel.to);
        if place != self.place && place != NOBODY {
            if let Some(edge) = self.edge.borrow_mut().as_mut() {
                edge.answer(&mut parcel, self);
            }
            return;
        }
        let waker = {
            let state = &mut *self.state.borrow_mut();
            match state.asks.meets(slot) {
                Meets::Nobody => None,
                Meets::Task(_) | Meets::Later | Meets::Waker => {
                    let parcel = parcel.take_whole();
                    state.keep(slot, parcel)
                }
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn control(&self, parcel: Parcel) {
        let (to, asker) = (parcel.to, parcel.asker);
        let Ok(control) = parcel.open::<Control>() else { return };
        match control {
            Control::Cancel { place, task } => self.cancelled(asker, place, task),
            Control::Wake(task) => self.proceed_if_alive(task),
            Control::Job(job) => {
                // A job is ours, but what it constructs is a user's.
                let _ = catch_unwind(AssertUnwindSafe(|| job(self)));
            }
            Control::Start => self.start(to),
            Control::Stop => self.end_actor(to, End::Stopped),
            Control::Watch(tell) => self.watch(to, tell),
            Control::Ticket => self.ticket(to),
            Control::End => self.ended.set(true),
        }
    }

    fn proceed_if_alive(&self, task: u32) {
        if self.tasks.borrow().header(task).is_some() {
            self.proceed(task);
        }
    }

    pub(super) fn with_actor(
        &self,
        slot: Slot,
        run: impl FnOnce(&mut dyn AnyActor),
    ) -> Result<(), Box<dyn Any + Send>> {
        let actor = self.state.borrow_mut().records.get(slot).and_then(|at| at.state.take());
        let Some(mut actor) = actor else { return Ok(()) };
        let ran = catch_unwind(AssertUnwindSafe(|| run(&mut *actor)));
        self.put_back(slot, actor);
        ran
    }

    /// Drops what is there of the message of an asker who has gone: the task that works for it, or
    /// the message itself, where it waits for its actor's restart.
    pub(crate) fn cancelled(&self, asker: Slot, place: Place, task: Option<u32>) {
        let known = task.or_else(|| self.state.borrow().foreign.get(&(place, asker)).copied());
        let Some(task) = known else {
            if !self.take_back(asker, place) {
                // It may have gone on to a peer.
                self.cancel_far(asker, place);
            }
            return;
        };
        let header = self.tasks.borrow().header(task);
        let same = |header: crate::memory::tasks::Header| {
            header.asker == asker && header.when().place() == place
        };
        if header.is_some_and(same) {
            count(&self.shared.counts.cancelled);
            self.discard(task);
        }
    }

    /// Takes back what was asked of a peer. While the links are at it themselves (what they bring
    /// may end a continuation, and with it its asks), it is the next turn's.
    pub(super) fn cancel_far(&self, asker: Slot, place: Place) {
        match self.edge.try_borrow_mut() {
            Ok(mut edge) => {
                if let Some(edge) = edge.as_mut() {
                    edge.cancel(asker, place, self);
                }
            }
            Err(_) => self.cancel_later(asker, place),
        }
    }

    /// Cancels behind all that is in the ring: what it is about may be there.
    pub(crate) fn cancel_later(&self, asker: Slot, place: Place) {
        self.state.borrow_mut().ring.push_parcel(Shard::cancel_parcel(asker, place));
    }

    /// Drops the continuations of actors that have ended, all in one pass.
    #[cold]
    pub(super) fn sweep(&self) {
        let doomed = std::mem::take(&mut self.state.borrow_mut().doomed);
        let some = {
            let own = &mut *self.state.borrow_mut();
            let parked = |at: u32, own: &mut super::state::State| {
                own.records.at(at).is_some_and(|(_, record)| record.parked > 0)
            };
            doomed.iter().any(|(slot, _)| parked(slot.index, own))
        };
        if some {
            let set: HashSet<u32> = doomed.iter().map(|(slot, _)| slot.index).collect();
            let tasks = self.tasks.borrow().of(|actor| set.contains(&actor));
            for task in tasks {
                if let Some(header) = self.discard(task) {
                    self.fail(header.asker, header.when(), AskError::Stopped);
                }
            }
        }
        let own = &mut *self.state.borrow_mut();
        for (slot, doom) in doomed {
            match doom {
                Doom::End => own.records.reuse(slot.index),
                Doom::Restart => {}
            }
        }
    }

    // --- time

    #[inline(never)]
    fn fire(&self, now: Millis) {
        loop {
            let due = self.state.borrow_mut().timers.pop(now);
            match due {
                None => return,
                Some(Due::Ask(slot)) => self.expire(slot),
                Some(Due::Scheduled(slot)) => self.tell_scheduled(slot, now),
                Some(Due::Restart(slot)) => self.restart(slot),
            }
        }
    }

    fn tell_scheduled(&self, slot: Slot, now: Millis) {
        let taken = self.state.borrow_mut().schedules.take(slot);
        let Some((mut tell, every)) = taken else { return };
        // What makes the message is a user's; one that panics is not asked again.
        let again = catch_unwind(AssertUnwindSafe(|| tell(self))).unwrap_or(Again::No);
        let own = &mut *self.state.borrow_mut();
        let left = match (again, every) {
            (Again::Yes, Some(every)) => {
                own.timers.push(now.saturating_add(every), Due::Scheduled(slot));
                own.schedules.put_back(slot, tell)
            }
            (Again::Yes | Again::No, _) => {
                own.schedules.remove(slot);
                Some(tell)
            }
        };
        let _ = own;
        drop(left);
    }

    fn expire(&self, slot: Slot) {
        let to_edge = {
            let state = &mut *self.state.borrow_mut();
            if !state.asks.is_timed(slot) {
                return;
            }
            let failure = Shard::failure_parcel(slot, When::TELL, AskError::Expired);
            state.ring.push_parcel(failure);
            let by = state.asks.by(slot);
            by.is_some_and(|by| state.tell_cancelled(by, slot, self.place))
        };
        if to_edge && let Some(edge) = self.edge.borrow_mut().as_mut() {
            edge.cancel(slot, self.place, self);
        }
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.state.borrow().timers.next().filter(|&at| at < NEVER)
    }

    /// How many asks are open, and how many continuations are parked.
    #[cfg(test)]
    pub(crate) fn open_now(&self) -> (u32, usize) {
        (self.state.borrow().asks.open_now(), self.tasks.borrow().parked())
    }

    /// Nothing waits in the ring.
    pub(crate) fn is_idle(&self) -> bool {
        self.batch.borrow().is_empty()
            && self.state.borrow().ring.is_empty()
            && !self.has_unwound.get()
    }

    // --- from and to others

    /// What came from another thread or shard.
    pub(crate) fn accept(&self, parcel: Parcel) {
        let mut state = self.state.borrow_mut();
        if parcel.kind() == Kind::Message
            && let Some(record) = state.records.get(parcel.to)
        {
            record.queued += 1;
        }
        state.ring.push_parcel(parcel);
    }

    /// A message from a peer into the mailbox of an actor here, written where it is going to lie.
    /// What comes back does so in a box, so that the way there is not that of a whole parcel.
    #[inline]
    pub(crate) fn deliver_message<M: Message>(
        &self,
        what: &'static Typed<M>,
        label: Label,
        message: M,
    ) -> Result<(), Box<(NotSent, Parcel)>> {
        let mut state = self.state.borrow_mut();
        match state.records.admit(label.to) {
            Ok(()) => {
                state.ring.push(what, label, message);
                Ok(())
            }
            Err(why) => Err(not_delivered(why, what, label, message)),
        }
    }

    /// One that had to wait, into the same.
    #[expect(clippy::result_large_err, reason = "the parcel comes back whole")]
    pub(crate) fn deliver(&self, parcel: Parcel) -> Result<(), (crate::NotSent, Parcel)> {
        let mut state = self.state.borrow_mut();
        match state.records.admit(parcel.to) {
            Ok(()) => {
                state.ring.push_parcel(parcel);
                Ok(())
            }
            Err(why) => Err((why, parcel)),
        }
    }

    /// Several tells from a peer, as a parcel that `pack` makes of them: as many as may wait. The
    /// rest comes back.
    pub(crate) fn deliver_run(
        &self,
        to: Slot,
        run: Run,
        pack: fn(Run, Slot) -> Parcel,
    ) -> Result<(), (NotSent, Run)> {
        let mut state = self.state.borrow_mut();
        match state.records.admit_some(to, run.left()) {
            Ok(all) if all == run.left() => {
                state.ring.push_parcel(pack(run, to));
                Ok(())
            }
            Ok(some) => {
                state.ring.push_parcel(pack(run.split(some), to));
                Err((NotSent::Full, run))
            }
            Err(why) => Err((why, run)),
        }
    }

    /// Brings an answer to another place.
    pub(super) fn route(&self, place: Place, parcel: Parcel) {
        if place == OUTSIDE {
            return crate::runtime::outside::settle(parcel);
        }
        let mut state = self.state.borrow_mut();
        let known = state.out.iter().position(|line| line.place == place);
        if let Some(line) = known {
            return state.out[line].gathered.push(parcel);
        }
        let Some(inbox) = places::inbox(place) else { return drop(state) };
        if std::sync::Arc::ptr_eq(&inbox, &self.shared.inbox) {
            // The place of this shard's own edge.
            state.ring.push_parcel(parcel);
        } else {
            let line = state.line(place, &Route::Inbox(inbox));
            state.out[line as usize].gathered.push(parcel);
        }
    }

    /// Hands over what was gathered for other shards. What a shard that has ended cannot take is
    /// told to its askers.
    #[inline]
    pub(crate) fn flush(&self) {
        // What was dropped where no handler ran.
        self.came_back();
        let lines = self.state.borrow().out.len();
        // The first is the edge's.
        if lines > 1 {
            self.flush_lines(lines);
        }
    }

    #[inline(never)]
    fn flush_lines(&self, lines: usize) {
        for line in 1..lines {
            let (route, mut gathered) = {
                let line = &mut self.state.borrow_mut().out[line];
                if line.gathered.is_empty() {
                    continue;
                }
                (line.route.clone(), std::mem::take(&mut line.gathered))
            };
            match route {
                Some(Route::Inbox(inbox)) => drop(inbox.put_all(&mut gathered)),
                Some(Route::Pool(pool)) => {
                    let mut left = Vec::new();
                    for parcel in gathered.drain(..) {
                        match parcel.kind() {
                            Kind::Message | Kind::Messages => left.extend(pool.put(parcel).err()),
                            Kind::Control | Kind::Answer | Kind::Failure | Kind::Taken => {
                                pool.control_or_cancel(parcel);
                            }
                        }
                    }
                    gathered.append(&mut left);
                }
                None => {}
            }
            // What is left was for a place that has ended.
            for parcel in gathered.drain(..).filter(|parcel| parcel.kind() == Kind::Message) {
                count(&self.shared.counts.dead_letters);
                self.unhandled(parcel, AskError::Stopped);
            }
            let line = &mut self.state.borrow_mut().out[line];
            if line.gathered.is_empty() {
                line.gathered = gathered;
            }
        }
    }

    // --- the edge

    /// Gives this shard its links, and them a place of their own: answers to it come to the edge.
    pub(crate) fn attach(&self, edge: Box<dyn Edge>, names: Rc<Names>) -> Option<Place> {
        let place = places::register(&self.shared.inbox)?;
        self.edge_place.set(place);
        *self.edge.borrow_mut() = Some(edge);
        *self.names.borrow_mut() = Some(names);
        Some(place)
    }

    /// What the edge's messages need to be decoded.
    pub(crate) fn names(&self) -> Option<Rc<Names>> {
        self.names.borrow().clone()
    }

    /// An address for an actor in a peer.
    pub(crate) fn adopt<A>(
        &self,
        far: crate::remote::Far,
        mail: crate::runtime::mail::Mail,
    ) -> crate::Address<A> {
        let mailbox = self.shared.mailbox(mail);
        let state = &mut *self.state.borrow_mut();
        let slot = state.records.insert(&self.shared.next_record, std::sync::Arc::clone(&mailbox));
        if let Some(record) = state.records.get(slot) {
            record.far = Some(Box::new(far));
            // Nothing is to wait here: a send looks further.
            record.bound = 0;
        }
        crate::Address { place: self.place, slot, mailbox, actor: std::marker::PhantomData }
    }

    /// Its bell has rung.
    pub(crate) fn heard(&self) {
        self.shared.inbox.bell().heard();
    }

    /// What the shard waits for besides its bell.
    pub(crate) fn sleep(&self, at_most: Option<std::time::Duration>) {
        let bell = self.shared.inbox.bell();
        match self.edge.borrow_mut().as_mut() {
            Some(edge) => edge.sleep(bell, at_most),
            None => bell.sleep(at_most),
        }
    }

    /// It has slept: what its links have brought is delivered.
    pub(crate) fn woken(&self) {
        self.now.set(None);
        if let Some(edge) = self.edge.borrow_mut().as_mut() {
            edge.woken(self);
        }
    }

    /// Ends everything: all that waits is told that it will not be answered.
    pub(crate) fn close(&self) {
        let slots = self.state.borrow().records.slots();
        for slot in slots {
            self.end_actor(slot, End::Stopped);
        }
        self.sweep();
        for parcel in self.shared.inbox.close() {
            self.accept(parcel);
        }
        // Handlers are gone: messages become dead letters, answers still find their tasks' ends.
        let batch = &mut *self.batch.borrow_mut();
        while let Some(parcel) = batch.next(|empty| self.state.borrow_mut().ring.swap(empty)) {
            let parcel = parcel.take_whole();
            if parcel.weight() > 0 {
                count_many(&self.shared.counts.dead_letters, parcel.weight());
                self.unhandled(parcel, AskError::Stopped);
            }
        }
        let mut edge = self.edge.borrow_mut().take();
        if let Some(edge) = edge.as_mut() {
            self.hand_over_told(&mut **edge);
            edge.drain(self);
        }
        self.flush();
        places::forget(self.place);
    }
}
