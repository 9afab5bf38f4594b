//! What a `hob.toml` holds, for a person who is about to trust it: each program with its handler and
//! what runs it, each mount with what it serves, and what is not there yet.
//!
//! Invariant: what `ask`, `tell` or `serve` would refuse of the file itself is an error here. A
//! handler's file that is missing is none: it may be built later, and trust is about the bytes.

use std::path::{Path, PathBuf};

use hob_core::isolation::Name;
use hob_resolve::near::nearest;
use hob_wire::message::Reason;

use super::{LEVELS_MAX, ProjectError, parse, site};
use crate::trust;

/// A program of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub program: String,
    /// The file and its function, as they are written, or the hooks directory.
    pub handler: String,
    /// The name of what hosts it.
    pub runtime: &'static str,
    /// The interpreter as it is written or usual; empty: the file is executed itself.
    pub interpreter: String,
    /// What the next message may see of this one.
    pub isolation: &'static str,
    /// Why it cannot be had yet.
    pub missing: Option<String>,
}

/// All that a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The programs, by their names.
    pub programs: Vec<Declaration>,
    /// The mounts: the path, and what is served there.
    pub mounts: Vec<(String, String)>,
}

/// Reads the file of a directory.
///
/// # Errors
/// What of it is not understood, in a line for a person.
pub fn contents(dir: &Path, bytes: &[u8]) -> Result<Contents, ProjectError> {
    let path = dir.join(trust::FILE);
    let file = parse(&path, bytes)?;
    let mut programs = Vec::new();
    for (name, section) in &file.program {
        let fault = |what: String| ProjectError::config(&path, format!("[program.{name}]: {what}"));
        let missing = match section.declared(&path, name) {
            Ok(_) => None,
            Err(error) if error.reason == Reason::NoProgram => Some(error.text),
            Err(error) => return Err(error),
        };
        let (_, _, row) = section.target(name).map_err(fault)?;
        programs.push(Declaration {
            program: name.clone(),
            handler: match &section.hooks {
                Some(hooks) => format!("hooks {hooks}"),
                None => section.handler.clone(),
            },
            runtime: row.name,
            interpreter: section.interpreter_of(row),
            isolation: section
                .isolation
                .as_deref()
                .and_then(Name::from_code)
                .map_or_else(|| Name::Prefork.code(), Name::code),
            missing,
        });
    }
    let mut mounts = Vec::new();
    if !file.mount.is_empty() || !file.serve.is_empty() {
        let site = site::read(dir, bytes)?;
        let root = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        mounts.extend(site.mounts.into_iter().map(|(at, mount)| (at, mount.shown(&root))));
    }
    Ok(Contents { programs, mounts })
}

/// The nearest directory with a `hob.toml`, from this one upwards.
#[must_use]
pub fn nearest_above(directory: &Path) -> Option<PathBuf> {
    let mut above = directory.ancestors().take(LEVELS_MAX);
    above.find(|dir| dir.join(trust::FILE).symlink_metadata().is_ok()).map(Path::to_owned)
}

/// The known key that an unknown one is near to, by what the reader says: it names the unknown one
/// and all known ones between grave accents, in this order.
pub(super) fn meant(said: &str) -> Option<String> {
    let list = said.strip_prefix("unknown field ")?;
    let mut quoted = list.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Contents, ProjectError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("public")).unwrap();
        std::fs::write(dir.path().join("greeter.py"), "def handle(p): return p\n").unwrap();
        contents(dir.path(), text.as_bytes())
    }

    #[test]
    fn programs_and_mounts_are_named_with_what_runs_them() {
        let found =
            of("[program.greeter]\nhandler = \"greeter.py:handle\"\nisolation = \"fork\"\n\
                        [program.later]\nruntime = \"native\"\nhandler = \"target/later\"\n\
                        [mount.\"/\"]\nstatic = \"public\"\n")
            .unwrap();
        let shown: Vec<_> = found
            .programs
            .iter()
            .map(|one| (one.program.as_str(), one.runtime, one.interpreter.as_str(), one.isolation))
            .collect();
        assert_eq!(
            shown,
            [("greeter", "python", "python3", "fork"), ("later", "native", "", "prefork")]
        );
        assert_eq!(found.programs[0].missing, None);
        let missing = found.programs[1].missing.as_deref().unwrap();
        assert!(missing.contains("target/later is not there"), "{missing}");
        assert_eq!(found.mounts, [("/".to_owned(), "static public".to_owned())]);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_was_meant() {
        let wrong = |text: &str, word: &str| {
            let said = of(text).unwrap_err().text;
            assert!(said.contains(word) && !said.contains('\n'), "{text}: {said}");
        };
        wrong("[programs.a]\nhandler = \"greeter.py:handle\"\n", "did you mean `program`?");
        wrong("[program.a]\nhandlr = \"greeter.py:handle\"\n", "did you mean `handler`?");
        wrong("[program.a]\nhandler = \"greeter.py\"\n", "a colon and a function");
        wrong("[mount.\"/\"]\nstatik = \"public\"\n", "unknown key `statik`");
        wrong("[serve]\nlisten = \"1\"\n", "has no mount");
    }

    #[test]
    fn a_missing_file_has_a_neighbour_that_is_meant() {
        let found = of("[program.a]\nhandler = \"greter.py:handle\"\n").unwrap();
        let missing = found.programs[0].missing.as_deref().unwrap();
        assert!(missing.ends_with("did you mean `greeter.py`?"), "{missing}");
    }
}
