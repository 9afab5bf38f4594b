//! Starting a child with the semantics of `vfork`: nothing of this process is copied, however
//! large it is. The thread that starts it stands still until the child has executed its file
//! ([`start`]), or goes on at once ([`begin`]).
//!
//! Owns: the child's few steps before its `execve` (`child.rs`), and what it reads meanwhile
//! (`launch.rs`). Invariants: the child shares this process's memory until then, so that it
//! allocates nothing, takes no lock, uses nothing of a thread's own and runs no handler (every
//! signal is blocked, and dispositions are its own copy); it becomes the leader of a new process
//! group, and is killed when the thread that started it ends.
//!
//! Beware of pidfds in an `epoll`: the thread goes on *before* the kernel has closed the child's
//! copies of close-on-exec descriptors. Closing a descriptor here then does not take it out of an
//! `epoll`, since the open file lives on for a moment: delete it there explicitly.

mod child;
mod launch;

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;

use hob_os::process::{self, processors::Stay};
use hob_os::signals::Set;
use hob_os::spawn::{self, Wait};
use hob_os::trace::{Child, Streams};
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io;

use crate::last_error;
use child::{Stack, Steps, Strings};
pub use launch::{Launch, OwnProgram, begin};

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

/// Starts a child. Fails with the error of its `execve`, or of what comes before. The streams'
/// descriptors must be above 2.
pub fn start(program: &Program<'_>, streams: &Streams<'_>, place: &Place<'_>) -> io::Result<Child> {
    // It would not stop, and run while somebody waits for that.
    if place.traced == Traced::Yes && place.mask.has(libc::SIGTRAP) {
        return Err(io::Errno::INVAL);
    }
    let argv = ended(program.argv.iter().copied());
    let env = ended(program.env.iter().map(CString::as_c_str));
    let (file, argv, env) = (program.file.as_ptr(), argv.as_ptr(), env.as_ptr());
    let steps = Steps::new(Strings { file, argv, env }, streams, place);
    let mut stack = MaybeUninit::<Stack>::uninit();
    // SAFETY: the steps, what they point to and the stack are this frame's and as long-lived, since
    // CLONE_VFORK lets this thread go on only when the child has executed or ended.
    let child = unsafe {
        let top = stack.as_mut_ptr().add(1);
        child::make(libc::CLONE_VFORK, top, &raw const steps, std::ptr::null_mut())?
    };
    if let Err(error) = steps.error() {
        let _ = spawn::wait(child.pid, Wait::Block);
        return Err(error);
    }
    Ok(child)
}

/// Strings for the kernel.
fn ended<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*const c_char> {
    strings.map(CStr::as_ptr).chain([std::ptr::null()]).collect()
}

