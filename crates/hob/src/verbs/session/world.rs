//! What a session that is started takes from its caller's world: which language, which interpreter,
//! where its libraries are. Which places there are, the table of runtimes says.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use hob_os::start::Start;
use hob_runtimes::{Libraries, Sessions, with_sessions};
use hob_wire::exit::ExitCode;
use rustix::fs::{CWD, Mode, OFlags};

use crate::failure::Failure;

/// The language of a script, or the usual one.
pub(super) fn language(script: Option<&Path>) -> Result<&'static Sessions, Failure> {
    let name = script.map(|path| path.as_os_str().as_bytes());
    let suits = |row: &&Sessions| {
        name.is_none_or(|name| row.suffixes.iter().any(|suffix| name.ends_with(suffix)))
    };
    with_sessions().find(suits).ok_or_else(|| {
        let titles: Vec<&str> = with_sessions().map(|row| row.title).collect();
        let shown = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        Failure::usage(format!("{shown}: no script that a session runs: {}", titles.join(", ")))
    })
}

/// The file of the interpreter, absolute.
pub(super) fn interpreter(start: &Start, language: &Sessions) -> Result<Vec<u8>, Failure> {
    let known = &language.interpreter;
    let installation = start.variable(known.variable).filter(|value| !value.is_empty());
    if let Some(installation) = installation {
        let file = [installation, b"/", known.inside].concat();
        let path = Path::new(OsStr::from_bytes(&file));
        if path.is_file() {
            return Ok(absolute(file));
        }
        let (shown, variable) = (path.display(), String::from_utf8_lossy(known.variable));
        return Err(Failure::usage(format!(
            "{shown}: there is no such file, though {variable} names it"
        )));
    }
    find(start, known.command).map(absolute).ok_or_else(|| {
        let (command, variable) =
            (String::from_utf8_lossy(known.command), String::from_utf8_lossy(known.variable));
        Failure::usage(format!(
            "{command}: not found on PATH: {} is needed; install one, or set {variable}",
            language.title
        ))
    })
}

/// Where the libraries are in repositories of the user's; an error says what to do.
pub(super) fn in_repositories(start: &Start, language: &Sessions) -> Result<Vec<u8>, Failure> {
    let found = language.libraries.iter().find_map(|place| match place {
        Libraries::Repository(folder, artefacts) => in_repository(start, folder, artefacts),
        Libraries::Command(..) | Libraries::Variable(_) => None,
    });
    found.ok_or_else(|| Failure::with_code(language.advice, ExitCode::NotExecutable as u8))
}

/// The newest of each artefact; `None` where one is missing.
pub(super) fn in_repository(
    start: &Start,
    folder: &str,
    artefacts: &[(&str, &str)],
) -> Option<Vec<u8>> {
    let home = PathBuf::from(OsStr::from_bytes(start.variable(b"HOME")?));
    let newest = |(place, name): &(&str, &str)| -> Option<Vec<u8>> {
        let versions = std::fs::read_dir(home.join(folder).join(place)).ok()?;
        let jars = versions.flatten().filter_map(|entry| {
            let version = entry.file_name().into_string().ok()?;
            let jar = entry.path().join(format!("{name}-{version}.jar"));
            jar.is_file().then(|| (order(&version), jar))
        });
        let (_, jar) = jars.max_by(|(one, _), (other, _)| one.cmp(other))?;
        Some(jar.into_os_string().into_vec())
    };
    let all: Option<Vec<Vec<u8>>> = artefacts.iter().map(newest).collect();
    all.map(|all| all.join(&b':'))
}

/// How versions stand in order: number by number, and a release after what precedes it.
fn order(version: &str) -> (Vec<u64>, bool) {
    let (numbers, rest) = version.split_once('-').unwrap_or((version, ""));
    (numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect(), rest.is_empty())
}

pub(super) fn find(start: &Start, name: &[u8]) -> Option<Vec<u8>> {
    let here = rustix::fs::openat(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    use rustix::fd::AsFd;
    hob_resolve::find(name, &|variable| start.variable(variable), here.as_fd()).ok()
}

fn absolute(file: Vec<u8>) -> Vec<u8> {
    let path = PathBuf::from(std::ffi::OsString::from_vec(file));
    std::path::absolute(&path).unwrap_or(path).into_os_string().into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_last_in_order() {
        let mut versions = ["1.9.0", "1.12.0", "1.12.0-rc1", "1.2", "1.11.4"];
        versions.sort_by_key(|version| order(version));
        assert_eq!(versions, ["1.2", "1.9.0", "1.11.4", "1.12.0-rc1", "1.12.0"]);
    }
}
