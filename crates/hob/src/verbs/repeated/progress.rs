//! One line that says how far a series of runs is: on a terminal drawn over and over; where standard
//! error is none, or one that cannot draw over a line, a new one each ten seconds, for a log.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::say;
use crate::show::style::Look;
use crate::show::text::{fit, printable};

/// How far apart new lines are.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The line.
pub(in crate::verbs) struct Progress {
    look: Option<Look>,
    /// When the newest line was written; at first, when the series began.
    written: Cell<Instant>,
}

impl Progress {
    pub(in crate::verbs) fn new() -> Progress {
        Progress { look: Look::of_stderr_terminal(), written: Cell::new(Instant::now()) }
    }

    /// Says what is done.
    pub(in crate::verbs) fn show(&self, doing: &str) {
        let Some(look) = &self.look else {
            if self.written.get().elapsed() >= LINE_EVERY {
                self.written.set(Instant::now());
                say::line(doing.as_bytes());
            }
            return;
        };
        let text = printable(doing, look.charset);
        let columns = look.columns.map_or(usize::MAX, |columns| columns.saturating_sub(1));
        let text = fit(&text, columns, look.charset);
        say::over(&text);
    }

    pub(in crate::verbs) fn clear(&self) {
        if self.look.is_some() {
            say::over("");
        }
    }
}

impl hob_check::Progress for Progress {
    fn show(&self, doing: &str) {
        Progress::show(self, doing);
    }

    fn clear(&self) {
        Progress::clear(self);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