/// Whether the kernel would execute this file for us now: its mode, its mount, nobody writing to
/// it. `EINVAL` where the kernel cannot say (before 6.14). The thread stays on its processor: the
/// kernel moves whoever asks to an idle one first, as it does for a true `execve` (`sched_exec`).
///
/// The thread has a working directory of its own from then on: while somebody executes, whoever
/// has that in common with them can start no thread (`EAGAIN` from `copy_fs`, by `fs->in_exec`).
/// Where it can have none, as in containers that refuse `unshare`, the question is asked all the
/// same: whoever starts threads then has to take a refusal.
pub fn would_execute(directory: Option<BorrowedFd<'_>>, file: &CStr) -> io::Result<()> {
    const AT_EXECVE_CHECK: c_int = 0x10000;
    let directory = directory.map_or(libc::AT_FDCWD, |fd| fd.as_raw_fd());
    let argv = [file.as_ptr(), std::ptr::null()];
    let env = [std::ptr::null::<c_char>()];
    let _own = process::own_place();
    let _stay = Stay::here();
    // SAFETY: all three are strings and lists of strings that end with null; with this flag
    // nothing is executed.
    let done = unsafe {
        let (argv, env) = (argv.as_ptr(), env.as_ptr());
        libc::syscall(libc::SYS_execveat, directory, file.as_ptr(), argv, env, AT_EXECVE_CHECK)
    };
    if done < 0 { Err(last_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use hob_os::spawn::Waited;
    use rustix::fd::OwnedFd;

    use super::*;

    fn null() -> OwnedFd {
        std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into()
    }

    #[test]
    fn threads_can_be_started_while_the_kernel_is_asked() {
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| {
                let mut count = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = would_execute(None, c"/bin/true");
                    count += 1;
                }
                count
            });
            let failed = (0..2000).filter(|_| {
                let started = std::thread::Builder::new().spawn(|| {});
                started.map(|thread| thread.join().unwrap()).is_err()
            });
            let failed = failed.count();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(failed, 0);
            assert!(asks.join().unwrap() > 0);
        });
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

    fn own(argv: &[&CStr]) -> OwnProgram {
        let argv: Vec<CString> = argv.iter().map(|word| CStr::to_owned(word)).collect();
        OwnProgram { file: argv[0].clone(), argv, env: [c"PATH=/usr/bin:/bin".to_owned()].into() }
    }

    fn ended(child: &Child) -> Waited {
        spawn::wait(child.pid, Wait::Block).unwrap()
    }

    #[test]
    fn a_start_that_goes_on_has_the_same_place() {
        let dir = tempfile::tempdir().unwrap();
        let directory: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        let (out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let null = null();
        let streams = Streams { stdin: &null, stdout: &out_in, stderr: &null };
        let place = Place {
            directory: Some(rustix::fd::AsFd::as_fd(&directory)),
            umask: Some(0o27),
            mask: Set::of(&[libc::SIGUSR2]),
            signals: Signals::Default,
            traced: Traced::No,
        };
        // The mask by the shell alone, which clears it in what it starts.
        let script = c"pwd; umask; ps -o pgid= -p $$ | tr -d ' '
            while read -r name value; do [ $name != SigBlk: ] || echo $value; done </proc/$$/status";
        let (child, launch) = begin(own(&[c"/bin/sh", c"-c", script]), &streams, &place).unwrap();
        drop((directory, out_in));
        assert!(matches!(ended(&child), Waited::Ended(0, ..)));
        assert_eq!(launch.executed(), Ok(()));
        let mut bytes = [0; 4096];
        let len = io::read(&out, &mut bytes).unwrap();
        let real = std::fs::canonicalize(dir.path()).unwrap();
        let want = format!("{}\n0027\n{}\n0000000000000800\n", real.display(), child.pid);
        assert_eq!(String::from_utf8_lossy(&bytes[..len]), want);
    }

    #[test]
    fn that_it_could_not_execute_is_known_when_it_has_ended() {
        let null = null();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        for (file, error) in [(c"/nonexistent", io::Errno::NOENT), (c"/etc", io::Errno::ACCESS)] {
            let (child, launch) = begin(own(&[file]), &streams, &Place::default()).unwrap();
            assert!(matches!(ended(&child), Waited::Ended(0x7f00, ..)));
            assert_eq!(launch.executed(), Err(error));
        }
    }

    #[test]
    fn many_at_once_do_not_disturb_each_other_nor_this_thread() {
        let null = null();
        let (out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let streams = Streams { stdin: &null, stdout: &out_in, stderr: &null };
        let mut all = Vec::new();
        for number in 0..200 {
            let words = if number % 4 == 3 {
                own(&[c"/nonexistent"])
            } else {
                let script = CString::new(format!("echo {number}")).unwrap();
                own(&[c"/bin/sh", c"-c", &script])
            };
            all.push(begin(words, &streams, &Place::default()).unwrap());
            // What a child of before may be doing in this memory must not be seen here.
            assert!(std::fs::File::open("/").unwrap().metadata().unwrap().is_dir());
            let missing = std::fs::File::open("/nonexistent/at/all").unwrap_err();
            assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        }
        drop(out_in);
        for (number, (child, launch)) in all.into_iter().enumerate() {
            let failed = number % 4 == 3;
            let status = if failed { 0x7f00 } else { 0 };
            assert!(matches!(ended(&child), Waited::Ended(found, ..) if found == status));
            assert_eq!(launch.executed().is_err(), failed);
        }
        let text = std::io::read_to_string(std::fs::File::from(out)).unwrap();
        let mut said: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        said.sort_unstable();
        let want: Vec<u32> = (0..200).filter(|number| number % 4 != 3).collect();
        assert_eq!(said, want);
    }

    #[test]
    fn a_child_that_is_let_go_of_before_it_executes_keeps_what_it_reads() {
        let null = null();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        for _ in 0..100 {
            let (child, launch) = begin(own(&[c"/bin/true"]), &streams, &Place::default()).unwrap();
            drop(launch);
            // The allocator would give out again what was freed.
            let overwritten: Vec<Vec<u8>> =
                (0..64).map(|size| vec![0xff; 16 << (size % 12)]).collect();
            assert!(matches!(ended(&child), Waited::Ended(0, ..)));
            drop(overwritten);
        }
    }

    #[test]
    fn what_is_signalled_at_once_ends_by_it() {
        let null = null();
        let streams = Streams { stdin: &null, stdout: &null, stderr: &null };
        for signal in [libc::SIGKILL, libc::SIGTERM] {
            let (child, launch) =
                begin(own(&[c"/bin/sleep", c"1000"]), &streams, &Place::default()).unwrap();
            // SAFETY: touches no memory; the group is the child's, which was not waited for.
            assert_eq!(unsafe { libc::kill(-child.pid.cast_signed(), signal) }, 0);
            assert!(
                matches!(ended(&child), Waited::Ended(found, ..) if found == signal.unsigned_abs())
            );
            assert_eq!(launch.executed(), Ok(()));
        }
    }
}
