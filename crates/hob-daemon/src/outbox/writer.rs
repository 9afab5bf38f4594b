//! The outbox's own thread: gathers what is asked, makes it one transaction, syncs, and tells.
//!
//! ```text
//!   Unopened ──the file is there, or the first message──▶ Open ◀──┐ reopened
//!      ▲                                                   │      │
//!      └──────── cannot be opened: tried again ────────────┴──────┘ a commit failed
//! ```
//! Invariants:
//! - while one batch is being synced, the next gathers. One that has fewer messages than the one
//!   before waits for those who were just answered, for a part of what a sync takes. Ends of
//!   deliveries alone are gathered for a moment, as nobody waits for them;
//! - an end of a delivery that could not be written is owed: it is written with the next batch,
//!   so a full disk costs redeliveries only if the daemon dies before there is room again;
//! - a batch that failed is refused whole, and what of it may have reached the disk is removed.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::id::MessageId;
use super::store::{Change, FILE, Held, PLACE, Store, StoreError};
use super::{
    BYTES_MAX, DeadLetter, Done, LISTED_MAX, MESSAGES_MAX, Message, REQUESTS_MAX, Refusal,
    WHY_BYTES_MAX, Waiting, Which,
};

/// Who hears what was done, on the outbox's thread. It may wait.
pub type Notify = Box<dyn FnMut(Vec<Done>) + Send>;

/// How many requests make a batch at most: a sync is shared by so many.
const BATCH_MAX: usize = 1024;
/// How many bytes of messages make a batch at most, but for the last message.
const BATCH_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How long ends of deliveries gather while nobody waits.
const GATHER: Duration = Duration::from_millis(5);
/// Who was just answered may be about to tell again, and a sync carries one message or all. So a
/// batch with fewer than the one before waits for them, for this part of what that one took.
const PATIENCE: u32 = 4;
/// How long after a failure the store is opened again.
const REOPEN_WAIT: Duration = Duration::from_secs(1);
/// How long the end of a daemon waits for the disk.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(2);

/// The outbox, as the daemon's loop has it. Dropping it closes it.
#[derive(Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    state_dir: Option<PathBuf>,
    state: Mutex<State>,
    /// The thread waits here.
    wake: Condvar,
    /// Who closes waits here.
    closed: Condvar,
}

struct State {
    requests: VecDeque<Request>,
    /// How many of them are new messages.
    accepts: usize,
    /// Whether somebody waits for one of them.
    awaited: bool,
    /// The thread waits for so many messages; 0: it does not.
    wanted: usize,
    /// Messages on the disk, or on their way to it.
    messages: u64,
    bytes: u64,
    dead: u64,
    thread: Thread,
    notify: Option<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// There is none: nothing was ever told.
    Absent,
    Running,
    /// It is to write what there is, and leave.
    Closing,
    Gone,
}

#[derive(Debug)]
enum Request {
    Accept(Message),
    /// A change that nobody waits for, and how many messages and bytes it frees.
    End(Change, u64),
    Read(MessageId),
    List(u64),
    Drop(u64, Which),
    Revive(u64, Which),
}

impl Request {
    fn accepts(&self) -> Option<MessageId> {
        match self {
            Request::Accept(message) => Some(message.id),
            Request::End(..)
            | Request::Read(_)
            | Request::List(_)
            | Request::Drop(..)
            | Request::Revive(..) => None,
        }
    }
}

impl Outbox {
    /// The outbox under a state directory. If earlier daemons left one it is opened at once,
    /// else with the first message. `notify` hears everything that is done.
    #[must_use]
    pub fn start(state_dir: Option<&Path>, notify: Notify) -> Outbox {
        let shared = Shared {
            state_dir: state_dir.map(Path::to_owned),
            state: Mutex::new(State {
                requests: VecDeque::new(),
                accepts: 0,
                awaited: false,
                wanted: 0,
                messages: 0,
                bytes: 0,
                dead: 0,
                thread: Thread::Absent,
                notify: Some(notify),
            }),
            wake: Condvar::new(),
            closed: Condvar::new(),
        };
        let outbox = Outbox { shared: Arc::new(shared) };
        if state_dir.is_some_and(|dir| dir.join(PLACE).join(FILE).symlink_metadata().is_ok()) {
            let mut state = outbox.shared.lock();
            // Without a thread the first message is refused with the reason.
            let _ = outbox.shared.run(&mut state);
        }
        outbox
    }

