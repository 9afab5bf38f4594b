//! What this shell would bring to a call: variables, descriptors, a tracer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_os::start::Start;
use hob_os::{dir, process};
use hob_wire::caps::BEYOND_MAX;

use super::{Finding, fault, fine, warning};
use crate::connect;

/// The flag of descriptors that no program inherits, as `/proc/self/fdinfo` shows it.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let mut findings = descriptors();
    findings.push(tracer());
    findings.extend(environment(start));
    findings
}

/// More descriptors beyond 0 to 2 than go with a call send it cold.
fn descriptors() -> Vec<Finding> {
    const CHECK: &str = "descriptors";
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return vec![fault(
            CHECK,
            "/proc/self/fd cannot be read: every call runs cold",
            "mount /proc here: mount -t proc proc /proc",
        )];
    };
    let mut open: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        // Where one of 0 to 2 is closed, this very look may stand in its place.
        .filter(|number| is_inherited(*number))
        .collect();
    open.sort_unstable();
    let beyond = || open.iter().filter(|number| **number > 2);
    let count = beyond().count();
    if let Some(number) = beyond().nth(BEYOND_MAX) {
        let leads = std::fs::read_link(format!("/proc/self/fd/{number}"));
        let leads = leads.map_or("something".to_owned(), |path| path.display().to_string());
        return vec![fault(
            CHECK,
            format!(
                "{count} are open beyond 0 to 2, and {BEYOND_MAX} go with a call: {number} ({leads}) \
                 and those above it send every call from here cold"
            ),
            format!("close it: exec {number}>&-"),
        )];
    }
    vec![fine(CHECK, with_a_call(&open))]
}

/// What of the open descriptors a call has, and which runtimes leave it cold for that.
fn with_a_call(open: &[u32]) -> String {
    let closed: Vec<_> = (0..3).filter(|number| !open.contains(number)).collect();
    let lowest = open.iter().find(|number| **number > 2);
    let mut text = match &closed[..] {
        [] => "0 to 2 are open".to_owned(),
        closed => {
            let closed: Vec<_> = closed.iter().map(u32::to_string).collect();
            format!("{} closed, which goes with each call", closed.join(", "))
        }
    };
    match open.iter().filter(|number| **number > 2).count() {
        0 if closed.is_empty() => text += ", and no others",
        0 => {}
        count => text += &format!(", and {count} more, which go with each call"),
    }
    if lowest.is_none() && closed.is_empty() {
        return text;
    }
    let mut without = Vec::new();
    for row in hob_runtimes::rows().filter(|row| !row.files.is_empty()) {
        match (row.descriptors_from, lowest) {
            (None, _) => without.push(row.title.to_owned()),
            (Some(_), _) if !closed.is_empty() && !row.takes_closed => {
                without.push(format!("{} with one of 0 to 2 closed", row.title));
            }
            (Some(from), Some(lowest)) if *lowest < from => {
                without.push(format!("{} with any below {from}", row.title));
            }
            (Some(_), _) => {}
        }
    }
    if !without.is_empty() {
        text += &format!(" (cold for now: {})", without.join(", "));
    }
    text
}

fn is_inherited(number: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else {
        return false;
    };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| flags & CLOSE_ON_EXEC == 0)
}

fn tracer() -> Finding {
    match process::own_status() {
        Ok(status) if status.tracer != 0 => fault(
            "tracer",
            format!("process {} traces this one: every call from here runs cold", status.tracer),
            "call without strace or a debugger",
        ),
        Ok(_) => fine("tracer", "nobody traces this shell"),
        Err(error) => fault(
            "tracer",
            format!("/proc/self/status cannot be read ({error}): every call runs cold"),
            "mount /proc here: mount -t proc proc /proc",
        ),
    }
}

fn environment(start: &Start) -> Vec<Finding> {
    const CHECK: &str = "environment";
    let mut findings = Vec::new();
    if start.variable(b"HOB") == Some(b"0") {
        findings.push(warning(CHECK, "HOB=0: hob is bypassed in this shell", "unset HOB"));
    }
    let path = |name: &[u8]| {
        let value = start.variable(name).filter(|value| !value.is_empty())?;
        Some(Path::new(OsStr::from_bytes(value)))
    };
    let directory = connect::directory(start);
    if let Some(named) = path(b"HOB_DIR") {
        if !named.is_absolute() {
            findings.push(fault(
                CHECK,
                format!("HOB_DIR={} is another place in every directory", named.display()),
                "set HOB_DIR to an absolute path, or unset it",
            ));
        }
    } else if let Some(runtime) = path(b"XDG_RUNTIME_DIR") {
        if !directory.starts_with(runtime) {
            findings.push(warning(
                CHECK,
                format!(
                    "XDG_RUNTIME_DIR={} is not a directory of ours, and is not used",
                    runtime.display()
                ),
                format!("export XDG_RUNTIME_DIR=/run/user/{}", uid()),
            ));
        }
    } else if directory.starts_with("/tmp") {
        findings.push(warning(
            CHECK,
            format!("XDG_RUNTIME_DIR is not set: the socket is in {}", directory.display()),
            "log in through a session that sets it, or set HOB_DIR to a private directory",
        ));
    }
    if let Err(why @ dir::Unsafe::TooLong(_)) = dir::check(&directory) {
        findings.push(fault(
            CHECK,
            format!("{}: {why}: every call from here runs cold", directory.display()),
            "set HOB_DIR to a shorter path",
        ));
    }
    findings.extend(without_native_parts(CHECK, &directory));
    if findings.is_empty() {
        findings.push(fine(CHECK, "nothing in it keeps calls from hob"));
    }
    findings
}

/// Runtimes whose native part cannot be loaded from hob's directory.
fn without_native_parts(check: &'static str, directory: &Path) -> Option<Finding> {
    let mounted = rustix::fs::statvfs(directory).ok()?.f_flag;
    if !mounted.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        return None;
    }
    let is_native = |row: &&hob_runtimes::Runtime| {
        row.files.iter().any(|(name, bytes)| name.ends_with(".so") && !bytes.is_empty())
    };
    let titles: Vec<_> = hob_runtimes::rows().filter(is_native).map(|row| row.title).collect();
    let place = directory.display();
    let text = format!("{place} is mounted noexec: programs of {} stay cold", titles.join(", "));
    let mend = "set HOB_DIR to a private directory on another file system";
    (!titles.is_empty()).then(|| warning(check, text, mend))
}

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}
