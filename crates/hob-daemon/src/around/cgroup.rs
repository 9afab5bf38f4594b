//! Whether two control groups that are not the same bound a program alike.
//!
//! A worker is in the daemon's group and cannot be moved into the caller's without rights over
//! both. That is of no consequence where neither has a limit: every terminal window of a desktop
//! is in a group of its own. So the files are read from each group up to where both meet; a limit
//! that holds for one and not for the other sends the call cold. A number of processes is compared
//! by its value, since a desktop sets the same one on every window.
//!
//! Read on every such call and never remembered: a limit can be set at any moment, and nothing
//! would tell. What cannot be read counts as a limit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hob_core::plan::Cgroup;

/// Where the groups' files are.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    pub(super) fn of_the_system() -> Files {
        Files { root: PathBuf::from("/sys/fs/cgroup") }
    }

    /// The folder of one hierarchy: the unified one is the root itself, or beside the old ones.
    fn hierarchy(&self, controllers: &str) -> PathBuf {
        let unified = self.root.join("unified");
        match controllers {
            "" if unified.is_dir() => unified,
            _ => self.root.join(controllers),
        }
    }
}

/// The files that bound a group, and what stands in one that bounds nothing. A share (`cpu.weight`)
/// is no limit: it counts only among those that want the processor at the same time.
const UNIFIED: [(&str, &str); 7] = [
    ("memory.max", "max"),
    ("memory.high", "max"),
    ("memory.swap.max", "max"),
    ("cpu.max", "max"),
    ("io.max", ""),
    ("cpuset.cpus", ""),
    ("cpuset.mems", ""),
];
/// The same of the old hierarchies; a memory limit that bounds nothing is a very large number.
const MEMORY: [(&str, &str); 2] =
    [("memory.limit_in_bytes", "9223372036854"), ("memory.memsw.limit_in_bytes", "9223372036854")];
const PROCESSOR: [(&str, &str); 1] = [("cpu.cfs_quota_us", "-1")];
const PROCESSES: &str = "pids.max";
/// Controllers of the old kind that bound nothing, or nothing that a program could meet unequally.
const COUNTERS: [&str; 4] = ["cpuacct", "freezer", "perf_event", "net_prio"];

/// Compares two texts of `/proc/PID/cgroup`.
pub(super) fn compare(callers: &[u8], own: &[u8], files: &Files) -> Cgroup {
    let (Some(callers), Some(own)) = (parse(callers), parse(own)) else { return Cgroup::Limited };
    if !callers.keys().eq(own.keys()) {
        return Cgroup::Limited;
    }
    let alike = callers.iter().zip(own.values()).all(|((controllers, callers), own)| {
        callers == own || alike(controllers, (callers, own), files)
    });
    if alike { Cgroup::Alike } else { Cgroup::Limited }
}

/// The path of each hierarchy, by its controllers; `None` for what is no such text.
fn parse(text: &[u8]) -> Option<BTreeMap<&str, &str>> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.is_empty())?;
    text.lines()
        .map(|line| {
            let (_, rest) = line.split_once(':')?;
            // What is named is not a controller: it only groups processes.
            rest.split_once(':').filter(|(_, path)| !path.contains("/.."))
        })
        .collect()
}

fn alike(controllers: &str, paths: (&str, &str), files: &Files) -> bool {
    let bounds: &[(&str, &str)] = match controllers {
        "" => &UNIFIED,
        "memory" => &MEMORY,
        "cpu" | "cpu,cpuacct" | "cpuacct,cpu" => &PROCESSOR,
        "pids" => &[],
        _ => return controllers.starts_with("name=") || COUNTERS.contains(&controllers),
    };
    let folder = files.hierarchy(controllers);
    let (callers, own) = (Path::new(paths.0), Path::new(paths.1));
    let shared = callers.ancestors().find(|above| own.starts_with(above)).unwrap_or(Path::new("/"));
    let free = [callers, own]
        .into_iter()
        .all(|path| below(path, shared).all(|group| is_free(&within(&folder, group), bounds)));
    let processes =
        |path: &Path| below(path, shared).filter_map(|group| number(&within(&folder, group))).min();
    free && processes(callers) == processes(own)
}

