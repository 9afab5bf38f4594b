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
        callers == own || alike(controllers, callers, own, files)
    });
    if alike { Cgroup::Alike } else { Cgroup::Limited }
}

/// Whether the caller is bounded in nothing that the other is free of: not below where both meet,
/// and by no smaller number of processes.
pub(super) fn is_freer(callers: &[u8], own: &[u8], files: &Files) -> bool {
    let (Some(callers), Some(own)) = (parse(callers), parse(own)) else { return false };
    callers.keys().eq(own.keys())
        && callers.iter().zip(own.values()).all(|((controllers, callers), own)| {
            let most = |processes: Option<u64>| processes.unwrap_or(u64::MAX);
            callers == own
                || match bounds(controllers) {
                    Bounds::Nothing => true,
                    Bounds::Unknown => false,
                    Bounds::Files(files_of) => {
                        let groups = Groups::new(controllers, callers, own, files);
                        groups.is_free(groups.callers, files_of)
                            && most(groups.processes(groups.callers))
                                >= most(groups.processes(groups.own))
                    }
                }
        })
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

/// What the files of a hierarchy bound.
enum Bounds {
    /// These, and the number of processes.
    Files(&'static [(&'static str, &'static str)]),
    /// Nothing.
    Nothing,
    /// It is not known here.
    Unknown,
}

fn bounds(controllers: &str) -> Bounds {
    match controllers {
        "" => Bounds::Files(&UNIFIED),
        "memory" => Bounds::Files(&MEMORY),
        "cpu" | "cpu,cpuacct" | "cpuacct,cpu" => Bounds::Files(&PROCESSOR),
        "pids" => Bounds::Files(&[]),
        _ if controllers.starts_with("name=") || COUNTERS.contains(&controllers) => Bounds::Nothing,
        _ => Bounds::Unknown,
    }
}

fn alike(controllers: &str, callers: &str, own: &str, files: &Files) -> bool {
    match bounds(controllers) {
        Bounds::Nothing => true,
        Bounds::Unknown => false,
        Bounds::Files(files_of) => {
            let groups = Groups::new(controllers, callers, own, files);
            groups.is_free(groups.callers, files_of)
                && groups.is_free(groups.own, files_of)
                && groups.processes(groups.callers) == groups.processes(groups.own)
        }
    }
}

/// Two groups of one hierarchy, and where they meet.
struct Groups<'a> {
    folder: PathBuf,
    callers: &'a Path,
    own: &'a Path,
    shared: &'a Path,
}

impl<'a> Groups<'a> {
    fn new(controllers: &str, callers: &'a str, own: &'a str, files: &Files) -> Groups<'a> {
        let (callers, own) = (Path::new(callers), Path::new(own));
        let meets = callers.ancestors().find(|above| own.starts_with(above));
        let folder = files.hierarchy(controllers);
        Groups { folder, callers, own, shared: meets.unwrap_or(Path::new("/")) }
    }

    /// Whether nothing bounds the group of this path below where both meet.
    fn is_free(&self, path: &Path, bounds: &[(&str, &str)]) -> bool {
        below(path, self.shared).all(|group| is_free(&within(&self.folder, group), bounds))
    }

    /// How many processes it may have, as far as a group below where both meet says so.
    fn processes(&self, path: &Path) -> Option<u64> {
        below(path, self.shared).filter_map(|group| number(&within(&self.folder, group))).min()
    }
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
    fn a_caller_is_freer_that_is_bounded_in_nothing_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        for group in ["user/one", "user/two"] {
            std::fs::create_dir_all(root.path().join(group)).unwrap();
            std::fs::write(root.path().join(group).join("memory.max"), "max\n").unwrap();
        }
        std::fs::write(root.path().join("user/two/memory.max"), "1000000\n").unwrap();
        let files = Files { root: root.path().to_path_buf() };
        let freer = |callers: &[u8], own: &[u8]| is_freer(callers, own, &files);
        assert!(freer(b"0::/user/one\n", b"0::/user/two\n"));
        assert!(!freer(b"0::/user/two\n", b"0::/user/one\n"));
        std::fs::write(root.path().join("user/one/pids.max"), "900\n").unwrap();
        assert!(!freer(b"0::/user/one\n", b"0::/user/two\n"), "fewer processes");
        std::fs::write(root.path().join("user/two/pids.max"), "800\n").unwrap();
        assert!(freer(b"0::/user/one\n", b"0::/user/two\n"));
        assert!(!freer(b"4:rdma:/a\n0::/user/one\n", b"4:rdma:/b\n0::/user/two\n"));
        assert!(!freer(b"", b"0::/user/two\n"));
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
