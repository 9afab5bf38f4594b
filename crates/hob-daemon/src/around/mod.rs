//! What the daemon is inside of and how the kernel ranks it, and how a caller compares: its
//! workers have the same, and could not take on another.
//!
//! Taken once, at the start: whoever moves a running daemon to another control group, or gives it
//! another priority, does so to a process whose workers are elsewhere already.

mod cgroup;

use hob_core::plan::{Cgroup, Context, Priority};
use hob_os::surroundings::{self, priority};
use hob_os::{process, uds};
use hob_wire::call;
use rustix::fd::AsFd;

/// What the daemon sees of a caller by its connection. Looked at before the call has come in: the
/// daemon would only wait meanwhile, while the client encodes.
#[derive(Debug)]
pub(crate) struct Seen {
    /// 0 for a process in a pid namespace beside or above this one.
    pid: u32,
    namespaces: Vec<u8>,
    cgroup: Vec<u8>,
    /// Its `oom_score_adj`.
    pub(crate) oom: i32,
}

impl Seen {
    /// Its process id, if it is in a pid namespace that can be seen from here.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Looks at the process at the other end of a connection that it made.
    pub(crate) fn look(socket: impl AsFd, pid: u32) -> Seen {
        Seen {
            pid,
            namespaces: surroundings::namespaces(socket, pid),
            cgroup: surroundings::cgroup(pid),
            oom: priority::oom_score_adj(pid),
        }
    }
}

/// The daemon's own surroundings.
#[derive(Debug)]
pub(crate) struct Around {
    /// `None` if they could not be told; then nobody's are the same.
    own: Option<(Vec<u8>, Seen)>,
    priority: priority::Priority,
}

/// The I/O priority class that needs a privilege.
const IO_REAL_TIME: u32 = 1;
/// `SCHED_OTHER`, which every process may leave for one of the next two.
const ORDINARY: u32 = 0;
/// `SCHED_BATCH` and `SCHED_IDLE`.
const LESSER: [u32; 2] = [3, 5];

impl Around {
    /// This process's own.
    pub(crate) fn own() -> Around {
        let own = || {
            let status = process::own_status().ok()?;
            let (socket, _other) = uds::pair().ok()?;
            let seen = Seen::look(&socket, std::process::id());
            Some((surroundings::context(&status), seen))
        };
        Around { own: own(), priority: priority::own() }
    }

    /// Compares the caller's context.
    pub(crate) fn context(&self, callers: &[u8], seen: &Seen) -> Context {
        let equal = self
            .own
            .as_ref()
            .is_some_and(|(context, own)| context == callers && own.namespaces == seen.namespaces);
        // An empty list is one that could not be told.
        if equal && seen.pid != 0 && !seen.namespaces.is_empty() {
            Context::Equal
        } else {
            Context::Differs
        }
    }

    /// Compares the caller's control groups; their files are read only if they differ.
    pub(crate) fn cgroup(&self, seen: &Seen) -> Cgroup {
        let own = self.own.as_ref().map_or(&[][..], |(_, own)| &own.cgroup);
        if !own.is_empty() && seen.cgroup == own {
            return Cgroup::Alike;
        }
        cgroup::compare(&seen.cgroup, own, &cgroup::Files::of_the_system())
    }

    /// Whether what such a caller starts has the priority that this daemon's workers have.
    pub(crate) fn is_like(&self, callers: &call::Priority) -> bool {
        let oom = self.own.as_ref().map_or(0, |(_, own)| own.oom);
        let own = &self.priority;
        (callers.nice, callers.io, callers.policy) == (own.nice, own.io, own.policy)
            && callers.oom == oom
    }

    /// Whether a daemon that such a caller starts would be worse than this one in no rank. One with
    /// a rank of its own starts none: it is not for all callers to come. Its I/O priority is, as
    /// every process may take back its own (`hob_os::surroundings::ordinary`).
    pub(crate) fn is_outranked(&self, callers: &call::Priority) -> bool {
        let oom = self.own.as_ref().map_or(0, |(_, own)| own.oom);
        callers.policy == ORDINARY
            && callers.io >> 13 != IO_REAL_TIME
            && callers.nice <= self.priority.nice
            && callers.oom <= oom
    }

