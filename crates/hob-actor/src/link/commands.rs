//! What other threads want of the links, and why they may not get it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::names::{Along, Name, Names};
use super::process::{Ended, Program};
use super::table::HelloError;
use crate::api::reply::Reply;

/// Why there is no peer, or no such actor of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The worker process could not be started.
    #[error("cannot start a worker process: {0}")]
    Start(String),
    /// The two programs do not agree on what they exchange.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// The peer has ended.
    #[error("the peer has ended: {0:?}")]
    Ended(Ended),
    /// The peer has published nothing under this tag.
    #[error("the peer has no actor with this tag")]
    Tag,
    /// The peer has published an actor of another type under this tag, or does not know the type.
    #[error("the actor with this tag is of another type")]
    Type,
    /// This process was not started as a worker.
    #[error("this process was not started as a worker")]
    NoParent,
    /// The system has links already: one declaration of messages counts for all of them.
    #[error("the system has links already")]
    Linked,
    /// The system has no links.
    #[error("the system has no links; `Peers::start` says which messages travel on them")]
    Unlinked,
    /// The system ends.
    #[error("the system ends")]
    Stopped,
}

/// To be called with a link's node when it is open, or why it never will be.
pub(crate) type Ready = Reply<Result<u64, PeerError>>;
/// To be called with the name of an actor.
pub(crate) type Found = Box<dyn FnOnce(Result<Name, PeerError>, Along<'_>)>;

/// What other threads want of the links.
pub(crate) enum Command {
    Spawn(Program, Ready),
    Join(OwnedFd, Ready),
    Resolve {
        node: u64,
        actor: std::any::TypeId,
        tag: String,
        found: Found2,
    },
    Publish {
        tag: String,
        actor: std::any::TypeId,
        name: NameOf,
    },
    /// Answered when all worker processes have finished what is open, and have ended.
    Drain(Reply<()>),
    /// Answered when whoever started this process wants it to end.
    WaitForParent(Reply<()>),
    /// Which process is that peer?
    Process(u64, Reply<Option<u32>>),
}

/// As [`Found`], from another thread.
pub(crate) type Found2 = Box<dyn FnOnce(Result<Name, PeerError>, Along<'_>) + Send>;
/// Names an address of ours.
pub(crate) type NameOf = Box<dyn FnOnce(&Names) -> Name + Send>;
/// Commands that wait, and how many of them are due: a command takes its turn behind what its
/// thread has sent to the shard before, such as the actor that it is about to publish.
#[derive(Default)]
pub(crate) struct Waiting {
    commands: Mutex<VecDeque<Command>>,
    due: AtomicUsize,
}

/// The same, shared with all threads.
pub(crate) type Commands = Arc<Waiting>;

impl Waiting {
    pub(crate) fn put(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
    }

    /// One more is due.
    pub(crate) fn count_due(&self) {
        self.due.fetch_add(1, Ordering::Release);
    }

    /// All of them: nobody will perform them any more.
    pub(crate) fn take_all(&self) -> VecDeque<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn any_due(&self) -> bool {
        self.due.load(Ordering::Acquire) > 0
    }

    pub(super) fn next(&self) -> Option<Command> {
        // Only the links' thread takes any.
        if !self.any_due() {
            return None;
        }
        self.due.fetch_sub(1, Ordering::Relaxed);
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
