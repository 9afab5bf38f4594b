//! A worker process: how it is started, how it is known that it has ended, and with what.
//!
//! Its link is descriptor 0, an end of a socket pair: no path, no port, nothing that two systems
//! could share by accident. It is killed when the thread that started it ends (which is a shard's
//! thread, and so lives as long as the system), and it ends by itself when its link does.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Tells a worker process that its descriptor 0 is a link.
pub(crate) const LINK_ENV: &str = "HOB_ACTOR_LINK";

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(crate) path: PathBuf,
    arguments: Vec<OsString>,
    pub(crate) shares_memory: bool,
}

impl Program {
    /// The executable file at `path`; one without a slash is looked for in `PATH`.
    pub fn new(path: impl Into<PathBuf>) -> Program {
        Program { path: path.into(), arguments: Vec::new(), shares_memory: false }
    }

    /// One more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Program {
        self.arguments.push(argument.into());
        self
    }

    /// What goes to the worker and comes from there goes by shared memory, not by a socket; so
    /// does what it exchanges with other workers that were started so. When that is better, and
    /// what it costs: `docs/actors-peers.md`.
    #[must_use]
    pub fn shared_memory(mut self) -> Program {
        self.shares_memory = true;
        self
    }
}

/// How a process ended. Both are unknown of a peer that is not our child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

/// A started worker process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pidfd: OwnedFd,
}

impl Process {
    /// Starts a program with `link` as its descriptor 0. Its output is this process's.
    pub(crate) fn start(program: &Program, link: OwnedFd) -> std::io::Result<Process> {
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .env(LINK_ENV, "0")
            .stdin(Stdio::from(link))
            .spawn()?;
        match pidfd_of(&child) {
            Ok(pidfd) => Ok(Process { child, pidfd }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Readable when it has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Ends it, if it has not ended.
    pub(crate) fn kill(&mut self) {
        // It can only fail because it has ended.
        let _ = self.child.kill();
    }

    /// How it ended; to be asked when that is known, since it waits.
    pub(crate) fn ended(&mut self) -> Ended {
        let status = self.child.wait().ok();
        Ended {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // No worker is left behind, and no zombie. Nothing to do if it has ended.
        self.kill();
        let _ = self.child.wait();
    }
}

fn pidfd_of(child: &Child) -> std::io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or(rustix::io::Errno::SRCH)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// In a worker process: the link to whoever started it. None: it was started by hand.
pub(crate) fn inherited() -> std::io::Result<Option<OwnedFd>> {
    if std::env::var_os(LINK_ENV).is_none() {
        return Ok(None);
    }
    Ok(hob_os::uds::take_stdin()?)
}