/// The groups from `path` up to `shared`, which is not one of them.
fn below<'a>(path: &'a Path, shared: &'a Path) -> impl Iterator<Item = &'a Path> {
    path.ancestors().take_while(move |group| *group != shared)
}

fn within(folder: &Path, group: &Path) -> PathBuf {
    folder.join(group.strip_prefix("/").unwrap_or(group))
}

/// Whether a group that is there has none of these bounds. A file that is not there belongs to a
/// controller that is not at work.
fn is_free(group: &Path, bounds: &[(&str, &str)]) -> bool {
    group.is_dir()
        && bounds.iter().all(|(name, free)| match std::fs::read_to_string(group.join(name)) {
            Ok(text) if free.is_empty() => text.trim().is_empty(),
            Ok(text) => text.starts_with(free),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        })
}

fn number(group: &Path) -> Option<u64> {
    std::fs::read_to_string(group.join(PROCESSES)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of groups with the limits that are given, and the comparison of two of them.
    fn check(limits: &[(&str, &str)], callers: &str, own: &str, expected: Cgroup) {
        let root = tempfile::tempdir().unwrap();
        for group in ["user/one", "user/two", "service"] {
            std::fs::create_dir_all(root.path().join(group)).unwrap();
            std::fs::write(root.path().join(group).join("memory.max"), "max\n").unwrap();
        }
        for (file, text) in limits {
            std::fs::write(root.path().join(file), text).unwrap();
        }
        let files = Files { root: root.path().to_path_buf() };
        let found = compare(callers.as_bytes(), own.as_bytes(), &files);
        assert_eq!(found, expected, "{limits:?} {callers:?} {own:?}");
    }

    #[test]
    fn groups_without_a_limit_are_alike() {
        check(&[], "0::/user/one\n", "0::/user/two\n", Cgroup::Alike);
        check(&[], "0::/user/one\n", "0::/service\n", Cgroup::Alike);
        check(&[("user/one/cpu.max", "max 100000\n")], "0::/user/one\n", "0::/", Cgroup::Alike);
    }

    #[test]
    fn a_limit_of_either_counts_up_to_where_they_meet() {
        let limit = [("user/memory.max", "1000000\n")];
        check(&limit, "0::/user/one\n", "0::/user/two\n", Cgroup::Alike);
        check(&limit, "0::/user/one\n", "0::/service\n", Cgroup::Limited);
        check(&limit, "0::/service\n", "0::/user/one\n", Cgroup::Limited);
        for (file, text) in [
            ("user/one/cpu.max", "50000 100000\n"),
            ("user/one/io.max", "8:0 rbps=1000\n"),
            ("user/one/cpuset.cpus", "0\n"),
            ("user/two/memory.high", "4096\n"),
        ] {
            check(&[(file, text)], "0::/user/one\n", "0::/user/two\n", Cgroup::Limited);
        }
    }

    #[test]
    fn the_same_number_of_processes_is_no_difference() {
        let both = [("user/one/pids.max", "900\n"), ("user/two/pids.max", "900\n")];
        check(&both, "0::/user/one\n", "0::/user/two\n", Cgroup::Alike);
        check(&both[..1], "0::/user/one\n", "0::/user/two\n", Cgroup::Limited);
        let other = [("user/one/pids.max", "900\n"), ("user/two/pids.max", "max\n")];
        check(&other, "0::/user/one\n", "0::/user/two\n", Cgroup::Limited);
    }

    #[test]
    fn what_cannot_be_told_counts_as_a_limit() {
        check(&[], "0::/gone\n", "0::/service\n", Cgroup::Limited);
        check(&[], "", "0::/service\n", Cgroup::Limited);
        check(&[], "0::/../elsewhere\n", "0::/service\n", Cgroup::Limited);
        check(&[], "4:rdma:/a\n0::/service\n", "4:rdma:/b\n0::/service\n", Cgroup::Limited);
        check(&[], "no line", "0::/service\n", Cgroup::Limited);
    }

    #[test]
    fn named_hierarchies_and_counters_bound_nothing() {
        let lines = |path: &str| format!("9:name=systemd:{path}\n2:cpuacct:{path}\n0::/service\n");
        check(&[], &lines("/a"), &lines("/b"), Cgroup::Alike);
    }
}
