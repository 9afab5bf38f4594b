//! A zygote of any program: held at its own entry point, where the dynamic linker is done and
//! nothing of the program has run, and forked from there as often as one likes.
//!
//! ```text
//! start ─vfork, execve─▶ stopped ─ld.so─▶ at its entry ─▶ waits in `recvmsg` ─┐
//!                                                            │   ▲            │
//!                                                   end of file  └── clone ◀──┘
//!                                                            ▼          └─▶ a copy: takes on its
//!                                                           gone            call, jumps to the entry
//! ```
//! Owns: the few instructions that wait in the zygote (`code.rs`), and what a copy must take on
//! to be what its own `execve` would have made (`image.rs`). Invariants: a copy is a child of
//! this process, not of the zygote; it has the argv, environment, auxiliary vector, name and
//! command line of its own call, where the kernel would have put them; its thread's number and
//! robust list are its own; it is forked at most once for each ask.
//!
//! A copy shares with the others what `execve` would have drawn anew: the layout of its address
//! space, its stack guard and its pointer guard. One page of code stays mapped in it.
//!
//! Deliberately not here: for which programs that is exact (constructors of libraries that ran
//! before the entry have seen the zygote's process id and environment), and whether the files of
//! the start are still the same.

mod code;
mod image;

use std::ffi::{CStr, CString};

use hob_os::trace::{self, Child, Streams};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io;

use crate::vfork::{self, Place, Program, Traced};
use crate::{errno, last_error};
use code::Stopped;
use image::Layout;

/// A program that waits to be forked.
#[derive(Debug)]
pub struct Zygote {
    child: Child,
    socket: OwnedFd,
    layout: Layout,
    /// Which processors it may use, and so its copies.
    affinity: Vec<u8>,
    near: i32,
}

/// What a copy is to be.
#[derive(Debug, Clone, Copy)]
pub struct Copy<'a> {
    /// The last word of its argv, which is the file that was executed: a script's path.
    pub file: &'a CStr,
    /// Its environment: the same names in the same order as the zygote's.
    pub env: &'a [CString],
    /// Its working directory; the zygote's if `None`.
    pub directory: Option<BorrowedFd<'a>>,
    /// Its file mode creation mask; the zygote's if `None`.
    pub umask: Option<u32>,
    /// Where it begins.
    pub begins: Begins,
}

/// On which processor a copy begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// On that of the thread that asks: right if that goes to sleep until the copy ends. To wake
    /// an idle processor of a virtual machine takes longer than to fork.
    Near,
    /// Where the scheduler likes.
    Anywhere,
}

/// Why there is no copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkError {
    /// Nothing was forked: start the program otherwise.
    Refused(io::Errno),
    /// It may have been forked, and nothing is known of it.
    Lost,
}

/// How much longer the environment of a copy may be than the zygote's.
const SLACK_BYTES: usize = 16 * 1024;
/// How long a zygote may take to answer, in seconds: it has nothing else to do.
const ANSWER_S_MAX: i64 = 10;

impl Zygote {
    /// Starts a program and brings it to its entry. `None`: it is none that can be held there.
    /// The zygote is killed when the thread that started it ends.
    pub fn start(
        program: &Program<'_>,
        null: &OwnedFd,
        place: &Place<'_>,
    ) -> io::Result<Option<Zygote>> {
        let (socket, theirs) = socket_pair()?;
        let mut env = program.env.to_vec();
        let Some(last) = env.pop() else { return Ok(None) };
        // Room for longer values: a copy writes its own over all of them.
        let padded = [last.as_bytes(), &[b' '; SLACK_BYTES]].concat();
        env.push(CString::new(padded).map_err(|_| io::Errno::INVAL)?);
        let streams = Streams { stdin: &theirs, stdout: null, stderr: null };
        let place = Place { traced: Traced::Yes, ..*place };
        let child = vfork::start(&Program { env: &env, ..*program }, &streams, &place)?;
        drop(theirs);
        let affinity = affinity_of(child.pid).inspect_err(|_| trace::discard(&child))?;
        let prepared = Stopped::at_entry(child.pid)
            .and_then(|stopped| stopped.map(|stopped| prepare(&stopped)).transpose());
        match prepared {
            Ok(Some(layout)) => Ok(Some(Zygote { child, socket, layout, affinity, near: -1 })),
            Ok(None) => {
                trace::discard(&child);
                Ok(None)
            }
            Err(error) => {
                trace::discard(&child);
                Err(error)
            }
        }
    }

    /// The files that its start has mapped: its own, the dynamic linker, the libraries.
    pub fn files(&self) -> io::Result<Vec<Vec<u8>>> {
        let maps = std::fs::read(format!("/proc/{}/maps", self.child.pid))
            .map_err(|error| errno(&error))?;
        let mut files: Vec<Vec<u8>> = Vec::new();
        for line in maps.split(|byte| *byte == b'\n') {
            let Some(at) = line.iter().position(|byte| *byte == b'/') else { continue };
            if files.last().is_none_or(|last| *last != line[at..]) {
                files.push(line[at..].to_vec());
            }
        }
        Ok(files)
    }

