//! Resource limits, all sixteen, in the kernel's order.

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// `RLIMIT_CPU` (0) to `RLIMIT_RTTIME` (15).
const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// Soft and hard limits of this process; `u64::MAX` is infinity, and what the system does not tell.
#[must_use]
pub fn own() -> [(u64, u64); 16] {
    RESOURCES.map(own_of)
}

/// The size that a file which this process writes may have.
#[must_use]
pub fn file_size() -> u64 {
    own_of(Resource::Fsize).0
}

/// Not by rustix, to which this call cannot fail: a filter may refuse it.
fn own_of(resource: Resource) -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel writes to a live value, or leaves it as it is.
    unsafe { libc::getrlimit(resource as _, &raw mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

/// The same of another process, as `/proc` shows them; `None` if it is not there or not ours.
#[must_use]
pub fn of(pid: u32) -> Option<[(u64, u64); 16]> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let mut limits = [(u64::MAX, u64::MAX); 16];
    // A head, then one line a limit in the kernel's order: name, soft, hard, in fixed columns.
    let mut lines = text.lines().skip(1);
    for limit in &mut limits {
        let mut figures = lines.next()?.get(NAME_COLUMNS..)?.split_whitespace();
        let mut next = || match figures.next()? {
            "unlimited" => Some(u64::MAX),
            digits => digits.parse().ok(),
        };
        *limit = (next()?, next()?);
    }
    Some(limits)
}

/// How wide a limit's name is in `/proc/PID/limits`.
const NAME_COLUMNS: usize = 26;

/// What each limit is called, in the same order.
pub const NAMES: [&str; 16] = [
    "CPU time",
    "file size",
    "data size",
    "stack size",
    "core size",
    "resident set",
    "processes",
    "open files",
    "locked memory",
    "address space",
    "file locks",
    "pending signals",
    "message queues",
    "nice",
    "real-time priority",
    "real-time timeout",
];

/// Raises this process's soft limit on open descriptors to the hard one.
pub fn raise_nofile() {
    // The daemon works with the lower limit too; it then sends calls cold sooner.
    raise(Resource::Nofile);
}

/// Raises one soft limit of this process to the hard one. Where the system refuses it, it stays.
pub(crate) fn raise(resource: Resource) {
    let (_, maximum) = own_of(resource);
    let maximum = Some(maximum).filter(|maximum| *maximum != libc::RLIM_INFINITY);
    let _ = prlimit(None::<Pid>, resource, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernels_list_says_what_the_system_calls_say() {
        assert_eq!(super::of(std::process::id()), Some(super::own()));
        assert_eq!(super::of(u32::MAX), None);
    }
}