    /// Takes a message, to answer [`Done::Accepted`] when it is synced or [`Done::Refused`] when
    /// it cannot be kept; or refuses it at once.
    pub fn accept(&self, message: Message) -> Result<(), Refusal> {
        let bytes = message.bytes();
        let mut state = self.shared.lock();
        self.shared.run(&mut state)?;
        if state.messages >= MESSAGES_MAX || state.bytes.saturating_add(bytes) > BYTES_MAX {
            let State { messages, bytes, dead, .. } = *state;
            return Err(Refusal::Full { messages, bytes, dead });
        }
        if state.accepts >= REQUESTS_MAX {
            return Err(Refusal::Busy);
        }
        state.messages += 1;
        state.bytes += bytes;
        state.accepts += 1;
        self.shared.request(state, Request::Accept(message));
        Ok(())
    }

    /// The message is finished: it is forgotten.
    pub fn finished(&self, message: &Waiting) {
        self.ended(Request::End(Change::Remove(message.id), message.bytes));
    }

    /// A delivery failed; [`super::Queue::failed`] has decided that it is tried again.
    pub fn again(&self, message: &Waiting, why: &str) {
        let (id, tries, due_ms) = (message.id, message.tries, message.due_ms);
        self.ended(Request::End(Change::Again { id, tries, due_ms, why: clip(why) }, 0));
    }

    /// A delivery failed for the last time, at so many milliseconds since 1970.
    pub fn bury(&self, message: &Waiting, at_ms: u64, why: &str) {
        let (id, tries) = (message.id, message.tries);
        self.shared.lock().dead += 1;
        self.ended(Request::End(Change::Bury { id, at_ms, tries, why: clip(why) }, 0));
    }

    /// Asks for the whole of a message: [`Done::Read`] or [`Done::Unreadable`].
    pub fn read(&self, id: MessageId) {
        self.ended(Request::Read(id));
    }

    /// Asks for the first [`LISTED_MAX`] dead letters: [`Done::Listed`] with this token.
    pub fn list_dead(&self, token: u64) -> Result<(), Refusal> {
        self.asked(Request::List(token))
    }

    /// Drops dead letters for good: [`Done::Dropped`] with this token.
    pub fn drop_dead(&self, token: u64, which: Which) -> Result<(), Refusal> {
        self.asked(Request::Drop(token, which))
    }

    /// Has dead letters tried again as if they were new: [`Done::Revived`] with this token.
    pub fn retry_dead(&self, token: u64, which: Which) -> Result<(), Refusal> {
        self.asked(Request::Revive(token, which))
    }

    /// How many messages there are, how many bytes they hold, and how many are dead letters.
    #[must_use]
    pub fn depth(&self) -> (u64, u64, u64) {
        let state = self.shared.lock();
        (state.messages, state.bytes, state.dead)
    }

