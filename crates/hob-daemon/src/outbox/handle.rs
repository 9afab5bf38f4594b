//! The outbox as the daemon's loop has it: takes what is asked, bounds it, and waits for nobody.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::id::MessageId;
use super::requests::{Came, Request, Shared, State, Thread};
use super::store::{Change, FILE, PLACE};
use super::{
    BYTES_MAX, MESSAGES_MAX, Message, Notify, REQUESTS_MAX, Refusal, WHY_BYTES_MAX, Waiting, Which,
    writer,
};

/// How long the end of a daemon waits for the disk.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(2);

/// The outbox, as the daemon's loop has it. Dropping it closes it.
#[derive(Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
}

impl Outbox {
    /// The outbox under a state directory. If earlier daemons left one it is opened at once,
    /// else with the first message. `notify` hears everything that is done.
    #[must_use]
    pub fn start(state_dir: Option<&Path>, notify: Notify) -> Outbox {
        let outbox = Outbox::with(state_dir, Thread::Absent, Some(notify));
        if state_dir.is_some_and(Outbox::is_left) {
            let mut state = outbox.shared.lock();
            // Without a thread the first message is refused with the reason.
            let _ = writer::run(&outbox.shared, &mut state);
        }
        outbox
    }

    /// That of a site, which keeps nothing: its workers tell the user's daemon.
    #[must_use]
    pub fn of_site() -> Outbox {
        Outbox::with(None, Thread::Elsewhere, None)
    }

    fn with(state_dir: Option<&Path>, thread: Thread, notify: Option<Notify>) -> Outbox {
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
                ending: 0,
                thread,
                is_open: false,
                trouble: None,
                notify,
            }),
            wake: Condvar::new(),
            closed: Condvar::new(),
        };
        Outbox { shared: Arc::new(shared) }
    }

    /// Whether earlier daemons left an outbox under this state directory.
    #[must_use]
    pub fn is_left(state_dir: &Path) -> bool {
        state_dir.join(PLACE).join(FILE).symlink_metadata().is_ok()
    }

    /// Takes a message, to answer [`super::Done::Accepted`] when it is synced or
    /// [`super::Done::Refused`] when it cannot be kept; or refuses it at once.
    pub fn accept(&self, message: Message) -> Result<(), Refusal> {
        self.take(message, Came::Once)
    }

    /// The same of one that its sender may have sent to an earlier daemon before. If that has kept
    /// it, the answer is [`super::Done::Known`].
    pub fn accept_again(&self, message: Message) -> Result<(), Refusal> {
        self.take(message, Came::PerhapsAgain)
    }

    fn take(&self, message: Message, came: Came) -> Result<(), Refusal> {
        let bytes = message.bytes();
        let mut state = self.shared.lock();
        writer::run(&self.shared, &mut state)?;
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
        self.shared.request(state, Request::Accept(message, came));
        Ok(())
    }

    /// The message is finished: it is forgotten.
    pub fn finished(&self, message: &Waiting) {
        let mut state = self.shared.lock();
        if state.thread == Thread::Running {
            state.ending += 1;
            let end = Request::End(Change::Remove(message.id), message.bytes);
            self.shared.request(state, end);
        }
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

    /// Asks for the whole of a message: [`super::Done::Read`] or [`super::Done::Unreadable`].
    pub fn read(&self, id: MessageId) {
        self.ended(Request::Read(id));
    }

    /// Asks for the first [`super::LISTED_MAX`] dead letters: [`super::Done::Listed`] with this
    /// token.
    pub fn list_dead(&self, token: u64) -> Result<(), Refusal> {
        self.asked(Request::List(token))
    }

    /// Drops dead letters for good: [`super::Done::Dropped`] with this token.
    pub fn drop_dead(&self, token: u64, which: Which) -> Result<(), Refusal> {
        self.asked(Request::Drop(token, which))
    }

    /// Has dead letters tried again as if they were new: [`super::Done::Revived`] with this token.
    pub fn retry_dead(&self, token: u64, which: Which) -> Result<(), Refusal> {
        self.asked(Request::Revive(token, which))
    }

    /// How many messages there are, how many bytes they hold, and how many are dead letters.
    #[must_use]
    pub fn depth(&self) -> (u64, u64, u64) {
        let state = self.shared.lock();
        (state.messages, state.bytes, state.dead)
    }

    /// How many messages are finished and on the disk until that is written.
    #[must_use]
    pub fn ending(&self) -> u64 {
        self.shared.lock().ending
    }

    /// Whether this process has the file, and why it cannot be used now.
    #[must_use]
    pub fn standing(&self) -> (bool, Option<String>) {
        let state = self.shared.lock();
        (state.is_open, state.trouble.clone())
    }

    /// Writes what there is, and gives up the file, so that another daemon can open it; then comes
    /// [`super::Done::Closed`]. Everything that comes later is refused. Whether that is over.
    pub fn begin_close(&self) -> bool {
        let mut state = self.shared.lock();
        match state.thread {
            Thread::Running => state.thread = Thread::Closing,
            Thread::Absent => state.thread = Thread::Gone,
            Thread::Closing | Thread::Gone | Thread::Elsewhere => {}
        }
        self.shared.wake.notify_one();
        state.thread != Thread::Closing
    }

    /// The same, and waits for the disk for a bounded time.
    pub fn close(&self) {
        self.begin_close();
        let state = self.shared.lock();
        let _ = self
            .shared
            .closed
            .wait_timeout_while(state, CLOSE_WAIT_MAX, |state| state.thread == Thread::Closing);
    }

    fn asked(&self, request: Request) -> Result<(), Refusal> {
        let mut state = self.shared.lock();
        writer::run(&self.shared, &mut state)?;
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

fn clip(why: &str) -> String {
    let mut end = why.len().min(WHY_BYTES_MAX);
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    why[..end].to_owned()
}
