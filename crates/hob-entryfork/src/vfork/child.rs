//! What a child does between its `clone` and its `execve`, in its parent's memory.
//!
//! Invariants: it reaches nothing but its own [`Steps`] and its own stack. The parent may run at
//! the same time, and the thread-local storage is the parent's: so every system call is made here
//! and not by the C library, whose wrappers write `errno` there.

use std::arch::asm;
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

use hob_os::trace::{Child, Streams};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io;

use super::{Place, Signals, Traced};

/// What the child finds in its parent's memory. All that it points to lives as long.
#[derive(Debug)]
pub(super) struct Steps {
    strings: Strings,
    streams: [c_int; 3],
    directory: c_int,
    umask: Option<u32>,
    mask: u64,
    signals: Signals,
    traced: Traced,
    parent: libc::pid_t,
    /// Of the step that failed; 0 if none did.
    error: AtomicI32,
}

/// As much as the steps need, many times over.
const STACK_BYTES: usize = 16 * 1024;

#[repr(align(16))]
pub(super) struct Stack(
    #[expect(dead_code, reason = "only its address is used")] [MaybeUninit<u8>; STACK_BYTES],
);

/// The size of a set of signals, as the kernel has it.
const SET_BYTES: usize = 8;

/// The strings of a program, as `execve` wants them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strings {
    pub(super) file: *const c_char,
    pub(super) argv: *const *const c_char,
    pub(super) env: *const *const c_char,
}

impl Steps {
    pub(super) fn new(strings: Strings, streams: &Streams<'_>, place: &Place<'_>) -> Steps {
        Steps {
            strings,
            streams: [streams.stdin, streams.stdout, streams.stderr].map(AsRawFd::as_raw_fd),
            directory: place.directory.map_or(-1, |fd| fd.as_raw_fd()),
            umask: place.umask,
            mask: place.mask.0,
            signals: place.signals,
            traced: place.traced,
            // SAFETY: only returns a number.
            parent: unsafe { libc::getpid() },
            error: AtomicI32::new(0),
        }
    }

    /// The error of the step that failed, of a child that has executed its file or ended.
    pub(super) fn error(&self) -> io::Result<()> {
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(io::Errno::from_raw_os_error(error)),
        }
    }

    /// Until an error, or for ever. No step allocates, takes a lock or panics.
    unsafe fn take(&self) -> c_int {
        // SAFETY: each call is given what it takes: numbers, or addresses of what lives in the
        // parent's memory for as long as this child is in it.
        unsafe {
            let parent_death_signal = libc::PR_SET_PDEATHSIG as usize;
            call(libc::SYS_prctl, [parent_death_signal, libc::SIGKILL as usize, 0, 0]);
            // A parent that was killed before that says nothing any more.
            if call(libc::SYS_getppid, [0; 4]) != i64::from(self.parent) {
                exit();
            }
            if let Err(error) = done(call(libc::SYS_setpgid, [0; 4])) {
                return error;
            }
            for (to, from) in self.streams.into_iter().enumerate() {
                if let Err(error) = done(call(libc::SYS_dup3, [from as usize, to, 0, 0])) {
                    return error;
                }
            }
            if self.directory >= 0
                && let Err(error) = done(call(libc::SYS_fchdir, [self.directory as usize, 0, 0, 0]))
            {
                return error;
            }
            if let Some(umask) = self.umask {
                call(libc::SYS_umask, [umask as usize, 0, 0, 0]);
            }
            if self.signals == Signals::Default {
                // As the kernel has it: the default, no flags, nothing blocked.
                let default = [0_u64; 4];
                for number in 1..=64 {
                    let action = (&raw const default) as usize;
                    call(libc::SYS_rt_sigaction, [number, action, 0, SET_BYTES]);
                }
            }
            if self.traced == Traced::Yes
                && let Err(error) =
                    done(call(libc::SYS_ptrace, [libc::PTRACE_TRACEME as usize, 0, 0, 0]))
            {
                return error;
            }
            let mask = (&raw const self.mask) as usize;
            call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, mask, 0, SET_BYTES]);
            let Strings { file, argv, env } = self.strings;
            let executed = call(libc::SYS_execve, [file as usize, argv as usize, env as usize, 0]);
            done(executed).err().unwrap_or(libc::EIO)
        }
    }
}

