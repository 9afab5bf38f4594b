//! Generated programs: what the generator prints, the files of each, and how each is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::program::{environment, write};
use super::super::{Under, hash};
use super::Orders;
use crate::run::Run;

/// Relative to the folder of the other generators.
const GENERATOR: &str = "../orders/generate.py";

/// Which text of a program that is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
}

/// One program, as it was generated.
#[derive(Debug)]
pub(super) struct Program {
    /// Its interpreter's name.
    pub(super) interpreter: String,
    pub(super) state: String,
    pub(super) writer: String,
    /// What reads, and what lies between.
    pub(super) how: String,
    pub(super) start: Vec<String>,
    pub(super) args: Vec<String>,
    /// Arguments of the calls in between, where there are such.
    pub(super) other: Option<Vec<String>>,
    pub(super) folder: PathBuf,
    files: Files,
    first: Option<Files>,
    clean: Vec<String>,
    under: Under,
    packages: Option<PathBuf>,
}

/// The text of each file, or that it is not there.
type Files = BTreeMap<String, Option<String>>;

/// Every program of every interpreter, in an order that the seed decides.
pub(super) fn all(orders: &Orders) -> Vec<Program> {
    let mut programs = Vec::new();
    for language in ["python", "ruby"] {
        let same: Vec<_> =
            orders.interpreters.iter().filter(|one| one.language == language).collect();
        for (which, interpreter) in same.iter().enumerate() {
            let mut under = orders.under.clone();
            if language == "python" {
                under.python.clone_from(&interpreter.path);
            }
            let seed = usize::try_from(under.seed).unwrap_or(1);
            let words = [orders.rounds, seed, which, same.len()].map(|word| word.to_string());
            let words: Vec<&str> =
                [language].into_iter().chain(words.iter().map(String::as_str)).collect();
            let made = under.generated(GENERATOR, &words);
            for (number, one) in made.as_array().into_iter().flatten().enumerate() {
                let folder = orders.place.join(&interpreter.name);
                programs.push(Program::of(one, &interpreter.name, (number, &folder), &under));
            }
        }
    }
    taken(programs, orders.under)
}

/// Those that are wanted: each word of `only` is the state, the writer, the interpreter, or in how
/// it reads.
fn taken(programs: Vec<Program>, under: &Under) -> Vec<Program> {
    let is = |one: &Program, word: &String| {
        [&one.state, &one.writer].contains(&word)
            || one.interpreter.split('-').any(|part| part == word)
            || one.how.contains(word.as_str())
    };
    let mut taken: Vec<Program> =
        programs.into_iter().filter(|one| under.only.iter().all(|word| is(one, word))).collect();
    assert!(!taken.is_empty(), "no program is of this kind");
    taken.sort_by_cached_key(|one| hash(&one.folder.to_string_lossy(), under.seed));
    taken.truncate(taken.len().div_ceil(under.every.max(1)));
    taken
}

impl Program {
    fn of(made: &Value, interpreter: &str, place: (usize, &Path), under: &Under) -> Program {
        let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
        let folder = place
            .1
            .join(format!("{:04}-{}-{}", place.0, text("state"), text("writer")))
            .to_string_lossy()
            .replace(' ', "-");
        let folder = PathBuf::from(folder);
        let venv = folder.join("venv");
        let packages = (made["venv"] == true)
            .then(|| venv.join(format!("lib/python{}/site-packages", under.version())));
        let home = folder.display().to_string();
        let site = packages.clone().unwrap_or_default().display().to_string();
        let filled = |text: &str| text.replace("@HERE@", &home).replace("@SITE@", &site);
        let words = |name: &str| -> Vec<String> {
            let all = made[name].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(filled).collect()
        };
        let files = |name: &str| -> Option<Files> {
            let all = made[name].as_object()?.iter();
            Some(all.map(|(path, text)| (filled(path), text.as_str().map(filled))).collect())
        };
        let other = words("other");
        Program {
            interpreter: interpreter.to_owned(),
            state: text("state"),
            writer: text("writer"),
            how: text("how"),
            start: words("start"),
            args: words("args"),
            other: (!other.is_empty()).then_some(other),
            files: files("files").unwrap_or_default(),
            first: files("first"),
            clean: words("clean"),
            under: under.clone(),
            folder,
            packages,
        }
    }

    pub(super) fn is_edited(&self) -> bool {
        self.first.is_some()
    }

    /// Writes its files. Those of the first text are written over those of the last.
    pub(super) fn write(&self, which: Which) {
        let venv = self.folder.join("venv");
        if self.packages.is_some() && !venv.exists() {
            environment(&self.under, &venv);
        }
        let files = match which {
            Which::First => self.first.as_ref(),
            Which::Last => Some(&self.files),
        };
        for (name, text) in files.into_iter().flatten() {
            // A path that is whole stands for itself.
            let path = self.folder.join(name);
            let Some(text) = text else {
                drop(std::fs::remove_file(&path));
                continue;
            };
            let folder = path.parent().expect("a file is in a folder");
            std::fs::create_dir_all(folder).expect("a folder can be made");
            write(&path, text);
            if text.starts_with("#!") {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).expect("a mode can be set");
            }
        }
    }

    /// Removes what its runs make, so that each finds what the first found.
    pub(super) fn clean(&self) {
        for name in &self.clean {
            let path = self.folder.join(name);
            let (Some(start), Some(folder)) = (name.strip_suffix('*'), path.parent()) else {
                drop(std::fs::remove_file(&path));
                continue;
            };
            let start = Path::new(start).file_name().unwrap_or_default().to_string_lossy();
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(start.as_ref()) {
                    drop(std::fs::remove_file(entry.path()));
                }
            }
        }
    }

    /// A run in its folder, by its interpreter.
    pub(super) fn placed(&self, run: Run) -> Run {
        let mut path = std::ffi::OsString::new();
        if self.packages.is_some() {
            path.push(self.folder.join("venv/bin"));
            path.push(":");
        }
        path.push(self.under.path());
        run.within(&self.folder).env("PATH", path)
    }

    /// Its folder is of no use: what it does is right.
    pub(super) fn remove(&self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
