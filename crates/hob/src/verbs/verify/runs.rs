//! One run of the program through `hob run`, and everything that it left: its output, its end,
//! and whether it was warm.
//!
//! Invariants: each wait is bounded but that for the program itself, which `--timeout` bounds; what
//! is kept of an output is bounded, and the rest counts by its digest.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use serde::Deserialize;

use super::change::Change;
use crate::verbs::repeated::input::Input;
use crate::verbs::repeated::interrupts::Interrupts;
use crate::verbs::repeated::{DIGEST, digest};

/// So much of an output is compared line by line.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long an output may stay open after the program has ended: by a process that it left.
const DRAIN: Duration = Duration::from_secs(2);

/// What is run, the same each time.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    /// Where.
    pub(super) directory: PathBuf,
    /// Its standard input.
    pub(super) input: Input,
    /// `--timeout`.
    pub(super) timeout: String,
    /// What is other than in our caller's world.
    pub(super) change: Change,
}

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// `--cold`.
    Cold,
    /// As every call: warm if it can be.
    Warm,
    /// Warm although the program is slower so: `--isolation fork`.
    WarmAnyway,
}

/// What a run left.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// `exited 0`, `signal 9`, with the outcome where that says more.
    pub(super) end: String,
    pub(super) outcome: OutcomeLine,
    pub(super) took: Duration,
    /// A process that it left holds its output open.
    pub(super) held: bool,
}

/// The line of `--status-fd`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct OutcomeLine {
    pub(super) outcome: String,
    pub(super) warm: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
}

/// Runs the program once.
pub(super) fn run(subject: &Subject, how: How, interrupts: &Interrupts) -> std::io::Result<Seen> {
    let (status, status_end) = rustix::pipe::pipe()?;
    rustix::io::fcntl_setfd(&status, FdFlags::CLOEXEC)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(subject.change.words());
    command.arg("run").arg("--status-fd").arg(status_end.as_raw_fd().to_string());
    command.arg("--timeout").arg(&subject.timeout).args(["--purpose", "verify"]);
    match how {
        How::Cold => _ = command.arg("--cold"),
        How::Warm => {}
        How::WarmAnyway => _ = command.args(["--isolation", "fork"]),
    }
    command.arg("--").args(&subject.words).current_dir(&subject.directory);
    let (stdin, rest) = subject.input.open()?;
    command.stdin(stdin);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = interrupts.spawn(&mut command)?;
    drop((command, status_end));
    rest.feed();
    let stdout = Output::of(child.stdout.take());
    let stderr = Output::of(child.stderr.take());
    interrupts.wait_with(&child)?;
    let ended = child.wait()?;
    let took = begun.elapsed();
    let outcome = outcome(File::from(status));
    let deadline = Instant::now() + DRAIN;
    let (stdout, stdout_held) = stdout.finish(deadline);
    let (stderr, stderr_held) = stderr.finish(deadline);
    let end = match (ended.code(), ended.signal()) {
        (Some(code), _) if outcome.outcome == "exited" => format!("exited {code}"),
        (Some(code), _) => format!("{} {code}", outcome.outcome),
        (None, signal) => format!("signal {}", signal.unwrap_or(0)),
    };
    Ok(Seen { stdout, stderr, end, outcome, took, held: stdout_held || stderr_held })
}

/// The client has ended, and with it every writer: what it wrote is there.
fn outcome(status: File) -> OutcomeLine {
    let mut line = String::new();
    // A client that was killed wrote none.
    let _ = status.take(64 * 1024).read_to_string(&mut line);
    serde_json::from_str(&line).unwrap_or_default()
}

/// An output that is being read.
struct Output {
    text: Arc<Mutex<Text>>,
    ended: Receiver<()>,
}

/// What came so far.
#[derive(Debug, Default)]
struct Text {
    kept: Vec<u8>,
    /// Of what is not kept.
    beyond: u64,
    digest: u64,
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Output {
        let text = Arc::new(Mutex::new(Text::default()));
        let (end, ended) = channel();
        let shared = Arc::clone(&text);
        std::thread::spawn(move || {
            let mut chunk = vec![0; 64 * 1024];
            let Some(mut pipe) = pipe else { return };
            while let Ok(count) = pipe.read(&mut chunk) {
                if count == 0 {
                    break;
                }
                shared.lock().unwrap_or_else(PoisonError::into_inner).take(&chunk[..count]);
            }
            // Who waited for it may have given up.
            let _ = end.send(());
        });
        Output { text, ended }
    }

    /// What came until the end, or until then; and whether the end has not come.
    fn finish(self, deadline: Instant) -> (Vec<u8>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        let held = self.ended.recv_timeout(left).is_err();
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = std::mem::take(&mut text.kept);
        if text.beyond > 0 {
            let rest = format!("\n[and {} bytes, digest {:016x}]\n", text.beyond, text.digest);
            kept.extend_from_slice(rest.as_bytes());
        }
        (kept, held)
    }
}

impl Text {
    fn take(&mut self, chunk: &[u8]) {
        let room = KEPT_BYTES_MAX - self.kept.len();
        let (kept, beyond) = chunk.split_at(room.min(chunk.len()));
        self.kept.extend_from_slice(kept);
        if !beyond.is_empty() {
            self.beyond += beyond.len() as u64;
            self.digest = digest(if self.digest == 0 { DIGEST } else { self.digest }, beyond);
        }
    }
}

/// The words that name the program and its arguments, without a `--` between them.
pub(super) fn words(asked: &[OsString]) -> Vec<OsString> {
    let program = if asked.first().is_some_and(|word| word == "-m") { 2 } else { 1 };
    let mut words = asked.to_vec();
    if words.get(program).is_some_and(|word| word == OsStr::new("--")) {
        words.remove(program);
    }
    words
}

/// How the program is named to a person: a module with its `-m`.
pub(super) fn name(words: &[OsString]) -> String {
    let parts = if words.first().is_some_and(|word| word == "-m") { 2 } else { 1 };
    let parts: Vec<_> = words.iter().take(parts).map(|word| word.to_string_lossy()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_of_dashes_after_the_program_is_ours() {
        let check = |asked: &[&str], expected: &[&str]| {
            let asked: Vec<OsString> = asked.iter().map(OsString::from).collect();
            assert_eq!(words(&asked), expected, "{asked:?}");
        };
        check(&["black", "--", "--version"], &["black", "--version"]);
        check(&["black", "--version"], &["black", "--version"]);
        check(&["black", "--", "--", "x"], &["black", "--", "x"]);
        check(&["-m", "json.tool", "--", "x"], &["-m", "json.tool", "x"]);
        check(&["black", "x", "--"], &["black", "x", "--"]);
    }

    #[test]
    fn what_is_not_kept_of_an_output_counts_by_its_digest() {
        let output = |last: u8| {
            let mut text = Text::default();
            text.take(&vec![b'x'; KEPT_BYTES_MAX - 1]);
            text.take(&[b'y', b'z', last]);
            let (text, (_end, ended)) = (Arc::new(Mutex::new(text)), channel());
            Output { text, ended }.finish(Instant::now()).0
        };
        assert_eq!(output(1), output(1));
        assert_ne!(output(1), output(2));
        assert!(output(1).len() < KEPT_BYTES_MAX + 100);
    }
}
