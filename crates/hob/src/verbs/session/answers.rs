//! What a launcher, or what stands in for it, has said: kept in files that are named by the content of
//! all that it looks at.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hob_core::key::{KeyBuilder, Part};
use hob_os::start::Start;
use hob_runtimes::{Launcher, Sessions};

/// The largest file that is read as a manifest. An archive that a manifest names is larger, or has a
/// NUL.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// The most manifests that are looked at.
const MANIFESTS_MAX: usize = 64;

/// Where an answer is kept: named by all that the launcher looks at.
pub(super) fn kept_in(
    start: &Start,
    language: &Sessions,
    (path, text): (&Path, &[u8]),
    (own, folder): (&[&[u8]], &Path),
) -> Option<PathBuf> {
    let launcher = &language.launcher;
    let mut key = KeyBuilder::new();
    key.absorb(Part::Program, path.as_os_str().as_bytes()).absorb(Part::Fingerprint, text);
    for word in own {
        key.absorb(Part::Option, word);
    }
    key.absorb(Part::Directory, folder.as_os_str().as_bytes());
    for name in launcher.variables {
        let value = start.variable(name);
        key.absorb(Part::Set, name).absorb(Part::Argument, value.unwrap_or(b"\0unset"));
    }
    let mut manifests = vec![folder.join(launcher.manifest)];
    let user = launcher.user_manifests.iter().find_map(|(name, below)| {
        let value = start.variable(name).filter(|value| !value.is_empty())?;
        Some(Path::new(OsStr::from_bytes(value)).join(below)).filter(|path| path.is_file())
    });
    manifests.extend(user);
    let mut at = 0;
    while let Some(manifest) = manifests.get(at).cloned() {
        at += 1;
        key.absorb(Part::Program, manifest.as_os_str().as_bytes());
        let Some(text) = text_of(&manifest) else {
            key.absorb(Part::Fingerprint, &identity(&manifest));
            continue;
        };
        key.absorb(Part::Fingerprint, &text);
        let text = String::from_utf8_lossy(&text);
        for place in (launcher.places)(&text) {
            let place = manifest.parent().unwrap_or(Path::new("/")).join(place);
            for below in below(language, place) {
                if !manifests.contains(&below) && manifests.len() < MANIFESTS_MAX {
                    manifests.push(below);
                }
            }
        }
    }
    let cache = match start.variable(b"XDG_CACHE_HOME").filter(|value| value.starts_with(b"/")) {
        Some(cache) => PathBuf::from(OsStr::from_bytes(cache)),
        None => Path::new(OsStr::from_bytes(start.variable(b"HOME")?)).join(".cache"),
    };
    Some(cache.join("hob/launch").join(key.finish().to_string()))
}

/// The files that say which libraries a place means: itself, or what stands in it. Where both kinds
/// do, which of them counts is the launcher's business.
fn below(language: &Sessions, place: PathBuf) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place];
    }
    let Launcher { manifest, other_manifest, .. } = language.launcher;
    vec![place.join(manifest), place.join(other_manifest)]
}

/// The text of a manifest, empty where there is none; nothing of an archive.
fn text_of(file: &Path) -> Option<Vec<u8>> {
    let is_large = fs::metadata(file).is_ok_and(|metadata| metadata.len() > MANIFEST_BYTES_MAX);
    let text = if is_large { return None } else { hob_os::look::whole(file).unwrap_or_default() };
    (!text.contains(&0)).then_some(text)
}

/// What tells a file from what replaces it, without its bytes.
fn identity(file: &Path) -> Vec<u8> {
    let Ok(metadata) = fs::metadata(file) else { return Vec::new() };
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    format!("{} {} {seconds} {nanoseconds}", metadata.ino(), metadata.len()).into_bytes()
}

/// An answer that is kept, if what it names is still there.
pub(super) fn answered(kept: &Path) -> Option<Vec<Vec<u8>>> {
    fs::read(kept).ok().map(|bytes| words_of(&bytes)).filter(|words| are_there(words))
}

/// An execution in a folder, as one in the caller's directory.
pub(super) fn seen_from_here(
    words: Vec<Vec<u8>>,
    language: &Sessions,
    folder: &Path,
) -> Vec<Vec<u8>> {
    let here = std::env::current_dir().ok();
    if here.as_deref() == Some(folder) { words } else { from(words, language, folder) }
}

/// Keeps an answer: another call may keep the same beside this one.
pub(super) fn keep(interpreter: &[u8], words: &[u8], (whole, kept): (&Path, &Path)) -> Option<()> {
    fs::write(whole, [interpreter, b"\0", words].concat()).ok()?;
    fs::rename(whole, kept).ok()?;
    kept.metadata().is_ok_and(|meta| meta.size() > 0).then_some(())
}

pub(super) fn words_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// Whether the files still exist that an execution names by absolute paths.
fn are_there(words: &[Vec<u8>]) -> bool {
    let paths = words.iter().filter(|word| word.starts_with(b"/"));
    let mut paths = paths.flat_map(|word| word.split(|byte| *byte == b':'));
    paths.all(|path| !path.starts_with(b"/") || Path::new(OsStr::from_bytes(path)).exists())
}

/// The same execution from another directory.
fn from(words: Vec<Vec<u8>>, language: &Sessions, folder: &Path) -> Vec<Vec<u8>> {
    let absolute = |paths: &[u8]| -> Vec<u8> {
        let paths = paths.split(|byte| *byte == b':');
        let paths: Vec<Vec<u8>> = paths
            .map(|path| folder.join(OsStr::from_bytes(path)).into_os_string().into_vec())
            .collect();
        paths.join(&b':')
    };
    let [apart, joined] = language.launcher.relative.map(str::as_bytes);
    let mut is_value = false;
    let each = words.into_iter().map(|word| {
        let was_value = std::mem::replace(&mut is_value, word == apart);
        match word.strip_prefix(joined) {
            Some(path) => [joined, &absolute(path)].concat(),
            None if was_value => absolute(&word),
            None => word,
        }
    });
    each.collect()
}
