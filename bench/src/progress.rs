//! What a person sees while a measurement runs: one line on stderr.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is written anew: seldom enough that it costs the measurement nothing.
const ON_A_TERMINAL: Duration = Duration::from_millis(500);
const IN_A_LOG: Duration = Duration::from_secs(15);

/// The line.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    every: Option<Duration>,
    terminal: bool,
    written: Instant,
}

impl Progress {
    pub(crate) fn new(what: &str) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let every = Some(if terminal { ON_A_TERMINAL } else { IN_A_LOG });
        let mut progress =
            Progress { what: what.to_owned(), every, terminal, written: Instant::now() };
        progress.write(&format!("{what} ..."));
        progress
    }

    /// Says nothing.
    #[cfg(test)]
    pub(crate) fn quiet() -> Progress {
        Progress { what: String::new(), every: None, terminal: false, written: Instant::now() }
    }

    /// `done` of `all` are done.
    pub(crate) fn at(&mut self, done: usize, all: usize) {
        if self.every.is_some_and(|every| self.written.elapsed() >= every) {
            self.write(&format!("{}: {done} of {all}", self.what));
        }
    }

    /// Takes the line away.
    pub(crate) fn done(&mut self) {
        if self.terminal && self.every.is_some() {
            self.write("");
        }
    }

    fn write(&mut self, line: &str) {
        self.written = Instant::now();
        let mut stderr = std::io::stderr().lock();
        // Whether anyone reads the progress does not matter to the measurement.
        let _ = if self.terminal {
            write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush())
        } else {
            writeln!(stderr, "{line}")
        };
    }
}
