//! `--hosts GLOB`: the sets of a run, performed by other hosts that offer the directory.
//!
//! ```text
//!          ┌──────── again: busy, gone ───────┐
//! source ──┴─▶ the host with most room ─ask─▶ open ── answer ──▶ ended, with its record
//!   (next)                                     ├──── lost ─────▶ ended, as a system error
//!                                              └──── silence ──▶ the same
//! ```
//! | file | does |
//! |---|---|
//! | `open` | what a host has, and what becomes of it |
//! | `places` | which host is given the next set |
//! | `survey` | which hosts there are |
//!
//! The daemon here asks the hosts. Invariants: a set that a host may have begun is never given to
//! another; a host has no more open than it says that it takes; each set that was taken of the source
//! ends once.

mod open;
mod places;
mod survey;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use hob_core::hooks::{AskedSet, Bytes, HookOutcome, SetRecord};
use hob_core::hosts::reply::was_not_given;
use hob_core::hosts::{ASKS_MAX, WITHIN_US};
use hob_hooks::{Event, Isolation, Set, SetId, WorkSource};
use hob_os::clock;
use hob_os::start::Start;
use hob_wire::caps::BODY_MAX;
use hob_wire::message::Reason;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::connect;
use crate::failure::Failure;
use crate::verbs::message::many::{Asks, Left, Unanswered};
use open::Open;
use places::Places;
use survey::{Answer, Survey, Wish};

/// So long a host has for one set at most.
const SET_US: u64 = 12 * WITHIN_US;
/// How often it is asked which hosts there are.
const SURVEY_EVERY_NS: u64 = 2_000_000_000;
const CONTENT_TYPE: &str = "application/json";

/// Nothing more is begun.
const DRAIN: u8 = 1;
/// What is open is waited for no longer.
const END: u8 = 2;

/// What is wanted of other hosts.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// The directory, as it is named.
    pub(super) dir: &'a std::path::Path,
    /// Patterns of hosts' names.
    pub(super) patterns: &'a [String],
    /// How many sets may be open at one time; as many as the hosts take if not said.
    pub(super) at_once: Option<usize>,
    /// A host that says nothing for so long has lost what it was given.
    pub(super) lost_after: Duration,
    /// How long a hook that ran out of time may take to end.
    pub(super) grace: Duration,
}

/// Other hosts as what performs sets.
pub(super) struct Hosts {
    asks: Asks,
    places: Places,
    survey: Survey,
    /// When the last survey was begun, and whether its answer is still to come.
    surveyed: (u64, bool),
    watched: Vec<(OwnedFd, u32)>,
    asked: Arc<AtomicU8>,
    at_once: usize,
    lost_after_ns: u64,
    grace: Duration,
    begun_ns: u64,
    open: HashMap<u64, Open>,
    /// Sets that no host has begun.
    again: VecDeque<(SetId, Set)>,
    /// The number of the set before the next.
    last: u64,
    /// Nothing more is taken of the source.
    is_over: bool,
    /// The source has nothing until a set has ended.
    is_empty: bool,
    /// Since when no host takes anything.
    without_ns: Option<u64>,
}

/// Ends the work of hosts before its time.
#[derive(Debug, Clone)]
pub(super) struct Stop(Arc<AtomicU8>);

impl Stop {
    pub(super) fn drain(&self) {
        self.0.fetch_max(DRAIN, Ordering::AcqRel);
    }

    pub(super) fn end(&self) {
        self.0.fetch_max(END, Ordering::AcqRel);
    }
}

