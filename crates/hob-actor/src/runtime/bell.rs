//! How a shard sleeps and is woken by other threads. One that has links sleeps in their epoll, and
//! its bell is one of the descriptors there: a frame wakes it as directly as a message does.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::runtime::inbox::Bell;

/// An eventfd.
#[derive(Debug)]
pub(crate) struct Doorbell(OwnedFd);

impl Doorbell {
    pub(crate) fn new() -> std::io::Result<Doorbell> {
        Ok(Doorbell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// One that another process has made.
    pub(crate) fn of(descriptor: OwnedFd) -> Doorbell {
        Doorbell(descriptor)
    }

    /// Sleeps until it rings or `at_most` is over.
    pub(crate) fn sleep(&self, at_most: Option<Duration>) {
        let mut all = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        let timeout = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
        // An interrupted sleep is a short one: the loop looks at everything anyway.
        if poll(&mut all, timeout.as_ref()).is_ok() && !all[0].revents().is_empty() {
            self.heard();
        }
    }

    /// It rang: it can ring again.
    pub(crate) fn heard(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0, &mut count);
    }

    /// Readable when it rings.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Bell for Doorbell {
    fn ring(&self) {
        // It can only fail when it rings already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}
