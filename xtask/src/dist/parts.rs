//! What is linked into the binary beside hob's own code, as cargo resolves it for one target.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A package whose code is in the binary.
#[derive(Debug)]
pub(crate) struct Part {
    /// The package's name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// The terms, as an SPDX expression.
    pub(crate) licence: String,
    /// Where its source is kept.
    pub(crate) repository: Option<String>,
    /// The SHA-256 of the package, in hex, as `Cargo.lock` has it.
    pub(crate) checksum: Option<String>,
    /// Its unpacked source.
    pub(crate) folder: PathBuf,
}

/// All of them by name; hob's own crates are left out. Macros and what only builds are not in the
/// binary, so they are not here.
///
/// # Errors
/// When cargo cannot be run, or names a package that `Cargo.lock` does not have.
pub(crate) fn linked(root: &Path, triple: &str) -> Result<Vec<Part>> {
    let tree = cargo(
        root,
        &["tree", "--package", "hob", "--edges", "normal,no-proc-macro", "--target", triple]
            .into_iter()
            .chain(["--prefix", "none", "--format", "{p}", "--locked"])
            .collect::<Vec<_>>(),
    )?;
    let known: Value = serde_json::from_str(&cargo(
        root,
        &["metadata", "--format-version", "1", "--locked", "--filter-platform", triple],
    )?)?;
    let packages = known["packages"].as_array().context("cargo metadata lists packages")?;
    let lock: toml::Table = std::fs::read_to_string(root.join("Cargo.lock"))?.parse()?;
    let sums = checksums(&lock);
    let mut found = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let version = version.trim_start_matches('v');
        let package = packages
            .iter()
            .find(|package| package["name"] == name && package["version"] == version)
            .with_context(|| format!("cargo metadata does not know {name} {version}"))?;
        // Those without a source are the workspace's.
        if package["source"].is_null() {
            continue;
        }
        let part = part(package, sums.get(&(name, version)))
            .with_context(|| format!("{name} {version}: its licence or its folder is missing"))?;
        found.insert((name.to_owned(), version.to_owned()), part);
    }
    ensure!(!found.is_empty(), "cargo tree has named no package");
    Ok(found.into_values().collect())
}

fn part(package: &Value, checksum: Option<&&str>) -> Option<Part> {
    let word = |name: &str| package[name].as_str().map(str::to_owned);
    Some(Part {
        name: word("name")?,
        version: word("version")?,
        // The oldest packages write `MIT/Apache-2.0`.
        licence: word("license")?.replace('/', " OR "),
        repository: word("repository"),
        checksum: checksum.map(|sum| (*sum).to_owned()),
        folder: Path::new(package["manifest_path"].as_str()?).parent()?.to_path_buf(),
    })
}

fn checksums(lock: &toml::Table) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let sums = packages.filter_map(|package| {
        let word = |name: &str| package.get(name).and_then(toml::Value::as_str);
        Some(((word("name")?, word("version")?), word("checksum")?))
    });
    sums.collect()
}

/// What cargo prints.
fn cargo(root: &Path, words: &[&str]) -> Result<String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ran = Command::new(program).current_dir(root).args(words).output()?;
    let said = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "cargo {}: {said}", words.join(" "));
    Ok(String::from_utf8(ran.stdout)?)
}
