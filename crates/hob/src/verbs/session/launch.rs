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
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hob_os::look;
use hob_os::start::Start;
use hob_runtimes::{Libraries, Sessions};

use super::{answers, resolve, world};
use crate::failure::Failure;
use crate::say;

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
    let own_words = line.get(1..own).unwrap_or_default();
    let recorded = match world::find(start, name) {
        Some(file) => executed(start, language, &file, (own_words, Path::new("."))),
        // A path that leads nowhere is told as such.
        None if name.contains(&b'/') => None,
        None => Some(resolve::executed(start, language, (own_words, Path::new(".")))?),
    };
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
        (None, None) if has_manifest => resolve::executed(start, language, (&own, folder))?,
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
    let first = look::whole(path).unwrap_or_default();
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
    let text = look::whole(path).ok()?;
    if !String::from_utf8_lossy(&text).contains(launcher.interpreter) {
        return None;
    }
    let folder = fs::canonicalize(folder).ok()?;
    let kept = answers::kept_in(start, language, (path, &text), (own, &folder))?;
    let words = match answers::answered(&kept) {
        Some(words) => words,
        None => {
            ask(start, language, (path, own, &folder), &kept)?;
            answers::words_of(&fs::read(&kept).ok()?)
        }
    };
    Some(answers::seen_from_here(words, language, &folder))
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
    answers::keep(&interpreter, &words, (&room.path().join("whole"), kept))
}
