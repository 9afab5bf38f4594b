//! Asks of this host that another performs.
//!
//! ```text
//!   Ask ─▶ waits for the first connection ─▶ sent ─▶ Replied, TimedOut, Lost, TakenBack
//!              └─ NotGiven (no connection, too many, too large)
//! ```
//! A reply to an ask that has ended is late, or a double, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::reply::Reply;
use super::{ASKS_MAX, HEADERS_BYTES, WITHIN_US};
use crate::ids::{CallId, Time};

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// There is a connection.
    Up {
        /// The most bytes that its server lets pass.
        bytes_max: usize,
    },
    /// There is none.
    Down {
        /// A line for a person.
        why: String,
    },
    /// Something is asked.
    Ask {
        /// Its number.
        call: CallId,
        /// The bytes of its payload, key and names.
        bytes: usize,
        /// When its sender no longer waits.
        deadline: Option<Time>,
    },
    /// A reply has come.
    Replied {
        /// The ask.
        call: CallId,
        /// What was said.
        reply: Reply,
    },
    /// It could not be sent.
    NotSent {
        /// The ask.
        call: CallId,
        /// A line for a person.
        why: String,
    },
    /// Its sender took it back, or left.
    TakenBack {
        /// The ask.
        call: CallId,
    },
    /// Time has passed.
    Tick,
    /// This host stops: nothing is waited for any more.
    Stop,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send it.
    Publish {
        /// The ask.
        call: CallId,
        /// The time that is left for it, in µs.
        within_us: u64,
    },
    /// It has its one outcome.
    End {
        /// The ask.
        call: CallId,
        /// What became of it.
        ended: Ended,
    },
}

/// What became of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// A host has said something, or the server that there is none.
    Replied(Reply),
    /// Its sender's time has passed. It may have been performed.
    TimedOut,
    /// Nothing more will be heard of it. It may have been performed.
    Lost(String),
    /// It left this host never.
    NotGiven(NotGiven),
    /// Its sender has left. It may have been performed.
    TakenBack,
}

/// Why an ask did not leave this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotGiven {
    /// There is no connection.
    NoConnection(String),
    /// Its time passed before there was one.
    TimedOut,
    /// Too many are open.
    Busy,
    /// It has more bytes than the server lets pass.
    TooLarge {
        /// How many that are.
        max: usize,
    },
}

#[derive(Debug)]
enum Link {
    /// It was not tried yet.
    Coming,
    Up(usize),
    Down(String),
}

#[derive(Debug)]
struct Open {
    /// When it ends by itself.
    until: Time,
    /// Whether that is its sender's own time.
    is_own: bool,
    is_sent: bool,
    bytes: usize,
}

/// The asks that are open.
#[derive(Debug)]
pub struct Asker {
    link: Link,
    open: BTreeMap<CallId, Open>,
    due: BTreeSet<(Time, CallId)>,
}

impl Default for Asker {
    fn default() -> Asker {
        Asker { link: Link::Coming, open: BTreeMap::new(), due: BTreeSet::new() }
    }
}

impl Asker {
    /// Takes in what has happened; what is to be done is appended.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Up { bytes_max } => {
                self.link = Link::Up(bytes_max);
                let waiting = self.open.iter().filter(|(_, open)| !open.is_sent);
                let waiting: Vec<CallId> = waiting.map(|(call, _)| *call).collect();
                for call in waiting {
                    self.leave(now, call, bytes_max, out);
                }
            }
            Event::Down { why } => {
                let open: Vec<(CallId, bool)> =
                    self.open.iter().map(|(call, open)| (*call, open.is_sent)).collect();
                for (call, is_sent) in open {
                    let ended = if is_sent {
                        Ended::Lost(why.clone())
                    } else {
                        Ended::NotGiven(NotGiven::NoConnection(why.clone()))
                    };
                    self.end(call, ended, out);
                }
                self.link = Link::Down(why);
            }
            Event::Ask { call, bytes, deadline } => self.ask(now, (call, bytes), deadline, out),
            Event::Replied { call, reply } => {
                if self.open.get(&call).is_some_and(|open| open.is_sent) {
                    self.end(call, Ended::Replied(reply), out);
                }
            }
            Event::NotSent { call, why } => {
                self.end(call, Ended::NotGiven(NotGiven::NoConnection(why)), out);
            }
            Event::TakenBack { call } => self.end(call, Ended::TakenBack, out),
            Event::Tick => {
                while let Some((at, call)) = self.due.first().copied().filter(|(at, _)| *at <= now)
                {
                    debug_assert!(at <= now);
                    self.end_of_time(call, out);
                }
            }
            Event::Stop => {
                let open: Vec<CallId> = self.open.keys().copied().collect();
                for call in open {
                    self.end(call, Ended::Lost("hob stops".to_owned()), out);
                }
            }
        }
    }

    /// When time alone ends the next one.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Whether this ask is open.
    #[must_use]
    pub fn has(&self, call: CallId) -> bool {
        self.open.contains_key(&call)
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn ask(
        &mut self,
        now: Time,
        (call, bytes): (CallId, usize),
        deadline: Option<Time>,
        out: &mut Vec<Effect>,
    ) {
        let not = |reason| Effect::End { call, ended: Ended::NotGiven(reason) };
        if deadline.is_some_and(|at| at <= now) {
            return out.push(not(NotGiven::TimedOut));
        }
        if self.open.len() >= ASKS_MAX {
            return out.push(not(NotGiven::Busy));
        }
        if let Link::Down(why) = &self.link {
            return out.push(not(NotGiven::NoConnection(why.clone())));
        }
        let until = deadline.unwrap_or(now.after_us(WITHIN_US));
        self.due.insert((until, call));
        let open = Open { until, is_own: deadline.is_some(), is_sent: false, bytes };
        self.open.insert(call, open);
        if let Link::Up(bytes_max) = self.link {
            self.leave(now, call, bytes_max, out);
        }
    }

    /// Sends one that may go.
    fn leave(&mut self, now: Time, call: CallId, max: usize, out: &mut Vec<Effect>) {
        let Some(open) = self.open.get_mut(&call) else { return };
        if open.until <= now {
            return self.end_of_time(call, out);
        }
        if open.bytes.saturating_add(HEADERS_BYTES) > max {
            return self.end(call, Ended::NotGiven(NotGiven::TooLarge { max }), out);
        }
        open.is_sent = true;
        out.push(Effect::Publish { call, within_us: open.until.us_since(now).max(1) });
    }

    fn end_of_time(&mut self, call: CallId, out: &mut Vec<Effect>) {
        let Some(open) = self.open.get(&call) else { return };
        let ended = match (open.is_sent, open.is_own) {
            (false, _) => Ended::NotGiven(NotGiven::TimedOut),
            (true, true) => Ended::TimedOut,
            (true, false) => {
                Ended::Lost(format!("no host has answered within {} s", WITHIN_US / 1_000_000))
            }
        };
        self.end(call, ended, out);
    }

    fn end(&mut self, call: CallId, ended: Ended, out: &mut Vec<Effect>) {
        let Some(open) = self.open.remove(&call) else { return };
        self.due.remove(&(open.until, call));
        out.push(Effect::End { call, ended });
    }
}
