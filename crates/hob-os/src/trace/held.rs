//! Holding a child before its first own instruction: it has executed its file, the dynamic linker
//! has done its work, and nothing of the program itself has run.
//!
//! ```text
//! vfork::start(Traced::Yes) ─▶ executed ─▶ to_entry ─▶ leave_stopped ─▶ (nobody traces it) ─ SIGCONT ─▶ runs
//! ```
//! All of it but the signal happens on the thread that started the child, which waits for each
//! stop of exactly that child. Invariants: after [`leave_stopped`] nobody traces the child, and
//! nothing of its memory differs from what it would be; whoever sends it SIGCONT lets it run, even
//! if that comes before it stands still.

use std::ffi::c_int;

use rustix::io;

use super::{Stop, Until, at_entry, break_at_entry, looks, plain, ptrace, resume, wait};
use crate::trace::Looks;
use crate::vfork::Child;
use crate::{process, spawn};

const DETACH: c_int = 17;
const SETOPTIONS: c_int = 0x4200;
/// `TRACESYSGOOD` and `EXITKILL`.
const OPTIONS: usize = 0x1 | 0x10_0000;

/// Where a child stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It has executed its file, and no instruction more: it has no dynamic linker.
    Executed,
    /// At its own entry: the dynamic linker is done.
    Entry,
}

/// Why a child cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotHeld {
    /// It ended, or somebody sent it a signal.
    Disturbed,
    /// The kernel refused.
    Refused(io::Errno),
}

impl From<io::Errno> for NotHeld {
    fn from(errno: io::Errno) -> NotHeld {
        NotHeld::Refused(errno)
    }
}

/// Waits until a child has executed its file.
pub fn executed(pid: u32) -> Result<(), NotHeld> {
    match stop(pid)? {
        Stop::Trap => Ok(ptrace(SETOPTIONS, pid, 0, plain(OPTIONS))?),
        _ => Err(NotHeld::Disturbed),
    }
}

/// Lets a child run from its execution to its entry. With `learn`, each system call on the way
/// is told of as it begins.
pub fn to_entry(pid: u32, mut learn: Option<&mut dyn FnMut(Looks)>) -> Result<Stands, NotHeld> {
    let Some(entry) = break_at_entry(pid)? else { return Ok(Stands::Executed) };
    let until = if learn.is_some() { Until::Call } else { Until::Event };
    loop {
        resume(pid, until, 0)?;
        match stop(pid)? {
            Stop::Trap if at_entry(pid, &entry)? => return Ok(Stands::Entry),
            Stop::Call => {
                if let Some(learn) = &mut learn {
                    learn(looks(pid)?);
                }
            }
            _ => return Err(NotHeld::Disturbed),
        }
    }
}

/// Ends the tracing of a child that stands still, and leaves it stopped.
pub fn leave_stopped(pid: u32) -> io::Result<()> {
    let stop = usize::try_from(libc::SIGSTOP).unwrap_or(0);
    ptrace(DETACH, pid, 0, plain(stop))
}

/// Lets a child go on that was left stopped.
pub fn release(child: &Child) -> io::Result<()> {
    process::signal(&child.pidfd, SIGCONT)
}

/// Ends a child that was held, or is being held by this thread, and waits for it.
pub fn discard(child: &Child) {
    // One that was waited for already refuses, and its number may be another's by now.
    if process::signal(&child.pidfd, SIGKILL).is_ok() {
        let _ = spawn::wait(child.pid, spawn::Wait::Block);
    }
}

const SIGCONT: u8 = 18;
const SIGKILL: u8 = 9;

/// The next stop of a child, waited for.
fn stop(pid: u32) -> Result<Stop, NotHeld> {
    loop {
        match wait(pid, 0) {
            Ok(Some(Stop::Ended { .. })) => return Err(NotHeld::Disturbed),
            Ok(Some(stop)) => return Ok(stop),
            Ok(None) | Err(io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, CString};

    use rustix::fd::OwnedFd;

    use super::*;
    use crate::spawn::{Wait, Waited};
    use crate::trace::Streams;
    use crate::vfork::{self, Place, Program, Traced};

    fn started(argv: &[&CStr], out: &OwnedFd) -> vfork::Child {
        let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        let streams = Streams { stdin: &null, stdout: out, stderr: out };
        let env = [CString::new("PATH=/usr/bin:/bin").unwrap()];
        let program = Program { file: argv[0], argv, env: &env };
        vfork::start(&program, &streams, &Place { traced: Traced::Yes, ..Place::default() })
            .unwrap()
    }

    fn status(pid: u32) -> String {
        std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap()
    }

    #[test]
    fn a_child_that_is_held_has_done_nothing_and_then_does_everything() {
        let (out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let script = c"grep TracerPid /proc/$$/status; echo $$; exit 7";
        let child = started(&[c"/bin/sh", c"-c", script], &out_in);
        let mut seen = Vec::new();
        executed(child.pid).unwrap();
        let stands = to_entry(child.pid, Some(&mut |looks| seen.push(looks))).unwrap();
        assert_eq!(stands, Stands::Entry);
        leave_stopped(child.pid).unwrap();
        assert!(seen.contains(&Looks::AtFile(b"/etc/ld.so.cache".to_vec())), "{seen:?}");
        let world = seen.iter().any(|one| matches!(one, Looks::AtWorld(_)));
        assert!(!world, "a shell's start looks at files only: {seen:?}");
        assert!(status(child.pid).contains("TracerPid:\t0\n"));
        release(&child).unwrap();
        assert!(matches!(spawn::wait(child.pid, Wait::Block), Ok(Waited::Ended(0x700, ..))));
        let mut bytes = [0; 4096];
        let len = io::read(&out, &mut bytes).unwrap();
        let want = format!("TracerPid:\t0\n{}\n", child.pid);
        assert_eq!(String::from_utf8_lossy(&bytes[..len]), want);
    }

    #[test]
    fn a_child_that_is_killed_while_it_is_held_says_so() {
        let (_out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let child = started(&[c"/bin/sh", c"-c", c":"], &out_in);
        crate::process::signal(&child.pidfd, 9).unwrap();
        let held = executed(child.pid).and_then(|()| to_entry(child.pid, None));
        assert_eq!(held, Err(NotHeld::Disturbed));
    }

    #[test]
    fn a_child_that_is_not_wanted_is_gone() {
        let (_out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let child = started(&[c"/bin/sh", c"-c", c":"], &out_in);
        executed(child.pid).unwrap();
        to_entry(child.pid, None).unwrap();
        leave_stopped(child.pid).unwrap();
        discard(&child);
        assert_eq!(spawn::wait(child.pid, Wait::Poll).err(), Some(io::Errno::CHILD));
    }
}
