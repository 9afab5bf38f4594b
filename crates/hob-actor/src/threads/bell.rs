//! How a shard sleeps: in one `poll` over its bell and whatever descriptors its edge waits for, so
//! that a frame from a peer wakes it as directly as a message from a thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::inbox::Bell;

/// An eventfd.
#[derive(Debug)]
pub(crate) struct Doorbell(OwnedFd);

impl Doorbell {
    pub(crate) fn new() -> std::io::Result<Doorbell> {
        Ok(Doorbell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Sleeps until it rings, one of `others` can be read, or `at_most` is over.
    pub(crate) fn sleep(&self, others: &[BorrowedFd<'_>], at_most: Option<Duration>) {
        let bell = PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN);
        let edges = others.iter().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = std::iter::once(bell).chain(edges).collect();
        let timeout = at_most.and_then(|at_most| Timespec::try_from(at_most).ok());
        // An interrupted sleep is a short one: the loop looks at everything anyway.
        if poll(&mut all, timeout.as_ref()).is_ok() && !all[0].revents().is_empty() {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.0, &mut count);
        }
    }
}

impl Bell for Doorbell {
    fn ring(&self) {
        // It can only fail when it rings already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}
