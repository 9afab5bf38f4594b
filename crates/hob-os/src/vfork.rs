//! Starting a child with the semantics of `vfork`: nothing of this process is copied, however
//! large it is, and the thread that starts it stands still until the child has executed its file.
//!
//! Owns: the child's few steps before its `execve`. Invariants: the child shares this process's
//! memory until then, so that it allocates nothing, takes no lock and runs no handler (every
//! signal is blocked, and dispositions are its own copy); it becomes the leader of a new process
//! group, and is killed when the thread that started it ends.
//!
//! Beware of pidfds in an `epoll`: the thread goes on *before* the kernel has closed the child's
//! copies of close-on-exec descriptors. Closing a descriptor here then does not take it out of an
//! `epoll`, since the open file lives on for a moment: delete it there explicitly.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;

use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd};
use rustix::io;

use crate::process::processors::Stay;
use crate::signals::{Set, last_error, raw};
use crate::spawn::{self, Wait};
use crate::trace::Streams;

/// A program to execute, in memory that somebody else owns.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The executable file.
    pub file: &'a CStr,
    /// Its argv, `argv[0]` included.
    pub argv: &'a [&'a CStr],
    /// Its environment.
    pub env: &'a [CString],
}

/// What a child takes on before it executes its file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'a> {
    /// Its working directory; this process's own if `None`.
    pub directory: Option<BorrowedFd<'a>>,
    /// Its file mode creation mask; this process's own if `None`.
    pub umask: Option<u32>,
    /// Its signal mask.
    pub mask: Set,
    /// What it ignores and handles.
    pub signals: Signals,
    /// Whether the thread that starts it traces it from its `execve` on.
    pub traced: Traced,
}

/// What becomes of this process's dispositions of signals in a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signals {
    /// What is ignored stays so, as `execve` has it. For a process that handles none.
    #[default]
    Kept,
    /// All are default. For a process with handlers, which must not run in the child.
    Default,
}

/// Whether a child is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Traced {
    /// It is not.
    #[default]
    No,
    /// It stops with SIGTRAP when it has executed its file; refused (`EINVAL`) where its mask
    /// blocks that signal.
    Yes,
}

/// A child that was started.
#[derive(Debug)]
pub struct Child {
    /// Its process id, which is its process group's too.
    pub pid: u32,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
}

/// What the child's function finds in the memory of its parent, which stands still meanwhile.
struct Steps {
    file: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    streams: [c_int; 3],
    directory: c_int,
    umask: Option<u32>,
    mask: libc::sigset_t,
    signals: Signals,
    traced: Traced,
    parent: libc::pid_t,
    /// The error of the step that failed; 0 if none did.
    error: c_int,
}

/// As much as the child's steps and the C library's wrappers need, many times over.
const STACK_BYTES: usize = 16 * 1024;

#[repr(align(16))]
struct Stack(
    #[expect(dead_code, reason = "only its address is used")] [MaybeUninit<u8>; STACK_BYTES],
);

/// Starts a child. Fails with the error of its `execve`, or of what comes before. The streams'
/// descriptors must be above 2.
pub fn start(program: &Program<'_>, streams: &Streams<'_>, place: &Place<'_>) -> io::Result<Child> {
    // It would not stop, and run while somebody waits for that.
    if place.traced == Traced::Yes && place.mask.has(libc::SIGTRAP) {
        return Err(io::Errno::INVAL);
    }
    let end = [std::ptr::null::<c_char>()];
    let argv: Vec<_> = program.argv.iter().map(|word| word.as_ptr()).chain(end).collect();
    let env: Vec<_> = program.env.iter().map(|entry| entry.as_ptr()).chain(end).collect();
    let mut steps = Steps {
        file: program.file.as_ptr(),
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        streams: [raw(streams.stdin), raw(streams.stdout), raw(streams.stderr)],
        directory: place.directory.map_or(-1, |fd| raw(&fd)),
        umask: place.umask,
        mask: place.mask.to_libc(),
        signals: place.signals,
        traced: place.traced,
        // SAFETY: only returns a number.
        parent: unsafe { libc::getpid() },
        error: 0,
    };
    let mut stack = MaybeUninit::<Stack>::uninit();
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are initialised by these calls before they are used. `clone` runs `child`
    // on `stack`, which is this frame's and as long-lived, since CLONE_VFORK lets this thread go
    // on only when the child has executed or ended. `steps` is reached by the child alone until
    // then. The kernel writes the pidfd to where the fifth argument points.
    let (pid, error) = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let top = stack.as_mut_ptr().add(1).cast::<c_void>();
        let pid = libc::clone(child, top, flags, (&raw mut steps).cast(), &raw mut pidfd);
        let error = last_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        (pid, error)
    };
    if pid < 0 {
        return Err(error);
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let pid = pid.unsigned_abs();
    // SAFETY: the child wrote it, if it did, before this thread went on.
    let error = unsafe { (&raw const steps.error).read_volatile() };
    if error != 0 {
        let _ = spawn::wait(pid, Wait::Block);
        return Err(io::Errno::from_raw_os_error(error));
    }
    Ok(Child { pid, pidfd })
}

