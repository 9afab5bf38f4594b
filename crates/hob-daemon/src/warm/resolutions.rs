//! Resolutions that are remembered: from the head of an argv to the program, as long as nothing
//! that decided it has changed.
//!
//! A resolution through a version manager's shim looks at some seventy files and directories. The
//! same words in the same directory with the same variables resolve to the same program until one
//! of these changes, and that is known as it is for modules (`freshness`): by a watched
//! fingerprint of the files, existing or not, and of the directories with all their entries.
//!
//! Invariants: bounded, least recently used first; an answer is remembered only when it is asked
//! for a second time (a call that comes once should not pay for watches); errors are never
//! remembered; what cannot be watched is compared before each use, so that no answer is stale. Of a
//! program's arguments, and of variables' values, nothing is kept but a hash, where they may have
//! decided.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use hob_core::key::{Key, KeyBuilder, Part};
use hob_resolve::{ColdNote, Noted, Program, ResolveError};
use hob_wire::strings::Strings;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::FileType;

use crate::freshness::{Before, FingerprintId, Freshness, Sources, Verdict};

/// Answers that are remembered.
const REMEMBERED_MAX: usize = 64;
/// Questions that are remembered until they come again.
const ASKED_MAX: usize = 64;

/// The remembered resolutions.
#[derive(Debug, Default)]
pub(crate) struct Resolutions {
    /// The most recently used last.
    answers: Vec<Answer>,
    asked: Vec<Question>,
}

/// What a resolution is asked: everything but the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    /// The words up to the target; those after it are the program's own.
    head: Vec<Vec<u8>>,
    /// The words after the head.
    tail: Tail,
    directory: Vec<u8>,
    place: (u64, u64),
}

/// What becomes of the words after the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// The program gets them as they are, whatever they are.
    Passed,
    /// Every one may have decided: these, by their hash.
    These(Key),
}

impl Tail {
    /// Whether these words are such a tail.
    fn is(self, words: &[&[u8]]) -> bool {
        match self {
            Tail::Passed => true,
            Tail::These(known) => known == hash(words),
        }
    }
}

fn hash(words: &[&[u8]]) -> Key {
    let mut builder = KeyBuilder::new();
    for word in words {
        builder.absorb(Part::Option, word);
    }
    builder.finish()
}

#[derive(Debug)]
struct Answer {
    question: Question,
    variables: Vec<Variable>,
    fingerprint: FingerprintId,
    program: Program,
}

/// A variable's name and its value's hash, or that it is not set.
type Variable = (Vec<u8>, Option<Key>);

/// A resolution with its working directory's path.
pub(crate) struct Resolved {
    pub(crate) program: Result<Program, ResolveError>,
    pub(crate) directory: Vec<u8>,
}

impl Resolutions {
    /// Resolves, or remembers.
    pub(crate) fn resolve(
        &mut self,
        freshness: &mut Freshness,
        argv: &[&[u8]],
        env: &Strings,
        cwd: BorrowedFd<'_>,
    ) -> Resolved {
        let entries: Vec<&[u8]> = env.iter().collect();
        let lookup = |name: &[u8]| {
            entries.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
        };
        let (directory, place) = whereabouts(cwd);
        let asks = |question: &Question| {
            question.place == place
                && question.directory == directory
                && question.head.len() <= argv.len()
                && question.head.iter().zip(argv).all(|(known, word)| known == word)
                && question.tail.is(&argv[question.head.len()..])
        };
        let known = self.answers.iter().rposition(|answer| {
            let same = |(name, value): &Variable| *value == lookup(name).map(|now| hash(&[now]));
            asks(&answer.question) && answer.variables.iter().all(same)
        });
        if let Some(at) = known {
            let answer = self.answers.remove(at);
            if freshness.verdict(answer.fingerprint) == Verdict::Fresh {
                let program = Ok(answer.program_with(argv));
                self.answers.push(answer);
                return Resolved { program, directory };
            }
            freshness.forget(answer.fingerprint);
        }
        let again = self.asked.iter().position(asks);
        let Some(again) = again else {
            let program = hob_resolve::resolve(argv, &lookup, cwd);
            if let Some((head, tail)) = program.as_ref().ok().and_then(|known| head(known, argv)) {
                self.ask(Question { head, tail, directory: directory.clone(), place });
            }
            return Resolved { program, directory };
        };
        let question = self.asked.swap_remove(again);
        let since = SystemTime::now();
        let (program, noted) = hob_resolve::resolve_noting(argv, &lookup, cwd);
        if let Ok(program) = &program
            && let Some((head, tail)) = head(program, argv)
        {
            let question = Question { head, tail, ..question };
            let kept = without_tail(program, argv.len() - question.head.len());
            let variables = noted.names.iter();
            let variables =
                variables.map(|name| (name.clone(), lookup(name).map(|value| hash(&[value]))));
            let variables = variables.collect();
            // What changed while it was looked at is asked anew the next time.
            match looked_up(freshness, &noted, since) {
                Some(fingerprint) => {
                    let answer = Answer { question, variables, fingerprint, program: kept };
                    self.remember(freshness, answer);
                }
                None => self.ask(question),
            }
        }
        Resolved { program, directory }
    }

