//! How the kernel ranks this process: nice value, I/O priority, scheduling policy, timer slack,
//! and how soon it is killed when memory runs out.
//!
//! What takes one small call each, a client asks of itself on the way of a call; `oom_score_adj`
//! takes opening a file, so that the daemon asks for it meanwhile. Setting them is the worker's
//! business: only who will run the program can take them on before its threads start.

/// What one process is given, as the kernel's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Priority {
    /// The nice value, -20 to 19.
    pub nice: i32,
    /// `ioprio_get`: the class in bits 13 to 15, the level below.
    pub io: u32,
    /// The scheduling policy; for the real-time ones their priority in the upper half.
    pub policy: u32,
    /// How late the kernel may be with this process's timers, in nanoseconds.
    pub slack_ns: u64,
}

pub(super) const WHO_PROCESS: libc::c_int = 1;

/// This process's own. What a kernel does not tell is 0 for every process alike.
#[must_use]
pub fn own() -> Priority {
    // SAFETY: the call neither reads nor writes memory of ours.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    Priority { slack_ns: u64::try_from(slack).unwrap_or(0), ..of(0) }
}

/// That of another process's first thread; 0 is the caller. Its timer slack is not told.
#[must_use]
pub fn of(pid: u32) -> Priority {
    // SAFETY: none of these calls reads or writes memory of ours.
    let (nice, io, policy) = unsafe {
        (
            // The system call itself: 20 minus the nice value, so that no value looks like an error.
            libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, pid),
            libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, pid),
            libc::syscall(libc::SYS_sched_getscheduler, pid),
        )
    };
    let policy = u32::try_from(policy).unwrap_or(0);
    Priority {
        nice: if nice > 0 { 20 - i32::try_from(nice).unwrap_or(20) } else { 0 },
        io: u32::try_from(io).unwrap_or(0),
        policy: policy | real_time(pid, policy) << 16,
        slack_ns: 0,
    }
}

/// The real-time priority under `policy`; 0 under the ordinary ones, which have none.
fn real_time(pid: u32, policy: u32) -> u32 {
    const ORDINARY: [u32; 3] = [0, 3, 5];
    if ORDINARY.contains(&policy) {
        return 0;
    }
    let mut real_time: libc::c_int = 0;
    // SAFETY: the kernel writes a `sched_param`, which for it is one int; the system call itself is
    // used since musl's wrapper only says that it is not supported.
    let done = unsafe { libc::syscall(libc::SYS_sched_getparam, pid, &raw mut real_time) };
    if done == 0 { u32::try_from(real_time).unwrap_or(0) } else { u32::from(u16::MAX) }
}

/// A process's `oom_score_adj`, -1000 to 1000; 0 if it cannot be told.
#[must_use]
pub fn oom_score_adj(pid: u32) -> i32 {
    let mut text = [0; 16];
    let read = super::read_of(pid, "oom_score_adj", &mut text).unwrap_or(0);
    let text = text[..read].trim_ascii();
    let (digits, sign) = match text.split_first() {
        Some((b'-', digits)) => (digits, -1),
        Some(_) | None => (text, 1),
    };
    let value = crate::process::number(digits, 10).and_then(|value| i32::try_from(value).ok());
    sign * value.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_priority_is_what_proc_says() {
        let own = own();
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        let nice: i32 = after_name.split_whitespace().nth(16).unwrap().parse().unwrap();
        let oom = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
        assert_eq!(own.nice, nice);
        assert_eq!(oom_score_adj(std::process::id()), oom.trim().parse().unwrap());
        assert!(own.slack_ns > 0 || own.policy != 0);
    }
}
