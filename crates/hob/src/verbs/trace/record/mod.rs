//! `hob trace record`: copies of the rings, kept on purpose.
//!
//! A recording that goes on is a process of its own (`keeper`), which reads what the daemon and the
//! sites note, and is reached by a socket in the daemon's directory. It ends with the daemon. What
//! it has kept lies in the state directory, and is read by `hob trace --file` and `hob trace export`.

mod ended;
mod keeper;
mod talk;
mod when;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use hob_daemon::recorder::recording::{self, Recording};
use hob_os::ring;
use hob_os::spawn::Session;
use hob_os::start::Start;
use jiff::Timestamp;
use serde_json::Value;

use super::super::log::{flush, state_dir};
use super::super::{named_file, rings};
use crate::failure::Failure;
use crate::output::{out, out_bytes, out_json};
use crate::{connect, durations, say};
use when::When;

/// The most recordings that go on at one time.
const RUNNING_MAX: usize = 16;
/// How long a keeper may take until it records.
const START_MS: u64 = 5_000;

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Record {
    /// Begin a recording: it goes on until it is stopped, or its time or the daemon ends
    Start(Begin),
    /// List recordings: those that go on, and those that are kept
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Write a recording into a file; without a name: what is noted now, with nothing started before
    Dump(Dump),
    /// End a recording, and keep what it has
    Stop(Stop),
    /// Record (what `start` starts)
    #[command(hide = true)]
    Keep(Begin),
}

/// A recording that is to begin.
#[derive(Debug, Args)]
pub(crate) struct Begin {
    /// What it is called: letters, digits, `.`, `_` and `-`, at most 32
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// Begin after so long
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    after: Option<Duration>,
    /// End after so long
    #[arg(long = "for", value_name = "TIME", value_parser = durations::parse)]
    time: Option<Duration>,
    /// Keep at most so much, the newest
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    keep: usize,
    /// End with the first call that is such a one: slower=TIME, failed, lost or cold
    #[arg(long, value_name = "WHAT", value_parser = When::parse)]
    when: Option<When>,
    /// Where it is written if the daemon ends
    #[arg(long, value_name = "FILE")]
    on_exit: Option<PathBuf>,
}

/// A recording that is to be written.
#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// Which
    #[arg(value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Where it is written (standard output otherwise)
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A recording that is to end.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Which
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// Keep nothing of it
    #[arg(long)]
    drop: bool,
}

fn name(text: &str) -> Result<String, String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = (1..=32).contains(&text.len()) && !text.starts_with(['.', '-']);
    if is_name && text.chars().all(is_fine) {
        return Ok(text.to_owned());
    }
    Err("a name has 1 to 32 letters, digits, `.`, `_` or `-`, and begins with a letter, a digit or \
         `_`"
    .to_owned())
}

/// Bytes, such as 64MiB.
fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text}: a size is a number with a unit, such as 64MiB, 512KiB or 1GiB");
    let end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(end);
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err(wrong()),
    };
    let number: usize = number.parse().map_err(|_| wrong())?;
    let size = number.checked_mul(1 << shift).ok_or_else(wrong)?;
    let fits = (1 << 16..=1 << 30).contains(&size);
    fits.then_some(size).ok_or_else(|| "a recording has 64KiB to 1GiB".to_owned())
}

/// Does it; the exit code.
pub(crate) fn run(start: &Start, what: &Record) -> Result<u8, Failure> {
    match what {
        Record::Start(asked) => begin(start, asked)?,
        Record::List { json: true } => out_json(&ended::list(start, true))?,
        Record::List { json: false } => out(&ended::list(start, false))?,
        Record::Dump(asked) => dump(start, asked)?,
        Record::Stop(asked) => stop(start, asked)?,
        Record::Keep(asked) => return Ok(keeper::run(start, asked)),
    }
    Ok(0)
}

/// Starts the process that records, and a daemon to record if there is none.
fn begin(start: &Start, asked: &Begin) -> Result<(), Failure> {
    let directory = connect::directory(start);
    state_dir()?;
    connect::connect_or_start(start, START_MS)
        .map_err(|_| Failure::new("there is no daemon to record; `hob start` says why"))?;
    let running = talk::running(&directory);
    if running.contains(&asked.name) {
        return Err(Failure::new(format!(
            "a recording {0} goes on; `hob trace record stop {0}` ends it",
            asked.name
        )));
    }
    if running.len() >= RUNNING_MAX {
        return Err(Failure::new(format!("{RUNNING_MAX} recordings go on: end one first")));
    }
    let words = words(asked)?;
    let words: Vec<_> = words.iter().map(CString::as_c_str).collect();
    // A short one may have ended when this process looks for it.
    let begun = connect::launched(start, &words, (Session::New, START_MS));
    if begun != Ok(true) {
        return Err(Failure::new("the recording did not begin"));
    }
    out(&format!(
        "recording {0}; `hob trace record stop {0}` ends it, `hob trace record list` shows it\n",
        asked.name
    ))
}

