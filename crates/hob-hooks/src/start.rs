//! Starting one hook as a new process, and saying why that failed.

use std::ffi::{CStr, CString};

use hob_core::hooks::Trouble;
use hob_entryfork::vfork::{self, Launch, OwnProgram, Program, Traced};
use hob_os::signals;
use hob_os::trace::{Child, Streams};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::listing::{Identity, Place};
use crate::set::Set;

impl Set {
    /// Where its names begin.
    pub(crate) fn place(&self) -> Place<'_> {
        self.within.as_ref().map_or(Place::Own, |directory| Place::At(directory.as_fd()))
    }

    /// A hook's file, which is its `argv[0]` too.
    pub(crate) fn path(&self, name: &[u8]) -> CString {
        let mut path = self.dir.0.clone();
        if path.last().is_some_and(|last| *last != b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        CString::new(path).expect("the directory was opened under its name, and names hold no NUL")
    }
}

/// Two pipes: our ends, which do not block, and the hook's.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) out: OwnedFd,
    pub(crate) err: OwnedFd,
    pub(crate) out_in: OwnedFd,
    pub(crate) err_in: OwnedFd,
}

impl Pipes {
    pub(crate) fn new() -> io::Result<Pipes> {
        let (out, out_in) = pipe()?;
        let (err, err_in) = pipe()?;
        Ok(Pipes { out, err, out_in, err_in })
    }

    /// Our ends, when the hook has its own.
    pub(crate) fn ours(self) -> OurPipes {
        OurPipes { out: self.out, err: self.err, theirs: None }
    }

    /// The same, with the hook's ends kept, so that its own end does not show on the pipes: that
    /// is the pidfd's, and two wake-ups less. For a hook that runs on this thread's own processor:
    /// on another, they come while it is still ending, and save time. Only where no other hook is
    /// started meanwhile, which would have a copy of them for a moment.
    pub(crate) fn ours_quiet(self) -> OurPipes {
        OurPipes { out: self.out, err: self.err, theirs: Some([self.out_in, self.err_in]) }
    }
}

/// Our ends of a hook's pipes.
#[derive(Debug)]
pub(crate) struct OurPipes {
    pub(crate) out: OwnedFd,
    pub(crate) err: OwnedFd,
    /// The hook's ends, until its process has ended.
    pub(crate) theirs: Option<[OwnedFd; 2]>,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    let ours = above_stdio(ours)?;
    // The hook's end blocks: each end has flags of its own.
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((ours, above_stdio(theirs)?))
}

/// A caller may have started us without some of 0 to 2; a hook's streams go there.
pub(crate) fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { io::fcntl_dupfd_cloexec(&fd, 3) }
}

/// A hook's file, as it is when its turn has come.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "what zygotes are asked for"))]
pub(crate) struct HookFile<'a> {
    pub(crate) set: &'a Set,
    pub(crate) path: &'a CStr,
    pub(crate) identity: Identity,
}

/// What a hook gets as its standard streams: its ends of the pipes, and nothing to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stdio<'a> {
    pub(crate) null: &'a OwnedFd,
    pub(crate) pipes: &'a Pipes,
}

impl<'a> Stdio<'a> {
    pub(crate) fn streams(self) -> Streams<'a> {
        let Stdio { null, pipes } = self;
        Streams { stdin: null, stdout: &pipes.out_in, stderr: &pipes.err_in }
    }
}

/// Starts a hook with these streams, this signal mask, and traced or not.
pub(crate) fn start(
    set: &Set,
    path: &CStr,
    stdio: Stdio<'_>,
    mask: signals::Set,
    traced: Traced,
) -> io::Result<Child> {
    let program = Program { file: path, argv: &[path], env: &set.environment };
    vfork::start(&program, &stdio.streams(), &vfork::Place { traced, ..place(set, mask) })
}

/// Starts a hook and goes on at once, while it is on its way to its file.
pub(crate) fn begin(
    set: &Set,
    path: &CStr,
    stdio: Stdio<'_>,
    mask: signals::Set,
) -> io::Result<(Child, Launch)> {
    let file = path.to_owned();
    let program = OwnProgram { argv: vec![file.clone()], file, env: set.environment.clone() };
    vfork::begin(program, &stdio.streams(), &place(set, mask))
}

/// Starts a program in a hook's place.
pub(crate) fn execute(
    set: &Set,
    program: &Program<'_>,
    stdio: Stdio<'_>,
    mask: signals::Set,
) -> io::Result<Child> {
    vfork::start(program, &stdio.streams(), &place(set, mask))
}

/// What a hook of a set takes on before it is executed.
fn place(set: &Set, mask: signals::Set) -> vfork::Place<'_> {
    vfork::Place {
        directory: set.within.as_ref().map(|directory| directory.as_fd()),
        umask: set.umask,
        mask,
        signals: set.signals,
        traced: Traced::No,
    }
}

/// What an error of a start means, and a line for people.
pub(crate) fn trouble(set: &Set, path: &CStr, error: io::Errno) -> (Trouble, String) {
    let there = Identity::at(set.place(), path).is_ok();
    let (trouble, why) = match error {
        io::Errno::NOENT | io::Errno::NOTDIR if !there => {
            (Trouble::Gone, "it is no longer there; something removed it while its set ran")
        }
        io::Errno::NOENT => (
            Trouble::NoInterpreter,
            "what its first line names is not there; correct the line, or install it",
        ),
        io::Errno::ACCESS | io::Errno::PERM => (
            Trouble::Permission,
            "it, or what its first line names, may not be executed; see its mode and its mount",
        ),
        io::Errno::NOEXEC => (
            Trouble::Format,
            "the kernel cannot execute it; a script begins with \"#!\" and its interpreter",
        ),
        io::Errno::TXTBSY => {
            (Trouble::Busy, "somebody holds it open for writing; end that, and run the set again")
        }
        io::Errno::TOOBIG => (
            Trouble::TooLarge,
            "its arguments and environment are larger than the kernel takes; set less",
        ),
        io::Errno::AGAIN | io::Errno::NOMEM | io::Errno::MFILE | io::Errno::NFILE => (
            Trouble::Resources,
            "there was no process, memory or descriptor to be had; run fewer at once, or raise the limit",
        ),
        _ => (Trouble::Other, "the kernel refused it"),
    };
    let text = std::io::Error::from(error);
    (trouble, format!("could not be started ({text}): {why}"))
}
