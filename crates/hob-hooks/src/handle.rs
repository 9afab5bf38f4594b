//! Submitting and cancelling from other threads: a queue, and a descriptor that wakes the runner.
//!
//! The lock is held for a push or a swap only, never while anything is started or waited for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io;

use crate::event::SetId;
use crate::set::Set;

/// What a handle asks of its runner.
#[derive(Debug)]
pub(crate) enum Asked {
    Submit(SetId, Set),
    Cancel(SetId, Duration),
    Drain,
    CancelAll(Duration),
}

#[derive(Debug)]
pub(crate) struct Shared {
    asked: Mutex<Vec<Asked>>,
    next: Arc<AtomicU64>,
    closed: AtomicBool,
    pub(crate) wake: OwnedFd,
}

impl Shared {
    pub(crate) fn new() -> io::Result<Shared> {
        Shared::counting(Arc::new(AtomicU64::new(1)))
    }

    /// One whose sets are not numbered as this one's are.
    pub(crate) fn beside(&self) -> io::Result<Shared> {
        Shared::counting(self.next.clone())
    }

    fn counting(next: Arc<AtomicU64>) -> io::Result<Shared> {
        Ok(Shared {
            asked: Mutex::new(Vec::new()),
            next,
            closed: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub(crate) fn next_id(&self) -> SetId {
        SetId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What was asked since the last time.
    pub(crate) fn take(&self) -> Vec<Asked> {
        let _ = io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, asked: Asked) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        self.knock();
    }

    /// Lets the runner look at what there is.
    pub(crate) fn knock(&self) {
        // It fails only when it is readable already.
        let _ = io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// The runner was closed: it takes nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// A runner, as other threads see it.
#[derive(Debug, Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Submits a set. Bounding how many wait is the caller's business.
    pub fn submit(&self, set: Set) -> Result<SetId, Closed> {
        if self.0.is_closed() {
            return Err(Closed);
        }
        let id = self.0.next_id();
        self.0.push(Asked::Submit(id, set));
        Ok(id)
    }

    /// Cancels a set: see [`crate::Runner::cancel`]. One that has ended already is left alone.
    pub fn cancel(&self, set: SetId, grace: Duration) {
        self.0.push(Asked::Cancel(set, grace));
    }

    /// Begins no further set: see [`crate::Runner::drain`].
    pub fn drain(&self) {
        self.0.push(Asked::Drain);
    }

    /// Cancels every set: see [`crate::Runner::cancel_all`].
    pub fn cancel_all(&self, grace: Duration) {
        self.0.push(Asked::CancelAll(grace));
    }

    /// Lets [`crate::Runner::serve`] return when everything submitted has ended.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.knock();
    }
}
