//! What messages take of processors: of this process, and of all that have a part in them.

use std::collections::HashMap;

/// The processes that are counted, each with all that are below it; and this one.
pub(super) struct Parts {
    roots: Vec<u32>,
}

impl Parts {
    pub(super) fn new(roots: Vec<u32>) -> Parts {
        Parts { roots }
    }

    /// The time on a processor that their threads have had which are there now, in µs.
    pub(super) fn used_us(&self) -> f64 {
        let parents = parents();
        let mut all = self.roots.clone();
        let mut at = 0;
        while let Some(parent) = all.get(at).copied() {
            all.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
            at += 1;
        }
        all.push(std::process::id());
        all.into_iter().map(of_process).sum()
    }
}

/// Each process with its parent.
fn parents() -> HashMap<u32, u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let known = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold anything; behind it are the state and the parent.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    });
    known.collect()
}

fn of_process(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let used = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    used.sum::<f64>() / 1000.0
}
