//! A script of a language whose programs another command launches, and that command itself: which
//! execution of an interpreter they end in.
//!
//! The caller's own launcher says so. It is run once with an interpreter that only notes what it was
//! given, and what it said is kept by the content of all that it looks at: its words and its file, the
//! manifests, the variables. Kept or not, the call is then that execution, as if it had been typed.
//!
//! Deliberately not here: which languages there are (the table of runtimes).

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hob_core::key::{KeyBuilder, Part};
use hob_os::start::Start;
use hob_runtimes::{Libraries, Sessions};
use hob_wire::exit::ExitCode;

use super::world;
use crate::say;
use crate::verbs::Failure;

/// The most manifests that are looked at.
const MANIFESTS_MAX: usize = 64;
/// In the place of an interpreter: notes what a program would be executed with.
const NOTES: &str = "#!/bin/sh
case \" $* \" in *\"$HOB_INNER\"*) exec \"$HOB_INTERPRETER\" \"$@\" ;; esac
printf '%s\\0' \"$@\" > \"$HOB_NOTE\"
";

/// The call that this one means, from the word at this place on; `None`: it is what it says. An error
/// has been said, and is the exit code.
#[cold]
pub(crate) fn meant(
    start: &Start,
    language: &'static Sessions,
    at: usize,
) -> Result<Option<Start>, u8> {
    let words: Vec<&[u8]> = start.argv.iter().skip(at).map(|word| word.to_bytes()).collect();
    let found = match words.split_first() {
        Some((name, rest)) if name.ends_with(language.launcher.command.as_bytes()) => {
            command(start, language, (name, rest))
        }
        Some((name, rest)) => script(start, language, (name, rest)),
        None => Ok(None),
    };
    let found = found.map_err(|failure| {
        say::line(failure.text.as_bytes());
        failure.code
    })?;
    Ok(found.map(|words| {
        let words = words.into_iter().filter_map(|word| CString::new(word).ok());
        let words = words.map(|word| -> &'static CStr { Box::leak(word.into_boxed_c_str()) });
        let argv = start.argv.iter().take(at).copied().chain(words).collect();
        Start { argv, env: start.env.clone() }
    }))
}

/// `LAUNCHER ITS-OWN-WORDS PROGRAM ARGUMENTS`.
fn command(
    start: &Start,
    language: &Sessions,
    (name, rest): (&[u8], &[&[u8]]),
) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let line: Vec<&[u8]> = std::iter::once(name).chain(rest.iter().copied()).collect();
    let Some(own) = (language.launcher.own_words)(&line) else { return Ok(None) };
    let Some(file) = world::find(start, name) else { return Ok(None) };
    let own_words = line.get(1..own).unwrap_or_default();
    let recorded = executed(start, language, &file, (own_words, Path::new(".")));
    let Some(mut words) = recorded else { return Ok(None) };
    words.extend(line.get(own..).unwrap_or_default().iter().map(|word| word.to_vec()));
    Ok(Some(words))
}

/// `SCRIPT ARGUMENTS`.
fn script(
    start: &Start,
    language: &Sessions,
    (name, rest): (&[u8], &[&[u8]]),
) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let path = Path::new(OsStr::from_bytes(name));
    let launcher = &language.launcher;
    if !path.is_file() || is_of_another(path, launcher.command) {
        return Ok(None);
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let own: Vec<&[u8]> = launcher.words.iter().map(|word| word.as_bytes()).collect();
    let ask = || {
        let file = world::find(start, launcher.command.as_bytes())?;
        executed(start, language, &file, (&own, folder))
    };
    let has_manifest = folder.join(launcher.manifest).is_file();
    let named = || {
        language.libraries.iter().find_map(|place| match place {
            Libraries::Variable(name) => start.variable(name).filter(|value| !value.is_empty()),
            Libraries::Command(..) | Libraries::Repository(..) => None,
        })
    };
    let by_launcher = if has_manifest { ask() } else { None };
    let mut words = match (by_launcher, named()) {
        (Some(words), _) => words,
        (None, Some(libraries)) => plain(start, language, libraries.to_vec())?,
        (None, None) if has_manifest => {
            let (manifest, command) = (launcher.manifest, launcher.command);
            let shown = folder.join(manifest);
            return Err(Failure::with_code(
                format!(
                    "{}: which libraries it means `{command}` says, and there is none on PATH that \
                     does; install it, or name their jars by a variable (`hob help eval` says which)",
                    shown.display()
                ),
                ExitCode::NotExecutable as u8,
            ));
        }
        (None, None) => match ask() {
            Some(words) => words,
            None => plain(start, language, world::in_repositories(start, language)?)?,
        },
    };
    words.push(name.to_vec());
    words.extend(rest.iter().map(|word| word.to_vec()));
    Ok(Some(words))
}

