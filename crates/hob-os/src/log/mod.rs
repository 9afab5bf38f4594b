//! A process's own log: a line for each event, in a file with a bound.
//!
//! ```text
//!   2026-11-28T06:30:12.345678Z DEBUG main pool worker 7 is started for greet
//!   time of day, UTC            level thread category text
//! ```
//! Errors, warnings and what is always worth a line are written as they come. What only a developer
//! asks for is written where its category is on, which changes while the process runs: a category that
//! is off costs one relaxed load.
//!
//! Invariants: one event is one line, whatever a name holds; a line is one write, behind what other
//! threads wrote; a line that cannot be written is lost and counted, and nothing else comes of it; the
//! file and the one before it hold [`BYTES_MAX`] at most, each. What the categories are is not known
//! here: who writes names one, and its bit.

mod file;
mod line;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::clock;
use file::Kept;
pub use file::{OPEN, older};

/// A file that has grown so long becomes the one before, and a new one begins.
pub const BYTES_MAX: u64 = 4 << 20;

/// The categories that are on.
static ON: AtomicU32 = AtomicU32::new(0);
/// The file, if there is one.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something that was asked for is not done.
    Error,
    /// Something works less well than it could.
    Warn,
    /// Something that happens seldom.
    Info,
    /// What was decided, for who asks for its category.
    Debug,
}

impl Level {
    /// Its word in a line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "ERROR",
            Level::Warn => "WARN",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
        }
    }
}

/// How the log is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Where it is; `None`: this process has none.
    pub path: Option<PathBuf>,
    /// The bits of the categories that are on.
    pub on: u32,
    /// Lines that were written.
    pub written: u64,
    /// Lines that were not.
    pub lost: u64,
    /// Why the newest of those was not.
    pub why: Option<String>,
}

/// Begins a log. What another process has left there becomes the one before.
pub fn begin(path: &Path) {
    *kept() = Some(Kept::begin(path));
}

/// The name is another process's from now on: this one goes on in its file as long as that has room.
pub fn leave() {
    if let Some(kept) = &mut *kept() {
        kept.leave();
    }
}

/// Ends it. What is said from now on is not written.
pub fn end() {
    *kept() = None;
}

/// Whether a category is on.
#[inline]
#[must_use]
pub fn is_on(bit: u32) -> bool {
    ON.load(Ordering::Relaxed) & bit != 0
}

/// Turns categories on, and others off.
pub fn turn(on: u32, off: u32) {
    // A category of both is on.
    ON.fetch_and(!off, Ordering::Relaxed);
    ON.fetch_or(on, Ordering::Relaxed);
}

/// How it is now.
#[must_use]
pub fn state() -> State {
    let on = ON.load(Ordering::Relaxed);
    match &*kept() {
        Some(kept) => State { on, ..kept.state() },
        None => State { on, ..State::default() },
    }
}

/// Writes a line, whatever is on.
#[cold]
pub fn write(level: Level, category: &str, text: fmt::Arguments<'_>) {
    let mut kept = kept();
    if let Some(kept) = &mut *kept {
        // The time is read behind the lock, so that lines stand in its order.
        let now = clock::utc(SystemTime::now());
        kept.write(&line::line(&now, level.name(), category, &text.to_string()));
    }
}

/// A panic of another thread's leaves a whole state: at worst a line that was not written.
fn kept() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a line of a category, if that is on: `debug!(Category::Pool, "worker {} goes", worker.0)`.
/// What stands in it is not made where it is off.
#[macro_export]
macro_rules! debug {
    ($category:expr, $($text:tt)+) => {
        if $crate::log::is_on($category.bit()) {
            $crate::log::write(
                $crate::log::Level::Debug,
                $category.name(),
                ::std::format_args!($($text)+),
            );
        }
    };
}

/// Writes a line, whatever is on: `log!(Warn, Category::Zygote, "{pid} ended")`.
#[macro_export]
macro_rules! log {
    ($level:ident, $category:expr, $($text:tt)+) => {
        $crate::log::write(
            $crate::log::Level::$level,
            $category.name(),
            ::std::format_args!($($text)+),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Category(u32);

    impl Category {
        fn bit(&self) -> u32 {
            self.0
        }

        fn name(&self) -> &'static str {
            "tested"
        }
    }

    /// The log is the process's: one test has it all.
    #[test]
    fn a_category_that_is_off_makes_no_text_and_one_that_is_on_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (category, mut made) = (Category(1 << 31), 0);
        crate::log!(Info, category, "there is none yet");
        assert_eq!(state(), State::default());
        begin(&path);
        let mut text = || {
            made += 1;
            format!("text {made}")
        };
        crate::debug!(category, "{}", text());
        turn(category.bit(), 0);
        crate::debug!(category, "{}", text());
        turn(0, category.bit());
        crate::debug!(category, "{}", text());
        crate::log!(Warn, category, "always");
        let written = std::fs::read_to_string(&path).unwrap();
        let ends: Vec<_> = written.lines().filter_map(|line| line.split_once("Z ")).collect();
        assert_eq!(ends.len(), 2, "{written}");
        assert!(
            ends[0].1.starts_with("DEBUG ") && ends[0].1.ends_with(" tested text 1"),
            "{written}"
        );
        assert!(
            ends[1].1.starts_with("WARN ") && ends[1].1.ends_with(" tested always"),
            "{written}"
        );
        let state = state();
        assert_eq!((state.path, state.on, state.written, state.lost), (Some(path), 0, 2, 0));
    }
}
