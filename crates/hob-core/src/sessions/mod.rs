//! Sessions: processes that keep what they evaluate until they are closed, idle or too large.
//!
//! Owns: which sessions there are, who is in them, and when one ends ([`Sessions`]); and in
//! [`dialogue`] which messages of a client's hob answers by itself.
//!
//! Invariants: a session is never ended silently: each client in it is told why; one that a client
//! is in, or that evaluates, is never idle; there are at most [`Limits::most`].
//!
//! Deliberately not here: how a session is started, and what is evaluated in it.

pub mod dialogue;

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::Time;

/// A session. Numbers are never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A client's connection to a session. Numbers are never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// The bounds of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at one time.
    pub most: usize,
    /// How long a session without clients is kept, in microseconds.
    pub idle_us: u64,
    /// The memory of one session (PSS), in KiB.
    pub memory_kib: u64,
    /// How long a session may take to become ready, in microseconds.
    pub start_us: u64,
    /// How long it may take to end before it is killed, in microseconds.
    pub grace_us: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            most: 16,
            idle_us: 30 * 60 * 1_000_000,
            memory_kib: 2 * 1024 * 1024,
            start_us: 120 * 1_000_000,
            grace_us: 2 * 1_000_000,
        }
    }
}

/// Why a client is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such session, and none is to be started.
    NoSession,
    /// The session of this name has other libraries.
    OtherLibraries,
    /// It is ending.
    Ending,
    /// There are [`Limits::most`].
    TooMany,
    /// The daemon stops.
    Stopping,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nothing was in it for [`Limits::idle_us`].
    Idle,
    /// It took more than [`Limits::memory_kib`].
    Memory,
    /// `hob session kill`.
    Killed,
    /// The daemon stopped.
    Stopped,
    /// It was not ready within [`Limits::start_us`].
    NotReady,
    /// Its process ended by itself.
    Left,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A client wants to be in a session.
    Wanted {
        /// Who.
        client: ClientId,
        /// The session's name.
        name: &'a str,
        /// What tells its libraries from others; `None`: whichever it has.
        libraries: Option<u64>,
        /// Whether it is started where there is none.
        start: bool,
    },
    /// The process takes connections.
    Ready(SessionId),
    /// A client began something in its session.
    Began(SessionId),
    /// What was begun has ended.
    Ended(SessionId),
    /// A client has left.
    Left(ClientId),
    /// Memory was read.
    Memory(SessionId, u64),
    /// A session of this name is to end; `None`: each.
    Kill(Option<&'a str>),
    /// Each is to end, and none begins.
    Stop,
    /// The process has ended, or could not be started.
    Gone(SessionId),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start a process; its client's words say how.
    Start(SessionId, ClientId),
    /// Let a client in; whether the session is new to all.
    Join(ClientId, SessionId, bool),
    /// Do not.
    Refuse(ClientId, Refusal),
    /// Ask the process to end.
    Terminate(SessionId, Why),
    /// End it.
    Kill(SessionId),
    /// Tell a client that its session is over.
    Tell(ClientId, Why),
}

#[derive(Debug)]
struct Session {
    name: String,
    libraries: Option<u64>,
    since: Time,
    state: State,
    /// Those in it, and for whom it was started.
    clients: BTreeSet<ClientId>,
    first: ClientId,
    open: u64,
    evals: u64,
    used: Time,
    kib: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Ending { why: Why, kill_at: Option<Time> },
}

/// A session as `hob session list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<'a> {
    /// Its number.
    pub id: SessionId,
    /// Its name.
    pub name: &'a str,
    /// `starting`, `idle`, `busy` or `ending`.
    pub state: &'static str,
    /// Clients that are in it.
    pub clients: usize,
    /// What was evaluated in it.
    pub evals: u64,
    /// Its memory (PSS) in KiB, when that was read last; 0: never.
    pub kib: u64,
    /// When it was started.
    pub since: Time,
    /// When it was used last.
    pub used: Time,
}

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    limits: Limits,
    all: BTreeMap<SessionId, Session>,
    next: u64,
    stopping: bool,
}

impl Sessions {
    /// None, with these bounds.
    #[must_use]
    pub fn new(limits: Limits) -> Sessions {
        Sessions { limits, all: BTreeMap::new(), next: 1, stopping: false }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Each session.
    pub fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.all.iter().map(|(id, session)| View {
            id: *id,
            name: &session.name,
            state: match session.state {
                State::Starting => "starting",
                State::Ready if session.open > 0 => "busy",
                State::Ready => "idle",
                State::Ending { .. } => "ending",
            },
            clients: session.clients.len(),
            evals: session.evals,
            kib: session.kib,
            since: session.since,
            used: session.used,
        })
    }

