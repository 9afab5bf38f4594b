//! Completions: what a shell is to offer where the cursor is, from what there is at that moment.
//!
//! ```text
//!   TAB ─▶ the shell's function ─▶ HOB_COMPLETE=SHELL hob -- WORDS ─▶ candidates
//!                ▲                                                    (programs, sessions, calls, shims)
//!   first TAB ─▶ a stub of three lines (`hob completions SHELL`)
//! ```
//! Invariants: nothing is started for it, and nothing is waited for: a daemon that does not answer at
//! once knows of no sessions.

use std::ffi::{CStr, OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use hob_daemon::{project, trust};
use hob_os::start::Start;

use crate::show::entries::{self, Entry};
use crate::show::reasons::codes;
use crate::verbs::setup::completions::ASKS;
use crate::verbs::shim::folder::Folder;
use crate::verbs::{log, request};

/// How long a daemon may take to say which sessions there are.
const ANSWER_MS: u64 = 100;
/// How many calls are looked at.
const RECENT: usize = 200;

/// Answers a shell that asks; `false`: none does.
pub(super) fn answer(start: &Start) -> bool {
    if start.variable(ASKS.as_bytes()).is_none_or(<[u8]>::is_empty) {
        return false;
    }
    let words = start.argv.iter().map(|word| OsStr::from_bytes(word.to_bytes()).to_owned());
    let words: Vec<OsString> = words.collect();
    let here = std::env::current_dir().ok();
    let _ = STARTED.set(Start { argv: start.argv.clone(), env: start.env.clone() });
    let env = CompleteEnv::with_factory(|| add(super::command())).var(ASKS).bin("hob");
    // A shell that is not known gets nothing to offer.
    let answered = env.try_complete(words, here.as_deref()).unwrap_or(true);
    // Nothing else does it at the end of this process; a shell that is gone needs no offer.
    let _ = std::io::stdout().flush();
    answered
}

/// What this process was started with, for who offers something.
static STARTED: OnceLock<Start> = OnceLock::new();

/// The command, with who knows what there is.
fn add(command: Command) -> Command {
    OFFERED.iter().fold(command, |command, (verb, arg, what)| add_to(command, verb, arg, *what))
}

fn add_to(command: Command, words: &str, argument: &str, what: Offers) -> Command {
    let (verb, below) = words.split_once(' ').unwrap_or((words, ""));
    command.mut_subcommand(verb, |verb| match below {
        // Each in its place: the order of arguments is their meaning.
        "" => verb.mut_args(|arg| if arg.get_id() == argument { what.of(arg) } else { arg }),
        below => add_to(verb, below, argument, what),
    })
}

/// What is offered for an argument.
#[derive(Debug, Clone, Copy)]
enum Offers {
    Sessions,
    Programs,
    Calls,
    Called,
    Shims,
    Codes,
}

impl Offers {
    fn of(self, arg: Arg) -> Arg {
        match self {
            Offers::Sessions => arg.add(ArgValueCandidates::new(sessions)),
            Offers::Programs => arg.add(ArgValueCandidates::new(programs)),
            Offers::Calls => arg.add(ArgValueCandidates::new(calls)),
            Offers::Shims => arg.add(ArgValueCandidates::new(shims)),
            Offers::Codes => arg.add(ArgValueCandidates::new(codes)),
            Offers::Called => arg.add(ArgValueCompleter::new(called)),
        }
    }
}

/// The verb, its argument, and what is offered there.
const OFFERED: &[(&str, &str, Offers)] = &[
    ("run", "session", Offers::Sessions),
    ("run", "program", Offers::Called),
    ("warm", "words", Offers::Called),
    ("why", "program", Offers::Called),
    ("why", "code", Offers::Codes),
    ("shim remove", "names", Offers::Shims),
    ("session eval", "session", Offers::Sessions),
    ("session repl", "session", Offers::Sessions),
    ("session kill", "name", Offers::Sessions),
    ("ask", "program", Offers::Programs),
    ("tell", "program", Offers::Programs),
    ("log", "program", Offers::Called),
    ("last", "call", Offers::Calls),
    ("trace", "call", Offers::Calls),
];

fn started() -> Option<&'static Start> {
    STARTED.get()
}

fn candidate(value: impl Into<OsString>, help: &str) -> CompletionCandidate {
    let help = (!help.is_empty()).then(|| help.to_owned().into());
    CompletionCandidate::new(value).help(help)
}

