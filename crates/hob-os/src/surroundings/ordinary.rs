//! What a process that works for all callers takes back of what the first one has lowered for
//! itself: `nice`, `ionice`, `chrt`, `ulimit -S` are for that caller's own program.

use rustix::process::Resource;

use super::priority;
use crate::process::limits;

/// `SCHED_OTHER`, and `SCHED_EXT`, which is a machine's choice and not a caller's.
const ORDINARY: [u32; 2] = [0, 7];
/// What a soft limit would end, or keep from writing, in the middle of others' calls.
const RAISED: [Resource; 5] =
    [Resource::Cpu, Resource::Fsize, Resource::Data, Resource::As, Resource::Nproc];

/// Takes this process back to what the kernel gives an ordinary one, and its soft limits to the hard
/// ones. What the kernel refuses stays as it is. For a process that has one thread: the ranks are
/// those of the thread that calls this.
pub fn take() {
    let own = priority::own();
    // A sched_param: its one field is the real-time priority, of which ordinary processes have none.
    let none: libc::c_int = 0;
    // SAFETY: the calls read one live int at most. Each may be refused; then it stays as it is.
    unsafe {
        if !ORDINARY.contains(&(own.policy & 0xffff)) {
            let policy: libc::c_int = 0;
            libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const none);
        }
        if own.nice > 0 {
            libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, 0);
        }
        // Without a class of its own, as a process begins.
        if own.io != 0 {
            libc::syscall(libc::SYS_ioprio_set, priority::WHO_PROCESS, 0, 0);
        }
    }
    if priority::oom_score_adj(std::process::id()) > 0 {
        let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    }
    RAISED.into_iter().for_each(limits::raise);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own: ranks are a thread's.
    #[test]
    fn what_everybody_may_take_back_is_taken_back() {
        let taken = std::thread::spawn(|| {
            let (batch, none): (libc::c_int, libc::c_int) = (3, 0);
            // SAFETY: reads one live int.
            let ranked = unsafe {
                let idle = 3 << 13;
                libc::syscall(libc::SYS_ioprio_set, priority::WHO_PROCESS, 0, idle) == 0
                    && libc::syscall(libc::SYS_sched_setscheduler, 0, batch, &raw const none) == 0
            };
            assert!(ranked, "every process may do this");
            let lowered = priority::own();
            take();
            (lowered, priority::own())
        });
        let (lowered, own) = taken.join().unwrap();
        assert_eq!((lowered.io >> 13, lowered.policy), (3, 3));
        // The kernel may tell a process without a class the one that its nice value stands for.
        assert!([0, 2].contains(&(own.io >> 13)), "{own:?}");
        assert_eq!(own.policy, 0);
    }
}
