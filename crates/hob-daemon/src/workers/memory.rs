//! Memory readings of our processes: PSS, so that what a zygote and its copies share is counted
//! once. Reading walks a process's page tables and takes a millisecond or more, so a blocking
//! thread does it, seldom.

use std::time::Duration;

/// How long between two rounds of readings.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// Reads each process; those that have ended meanwhile are left out.
pub(crate) async fn read<Id: Copy + Send + 'static>(processes: Vec<(Id, u32)>) -> Vec<(Id, u64)> {
    let read = move || {
        let reading = |&(worker, pid): &(Id, u32)| {
            hob_os::process::pss_kib(pid).ok().map(|kib| (worker, kib))
        };
        processes.iter().filter_map(reading).collect()
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}
