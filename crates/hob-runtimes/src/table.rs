//! The table itself: one row for each runtime, and what is asked of it.

use crate::program::{EnvChanges, Program, RuntimeId, Target, TargetKind};
use crate::row::{App, Files, Mode, Runtime};
use crate::{exec, jvm, native, python, ruby};

/// Each runtime, by its [`RuntimeId`].
static ROWS: [Runtime; 5] = [exec::ROW, native::ROW, python::ROW, ruby::ROW, jvm::ROW];

impl RuntimeId {
    /// Its row.
    #[must_use]
    pub fn row(self) -> &'static Runtime {
        &ROWS[self as usize]
    }
}

impl Program {
    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> &'static Runtime {
        self.runtime.row()
    }

    /// Whether a runtime of hob's hosts it in an interpreter; else it is executed.
    #[must_use]
    pub fn is_hosted(&self) -> bool {
        !self.row().files.is_empty()
    }

    /// The path of the interpreter, if there is one.
    #[must_use]
    pub fn interpreter(&self) -> Option<&[u8]> {
        self.is_hosted().then_some(&self.interpreter)
    }

    /// The arguments that decide what it loads.
    #[must_use]
    pub fn deciding(&self) -> &[Vec<u8>] {
        let arguments = self.argv.get(1..).unwrap_or_default();
        &arguments[..arguments.len().min((self.row().words)(self))]
    }

    /// Its interpreter with the same options and nothing to run, where a copy of that can be told
    /// this program; `None` where it cannot.
    #[must_use]
    pub fn bare(&self) -> Option<Program> {
        if !self.row().has_bare {
            return None;
        }
        let name = self.prefix.first().unwrap_or(&self.interpreter);
        Some(Program {
            prefix: std::iter::once(name).chain(&self.options).cloned().collect(),
            target: Target { kind: TargetKind::Bare, name: Vec::new() },
            argv: Vec::new(),
            env: EnvChanges::default(),
            // What the script itself is decides nothing here.
            watch: self.watch.iter().filter(|path| **path != self.target.name).cloned().collect(),
            ..self.clone()
        })
    }

    /// Its layer of installed packages; `None` where its runtime has none.
    #[must_use]
    pub fn installed(&self) -> Option<Program> {
        if !self.row().has_bare || self.target.kind != TargetKind::Script {
            return None;
        }
        let bare = self.bare()?;
        let target = Target { kind: TargetKind::Installed, name: self.target.name.clone() };
        Some(Program { target, argv: self.argv.clone(), ..bare })
    }

    /// The argv of its interpreter when that begins with the runtime. A process that serves is
    /// started elsewhere than its callers: a relative name of the interpreter would be looked up
    /// there.
    #[must_use]
    pub fn command(&self, files: Files<'_>, mode: Mode<'_>) -> Vec<Vec<u8>> {
        let mut argv = (self.row().command)(self, files, mode);
        if !matches!(mode, Mode::Learn(_)) && argv[0].contains(&b'/') {
            argv[0].clone_from(&self.interpreter);
        }
        argv
    }
}

/// Each row.
pub fn rows() -> impl Iterator<Item = &'static Runtime> {
    ROWS.iter()
}

/// The runtime whose interpreter has this name.
#[must_use]
pub fn by_interpreter(name: &[u8]) -> Option<&'static Runtime> {
    rows().find(|row| (row.is_interpreter)(name))
}

/// The runtime whose scripts are named so.
#[must_use]
pub fn by_suffix(name: &[u8]) -> Option<&'static Runtime> {
    rows().find(|row| row.suffixes.iter().any(|suffix| name.ends_with(suffix)))
}

/// The runtime of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Runtime> {
    rows().find(|row| row.name == name)
}

/// The runtime that `-m NAME` means.
#[must_use]
pub fn hosting_modules() -> Option<&'static Runtime> {
    rows().find(|row| row.has_modules)
}

/// Each interface of web apps under each usual file, with the runtime that hosts it.
pub fn apps() -> impl Iterator<Item = (&'static Runtime, &'static App)> {
    rows().flat_map(|row| row.apps.iter().map(move |app| (row, app)))
}

/// The runtime of a script whose first line says that hob runs it and whose name says nothing.
#[must_use]
pub fn first_hosted() -> Option<&'static Runtime> {
    rows().find(|row| !row.commands.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_where_its_id_says_and_no_two_share_a_name() {
        for (at, row) in rows().enumerate() {
            assert_eq!(row.id as usize, at, "{}", row.name);
            assert_eq!(by_name(row.name).map(|found| found.id), Some(row.id));
            assert_eq!(row.files.is_empty(), row.commands.is_empty(), "{}", row.name);
        }
        let files: Vec<&str> = rows().flat_map(|row| row.files).map(|(name, _)| *name).collect();
        let distinct: std::collections::BTreeSet<&str> = files.iter().copied().collect();
        assert_eq!(files.len(), distinct.len(), "{files:?}");
    }

    #[test]
    fn a_name_means_one_interpreter() {
        for (name, wanted) in [
            ("python", Some("python")),
            ("python3", Some("python")),
            ("python3.13t", Some("python")),
            ("python2", None),
            ("python3-config", None),
            ("ruby", Some("ruby")),
            ("ruby3.1", Some("ruby")),
            ("ruby1.8", None),
            ("rubyfoo", None),
            ("irb", None),
            ("java", Some("jvm")),
            ("javac", None),
            ("javaw", None),
            ("sh", None),
        ] {
            assert_eq!(by_interpreter(name.as_bytes()).map(|row| row.name), wanted, "{name}");
        }
    }
}
