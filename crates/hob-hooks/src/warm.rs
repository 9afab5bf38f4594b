//! Warm hooks: a hook that an interpreter of hob's can perform is given to the daemon as an
//! ordinary call, with `/dev/null` and the hook's pipes as its standard streams.
//!
//! ```text
//! begin ─▶ asked ──ended──▶ settled          the claim is the daemon's
//!            ├──run cold──▶ spawned, as the daemon says, and its end reported
//!            └──silence───▶ take the claim ─ours──▶ spawned
//!                                          └theirs─▶ lost: never run again
//! ```
//! Owns: the caller's side of `docs/wire.md`, without ever waiting. What is warm, stale or of
//! another context is the daemon's to decide, as for every call.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use hob_os::claim::Claim;
use hob_os::look::{self, Seen};
use hob_os::process::inherited::Inherited;
use hob_os::process::{Status, limits, processors};
use hob_os::surroundings::priority;
use hob_os::trace::Streams;
use hob_os::{build_id, clock, surroundings, uds};
use hob_wire::call::{
    Asked, Call, ColdEnded, Hello, Origin, Priority, Received, Signal, Terminal, World,
};
use hob_wire::caller::{self, Late, Next, Pending, Reply};
use hob_wire::caps::BEYOND_MAX;
use hob_wire::exit::Exit;
use hob_wire::strings::Strings;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io;

use crate::listing::Identity;
use crate::set::Set;
use crate::start::Stdio;

/// How long a daemon may take to answer in any way, before the hook is taken back.
const ANSWER_NS: u64 = 50_000_000;
/// How long a daemon that was not there is not looked for again.
const AWAY_NS: u64 = 1_000_000_000;
/// How many files are remembered to have, or not to have, a first line with a warm interpreter.
const HOSTED_MAX: usize = 4096;

/// Connects to a daemon, and starts one if that is wanted; `None` where there is none. The peer's
/// user is checked by it.
pub type Connector = Box<dyn Fn() -> Option<OwnedFd> + Send>;
/// The same, for the runners of a parallel runner.
pub type Connect = std::sync::Arc<dyn Fn() -> Option<OwnedFd> + Send + Sync>;

/// The way to the daemon.
pub(crate) struct Warm {
    connect: Connector,
    status: Status,
    context: Vec<u8>,
    /// What this process was started with beyond 0 to 2.
    beyond: Vec<BorrowedFd<'static>>,
    away_until_ns: u64,
    hosted: HashMap<Identity, bool>,
}

impl std::fmt::Debug for Warm {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Warm").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Warm {
    pub(crate) fn new(connect: Connector, status: Status) -> Warm {
        let context = surroundings::context(&status);
        // A hook started here has them, and so has a warm one. All else that is open is hob's.
        let beyond =
            Inherited::look_beside_threads().map(|inherited| inherited.beyond).unwrap_or_default();
        Warm { connect, status, context, beyond, away_until_ns: 0, hosted: HashMap::new() }
    }

    /// Whether a hook's first line names an interpreter that hob keeps warm. Only a reason to
    /// ask: the daemon decides.
    pub(crate) fn hosts(&mut self, set: &Set, path: &CStr, identity: Identity) -> bool {
        if let Some(known) = self.hosted.get(&identity) {
            return *known;
        }
        let hosted = names_interpreter(set, path);
        if self.hosted.len() < HOSTED_MAX && !identity.is_too_new() {
            self.hosted.insert(identity, hosted);
        }
        hosted
    }

    /// Gives a hook to the daemon. `None`: there is none, and nothing was given.
    pub(crate) fn begin(
        &mut self,
        set: &Set,
        path: &CStr,
        stdio: Stdio<'_>,
        now_ns: u64,
    ) -> Option<Calling> {
        if now_ns < self.away_until_ns || self.beyond.len() > BEYOND_MAX {
            return None;
        }
        let calling = self.try_begin(set, path, stdio, now_ns);
        if calling.is_none() {
            self.away_until_ns = now_ns + AWAY_NS;
        }
        calling
    }

    fn try_begin(&self, set: &Set, path: &CStr, stdio: Stdio<'_>, now_ns: u64) -> Option<Calling> {
        let socket = (self.connect)()?;
        let Streams { stdin, stdout, stderr } = stdio.streams();
        let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let claim = Claim::offer(&[&streams[..], &self.beyond].concat()).ok()?;
        let own;
        let directory = match &set.within {
            Some(directory) => directory.as_fd(),
            None => {
                own = hob_os::process::working_directory().ok()?;
                own.as_fd()
            }
        };
        let bytes = self.encode(set, path, now_ns)?;
        let [offers, takes] = claim.ends();
        // A connection that does not even take one frame is one of a daemon that is stuck.
        let sent = uds::send(&socket, &bytes, &[directory, offers, takes]).ok();
        if sent != Some(bytes.len()) {
            // What has part of a call gives it to nobody.
            let _ = claim.take_back();
            return None;
        }
        Some(Calling { socket, claim, call: Pending::until(clock::now_ns() + ANSWER_NS) })
    }

    fn encode(&self, set: &Set, path: &CStr, now_ns: u64) -> Option<Vec<u8>> {
        let mut env = Strings::new();
        set.environment.iter().for_each(|entry| env.push(entry.to_bytes()));
        let mut argv = Strings::new();
        argv.push(path.to_bytes());
        let call = Call {
            asked: Asked::default(),
            pid: std::process::id(),
            // A hook leads a group of its own, and has no part in a terminal.
            terminal: Terminal::default(),
            processor: processors::current(),
            start_ns: now_ns,
            connected_ns: clock::now_ns(),
            context: self.context.clone(),
            world: self.world(set),
            argv,
            env,
            closed: 0,
            streams: hob_wire::call::Streams::Plain,
            beyond: self.beyond.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect(),
        };
        let hello = Hello { build: build_id::own(), pid: call.pid };
        caller::opening(&hello, &call, 4096).ok()
    }

