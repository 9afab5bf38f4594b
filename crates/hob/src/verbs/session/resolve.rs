//! What a launcher would execute, where there is none: the program that it runs itself says so.
//!
//! Answers are kept as a launcher's are, by the content of all that is looked at (`answers`). Errors are
//! not kept. Deliberately not here: what that program is (the table of runtimes).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hob_os::start::Start;
use hob_runtimes::{Resolve, Sessions};
use hob_wire::exit::ExitCode;

use super::{answers, world};
use crate::failure::Failure;

/// What would be executed for these words of a launcher's own in this folder.
pub(super) fn executed(
    start: &Start,
    language: &Sessions,
    (own, folder): (&[&[u8]], &Path),
) -> Result<Vec<Vec<u8>>, Failure> {
    let (resolver, interpreter) =
        (&language.launcher.resolver, world::interpreter(start, language)?);
    let (name, bytes) = resolver.file;
    if bytes.is_empty() {
        return Err(failed(language, folder, "this build of hob has nothing that asks for them"));
    }
    let broken = |error: std::io::Error| failed(language, folder, &error.to_string());
    let home = start.variable(b"HOME").filter(|home| home.starts_with(b"/"));
    let home = home.ok_or_else(|| failed(language, folder, "HOME names no directory"))?;
    let folder = fs::canonicalize(folder).map_err(broken)?;
    let kept = answers::kept_in(start, language, (Path::new(name), bytes), (own, &folder));
    let kept = kept.ok_or_else(|| failed(language, &folder, "HOME is not set"))?;
    let words = match answers::answered(&kept) {
        Some(words) => words,
        None => {
            let asked = Asked { interpreter: &interpreter, home, own, folder: &folder };
            let words = ask(&asked, language, &kept).map_err(broken)?;
            words.ok_or_else(|| failed(language, &folder, "see above"))?
        }
    };
    Ok(answers::seen_from_here(words, language, &folder))
}

/// The libraries that the manifest in the working directory means.
pub(super) fn libraries(start: &Start, language: &Sessions) -> Result<Vec<u8>, Failure> {
    let own: Vec<&[u8]> = language.launcher.words.iter().map(|word| word.as_bytes()).collect();
    let words = executed(start, language, (&own, Path::new(".")))?;
    let [apart, _] = language.launcher.relative.map(str::as_bytes);
    let at = words.iter().position(|word| word == apart);
    let found = at.and_then(|at| words.get(at + 1)).cloned();
    found.ok_or_else(|| failed(language, Path::new("."), "its answer names none"))
}

struct Asked<'a> {
    interpreter: &'a [u8],
    home: &'a [u8],
    own: &'a [&'a [u8]],
    folder: &'a Path,
}

/// Runs it, and keeps what it says; `None`: it has said itself what is wrong.
fn ask(
    asked: &Asked<'_>,
    language: &Sessions,
    kept: &Path,
) -> std::io::Result<Option<Vec<Vec<u8>>>> {
    let resolver = &language.launcher.resolver;
    let place = kept.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(place)?;
    let room = tempfile::Builder::new().prefix(".").tempdir_in(place)?;
    let (file, note) = (room.path().join(resolver.file.0), room.path().join("note"));
    fs::write(&file, resolver.file.1)?;
    let beside = kept.with_extension("kept");
    let argv = (resolver.command)(Resolve {
        interpreter: asked.interpreter,
        file: file.as_os_str().as_bytes(),
        home: asked.home,
        cache: place.with_file_name("resolver").as_os_str().as_bytes(),
        note: note.as_os_str().as_bytes(),
        kept: beside.as_os_str().as_bytes(),
        own: asked.own,
    });
    let words = argv.iter().map(|word| OsStr::from_bytes(word));
    let status = Command::new(OsStr::from_bytes(asked.interpreter))
        .args(words.skip(1))
        .current_dir(asked.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Ok(None);
    }
    let said = fs::read(&note)?;
    let whole = room.path().join("whole");
    Ok(answers::keep(asked.interpreter, &said, (&whole, kept))
        .and_then(|()| answers::answered(kept)))
}

fn failed(language: &Sessions, folder: &Path, why: &str) -> Failure {
    let launcher = &language.launcher;
    let shown = folder.join(launcher.manifest);
    Failure::with_code(
        format!(
            "{}: {} cannot say which libraries it means, and there is no `{}` on PATH that does: {why}; \
             install that command, or name jars by a variable (`hob help eval` says which)",
            shown.display(),
            launcher.resolver.title,
            launcher.command,
        ),
        ExitCode::NotExecutable as u8,
    )
}