    /// Whether the caller's control groups bound it in nothing that this process is free of.
    pub(crate) fn is_freer(&self, seen: &Seen) -> bool {
        let own = self.own.as_ref().map_or(&[][..], |(_, own)| &own.cgroup);
        !own.is_empty() && cgroup::is_freer(&seen.cgroup, own, &cgroup::Files::of_the_system())
    }

    /// Compares the caller's priority.
    pub(crate) fn priority(&self, callers: &call::Priority) -> Priority {
        let own = &self.priority;
        let oom = self.own.as_ref().map_or(0, |(_, own)| own.oom);
        let policy = callers.policy == own.policy
            || (own.policy == ORDINARY && LESSER.contains(&callers.policy));
        let io = callers.io == own.io || callers.io >> 13 != IO_REAL_TIME;
        if callers.nice >= own.nice && callers.oom >= oom && policy && io {
            Priority::Within
        } else {
            Priority::Above
        }
    }
}

/// Whether the control groups of two processes, by their ids, bound a program alike. What cannot be
/// read of one that bounds is taken for a difference. Read from `/proc` and the groups' files.
#[must_use]
pub fn are_bounded_alike(one: u32, other: u32) -> bool {
    let (one, other) = (surroundings::cgroup(one), surroundings::cgroup(other));
    one == other || cgroup::compare(&one, &other, &cgroup::Files::of_the_system()) == Cgroup::Alike
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(nice: i32, policy: u32, oom: i32) -> Around {
        let seen = Seen { pid: 1, namespaces: vec![1], cgroup: vec![], oom };
        let priority = priority::Priority { nice, policy, ..priority::Priority::default() };
        Around { own: Some((vec![2], seen)), priority }
    }

    fn check(callers: call::Priority, expected: Priority) {
        assert_eq!(around(5, 0, 100).priority(&callers), expected, "{callers:?}");
    }

    #[test]
    fn only_a_caller_that_is_worse_in_nothing_starts_a_daemon_in_this_ones_place() {
        let outranked = |nice, policy, oom, io| {
            let callers = call::Priority { nice, io, policy, oom, ..call::Priority::default() };
            around(5, 0, 100).is_outranked(&callers)
        };
        assert!(outranked(0, 0, 0, 0) && outranked(5, 0, 100, 3 << 13) && outranked(5, 0, 0, 0));
        assert!(!outranked(6, 0, 0, 0) && !outranked(0, 0, 101, 0));
        assert!(!outranked(0, 1 | 1 << 16, 0, 0) && !outranked(0, 3, 0, 0));
        assert!(!outranked(0, 0, 0, IO_REAL_TIME << 13));
    }

    #[test]
    fn a_priority_can_be_lowered_and_not_raised() {
        let own = call::Priority { nice: 5, oom: 100, ..call::Priority::default() };
        check(own, Priority::Within);
        check(call::Priority { nice: 19, oom: 900, slack_ns: 1, ..own }, Priority::Within);
        check(call::Priority { nice: 4, ..own }, Priority::Above);
        check(call::Priority { oom: 99, ..own }, Priority::Above);
        check(call::Priority { io: 3 << 13, ..own }, Priority::Within);
        check(call::Priority { io: 1 << 13 | 4, ..own }, Priority::Above);
        check(call::Priority { policy: 3, ..own }, Priority::Within);
        check(call::Priority { policy: 1 | 50 << 16, ..own }, Priority::Above);
    }

    #[test]
    fn an_ordinary_policy_is_not_taken_on_from_a_lesser_one() {
        assert_eq!(around(0, 5, 0).priority(&call::Priority::default()), Priority::Above);
    }

    #[test]
    fn what_could_not_be_told_is_never_equal() {
        let around = around(0, 0, 0);
        let seen = |pid, namespaces: &[u8]| Seen {
            pid,
            namespaces: namespaces.to_vec(),
            cgroup: vec![],
            oom: 0,
        };
        assert_eq!(around.context(&[2], &seen(7, &[1])), Context::Equal);
        assert_eq!(around.context(&[2], &seen(0, &[1])), Context::Differs);
        assert_eq!(around.context(&[2], &seen(7, &[])), Context::Differs);
        assert_eq!(around.context(&[2], &seen(7, &[9])), Context::Differs);
        assert_eq!(around.context(&[3], &seen(7, &[1])), Context::Differs);
        assert_eq!(around.cgroup(&seen(7, &[1])), Cgroup::Limited);
    }
}
