//! The outbox's own thread: takes a batch of what is asked (`requests.rs`), makes it one
//! transaction, syncs, and tells.
//!
//! ```text
//!   Unopened ──the file is there, or the first message──▶ Open ◀──┐ reopened
//!      ▲                                                   │      │
//!      └──────── cannot be opened: tried again ────────────┴──────┘ a commit failed
//! ```
//! Where another process has the file, what is asked waits with it: that is the daemon before this
//! one, which finishes what it has given, or a verb that looks at dead letters.
//! Invariants:
//! - an end of a delivery that could not be written is owed: it is written with the next batch,
//!   so a full disk costs redeliveries only if the daemon dies before there is room again;
//! - a batch that failed is refused whole, and what of it may have reached the disk is removed.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::id::MessageId;
use super::requests::{Came, Last, Request, Shared, State, Thread};
use super::store::{Change, Held, Store, StoreError};
use super::{DeadLetter, Done, LISTED_MAX, Message, Notify, REQUESTS_MAX, Refusal, Waiting, Which};

/// How long after a failure the store is opened again.
const REOPEN_WAIT: Duration = Duration::from_secs(1);
/// The same while another process has it, and how long what is asked waits for that.
const TAKEN_WAIT: Duration = Duration::from_millis(10);
const TAKEN_WAIT_MAX: Duration = Duration::from_secs(25);

/// Makes sure that there is a thread.
pub(super) fn run(shared: &Arc<Shared>, state: &mut State) -> Result<(), Refusal> {
    match state.thread {
        Thread::Running => return Ok(()),
        Thread::Closing | Thread::Gone => return Err(Refusal::Closed),
        Thread::Elsewhere => return Err(Refusal::Elsewhere),
        Thread::Absent => {}
    }
    let state_dir = shared.state_dir.clone().ok_or(Refusal::NoPlace)?;
    let notify = state.notify.take().ok_or(Refusal::Closed)?;
    let shared = Arc::clone(shared);
    let builder = std::thread::Builder::new().name("hob-outbox".to_owned());
    let thread = builder.spawn(move || {
        let mut writer = Writer {
            shared: &shared,
            state_dir,
            notify,
            store: None,
            owed: Vec::new(),
            finished: 0,
            unanswered: Vec::new(),
            opened: false,
            taken: None,
            left: HashMap::new(),
            last: Last::default(),
        };
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| writer.run()));
        // The file is free before anybody hears that the outbox is closed.
        writer.store = None;
        if ended.is_err() {
            writer.give_up();
        }
        let mut state = shared.lock();
        (state.thread, state.is_open) = (Thread::Gone, false);
        drop(state);
        shared.closed.notify_all();
        writer.tell(vec![Done::Closed]);
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

/// What the thread has.
struct Writer<'a> {
    shared: &'a Shared,
    state_dir: PathBuf,
    notify: Notify,
    store: Option<Store>,
    /// Changes that nobody waits for and that are not on the disk yet.
    owed: Vec<Change>,
    /// How many of those are of messages that are finished.
    finished: u64,
    /// New messages of the batch at hand.
    unanswered: Vec<MessageId>,
    /// Whether [`Done::Opened`] was told.
    opened: bool,
    /// Since when another process has the file.
    taken: Option<Instant>,
    /// The newest messages that earlier daemons left, by what was drawn for them: their senders may
    /// not have heard that they are kept.
    left: HashMap<u64, MessageId>,
    last: Last,
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
                    Err(error @ StoreError::Taken(_)) if self.waits_for_owner(&error) => continue,
                    Err(error) => {
                        let text = error.to_string();
                        if trouble.as_ref().is_none_or(|(known, _)| *known != text) {
                            done.push(Done::Unusable(text.clone()));
                        }
                        trouble = Some((text, Instant::now()));
                    }
                }
                let mut state = self.shared.lock();
                state.is_open = self.store.is_some();
                state.trouble = trouble.as_ref().map(|(text, _)| text.clone());
                drop(state);
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

    /// Waits a moment for the process that has the file; `false`: not any more.
    fn waits_for_owner(&mut self, taken: &StoreError) -> bool {
        self.shared.lock().trouble.get_or_insert_with(|| taken.to_string());
        let since = *self.taken.get_or_insert_with(Instant::now);
        since.elapsed() < TAKEN_WAIT_MAX && self.shared.pause(TAKEN_WAIT)
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
        self.taken = None;
        if !self.opened {
            let Held { waiting, dead, dead_bytes, last } = store.held()?;
            let mut state = self.shared.lock();
            state.messages += waiting.len() as u64 + dead;
            state.bytes += waiting.iter().map(|one| one.bytes).sum::<u64>() + dead_bytes;
            state.dead += dead;
            drop(state);
            self.left = newest(&waiting);
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
                Request::Accept(message, came) => match known(&self.left, &message, came) {
                    Some(kept) => {
                        freed += 1;
                        freed_bytes += message.bytes();
                        done.push(Done::Known(message.id, kept));
                    }
                    None => puts.push(Change::Put(message)),
                },
                Request::End(change, bytes) => {
                    let finished = u64::from(matches!(change, Change::Remove(_)));
                    freed += finished;
                    freed_bytes += bytes;
                    self.finished += finished;
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
        if self.owed.is_empty() {
            state.ending -= std::mem::take(&mut self.finished);
        }
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
                Request::Accept(message, _) => {
                    let mut state = self.shared.lock();
                    state.messages -= 1;
                    state.bytes -= message.bytes();
                    let closes = state.thread != Thread::Running;
                    drop(state);
                    let why = if closes { Refusal::Closed } else { Refusal::Store(why.to_owned()) };
                    done.push(Done::Refused(message.id, why));
                }
                Request::End(change, bytes) => {
                    let finished = u64::from(matches!(change, Change::Remove(_)));
                    let mut state = self.shared.lock();
                    state.messages -= finished;
                    state.bytes -= bytes;
                    drop(state);
                    self.finished += finished;
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

/// The last that were kept, by what was drawn for them: no more were unanswered at one time.
fn newest(waiting: &[Waiting]) -> HashMap<u64, MessageId> {
    let newest = waiting.iter().rev().take(REQUESTS_MAX);
    newest.map(|message| (message.id.drawn(), message.id)).collect()
}

/// The message that an earlier daemon has kept, if its sender sends it again.
fn known(left: &HashMap<u64, MessageId>, message: &Message, came: Came) -> Option<MessageId> {
    match came {
        Came::Once => None,
        Came::PerhapsAgain => left.get(&message.id.drawn()).copied(),
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
