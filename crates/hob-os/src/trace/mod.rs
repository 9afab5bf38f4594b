//! Watching a child by `ptrace`: when it executes, reaches its own entry point, opens files,
//! and leaves.
//!
//! Owns: the child that waits to be released, the stops that the kernel reports of its threads,
//! and how each is resumed. Invariants: only the child and its threads are watched, never what
//! it starts; nothing of the program is changed but one instruction at its entry, which is put
//! back before it runs. No filter is installed: what outlives the watcher runs on untouched.
//!
//! Deliberately not here: which stop means what (`hob why`), and any clock but the stamp of the
//! execution itself.

mod entry;
mod held;
mod looks;

pub use entry::{Entry, at_entry, break_at_entry};
pub use held::{NotHeld, arrived, executed, release, towards_entry, watched_to_entry};
pub use looks::Looks;

use looks::looks;

use std::ffi::{c_int, c_void};

use rustix::event::Timespec;
use rustix::fd::OwnedFd;
use rustix::io;

use crate::clock;
use crate::process::{self, processors};
use crate::signals::{Set, last_error, raw, set_mask};
use crate::spawn::{self, Image};

const SIGKILL: u8 = 9;

/// The longest path that is read from the child.
const PATH_BYTES_MAX: usize = 4096;
/// No read from the child crosses a page that may be missing.
const PAGE_BYTES: u64 = 4096;

const SEIZE: c_int = 0x4206;
const LISTEN: c_int = 0x4208;
const GET_SYSCALL_INFO: c_int = 0x420e;
const CONT: c_int = 7;
const SYSCALL: c_int = 24;
const GETEVENTMSG: c_int = 0x4201;

/// `TRACESYSGOOD`, `TRACECLONE`, `TRACEEXEC`, `TRACEEXIT`, `EXITKILL`. No option for forks: what
/// the program starts is not watched.
const OPTIONS: usize = 0x1 | 0x8 | 0x10 | 0x40 | 0x10_0000;
const EVENT_CLONE: u32 = 3;
const EVENT_EXEC: u32 = 4;
const EVENT_EXIT: u32 = 6;
const EVENT_STOP: u32 = 128;

/// A child that was started, and that nobody has waited for.
#[derive(Debug)]
pub struct Child {
    /// Its process id, which is its process group's too where it leads one.
    pub pid: u32,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
}

/// What lets a child execute its image.
#[derive(Debug)]
pub struct Paused {
    pid: u32,
    go: OwnedFd,
    told: OwnedFd,
}

/// A child's standard streams: they become descriptors 0, 1 and 2.
#[derive(Debug)]
pub struct Streams<'a> {
    /// Standard input.
    pub stdin: &'a OwnedFd,
    /// Standard output.
    pub stdout: &'a OwnedFd,
    /// Standard error.
    pub stderr: &'a OwnedFd,
}

/// Forks a child in this process's own group, session and terminal, with this signal mask. It
/// waits until it is released. It is killed when this process is.
pub fn paused(image: &Image, streams: &Streams<'_>, mask: Set) -> io::Result<(Child, Paused)> {
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (going, go) = rustix::pipe::pipe_with(flags)?;
    let (told, telling) = rustix::pipe::pipe_with(flags)?;
    // SAFETY: this process has one thread, so that the child may do anything that it could.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(last_error());
    }
    if pid == 0 {
        drop(go);
        // SAFETY: prctl with these arguments touches no memory; dup2 replaces 0 to 2 of this
        // child only, from descriptors that are open.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            for (from, to) in [(streams.stdin, 0), (streams.stdout, 1), (streams.stderr, 2)] {
                libc::dup2(raw(from), to);
            }
        }
        set_mask(mask);
        let mut word = [0];
        // End of file: the parent has left.
        if io::retry_on_intr(|| io::read(&going, &mut word)) == Ok(1) {
            let _ = io::write(&telling, &clock::now_ns().to_ne_bytes());
            let error = spawn::exec(image);
            let _ = io::write(&telling, &error.raw_os_error().to_ne_bytes());
        }
        // SAFETY: ends the child without running anything that belongs to the parent.
        unsafe { libc::_exit(127) };
    }
    let child = with_pidfd(pid.unsigned_abs())?;
    let paused = Paused { pid: child.pid, go, told };
    Ok((child, paused))
}

