//! What `/proc` says of a process, its descriptors, and pidfds.

pub mod inherited;
pub mod limits;
pub mod near;
pub mod processors;

use std::cell::Cell;

use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What one read of `/proc/self/status` says of the caller's world.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The file mode creation mask.
    pub umask: u32,
    /// Ignored signals: bit n-1 is signal n.
    pub ignored: u64,
    /// Blocked signals, likewise.
    pub blocked: u64,
    /// Who traces this process; 0 is nobody.
    pub tracer: u32,
    /// The lines that a worker cannot take on afterwards: ids, groups, capabilities,
    /// confinement. Equal bytes mean an equal context.
    pub context: Vec<u8>,
}

/// The fields of `/proc/PID/status` that make the context.
const CONTEXT: [&[u8]; 11] = [
    b"Uid:",
    b"Gid:",
    b"Groups:",
    b"CapInh:",
    b"CapPrm:",
    b"CapEff:",
    b"CapBnd:",
    b"CapAmb:",
    b"NoNewPrivs:",
    b"Seccomp:",
    b"Seccomp_filters:",
];

/// Reads `/proc/self/status`. One read gives what would otherwise take forty calls (umask, each
/// signal's disposition) or could not be had at all (tracer, seccomp).
pub fn own_status() -> io::Result<Status> {
    let file =
        rustix::fs::open(c"/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // The file has about 1,500 bytes; what follows the fields read here may be cut off.
    let mut buffer = [0; 2048];
    let mut len = 0;
    while len < buffer.len() {
        match io::read(&file, &mut buffer[len..])? {
            0 => break,
            read => len += read,
        }
    }
    Ok(parse_status(&buffer[..len]))
}

/// The same of another process.
pub fn status_of(pid: u32) -> io::Result<Status> {
    let text = std::fs::read(format!("/proc/{pid}/status"));
    text.map(|text| parse_status(&text))
        .map_err(|error| io::Errno::from_io_error(&error).unwrap_or(io::Errno::IO))
}

/// Whether a child has ended, as the kernel shows it: for where it refuses to let one wait.
#[must_use]
pub fn has_ended(pid: u32) -> bool {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        // Behind the name, which may hold anything, stands the state.
        Ok(text) => {
            let state = text.rsplit(|byte| *byte == b')').next().unwrap_or_default();
            matches!(state.trim_ascii_start().first(), Some(b'Z' | b'X'))
        }
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The process that has started this one, or that it was given to since; `None`: there is none.
#[must_use]
pub fn parent_of(pid: u32) -> Option<u32> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything, stand the state and the parent.
    let rest = text.rsplit(|byte| *byte == b')').next()?;
    let rest = std::str::from_utf8(rest).ok()?;
    rest.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 0)
}

fn parse_status(text: &[u8]) -> Status {
    let mut status = Status { context: Vec::with_capacity(512), ..Status::default() };
    for line in text.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..=colon], line[colon + 1..].trim_ascii());
        match name {
            b"Umask:" => {
                status.umask = number(value, 8).and_then(|n| n.try_into().ok()).unwrap_or(0o22)
            }
            b"SigIgn:" => status.ignored = number(value, 16).unwrap_or(0),
            b"SigBlk:" => status.blocked = number(value, 16).unwrap_or(0),
            b"TracerPid:" => {
                status.tracer = number(value, 10).and_then(|n| n.try_into().ok()).unwrap_or(0)
            }
            // The pid in each pid namespace, outermost first: how many there are is what counts.
            b"NSpid:" => {
                status.context.extend_from_slice(name);
                status.context.extend(value.iter().filter(|byte| **byte == b'\t'));
            }
            _ if CONTEXT.contains(&name) => {
                status.context.extend_from_slice(line);
                status.context.push(b'\n');
            }
            _ => {}
        }
    }
    status
}

