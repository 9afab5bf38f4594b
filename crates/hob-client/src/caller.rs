//! Who makes a call: its argv, options and world, and what is said and done in its name.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

use rustix::fd::OwnedFd;

use hob_os::process::Status;
use hob_os::signals::{self, Set};
use hob_os::start::Start;
use hob_wire::call::Terminal;
use hob_wire::exit::Exit;

use crate::connect::Trouble;
use crate::fallback::{self, Fallback};
use crate::options::{self, CalledAs, Options};
use crate::{Rest, beyond, say};

/// Who calls, and what for.
#[derive(Debug)]
pub struct Caller<'a> {
    /// argv and environment of this process.
    pub start: &'a Start,
    /// The parsed options.
    pub options: &'a Options,
    /// What a call asks of the rest of hob.
    pub rest: &'a Rest,
    /// What `/proc` says of this process, read before anything was changed.
    pub status: Status,
    /// Where the outcome's JSON line goes.
    pub status_fd: Option<OwnedFd>,
    /// The terminal that controls this process.
    pub terminal: Terminal,
    /// Signals that were passed on to a daemon.
    pub passed: Cell<Set>,
}

impl Caller<'_> {
    /// The program and its arguments. A shim's program is its name: where the shim itself lies
    /// is nothing that `PATH` should be searched for.
    #[must_use]
    pub fn program(&self) -> Vec<&[u8]> {
        let words = self.start.argv[self.options.program..].iter().map(|word| word.to_bytes());
        let mut words: Vec<&[u8]> = words.collect();
        if self.options.called == CalledAs::Shim {
            words[0] = options::base_name(words[0]);
        }
        words
    }

    /// The signals that are passed on: those that the program would have received.
    #[must_use]
    pub fn forwarded(&self) -> Set {
        Set(signals::FORWARDED.0 & !self.status.ignored & !self.status.blocked)
    }

    /// Sends what was passed on to a daemon, which did not give the call to anybody, to this
    /// process again: pending, until the program that is about to run here can have it.
    pub(crate) fn raise_again(&self) {
        let passed = self.passed.take();
        (1..=64).filter(|number| passed.has(*number)).for_each(signals::raise);
    }

    /// Says why nothing was run, and what may be done about it. A shim's caller called no hob: it
    /// gets the cause alone.
    #[cold]
    pub(crate) fn say_refused(&self, why: &[u8], code: u8) {
        let hint = match self.options.called {
            CalledAs::Hob => (self.rest.hint)(self.start, self.program()[0], code),
            CalledAs::Shim => String::new(),
        };
        say::line(&[why, hint.as_bytes()].concat());
    }

    /// The mask that the caller had.
    #[must_use]
    pub fn mask(&self) -> Set {
        Set(self.status.blocked)
    }
}

/// Leaves a line about a call that no daemon took.
pub(crate) fn note(caller: &Caller<'_>, trouble: Trouble) {
    let os = |name: &[u8]| caller.start.variable(name).map(OsStr::from_bytes);
    let Some(dir) = fallback::state_dir_for(os(b"XDG_STATE_HOME"), os(b"HOME")) else { return };
    let beyond = (trouble == Trouble::Descriptors).then(beyond::in_words).flatten();
    let line = Fallback {
        at: SystemTime::now(),
        reason: trouble.reason(),
        beyond: beyond.as_deref(),
        program: OsStr::from_bytes(caller.program()[0]),
        caller_pid: std::process::id(),
    };
    // The program runs whether the line is kept or not.
    let _ = fallback::append(&dir, &line);
}

/// Ends as the program did: the code to return, or death by its signal.
pub(crate) fn leave(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => {
            signals::die_by(i32::from(signal));
            // A signal that does not end a process cannot have ended the program; a shell's
            // convention is the nearest thing left.
            128 | signal
        }
    }
}