/// A child that nobody has waited for, with its pidfd; ended, if there is none to be had.
pub fn with_pidfd(pid: u32) -> io::Result<Child> {
    match process::pidfd(pid) {
        Ok(pidfd) => Ok(Child { pid, pidfd }),
        Err(error) => {
            // SAFETY: sends a signal to a child that was not waited for, so that its number is its.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
            reap(pid);
            Err(error)
        }
    }
}

impl Paused {
    /// Begins to watch the child, which goes on waiting.
    pub fn watch(&self) -> io::Result<()> {
        ptrace(SEIZE, self.pid, 0, plain(OPTIONS))
    }

    /// Lets it execute its image. The time at which it began to, by `CLOCK_MONOTONIC`.
    pub fn release(self) -> io::Result<u64> {
        io::write(&self.go, &[1])?;
        let mut stamp = [0; 8];
        let mut code = [0; 4];
        let begun = match io::retry_on_intr(|| io::read(&self.told, &mut stamp))? {
            8 => u64::from_ne_bytes(stamp),
            _ => return Err(io::Errno::CHILD),
        };
        match io::retry_on_intr(|| io::read(&self.told, &mut code))? {
            4 => Err(io::Errno::from_raw_os_error(i32::from_ne_bytes(code))),
            _ => Ok(begun),
        }
    }
}

/// Ends a child, whether it is watched, waits to be released or runs, and waits for it.
pub fn discard(child: &Child) {
    // One that was waited for already refuses, and its number may be another's by now.
    if process::signal(&child.pidfd, SIGKILL).is_ok() {
        reap(child.pid);
    }
}

/// Waits for the end of a child that was killed.
fn reap(pid: u32) {
    while let Ok(stop) = wait(pid, 0) {
        if matches!(stop, Some(Stop::Ended { .. })) {
            break;
        }
        let _ = resume(pid, Until::Event, 0);
    }
}

/// Why a thread stands still, or how the child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It has executed a file; nothing of it has run.
    Executed,
    /// A breakpoint or a single step of the kernel's.
    Trap,
    /// Before or after a system call; see [`call`].
    Call,
    /// It made this thread, which will report itself.
    Thread(u32),
    /// It is about to leave; its memory is still there.
    Leaving,
    /// This signal is about to be delivered: pass it to [`resume`].
    Signal(i32),
    /// It was stopped like its whole process (`^Z`): see [`listen`].
    Stopped,
    /// A new thread's first stop.
    Begun,
    /// It ended: raw wait status, peak memory in KiB.
    Ended {
        /// The raw status.
        status: u32,
        /// Peak memory in KiB.
        peak_kib: u64,
    },
}

/// The next stop of exactly this thread, if it has stopped or ended.
pub fn poll(thread: u32) -> io::Result<Option<Stop>> {
    wait(thread, libc::WNOHANG)
}

/// How long a child that is held may take to its next stop. A shell is at its entry after some
/// milliseconds; one that never comes there must not hold whoever starts hooks.
pub const STOP_MS_MAX: u64 = 2_000;

/// How often a stop is looked for while the processor is only offered to others.
const YIELDS: u32 = 200;
/// How long between two looks after that. The kernel tells nobody but who waits without a bound.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };

/// Looks again and again until there is something, for [`STOP_MS_MAX`] at most.
pub fn within_bound<T>(mut look: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    let until_ns = clock::now_ns() + STOP_MS_MAX * 1_000_000;
    for number in 0_u32.. {
        match look() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) | Err(io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if clock::now_ns() >= until_ns {
            break;
        }
        if number < YIELDS {
            processors::yield_now();
        } else {
            let _ = rustix::thread::nanosleep(&LOOK);
        }
    }
    Err(io::Errno::TIMEDOUT)
}

fn wait(thread: u32, flags: c_int) -> io::Result<Option<Stop>> {
    let mut status: c_int = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let flags = flags | libc::__WALL;
    // SAFETY: both pointers are valid for the call.
    let got =
        unsafe { libc::wait4(thread.cast_signed(), &raw mut status, flags, usage.as_mut_ptr()) };
    match got {
        0 => return Ok(None),
        got if got < 0 => return Err(last_error()),
        _ => {}
    }
    if !libc::WIFSTOPPED(status) {
        // SAFETY: zeroed memory is a valid rusage, and the kernel filled it in.
        let usage = unsafe { usage.assume_init() };
        let (status, peak_kib) = (status.cast_unsigned(), usage.ru_maxrss.unsigned_abs());
        return Ok(Some(Stop::Ended { status, peak_kib }));
    }
    let signal = libc::WSTOPSIG(status);
    Ok(Some(match status.cast_unsigned() >> 16 {
        EVENT_EXEC => Stop::Executed,
        EVENT_EXIT => Stop::Leaving,
        EVENT_CLONE => Stop::Thread(message(thread)?),
        EVENT_STOP if signal == libc::SIGTRAP => Stop::Begun,
        EVENT_STOP => Stop::Stopped,
        _ if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        _ if signal == libc::SIGTRAP => Stop::Trap,
        _ => Stop::Signal(signal),
    }))
}