/// By hand, since the standard library's parser sits on pages that a client touches for nothing
/// else.
pub(crate) fn number(digits: &[u8], radix: u8) -> Option<u64> {
    let mut value = 0_u64;
    for digit in digits {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        if digit >= radix {
            return None;
        }
        value = value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some(value)
}

/// How many descriptors this process has open. Linux 6.2 and newer tell it as the size of the
/// directory; older ones are counted entry by entry.
pub fn open_descriptors() -> io::Result<u64> {
    let stat = rustix::fs::statat(CWD, c"/proc/self/fd", AtFlags::empty())?;
    if stat.st_size > 0 {
        return Ok(stat.st_size.unsigned_abs());
    }
    let dir = rustix::fs::open(
        c"/proc/self/fd",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut count = 0;
    for entry in rustix::fs::Dir::read_from(&dir)? {
        if entry?.file_name().to_bytes()[0] != b'.' {
            count += 1;
        }
    }
    // The directory itself was open while it was read.
    Ok(count - 1)
}

/// Gives this thread a descriptor table of its own, a copy of the process's as it is now. What it
/// opens, closes or duplicates from now on is not seen by other threads, nor is what they do seen
/// here, and what it starts inherits nothing of theirs. Its table goes with it.
///
/// Numbers mean something only in the table that they were opened in: whoever calls this sees to
/// it that no descriptor that was opened later goes from one thread to another, and that one
/// that both have is closed in each.
pub fn own_descriptors() -> io::Result<()> {
    // SAFETY: every descriptor that anybody owns stays open under its number, in both tables.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }
}

/// Gives this thread a working directory, a root and a file mode creation mask of its own, as the
/// process's are now; the first time only, later it does nothing.
pub fn own_place() -> io::Result<()> {
    thread_local! { static OWN: Cell<bool> = const { Cell::new(false) }; }
    if OWN.get() {
        return Ok(());
    }
    // SAFETY: nothing here relies on threads that share them.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }?;
    OWN.set(true);
    Ok(())
}

/// The session that this process's terminal controls, and this process's group; `None` without a
/// controlling terminal. Either is 0 where it belongs to an outer pid namespace.
#[must_use]
pub fn terminal() -> Option<(u32, u32)> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(c"/dev/tty", flags, Mode::empty()).ok()?;
    // SAFETY: both only return numbers. Not by rustix, to which 0 is no process id.
    let (session, group) = unsafe { (libc::getsid(0), libc::getpgrp()) };
    Some((session.unsigned_abs(), group.unsigned_abs()))
}

/// The session that a process is in; 0 if it is gone.
#[must_use]
pub fn session_of(pid: u32) -> u32 {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return 0 };
    // SAFETY: only returns a number.
    u32::try_from(unsafe { libc::getsid(pid) }).unwrap_or(0)
}

/// This process's working directory as a descriptor that works for unreadable and deleted
/// directories too.
pub fn working_directory() -> io::Result<OwnedFd> {
    rustix::fs::open(c".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Borrows descriptor 0, 1 or 2. The caller has checked that it is open: a closed one is refused
/// by the kernel where it is used.
#[must_use]
pub fn stdio() -> [BorrowedFd<'static>; 3] {
    // SAFETY: 0, 1 and 2 are never closed or owned by this program, so that they live as long as
    // it does; if the caller closed one before the start, using it fails with EBADF, which every
    // user of these handles.
    unsafe { [BorrowedFd::borrow_raw(0), BorrowedFd::borrow_raw(1), BorrowedFd::borrow_raw(2)] }
}

/// Takes over a descriptor that the caller left open under this number, and makes it
/// close-on-exec. Refuses 0 to 2, and what is not open.
pub fn adopt(number: u32) -> io::Result<OwnedFd> {
    let raw = i32::try_from(number).ok().filter(|raw| *raw > 2).ok_or(io::Errno::BADF)?;
    // SAFETY: only asks the kernel whether the descriptor is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(raw) };
    io::fcntl_setfd(borrowed, io::FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and the caller passed it to this process to be used here and nowhere
    // else; hob's own descriptors are opened later.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A descriptor that is readable when this process has ended.
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::Errno::SRCH)?;
    pidfd_open(pid, PidfdFlags::empty())
}

/// Sends a signal to exactly the process behind the pidfd.
pub fn signal(pidfd: impl AsFd, number: u8) -> io::Result<()> {
    let signal = Signal::from_named_raw(i32::from(number)).ok_or(io::Errno::INVAL)?;
    pidfd_send_signal(pidfd, signal)
}

/// Whether a process handles this signal itself.
#[must_use]
pub fn catches(pid: u32, number: u8) -> bool {
    let text = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"SigCgt:"));
    let mask = mask.and_then(|mask| self::number(mask.trim_ascii(), 16)).unwrap_or(0);
    (1..=64).contains(&number) && mask & (1 << (number - 1)) != 0
}

