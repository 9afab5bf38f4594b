//! `hob ask` and `hob tell`: messages to the programs of a `hob.toml`; `hob dead`: those that failed too
//! often; `hob log --output`: what the programs print.

pub(crate) mod dead;
pub(super) mod many;
mod reach;
mod sender;
mod storm;

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use hob_os::say::Layout;
use hob_os::start::Start;
use hob_wire::caps::BODY_MAX;
use hob_wire::exit::ExitCode;
use hob_wire::message::{DRAWN_BYTES, Manner, Reason};

use crate::failure::Failure;
use crate::output::{out, out_bytes};
use crate::{durations, say};
use reach::{REACH_MS, Sender};
use sender::{Mail, Reply, Unanswered};

const CODES: &str = "Exit code: 0 done, 1 the handler raised, 2 hob.toml or the command line is \
wrong or not trusted, 124 the time passed, 125 the answer was lost or hob could not take the \
message, 126 the handler cannot be loaded, 127 there is no such program.";

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(after_help = CODES)]
pub(crate) struct Ask {
    #[command(flatten)]
    mail: MailOptions,
    /// End the waiting after this time, such as 500ms, 5s or 2m; exit code 124 [default: none,
    /// and 30s where no daemon can be reached]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Ask this often, and tell how long it took instead of what was answered
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Ask from so many connections at once
    #[arg(long, value_name = "N", default_value_t = 1, requires = "count")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Print the summary of --count as JSON
    #[arg(long, requires = "count")]
    json: bool,
    /// Print no answer, and no progress
    #[arg(short, long)]
    quiet: bool,
}

/// What is told.
#[derive(Debug, Clone, Args)]
#[command(after_help = CODES)]
pub(crate) struct Tell {
    #[command(flatten)]
    mail: MailOptions,
    /// End the waiting for a daemon that takes it after this time; exit code 124 [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Do not keep it on disk: a crash may lose it, and it never comes twice
    #[arg(long)]
    at_most_once: bool,
    /// Do not print the message's id
    #[arg(short, long)]
    quiet: bool,
}

/// What every message has.
#[derive(Debug, Clone, Args)]
struct MailOptions {
    /// The program's name in hob.toml
    #[arg(value_name = "PROGRAM")]
    program: String,
    /// The payload; `@FILE`: what is in this file, `-`: what comes on standard input
    #[arg(value_name = "PAYLOAD", default_value = "", allow_hyphen_values = true)]
    #[arg(hide_default_value = true)]
    payload: String,
    /// The session that it belongs to
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// What the payload is, as MIME names it
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Be in this directory: hob.toml is looked for there and above it, and so is `@FILE`
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl MailOptions {
    fn read(self, manner: Manner, timeout_ms: Option<u64>) -> Result<Mail, Failure> {
        if let Some(directory) = &self.directory {
            std::env::set_current_dir(directory)
                .map_err(|error| Failure::usage(format!("-C {}: {error}", directory.display())))?;
        }
        let mail = Mail {
            payload: payload(&self.payload)?,
            program: self.program.into_bytes(),
            key: self.key.unwrap_or_default().into_bytes(),
            content_type: self.content_type.unwrap_or_default().into_bytes(),
            manner,
            timeout_ms,
            drawn: if manner == Manner::Tell { drawn() } else { None },
        };
        match mail.fault() {
            Some(fault) => Err(Failure::usage(fault)),
            None => Ok(mail),
        }
    }
}

/// What a tell is known by, should it be sent again. Without it, it is not sent again.
fn drawn() -> Option<[u8; DRAWN_BYTES]> {
    let mut bytes = [0; DRAWN_BYTES];
    let flags = rustix::rand::GetRandomFlags::empty();
    (rustix::rand::getrandom(&mut bytes, flags) == Ok(DRAWN_BYTES)).then_some(bytes)
}

/// How long a message's sender waits, if it says so.
fn timeout_ms(text: Option<&str>) -> Result<Option<u64>, Failure> {
    let read = |text| {
        let ms = durations::milliseconds(text);
        ms.map_err(|wrong| Failure::usage(format!("--timeout {text}: {wrong}")))
    };
    text.map(read).transpose()
}

/// The payload that a word stands for.
fn payload(word: &str) -> Result<Vec<u8>, Failure> {
    let all = |from: &mut dyn Read, name: &str| {
        let mut bytes = Vec::new();
        // One byte more than fits tells that it does not.
        match from.take(BODY_MAX as u64 + 1).read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(Failure::usage(format!("{name}: cannot be read: {error}"))),
        }
    };
    match word.strip_prefix('@') {
        Some(name) => {
            let mut file = std::fs::File::open(PathBuf::from(name))
                .map_err(|error| Failure::usage(format!("{name}: cannot be read: {error}")))?;
            all(&mut file, name)
        }
        None if word == "-" => all(&mut std::io::stdin().lock(), "standard input"),
        None => Ok(word.as_bytes().to_vec()),
    }
}

