//! `hob new`: a small project that runs at once, in a directory of its own.
//!
//! Invariants: nothing that is there is written over; a directory that could not be filled is told as
//! what it is.
//!
//! Deliberately not here: what a project of a language is (the table of runtimes).

use std::io::ErrorKind;
use std::path::Path;

use clap::Args;
use hob_runtimes::{Sessions, with_sessions};

use super::{Failure, out};

/// What to make.
#[derive(Debug, Args)]
#[command(after_help = "\
The project is a script, what it uses, and a test. It needs no file of libraries
and no tool beside the language itself.")]
pub(crate) struct New {
    /// Of which language
    #[arg(value_parser = kinds())]
    kind: String,
    /// Its name, and that of its directory: lower-case letters, digits and hyphens
    name: String,
}

fn kinds() -> clap::builder::PossibleValuesParser {
    with_sessions().map(|row| row.new.kind).collect::<Vec<_>>().into()
}

/// Makes the directory and its files, and says what to do with them.
pub(crate) fn run(asked: &New) -> Result<(), Failure> {
    let New { kind, name } = asked;
    let row = with_sessions().find(|row| row.new.kind == kind);
    let row = row.ok_or_else(|| Failure::usage(format!("{kind}: not known here")))?;
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
    for (file, text) in row.new.files {
        let path = folder.join(file);
        let text = text.replace(row.new.placeholder, name);
        std::fs::write(&path, text).map_err(|error| {
            let shown = path.display();
            Failure::new(format!("{shown}: cannot be written: {error}; {name} is not whole"))
        })?;
    }
    out(&told(row, name))
}

fn told(row: &Sessions, name: &str) -> String {
    let files: Vec<&str> = row.new.files.iter().map(|(file, _)| *file).collect();
    let mut text = format!("made {name}: {}\n\n  cd {name}\n", files.join(", "));
    let width = row.new.steps.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    for (line, what) in row.new.steps {
        text.push_str(&format!("  {line:width$}   {what}\n"));
    }
    text
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == b'-')
}
