//! A shard: actors that share one thread, and everything that is decided about their messages.
//!
//! It runs to completion: one message after the other, in the order of one ring; a local send is
//! one cell at the ring's end. It has no clock, no thread and no socket of its own: whoever drives
//! it (`thread.rs`, or the simulator of the tests) says what time it is, lets it take turns, and
//! carries what it has gathered for others.
//!
//! Invariants:
//! - an ask ends once: its slot is closed by an answer, a failure or its asker, and a generation
//!   keeps what comes later from meeting the next one;
//! - no user code runs while `state` or `tasks` is borrowed: handlers, futures and drops of
//!   payloads may all come back here;
//! - a message that is not handled is counted (dead letters, cancelled), and its asker is told.

mod deliver;
mod lives;
mod records;
mod state;
pub(crate) mod tells;
mod timers;
mod unwound;
#[cfg(test)]
mod waiting;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use crate::api::actor::{AnyActor, Message, Receives};
use crate::api::address::Address;
use crate::api::asked::Ask;
use crate::api::error::{AskError, NotSent, TellError};
use crate::link::Names;
use crate::memory::parcel::{Batch, Kind, Label, Lent, Parcel, Slot, Typed};
use crate::memory::tasks;
use crate::memory::tasks::{Continuation, Header, Tasks};
use crate::memory::waker::Scope;
use crate::memory::when::{Millis, NEVER, NOBODY, Place, When};
use crate::remote::Edge;
use crate::runtime::mail::{Mail, Policy};
use crate::runtime::mailbox::{Mailbox, Route};
use crate::runtime::places::ShardInbox;

use state::State;
use tells::Told;
pub(crate) use timers::{Again, Due, Tell};

/// What other threads see of a shard.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) place: Place,
    pub(crate) inbox: Arc<ShardInbox>,
    /// The next index of an actor: spawners on other threads take one without asking.
    pub(crate) next_record: AtomicU32,
    pub(crate) next_group: AtomicU32,
    pub(crate) counts: Arc<Counts>,
}

/// What does not happen on a good day.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) dead_letters: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) displaced: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) restarts: AtomicU64,
}

pub(crate) fn count(of: &AtomicU64) {
    count_many(of, 1);
}

pub(crate) fn count_many(of: &AtomicU64, many: u32) {
    of.fetch_add(u64::from(many), Ordering::Relaxed);
}

/// How an actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was stopped, or its system was.
    Stopped,
    /// It failed more often than its supervision bears.
    Failed,
}

/// Told of an end, by the shard of the one who ended.
pub(crate) type Watcher = Box<dyn FnOnce(&Shard, End) + Send>;

/// Makes an actor anew.
pub(crate) type Make = Box<dyn FnMut() -> Box<dyn AnyActor>>;

/// Words to a shard itself.
pub(crate) enum Control {
    /// The asker, at a place, no longer wants its answer; the task that works on it, if known.
    Cancel { place: Place, task: Option<u32> },
    /// A kept waker was woken.
    Wake(u32),
    /// Something to do on the shard's thread.
    Job(Box<dyn FnOnce(&Shard) + Send>),
    /// The actor `to` begins.
    Start,
    /// The actor `to` ends.
    Stop,
    /// Its end is to be told.
    Watch(Watcher),
    /// A message waits in its mailbox, which drops the oldest.
    Ticket,
    /// The shard ends.
    End,
}

static CONTROL: Typed<Control> = Typed::of(Kind::Control);
static FAILURE: Typed<AskError> = Typed::of(Kind::Failure);

