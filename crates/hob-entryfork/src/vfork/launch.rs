//! A start that does not stand still: the thread goes on while the child is on its way to its
//! `execve`, and what the child reads until then is kept here.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hob_os::trace::{Child, Streams};
use rustix::io;

use super::child::{Stack, Steps, Strings};
use super::{Place, Traced, child, ended};

/// A program whose strings are kept until it is executed.
#[derive(Debug)]
pub struct OwnProgram {
    /// The executable file.
    pub file: CString,
    /// Its argv, `argv[0]` included.
    pub argv: Vec<CString>,
    /// Its environment.
    pub env: Arc<[CString]>,
}

/// A child that was started and may still be on its way to its file. Dropped before it has got
/// there, this leaks what the child reads: some 20 KiB.
#[derive(Debug)]
pub struct Launch(NonNull<Memory>);

/// What the child is in until it has executed its file.
struct Memory {
    /// Not 0 while it is: the kernel clears it when the child leaves this process's memory.
    executing: AtomicU32,
    steps: Steps,
    stack: Box<MaybeUninit<Stack>>,
    _program: OwnProgram,
    _argv: Vec<*const c_char>,
    _env: Vec<*const c_char>,
}

// SAFETY: nothing of it belongs to a thread.
unsafe impl Send for Launch {}

/// Starts a child as [`super::start`] does, and goes on at once. That its file could not be
/// executed is known when it has ended, by [`Launch::executed`]. The streams' descriptors must be
/// above 2; they and the place's directory may be closed at once. It is not traced.
pub fn begin(
    program: OwnProgram,
    streams: &Streams<'_>,
    place: &Place<'_>,
) -> io::Result<(Child, Launch)> {
    let place = Place { traced: Traced::No, ..*place };
    let argv = ended(program.argv.iter().map(CString::as_c_str));
    let env = ended(program.env.iter().map(CString::as_c_str));
    let strings = Strings { file: program.file.as_ptr(), argv: argv.as_ptr(), env: env.as_ptr() };
    let memory = Memory {
        executing: AtomicU32::new(1),
        steps: Steps::new(strings, streams, &place),
        stack: Box::new_uninit(),
        _program: program,
        _argv: argv,
        _env: env,
    };
    // What moved were the vectors and the strings' owners, not what they own.
    let memory = NonNull::from(Box::leak(Box::new(memory)));
    // SAFETY: it is this function's own until there is a child, and given to nobody but that. The
    // child is in it until `executing` is 0, and it is not freed before.
    unsafe {
        let at = memory.as_ptr();
        let top = (*at).stack.as_mut_ptr().add(1);
        match child::make(
            libc::CLONE_CHILD_CLEARTID,
            top.cast::<Stack>(),
            &raw const (*at).steps,
            (*at).executing.as_ptr(),
        ) {
            Ok(child) => {
                let pid = child.pid.cast_signed();
                // The child does the same: whoever is first. Who signals its group finds it.
                libc::setpgid(pid, pid);
                Ok((child, Launch(memory)))
            }
            Err(error) => {
                drop(Box::from_raw(at));
                Err(error)
            }
        }
    }
}

impl Launch {
    /// Whether a child that has ended had executed its file, and if not, why.
    pub fn executed(&self) -> io::Result<()> {
        // SAFETY: not freed before this is dropped; the child writes nothing but an atomic.
        unsafe { self.0.as_ref() }.steps.error()
    }

    /// Whether the child is still in this process's memory.
    fn is_executing(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.as_ref() }.executing.load(Ordering::Acquire) != 0
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if !self.is_executing() {
            // SAFETY: made by `Box::leak`, and the child has left it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("steps", &self.steps).finish_non_exhaustive()
    }
}
