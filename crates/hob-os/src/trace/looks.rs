//! What a system call looks at: whether a process that made it before its turn has seen anything
//! that could be otherwise then.
//!
//! The list is of calls that are known; every other one looks at the world.

use rustix::io;

use super::{GET_SYSCALL_INFO, PATH_BYTES_MAX, entry, ptrace, read_path};

/// What a system call looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looks {
    /// The process itself only: its memory, its ids, its open files, chance.
    AtItself,
    /// The file of this name, or that there is none.
    AtFile(Vec<u8>),
    /// Anything else; its number.
    AtWorld(u64),
}

/// What the call looks at at which a thread stands. The end of a call looks at nothing more.
pub(super) fn looks(thread: u32) -> io::Result<Looks> {
    let mut info = [0_u64; 11];
    let size = size_of_val(&info);
    ptrace(GET_SYSCALL_INFO, thread, size, (&raw mut info).cast())?;
    let [head, _, _, number, first, second, third, fourth, fifth, ..] = info;
    if head & 0xff != 1 {
        return Ok(Looks::AtItself);
    }
    let world = Ok(Looks::AtWorld(number));
    if u32::try_from(head >> 32) != Ok(entry::MACHINE.audit) {
        return world;
    }
    let Ok(call) = i64::try_from(number) else { return world };
    let file = |path: u64| at_file(thread, number, path);
    #[cfg(target_arch = "x86_64")]
    match call {
        libc::SYS_open if reads_only(second) => return file(first),
        libc::SYS_access | libc::SYS_stat | libc::SYS_readlink => return file(first),
        libc::SYS_arch_prctl => return Ok(Looks::AtItself),
        _ => {}
    }
    let stdio = first <= 2;
    match call {
        libc::SYS_openat if reads_only(third) => file(second),
        libc::SYS_faccessat | libc::SYS_faccessat2 | libc::SYS_readlinkat => file(second),
        libc::SYS_newfstatat => {
            let own = fourth & u64::from(libc::AT_EMPTY_PATH.cast_unsigned()) != 0;
            if own { Ok(Looks::AtItself) } else { file(second) }
        }
        // An anonymous mapping has no descriptor.
        libc::SYS_mmap if fifth > 2 => Ok(Looks::AtItself),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_fstat | libc::SYS_close if !stdio => {
            Ok(Looks::AtItself)
        }
        // With a new limit it would change something.
        libc::SYS_prlimit64 if third == 0 => Ok(Looks::AtItself),
        libc::SYS_brk
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_madvise
        | libc::SYS_set_tid_address
        | libc::SYS_set_robust_list
        | libc::SYS_rseq
        | libc::SYS_futex
        | libc::SYS_getrandom
        | libc::SYS_getpid
        | libc::SYS_getppid
        | libc::SYS_gettid
        | libc::SYS_getuid
        | libc::SYS_geteuid
        | libc::SYS_getgid
        | libc::SYS_getegid
        | libc::SYS_rt_sigaction
        | libc::SYS_rt_sigprocmask
        | libc::SYS_sigaltstack => Ok(Looks::AtItself),
        _ => world,
    }
}

/// Whether flags of an `open` only ask to read what is there.
fn reads_only(flags: u64) -> bool {
    let changes = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE;
    // O_TMPFILE holds O_DIRECTORY's bit, and a directory's entries are no file's content.
    flags & u64::from(changes.cast_unsigned()) == 0
}

/// The file of a name. One that is not absolute depends on a directory, and is the world's.
fn at_file(thread: u32, number: u64, path: u64) -> io::Result<Looks> {
    let bytes = read_path(thread, path)?;
    // What the kernel makes up on each reading has no identity.
    let made_up = [&b"/proc"[..], b"/sys", b"/dev"].iter().any(|root| bytes.starts_with(root));
    let named = bytes.first() == Some(&b'/') && !made_up && bytes.len() < PATH_BYTES_MAX;
    Ok(if named { Looks::AtFile(bytes) } else { Looks::AtWorld(number) })
}