    /// Writes what there is, and gives up the file, so that another daemon can open it. Waits for
    /// the disk for a bounded time. Everything that comes later is refused.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        match state.thread {
            Thread::Running => state.thread = Thread::Closing,
            Thread::Absent => state.thread = Thread::Gone,
            Thread::Closing | Thread::Gone => {}
        }
        self.shared.wake.notify_one();
        let _ = self
            .shared
            .closed
            .wait_timeout_while(state, CLOSE_WAIT_MAX, |state| state.thread == Thread::Closing);
    }

    fn asked(&self, request: Request) -> Result<(), Refusal> {
        let mut state = self.shared.lock();
        self.shared.run(&mut state)?;
        self.shared.request(state, request);
        Ok(())
    }

    /// What ends a delivery is never refused: there are no more than deliveries.
    fn ended(&self, request: Request) {
        let state = self.shared.lock();
        if state.thread == Thread::Running {
            self.shared.request(state, request);
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state_dir", &self.state_dir).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that there is a thread.
    fn run(self: &Arc<Shared>, state: &mut State) -> Result<(), Refusal> {
        match state.thread {
            Thread::Running => return Ok(()),
            Thread::Closing | Thread::Gone => return Err(Refusal::Closed),
            Thread::Absent => {}
        }
        let state_dir = self.state_dir.clone().ok_or(Refusal::NoPlace)?;
        let notify = state.notify.take().ok_or(Refusal::Closed)?;
        let shared = Arc::clone(self);
        let builder = std::thread::Builder::new().name("hob-outbox".to_owned());
        let thread = builder.spawn(move || {
            let mut writer = Writer {
                shared: &shared,
                state_dir,
                notify,
                store: None,
                owed: Vec::new(),
                unanswered: Vec::new(),
                opened: false,
                last: Last::default(),
            };
            let ended = std::panic::catch_unwind(AssertUnwindSafe(|| writer.run()));
            // The file is free before anybody hears that the outbox is closed.
            writer.store = None;
            if ended.is_err() {
                writer.give_up();
            }
            shared.lock().thread = Thread::Gone;
            shared.closed.notify_all();
        });
        match thread {
            Ok(_) => {
                state.thread = Thread::Running;
                Ok(())
            }
            Err(error) => {
                state.thread = Thread::Gone;
                Err(Refusal::Store(format!("outbox-no-thread: {error}")))
            }
        }
    }

    fn request(&self, mut state: MutexGuard<'_, State>, request: Request) {
        let awaited = !matches!(request, Request::End(..));
        // The thread is woken once a batch, and once more if a batch of ends becomes awaited.
        let enough = state.wanted > 0
            && (state.accepts >= state.wanted || state.requests.len() + 1 >= BATCH_MAX);
        let wake = state.requests.is_empty() || awaited && !state.awaited || enough;
        state.requests.push_back(request);
        state.awaited |= awaited;
        drop(state);
        if wake {
            self.wake.notify_one();
        }
    }

    /// Waits for a batch; `None` when all is written and the outbox is to close. Comes back with
    /// an empty batch after `wait`. As many as `last` says were just answered.
    fn gather(&self, wait: Option<Duration>, last: Last) -> Option<Vec<Request>> {
        let mut state = self.lock();
        let idle = |state: &mut State| state.requests.is_empty() && state.thread == Thread::Running;
        state = match wait {
            None => self.wake.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner),
            Some(wait) => {
                let waited = self.wake.wait_timeout_while(state, wait, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        if !state.awaited && !state.requests.is_empty() {
            let gathers = |state: &mut State| {
                !state.awaited
                    && state.thread == Thread::Running
                    && state.requests.len() < BATCH_MAX
            };
            let waited = self.wake.wait_timeout_while(state, GATHER, gathers);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.requests.is_empty() && state.thread != Thread::Running {
            return None;
        }
        if state.accepts > 0 && state.accepts < last.accepts {
            state.wanted = last.accepts;
            let lacks = |state: &mut State| {
                state.accepts < last.accepts
                    && state.thread == Thread::Running
                    && state.requests.len() < BATCH_MAX
            };
            let waited = self.wake.wait_timeout_while(state, last.took / PATIENCE, lacks);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.wanted = 0;
        }
        let mut batch = Vec::with_capacity(state.requests.len().min(BATCH_MAX));
        let mut bytes = 0;
        while batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
            let Some(request) = state.requests.pop_front() else { break };
            if let Request::Accept(message) = &request {
                state.accepts -= 1;
                bytes += message.bytes();
            }
            batch.push(request);
        }
        state.awaited = state.requests.iter().any(|left| !matches!(left, Request::End(..)));
        Some(batch)
    }
}

/// What the thread has.
struct Writer<'a> {
    shared: &'a Shared,
    state_dir: PathBuf,
    notify: Notify,
    store: Option<Store>,
    /// Changes that nobody waits for and that are not on the disk yet.
    owed: Vec<Change>,
    /// New messages of the batch at hand.
    unanswered: Vec<MessageId>,
    /// Whether [`Done::Opened`] was told.
    opened: bool,
    last: Last,
}

/// What the batch before this one was.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    /// How many messages were accepted.
    accepts: usize,
    /// How long that took.
    took: Duration,
}

impl Writer<'_> {
    fn run(&mut self) {
        let mut trouble: Option<(String, Instant)> = None;
        loop {
            let mut done = Vec::new();
            if self.store.is_none()
                && trouble.as_ref().is_none_or(|(_, at)| at.elapsed() >= REOPEN_WAIT)
            {
                match self.open(&mut done) {
                    Ok(()) => trouble = None,
                    Err(error) => {
                        let text = error.to_string();
                        if trouble.as_ref().is_none_or(|(known, _)| *known != text) {
                            done.push(Done::Unusable(text.clone()));
                        }
                        trouble = Some((text, Instant::now()));
                    }
                }
                self.tell(done);
                done = Vec::new();
            }
            // What is owed is tried again by itself, as is opening.
            let wait = (self.store.is_none() || !self.owed.is_empty()).then_some(REOPEN_WAIT);
            let Some(batch) = self.shared.gather(wait, self.last) else { return };
            self.unanswered = batch.iter().filter_map(Request::accepts).collect();
            let (accepts, begun) = (self.unanswered.len(), Instant::now());
            match &trouble {
                Some((text, _)) if self.store.is_none() => self.refuse(batch, text, &mut done),
                _ => self.perform(batch, &mut done),
            }
            // Ends alone say nothing of those who tell.
            if accepts > 0 {
                self.last = Last { accepts, took: begun.elapsed() };
            }
            self.tell(done);
        }
    }

    /// After a fault of its own: nobody waits for an answer that does not come.
    fn give_up(&mut self) {
        let mut state = self.shared.lock();
        state.thread = Thread::Gone;
        let left = std::mem::take(&mut state.requests);
        drop(state);
        let ids = self.unanswered.drain(..).chain(left.iter().filter_map(Request::accepts));
        let why = Refusal::Store("outbox-fault: the outbox's thread has failed".to_owned());
        let done = ids.map(|id| Done::Refused(id, why.clone())).collect();
        self.tell(done);
    }

    fn tell(&mut self, done: Vec<Done>) {
        self.unanswered.clear();
        if !done.is_empty() {
            (self.notify)(done);
        }
    }

    fn open(&mut self, done: &mut Vec<Done>) -> Result<(), StoreError> {
        let store = Store::open(&self.state_dir)?;
        if !self.opened {
            let Held { waiting, dead, dead_bytes, last } = store.held()?;
            let mut state = self.shared.lock();
            state.messages += waiting.len() as u64 + dead;
            state.bytes += waiting.iter().map(|one| one.bytes).sum::<u64>() + dead_bytes;
            state.dead += dead;
            done.push(Done::Opened { waiting, last, dead });
            self.opened = true;
        }
        self.store = Some(store);
        Ok(())
    }

    /// Performs a batch: answers what is read, commits what is changed, and tells.
    fn perform(&mut self, batch: Vec<Request>, done: &mut Vec<Done>) {
        let Some(store) = self.store.as_mut() else { return };
        let mut puts = Vec::new();
        let (mut freed, mut freed_bytes) = (0, 0);
        let mut told = Vec::new();
        for request in batch {
            match request {
                Request::Accept(message) => puts.push(Change::Put(message)),
                Request::End(change, bytes) => {
                    freed += u64::from(matches!(change, Change::Remove(_)));
                    freed_bytes += bytes;
                    self.owed.push(change);
                }
                Request::Read(id) => done.push(read(store, id)),
                // These are rare: what is owed goes first, so that they see it.
                Request::List(token) => {
                    self.owed = commit_owed(store, std::mem::take(&mut self.owed));
                    let letters = store.dead(LISTED_MAX).map_err(|error| error.to_string());
                    done.push(Done::Listed(token, letters));
                }
                Request::Drop(token, which) => {
                    self.owed = commit_owed(store, std::mem::take(&mut self.owed));
                    let letters = select(store, &which);
                    if let Ok(letters) = &letters {
                        let ids = letters.iter().map(|letter| letter.message.id);
                        self.owed.extend(ids.map(Change::Remove));
                        freed += letters.len() as u64;
                        freed_bytes += letters.iter().map(|one| one.message.bytes()).sum::<u64>();
                        self.shared.lock().dead -= letters.len() as u64;
                    }
                    told.push(Done::Dropped(token, letters.map(|letters| letters.len() as u64)));
                }
                Request::Revive(token, which) => {
                    self.owed = commit_owed(store, std::mem::take(&mut self.owed));
                    let letters = select(store, &which);
                    if let Ok(letters) = &letters {
                        let ids = letters.iter().map(|letter| letter.message.id);
                        self.owed.extend(ids.map(Change::Revive));
                        self.shared.lock().dead -= letters.len() as u64;
                    }
                    let waiting =
                        letters.map(|all| all.iter().map(|one| one.message.waiting()).collect());
                    told.push(Done::Revived(token, waiting));
                }
            }
        }
        self.commit(puts, done);
        done.append(&mut told);
        let mut state = self.shared.lock();
        state.messages -= freed;
        state.bytes -= freed_bytes;
        let (messages, bytes) = (state.messages, state.bytes);
        let idle = state.requests.is_empty();
        drop(state);
        if let Some(store) = self.store.as_mut()
            && idle
            && (messages == 0 && store.forget_programs().is_err() || store.compact(bytes).is_err())
        {
            self.store = None;
        }
    }

    /// Commits new messages and what is owed.
    fn commit(&mut self, puts: Vec<Change>, done: &mut Vec<Done>) {
        let Some(store) = self.store.as_mut() else { return };
        if puts.is_empty() && self.owed.is_empty() {
            return;
        }
        let accepted: Vec<_> = puts.iter().filter_map(put).collect();
        // Ends come first: they make room.
        let owed = self.owed.len();
        self.owed.extend(puts);
        match store.commit(&self.owed) {
            Ok(()) => {
                self.owed.clear();
                done.extend(accepted.into_iter().map(|(id, _)| Done::Accepted(id)));
            }
            Err(error) => {
                self.owed.truncate(owed);
                let refusal = Refusal::Store(error.to_string());
                let mut state = self.shared.lock();
                for (id, bytes) in accepted {
                    state.messages -= 1;
                    state.bytes -= bytes;
                    // The failed sync may have reached the disk all the same.
                    self.owed.push(Change::Remove(id));
                    done.push(Done::Refused(id, refusal.clone()));
                }
                drop(state);
                // redb takes nothing more after a failure, until it is opened again.
                self.store = None;
            }
        }
    }

    /// Answers a batch while the store cannot be used.
    fn refuse(&mut self, batch: Vec<Request>, why: &str, done: &mut Vec<Done>) {
        for request in batch {
            match request {
                Request::Accept(message) => {
                    let mut state = self.shared.lock();
                    state.messages -= 1;
                    state.bytes -= message.bytes();
                    drop(state);
                    done.push(Done::Refused(message.id, Refusal::Store(why.to_owned())));
                }
                Request::End(change, bytes) => {
                    let mut state = self.shared.lock();
                    state.messages -= u64::from(matches!(change, Change::Remove(_)));
                    state.bytes -= bytes;
                    drop(state);
                    self.owed.push(change);
                }
                Request::Read(id) => done.push(Done::Unreadable(id, why.to_owned())),
                Request::List(token) => done.push(Done::Listed(token, Err(why.to_owned()))),
                Request::Drop(token, _) => done.push(Done::Dropped(token, Err(why.to_owned()))),
                Request::Revive(token, _) => done.push(Done::Revived(token, Err(why.to_owned()))),
            }
        }
    }
}

fn put(change: &Change) -> Option<(MessageId, u64)> {
    match change {
        Change::Put(message) => Some((message.id, message.bytes())),
        Change::Remove(_) | Change::Again { .. } | Change::Bury { .. } | Change::Revive(_) => None,
    }
}

/// Commits changes, and gives back those that could not be.
fn commit_owed(store: &mut Store, owed: Vec<Change>) -> Vec<Change> {
    if owed.is_empty() || store.commit(&owed).is_ok() { Vec::new() } else { owed }
}

fn read(store: &Store, id: MessageId) -> Done {
    match store.read(id) {
        Ok(Some(message)) => Done::Read(message),
        Ok(None) => Done::Unreadable(id, "outbox-missing: no such message".to_owned()),
        Err(error) => Done::Unreadable(id, error.to_string()),
    }
}

fn select(store: &Store, which: &Which) -> Result<Vec<DeadLetter>, String> {
    let all = store.dead(usize::MAX).map_err(|error| error.to_string())?;
    Ok(all.into_iter().filter(|letter| which.has(letter)).collect())
}

fn clip(why: &str) -> String {
    let mut end = why.len().min(WHY_BYTES_MAX);
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    why[..end].to_owned()
}
