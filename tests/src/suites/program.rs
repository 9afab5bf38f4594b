//! Questions as programs: which are asked together, what is written for them, what they answer.
//!
//! Owns: the questions of an interpreter, batches, and the files of each. A program asks nothing
//! itself: it imports what asks, or finds what was asked at the start of its interpreter, and says
//! the answers at the end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Under;
use crate::run::{End, Outcome};

/// How many questions that do not disturb each other are asked together.
const TOGETHER: usize = 50;

/// Where a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// By a module that the script imports.
    Import,
    /// By `sitecustomize`.
    Sitecustomize,
    /// By a line of a `.pth` file.
    Pth,
}

/// The answers of a run, by the names of their questions.
pub(super) type Answers = BTreeMap<String, String>;

/// Stands for how the run ended, and what it complained of.
pub(super) const END: &str = "end";

/// One question.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) topic: String,
    pub(super) text: String,
    pub(super) group: String,
    source: String,
}

/// What is asked by one program.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) spot: Spot,
    pub(super) questions: Vec<Question>,
    pub(super) script: PathBuf,
    /// What stands before the interpreter's own folder in `PATH`.
    pub(super) bin: Option<PathBuf>,
}

/// All questions that are taken, of those that the generator makes for these words.
pub(super) fn questions(under: &Under, words: &[&str]) -> Vec<Question> {
    let made = under.generated("generate.py", words);
    let field = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let all = made.as_array().into_iter().flatten().map(|one| Question {
        topic: field(one, "topic"),
        text: field(one, "text"),
        group: field(one, "group"),
        source: field(one, "source"),
    });
    under.taken(all.collect(), |one| (&one.topic, &one.text))
}

/// Which questions are asked together.
pub(super) fn batches(questions: Vec<Question>) -> Vec<Vec<Question>> {
    let mut open: Vec<Vec<Question>> = Vec::new();
    for one in questions {
        let fits = |batch: &&mut Vec<Question>| {
            batch.len() < TOGETHER && batch[0].group == one.group && one.group != "alone"
        };
        match open.iter_mut().rev().find(fits) {
            Some(batch) => batch.push(one),
            None => open.push(vec![one]),
        }
    }
    open
}

/// The name under which a question's answer is told.
fn name(index: usize) -> String {
    format!("q_{index:04}")
}

impl Batch {
    /// `PATH` for its interpreter.
    pub(super) fn path(&self, under: &Under) -> OsString {
        let Some(bin) = &self.bin else { return under.path() };
        let mut path = bin.clone().into_os_string();
        path.push(":");
        path.push(under.path());
        path
    }

    /// What a run has answered, each answer as `shown` has it.
    pub(super) fn answers(&self, outcome: &Outcome, shown: fn(&str) -> String) -> Answers {
        let mut answers = Answers::new();
        for line in outcome.text().lines() {
            let words = line.strip_prefix("ANSWER ").and_then(|line| line.split_once(' '));
            if let Some((key, answer)) = words.filter(|(key, _)| self.index(key).is_some()) {
                answers.insert(key.to_owned(), shown(answer));
            }
        }
        let complaint = outcome.complaint();
        let mut end = format!("{:?}", outcome.end);
        if outcome.end != End::Code(0) || !complaint.is_empty() {
            let _ = write!(end, " {}", shown(&complaint));
        }
        answers.insert(END.to_owned(), end);
        answers
    }

    /// Which question's answer this is; one more than there are for the end.
    pub(super) fn index(&self, key: &str) -> Option<usize> {
        if key == END {
            return Some(self.questions.len());
        }
        (0..self.questions.len()).find(|index| name(*index) == key)
    }

    /// Writes the program.
    pub(super) fn make(under: &Under, folder: &Path, spot: Spot, questions: &[Question]) -> Batch {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        let script = folder.join("ask.py");
        let names: Vec<String> = (0..questions.len()).map(name).collect();
        let (text, bin) = match spot {
            Spot::Import => {
                for (name, one) in names.iter().zip(questions) {
                    write(&folder.join(format!("{name}.py")), &one.source);
                }
                (importing(&names), None)
            }
            Spot::Sitecustomize | Spot::Pth => {
                let venv = folder.join("venv");
                let packages = environment(under, &venv);
                let asker = asking(&names, questions);
                if spot == Spot::Pth {
                    write(&packages.join("asker.py"), &asker);
                    write(&packages.join("asker.pth"), "import asker\n");
                } else {
                    write(&packages.join("sitecustomize.py"), &asker);
                }
                let module = if spot == Spot::Pth { "asker" } else { "sitecustomize" };
                (telling(&format!("sys.modules[{module:?}].ANSWERS")), Some(venv.join("bin")))
            }
        };
        write(&script, &text);
        Batch { spot, questions: questions.to_vec(), script, bin }
    }
}

pub(super) fn write(path: &Path, text: &str) {
    let _alone = crate::alone();
    std::fs::write(path, text).expect("a file can be written");
}

/// A script that imports what asks.
fn importing(names: &[String]) -> String {
    let mut text = "DEFINED_BEFORE = 1\n".to_owned();
    let mut pairs = String::new();
    for name in names {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "import {name}");
        let _ = write!(pairs, "{name:?}: {name}.ANSWER, ");
    }
    text + &telling(&format!("{{{pairs}}}"))
}

/// The end of a script: what was answered.
fn telling(answers: &str) -> String {
    format!(
        "import sys\n\nfor name, answer in {answers}.items():\n    \
         text = answer if type(answer) is str else repr(answer)\n    \
         print(\"ANSWER\", name, ascii(text))\nprint(\"OVER\")\n"
    )
}

/// What asks all of them at the start of an interpreter, one after the other.
fn asking(names: &[String], questions: &[Question]) -> String {
    let mut text = "ANSWERS = {}\n".to_owned();
    for (name, one) in names.iter().zip(questions) {
        let _ = writeln!(text, "{}ANSWERS[{name:?}] = ANSWER", one.source);
    }
    text
}

/// A virtual environment with nothing in it; where its packages are.
pub(super) fn environment(under: &Under, venv: &Path) -> PathBuf {
    let version = under.version();
    let packages = venv.join(format!("lib/python{version}/site-packages"));
    std::fs::create_dir_all(&packages).expect("a folder can be made");
    std::fs::create_dir_all(venv.join("bin")).expect("a folder can be made");
    let home = under.python.parent().unwrap_or(Path::new("/usr/bin")).display().to_string();
    let settings = format!("home = {home}\ninclude-system-site-packages = false\n");
    write(&venv.join("pyvenv.cfg"), &settings);
    for name in ["python3", "python"] {
        std::os::unix::fs::symlink(&under.python, venv.join("bin").join(name))
            .expect("a link can be made");
    }
    packages
}
