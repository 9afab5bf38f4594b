//! A package for rpm, made by its own `rpmbuild`: the format has a header of signed tags that only
//! rpm itself writes well. It has no script.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::release::{DESCRIPTION, Release, SUMMARY};
use super::tree::Tree;

/// The file's name.
pub(crate) fn name(release: &Release) -> String {
    format!("hob-{}-1.{}.rpm", release.version, release.arch.name())
}

/// The package itself.
///
/// # Errors
/// When `rpmbuild` is not there, or refuses.
pub(crate) fn bytes(release: &Release, tree: &Tree) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let files = tree.below("usr");
    files.write(&folder.path().join("files"))?;
    let spec = folder.path().join("hob.spec");
    std::fs::write(&spec, about(release, &files)?)?;
    let define = |name: &str, value: &str| format!("--define={name} {value}");
    let top = folder.path().display().to_string();
    let built = Command::new("rpmbuild")
        .args(["-bb", "--quiet", &format!("--target={}", release.arch.name())])
        .args([
            define("_topdir", &format!("{top}/top")),
            define("hob_files", &format!("{top}/files")),
        ])
        // The same bytes each time, on any machine.
        .args([
            define("_buildhost", "localhost"),
            define("use_source_date_epoch_as_buildtime", "1"),
        ])
        .args([define("clamp_mtime_to_source_date_epoch", "1"), define("_build_id_links", "none")])
        .args([define("_binary_payload", "w9.gzdio"), define("__os_install_post", "%{nil}")])
        .args([define("_rpmfilename", "hob.rpm"), define("_enable_debug_packages", "0")])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .arg(&spec)
        .output()
        .context("rpmbuild cannot be started: install the package rpm")?;
    ensure!(built.status.success(), "rpmbuild: {}", String::from_utf8_lossy(&built.stderr));
    Ok(std::fs::read(folder.path().join("top/RPMS/hob.rpm"))?)
}

/// The recipe. The folders are the system's, but for those that are hob's alone.
fn about(release: &Release, files: &Tree) -> Result<String> {
    let mut text = format!(
        "Name: hob\nVersion: {}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n\
         URL: {}\nAutoReqProv: no\n\n\
         %description\n{DESCRIPTION}\n\n\
         %install\nmkdir -p %{{buildroot}}\ncp -R %{{hob_files}}/. %{{buildroot}}/\n\n\
         %files\n%defattr(-, root, root, 755)\n",
        release.version, release.repository
    );
    for folder in files.folders().iter().filter(|folder| folder.contains("/hob")) {
        writeln!(text, "%dir /{folder}")?;
    }
    for (path, file) in files.iter() {
        writeln!(text, "%attr({:o}, root, root) /{path}", file.mode)?;
    }
    Ok(text)
}