    fn world(&self, set: &Set) -> World {
        let priority::Priority { nice, io, policy, slack_ns } = priority::own();
        World {
            umask: set.umask.unwrap_or(self.status.umask),
            ignored: self.status.ignored,
            blocked: self.status.blocked,
            limits: limits::own(),
            priority: Priority { nice, io, policy, slack_ns, oom: 0 },
        }
    }
}

/// A hook that was given to the daemon.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) socket: OwnedFd,
    claim: Claim,
    call: Pending,
}

/// What a daemon says of a hook.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing yet.
    Nothing,
    /// What is to be done.
    Do(Reply),
    /// The connection ended, and the hook was given to nobody, nor ever will be.
    NotGiven,
    /// The connection ended, and the hook was given.
    Lost,
}

impl Calling {
    /// What has come.
    pub(crate) fn receive(&mut self) -> Answer {
        let mut chunk = [0; 4096];
        let next = match uds::receive(&self.socket, &mut chunk, &mut Vec::new()) {
            Ok(0) => self.call.end(),
            Ok(len) => self.call.feed(&chunk[..len]),
            Err(io::Errno::AGAIN | io::Errno::INTR) => Next::Wait,
            Err(_) => self.call.end(),
        };
        match next {
            Next::Wait => {
                self.call.queued(clock::now_ns());
                Answer::Nothing
            }
            Next::Do(reply) => Answer::Do(reply),
            Next::TakeClaim(_) => self.give_up(),
        }
    }

    /// After trouble: whoever has the claim has the hook.
    pub(crate) fn give_up(&mut self) -> Answer {
        if self.claim.take_back() { Answer::NotGiven } else { Answer::Lost }
    }

    /// When it is [`late`](Calling::late); `None`: it was given, and is waited for.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.call.due_ns()
    }

    /// The daemon has said nothing in time. `None`: it is waited for all the same.
    pub(crate) fn late(&mut self, now_ns: u64) -> Option<Answer> {
        match self.call.late(now_ns) {
            Late::Ask if !self.claim.is_taken() => report(&self.socket, &caller::queued()),
            Late::TakeClaim if self.claim.take_back() => return Some(Answer::NotGiven),
            Late::Ask | Late::TakeClaim => self.call.given(),
        }
        None
    }

    /// Passes a signal on. The daemon knows to whom.
    pub(crate) fn signal(&self, number: u8) {
        let signal = Signal { number, origin: Origin::Process, at_ns: clock::now_ns() };
        report(&self.socket, &caller::signal(&signal));
    }

    /// Leaves without an outcome: the daemon kills what was given.
    pub(crate) fn leave(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// Tells that the outcome has come.
    pub(crate) fn confirm(&self, exit: Exit) {
        let received = Received { exit, at_ns: clock::now_ns() };
        report(&self.socket, &caller::received(&received));
    }
}

/// Reports the end of a hook that the daemon wanted started here.
pub(crate) fn report_cold(socket: &OwnedFd, ended: &ColdEnded) {
    report(socket, &caller::cold_ended(ended));
}

fn report(socket: &OwnedFd, bytes: &[u8]) {
    // A daemon that is gone keeps no account either.
    let _ = uds::send(socket, bytes, &[]);
}

/// The environment of a set with a daemon's changes: `NAME=value` sets, `NAME` alone removes.
pub(crate) fn changed(environment: &[CString], changes: &Strings) -> Vec<CString> {
    let mut all = environment.to_vec();
    for change in changes.iter() {
        let name = change.split(|byte| *byte == b'=').next().unwrap_or(change);
        all.retain(|entry| {
            !entry.to_bytes().strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
        });
        if change.len() > name.len() {
            all.extend(CString::new(change));
        }
    }
    all
}

/// Whether a file's first line names an interpreter that hob hosts, by itself or through `env`.
fn names_interpreter(set: &Set, path: &CStr) -> bool {
    let mut bytes = [0; 256];
    let Ok(file) = look::at(set.place().fd(), path).and_then(Seen::file) else { return false };
    let Ok(len) = io::read(&file, &mut bytes) else { return false };
    is_hosted(&bytes[..len])
}

fn is_hosted(start: &[u8]) -> bool {
    let Some(line) = start.strip_prefix(b"#!") else { return false };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or(line);
    let base = |word: &[u8]| word.rsplit(|byte| *byte == b'/').next().unwrap_or(word).to_vec();
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty() && *word != b"-S")
        .map(base);
    let mut name = words.next().unwrap_or_default();
    if name == b"env" {
        name = words.next().unwrap_or_default();
    }
    hob_runtimes::by_interpreter(&name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_known_by_the_first_line() {
        for line in [
            "#!/usr/bin/python3\n",
            "#! /usr/bin/env python3.11\n",
            "#!/usr/bin/env -S python3 -I\n",
            "#!/usr/bin/ruby\n",
        ] {
            assert!(is_hosted(line.as_bytes()), "{line}");
        }
        for line in
            ["#!/bin/sh\n", "#!/usr/bin/env bash\n", "python3\n", "#!/usr/bin/pythonish\n", "#!\n"]
        {
            assert!(!is_hosted(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_daemons_changes_set_and_remove() {
        let own = [c"A=1".to_owned(), c"B=2".to_owned(), c"AB=3".to_owned()];
        let changes = [&b"A=4"[..], b"B", b"C=5"].into_iter().collect();
        let all = changed(&own, &changes);
        assert_eq!(all, [c"AB=3".to_owned(), c"A=4".to_owned(), c"C=5".to_owned()]);
    }
}
