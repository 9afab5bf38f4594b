//! A wheel: the command `hob` and the module `hob`, for pip, pipx and uv.
//!
//! The binary is static, so that one file serves every Python 3 on glibc and on musl. Its name among
//! packages is `hob-cli`, since `hob` is the name of somebody else's.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use data_encoding::BASE64URL_NOPAD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter, ZipDataWriter};
use sha2::{Digest, Sha256};

use super::SBOM;
use super::release::{Release, SUMMARY};
use super::tree::{self, File, Tree};

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The file's name: what it is, its version, and what it can be installed on.
pub(crate) fn name(release: &Release) -> String {
    format!("{}-py3-none-{}.whl", stem(release), platforms(release).join("."))
}

/// The wheel itself.
pub(crate) fn bytes(root: &Path, release: &Release, tree: &Tree) -> Result<Vec<u8>> {
    let (info, data) = (format!("{}.dist-info", stem(release)), format!("{}.data", stem(release)));
    let mut files = Tree::default();
    for (path, file) in tree.iter() {
        let path = match path.strip_prefix("bin/") {
            Some(command) => format!("{data}/scripts/{command}"),
            // Of the documentation, what a licence asks for, and where Python's tools look for it.
            None if path == tree::doc("THIRD-PARTY.txt") => {
                format!("{info}/licenses/THIRD-PARTY.txt")
            }
            None if path == tree::doc(SBOM) => format!("{info}/sboms/{SBOM}"),
            None if path.starts_with(&tree::doc("")) => continue,
            None => format!("{data}/data/{path}"),
        };
        files.add(&path, file.clone());
    }
    files.add("hob.py", File::text(fs::read(root.join("clients/python/hob.py"))?));
    files.add(&format!("{info}/METADATA"), File::text(about(root, release)?));
    files.add(&format!("{info}/WHEEL"), File::text(wheel(release)));
    for name in LICENCES {
        let text = fs::read(root.join(name))?;
        files.add(&format!("{info}/licenses/{name}"), File::text(text));
    }
    let record = format!("{info}/RECORD");
    files.add(&record, File::text(recorded(&files, &record)));
    zip(release, &files)
}

fn stem(release: &Release) -> String {
    format!("hob_cli-{}", release.version)
}

/// Where it can be installed: on glibc of 2014 and newer, and on musl.
fn platforms(release: &Release) -> [String; 3] {
    let arch = release.arch.name();
    ["manylinux_2_17", "manylinux2014", "musllinux_1_1"].map(|system| format!("{system}_{arch}"))
}

/// How it was made, and what it fits: any Python 3, without its C interface.
fn wheel(release: &Release) -> String {
    let tags = platforms(release).map(|platform| format!("Tag: py3-none-{platform}\n"));
    format!("Wheel-Version: 1.0\nGenerator: hob xtask\nRoot-Is-Purelib: false\n{}", tags.concat())
}

/// What an index shows of the package; the README is its page.
fn about(root: &Path, release: &Release) -> Result<String> {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: hob-cli\nVersion: {}\nSummary: {SUMMARY}\n\
         Project-URL: Source, {}\nLicense-Expression: MIT OR Apache-2.0\n",
        release.version, release.repository
    );
    for name in LICENCES.iter().chain(&["THIRD-PARTY.txt"]) {
        text.push_str(&format!("License-File: {name}\n"));
    }
    text.push_str("Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n");
    text.push_str(&fs::read_to_string(root.join("README.md")).context("README.md")?);
    Ok(text)
}

/// The list of all files with their digests; its own line has none.
fn recorded(files: &Tree, record: &str) -> String {
    let lines = files.iter().map(|(path, file)| {
        let digest = BASE64URL_NOPAD.encode(&Sha256::digest(&file.bytes));
        format!("{path},sha256={digest},{}\n", file.bytes.len())
    });
    lines.collect::<String>() + &format!("{record},,\n")
}

fn zip(release: &Release, files: &Tree) -> Result<Vec<u8>> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    let time = UtcDateTime::from_unix(i64::try_from(release.epoch)?);
    for (path, file) in files.iter() {
        let (mut entry, config) = archive
            .new_file(path)
            .compression_method(CompressionMethod::DEFLATE)
            .last_modified(time)
            .unix_permissions(0o100_000 | file.mode)
            .start()?;
        let encoder = DeflateEncoder::new(&mut entry, Compression::best());
        let mut writer = config.wrap(encoder);
        writer.write_all(&file.bytes)?;
        let (encoder, descriptor) = ZipDataWriter::finish(writer)?;
        encoder.finish()?;
        entry.finish(descriptor)?;
    }
    Ok(archive.finish()?)
}