impl Hosts {
    /// Looks for the hosts.
    pub(super) fn find(start: &Start, wanted: &Wanted<'_>) -> Result<Hosts, Failure> {
        if start.variable(b"HOB") == Some(b"0") {
            return Err(Failure::usage("--hosts: HOB=0 bypasses hob, and hob asks other hosts"));
        }
        let asks = Asks::connect(start).map_err(|why| Failure::new(format!("--hosts: {why}")))?;
        let wish =
            Wish { directories: directories(wanted.dir), patterns: wanted.patterns.to_vec() };
        let answer = wish.ask(start);
        if answer.found.is_empty() {
            return Err(nobody(&answer, wanted));
        }
        let mut places = Places::default();
        places.seen(&answer.found);
        let survey = Survey::new(start, wish).map_err(|error| Failure::new(error.to_string()))?;
        let now_ns = clock::now_ns();
        Ok(Hosts {
            asks,
            places,
            survey,
            surveyed: (now_ns, false),
            watched: Vec::new(),
            asked: Arc::default(),
            // What the daemon has open at other hosts is bounded too.
            at_once: wanted.at_once.unwrap_or(usize::MAX).min(ASKS_MAX / 2),
            lost_after_ns: u64::try_from(wanted.lost_after.as_nanos()).unwrap_or(u64::MAX),
            grace: wanted.grace,
            begun_ns: now_ns,
            open: HashMap::new(),
            again: VecDeque::new(),
            last: 0,
            is_over: false,
            is_empty: false,
            without_ns: None,
        })
    }

    /// How many sets are open at one time at most.
    pub(super) fn at_once(&self) -> usize {
        self.places.at_once().min(self.at_once)
    }

    /// Each host with how many it takes, for people.
    pub(super) fn shown(&self) -> String {
        self.places.shown()
    }

    pub(super) fn stop(&self) -> Stop {
        Stop(Arc::clone(&self.asked))
    }

    pub(super) fn watch(
        &mut self,
        descriptor: BorrowedFd<'_>,
        number: u32,
    ) -> rustix::io::Result<()> {
        self.watched.push((rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?, number));
        Ok(())
    }

    /// Performs all that the source has; says why not, where sets are left.
    pub(super) fn run(mut self, source: &mut dyn WorkSource) -> Option<String> {
        loop {
            match self.asked.load(Ordering::Acquire) {
                END => {
                    self.end_all(source);
                    return None;
                }
                DRAIN => self.drain(source),
                _ => {}
            }
            let given = self.give(source);
            if self.open.is_empty() && self.again.is_empty() {
                // Where no host has room, nobody has asked the source yet.
                match self.next(source) {
                    Some(next) => self.again.push_back(next),
                    None => return None,
                }
            }
            let now_ns = clock::now_ns();
            if let Some(why) = self.without_hosts(now_ns) {
                self.drain(source);
                return Some(why);
            }
            self.look_around(now_ns);
            let came = given.and_then(|()| self.wait(source)).and_then(|()| self.take(source));
            if let Err(Left) = came {
                let why = "the daemon here has left, which asks other hosts";
                self.lose(source, why, |_| true);
                self.drain(source);
                return Some(why.to_owned());
            }
            self.heard(source);
        }
    }

    /// Gives sets to hosts while there is room.
    fn give(&mut self, source: &mut dyn WorkSource) -> Result<(), Left> {
        while self.open.len() < self.at_once {
            let now_ns = clock::now_ns();
            let Some((host, program)) = self.places.next(now_ns) else { return Ok(()) };
            let (host, program) = (host.to_owned(), format!("{program}@{host}"));
            let (id, set) = match self.again.pop_front() {
                Some(again) => again,
                None => match self.next(source) {
                    Some(next) => next,
                    None => return Ok(()),
                },
            };
            let payload = serde_json::to_vec(&self.asked_set(&set)).unwrap_or_default();
            if payload.len() > BODY_MAX {
                let open = Open::nowhere(set);
                let text = format!("its variables have more than {BODY_MAX} bytes");
                let record = open.ended((id.0, self.begun_ns), HookOutcome::SystemError, text);
                self.end(source, record);
                continue;
            }
            let sent = self.asks.ask(id.0, &program, (CONTENT_TYPE, &payload), SET_US);
            if sent.is_err() {
                self.again.push_front((id, set));
                return Err(Left);
            }
            self.places.given(&host);
            let ids = self.places.ids(&host);
            self.open.insert(id.0, Open { set, host, ids, sent_ns: now_ns, heard_ns: now_ns });
        }
        Ok(())
    }

    /// The next set of the source, which begins.
    fn next(&mut self, source: &mut dyn WorkSource) -> Option<(SetId, Set)> {
        if self.is_over || self.is_empty {
            return None;
        }
        let id = SetId(self.last + 1);
        let Some(set) = source.next(id) else {
            self.is_empty = true;
            return None;
        };
        self.last = id.0;
        source.event(Event::SetStarted { set: id, target: &set.target, hooks: 0, names: &[] });
        Some((id, set))
    }