/// The words of the process that records. It has no directory of its own, so that it holds none.
fn words(asked: &Begin) -> Result<Vec<CString>, Failure> {
    let mut words: Vec<Vec<u8>> =
        ["hob", "trace", "record", "keep", &asked.name].map(Vec::from).to_vec();
    let mut add = |option: &str, value: &[u8]| {
        words.extend([[b"--", option.as_bytes(), b"=", value].concat()]);
    };
    add("keep", format!("{}KiB", asked.keep >> 10).as_bytes());
    for (option, time) in [("after", asked.after), ("for", asked.time)] {
        if let Some(time) = time {
            add(option, format!("{}ms", time.as_millis().max(1)).as_bytes());
        }
    }
    if let Some(when) = &asked.when {
        add("when", when.text().as_bytes());
    }
    if let Some(file) = &asked.on_exit {
        let file = std::path::absolute(file)
            .map_err(|error| Failure::usage(format!("--on-exit: {error}")))?;
        add("on-exit", file.as_os_str().as_bytes());
    }
    let words = words.into_iter().map(CString::new).collect::<Result<_, _>>();
    words.map_err(|_| Failure::usage("--on-exit: a path has no NUL"))
}

/// Writes one that goes on, one that is kept, or what is noted now.
fn dump(start: &Start, asked: &Dump) -> Result<(), Failure> {
    if asked.output.is_none() && say::Stream::Out.is_terminal() {
        return Err(Failure::usage(
            "a recording is no text: write it with `-o FILE`, or into a pipe",
        ));
    }
    let bytes = match &asked.name {
        None => now(start)?.encode(),
        Some(name) => match talk::ask(&connect::directory(start), name, talk::DUMP) {
            Some(bytes) => bytes,
            None => std::fs::read(rings::kept(&state_dir()?, name)).map_err(|error| {
                Failure::new(format!("no recording {name} goes on, and none is kept: {error}"))
            })?,
        },
    };
    let recording = Recording::decode(&bytes)
        .map_err(|why| Failure::new(format!("the recording cannot be read: {why}")))?;
    if let Some(gone) = rings::gone(&recording) {
        say::line(gone.as_bytes());
    }
    let Some(file) = &asked.output else { return out_bytes(&bytes) };
    named_file::write(file, |out| std::io::Write::write_all(out, &bytes))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?;
    out(&format!(
        "{} and {} written to {}: `hob trace --file` and `hob trace export --file` read it\n",
        counted(recording.receipts.len() as u64, "call"),
        counted(recording.head.rings.iter().map(|ring| ring.records).sum(), "note"),
        file.display()
    ))
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A recording of what the rings have now.
fn now(start: &Start) -> Result<Recording, Failure> {
    flush(start);
    let directories = rings::directories(start);
    let mut copies = Vec::new();
    for file in directories.iter().flat_map(|directory| ring::files(directory)) {
        match ring::read(&file) {
            Ok(copied) => copies.push((copied, 0)),
            Err(why) => say::line(format!("not read: {}: {why}", file.display()).as_bytes()),
        }
    }
    let began = copies.iter().map(|(copied, _)| copied.first.real_ns).min();
    let began = began.and_then(|ns| Timestamp::from_nanosecond(i128::from(ns)).ok());
    let now = Timestamp::now();
    let began = began.unwrap_or(now);
    let head = keeper::head("", began, "dumped");
    Ok(recording::of(head, copies, keeper::receipts(&state_dir()?, began)))
}

/// Ends one, and says where it is.
fn stop(start: &Start, asked: &Stop) -> Result<(), Failure> {
    let (name, directory) = (&asked.name, connect::directory(start));
    let what = if asked.drop { talk::DROP } else { talk::STOP };
    let Some(answer) = talk::ask(&directory, name, what) else {
        return Err(Failure::new(format!(
            "no recording {name} goes on; `hob trace record list` lists them"
        )));
    };
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if let Some(error) = answer["error"].as_str() {
        return Err(Failure::new(format!(
            "{error}; the recording goes on: `hob trace record dump {name} -o FILE` writes it elsewhere"
        )));
    }
    talk::wait_for_end(&directory, name);
    match answer["file"].as_str() {
        Some(file) => out(&format!("{name} is kept: `hob trace --file {file}` reads it\n")),
        None => out(&format!("{name} is dropped\n")),
    }
}

/// Waits until those that go on have ended: after the daemon has.
pub(crate) fn wait_for_ends(start: &Start) {
    let directory = connect::directory(start);
    for name in talk::running(&directory) {
        talk::wait_for_end(&directory, &name);
    }
}
