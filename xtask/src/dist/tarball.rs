//! A tarball: one folder that is a prefix, so that it can be unpacked over any.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};

use super::release::Release;
use super::tree::Tree;

/// The file's name.
pub(crate) fn name(release: &Release) -> String {
    format!("{}.tar.gz", release.stem())
}

/// The tarball itself.
pub(crate) fn bytes(release: &Release, tree: &Tree) -> Result<Vec<u8>> {
    let packed = tar(release, &tree.below(&release.stem()))?;
    gzip(&packed)
}

/// Files and the folders that they lie in, as a tar.
pub(crate) fn tar(release: &Release, tree: &Tree) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_mtime(release.epoch);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    for folder in tree.folders() {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        builder.append_data(&mut header, format!("{folder}/"), std::io::empty())?;
    }
    for (path, file) in tree.iter() {
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(file.mode);
        header.set_size(u64::try_from(file.bytes.len())?);
        builder.append_data(&mut header, path, file.bytes.as_slice())?;
    }
    Ok(builder.into_inner()?)
}

/// Without the time and the name of a file.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