/// Whether the kernel would execute this file for us now: its mode, its mount, nobody writing to
/// it. `EINVAL` where the kernel cannot say (before 6.14). The thread stays on its processor: the
/// kernel moves whoever asks to an idle one first, as it does for a true `execve` (`sched_exec`).
pub fn would_execute(directory: Option<BorrowedFd<'_>>, file: &CStr) -> io::Result<()> {
    const AT_EXECVE_CHECK: c_int = 0x10000;
    let directory = directory.map_or(libc::AT_FDCWD, |fd| raw(&fd));
    let argv = [file.as_ptr(), std::ptr::null()];
    let env = [std::ptr::null::<c_char>()];
    let _stay = Stay::here();
    // SAFETY: all three are strings and lists of strings that end with null; with this flag
    // nothing is executed.
    let done = unsafe {
        let (argv, env) = (argv.as_ptr(), env.as_ptr());
        libc::syscall(libc::SYS_execveat, directory, file.as_ptr(), argv, env, AT_EXECVE_CHECK)
    };
    if done < 0 { Err(last_error()) } else { Ok(()) }
}

/// The child, in its parent's memory.
extern "C" fn child(steps: *mut c_void) -> c_int {
    let steps = steps.cast::<Steps>();
    // SAFETY: `steps` points to the parent's object, which lives and stands still until this ends
    // or executes; every call is a thin wrapper around a system call; nothing is allocated.
    unsafe {
        if take_on(&*steps) {
            libc::execve((*steps).file, (*steps).argv, (*steps).env);
        }
        let error = last_error().raw_os_error();
        // Zero would say that all went well.
        (*steps).error = if error == 0 { libc::EIO } else { error };
        libc::_exit(127)
    }
}

/// Takes on the child's place. False: `errno` says why not.
///
/// # Safety
/// Only in the child.
unsafe fn take_on(steps: &Steps) -> bool {
    // SAFETY: see `child`.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // A parent that was killed before that says nothing any more.
        if libc::getppid() != steps.parent {
            libc::_exit(127);
        }
        if libc::setpgid(0, 0) < 0 {
            return false;
        }
        for (from, to) in steps.streams.into_iter().zip(0..) {
            if libc::dup2(from, to) < 0 {
                return false;
            }
        }
        if steps.directory >= 0 && libc::fchdir(steps.directory) < 0 {
            return false;
        }
        if let Some(umask) = steps.umask {
            libc::umask(umask);
        }
        if steps.signals == Signals::Default {
            crate::signals::reset_all();
        }
        if steps.traced == Traced::Yes && libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) < 0 {
            return false;
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const steps.mask, std::ptr::null_mut());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::Waited;

    fn null() -> OwnedFd {
        std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into()
    }

    #[test]
    fn a_child_that_would_not_see_its_stop_is_not_started() {
        let null = null();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        let mask = Set::of(&[libc::SIGUSR1, libc::SIGTRAP]);
        let place = Place { mask, traced: Traced::Yes, ..Place::default() };
        let program = Program { file: c"/bin/true", argv: &[c"true"], env: &[] };
        assert_eq!(start(&program, &streams, &place).err(), Some(io::Errno::INVAL));
    }

    #[test]
    fn a_child_leads_a_group_of_its_own_and_has_its_streams_and_place() {
        let dir = tempfile::tempdir().unwrap();
        let directory: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        let (out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let null = null();
        let streams = Streams { stdin: &null, stdout: &out_in, stderr: &null };
        let place = Place {
            directory: Some(rustix::fd::AsFd::as_fd(&directory)),
            umask: Some(0o27),
            ..Place::default()
        };
        let script = c"pwd; umask; ps -o pgid= -p $$ | tr -d ' '; echo $$ $PPID";
        let argv = [c"/bin/sh", c"-c", script];
        let env = [c"PATH=/usr/bin:/bin".to_owned()];
        let program = Program { file: argv[0], argv: &argv, env: &env };
        let child = start(&program, &streams, &place).unwrap();
        assert!(matches!(spawn::wait(child.pid, Wait::Block), Ok(Waited::Ended(0, ..))));
        let mut bytes = [0; 4096];
        let len = io::read(&out, &mut bytes).unwrap();
        let (pid, parent) = (child.pid, std::process::id());
        let real = std::fs::canonicalize(dir.path()).unwrap();
        let want = format!("{}\n0027\n{pid}\n{pid} {parent}\n", real.display());
        assert_eq!(String::from_utf8_lossy(&bytes[..len]), want);
    }

    #[test]
    fn the_error_of_its_execve_comes_back_and_nothing_is_left() {
        let null = null();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        let argv = [c"/nonexistent"];
        let program = Program { file: argv[0], argv: &argv, env: &[] };
        let started = start(&program, &streams, &Place::default());
        assert_eq!(started.err(), Some(io::Errno::NOENT));
    }
}