    fn asked_set(&self, set: &Set) -> AskedSet {
        let variable = |entry: &std::ffi::CString| {
            let entry = entry.to_bytes();
            let at = entry.iter().position(|byte| *byte == b'=')?;
            let name = String::from_utf8(entry[..at].to_vec()).ok()?;
            Some((name, Bytes(entry[at + 1..].to_vec())))
        };
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        AskedSet {
            target: set.target.clone(),
            set: set.environment.iter().filter_map(variable).collect(),
            kill_after_us: set.kill_after.map(micros),
            grace_us: Some(micros(self.grace)),
            warn_after_us: set.warn_after.map(micros),
            spawn: set.isolation == Isolation::Spawn,
            ignored: Some(set.ignored.iter().map(hob_core::hooks::Suffix::pattern).collect()),
        }
    }

    /// Waits for an answer, a survey, or what is watched.
    fn wait(&mut self, source: &mut dyn WorkSource) -> Result<(), Left> {
        let now_ns = clock::now_ns();
        let (surveyed_ns, is_open) = self.surveyed;
        let survey_ns = (!is_open).then_some(surveyed_ns + SURVEY_EVERY_NS);
        let rested_ns = self.places.next_rested_ns(now_ns);
        let until_ns = [survey_ns, rested_ns].into_iter().flatten().min();
        let left = until_ns.map(|until| connect::nanoseconds(until.saturating_sub(now_ns)));
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.asks.descriptor(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.survey.descriptor(), PollFlags::IN),
        ];
        let watched = self.watched.iter();
        fds.extend(watched.map(|(fd, _)| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)));
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(Left),
        }
        let is_ready: Vec<bool> = fds.iter().skip(2).map(|fd| !fd.revents().is_empty()).collect();
        for ((_, number), is_ready) in self.watched.iter().zip(is_ready) {
            if is_ready {
                source.event(Event::Ready(*number));
            }
        }
        Ok(())
    }

    /// Takes what has come to what is open.
    fn take(&mut self, source: &mut dyn WorkSource) -> Result<(), Left> {
        while let Some((number, reply)) = self.asks.next()? {
            // What was given up may be answered all the same.
            let Some(open) = self.open.remove(&number) else { continue };
            let now_ns = clock::now_ns();
            match reply {
                Ok(payload) => {
                    self.places.ended(&open.host);
                    for other in self.open.values_mut() {
                        if other.host == open.host && other.ids == open.ids {
                            other.heard_ns = now_ns;
                        }
                    }
                    let record = open.record(number, &payload, self.begun_ns);
                    self.end(source, record);
                }
                Err(Unanswered { reason, text }) if goes_again(reason) => {
                    if reason == Reason::Busy {
                        self.places.busy(&open.host, now_ns);
                    } else {
                        self.places.gone(&open.host, text);
                    }
                    self.again.push_back((SetId(number), open.set));
                }
                Err(Unanswered { text, .. }) => {
                    self.places.ended(&open.host);
                    let record =
                        open.ended((number, self.begun_ns), HookOutcome::SystemError, text);
                    self.end(source, record);
                }
            }
        }
        Ok(())
    }

    /// A set has ended: the source may have another now.
    fn end(&mut self, source: &mut dyn WorkSource, record: SetRecord) {
        self.is_empty = false;
        source.event(Event::SetEnded(record));
    }

    /// Ends those that this is true of, as lost.
    fn lose(&mut self, source: &mut dyn WorkSource, why: &str, which: impl Fn(&Open) -> bool) {
        let lost: Vec<u64> =
            self.open.iter().filter(|(_, open)| which(open)).map(|(number, _)| *number).collect();
        for number in lost {
            let Some(open) = self.open.remove(&number) else { continue };
            self.asks.take_back(number);
            let text = format!("{} may have run it, and its answer is lost: {why}", open.host);
            self.places.gone(&open.host, why.to_owned());
            let record = open.ended((number, self.begun_ns), HookOutcome::SystemError, text);
            self.end(source, record);
        }
    }

    /// Begins nothing more: what no host has begun ends as cancelled.
    fn drain(&mut self, source: &mut dyn WorkSource) {
        self.is_over = true;
        for (id, set) in std::mem::take(&mut self.again) {
            let open = Open::nowhere(set);
            let text = "no host has begun it".to_owned();
            let record = open.ended((id.0, self.begun_ns), HookOutcome::Cancelled, text);
            self.end(source, record);
        }
    }

    /// Waits for nothing more.
    fn end_all(&mut self, source: &mut dyn WorkSource) {
        for (number, open) in std::mem::take(&mut self.open) {
            self.asks.take_back(number);
            let text = format!("{} was not waited for", open.host);
            let record = open.ended((number, self.begun_ns), HookOutcome::Cancelled, text);
            self.end(source, record);
        }
        self.drain(source);
    }

    /// Asks which hosts there are, if it is time.
    fn look_around(&mut self, now_ns: u64) {
        let (at_ns, is_open) = self.surveyed;
        if !is_open && now_ns >= at_ns + SURVEY_EVERY_NS {
            // Without a thread now, there may be one later.
            self.surveyed = (now_ns, self.survey.begin().is_ok());
        }
    }

    /// Takes what is known of hosts; what was given to one that is silent is lost.
    fn heard(&mut self, source: &mut dyn WorkSource) {
        let Some(answer) = self.survey.take() else { return };
        let now_ns = clock::now_ns();
        self.surveyed.1 = false;
        self.places.seen(&answer.found);
        for open in self.open.values_mut() {
            if answer.found.iter().any(|found| open.ids.contains(&found.id)) {
                open.heard_ns = now_ns;
            }
        }
        let limit_ns = self.lost_after_ns;
        let seconds = Duration::from_nanos(limit_ns).as_secs_f64();
        let why = format!("it has said nothing for {seconds} s");
        self.lose(source, &why, |open| now_ns.saturating_sub(open.heard_ns) >= limit_ns);
    }

    /// Why no host takes anything, where that has lasted as long as a host may be silent.
    fn without_hosts(&mut self, now_ns: u64) -> Option<String> {
        let Some(why) = self.places.none_left().filter(|_| self.open.is_empty()) else {
            self.without_ns = None;
            return None;
        };
        let since_ns = *self.without_ns.get_or_insert(now_ns);
        let has_lasted = now_ns.saturating_sub(since_ns) >= self.lost_after_ns;
        has_lasted.then(|| format!("no host takes anything any more: {why}"))
    }
}

