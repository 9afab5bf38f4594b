//! Holding a child before its first own instruction: it has executed its file, the dynamic linker
//! has done its work, and nothing of the program itself has run.
//!
//! ```text
//! started, traced ─▶ executed ─▶ towards_entry ─▶ arrived ─▶ release ─▶ it runs, untraced
//!                                  └───── watched_to_entry ─────┘
//! ```
//! All of it happens on the thread that started the child. It waits for the first stop, which
//! comes with the end of the `execve`, and for the second only when the child is needed: a stop
//! that nobody waits for wakes nobody. Invariants: after [`release`] nobody traces the child, and
//! nothing of its memory differs from what it would be.

use std::ffi::c_int;

use rustix::io;

use super::{
    Entry, Stop, Until, at_entry, break_at_entry, looks, plain, poll, ptrace, resume, within_bound,
};
use crate::trace::Looks;

const DETACH: c_int = 17;
const SETOPTIONS: c_int = 0x4200;
const PEEKSIGINFO: c_int = 0x4209;
const PEEK_OWN: u64 = 0;
const PEEK_SHARED: u64 = 1;
/// `TRACESYSGOOD` and `EXITKILL`.
const OPTIONS: usize = 0x1 | 0x10_0000;

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

/// Lets a child run from its execution to its entry, and tells of each system call on the way as
/// it begins. `false`: nothing comes before its entry, and it stands where it was.
pub fn watched_to_entry(pid: u32, learn: &mut dyn FnMut(Looks)) -> Result<bool, NotHeld> {
    let Some(entry) = break_at_entry(pid)? else { return Ok(false) };
    loop {
        resume(pid, Until::Call, 0)?;
        match stop(pid)? {
            Stop::Trap if at_entry(pid, &entry)? => return Ok(true),
            Stop::Call => learn(looks(pid)?),
            _ => return Err(NotHeld::Disturbed),
        }
    }
}

/// Sends a child on its way from its execution to its entry, where it will stand. `None`: nothing
/// comes before that, and it stands where it was.
pub fn towards_entry(pid: u32) -> Result<Option<Entry>, NotHeld> {
    let entry = break_at_entry(pid)?;
    if entry.is_some() {
        resume(pid, Until::Event, 0)?;
    }
    Ok(entry)
}

/// Waits until a child that was sent on its way stands at its entry.
pub fn arrived(pid: u32, entry: &Entry) -> Result<(), NotHeld> {
    match stop(pid)? {
        Stop::Trap if at_entry(pid, entry)? => Ok(()),
        _ => Err(NotHeld::Disturbed),
    }
}

/// Ends the tracing of a child that stands still, and lets it go. Refused if somebody has sent it
/// a signal meanwhile, which a process that is started now would not have.
pub fn release(pid: u32) -> Result<(), NotHeld> {
    for from in [PEEK_OWN, PEEK_SHARED] {
        // The offset; then flags and, in the upper half, how many.
        let ask = [0, from | 1 << 32];
        let mut signal = [0_u64; 16];
        let asked = std::ptr::from_ref(&ask).addr();
        // SAFETY: both are live objects of the sizes that the kernel takes: its arguments, and one
        // siginfo of 128 bytes; everything else it checks.
        let count = unsafe {
            libc::syscall(libc::SYS_ptrace, PEEKSIGINFO, pid, asked, signal.as_mut_ptr())
        };
        if count != 0 {
            return Err(NotHeld::Disturbed);
        }
    }
    Ok(ptrace(DETACH, pid, 0, plain(0))?)
}

/// The next stop of a child, waited for within the bound.
fn stop(pid: u32) -> Result<Stop, NotHeld> {
    match within_bound(|| poll(pid))? {
        Stop::Ended { .. } => Err(NotHeld::Disturbed),
        stop => Ok(stop),
    }
}
