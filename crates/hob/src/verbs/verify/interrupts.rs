//! Signals that come to `hob verify` itself while programs run.

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::time::Duration;

use hob_os::process;
use hob_os::signals::{self, Origin, Set};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Signals that end a verification: it clears up, and then dies by them as it would have at once.
#[derive(Debug)]
pub(super) struct Interrupts {
    descriptor: OwnedFd,
    /// The mask that the caller had, which programs are to have.
    mask: Set,
    came: Cell<Option<i32>>,
}

/// SIGHUP, SIGINT, SIGQUIT, SIGTERM.
const ENDING: Set = Set::of(&[1, 2, 3, 15]);

impl Interrupts {
    /// From here on they are waited for.
    pub(super) fn new() -> std::io::Result<Interrupts> {
        let mask = Set(process::own_status()?.blocked);
        signals::block(ENDING)?;
        let descriptor = signals::descriptor(ENDING)?;
        Ok(Interrupts { descriptor, mask, came: Cell::new(None) })
    }

    /// Starts a command with the caller's mask. A signal that comes at this very moment ends us at
    /// once. No thread may be started before this has returned: it would take the signals.
    pub(super) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        signals::set_mask(self.mask);
        let child = command.spawn();
        signals::block(ENDING)?;
        child
    }

    /// Waits until a descriptor is readable or at its end; `false` when the time has passed, or
    /// when an interrupt came.
    pub(super) fn readable(&self, descriptor: BorrowedFd<'_>, within: Duration) -> bool {
        let mut fds = [
            PollFd::from_borrowed_fd(descriptor, PollFlags::IN),
            PollFd::new(&self.descriptor, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timespec(within))) {
            Ok(_) => !fds[0].revents().is_empty() && fds[1].revents().is_empty(),
            Err(_) => false,
        }
    }

    /// Lets this time pass, unless an interrupt comes.
    pub(super) fn pause(&self, time: Duration) {
        let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
        // Cut short by another signal, the pause was a shorter one.
        let _ = poll(&mut fds, Some(&timespec(time)));
    }

    /// The number of one that came.
    pub(super) fn came(&self) -> Option<i32> {
        self.take(None);
        self.came.get()
    }

    /// Waits for the end of a child. It has what the terminal sends; what a process sends to us is
    /// passed on.
    pub(super) fn wait_with(&self, child: &Child) -> std::io::Result<()> {
        let pidfd = process::pidfd(child.id())?;
        loop {
            let mut fds =
                [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                polled => _ = polled?,
            }
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            self.take(Some(&pidfd));
        }
    }

    fn take(&self, pass_to: Option<&OwnedFd>) {
        while let Some((number, origin)) = signals::read(&self.descriptor) {
            self.came.set(Some(number));
            if let (Some(pidfd), Origin::Process) = (pass_to, origin) {
                // One that has just ended needs no signal.
                let _ = process::signal(pidfd, u8::try_from(number).unwrap_or(15));
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