/// The exit code of a message without an answer.
fn code(reason: Reason) -> u8 {
    match reason {
        Reason::Raised => 1,
        Reason::TimedOut => ExitCode::TimedOut as u8,
        Reason::NoProgram => ExitCode::NotFound as u8,
        Reason::NotLoaded => ExitCode::NotExecutable as u8,
        Reason::Untrusted | Reason::Config | Reason::Malformed => ExitCode::Usage as u8,
        Reason::Lost
        | Reason::Cancelled
        | Reason::Busy
        | Reason::Stopping
        | Reason::Again
        | Reason::NotKept
        | Reason::Context
        | Reason::NoHost => ExitCode::Lost as u8,
    }
}

/// Asks; returns the exit code.
pub(crate) fn ask(start: &Start, asked: Ask) -> Result<u8, Failure> {
    let timeout_ms = timeout_ms(asked.timeout.as_deref())?;
    let mail = asked.mail.read(Manner::Ask, timeout_ms)?;
    if let Some(count) = asked.count {
        let wanted =
            storm::Wanted { count, jobs: asked.jobs, json: asked.json, quiet: asked.quiet };
        return storm::run(start, &mail, &wanted);
    }
    match Sender::new(start).send(&mail) {
        Ok(Reply::Answer(_)) if asked.quiet => Ok(0),
        Ok(Reply::Answer(answer)) => print(&answer).map(|()| 0),
        Ok(Reply::Accepted(_)) => Ok(0),
        Err(unanswered) => Ok(complain(&unanswered)),
    }
}

/// Tells; returns the exit code.
pub(crate) fn tell(start: &Start, asked: Tell) -> Result<u8, Failure> {
    let manner = if asked.at_most_once { Manner::TellOnce } else { Manner::Tell };
    let timeout_ms = timeout_ms(asked.timeout.as_deref())?;
    let mail = asked.mail.read(manner, timeout_ms.or(Some(REACH_MS)))?;
    match Sender::new(start).send(&mail) {
        Ok(Reply::Accepted(_)) if asked.quiet => Ok(0),
        Ok(Reply::Accepted(id)) => out(&format!("{}\n", String::from_utf8_lossy(&id))).map(|()| 0),
        Ok(Reply::Answer(_)) => Ok(0),
        Err(unanswered) => Ok(complain(&unanswered)),
    }
}

fn complain(unanswered: &Unanswered) -> u8 {
    let text = match unanswered.text.as_str() {
        "" => unanswered.reason.code(),
        text => text,
    };
    say::line(text.as_bytes());
    code(unanswered.reason)
}

/// The answer as it is; a terminal gets what it would obey as escapes, and a line end where there is
/// none.
fn print(answer: &[u8]) -> Result<(), Failure> {
    if !say::Stream::Out.is_terminal() {
        return out_bytes(answer);
    }
    let line_end = if answer.is_empty() || answer.ends_with(b"\n") { "" } else { "\n" };
    out(&(say::escaped_bytes(answer, Layout::Lines) + line_end))
}
