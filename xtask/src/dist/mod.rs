//! What people install: a tarball, a wheel, an npm package, a deb and an rpm of one binary, with what
//! was written from its command line, licences, a list of what is in it, and digests.
//!
//! Owns: which file lies where, and the bytes of each package. All are made from one `Tree`, and the
//! same input gives the same bytes: names are sorted, the time is the commit's, owners are root.
//! Deliberately not here: building the binary (the Makefile), and installing (`packaging/`).

mod deb;
mod licences;
mod npm;
mod parts;
mod release;
mod rpm;
mod sbom;
mod tarball;
mod tree;
mod wheel;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use release::Release;
use tree::{File, Tree};

/// The bill of materials, as a file in packages.
const SBOM: &str = "sbom.cdx.json";

/// Packs `hob` and what lies in `generated` into packages in `out`, which is emptied first. Says
/// what was made, one line for each file.
///
/// # Errors
/// When something that belongs in a package is missing, or cannot be written.
pub(crate) fn make(root: &Path, hob: &Path, generated: &Path, out: &Path) -> Result<Vec<String>> {
    let binary = fs::read(hob).with_context(|| format!("{}: run `make build`", hob.display()))?;
    let release = Release::of(root, &binary)?;
    let parts = parts::linked(root, &release.arch.triple())?;
    let third_party = licences::text(root, &parts)?;
    let bill = sbom::json(&release, &parts, &binary);

    let mut tree = Tree::default();
    tree.add("bin/hob", File::program(binary));
    tree.add_generated(generated)?;
    tree.add_docs(root)?;
    tree.add(&tree::doc("THIRD-PARTY.txt"), File::text(third_party.clone()));
    tree.add(&tree::doc(SBOM), File::text(bill.clone()));

    let installer = fs::read_to_string(root.join("packaging/install.sh"))?;
    let mut files = Tree::default();
    // Who has a package has its tool to remove it; who has the tarball has this.
    let mut unpacked = tree.clone();
    unpacked.add(&tree::doc("install.sh"), File::program(installer.clone()));
    files.add(&tarball::name(&release), File::text(tarball::bytes(&release, &unpacked)?));
    files.add(&wheel::name(&release), File::text(wheel::bytes(root, &release, &tree)?));
    files.add(&npm::name(&release), File::text(npm::bytes(root, &release, &tree)?));
    // What is installed for everybody is never enabled by itself.
    tree.add_unit(root)?;
    files.add(&deb::name(&release), File::text(deb::bytes(&release, &tree)?));
    files.add(&rpm::name(&release), File::text(rpm::bytes(&release, &tree)?));
    files.add(&format!("{}.cdx.json", release.stem()), File::text(bill));
    files.add("THIRD-PARTY.txt", File::text(third_party));
    files.add("install.sh", File::program(installer));
    files.add("SHA256SUMS", File::text(sums(&files)));

    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    files.write(out)?;
    Ok(files
        .iter()
        .map(|(name, file)| format!("{:>9} {}", file.bytes.len(), out.join(name).display()))
        .collect())
}

/// What `sha256sum --check` reads.
fn sums(files: &Tree) -> String {
    files.iter().map(|(name, file)| format!("{}  {name}\n", hex(&file.bytes))).collect()
}

/// The SHA-256 of some bytes, in hex.
fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
