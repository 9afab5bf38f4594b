//! The clocks that only go forward, which all processes of one machine share.

/// Nanoseconds of `CLOCK_MONOTONIC`.
///
/// By a system call, not through the vDSO: a client asks three times in its life, and mapping the
/// vDSO's pages in costs it four page faults, which is a hundred system calls' worth here.
#[must_use]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_BOOTTIME`, which goes on while the machine sleeps.
#[must_use]
pub fn since_boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call, which writes to it or fails.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut at) };
    let (secs, nanos) = (at.tv_sec.unsigned_abs(), at.tv_nsec.unsigned_abs());
    secs.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}