/// How far a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// To the next event or signal.
    Event,
    /// Also to the next beginning or end of a system call.
    Call,
}

/// Lets a thread go on, with a signal to deliver (0 is none).
pub fn resume(thread: u32, until: Until, signal: i32) -> io::Result<()> {
    let request = match until {
        Until::Event => CONT,
        Until::Call => SYSCALL,
    };
    ptrace(request, thread, 0, plain(usize::try_from(signal).unwrap_or(0)))
}

/// Leaves a thread that was stopped with its process stopped, until that is continued.
pub fn listen(thread: u32) -> io::Result<()> {
    ptrace(LISTEN, thread, 0, plain(0))
}

/// What a thread that stands at a system call is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// It opens this file, as it names it. Directories that are opened as such are not told.
    Opens(Vec<u8>),
    /// The call has returned this.
    Returned(i64),
    /// Anything else.
    Other,
}

/// What a thread that stopped with [`Stop::Call`] is doing.
pub fn call(thread: u32) -> io::Result<Call> {
    let mut info = [0_u64; 11];
    let size = size_of_val(&info);
    ptrace(GET_SYSCALL_INFO, thread, size, (&raw mut info).cast())?;
    let [head, _, _, number, first, second, third, ..] = info;
    if u32::try_from(head >> 32) != Ok(entry::MACHINE.audit) {
        return Ok(Call::Other);
    }
    // The lowest byte says which of the two ends of a call this is.
    if head & 0xff == 2 {
        return Ok(Call::Returned(number.cast_signed()));
    }
    let number = i64::try_from(number).unwrap_or(-1);
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_open {
        return opens(thread, first, second);
    }
    let _ = first;
    match number {
        libc::SYS_openat => opens(thread, second, third),
        libc::SYS_openat2 => opens(thread, second, 0),
        _ => Ok(Call::Other),
    }
}

fn opens(thread: u32, path: u64, flags: u64) -> io::Result<Call> {
    if flags & u64::from(libc::O_DIRECTORY.cast_unsigned()) != 0 {
        return Ok(Call::Other);
    }
    read_path(thread, path).map(Call::Opens)
}

/// A path in a thread's memory.
fn read_path(thread: u32, path: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < PATH_BYTES_MAX {
        let from = path + bytes.len() as u64;
        let mut chunk = [0_u8; 256];
        let room = usize::try_from(PAGE_BYTES - from % PAGE_BYTES).unwrap_or(chunk.len());
        let len = room.min(chunk.len());
        let got = read_memory(thread, from, &mut chunk[..len])?;
        let end = chunk[..got].iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(&chunk[..end.unwrap_or(got)]);
        if end.is_some() || got == 0 {
            break;
        }
    }
    Ok(bytes)
}

fn message(thread: u32) -> io::Result<u32> {
    let mut word: libc::c_ulong = 0;
    ptrace(GETEVENTMSG, thread, 0, (&raw mut word).cast())?;
    u32::try_from(word).map_err(|_| io::Errno::SRCH)
}

fn read_memory(thread: u32, from: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: plain(address(from)), iov_len: into.len() };
    // SAFETY: the local vector is `into`, which is written to no further than its length; the
    // remote one is an address in the child that the kernel checks.
    let got = unsafe {
        libc::process_vm_readv(thread.cast_signed(), &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(got).map_err(|_| last_error())
}

/// An address of the child as the kernel takes it: the two have the same width.
fn address(of: u64) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}

