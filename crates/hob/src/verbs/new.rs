//! `hob new`: a small project that runs at once, in a directory of its own.
//!
//! Invariants: nothing that is there is written over; a directory that could not be filled is told as
//! what it is.
//!
//! Deliberately not here: what a project of a language is (the table of runtimes).

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use hob_runtimes::{PLACEHOLDER, Project, projects};

use crate::failure::Failure;
use crate::output::out;

/// What to make.
#[derive(Debug, Args)]
#[command(after_help = "\
A project needs no tool beside those of its language.")]
pub(crate) struct New {
    /// Of which kind
    #[arg(value_parser = kinds())]
    kind: String,
    /// Its name, and that of its directory: lower-case letters, digits and hyphens
    name: String,
}

fn kinds() -> PossibleValuesParser {
    let kind = |project: &Project| PossibleValue::new(project.kind).help(project.title);
    projects().map(kind).collect::<Vec<_>>().into()
}

/// Makes the directory and its files, and says what to do with them.
pub(crate) fn run(asked: &New) -> Result<(), Failure> {
    let New { kind, name } = asked;
    let project = projects().find(|project| project.kind == kind);
    let project = project.ok_or_else(|| Failure::usage(format!("{kind}: not known here")))?;
    if !is_name(name) {
        return Err(Failure::usage(format!(
            "{name}: no name for a project: it begins with a lower-case letter, and goes on with \
             such letters, digits and hyphens"
        )));
    }
    let folder = Path::new(name);
    std::fs::create_dir(folder).map_err(|error| {
        Failure::new(if error.kind() == ErrorKind::AlreadyExists {
            format!("{name}: is there already, and is left as it is; choose another name")
        } else {
            format!("{name}: cannot be made: {error}")
        })
    })?;
    for (file, text) in project.files {
        let path = folder.join(file);
        write(&path, &text.replace(PLACEHOLDER, name)).map_err(|error| {
            let shown = path.display();
            Failure::new(format!("{shown}: cannot be written: {error}; {name} is not whole"))
        })?;
    }
    out(&told(project, name))
}

/// Writes a file of a project, with its folder. What names its interpreter is executable to those who
/// can read it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)?;
    if text.starts_with("#!") {
        let mut mode = path.metadata()?.permissions();
        mode.set_mode(mode.mode() | (mode.mode() & 0o444) >> 2);
        std::fs::set_permissions(path, mode)?;
    }
    Ok(())
}

fn told(project: &Project, name: &str) -> String {
    let files: Vec<&str> = project.files.iter().map(|(file, _)| *file).collect();
    let mut text = format!("made {name}: {}\n\n  cd {name}\n", files.join(", "));
    let steps = || project.steps.iter().map(|(line, what)| (line.replace(PLACEHOLDER, name), what));
    let width = steps().map(|(line, _)| line.len()).max().unwrap_or(0);
    for (line, what) in steps() {
        text.push_str(&format!("  {line:width$}   {what}\n"));
    }
    text
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == b'-')
}