/// Why a set cannot be asked of another host.
pub(super) fn can_go(set: &Set) -> Result<(), String> {
    let name = |entry: &std::ffi::CString| {
        let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        std::str::from_utf8(name).is_ok()
    };
    match set.environment.iter().find(|entry| !name(entry)) {
        None => Ok(()),
        Some(entry) => {
            let shown = Bytes::from(entry.to_bytes());
            Err(format!(
                "--hosts: {}: a variable's name that goes to a host is UTF-8",
                shown.text()
            ))
        }
    }
}

/// Whether another host may have it: no host has begun it, and one may.
fn goes_again(reason: Reason) -> bool {
    // What breaks a rule of the wire breaks it at each host.
    was_not_given(reason) && reason != Reason::Malformed
}

/// The paths that a directory may have at hosts: as it is here, links followed, and as it is named.
fn directories(dir: &std::path::Path) -> Vec<String> {
    let followed = dir.canonicalize().ok();
    let named = std::path::absolute(dir).ok();
    let both = [followed, named].into_iter().flatten();
    both.filter_map(|path| path.into_os_string().into_string().ok()).collect()
}

/// Why no host is asked.
fn nobody(answer: &Answer, wanted: &Wanted<'_>) -> Failure {
    let dir = wanted.dir.display();
    let text = match (&answer.trouble, answer.others.as_slice()) {
        (Some(trouble), _) => format!("no host can be asked: {trouble}"),
        (None, []) => format!(
            "no host offers {dir}; one that has it says so in its hob.toml, by `hooks`, `offered` \
             and `version`"
        ),
        (None, others) => format!("no host of this name offers {dir}; {} do", others.join(", ")),
    };
    Failure::new(format!("--hosts {}: {text}", wanted.patterns.join(" ")))
}