    fn ask(&mut self, question: Question) {
        if self.asked.len() >= ASKED_MAX {
            self.asked.remove(0);
        }
        self.asked.push(question);
    }

    fn remember(&mut self, freshness: &mut Freshness, answer: Answer) {
        if self.answers.len() >= REMEMBERED_MAX {
            freshness.forget(self.answers.remove(0).fingerprint);
        }
        self.answers.push(answer);
    }
}

/// The fingerprint of all that a resolution has looked at; `None`: it changed meanwhile.
fn looked_up(freshness: &mut Freshness, noted: &Noted, since: SystemTime) -> Option<FingerprintId> {
    let (mut whole, mut files) = (BTreeSet::new(), Vec::new());
    for path in &noted.paths {
        match rustix::fs::stat(path.as_slice()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                whole.insert(path.clone());
            }
            Ok(_) | Err(_) => files.push(path.clone()),
        }
    }
    let none = BTreeSet::new();
    let sources = Sources {
        files: &none,
        candidates: &files,
        directories: &none,
        names: &none,
        whole: &whole,
        asked: &BTreeMap::new(),
        links: &BTreeMap::new(),
    };
    let fingerprint = freshness.build(sources, &Before::default(), since).ok()?;
    Some(freshness.keep(fingerprint))
}

impl Answer {
    /// The program with the words that follow the head in this call.
    fn program_with(&self, argv: &[&[u8]]) -> Program {
        let mut program = self.program.clone();
        program.argv.extend(argv[self.question.head.len()..].iter().map(|word| word.to_vec()));
        program
    }
}

/// A program without the words that follow the head.
fn without_tail(program: &Program, tail: usize) -> Program {
    let mut program = program.clone();
    program.argv.truncate(program.argv.len().saturating_sub(tail));
    program
}

/// The words that decided, and what of those after them did. An executable's arguments may have
/// been looked at (an interpreter's), so all of them count. `None` for what is not remembered.
fn head(program: &Program, argv: &[&[u8]]) -> Option<(Vec<Vec<u8>>, Tail)> {
    let words = |count: usize| argv[..count].iter().map(|word| word.to_vec()).collect();
    if program.is_hosted() {
        return Some((words(argv.len().saturating_sub(program.passed())), Tail::Passed));
    }
    // The name of a script that is not there is an argument like another.
    if program.note == Some(ColdNote::ScriptMissing) {
        return None;
    }
    let passed = argv.get(1..)?;
    let at = program.argv.len().checked_sub(passed.len())?;
    let are_passed = program.argv[at..].iter().zip(passed).all(|(own, word)| own == word);
    are_passed.then(|| (words(1), Tail::These(hash(passed))))
}

/// Path and identity of the caller's working directory.
fn whereabouts(cwd: BorrowedFd<'_>) -> (Vec<u8>, (u64, u64)) {
    let link = format!("/proc/self/fd/{}", cwd.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).map(std::ffi::CString::into_bytes);
    let place = rustix::fs::fstat(cwd.as_fd()).map(|stat| (stat.st_dev, stat.st_ino));
    (path.unwrap_or_default(), place.unwrap_or_default())
}