    /// Forks a copy. The streams' descriptors must be above 2.
    pub fn fork(&mut self, copy: &Copy<'_>, streams: &Streams<'_>) -> Result<Child, ForkError> {
        let mask = match copy.begins {
            Begins::Near => {
                self.come_near();
                &self.affinity[..]
            }
            Begins::Anywhere => {
                self.stay_away();
                &[]
            }
        };
        let (message, strings_bytes) =
            self.layout.message(copy, mask).map_err(ForkError::Refused)?;
        let fds = [streams.stdin, streams.stdout, streams.stderr].map(AsRawFd::as_raw_fd);
        let directory = copy.directory.map(|fd| fd.as_raw_fd());
        let fds: Vec<i32> = fds.into_iter().chain(directory).collect();
        send(&self.socket, &message, &fds).map_err(ForkError::Refused)?;
        self.layout.sent(strings_bytes);
        let mut answer = [0; 8];
        let read = io::retry_on_intr(|| io::read(&self.socket, &mut answer));
        if read.ok() != Some(answer.len()) {
            // Whatever it was doing, it does no more.
            trace::discard(&self.child);
            return Err(ForkError::Lost);
        }
        let answer = i64::from_ne_bytes(answer);
        let Ok(pid) = u32::try_from(answer) else {
            let code = i32::try_from(-answer).unwrap_or(libc::EIO);
            return Err(ForkError::Refused(io::Errno::from_raw_os_error(code)));
        };
        // SAFETY: touches no memory; the copy is this process's child and was not waited for.
        unsafe {
            // The copy does the same: whoever is first.
            libc::setpgid(pid.cast_signed(), pid.cast_signed());
        }
        trace::with_pidfd(pid).map_err(ForkError::Refused)
    }

    /// Moves the zygote to this thread's processor; a copy puts its own mask back.
    fn come_near(&mut self) {
        // SAFETY: touches no memory.
        let here = unsafe { libc::sched_getcpu() };
        if here >= 0 && here != self.near {
            let mut mask = vec![0; self.affinity.len()];
            let at = usize::try_from(here).unwrap_or(0);
            if let Some(byte) = mask.get_mut(at / 8) {
                *byte = 1 << (at % 8);
                set_affinity(self.child.pid, &mask);
                self.near = here;
            }
        }
    }

    fn stay_away(&mut self) {
        if self.near >= 0 {
            set_affinity(self.child.pid, &self.affinity);
            self.near = -1;
        }
    }
}

impl Drop for Zygote {
    /// It ends by itself at the end of its socket; nobody waits for that.
    fn drop(&mut self) {
        trace::discard(&self.child);
    }
}

fn prepare(stopped: &Stopped) -> io::Result<Layout> {
    let layout = Layout::of(stopped)?;
    stopped.settle(layout.parts(), layout.stack())?;
    Ok(layout)
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two descriptors, which nobody else has.
    let (ours, theirs) = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) < 0 {
            return Err(last_error());
        }
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    };
    let limit = libc::timeval { tv_sec: ANSWER_S_MAX, tv_usec: 0 };
    let size = u32::try_from(size_of_val(&limit)).unwrap_or(0);
    // SAFETY: the option's value is read from `limit`, of that size.
    unsafe {
        let value = (&raw const limit).cast();
        libc::setsockopt(ours.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, size);
    }
    Ok((ours, theirs))
}

/// Sends a message with descriptors, whole or not at all.
fn send(socket: &OwnedFd, message: &[u8], fds: &[i32]) -> io::Result<()> {
    const FDS_MAX: usize = 4;
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part =
        libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let count = fds.len().min(FDS_MAX);
    let bytes = u32::try_from(count * 4).unwrap_or(0);
    // SAFETY: all zero is a valid header; the control buffer is aligned and has room for four
    // descriptors; the kernel reads what the header names, all of which outlives the call.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(bytes) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(bytes) as _;
        std::ptr::copy_nonoverlapping(fds.as_ptr().cast(), libc::CMSG_DATA(first), count * 4);
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(last_error()) } else { Ok(()) }
}

/// The processors that a process may use, as the kernel has them.
fn affinity_of(pid: u32) -> io::Result<Vec<u8>> {
    let mut mask = vec![0_u8; 1024];
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let got =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, pid, mask.len(), mask.as_mut_ptr()) };
    mask.truncate(usize::try_from(got).map_err(|_| last_error())?);
    Ok(mask)
}

fn set_affinity(pid: u32, mask: &[u8]) {
    // SAFETY: the kernel reads so many bytes. That it refuses costs time and nothing else.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, pid, mask.len(), mask.as_ptr()) };
}

#[cfg(test)]
mod tests;