/// Whether a file that can be executed names another interpreter in its first line.
fn is_of_another(path: &Path, command: &str) -> bool {
    let executable = path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
    let first = fs::read(path).unwrap_or_default();
    let first = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(first);
    executable && line.starts_with("#!") && !line.contains(command)
}

/// The interpreter with these libraries.
fn plain(start: &Start, language: &Sessions, libraries: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
    let interpreter = world::interpreter(start, language)?;
    let [option, main] = language.launcher.plain.map(|word| word.as_bytes().to_vec());
    Ok(vec![interpreter, option, libraries, main])
}

/// What the launcher executes for these words of its own in this directory; `None`: it cannot be asked.
fn executed(
    start: &Start,
    language: &Sessions,
    file: &[u8],
    (own, folder): (&[&[u8]], &Path),
) -> Option<Vec<Vec<u8>>> {
    let launcher = &language.launcher;
    let path = Path::new(OsStr::from_bytes(file));
    // One that does not look for its interpreter there would run the program itself.
    let text = fs::read(path).ok()?;
    if !String::from_utf8_lossy(&text).contains(launcher.interpreter) {
        return None;
    }
    let folder = fs::canonicalize(folder).ok()?;
    let kept = kept_in(start, language, (path, &text), (own, &folder))?;
    let words = match fs::read(&kept).ok().map(|bytes| words_of(&bytes)) {
        Some(words) if are_there(&words) => words,
        Some(_) | None => {
            ask(start, language, (path, own, &folder), &kept)?;
            words_of(&fs::read(&kept).ok()?)
        }
    };
    let here = std::env::current_dir().ok();
    Some(if here.as_deref() == Some(&folder) { words } else { from(words, language, &folder) })
}

fn words_of(bytes: &[u8]) -> Vec<Vec<u8>> {
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

/// Where an answer is kept: named by all that the launcher looks at.
fn kept_in(
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
        let text = fs::read(&manifest).unwrap_or_default();
        key.absorb(Part::Program, manifest.as_os_str().as_bytes());
        key.absorb(Part::Fingerprint, &text);
        let text = String::from_utf8_lossy(&text);
        for place in (launcher.places)(&text) {
            let below = manifest.parent().unwrap_or(Path::new("/")).join(place);
            let below = below.join(launcher.manifest);
            if !manifests.contains(&below) && manifests.len() < MANIFESTS_MAX {
                manifests.push(below);
            }
        }
    }
    let cache = match start.variable(b"XDG_CACHE_HOME").filter(|value| value.starts_with(b"/")) {
        Some(cache) => PathBuf::from(OsStr::from_bytes(cache)),
        None => Path::new(OsStr::from_bytes(start.variable(b"HOME")?)).join(".cache"),
    };
    Some(cache.join("hob/launch").join(key.finish().to_string()))
}

/// Runs the launcher with an interpreter that notes, and keeps what it notes.
fn ask(
    start: &Start,
    language: &Sessions,
    (path, own, folder): (&Path, &[&[u8]], &Path),
    kept: &Path,
) -> Option<()> {
    let launcher = &language.launcher;
    let place = kept.parent()?;
    fs::create_dir_all(place).ok()?;
    let room = tempfile::Builder::new().prefix(".").tempdir_in(place).ok()?;
    let (notes, note) = (room.path().join("interpreter"), room.path().join("note"));
    fs::write(&notes, NOTES).ok()?;
    fs::set_permissions(&notes, fs::Permissions::from_mode(0o700)).ok()?;
    let named = start.variable(launcher.interpreter.as_bytes()).filter(|value| !value.is_empty());
    let interpreter = match named {
        Some(named) => named.to_vec(),
        None => match world::find(start, language.interpreter.command) {
            Some(found) => found,
            None => world::interpreter(start, language).ok()?,
        },
    };
    let status = Command::new(path)
        .args(own.iter().map(|word| OsStr::from_bytes(word)))
        .current_dir(folder)
        .env(launcher.interpreter, &notes)
        .env("HOB_INNER", launcher.inner)
        .env("HOB_INTERPRETER", OsStr::from_bytes(&interpreter))
        .env("HOB_NOTE", &note)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .ok()?;
    let words = fs::read(&note).ok().filter(|_| status.success())?;
    let whole = room.path().join("whole");
    fs::write(&whole, [interpreter.as_slice(), b"\0", &words].concat()).ok()?;
    // Another call may keep the same beside this one.
    fs::rename(&whole, kept).ok().filter(|()| kept.metadata().is_ok_and(|meta| meta.size() > 0))
}