/// One shard.
pub(crate) struct Shard {
    pub(crate) shared: Arc<Shared>,
    place: Place,
    state: RefCell<State>,
    /// The answer for which a task is being polled.
    arrived: Lent,
    /// What of the ring is being handled; nobody else touches it.
    batch: RefCell<Batch>,
    tasks: RefCell<Tasks>,
    /// None: nothing in this turn has depended on it yet.
    now: Cell<Option<Millis>>,
    /// What says it then: whoever drives the shard knows.
    clock: fn() -> Millis,
    /// The task that is polled, and the mark of its waker.
    polled: Cell<Option<(u32, *const ())>>,
    edge: RefCell<Option<Box<dyn Edge>>>,
    /// Where the edge waits for answers: its place, if there is one.
    edge_place: Cell<Place>,
    /// What was told to peers and is not yet the edge's.
    told: RefCell<Told>,
    /// What the edge's messages need to be decoded.
    names: RefCell<Option<Rc<Names>>>,
    ended: Cell<bool>,
    /// Askers whose replies a panic has dropped, until it is caught (`unwound.rs`).
    unwound: Cell<Vec<(Slot, When)>>,
    has_unwound: Cell<bool>,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Shard {
    /// `clock` is looked at where a turn's time was not said and something depends on it.
    pub(crate) fn new(shared: Arc<Shared>, clock: fn() -> Millis) -> Shard {
        Shard {
            place: shared.place,
            shared,
            state: RefCell::new(State::new()),
            arrived: Lent::default(),
            batch: RefCell::default(),
            tasks: RefCell::new(Tasks::new()),
            now: Cell::new(None),
            clock,
            polled: Cell::new(None),
            edge: RefCell::new(None),
            edge_place: Cell::new(NOBODY),
            told: RefCell::default(),
            names: RefCell::new(None),
            ended: Cell::new(false),
            unwound: Cell::default(),
            has_unwound: Cell::new(false),
        }
    }

    /// The time of this turn. To look at the clock is a twentieth of what a worker of a storm does
    /// between two sleeps: what it touches is in no cache then. Most turns depend on no time.
    #[inline]
    pub(crate) fn now(&self) -> Millis {
        self.now.get().unwrap_or_else(|| self.look_at_the_clock())
    }

    #[cold]
    fn look_at_the_clock(&self) -> Millis {
        let now = (self.clock)();
        self.now.set(Some(now));
        now
    }

    /// Whether a message's time is over.
    #[inline]
    fn is_late(&self, when: When) -> bool {
        when.deadline() < NEVER && when.deadline() <= self.now()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    // --- sending

    /// Sends a message from one of this shard's actors.
    #[expect(clippy::inline_always, reason = "a call is a tenth of a hop")]
    #[inline(always)]
    pub(crate) fn send<A, M, How>(
        &self,
        to: &Address<A>,
        message: M,
        asker: Slot,
        when: When,
    ) -> Result<(), TellError<M>>
    where
        M: Message,
        A: Receives<M, How>,
    {
        let what = &A::dispatch().0;
        if to.place != self.place {
            return self.send_away(to, what, message, Label { to: to.slot, asker, when });
        }
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        match state.records.admit(to.slot) {
            Ok(()) => {
                state.ring.push(what, Label { to: to.slot, asker, when }, message);
                return Ok(());
            }
            Err(NotSent::Full) if state.records.is_far(to.slot) => {
                drop(guard);
                let label = Label { to: to.slot, asker, when };
                return self.send_over(&to.mailbox, what, label, message);
            }
            // A mailbox that drops its oldest never lets anything wait in the ring.
            Err(NotSent::Full) if to.mailbox.policy == Policy::DropOldest => {}
            Err(why) => {
                to.mailbox.note(why);
                return Err(TellError { why, message });
            }
        }
        drop(guard);
        self.send_latest(to, Parcel::new(what, to.slot, asker, when, message))
    }

    #[inline(never)]
    fn send_away<A, M: Message>(
        &self,
        to: &Address<A>,
        what: &'static Typed<M>,
        message: M,
        label: Label,
    ) -> Result<(), TellError<M>> {
        let gather = |parcel| {
            let state = &mut *self.state.borrow_mut();
            let line = state.line(to.place, &to.mailbox.route);
            state.out[line as usize].gathered.push(parcel);
        };
        if let Route::Pool(_) = to.mailbox.route {
            // Its bound is kept here, its queue is filled at the turn's end.
            if let Err(why) = to.mailbox.reserve() {
                to.mailbox.note(why);
                return Err(TellError { why, message });
            }
            let when = label.when.counted_outside();
            gather(Parcel::new(what, to.slot, label.asker, when, message));
            return Ok(());
        }
        to.mailbox.put(what, label, message, |_, parcel| {
            gather(parcel);
            Ok(())
        })
    }

    /// Into a mailbox of this shard that drops its oldest.
    #[cold]
    fn send_latest<A, M: Message>(
        &self,
        to: &Address<A>,
        parcel: Parcel,
    ) -> Result<(), TellError<M>> {
        let put = to.mailbox.put_latest(to.slot, parcel, |_, ticket| {
            self.state.borrow_mut().ring.push_parcel(ticket);
            Ok(())
        });
        put.map_err(|parcel| {
            to.mailbox.note(NotSent::Stopped);
            crate::runtime::mailbox::unpacked(parcel)
        })
    }

    /// A word to an actor, in order with what this shard has sent it.
    pub(crate) fn control_away(&self, place: Place, mailbox: &Mailbox, parcel: Parcel) {
        let state = &mut *self.state.borrow_mut();
        if place == self.place {
            state.ring.push_parcel(parcel);
        } else {
            let line = state.line(place, &mailbox.route);
            state.out[line as usize].gathered.push(parcel);
        }
    }

    /// Somebody waits for a place in the mailbox of one of this shard's actors.
    pub(crate) fn wait_for_room(&self, slot: Slot) {
        if let Some(record) = self.state.borrow_mut().records.get(slot) {
            record.waited = true;
        }
    }

    /// Asks, for one of this shard's actors. `timed`: the deadline is this ask's own and not one
    /// that came along with the message that is being handled.
    #[inline]
    pub(crate) fn ask<A, M, How>(
        &self,
        to: &Address<A>,
        message: M,
        deadline: Millis,
        timed: bool,
    ) -> Ask<M::Answer>
    where
        M: Message,
        A: Receives<M, How>,
    {
        let slot = {
            let state = &mut *self.state.borrow_mut();
            let line = (to.place != self.place).then(|| state.line(to.place, &to.mailbox.route));
            let slot = state.asks.open(line, timed);
            if let (Some(slot), true) = (slot, timed) {
                state.timers.push(deadline, Due::Ask(slot));
                state.sweep_timers();
            }
            slot.unwrap_or(Slot::NONE)
        };
        if let Err(failed) = self.send(to, message, slot, When::new(self.place, deadline)) {
            let why = failed.why.into();
            self.state.borrow_mut().keep(slot, Shard::failure_parcel(slot, When::TELL, why));
        }
        Ask::new(slot)
    }

    pub(crate) fn answer_parcel<T: Send + 'static>(asker: Slot, when: When, answer: T) -> Parcel {
        Parcel::new(Typed::answer(), asker, Slot::NONE, when, answer)
    }

    pub(crate) fn failure_parcel(asker: Slot, when: When, why: AskError) -> Parcel {
        Parcel::new(&FAILURE, asker, Slot::NONE, when, why)
    }

    pub(crate) fn control_parcel(to: Slot, asker: Slot, control: Control) -> Parcel {
        Parcel::new(&CONTROL, to, asker, When::TELL, control)
    }

    pub(crate) fn wake_parcel(task: u32) -> Parcel {
        Shard::control_parcel(Slot::NONE, Slot::NONE, Control::Wake(task))
    }

    pub(crate) fn cancel_parcel(asker: Slot, place: Place) -> Parcel {
        Shard::control_parcel(Slot::NONE, asker, Control::Cancel { place, task: None })
    }

    /// Sends an answer to where its asker is.
    #[inline]
    pub(crate) fn answer<T: Send + 'static>(&self, asker: Slot, when: When, answer: T) {
        if when.place() == self.place {
            let label = Label { to: asker, asker: Slot::NONE, when };
            self.state.borrow_mut().ring.push(Typed::answer(), label, answer);
        } else if when.place() != NOBODY {
            self.answer_away(asker, when, answer);
        }
    }

