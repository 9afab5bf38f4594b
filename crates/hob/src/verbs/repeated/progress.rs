//! One line on a terminal that says how far a series of runs is. Nothing where standard error is no
//! terminal, or one that cannot draw over a line.

use crate::say;
use crate::show::style::Look;
use crate::show::text::{fit, printable};

/// The line.
pub(in crate::verbs) struct Progress {
    look: Option<Look>,
}

impl Progress {
    pub(in crate::verbs) fn new() -> Progress {
        Progress { look: Look::of_stderr_terminal() }
    }

    /// Says what is done.
    pub(in crate::verbs) fn show(&self, doing: &str) {
        let Some(look) = &self.look else { return };
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
