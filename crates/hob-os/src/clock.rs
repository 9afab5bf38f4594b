//! Clocks: the monotonic one, which all processes of one machine share, and those of processor time.

/// Nanoseconds of `CLOCK_MONOTONIC`.
///
/// By a system call, not through the vDSO: a client asks three times in its life, and mapping the
/// vDSO's pages in costs it four page faults, which is a hundred system calls' worth here.
#[must_use]
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time that a process has had, all its threads together; 0 once it is
/// reaped.
#[must_use]
pub fn process_cpu_ns(pid: u32) -> u64 {
    // As `clock_getcpuclockid` makes it (`CPUCLOCK_SCHED`, include/linux/posix-timers_types.h).
    const SCHED: i32 = 2;
    let Ok(pid) = i32::try_from(pid) else { return 0 };
    read_ns(!pid << 3 | SCHED)
}

/// Nanoseconds of processor time that this process has had, and its children that it has reaped.
#[must_use]
pub fn family_cpu_ns() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for the call, which fills it in.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: all zeros are a value of it.
    let usage = unsafe { usage.assume_init() };
    let ns = |at: libc::timeval| {
        at.tv_sec.unsigned_abs() * 1_000_000_000 + at.tv_usec.unsigned_abs() * 1000
    };
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID) + ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// What a clock says; 0 if there is none of this number.
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call, which writes to it or fails.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut at) };
    let (secs, nanos) = (at.tv_sec.unsigned_abs(), at.tv_nsec.unsigned_abs());
    secs.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin_until(enough: impl Fn() -> bool) {
        while !enough() {
            std::hint::black_box((0..1000).sum::<u64>());
        }
    }

    #[test]
    fn processor_time_is_that_of_the_process_asked_for() {
        let own = std::process::id();
        let before_ns = process_cpu_ns(own);
        spin_until(|| process_cpu_ns(own) > before_ns + 1_000_000);

        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        // It works by itself, and this process need not.
        spin_until(|| process_cpu_ns(child.id()) > 20_000_000);
        let family_ns = family_cpu_ns();
        let own_ns = process_cpu_ns(own);
        child.kill().unwrap();
        child.wait().unwrap();
        // Two clocks of the kernel, of which one counts microseconds.
        let grown_ns = family_cpu_ns() - family_ns - (process_cpu_ns(own) - own_ns);
        assert!(grown_ns > 19_000_000, "{grown_ns}");
        assert_eq!(process_cpu_ns(child.id()), 0, "it is reaped");
    }
}