    /// The answer of a continuation, which ends.
    #[inline]
    pub(crate) fn answered<T: Send + 'static>(&self, header: Header, answer: T) {
        self.answer(header.asker, header.when(), answer);
        self.state.borrow_mut().unparked(header, self.place);
    }

    /// To a peer at once, unless the links are at work: it is one of this shard's actors that
    /// answers, and nothing of what it sent before waits.
    #[inline(never)]
    fn answer_away<T: Send + 'static>(&self, asker: Slot, when: When, answer: T) {
        if when.place() == self.edge_place.get()
            && let Ok(mut edge) = self.edge.try_borrow_mut()
            && let Some(edge) = edge.as_mut()
        {
            self.hand_over_told(&mut **edge);
            let label = Label { to: asker, asker: Slot::NONE, when };
            return Parcel::with(Typed::answer(), label, answer, |parcel| {
                edge.answer(parcel, self)
            });
        }
        self.route(when.place(), Shard::answer_parcel(asker, when, answer));
    }

    /// Tells an asker that there is no answer.
    pub(crate) fn fail(&self, asker: Slot, when: When, why: AskError) {
        if when.place() == self.place {
            self.state.borrow_mut().ring.push_parcel(Shard::failure_parcel(asker, when, why));
        } else if when.place() != NOBODY {
            self.route(when.place(), Shard::failure_parcel(asker, when, why));
        }
    }

    // --- asks

    /// The answer of an ask, or it is remembered who waits for it.
    #[expect(clippy::inline_always, reason = "an answer that goes through memory waits for itself")]
    #[inline(always)]
    pub(crate) fn poll_ask<T: Send + 'static>(
        &self,
        slot: Slot,
        waker: &Waker,
    ) -> Option<Result<T, AskError>> {
        let arrived = self
            .arrived
            .with(|arrived| arrived.filter(|arrived| arrived.to == slot).map(Parcel::take_answer));
        if arrived.is_some() {
            self.state.borrow_mut().asks.close(slot);
            return arrived;
        }
        self.poll_unanswered(slot, waker).map(|mut kept| kept.take_answer())
    }

    /// The same, of one whose answer does not arrive just now.
    fn poll_unanswered(&self, slot: Slot, waker: &Waker) -> Option<Parcel> {
        {
            let state = &mut *self.state.borrow_mut();
            if state.asks.is_kept(slot) {
                state.asks.close(slot);
                return state.kept.remove(&slot.index);
            }
            if let Some((task, mark)) = self.polled.get()
                && Scope::is(waker, mark)
            {
                state.asks.awaited(slot, Some(task));
                return None;
            }
        }
        let waker = waker.clone();
        let state = &mut *self.state.borrow_mut();
        state.asks.awaited(slot, None);
        let before = state.wakers.insert(slot.index, waker);
        drop(before);
        None
    }

    /// The asker has dropped its ask.
    pub(crate) fn cancel(&self, slot: Slot) {
        let leftovers = self.state.borrow_mut().cancel(slot, self.place);
        if let Some(state::Leftovers { to_edge: true, .. }) = leftovers {
            self.cancel_far(slot, self.place);
        }
    }

    // --- continuations

    /// Parks what a handler returns; it is polled as soon as the actor's state is back.
    #[inline]
    pub(crate) fn park<F: Continuation>(
        &self,
        header: Header,
        make: impl FnOnce() -> F,
    ) -> Option<u32> {
        match tasks::park(&self.tasks, header, make) {
            Ok(task) => {
                self.state.borrow_mut().parked(task, header, self.place);
                Some(task)
            }
            Err(_) => {
                self.fail(header.asker, header.when(), AskError::Full);
                None
            }
        }
    }

    /// Polls a task; at its end it answers, or its asker hears of its panic.
    #[inline]
    pub(crate) fn proceed(&self, task: u32) {
        let scope = Scope::new(&self.shared.inbox, task);
        let before = self.polled.replace(Some((task, scope.mark())));
        let poll = || {
            scope.poll_with(|waker| {
                tasks::proceed(&self.tasks, task, &mut Context::from_waker(waker), self)
            })
        };
        let polled = catch_unwind(AssertUnwindSafe(poll));
        self.polled.set(before);
        match polled {
            Ok(Poll::Pending | Poll::Ready(())) => self.came_back(),
            Err(panic) => {
                let said = self.caught(&*panic);
                if let Some(header) = self.discard(task) {
                    self.fail(header.asker, header.when(), AskError::Panicked(said));
                    self.panicked(header.actor, panic);
                }
            }
        }
    }

    /// Drops a task, and with it what it waits for.
    #[inline]
    fn discard(&self, task: u32) -> Option<Header> {
        let removed = catch_unwind(AssertUnwindSafe(|| {
            let header = self.tasks.borrow().header(task);
            tasks::remove(&self.tasks, task).or(header)
        }));
        let header = removed.ok().flatten()?;
        self.state.borrow_mut().unparked(header, self.place);
        Some(header)
    }

    /// The header of the task that is polled.
    pub(crate) fn polled_header(&self) -> Option<Header> {
        self.tasks.borrow().header(self.polled.get()?.0)
    }

    // --- actors

    /// Gives an actor a place; its first word is `started`.
    pub(crate) fn spawn(&self, state: Box<dyn AnyActor>, mail: Mail) -> (Slot, Arc<Mailbox>) {
        let mailbox = self.shared.mailbox(mail);
        let slot = {
            let own = &mut *self.state.borrow_mut();
            let slot = own.records.insert(&self.shared.next_record, Arc::clone(&mailbox));
            if let Some(record) = own.records.get(slot) {
                record.state = Some(state);
            }
            own.ring.push_parcel(Shard::control_parcel(slot, Slot::NONE, Control::Start));
            slot
        };
        (slot, mailbox)
    }

    /// The same at an index that a spawner on another thread has taken.
    pub(crate) fn spawn_at(&self, slot: Slot, state: Box<dyn AnyActor>, mailbox: Arc<Mailbox>) {
        let own = &mut *self.state.borrow_mut();
        own.records.insert_at(slot, mailbox);
        if let Some(record) = own.records.get(slot) {
            record.state = Some(state);
        }
        own.ring.push_parcel(Shard::control_parcel(slot, Slot::NONE, Control::Start));
    }

    /// Runs something with an actor's state, between its messages. None: it has ended, or one of
    /// its handlers is running.
    pub(crate) fn with_state<R>(
        &self,
        index: u32,
        run: impl FnOnce(&mut dyn AnyActor, Slot) -> R,
    ) -> Option<R> {
        let (slot, mut actor) = {
            let state = &mut *self.state.borrow_mut();
            let (slot, record) = state.records.at(index)?;
            (slot, record.state.take()?)
        };
        let result = catch_unwind(AssertUnwindSafe(|| run(&mut *actor, slot)));
        self.put_back(slot, actor);
        match result {
            Ok(result) => Some(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    pub(crate) fn mailbox_of(&self, slot: Slot) -> Option<Arc<Mailbox>> {
        self.state.borrow_mut().records.get(slot)?.mailbox.clone()
    }

    /// Sends by itself at a time, and again after each `every`.
    pub(crate) fn schedule(&self, at: Millis, every: Option<Millis>, tell: Tell) -> Slot {
        let state = &mut *self.state.borrow_mut();
        let slot = state.schedules.insert(every, tell);
        state.timers.push(at, Due::Scheduled(slot));
        state.sweep_timers();
        slot
    }

    pub(crate) fn unschedule(&self, slot: Slot) {
        let tell = self.state.borrow_mut().schedules.remove(slot);
        drop(tell);
    }

    /// Asks for an actor's end, after what it has been sent so far by this shard.
    pub(crate) fn stop(&self, slot: Slot) {
        let parcel = Shard::control_parcel(slot, Slot::NONE, Control::Stop);
        self.state.borrow_mut().ring.push_parcel(parcel);
    }
}

impl Shared {
    pub(crate) fn mailbox(&self, mail: Mail) -> Arc<Mailbox> {
        Arc::new(Mailbox::new(Route::Inbox(Arc::clone(&self.inbox)), mail, &self.counts))
    }

    /// An index for an actor that is about to be sent.
    pub(crate) fn reserve(&self) -> Slot {
        Slot { index: self.next_record.fetch_add(1, Ordering::Relaxed), generation: 1 }
    }
}
