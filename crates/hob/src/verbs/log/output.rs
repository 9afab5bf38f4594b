//! `hob log PROGRAM --output`: what a handler prints, and with `-f` what it prints from now on.
//!
//! The daemon has a file for each handler (`hob_daemon::project::Declared::log`), begun anew when it
//! starts and when it is too long. It is read here as it lies.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use hob_daemon::project;
use hob_os::say::Layout;
use hob_os::start::Start;

use super::tail::Tail;
use crate::failure::Failure;
use crate::output::{Reader, read_enough};
use crate::{connect, fallback, say};

/// Between two looks at a file that is followed.
const LOOK: Duration = Duration::from_millis(100);

/// What is asked of what a program prints alone.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Printed {
    /// What this program of hob.toml prints instead
    #[arg(long, requires = "program")]
    #[arg(conflicts_with_all = ["cold", "failed", "slower", "since", "here", "json", "http", "daemon"])]
    pub(super) output: bool,
    /// With --output: as it was printed, with what a terminal obeys
    #[arg(long, requires = "output")]
    pub(super) raw: bool,
}

/// Whose output, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The program's name in hob.toml.
    pub(super) program: &'a str,
    /// How many lines, the last; all otherwise.
    pub(super) count: Option<usize>,
    /// Whether what it prints from now on follows, until interrupted.
    pub(super) follow: bool,
    /// Whether what a terminal obeys reaches it.
    pub(super) raw: bool,
}

/// Prints it.
pub(super) fn run(start: &Start, asked: &Asked<'_>) -> Result<(), Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(format!("there is no directory to look in: {error}")))?;
    let found = project::find(fallback::state_dir().as_deref(), &here, asked.program);
    let declared = found.handler.map_err(|error| Failure::new(error.text))?;
    let mut shown = Shown { raw: asked.raw, torn: Vec::new() };
    let path = declared.log(&connect::directory(start));
    let Some(mut log) = Tail::open(&path) else {
        let program = asked.program;
        let text = match connect::connect(&connect::directory(start)) {
            Ok(_) => format!("{program}: it has not been started yet; `hob ask {program}` does"),
            Err(_) => format!(
                "{program}: no daemon is running, and logs end with it; `hob ask {program}` starts \
                 both"
            ),
        };
        if !asked.follow {
            return Err(Failure::new(text));
        }
        say::line(text.as_bytes());
        return follow(&path, None, shown);
    };
    let all = log.more().map_err(|error| unreadable(&path, &error))?;
    let newest = asked.count.map_or(&all[..], |count| last_lines(&all, count));
    if shown.put(newest)? == Reader::HasLeft || !asked.follow {
        return Ok(());
    }
    follow(&path, Some(log), shown)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

/// Prints what comes, over ends of the daemon, until the reader leaves or a signal ends this.
fn follow(path: &Path, mut log: Option<Tail>, mut shown: Shown) -> Result<(), Failure> {
    loop {
        if let Some(open) = &mut log {
            let more = open.more().map_err(|error| unreadable(path, &error))?;
            if shown.put(&more)? == Reader::HasLeft {
                return Ok(());
            }
        }
        if !log.as_ref().is_some_and(|open| open.is_at(path)) {
            log = Tail::open(path).or(log);
        }
        // sleeps: a file has no mark that another process has written to it but by watching it.
        std::thread::sleep(LOOK);
    }
}

/// The last so many lines.
fn last_lines(text: &[u8], count: usize) -> &[u8] {
    let ended = text.strip_suffix(b"\n").unwrap_or(text);
    let ends = ended.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match count {
        0 => &[],
        _ => ends.map(|(at, _)| at + 1).nth(count - 1).map_or(text, |at| &text[at..]),
    }
}

/// How what a program has printed reaches stdout.
#[derive(Debug)]
struct Shown {
    raw: bool,
    /// The beginning of a letter whose end is not in the log yet.
    torn: Vec<u8>,
}

impl Shown {
    fn put(&mut self, bytes: &[u8]) -> Result<Reader, Failure> {
        if self.raw {
            return read_enough(say::raw(say::Stream::Out, bytes));
        }
        let mut bytes = [&std::mem::take(&mut self.torn), bytes].concat();
        let torn = bytes.utf8_chunks().last().map_or(&[][..], |last| last.invalid());
        let is_begun = std::str::from_utf8(torn).is_err_and(|wrong| wrong.error_len().is_none());
        if is_begun {
            self.torn = bytes.split_off(bytes.len() - torn.len());
        }
        read_enough(say::page(&say::escaped_bytes(&bytes, Layout::Lines), Layout::Lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_ones() {
        for (text, count, want) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\n", 5, "a\n"),
            ("a\nb\n", 0, ""),
            ("", 3, ""),
        ] {
            assert_eq!(last_lines(text.as_bytes(), count), want.as_bytes(), "{text:?} {count}");
        }
    }
}
