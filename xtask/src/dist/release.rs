//! What is released: the version, the machine that the binary is for, and the time of the commit.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// What hob is, in one line.
pub(crate) const SUMMARY: &str =
    "warm, isolated copies of any program, with a receipt for each call";
/// The same in a few lines, none longer than 80 columns.
pub(crate) const DESCRIPTION: &str = "\
hob puts a warm, isolated copy of any program behind any caller, and hands back
a receipt for every call. Commands in Python or Ruby start in milliseconds,
unmodified: their imports are done before the call. Nothing is started by
installing this package: the first call starts a daemon of its user's.";

/// Where an ELF file says its machine, and what it says there.
const ELF_MACHINE: std::ops::Range<usize> = 18..20;
const X86_64: [u8; 2] = [62, 0];
const AARCH64: [u8; 2] = [183, 0];

/// A kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// As Linux, Python and RPM call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// As Debian calls it.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Arch::X86_64 => "amd64",
            Arch::Aarch64 => "arm64",
        }
    }

    /// As Node calls it.
    pub(crate) fn node(self) -> &'static str {
        match self {
            Arch::X86_64 => "x64",
            Arch::Aarch64 => "arm64",
        }
    }

    /// As Rust calls what the binary is built for.
    pub(crate) fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

/// What every package needs to know.
#[derive(Debug)]
pub(crate) struct Release {
    /// The workspace's version.
    pub(crate) version: String,
    /// What the binary runs on.
    pub(crate) arch: Arch,
    /// The time of everything in a package, in seconds since 1970: the commit's.
    pub(crate) epoch: u64,
    /// The project's address.
    pub(crate) repository: String,
}

impl Release {
    /// Reads it off the workspace, the binary, and `SOURCE_DATE_EPOCH` or git.
    pub(crate) fn of(root: &Path, binary: &[u8]) -> Result<Release> {
        let arch = match binary.get(ELF_MACHINE).and_then(|bytes| bytes.try_into().ok()) {
            Some(X86_64) => Arch::X86_64,
            Some(AARCH64) => Arch::Aarch64,
            _ => bail!("the binary is none for x86-64 or ARM64"),
        };
        let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
        let package = manifest
            .get("workspace")
            .and_then(|workspace| workspace.get("package"))
            .context("Cargo.toml has no [workspace.package]")?;
        let word = |name: &str| {
            let word = package.get(name).and_then(toml::Value::as_str).map(str::to_owned);
            word.with_context(|| format!("Cargo.toml: [workspace.package] has no {name}"))
        };
        Ok(Release {
            version: word("version")?,
            arch,
            epoch: epoch(root)?,
            repository: word("repository")?,
        })
    }

    /// How a file for one kind of machine begins.
    pub(crate) fn stem(&self) -> String {
        format!("hob-{}-{}-linux", self.version, self.arch.name())
    }
}

/// The time that reproducible builds agree on.
fn epoch(root: &Path) -> Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given.parse().context("SOURCE_DATE_EPOCH is a number of seconds");
    }
    let asked = Command::new("git")
        .current_dir(root)
        .args(["log", "-1", "--format=%ct"])
        .output()
        .context("git tells the time of the commit; without it set SOURCE_DATE_EPOCH")?;
    ensure!(asked.status.success(), "no commit here: set SOURCE_DATE_EPOCH");
    String::from_utf8_lossy(&asked.stdout).trim().parse().context("git's time is a number")
}
