//! The start of a process: argv and environment as the kernel laid them out.
//!
//! The binary has its own C `main`: std's would probe the stack, install handlers and change
//! SIGPIPE before the first line of ours, which costs a client a tenth of its life and changes
//! what it must hand on unchanged.

use std::ffi::{CStr, c_char, c_int};

/// argv and environment, borrowed from where the kernel put them; they live as long as the
/// process.
#[derive(Debug)]
pub struct Start {
    /// argv, `argv[0]` included.
    pub argv: Vec<&'static CStr>,
    /// `NAME=value` entries in order. What is not of that form is kept.
    pub env: Vec<&'static CStr>,
}

impl Start {
    /// The value of a variable; the first entry counts.
    #[must_use]
    pub fn variable(&self, name: &[u8]) -> Option<&'static [u8]> {
        self.env.iter().find_map(|entry| entry.to_bytes().strip_prefix(name)?.strip_prefix(b"="))
    }
}

/// Whether this process was given rights that its caller does not have: its file changes the user
/// or the group, or has capabilities. As the kernel wrote it down at the `execve`, without a
/// system call.
#[must_use]
pub fn has_lent_rights() -> bool {
    // SAFETY: only reads what the kernel has passed to this process; what it has not is 0.
    let of = |kind| unsafe { libc::getauxval(kind) };
    of(libc::AT_SECURE) != 0
        || of(libc::AT_UID) != of(libc::AT_EUID)
        || of(libc::AT_GID) != of(libc::AT_EGID)
}

unsafe extern "C" {
    /// The C library's pointer to the environment.
    static environ: *const *const c_char;
}

/// What one fetch from memory brings, in bytes, on all processors that hob is built for.
const LINE: usize = 64;

/// A part of the binary that is to be in the processor's caches before anything runs.
#[derive(Debug)]
pub struct Ahead {
    /// Its first byte.
    pub from: *const u8,
    /// The byte behind its last.
    pub to: *const u8,
}

// SAFETY: nothing but the address of memory that nobody writes to.
unsafe impl Sync for Ahead {}

impl Ahead {
    /// Reads it, in order: so it comes from memory several lines at once. In the order of their
    /// use they would come one after the other, at 100 to 250 ns each
    /// (`docs/why/client-path.md`).
    ///
    /// # Safety
    /// All of it must be readable memory that nobody writes to.
    unsafe fn read(&self) {
        for offset in (0..self.to.addr().saturating_sub(self.from.addr())).step_by(LINE) {
            // SAFETY: it is before the end; volatile, since the value is not wanted.
            unsafe { self.from.add(offset).read_volatile() };
        }
    }
}

/// Reads `ahead`, runs `body` with the process's argv and environment, and ends the process with its
/// exit code. Nothing is run at the exit: nobody here asks the C library for that, and its own way
/// out is one more page of the binary.
///
/// # Safety
/// `argc` and `argv` must be those that the C runtime passed to `main`, and what is to be read
/// ahead must be readable memory that nobody writes to.
pub unsafe fn run(
    argc: c_int,
    argv: *const *const c_char,
    ahead: &[Ahead],
    body: impl FnOnce(Start) -> u8,
) -> ! {
    for part in ahead {
        // SAFETY: the caller says so.
        unsafe { part.read() };
    }
    let count = usize::try_from(argc).unwrap_or(0);
    let mut list = Vec::with_capacity(count);
    for index in 0..count {
        // SAFETY: the kernel laid out `argc` pointers to NUL-terminated strings, which live as
        // long as the process and which nothing here writes to.
        list.push(unsafe { CStr::from_ptr(*argv.add(index)) });
    }
    let mut env = Vec::with_capacity(64);
    // SAFETY: only this thread exists, and nobody has changed the environment yet.
    let mut at = unsafe { environ };
    // SAFETY: `environ` is null or an array of pointers to such strings that ends in a null.
    while !at.is_null() && !unsafe { *at }.is_null() {
        // SAFETY: as above.
        env.push(unsafe { CStr::from_ptr(*at) });
        // SAFETY: the entry was not the last, so that the next pointer exists.
        at = unsafe { at.add(1) };
    }
    let code = c_int::from(body(Start { argv: list, env }));
    // SAFETY: ends the process, whatever its state.
    unsafe { libc::_exit(code) }
}
