//! The machine: what the kernel offers, the limits that hob meets, and where receipts are kept.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hob_os::claim::Claim;
use hob_os::process::limits;
use hob_os::start::Start;
use hob_os::{dir, process};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{Mode, OFlags, inotify};
use rustix::io::Errno;

use super::{Finding, fault, fine, warning};
use crate::fallback;
use crate::say;
use crate::verbs::shim::folder;

/// Fewer watches than this do for a few programs only.
const WATCHES_WANTED: u64 = 16 * 1024;
const INSTANCES_WANTED: u64 = 16;
/// Descriptors that a thousand callers at once need, five each.
const DESCRIPTORS_WANTED: u64 = 8 * 1024;
/// Below this, hooks and warm calls lack descriptors; and what a shell usually has.
const DESCRIPTORS_OF_HOOKS: u64 = 64;
const DESCRIPTORS_OF_SHELLS: u64 = 1024;
/// What receipts and fallback lines may take on the disk.
const STATE_BYTES: u64 = 10 * 1024 * 1024;
/// The places of two limits in the kernel's order.
const CORE: usize = 4;
const NOFILE: usize = 7;

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let mut findings = vec![kernel(), proc(), null(), watches(), descriptors()];
    findings.push(state());
    findings.extend(binary(start));
    findings
}

fn kernel() -> Finding {
    const CHECK: &str = "kernel";
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut missing = Vec::new();
    if process::pidfd(std::process::id()).is_err() {
        missing.push("pidfd");
    }
    if rustix::fs::memfd_create(c"hob-doctor", rustix::fs::MemfdFlags::CLOEXEC).is_err() {
        missing.push("memfd");
    }
    if Claim::offer(&[]).is_err() {
        missing.push("socketpair");
    }
    if eventfd(0, EventfdFlags::CLOEXEC).is_err() {
        missing.push("eventfd");
    }
    if epoll::create(epoll::CreateFlags::CLOEXEC).is_err() {
        missing.push("epoll");
    }
    if missing.is_empty() {
        let text = format!("Linux {release}: pidfd, memfd, socketpair, eventfd and epoll work");
        return fine(CHECK, text);
    }
    let text = format!("Linux {release} refuses {}: every call runs cold", missing.join(", "));
    fault(CHECK, text, "use Linux 5.10 or newer, and allow them in the sandbox (seccomp) around it")
}

fn proc() -> Finding {
    const CHECK: &str = "proc";
    if process::own_status().is_err() || process::open_descriptors().is_err() {
        let text = "/proc cannot be read: every call runs cold";
        return fault(CHECK, text, "mount -t proc proc /proc");
    }
    if process::pss_kib(std::process::id()).is_err() {
        let text = "memory (PSS) cannot be measured, so the memory budget is not kept";
        return warning(CHECK, text, "use a kernel with /proc/PID/smaps_rollup (Linux 4.14)");
    }
    fine(CHECK, "readable; memory (PSS) can be measured")
}

/// What programs without an input read, and where what nobody wants goes.
fn null() -> Finding {
    const CHECK: &str = "null";
    const FIX: &str = "sudo rm -f /dev/null; sudo mknod -m 666 /dev/null c 1 3";
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(c"/dev/null", flags, Mode::empty()).and_then(rustix::fs::fstat);
    match opened {
        Ok(stat) if stat.st_rdev == rustix::fs::makedev(1, 3) => fine(CHECK, "/dev/null works"),
        Ok(_) => fault(CHECK, "/dev/null is another file: what is dropped there is kept", FIX),
        Err(error) => {
            let text =
                format!("/dev/null cannot be opened ({error}): no daemon starts, and no hooks");
            fault(CHECK, text, FIX)
        }
    }
}

fn watches() -> Finding {
    const CHECK: &str = "inotify";
    let read = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}"));
        text.ok()?.trim().parse().ok()
    };
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    if let Err(error) = inotify::init(flags) {
        return warning(
            CHECK,
            format!("no instance can be made ({error}): files are compared on each call instead"),
            "sudo sysctl fs.inotify.max_user_instances=512",
        );
    }
    let (watches, instances) = (read("max_user_watches"), read("max_user_instances"));
    if watches.is_some_and(|watches| watches < WATCHES_WANTED) {
        let text = format!("{} watches a user are few", watches.unwrap_or(0));
        return warning(CHECK, text, "sudo sysctl fs.inotify.max_user_watches=65536");
    }
    if instances.is_some_and(|instances| instances < INSTANCES_WANTED) {
        let text = format!("{} instances a user are few", instances.unwrap_or(0));
        return warning(CHECK, text, "sudo sysctl fs.inotify.max_user_instances=512");
    }
    match watches {
        Some(watches) => fine(CHECK, format!("{watches} watches a user")),
        None => fine(CHECK, "works; its limits cannot be read"),
    }
}

fn descriptors() -> Finding {
    const CHECK: &str = "open-files";
    let own = limits::own();
    let shown = |limit: u64| if limit == u64::MAX { "any".to_owned() } else { limit.to_string() };
    let core = if own[CORE].0 == 0 { "core dumps are off" } else { "core dumps are on" };
    let (soft, hard) = own[NOFILE];
    let text = format!("{} soft, {} hard; {core}", shown(soft), shown(hard));
    if soft < DESCRIPTORS_OF_HOOKS {
        let few =
            format!("{text}: too few for `hob hooks run` and for calls; they fail or run cold");
        return fault(CHECK, few, format!("ulimit -n {DESCRIPTORS_OF_SHELLS}"));
    }
    if hard < DESCRIPTORS_WANTED {
        let few = format!("{text}: a daemon started here serves few callers at once");
        return warning(CHECK, few, "raise it: ulimit -Hn 65536 (as root), then hob restart");
    }
    fine(CHECK, text)
}

