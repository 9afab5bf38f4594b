//! Makes the two files with which a JVM becomes a standby: `gate.so` from the crate `hob-gate`, by
//! the compiler that compiles the workspace, and `gate.jar` from `runtimes/jvm`, by a JDK.
//!
//! The workspace's own target links statically, and has no shared objects: so this one is made
//! apart. Without a JDK of 17 or newer the jar is empty: the binary is whole but for programs of
//! JVMs, which run cold.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::watch;

const GATE: &str = "../hob-gate/src/lib.rs";
/// What is compiled, and what stands for parts of the JDK that no module exports: those are
/// compiled against, and not packed.
const FOLDERS: [&str; 4] = [
    "../../runtimes/jvm/gate",
    "../../runtimes/jvm/deps",
    "../../runtimes/jvm/session",
    "../../runtimes/jvm/stubs",
];
/// The oldest class files that every JDK which is hosted reads.
const RELEASE: &str = "17";

pub(crate) fn make(out: &Path) -> Result<(), Box<dyn Error>> {
    shared_object(&out.join("gate.so"))?;
    let jar = out.join("gate.jar");
    let Some(bin) = jdk() else {
        println!("cargo:warning=no JDK of 17 or newer: programs of JVMs will run cold");
        println!("cargo:rerun-if-env-changed=JAVA_HOME");
        println!("cargo:rerun-if-env-changed=PATH");
        return Ok(fs::write(jar, [])?);
    };
    // What one JDK has made another need not make again: eight crates would be compiled for nothing.
    watch(&bin.join("javac"));
    pack(&bin, out, &jar)
}

/// Without a libc, and so for every one.
fn shared_object(to: &Path) -> Result<(), Box<dyn Error>> {
    watch(Path::new(GATE));
    let rustc = std::env::var("RUSTC")?;
    let mut command = Command::new(rustc);
    command
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "gate"])
        .args(["--cfg", "shared", "--target", &std::env::var("TARGET")?])
        .args(["-C", "panic=abort", "-C", "opt-level=s", "-C", "strip=symbols"])
        .args(["-C", "target-feature=-crt-static", "-C", "relocation-model=pic"])
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-nostartfiles"])
        .arg("-o")
        .arg(to)
        .arg(GATE);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        command.arg("-C").arg(option);
    }
    run(&mut command)
}

/// The directory of a `javac` that knows [`RELEASE`], and of the `jar` beside it.
fn jdk() -> Option<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    home.into_iter().chain(std::env::split_paths(&path)).find(|bin| {
        let javac = bin.join("javac");
        let quiet = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
        };
        javac.exists()
            && bin.join("jar").exists()
            && quiet(Command::new(javac).args(["--release", RELEASE, "-version"]))
    })
}

fn pack(bin: &Path, out: &Path, jar: &Path) -> Result<(), Box<dyn Error>> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        // All that is in it; not what is made below, or each build would be out of date at once.
        watch(Path::new(folder));
        collect(Path::new(folder), "java", &mut sources)?;
    }
    let classes = out.join("classes");
    let _ = fs::remove_dir_all(&classes);
    fs::create_dir_all(&classes)?;
    run(Command::new(bin.join("javac"))
        .args(["--release", RELEASE, "-encoding", "UTF-8", "-proc:none", "-Xlint:all", "-Werror"])
        .args(["-g:source,lines", "-d"])
        .arg(&classes)
        .args(&sources))?;
    let mut packed = Vec::new();
    collect(&classes.join("hob"), "class", &mut packed)?;
    let _ = fs::remove_file(jar);
    // The same sources make the same bytes: the build's hash is the daemon's version.
    let mut command = Command::new(bin.join("jar"));
    command.args(["--create", "--no-manifest", "--date", "2026-01-01T00:00:00Z", "--file"]);
    command.arg(jar);
    for class in packed {
        command.arg("-C").arg(&classes).arg(class.strip_prefix(&classes)?);
    }
    run(&mut command)
}

/// The files of this kind in a folder and those below it, in a fixed order.
fn collect(folder: &Path, kind: &str, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if !folder.exists() {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, kind, found)?;
        } else if path.extension().is_some_and(|end| end == kind) {
            found.push(path);
        }
    }
    Ok(())
}

/// Runs what has to succeed.
fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (output.stdout, output.stderr);
    let said = [String::from_utf8_lossy(&out), String::from_utf8_lossy(&err)].concat();
    Err(format!("{command:?} failed:\n{said}").into())
}