    /// When the next thing is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.all.values().filter_map(|session| self.due(session)).min()
    }

    fn due(&self, session: &Session) -> Option<Time> {
        match session.state {
            State::Starting => Some(session.since.after_us(self.limits.start_us)),
            State::Ready if session.is_unused() => Some(session.used.after_us(self.limits.idle_us)),
            State::Ready => None,
            State::Ending { kill_at, .. } => kill_at,
        }
    }

    /// Takes what happened, and says what is to be done.
    pub fn handle(&mut self, now: Time, event: Event<'_>, effects: &mut Vec<Effect>) {
        match event {
            Event::Wanted { client, name, libraries, start } => {
                self.wanted(now, (client, name, libraries, start), effects);
            }
            Event::Ready(id) => {
                let Some(session) = self.all.get_mut(&id) else { return };
                if session.state == State::Starting {
                    (session.state, session.used) = (State::Ready, now);
                    let first = session.first;
                    let joins = session.clients.iter();
                    effects.extend(joins.map(|client| Effect::Join(*client, id, *client == first)));
                }
            }
            Event::Began(id) => self.with(id, |session| {
                (session.open, session.evals, session.used) =
                    (session.open + 1, session.evals + 1, now);
            }),
            Event::Ended(id) => self.with(id, |session| {
                (session.open, session.used) = (session.open.saturating_sub(1), now);
            }),
            Event::Left(client) => {
                for session in self.all.values_mut() {
                    if session.clients.remove(&client) {
                        session.used = now;
                    }
                }
            }
            Event::Memory(id, kib) => {
                self.with(id, |session| session.kib = kib);
                if kib > self.limits.memory_kib {
                    self.end(now, id, Why::Memory, effects);
                }
            }
            Event::Kill(name) => {
                let named = |session: &Session| name.is_none_or(|name| session.name == name);
                self.end_all(now, Why::Killed, named, effects);
            }
            Event::Stop => {
                self.stopping = true;
                self.end_all(now, Why::Stopped, |_| true, effects);
            }
            Event::Gone(id) => {
                let Some(session) = self.all.remove(&id) else { return };
                let why = match session.state {
                    State::Ending { why, .. } => why,
                    State::Starting | State::Ready => Why::Left,
                };
                effects.extend(session.clients.iter().map(|client| Effect::Tell(*client, why)));
            }
            Event::Tick => self.tick(now, effects),
        }
    }

    fn with(&mut self, id: SessionId, change: impl FnOnce(&mut Session)) {
        if let Some(session) = self.all.get_mut(&id) {
            change(session);
        }
    }

    fn wanted(
        &mut self,
        now: Time,
        (client, name, libraries, start): (ClientId, &str, Option<u64>, bool),
        effects: &mut Vec<Effect>,
    ) {
        if self.stopping {
            return effects.push(Effect::Refuse(client, Refusal::Stopping));
        }
        if let Some((id, session)) = self.all.iter_mut().find(|(_, known)| known.name == name) {
            let other = libraries.is_some() && libraries != session.libraries;
            match session.state {
                State::Ending { .. } => effects.push(Effect::Refuse(client, Refusal::Ending)),
                _ if other => effects.push(Effect::Refuse(client, Refusal::OtherLibraries)),
                State::Starting => _ = session.clients.insert(client),
                State::Ready => {
                    session.clients.insert(client);
                    effects.push(Effect::Join(client, *id, false));
                }
            }
            return;
        }
        if !start {
            return effects.push(Effect::Refuse(client, Refusal::NoSession));
        }
        if self.all.len() >= self.limits.most {
            return effects.push(Effect::Refuse(client, Refusal::TooMany));
        }
        let id = SessionId(self.next);
        self.next += 1;
        let session = Session {
            name: name.to_owned(),
            libraries,
            since: now,
            state: State::Starting,
            clients: BTreeSet::from([client]),
            first: client,
            open: 0,
            evals: 0,
            used: now,
            kib: 0,
        };
        self.all.insert(id, session);
        effects.push(Effect::Start(id, client));
    }

    fn end_all(
        &mut self,
        now: Time,
        why: Why,
        which: impl Fn(&Session) -> bool,
        effects: &mut Vec<Effect>,
    ) {
        let ids = self.all.iter().filter(|(_, session)| which(session)).map(|(id, _)| *id);
        for id in ids.collect::<Vec<_>>() {
            self.end(now, id, why, effects);
        }
    }

    fn end(&mut self, now: Time, id: SessionId, why: Why, effects: &mut Vec<Effect>) {
        let grace_us = self.limits.grace_us;
        self.with(id, |session| {
            if !matches!(session.state, State::Ending { .. }) {
                session.state = State::Ending { why, kill_at: Some(now.after_us(grace_us)) };
                effects.push(Effect::Terminate(id, why));
            }
        });
    }

    fn tick(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let due =
            self.all.iter().filter(|(_, session)| self.due(session).is_some_and(|at| at <= now));
        let due: Vec<_> = due.map(|(id, session)| (*id, session.state)).collect();
        for (id, state) in due {
            match state {
                State::Starting => self.end(now, id, Why::NotReady, effects),
                State::Ready => self.end(now, id, Why::Idle, effects),
                State::Ending { why, .. } => {
                    self.with(id, |session| session.state = State::Ending { why, kill_at: None });
                    effects.push(Effect::Kill(id));
                }
            }
        }
    }
}

impl Session {
    fn is_unused(&self) -> bool {
        self.clients.is_empty() && self.open == 0
    }
}
