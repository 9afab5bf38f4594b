//! The waker of a continuation while it is polled: it lies on the stack and costs nothing unless a
//! future keeps it. A kept one is a counted reference, and wakes the task through its shard's
//! inbox, from any thread.
//!
//! One of the three modules with `unsafe` code: `std::task::Wake` would need an allocation for
//! each poll. Miri runs over its tests.
#![expect(unsafe_code, reason = "a waker without an allocation is a table of functions")]

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};

use crate::runtime::places::ShardInbox;
use crate::shard::Shard;

/// What a borrowed waker knows.
pub(crate) struct Scope<'a> {
    inbox: &'a Arc<ShardInbox>,
    task: u32,
}

/// A waker that somebody has kept.
struct Kept {
    inbox: Arc<ShardInbox>,
    task: u32,
}

impl Wake for Kept {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The shard may have ended, and its tasks with it.
        let _ = self.inbox.put(Shard::wake_parcel(self.task));
    }
}

static BORROWED: RawWakerVTable = RawWakerVTable::new(keep, wake, wake, |_| {});

unsafe fn keep(scope: *const ()) -> RawWaker {
    // SAFETY: a borrowed waker's pointer is to a scope that outlives it, see `Scope::poll_with`.
    let scope = unsafe { &*scope.cast::<Scope<'_>>() };
    let kept = Kept { inbox: Arc::clone(scope.inbox), task: scope.task };
    let waker = ManuallyDrop::new(Waker::from(Arc::new(kept)));
    RawWaker::new(waker.data(), waker.vtable())
}

unsafe fn wake(scope: *const ()) {
    // SAFETY: as in `keep`. A borrowed waker is never owned by its user, so `wake` by value does
    // not happen to it; if it did, there would be nothing to free.
    let scope = unsafe { &*scope.cast::<Scope<'_>>() };
    let _ = scope.inbox.put(Shard::wake_parcel(scope.task));
}

impl<'a> Scope<'a> {
    pub(crate) fn new(inbox: &'a Arc<ShardInbox>, task: u32) -> Scope<'a> {
        Scope { inbox, task }
    }

    /// Polls with a waker that is valid while this lasts.
    #[inline]
    pub(crate) fn poll_with<R>(&self, poll: impl FnOnce(&Waker) -> R) -> R {
        let raw = RawWaker::new((&raw const *self).cast(), &BORROWED);
        // SAFETY: the functions keep to the contract of wakers: cloning makes a counted one, waking
        // is thread-safe (an inbox may be used from anywhere), dropping does nothing. Only a
        // reference is handed out, and `self` outlives it.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw) });
        poll(&waker)
    }

    /// Whether a waker is this borrowed one.
    pub(crate) fn is(waker: &Waker, scope: *const ()) -> bool {
        waker.data() == scope
    }

    /// What `is` compares.
    pub(crate) fn mark(&self) -> *const () {
        (&raw const *self).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::bell::Doorbell;
    use crate::runtime::inbox::Inbox;

    #[test]
    fn a_borrowed_waker_becomes_a_counted_one_when_it_is_kept() {
        let inbox = Arc::new(Inbox::new(Doorbell::new().unwrap()));
        let scope = Scope::new(&inbox, 7);
        let kept = scope.poll_with(|waker| {
            waker.wake_by_ref();
            assert!(Scope::is(waker, scope.mark()));
            waker.clone()
        });
        assert!(!Scope::is(&kept, scope.mark()));
        let other = kept.clone();
        std::thread::spawn(move || other.wake()).join().unwrap();
        kept.wake_by_ref();
        assert_eq!(Arc::strong_count(&inbox), 2);
        drop(kept);
        assert_eq!(Arc::strong_count(&inbox), 1);
        assert_eq!(inbox.close().len(), 3);
    }
}
