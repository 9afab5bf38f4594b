//! Where the libraries of a session are. Which places there are, the table of runtimes says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_os::start::Start;
use hob_runtimes::{Libraries, Sessions};

use super::{resolve, world};
use crate::failure::Failure;

/// Where the libraries are, as the first place says that knows of some.
pub(super) fn of(start: &Start, language: &Sessions) -> Result<Vec<u8>, Failure> {
    for place in language.libraries {
        let found = match place {
            Libraries::Command(file, words) => by_command(start, language, (file, words))?,
            Libraries::Variable(name) => {
                start.variable(name).filter(|value| !value.is_empty()).map(<[u8]>::to_vec)
            }
            Libraries::Repository(folder, artefacts) => {
                world::in_repository(start, folder, artefacts)
            }
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(Failure::usage(language.advice))
}

/// What a command says where its file is, or what says the same where there is no such command; `None`
/// where the file is not there.
fn by_command(
    start: &Start,
    language: &Sessions,
    (file, words): (&str, &[&str]),
) -> Result<Option<Vec<u8>>, Failure> {
    if !file.is_empty() && !Path::new(file).is_file() {
        return Ok(None);
    }
    let Some((name, arguments)) = words.split_first() else { return Ok(None) };
    let Some(command) = world::find(start, name.as_bytes()) else {
        let named = language.libraries.iter().any(|place| {
            matches!(place, Libraries::Variable(name) if start.variable(name).is_some_and(|value| !value.is_empty()))
        });
        if file.is_empty() || named {
            return Ok(None);
        }
        return resolve::libraries(start, language).map(Some);
    };
    let output = std::process::Command::new(OsStr::from_bytes(&command))
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| Failure::usage(format!("{name}: cannot be run: {error}")))?;
    if !output.status.success() {
        let line = words.join(" ");
        return Err(Failure::usage(format!("`{line}` failed ({}): see above", output.status)));
    }
    let said = output.stdout.trim_ascii();
    Ok(Some(said.to_vec()).filter(|said| !said.is_empty()))
}
