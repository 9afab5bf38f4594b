//! Starting hooks: a child by `vfork`, and a shell that is forked at its own entry.
//!
//! ```text
//! vfork   a new process that shares this one's memory until it has executed its file
//! zygote  a shell that was started once by vfork, waits at its entry, and is forked for each hook
//! ```
//! A crate of its own: `zygote` puts code into another process, which nothing else of hob does, and
//! only hooks are started so. Mechanism only; for which shells a fork is exact, `hob-hooks` says.
//! Each `unsafe` block says why it is sound.

pub mod vfork;
#[cfg(target_arch = "x86_64")]
pub mod zygote;

use rustix::io;

/// The error number of an error of the system.
fn errno(error: &std::io::Error) -> io::Errno {
    io::Errno::from_io_error(error).unwrap_or(io::Errno::IO)
}

/// The error of the last call to the C library on this thread.
fn last_error() -> io::Errno {
    errno(&std::io::Error::last_os_error())
}
