//! The progress line on the terminal: when it is drawn, and that nothing of it stays.
//!
//! It is drawn on stderr, at most ten times a second, by a timer that the runner waits for beside
//! everything else; where stderr is no terminal, or all is plain, there is neither line nor timer.
//! Its width is the window's at each drawing.

use hob_os::clock;
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::progress::{Counts, Progress};
use super::run::Watches;
use crate::say;
use crate::show::style::Look;

/// Under which number the timer is watched.
pub(super) const DRAW: u32 = 1;
/// Between two drawings.
const EVERY_NS: i64 = 100_000_000;

/// The line, if there is one.
#[derive(Debug)]
pub(super) struct Screen(Option<Drawn>);

#[derive(Debug)]
struct Drawn {
    timer: OwnedFd,
    progress: Progress,
    begun_ns: u64,
}

impl Screen {
    /// Draws from now on, when so many have ended in an earlier run, where there is somebody to see it. One who asked for JSON is a program.
    pub(super) fn new(runner: &mut dyn Watches, json: bool, ended: u64) -> Screen {
        if json || Look::of_stderr_terminal().is_none() {
            return Screen(None);
        }
        let every = Timespec { tv_sec: 0, tv_nsec: EVERY_NS };
        let times = Itimerspec { it_interval: every, it_value: every };
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        );
        // Without a timer there is no line, which is no reason not to run.
        let Ok(timer) = timer else { return Screen(None) };
        let set = timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times);
        if set.is_err() || runner.watch(timer.as_fd(), DRAW).is_err() {
            return Screen(None);
        }
        Screen(Some(Drawn { timer, progress: Progress::new(ended), begun_ns: clock::now_ns() }))
    }

    /// Draws the line for this moment.
    pub(super) fn draw(&mut self, counts: Counts, ending: bool) {
        let Some(drawn) = &mut self.0 else { return };
        let _ = rustix::io::read(&drawn.timer, &mut [0; 8]);
        let Some(look) = Look::of_stderr_terminal() else { return };
        let now_us = clock::now_ns().saturating_sub(drawn.begun_ns) / 1000;
        let line = drawn.progress.line(counts, now_us, ending, &look);
        say::over(&line);
    }

    /// Takes the line away, for another one to be written; the next drawing brings it back.
    pub(super) fn clear(&self) {
        if self.0.is_some() {
            say::over("");
        }
    }

    /// Takes it away for good.
    pub(super) fn close(&mut self) {
        self.clear();
        self.0 = None;
    }
}