/// A number where a request takes a number and others a pointer.
fn plain(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

/// The system call itself: the C libraries' wrappers differ in their types.
fn ptrace(request: c_int, thread: u32, at: usize, data: *mut c_void) -> io::Result<()> {
    // SAFETY: where `data` is an address of ours, it is that of a live, writable object that is
    // as large as the request says; the kernel checks everything else.
    let result = unsafe { libc::syscall(libc::SYS_ptrace, request, thread, at, data) };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a command watched to its end; what it did, in order, and its exit status.
    fn watched(argv: &[&std::ffi::CStr], until: Until) -> (Vec<String>, u32) {
        let image = Image {
            file: argv[0].to_owned(),
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            env: vec![c"PATH=/usr/bin:/bin".to_owned()],
        };
        let null: OwnedFd =
            std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        let (Child { pid, .. }, paused) = paused(&image, &streams, Set::default()).unwrap();
        paused.watch().unwrap();
        assert!(paused.release().unwrap() <= clock::now_ns());
        let (mut seen, mut entry) = (Vec::new(), None);
        loop {
            let stop = wait(pid, 0).unwrap().unwrap();
            let mut signal = 0;
            match stop {
                Stop::Executed => {
                    seen.push("executed".to_owned());
                    entry = break_at_entry(pid).unwrap();
                }
                Stop::Trap if entry.as_ref().is_some_and(|one| at_entry(pid, one).unwrap()) => {
                    seen.push("entry".to_owned());
                }
                Stop::Call => {
                    if let Call::Opens(path) = call(pid).unwrap() {
                        seen.push(String::from_utf8(path).unwrap());
                    }
                }
                Stop::Leaving => seen.push("leaving".to_owned()),
                Stop::Signal(number) => signal = number,
                Stop::Ended { status, .. } => return (seen, status),
                Stop::Trap | Stop::Thread(_) | Stop::Stopped | Stop::Begun => {}
            }
            resume(pid, until, signal).unwrap();
        }
    }

    #[test]
    fn a_dynamic_program_is_seen_from_its_execution_to_its_end() {
        let (seen, status) = watched(&[c"/bin/sh", c"-c", c"exit 7"], Until::Event);
        assert_eq!((seen.join(" ").as_str(), status), ("executed entry leaving", 7 << 8));
    }

    #[test]
    fn opened_files_are_told_by_the_names_that_the_program_used() {
        let (seen, status) = watched(&[c"/bin/cat", c"/proc/self/status"], Until::Call);
        let at = |name: &str| seen.iter().position(|one| one == name).unwrap();
        assert!(at("executed") < at("entry") && at("entry") < at("/proc/self/status"), "{seen:?}");
        assert_eq!((seen.last().unwrap().as_str(), status), ("leaving", 0));
    }

    #[test]
    fn what_it_starts_is_not_watched_and_its_signals_arrive() {
        let script = c"/bin/cat /proc/self/status >/dev/null; kill -9 $$";
        let (seen, status) = watched(&[c"/bin/sh", c"-c", script], Until::Call);
        assert!(!seen.contains(&"/proc/self/status".to_owned()), "{seen:?}");
        assert_eq!(status, 9);
    }

    #[test]
    fn a_child_that_cannot_execute_is_discarded() {
        let image = Image { file: c"/nonexistent".to_owned(), argv: vec![], env: vec![] };
        let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        let (child, paused) = paused(&image, &streams, Set::default()).unwrap();
        paused.watch().unwrap();
        assert_eq!(paused.release(), Err(io::Errno::NOENT));
        discard(&child);
        assert_eq!(poll(child.pid), Err(io::Errno::CHILD));
    }

    #[test]
    fn a_number_that_is_another_process_by_now_is_left_alone() {
        let null: OwnedFd =
            std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        let image = |words: &[&std::ffi::CStr]| Image {
            file: words[0].to_owned(),
            argv: words.iter().map(|&word| word.to_owned()).collect(),
            env: vec![],
        };
        let (mut ended, go) = paused(&image(&[c"/bin/true"]), &streams, Set::default()).unwrap();
        go.release().unwrap();
        while !matches!(wait(ended.pid, 0), Ok(Some(Stop::Ended { .. }))) {}
        let sleeps = image(&[c"/bin/sleep", c"1000"]);
        let (other, go) = paused(&sleeps, &streams, Set::default()).unwrap();
        go.release().unwrap();
        // As it is where the kernel has come round to the number.
        ended.pid = other.pid;
        discard(&ended);
        assert_eq!(poll(other.pid), Ok(None), "another process was ended");
        discard(&other);
    }

    #[test]
    fn what_never_comes_is_not_waited_for_without_a_bound() {
        let never = within_bound(|| Ok(None::<()>));
        assert_eq!(never, Err(io::Errno::TIMEDOUT));
        let mut looks = 0;
        let third = within_bound(|| {
            looks += 1;
            if looks == 2 { Err(io::Errno::INTR) } else { Ok((looks == 3).then_some(looks)) }
        });
        assert_eq!(third, Ok(3));
    }
}