/// The sessions that a running daemon has.
fn sessions() -> Vec<CompletionCandidate> {
    let answer = started().and_then(|start| request::ask_within(start, "sessions", ANSWER_MS).ok());
    let Some((answer, _)) = answer else { return Vec::new() };
    let sessions = answer.get("sessions").and_then(serde_json::Value::as_array);
    let names = sessions.into_iter().flatten().filter_map(|session| session.get("name")?.as_str());
    names.map(|name| candidate(name, "")).collect()
}

/// The programs of the `hob.toml` that is nearest, which is only read.
fn programs() -> Vec<CompletionCandidate> {
    let found = std::env::current_dir().ok().and_then(|here| {
        let dir = project::nearest_above(&here)?;
        let bytes = hob_os::look::whole(&dir.join(trust::FILE)).ok()?;
        project::contents(&dir, &bytes).ok()
    });
    let programs = found.into_iter().flat_map(|contents| contents.programs);
    programs.map(|program| candidate(program.program, &program.handler)).collect()
}

/// The calls of the last time, the newest first.
fn recent() -> Vec<hob_core::receipt::Receipt> {
    let entries = log::state_dir().ok().and_then(|dir| entries::recent(&dir, RECENT).ok());
    let entries = entries.into_iter().flatten().rev();
    let receipt = |entry| match entry {
        Entry::Receipt(receipt) => Some(*receipt),
        Entry::Fallback(_) => None,
    };
    entries.filter_map(receipt).collect()
}

fn calls() -> Vec<CompletionCandidate> {
    let numbered = |receipt: &hob_core::receipt::Receipt| {
        candidate(receipt.call.to_string(), &receipt.program.name)
    };
    recent().iter().map(numbered).collect()
}

/// The shims that there are, and what each is a link to.
fn shims() -> Vec<CompletionCandidate> {
    let shims = started().and_then(|start| Folder::of(start)?.shims(start).ok());
    shims.into_iter().flatten().map(|shim| candidate(shim.name, shim.state.code())).collect()
}

/// The codes that a receipt can have.
fn codes() -> Vec<CompletionCandidate> {
    codes::all().map(|code| candidate(code, "")).collect()
}

/// Files, and before a program is named those that were called lately.
fn called(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Vec::new();
    if started().is_some_and(|start| is_first(&start.argv)) {
        let mut names: Vec<String> = Vec::new();
        for receipt in recent().into_iter().filter(|receipt| receipt.message.is_none()) {
            let name = receipt.program.name;
            if name.as_bytes().starts_with(current.as_bytes()) && !names.contains(&name) {
                names.push(name);
            }
        }
        all.extend(names.into_iter().map(|name| candidate(name, "called lately")));
    }
    let files = PathCompleter::any().complete(current);
    let is_new =
        |file: &CompletionCandidate| all.iter().all(|one| one.get_value() != file.get_value());
    let files: Vec<CompletionCandidate> = files.into_iter().filter(is_new).collect();
    all.extend(files);
    all
}

/// Whether what a shell asks of is the first word behind the verb that is no option.
fn is_first(words: &[&CStr]) -> bool {
    let asked = words.iter().map(|word| word.to_bytes()).skip_while(|word| *word != b"--").skip(3);
    let before: Vec<&[u8]> = asked.collect();
    let before = before.split_last().map_or(&[][..], |(_, before)| before);
    before.iter().all(|word| word.starts_with(b"-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_argument_that_is_completed_is_there() {
        let command = add(crate::cli::command());
        for (words, argument, _) in OFFERED {
            let words = words.split(' ');
            let verb = words.fold(&command, |verb, word| verb.find_subcommand(word).unwrap());
            assert!(verb.get_arguments().any(|arg| arg.get_id() == *argument), "{argument}");
        }
        command.debug_assert();
    }

    #[test]
    fn a_program_is_the_first_word_that_is_no_option() {
        let words = |line: &'static str| {
            let words = line.split(' ').map(|word| std::ffi::CString::new(word).unwrap());
            words.map(|word| &*Box::leak(word.into_boxed_c_str())).collect::<Vec<&CStr>>()
        };
        assert!(is_first(&words("hob -- hob run ")));
        assert!(is_first(&words("hob -- hob run bla")));
        assert!(is_first(&words("hob -- hob run --cold bla")));
        assert!(!is_first(&words("hob -- hob run black sr")));
    }
}
