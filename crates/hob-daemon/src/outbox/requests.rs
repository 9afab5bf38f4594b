//! What waits for the outbox's thread, and how it gathers into batches.
//!
//! While one batch is being synced, the next gathers. One that has fewer messages than the one
//! before waits for those who were just answered, for a part of what a sync takes. Ends of
//! deliveries alone are gathered for a moment, as nobody waits for them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::id::MessageId;
use super::store::Change;
use super::{Message, Notify, Which};

/// How many requests make a batch at most: a sync is shared by so many.
const BATCH_MAX: usize = 1024;
/// How many bytes of messages make a batch at most, but for the last message.
const BATCH_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How long ends of deliveries gather while nobody waits.
const GATHER: Duration = Duration::from_millis(5);
/// Who was just answered may be about to tell again, and a sync carries one message or all. So a
/// batch with fewer than the one before waits for them, for this part of what that one took.
const PATIENCE: u32 = 4;

/// What the daemon's loop and the outbox's thread share.
pub(super) struct Shared {
    pub(super) state_dir: Option<PathBuf>,
    pub(super) state: Mutex<State>,
    /// The thread waits here.
    pub(super) wake: Condvar,
    /// Who closes waits here.
    pub(super) closed: Condvar,
}

pub(super) struct State {
    pub(super) requests: VecDeque<Request>,
    /// How many of them are new messages.
    pub(super) accepts: usize,
    /// Whether somebody waits for one of them.
    pub(super) awaited: bool,
    /// The thread waits for so many messages; 0: it does not.
    pub(super) wanted: usize,
    /// Messages on the disk, or on their way to it.
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) dead: u64,
    /// Messages that are finished, and on the disk until that is written: the next daemon would
    /// give them again.
    pub(super) ending: u64,
    pub(super) thread: Thread,
    /// Whether this process has the file open.
    pub(super) is_open: bool,
    /// Why the store cannot be used now.
    pub(super) trouble: Option<String>,
    pub(super) notify: Option<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thread {
    /// There is none: nothing was ever told.
    Absent,
    Running,
    /// It is to write what there is, and leave.
    Closing,
    Gone,
    /// There is none here: the user's daemon has the outbox.
    Elsewhere,
}

#[derive(Debug)]
pub(super) enum Request {
    Accept(Message, Came),
    /// A change that nobody waits for, and how many messages and bytes it frees.
    End(Change, u64),
    Read(MessageId),
    List(u64),
    Drop(u64, Which),
    Revive(u64, Which),
}

/// Whether a message may be one that its sender has sent before, to an earlier daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It is not.
    Once,
    /// It may be: what was drawn for it, in its id, tells.
    PerhapsAgain,
}

impl Request {
    pub(super) fn accepts(&self) -> Option<MessageId> {
        match self {
            Request::Accept(message, _) => Some(message.id),
            Request::End(..)
            | Request::Read(_)
            | Request::List(_)
            | Request::Drop(..)
            | Request::Revive(..) => None,
        }
    }
}

/// What the batch before this one was.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Last {
    /// How many messages were accepted.
    pub(super) accepts: usize,
    /// How long that took.
    pub(super) took: Duration,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state_dir", &self.state_dir).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn request(&self, mut state: MutexGuard<'_, State>, request: Request) {
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

    /// Waits so long, whatever is asked meanwhile; `false`: the outbox is to close.
    pub(super) fn pause(&self, wait: Duration) -> bool {
        let runs = |state: &mut State| state.thread == Thread::Running;
        let waited = self.wake.wait_timeout_while(self.lock(), wait, runs);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.thread == Thread::Running
    }

    /// Waits for a batch; `None` when all is written and the outbox is to close. Comes back with
    /// an empty batch after `wait`. As many as `last` says were just answered.
    pub(super) fn gather(&self, wait: Option<Duration>, last: Last) -> Option<Vec<Request>> {
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
            if let Request::Accept(message, _) = &request {
                state.accepts -= 1;
                bytes += message.bytes();
            }
            batch.push(request);
        }
        state.awaited = state.requests.iter().any(|left| !matches!(left, Request::End(..)));
        Some(batch)
    }
}
