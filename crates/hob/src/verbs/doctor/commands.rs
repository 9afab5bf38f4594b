//! The commands that hob could keep warm: interpreters on `PATH`, and shims.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hob_os::start::Start;
use hob_runtimes::RuntimeId;

use super::{Finding, fault, fine, warning};
use crate::say;
use crate::verbs::shim::folder::{self, Folder, Found, State};
use crate::verbs::shim::shown;

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let mut findings = interpreters(start);
    findings.extend(shims(start));
    findings
}

/// An interpreter by its real file: what it is called there tells its version.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Interpreter {
    /// A version manager's own script, which chooses anew for each call.
    Chooser(PathBuf),
    /// CPython 3.N.
    Supported(u32, PathBuf),
    /// Another version, or one that does not tell.
    Other(PathBuf),
}

fn interpreters(start: &Start) -> Vec<Finding> {
    const CHECK: &str = "interpreters";
    let range = RuntimeId::Python.row().title;
    let first = folder::command("python3".as_ref(), start);
    let first = first.or_else(|| folder::command("python".as_ref(), start));
    let Some(first) = first else {
        let text = "there is no python3 on PATH, so only programs that name another are warm";
        return vec![warning(CHECK, text, format!("install {range}"))];
    };
    let mut findings = Vec::new();
    match interpreter(&first) {
        Interpreter::Chooser(_) => {
            findings.push(fine(CHECK, format!("python3 is {}, which chooses one", first.display())))
        }
        Interpreter::Supported(minor, real) => {
            let leads = if real == first { String::new() } else { format!(", {}", real.display()) };
            let text = format!("python3 is {} (3.{minor}{leads})", first.display());
            findings.push(fine(CHECK, text));
        }
        Interpreter::Other(real) => findings.push(fault(
            CHECK,
            format!(
                "python3 is {} ({}), which is not supported: its programs run cold",
                first.display(),
                real.display()
            ),
            format!("put one of {range} first on PATH"),
        )),
    }
    let all = on_path(start);
    let minors: BTreeSet<String> = all
        .iter()
        .filter_map(|found| match found {
            Interpreter::Supported(minor, _) => Some(format!("3.{minor:02}")),
            Interpreter::Chooser(_) | Interpreter::Other(_) => None,
        })
        .collect();
    if minors.len() > 1 {
        let minors: Vec<String> = minors.iter().map(|minor| minor.replace(".0", ".")).collect();
        findings.push(fine(CHECK, format!("supported on PATH: {}", minors.join(", "))));
    }
    for found in &all {
        if let Interpreter::Other(real) = found
            && *real != first
        {
            let text = format!("{} is not supported: its programs run cold", real.display());
            findings.push(warning(CHECK, text, format!("use {range} for them")));
        }
    }
    findings
}

fn is_script(file: &Path) -> bool {
    hob_os::look::head(file).is_ok_and(|(bytes, _)| &bytes == b"#!")
}

/// Every interpreter that stands on `PATH` under a name of CPython 3.
fn on_path(start: &Start) -> BTreeSet<Interpreter> {
    let path = start.variable(b"PATH").unwrap_or_default();
    let mut found = BTreeSet::new();
    for dir in std::env::split_paths(OsStr::from_bytes(path)) {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let path = entry.path();
            let ours = folder::target(&path).is_some();
            if (RuntimeId::Python.row().is_interpreter)(name.as_bytes()) && !ours && path.is_file()
            {
                found.insert(interpreter(&path));
            }
        }
    }
    found
}

fn interpreter(path: &Path) -> Interpreter {
    if is_script(path) {
        return Interpreter::Chooser(path.to_owned());
    }
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let row = RuntimeId::Python.row();
    match (row.version)(&real).filter(|version| row.supports(Some(*version))) {
        Some((_, minor)) => Interpreter::Supported(minor, real),
        None => Interpreter::Other(real),
    }
}

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// A shim of another hob than this one: their builds replace each other's daemon.
fn other_hob(folder: &Folder, shim: &Found, (name, word): (&str, &str)) -> Option<Finding> {
    let place = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let theirs = place(&folder.dir.join(&shim.name))?;
    let same = place(Path::new("/proc/self/exe")).is_none_or(|own| own == theirs);
    let text = format!("{name} is a shim of another hob, {}", shown(shim.target.as_os_str()));
    (!same).then(|| warning("shims", text, format!("hob shim add {word}")))
}

fn shims(start: &Start) -> Vec<Finding> {
    const CHECK: &str = "shims";
    let Some(folder) = Folder::of(start) else { return Vec::new() };
    let dir = shown(folder.dir.as_os_str());
    let shims = match folder.shims(start) {
        Ok(shims) => shims,
        Err(error) => {
            let text = format!("{dir} cannot be read: {error}");
            return vec![fault(CHECK, text, "make it readable, or set HOB_SHIM_DIR")];
        }
    };
    if shims.is_empty() {
        return vec![fine(CHECK, "there are none")];
    }
    let quoted =
        String::from_utf8_lossy(&say::command([folder.dir.as_os_str().as_bytes()])).into_owned();
    let export = format!("export PATH={quoted}:\"$PATH\"");
    let mut findings = Vec::new();
    if folder.place.is_none() {
        let text = format!("{dir} is not on PATH: calls by name do not come to hob");
        findings.push(fault(CHECK, text, export.clone()));
    }
    if let Ok(meta) = folder.dir.metadata()
        && (meta.mode() & 0o022 != 0 || ![0, uid()].contains(&meta.uid()))
    {
        let text =
            format!("{dir} can be written to by others: they decide what runs by these names");
        findings.push(fault(CHECK, text, format!("chmod go-w {quoted}, and own it")));
    }
    for shim in &shims {
        let word = String::from_utf8_lossy(&say::command([shim.name.as_bytes()])).into_owned();
        let name = shown(&shim.name);
        match shim.state {
            State::Works | State::OffPath | State::Inactive => {
                findings.extend(other_hob(&folder, shim, (&name, &word)));
            }
            State::Dangling => findings.push(fault(
                CHECK,
                format!("{name}: {} is gone, so calls of it fail", shown(shim.target.as_os_str())),
                format!("hob shim add {word}"),
            )),
            State::NoCommand => findings.push(fault(
                CHECK,
                format!("{name}: there is no such command any more on PATH"),
                format!("hob shim remove {word}, or install it"),
            )),
            State::Shadowed => findings.push(fault(
                CHECK,
                format!("{name}: the command itself comes first on PATH"),
                export.clone(),
            )),
        }
    }
    if findings.is_empty() {
        let count = shims.len();
        findings.push(fine(CHECK, format!("{count} in {dir}, first on PATH")));
    }
    findings
}
