//! Signals that come to hob itself while it runs programs.

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::time::Duration;

use hob_os::process;
use hob_os::signals::{self, Origin, Set};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Signals that end a series of runs: hob clears up, and then dies by them as it would have at once.
#[derive(Debug)]
pub(in crate::verbs) struct Interrupts {
    descriptor: OwnedFd,
    /// The mask that the caller had, which programs are to have.
    mask: Set,
    came: Cell<Option<i32>>,
}

/// SIGHUP, SIGINT, SIGQUIT, SIGTERM.
const ENDING: Set = Set::of(&[1, 2, 3, 15]);

impl Interrupts {
    /// From here on they are waited for.
    pub(in crate::verbs) fn new() -> std::io::Result<Interrupts> {
        let mask = Set(process::own_status()?.blocked);
        signals::block(ENDING)?;
        signals::note(ENDING);
        let descriptor = signals::descriptor(ENDING)?;
        Ok(Interrupts { descriptor, mask, came: Cell::new(None) })
    }

    /// Starts a command with the caller's mask; a signal that comes at this very moment is noted.
    /// No thread may be started before this has returned: it would take the signals.
    pub(in crate::verbs) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        signals::set_mask(self.mask);
        let child = command.spawn();
        signals::block(ENDING)?;
        child
    }

    /// Waits until a descriptor is readable or at its end; `false` when the time has passed, or
    /// when an interrupt came.
    pub(in crate::verbs) fn readable(&self, descriptor: BorrowedFd<'_>, within: Duration) -> bool {
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
    pub(in crate::verbs) fn pause(&self, time: Duration) {
        let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
        // Cut short by another signal, the pause was a shorter one.
        let _ = poll(&mut fds, Some(&timespec(time)));
    }

    /// The number of one that came.
    pub(in crate::verbs) fn came(&self) -> Option<i32> {
        self.take(None);
        self.came.get()
    }

    /// Waits for the end of a child. It has what the terminal sends; what a process sends to us is
    /// passed on.
    pub(in crate::verbs) fn wait_with(&self, child: &Child) -> std::io::Result<()> {
        let pidfd = process::pidfd(child.id())?;
        // What was noted while it was started.
        self.take(Some(&pidfd));
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
        let next = || signals::take_noted().or_else(|| signals::read(&self.descriptor));
        while let Some((number, origin)) = next() {
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
