//! An npm package of the command `hob`: the binary itself, as npm links a `bin` that is no script too.
//!
//! npm installs it on Linux of this kind of machine only, and runs nothing of it by installing.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::release::{Release, SUMMARY};
use super::tarball;
use super::tree::{self, File, Tree};

/// Where pages of the manual lie in a prefix, and in this package.
const MAN: &str = "share/man/man1/";

/// The file's name.
pub(crate) fn name(release: &Release) -> String {
    format!("hob-cli-{}-linux-{}.tgz", release.version, release.arch.node())
}

/// The package itself.
pub(crate) fn bytes(root: &Path, release: &Release, tree: &Tree) -> Result<Vec<u8>> {
    let mut files = Tree::default();
    let mut pages = Vec::new();
    for (path, file) in tree.iter() {
        if let Some(page) = path.strip_prefix(MAN) {
            pages.push(format!("man/{page}"));
            files.add(&format!("man/{page}"), file.clone());
        } else if path.starts_with("bin/") || path == tree::doc("THIRD-PARTY.txt") {
            let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
            let path = if path.starts_with("bin/") { path } else { name };
            files.add(path, file.clone());
        }
    }
    for name in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        files.add(name, File::text(fs::read(root.join(name))?));
    }
    let about = json!({
        "name": "hob-cli",
        "version": release.version,
        "description": SUMMARY,
        "license": "(MIT OR Apache-2.0)",
        "repository": { "type": "git", "url": format!("git+{}.git", release.repository) },
        "os": ["linux"],
        "cpu": [release.arch.node()],
        "bin": { "hob": "bin/hob" },
        "man": pages,
    });
    files.add("package.json", File::text(format!("{about:#}\n")));
    tarball::gzip(&tarball::tar(release, &files.below("package"))?)
}
