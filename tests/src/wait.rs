//! Waiting for what will happen: each wait has a bound and ends as soon as its condition holds.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};

/// How long anything may take on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);
/// How often a condition without a descriptor is looked at.
const EVERY: Duration = Duration::from_millis(5);

/// Looks until there is something, and returns it; `None` when the bound has passed.
pub fn look<T>(bound: Duration, condition: impl FnMut() -> Option<T>) -> Option<T> {
    look_every(EVERY, bound, condition)
}

/// The same with a pause between two looks, where a look starts a process.
pub fn look_every<T>(
    pause: Duration,
    bound: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = condition() {
            return Some(found);
        }
        if start.elapsed() > bound {
            return None;
        }
        // sleeps: between two looks at a mark, within the bound.
        std::thread::sleep(pause);
    }
}

/// Looks until there is something; panics with `what` when it does not come.
///
/// # Panics
/// When [`LONG`] has passed.
pub fn until<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    look(LONG, condition).unwrap_or_else(|| panic!("waited in vain: {what}"))
}

/// Waits until a descriptor is readable or at its end: `false` when the bound has passed.
#[must_use]
pub fn readable(fd: impl AsFd, bound: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    let time = Timespec {
        tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(bound.subsec_nanos()),
    };
    matches!(poll(&mut fds, Some(&time)), Ok(ready) if ready > 0)
}

/// Waits until a process has ended: `false` when the bound has passed.
#[must_use]
pub fn ended(pid: u32, bound: Duration) -> bool {
    match pidfd(pid) {
        Some(fd) => readable(fd, bound),
        None => true,
    }
}

/// A pidfd; `None` if there is no such process.
#[must_use]
pub fn pidfd(pid: u32) -> Option<OwnedFd> {
    hob_os::process::pidfd(pid).ok()
}