/// The signals that wait to be taken by a process: bit n-1 is signal n.
#[must_use]
pub fn pending(pid: u32) -> u64 {
    let text = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let masks = lines
        .filter_map(|line| line.strip_prefix(b"SigPnd:").or_else(|| line.strip_prefix(b"ShdPnd:")));
    masks.filter_map(|mask| number(mask.trim_ascii(), 16)).fold(0, |all, mask| all | mask)
}

/// Proportional memory (PSS) of a process in KiB, shared pages counted by share.
pub fn pss_kib(pid: u32) -> io::Result<u64> {
    let text = std::fs::read(format!("/proc/{pid}/smaps_rollup"))
        .map_err(|error| io::Errno::from_io_error(&error).unwrap_or(io::Errno::IO))?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Pss:"));
    let value = line.map(<[u8]>::trim_ascii).and_then(|value| value.strip_suffix(b" kB"));
    value.and_then(|value| number(value.trim_ascii(), 10)).ok_or(io::Errno::IO)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_child_that_was_not_waited_for_shows_that_it_has_ended() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert!(!has_ended(child.id()) && !has_ended(std::process::id()));
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        drop(child.stdin.take());
        let until = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), until).unwrap();
        assert!(has_ended(child.id()));
        child.wait().unwrap();
        assert!(has_ended(child.id()));
    }

    #[test]
    fn a_status_is_read_field_by_field() {
        let text = b"Name:\tx\nUmask:\t0027\nTracerPid:\t12\nUid:\t0\t0\t0\t0\nSigBlk:\t0000000000000002\n\
                     SigIgn:\t0000000000001000\nNSpid:\t71\t1\nCapEff:\t00ff\nThreads:\t1\n";
        let status = parse_status(text);
        assert_eq!((status.umask, status.tracer), (0o27, 12));
        assert_eq!((status.blocked, status.ignored), (2, 0x1000));
        assert_eq!(status.context, b"Uid:\t0\t0\t0\t0\nNSpid:\tCapEff:\t00ff\n");
    }

    #[test]
    fn ones_own_status_and_descriptors_are_readable() {
        let status = own_status().unwrap();
        assert!(status.context.starts_with(b"Uid:"));
        // Tests beside this one open and close a few of the same process meanwhile.
        let before = open_descriptors().unwrap();
        let more: Vec<_> = (0..200).map(|_| working_directory().unwrap()).collect();
        let after = open_descriptors().unwrap();
        assert!(after.abs_diff(before + 200) < 100, "{before}, then {after}");
        drop(more);
        assert!(pss_kib(std::process::id()).unwrap() > 100);
    }

    #[test]
    fn descriptors_of_ones_own_are_nobody_elses() {
        use rustix::fd::AsRawFd;
        let both = working_directory().unwrap();
        let number = both.as_raw_fd();
        let own = std::thread::spawn(move || {
            own_descriptors().unwrap();
            let own = working_directory().unwrap();
            let task = |number: i32| format!("/proc/thread-self/fd/{number}");
            let seen = [number, own.as_raw_fd()].map(|number| Path::new(&task(number)).exists());
            let above = rustix::io::fcntl_dupfd_cloexec(&own, 900).unwrap();
            (seen, above.as_raw_fd(), Path::new("/proc/self/fd/900").exists())
        });
        let (seen, above, is_seen_by_all) = own.join().unwrap();
        assert_eq!((seen, above, is_seen_by_all), ([true, true], 900, false));
        // Its table went with the thread, and took nothing of this one's along.
        assert!(rustix::fs::fstat(&both).is_ok());
    }
}
