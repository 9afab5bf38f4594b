//! A hook that runs: its process here or at the daemon, its streams, its deadlines.

use std::time::Duration;

use hob_core::hooks::HookRecord;
use hob_entryfork::vfork::Launch;
use hob_os::trace::Child;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::capture::Captured;
use crate::warm::Calling;

/// A hook that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) generation: u32,
    pub(super) process: Process,
    pub(super) out: Captured,
    pub(super) out_open: bool,
    pub(super) err: Captured,
    pub(super) err_open: bool,
    /// The hook's ends of its streams, where they are kept.
    pub(super) theirs: Option<[OwnedFd; 2]>,
    pub(super) since_ns: u64,
    pub(super) warn_at_ns: Option<u64>,
    pub(super) kill_at_ns: Option<u64>,
    pub(super) ending: Ending,
    pub(super) record: HookRecord,
}

/// Who runs it.
#[derive(Debug)]
pub(super) enum Process {
    /// A child of this process.
    Own {
        /// The child.
        child: Child,
        /// Whether it has executed its file, where nobody waited for that.
        launch: Option<Launch>,
        /// When it was started, and where a daemon wants its end reported.
        report: Option<(u64, OwnedFd)>,
    },
    /// A worker of the daemon's.
    Warm(Calling),
}

/// Whether a hook is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is not.
    No,
    /// It ran out of time.
    TimedOut,
    /// Its set was cancelled.
    Cancelled,
}

impl Running {
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        let answer = match &self.process {
            Process::Own { .. } => None,
            Process::Warm(calling) => calling.due_ns(),
        };
        [self.warn_at_ns, self.kill_at_ns, answer].into_iter().flatten().min()
    }

    /// What its end shows on.
    pub(super) fn end(&self) -> &OwnedFd {
        match &self.process {
            Process::Own { child, .. } => &child.pidfd,
            Process::Warm(calling) => &calling.socket,
        }
    }

    /// Signals its process group, which its unreaped leader holds in existence; or lets the
    /// daemon signal its program.
    pub(super) fn signal(&self, signal: Signal) {
        match &self.process {
            Process::Own { child, .. } => {
                let group = i32::try_from(child.pid).ok().and_then(Pid::from_raw);
                if let Some(group) = group {
                    // It may have nobody left who may be signalled; its end is on its way.
                    let _ = kill_process_group(group, signal);
                }
            }
            Process::Warm(calling) if signal == Signal::KILL => calling.leave(),
            Process::Warm(calling) => {
                calling.signal(u8::try_from(signal.as_raw()).unwrap_or(0));
            }
        }
    }

    /// Asks it to end, and sets the time at which it is made to.
    pub(super) fn ask_to_end(&mut self, ending: Ending, grace: Duration, now_ns: u64) {
        if self.ending == Ending::No {
            self.ending = ending;
        }
        if grace.is_zero() {
            self.kill_at_ns = None;
            return self.signal(Signal::KILL);
        }
        self.signal(Signal::TERM);
        // What was stopped takes the signal only when it goes on.
        self.signal(Signal::CONT);
        self.kill_at_ns = Some(now_ns.saturating_add(nanos(grace)));
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