/// Where receipts are kept: whose it is, what file system, how much room.
fn state() -> Finding {
    const CHECK: &str = "state";
    let Some(dir) = fallback::state_dir() else {
        return warning(
            CHECK,
            "no receipts are kept: neither XDG_STATE_HOME nor HOME is an absolute path",
            "set HOME or XDG_STATE_HOME to an absolute path",
        );
    };
    let shown = dir.display().to_string();
    let at = dir.symlink_metadata();
    if at.as_ref().is_ok_and(|at| !at.is_dir()) {
        let text = format!("{shown} is a link or not a directory: no receipts are kept");
        return fault(CHECK, text, format!("mv {0} {0}.aside", quoted(&dir)));
    }
    let elsewhere = "set XDG_STATE_HOME to a directory of yours, then hob restart";
    let Some((existing, owner)) = nearest(&dir) else {
        let text = format!("{shown}: nothing of it can be looked at: no receipts are kept");
        return fault(CHECK, text, elsewhere);
    };
    if !existing.is_dir() {
        let text = format!("{} is not a directory: no receipts are kept", existing.display());
        return fault(CHECK, text, elsewhere);
    }
    let own = rustix::process::geteuid().as_raw();
    if owner != own && (at.is_ok() || owner != 0) {
        let text = format!("{} belongs to uid {owner}: no receipts are kept", existing.display());
        return fault(CHECK, text, elsewhere);
    }
    match dir::try_to_write(&existing) {
        Ok(()) => room(&shown, &existing),
        Err(error) => not_written(&existing, owner == own, error),
    }
}

/// No receipt can be written below a directory of ours, and what mends that.
fn not_written(existing: &Path, is_ours: bool, error: Errno) -> Finding {
    const ELSEWHERE: &str = "set XDG_STATE_HOME to a directory on another file system";
    let (why, fix) = match error {
        Errno::NOSPC | Errno::DQUOT => ("is full", "free some space there".to_owned()),
        Errno::ROFS => ("is on a read-only file system", ELSEWHERE.to_owned()),
        Errno::ACCESS | Errno::PERM if is_ours => {
            ("cannot be written to", format!("chmod u+rwx {}", quoted(existing)))
        }
        Errno::ACCESS | Errno::PERM => {
            ("cannot be written to", "set XDG_STATE_HOME to a directory of yours".to_owned())
        }
        _ => ("takes no files", ELSEWHERE.to_owned()),
    };
    let text = format!("{} {why} ({error}): no receipts are kept", existing.display());
    fault("state", text, format!("{fix}, then hob restart"))
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let words = say::command([path.as_os_str().as_encoded_bytes()]);
    String::from_utf8_lossy(&words).into_owned()
}

/// The directory, or the nearest one above it that exists, and its owner.
fn nearest(dir: &Path) -> Option<(PathBuf, u32)> {
    dir.ancestors().find_map(|path| Some((path.to_owned(), path.metadata().ok()?.uid())))
}

fn room(shown: &str, existing: &Path) -> Finding {
    const CHECK: &str = "state";
    let Ok(stat) = rustix::fs::statvfs(existing) else {
        return fine(CHECK, format!("{shown}: ours"));
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let system = rustix::fs::statfs(existing).map_or("unknown", |stat| file_system(&stat));
    let mib = free / (1024 * 1024);
    let text = match stat.f_blocks {
        0 => format!("{shown}: ours ({system})"),
        _ => format!("{shown}: ours, {mib} MiB free ({system})"),
    };
    // A file system that does not count its blocks says 0 of all.
    if free < STATE_BYTES && stat.f_blocks > 0 {
        return warning(
            CHECK,
            format!("{text}: receipts need up to 9 MiB"),
            "free some space there",
        );
    }
    if ["nfs", "cifs", "smb", "fuse", "9p"].contains(&system) {
        let text = format!("{text}: receipts wait for the network");
        return warning(CHECK, text, "set XDG_STATE_HOME to a directory on a local disk");
    }
    fine(CHECK, text)
}

/// The file system's name, by the number that the kernel gives it.
fn file_system(stat: &rustix::fs::StatFs) -> &'static str {
    // The field's type differs between architectures; all numbers fit into 32 bits.
    let kind = u32::try_from(i128::from(stat.f_type) & 0xffff_ffff).unwrap_or(0);
    match kind {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x2fc1_2fc1 => "zfs",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlay",
        0x6969 => "nfs",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb",
        0x6573_5546 => "fuse",
        0x0102_1997 => "9p",
        _ => "another file system",
    }
}

/// Whether this binary is the one that others start.
fn binary(start: &Start) -> Vec<Finding> {
    const CHECK: &str = "binary";
    let Ok(own) = std::fs::read_link("/proc/self/exe") else { return Vec::new() };
    let shown = own.display();
    let version = env!("CARGO_PKG_VERSION");
    let place = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let here = place(Path::new("/proc/self/exe"));
    if place(&own) != here {
        let text = format!("{shown} was replaced while it runs");
        return vec![warning(CHECK, text, "hob restart")];
    }
    match folder::command("hob".as_ref(), start) {
        Some(first) if place(&first) != here => vec![warning(
            CHECK,
            format!("{shown}, but `hob` on PATH is {}", first.display()),
            "put one of them first everywhere: two builds replace each other's daemon",
        )],
        Some(_) => vec![fine(CHECK, format!("hob {version}, {shown}"))],
        None => vec![fine(CHECK, format!("hob {version}, {shown} (`hob` is not on PATH)"))],
    }
}
