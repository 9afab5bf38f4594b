//! A message is sent until a daemon has it: a daemon that stops, starts, restarts or is replaced by
//! another build costs its sender time, and no message.
//!
//! Invariants: what was given is never sent again. An ask that nobody can tell about is lost. A tell
//! that nobody can tell about is sent again, since the daemon knows it by what was drawn for it;
//! with `--at-most-once` it is lost too.

use std::time::Duration;

use hob_os::clock;
use hob_os::start::Start;

use super::sender::{LEFT, Link, Mail, Reply, Unanswered, Undone, attach};
use crate::connect::{self, Trouble};
use crate::connection::Connection;
use crate::verbs::lifecycle;

/// How long a daemon is looked for, for a message without a time of its own.
pub(super) const REACH_MS: u64 = 30_000;
/// How long a daemon may take to start.
const START_MS: u64 = 5_000;
/// How long none may be there, and none start, while nothing is in its way: then none will.
const ABSENT_MS: u64 = 3_000;
/// A message that has waited for so long with one daemon has as long for the next as it had for it.
const STAY_MS: u64 = 1_000;
/// How long the next look waits, and at most.
const PAUSE_MS: u64 = 2;
const PAUSE_MS_MAX: u64 = 100;
const NS: u64 = 1_000_000;

/// Who sends messages, one at a time, to whichever daemon is there.
#[derive(Debug)]
pub(super) struct Sender<'a> {
    start: &'a Start,
    link: Option<Link>,
}

/// Until when a daemon is looked for.
#[derive(Debug)]
struct Search {
    /// The message's own time.
    own_ns: Option<u64>,
    until_ns: u64,
    pause_ms: u64,
    /// Since when there is none, and nothing in its way.
    absent_ns: Option<u64>,
}

impl Search {
    fn new(own_ns: Option<u64>) -> Search {
        let until_ns = own_ns.unwrap_or_else(|| clock::now_ns() + REACH_MS * NS);
        Search { own_ns, until_ns, pause_ms: PAUSE_MS, absent_ns: None }
    }

    /// A daemon was there since then, and has left without having given the message. Waits a moment;
    /// `false`: the time has passed. One that has refused at once is no new beginning.
    fn begins_anew(&mut self, since_ns: u64) -> bool {
        if clock::now_ns() >= since_ns + STAY_MS * NS {
            *self = Search::new(self.own_ns);
        }
        self.absent_ns = None;
        self.pauses()
    }

    /// What is told of a message that no daemon has taken.
    fn gives_up(&self, mail: &Mail, why: &str) -> Unanswered {
        match self.own_ns {
            Some(until_ns) if clock::now_ns() + self.pause_ms * NS >= until_ns => {
                Unanswered::timed_out(mail, &format!(": {why}"))
            }
            Some(_) | None => Unanswered::lost(why),
        }
    }

    /// Connects, and starts a daemon where there is none; for as long as that may help.
    fn stream(&mut self, start: &Start) -> Result<Connection, String> {
        loop {
            let trouble = match connect::connect_or_start(start, START_MS) {
                Ok(socket) => return attach(socket, start),
                Err(trouble) => trouble,
            };
            if !self.may_pass(start, trouble) || !self.pauses() {
                return Err(format!(
                    "no daemon can be reached ({}); `hob start` says why",
                    trouble.reason().code()
                ));
            }
        }
    }

    /// Whether the next look may find another state.
    fn may_pass(&mut self, start: &Start, trouble: Trouble) -> bool {
        match trouble {
            Trouble::NoDaemon if lifecycle::is_held(start) => {
                self.absent_ns = None;
                true
            }
            Trouble::NoDaemon => {
                let now_ns = clock::now_ns();
                now_ns < *self.absent_ns.get_or_insert(now_ns) + ABSENT_MS * NS
            }
            Trouble::ConnectTimeout | Trouble::NoAnswer | Trouble::DaemonClosed => true,
            Trouble::OtherBuild
            | Trouble::UnsafeDir(_)
            | Trouble::Sandbox
            | Trouble::PeerUid
            | Trouble::Descriptors
            | Trouble::Traced
            | Trouble::SystemRefuses
            | Trouble::TooLarge
            | Trouble::Protocol => false,
        }
    }

    /// Waits a moment; `false`: the time has passed.
    fn pauses(&mut self) -> bool {
        if clock::now_ns() + self.pause_ms * NS >= self.until_ns {
            return false;
        }
        std::thread::sleep(Duration::from_millis(self.pause_ms));
        self.pause_ms = (2 * self.pause_ms).min(PAUSE_MS_MAX);
        true
    }
}

/// Connects, and starts a daemon where there is none; see [`REACH_MS`].
pub(super) fn stream(start: &Start) -> Result<Connection, String> {
    Search::new(None).stream(start)
}

impl<'a> Sender<'a> {
    /// Without a connection yet.
    pub(super) fn new(start: &'a Start) -> Sender<'a> {
        Sender { start, link: None }
    }

    /// Connects, and starts a daemon where there is none.
    pub(super) fn connect(start: &'a Start) -> Result<Sender<'a>, String> {
        Ok(Sender { start, link: Some(Link::new(stream(start)?)) })
    }

    /// Sends a message and awaits its reply.
    pub(super) fn send(&mut self, mail: &Mail) -> Result<Reply, Unanswered> {
        let until_ns = mail.timeout_ms.map(|ms| clock::now_ns().saturating_add(ms * NS));
        let mut search = Search::new(until_ns);
        loop {
            let link = match self.link.as_mut() {
                Some(link) => link,
                None => {
                    let stream = search.stream(self.start);
                    let stream = stream.map_err(|why| search.gives_up(mail, &why))?;
                    self.link.insert(Link::new(stream))
                }
            };
            let since_ns = clock::now_ns();
            let (undone, is_known) = match link.send(mail, until_ns) {
                Ok(reply) => return Ok(reply),
                Err(Undone::Over(unanswered)) => return Err(unanswered),
                Err(Undone::NotGiven(why)) => (why, true),
                Err(Undone::Unknown) => (LEFT.to_owned(), mail.drawn.is_some()),
            };
            self.link = None;
            if !is_known {
                return Err(Unanswered::lost(undone));
            }
            if !search.begins_anew(since_ns) {
                return Err(search.gives_up(mail, &undone));
            }
        }
    }
}
