//! The terminal of `hob top`: its other screen, keys as they are typed, and signals as events.
//!
//! Invariants: whatever was changed is changed back before this process ends, stops, or dies by a
//! signal (SIGKILL aside, which no process can meet); between two draws it waits for keys, signals
//! and the time together, so that each of them is answered at once.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};

use hob_os::say::{self, Layout};
use hob_os::signals::{self, Set};
use hob_os::start::Start;
use hob_os::{clock, process};

use super::explorer::{Explorer, Next, View};
use super::keys::{self, Key};
use super::snapshot::{Sample, Snapshot};
use super::{Failure, INTERVAL_MS, sample};
use crate::connect;
use crate::show::clock::Clock;
use crate::show::entries;
use crate::show::style::Look;
use crate::verbs::log;

const SIGHUP: i32 = rustix::process::Signal::HUP.as_raw();
const SIGINT: i32 = rustix::process::Signal::INT.as_raw();
const SIGQUIT: i32 = rustix::process::Signal::QUIT.as_raw();
const SIGTERM: i32 = rustix::process::Signal::TERM.as_raw();
const SIGTSTP: i32 = rustix::process::Signal::TSTP.as_raw();
const SIGWINCH: i32 = rustix::process::Signal::WINCH.as_raw();

/// The other screen, an invisible cursor, and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";
/// To the first column of the first line; what is behind the end of a line; what is below.
const HOME: &str = "\x1b[H";
const END: &str = "\x1b[K";
const LINE_END: &str = "\x1b[K\r\n";
const BELOW: &str = "\x1b[J";

/// Calls that are listed, the newest.
const CALLS_MAX: usize = 500;
/// Seconds of which the rate is shown, where there is room.
const RATES_MAX: usize = 300;

/// What ended a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Woken {
    /// The interval is over.
    Time,
    /// The window has another size.
    Window,
    /// `^Z`.
    Stop,
    /// Keys were typed.
    Keys(Vec<Key>),
    /// There is no terminal to type at any more.
    Quit,
    /// A signal that ends a process.
    Signal(i32),
}

/// Draws until it is told to end.
pub(super) fn watch(start: &Start) -> Result<(), Failure> {
    let unusable = |error: Errno| Failure::new(format!("cannot use this terminal: {error}"));
    let set = Set::of(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH]);
    let signals = signals::descriptor(set).map_err(unusable)?;
    signals::block(set).map_err(unusable)?;
    let mut screen = Screen::enter().map_err(unusable)?;
    let mut last: Option<Sample> = None;
    let (mut explorer, mut rates) = (Explorer::default(), Vec::new());
    loop {
        let due_ns = clock::now_ns() + INTERVAL_MS * 1_000_000;
        let now = sample(start);
        let snapshot = now.as_ref().ok().map(|now| Snapshot::between(last.as_ref(), now));
        rates.extend(snapshot.as_ref().and_then(Snapshot::rate));
        rates.drain(..rates.len().saturating_sub(RATES_MAX));
        let woken = loop {
            let look = Look::of_stdout();
            let programs = match (&snapshot, &now) {
                (Some(snapshot), _) => {
                    snapshot.ordered((explorer.order(), &rates), &look, |pool| {
                        explorer.takes([&pool.program, &pool.target])
                    })
                }
                (None, Err(error)) => vec![error.to_string()],
                (None, Ok(_)) => Vec::new(),
            };
            let calls = (explorer.view == View::Calls).then(|| {
                log::flush(start);
                entries::recent(&log::state_dir()?, CALLS_MAX).map_err(log::unreadable)
            });
            let lines = explorer.lines((rows(), &look, &Clock::now()), programs, calls);
            if !draw(&lines) {
                return Ok(());
            }
            match wait(&signals, due_ns) {
                Woken::Window => {}
                Woken::Keys(keys) => {
                    if keys.into_iter().any(|key| explorer.press(key) == Next::Quit) {
                        return Ok(());
                    }
                }
                woken @ (Woken::Time | Woken::Stop | Woken::Quit | Woken::Signal(_)) => {
                    break woken;
                }
            }
        };
        match woken {
            Woken::Quit => return Ok(()),
            Woken::Time | Woken::Window | Woken::Keys(_) => last = now.ok(),
            Woken::Stop => {
                drop(screen);
                signals::stop_self();
                screen = Screen::enter().map_err(unusable)?;
                last = None;
            }
            Woken::Signal(number) => {
                drop(screen);
                signals::die_by(number);
                return Ok(());
            }
        }
    }
}

/// The lines of the window.
fn rows() -> usize {
    rustix::termios::tcgetwinsize(process::stdio()[1])
        .map_or(24, |size| usize::from(size.ws_row).max(2))
}

/// Puts a whole screen there, its last line without an end. `false`: there is no screen.
fn draw(lines: &[String]) -> bool {
    let lines: Vec<_> = lines.iter().map(|line| say::escaped(line, Layout::Coloured)).collect();
    let text = lines.join(LINE_END);
    put(format!("{HOME}{text}{END}{BELOW}").as_bytes())
}

/// Writes all of it: `false` when the terminal is gone.
fn put(bytes: &[u8]) -> bool {
    say::raw(say::Stream::Out, bytes).is_ok()
}

fn wait(signals: &OwnedFd, due_ns: u64) -> Woken {
    let [stdin, _, _] = process::stdio();
    loop {
        let left = connect::nanoseconds(due_ns.saturating_sub(clock::now_ns()));
        let mut fds = [
            PollFd::from_borrowed_fd(stdin, PollFlags::IN),
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Woken::Time,
            Err(Errno::INTR) => continue,
            Err(_) => return Woken::Quit,
            Ok(_) => {}
        }
        if let Some((number, _)) = signals::read(signals) {
            return match number {
                SIGWINCH => Woken::Window,
                SIGTSTP => Woken::Stop,
                _ => Woken::Signal(number),
            };
        }
        if !fds[0].revents().is_empty() {
            let mut typed = [0; 256];
            match rustix::io::read(stdin, &mut typed) {
                Ok(0) => return Woken::Quit,
                Ok(count) => return Woken::Keys(keys::parse(&typed[..count])),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return Woken::Quit,
            }
        }
    }
}

/// A terminal that is ours; dropping it gives it back.
struct Screen {
    before: Termios,
}

impl Screen {
    fn enter() -> Result<Screen, Errno> {
        let [stdin, _, _] = process::stdio();
        let before = rustix::termios::tcgetattr(stdin)?;
        let mut ours = before.clone();
        // Keys as they are typed and unseen; `^C` and `^Z` stay signals.
        ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        ours.special_codes[SpecialCodeIndex::VMIN] = 1;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(stdin, OptionalActions::Now, &ours)?;
        let screen = Screen { before };
        if put(ENTER) { Ok(screen) } else { Err(Errno::IO) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put(LEAVE);
        let [stdin, _, _] = process::stdio();
        // A terminal that is gone needs nothing back.
        let _ = rustix::termios::tcsetattr(stdin, OptionalActions::Now, &self.before);
    }
}
