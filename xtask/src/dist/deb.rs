//! A package for dpkg. It has no script: installing it starts nothing, and removing it leaves
//! nothing.

use std::io::Write;

use anyhow::Result;

use super::release::{DESCRIPTION, Release, SUMMARY};
use super::tarball::{gzip, tar};
use super::tree::{self, File, Tree};

/// The file's name.
pub(crate) fn name(release: &Release) -> String {
    format!("hob_{}_{}.deb", release.version, release.arch.debian())
}

/// The package itself: an archive of a version and two tarballs.
pub(crate) fn bytes(release: &Release, tree: &Tree) -> Result<Vec<u8>> {
    let mut tree = tree.clone();
    tree.add(&tree::doc("copyright"), File::text(copyright(release)));
    let mut files = Tree::default();
    let mut size = 0;
    for (path, file) in tree.below("usr").iter() {
        size += file.bytes.len();
        // Debian's pages are compressed.
        if path.contains("/man/") {
            files.add(&format!("{path}.gz"), File::text(gzip(&file.bytes)?));
        } else {
            files.add(path, file.clone());
        }
    }
    let mut control = Tree::default();
    control.add("control", File::text(about(release, size)));
    let mut archive = b"!<arch>\n".to_vec();
    member(&mut archive, release, "debian-binary", b"2.0\n")?;
    member(&mut archive, release, "control.tar.gz", &gzip(&tar(release, &control)?)?)?;
    member(&mut archive, release, "data.tar.gz", &gzip(&tar(release, &files)?)?)?;
    Ok(archive)
}

/// One file of an `ar` archive: a header of fixed columns, the bytes, and one more if they are odd.
fn member(archive: &mut Vec<u8>, release: &Release, name: &str, bytes: &[u8]) -> Result<()> {
    write!(archive, "{name:<16}{:<12}{:<6}{:<6}{:<8}", release.epoch, 0, 0, "100644")?;
    writeln!(archive, "{:<10}`", bytes.len())?;
    archive.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
    Ok(())
}

/// What dpkg knows of the package. The binary is static, so that it depends on nothing.
fn about(release: &Release, size: usize) -> String {
    format!(
        "Package: hob\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: hob <packages@hob.invalid>\n\
         Installed-Size: {}\n\
         Suggests: python3, ruby\n\
         Section: utils\n\
         Priority: optional\n\
         Homepage: {}\n\
         Description: {}\n {}\n",
        release.version,
        release.arch.debian(),
        size.div_ceil(1024),
        release.repository,
        SUMMARY,
        DESCRIPTION.replace('\n', "\n "),
    )
}

/// What Debian asks for beside the licences, which lie in the same folder.
fn copyright(release: &Release) -> String {
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: hob\n\
         Source: {}\n\
         \n\
         Files: *\n\
         Copyright: the authors of hob\n\
         License: MIT or Apache-2.0\n \
         The texts are in LICENSE-MIT and LICENSE-APACHE, those of what is linked in are in\n \
         THIRD-PARTY.txt, all in this folder.\n",
        release.repository
    )
}