/// What the child begins with.
extern "C" fn child(steps: *const Steps) -> ! {
    // SAFETY: `steps` points to the parent's object, which lives until this child has executed its
    // file or ended, and which the parent only reads meanwhile.
    unsafe {
        let steps = &*steps;
        let error = steps.take();
        steps.error.store(error, Ordering::Release);
        exit()
    }
}

/// Ends the child.
unsafe fn exit() -> ! {
    loop {
        // SAFETY: takes a number.
        unsafe { call(libc::SYS_exit_group, [127, 0, 0, 0]) };
    }
}

/// What the kernel's answer means.
fn done(answer: i64) -> Result<(), c_int> {
    // Zero would say that all went well.
    if answer < 0 { Err(c_int::try_from(-answer).unwrap_or(libc::EIO)) } else { Ok(()) }
}

/// Makes a child that takes these steps in this process's memory. `executing`, for
/// CLONE_CHILD_CLEARTID, is where the kernel says that the child has left that memory.
///
/// # Safety
/// The steps, what they point to, and the stack below `top`, are the child's until it has executed
/// its file or ended.
pub(super) unsafe fn make(
    flags: c_int,
    top: *mut Stack,
    steps: *const Steps,
    executing: *mut u32,
) -> io::Result<Child> {
    const SET: usize = libc::SIG_SETMASK as usize;
    let flags = libc::CLONE_VM | libc::CLONE_PIDFD | libc::SIGCHLD | flags;
    let mut pidfd: c_int = -1;
    // Also those that the C library keeps for itself.
    let (all, mut before) = (u64::MAX, 0_u64);
    // SAFETY: the sets are of the kernel's size. The kernel writes the pidfd's number where it is
    // told to; the rest is by the caller.
    let pid = unsafe {
        let (all, at) = ((&raw const all) as usize, (&raw mut before) as usize);
        call(libc::SYS_rt_sigprocmask, [SET, all, at, SET_BYTES]);
        let pid = clone(flags, top, &raw mut pidfd, executing, steps);
        call(libc::SYS_rt_sigprocmask, [SET, at, 0, SET_BYTES]);
        pid
    };
    done(pid).map_err(io::Errno::from_raw_os_error)?;
    let pid = u32::try_from(pid).map_err(|_| io::Errno::IO)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(Child { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// The C libraries' wrappers differ in which flags they allow.
///
/// # Safety
/// As [`make`].
#[cfg(target_arch = "x86_64")]
unsafe fn clone(
    flags: c_int,
    top: *mut Stack,
    pidfd: *mut c_int,
    executing: *mut u32,
    steps: *const Steps,
) -> i64 {
    let answer;
    // SAFETY: the parent goes on after the block with the answer; the child, on its own stack,
    // calls a function that does not return.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone => answer,
            in("rdi") flags as usize,
            in("rsi") top,
            in("rdx") pidfd,
            in("r10") executing,
            in("r8") 0,
            in("r12") steps,
            in("r13") child as extern "C" fn(*const Steps) -> !,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    answer
}

/// The same.
///
/// # Safety
/// As [`make`].
#[cfg(target_arch = "aarch64")]
unsafe fn clone(
    flags: c_int,
    top: *mut Stack,
    pidfd: *mut c_int,
    executing: *mut u32,
    steps: *const Steps,
) -> i64 {
    let answer;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x9",
            "blr x10",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone,
            inlateout("x0") i64::from(flags) => answer,
            in("x1") top,
            in("x2") pidfd,
            in("x3") 0,
            in("x4") executing,
            in("x9") steps,
            in("x10") child as extern "C" fn(*const Steps) -> !,
        );
    }
    answer
}

/// A system call: the kernel's answer, an error as its negative number.
///
/// # Safety
/// That of the call.
#[cfg(target_arch = "x86_64")]
unsafe fn call(number: i64, [a, b, c, d]: [usize; 4]) -> i64 {
    let answer;
    // SAFETY: the kernel changes these registers, and of memory what the call is for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags)
        );
    }
    answer
}

/// The same.
///
/// # Safety
/// That of the call.
#[cfg(target_arch = "aarch64")]
unsafe fn call(number: i64, [a, b, c, d]: [usize; 4]) -> i64 {
    let answer;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a.cast_signed() as i64 => answer,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            options(nostack, preserves_flags)
        );
    }
    answer
}
