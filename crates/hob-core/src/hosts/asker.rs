//! Asks of this host that another performs.
//!
//! ```text
//!   Ask ─▶ waits for the first connection ─▶ plain ─────────────▶ Replied, TimedOut, Lost, TakenBack
//!              │                     ▲ ▲      └ taken, so go ─▶ went ──┘
//!              │      nobody claims ─┘ └─ known: nobody claims   ▲
//!              ├───────────────────────▶ claim ── taken, so go ──┘
//!              │                           └ not taken: claim of all ─▶ NotGiven
//!              └─ NotGiven (no connection, too many, too large)
//! ```
//! What is claimed is performed after `go` only. Until that is said an ask may be given up, or to
//! another host, and also afterwards where the server says that nobody has heard it. `go` begins an
//! attempt of its own: its reply comes from the one host that it was said to. A reply to an ask that has ended, or to an attempt that is over, is
//! late, or a double, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::reply::{Reply, was_not_given};
use super::{ASKS_MAX, Attempt, CLAIM_TRIES, CLAIM_US, HEADERS_BYTES, WITHIN_US, Way};
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
        /// The program's name.
        program: String,
        /// The bytes of its payload, key and names.
        bytes: usize,
        /// When its sender no longer waits.
        deadline: Option<Time>,
        /// The last attempt that was made of it elsewhere: what is said late to that one, or to those
        /// before, is not taken for a word to a new one. 0: none was.
        after: u32,
    },
    /// A reply has come.
    Replied {
        /// The ask.
        attempt: Attempt,
        /// What was said.
        reply: Reply,
    },
    /// A host has taken it, and performs it after a word.
    Taken {
        /// The ask.
        attempt: Attempt,
        /// Where that word goes.
        to: String,
    },
    /// It could not be sent.
    NotSent {
        /// The ask.
        attempt: Attempt,
        /// A line for a person.
        why: String,
    },
    /// Its sender took it back, or left.
    TakenBack {
        /// The ask.
        call: CallId,
    },
    /// The server lets this host ask no host to take a program's messages.
    Forbidden {
        /// The program's name, as it is asked.
        program: String,
        /// A line for a person.
        why: String,
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
        attempt: Attempt,
        /// To whom.
        way: Way,
        /// The time that is left for it, in µs.
        within_us: u64,
    },
    /// Say that it is to be performed.
    Go {
        /// The ask; its replies name this attempt from now on.
        attempt: Attempt,
        /// Where to.
        to: String,
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
    /// No host has performed it.
    NotGiven(NotGiven),
    /// Its sender has left. It may have been performed.
    TakenBack,
}

/// Why no host has performed an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotGiven {
    /// There is no connection.
    NoConnection(String),
    /// Its time passed before there was one, or before a host had taken it.
    TimedOut,
    /// Its program's hosts do not take it.
    NotTaken,
    /// The server does not let it through.
    Forbidden(String),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has not left this host.
    Waits,
    /// It is asked, and performed at once unless it is taken.
    Plain,
    /// It is asked, and performed by nobody before a word.
    Claim,
    /// That word is said.
    Went,
}

#[derive(Debug)]
struct Open {
    program: String,
    /// When it ends by itself.
    until: Time,
    /// Whether that is its sender's own time.
    is_own: bool,
    stage: Stage,
    /// Which attempt counts.
    number: u32,
    /// How often it was published.
    tries: u32,
    /// When something is to be done about it: its end, or the next attempt.
    due: Time,
    bytes: usize,
    /// What a host has said instead of taking it, where all are asked.
    refused: Option<Reply>,
}

impl Open {
    /// Whether a host may have performed it.
    fn is_given(&self) -> bool {
        matches!(self.stage, Stage::Plain | Stage::Went)
    }
}

/// The asks that are open.
#[derive(Debug)]
pub struct Asker {
    link: Link,
    open: BTreeMap<CallId, Open>,
    due: BTreeSet<(Time, CallId)>,
    /// Whether a program's hosts take before they perform, as far as that is known.
    claimed: BTreeMap<String, bool>,
}

impl Default for Asker {
    fn default() -> Asker {
        Asker {
            link: Link::Coming,
            open: BTreeMap::new(),
            due: BTreeSet::new(),
            claimed: BTreeMap::new(),
        }
    }
}

impl Asker {
    /// Takes in what has happened; what is to be done is appended.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Up { bytes_max } => {
                self.link = Link::Up(bytes_max);
                let waiting = self.open.iter().filter(|(_, open)| open.stage == Stage::Waits);
                let waiting: Vec<CallId> = waiting.map(|(call, _)| *call).collect();
                for call in waiting {
                    self.leave(now, call, bytes_max, out);
                }
            }
            Event::Down { why } => {
                self.end_all(&why, out);
                self.link = Link::Down(why);
            }
            Event::Ask { call, program, bytes, deadline, after } => {
                self.ask(now, (call, program, bytes), (deadline, after), out);
            }
            Event::Replied { attempt, reply } => self.replied(now, attempt, reply, out),
            Event::Taken { attempt, to } => self.taken(now, attempt, to, out),
            Event::NotSent { attempt, why } => {
                if self.open.get(&attempt.call).is_some_and(|open| open.number == attempt.number) {
                    let ended = Ended::NotGiven(NotGiven::NoConnection(why));
                    self.end(attempt.call, ended, out);
                }
            }
            Event::TakenBack { call } => self.end(call, Ended::TakenBack, out),
            Event::Forbidden { program, why } => {
                // What is asked in this way is performed by nobody before a word, which is not said
                // any more: whichever of them the server meant, this is so of each.
                let is_meant = |open: &Open| open.stage == Stage::Claim && open.program == program;
                let meant = self.open.iter().filter(|(_, open)| is_meant(open));
                let meant: Vec<CallId> = meant.map(|(call, _)| *call).collect();
                for call in meant {
                    self.end(call, Ended::NotGiven(NotGiven::Forbidden(why.clone())), out);
                }
            }
            Event::Tick => {
                while let Some((_, call)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
                    self.is_due(now, call, out);
                }
            }
            Event::Stop => self.end_all("hob stops", out),
        }
    }

    /// When time alone changes something.
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
        (call, program, bytes): (CallId, String, usize),
        (deadline, after): (Option<Time>, u32),
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
        let open = Open {
            program,
            until,
            is_own: deadline.is_some(),
            stage: Stage::Waits,
            number: after,
            tries: 0,
            due: until,
            bytes,
            refused: None,
        };
        self.open.insert(call, open);
        if let Link::Up(bytes_max) = self.link {
            self.leave(now, call, bytes_max, out);
        }
    }

    /// Sends one that may go.
    fn leave(&mut self, now: Time, call: CallId, max: usize, out: &mut Vec<Effect>) {
        let Some(open) = self.open.get(&call) else { return };
        if open.bytes.saturating_add(HEADERS_BYTES) > max {
            return self.end(call, Ended::NotGiven(NotGiven::TooLarge { max }), out);
        }
        // Where nothing is known, a claim is the question that harms nobody.
        let way = match self.claimed.get(&open.program) {
            Some(false) => Way::Plain,
            Some(true) | None => Way::Claim,
        };
        self.publish(now, call, way, out);
    }

    fn publish(&mut self, now: Time, call: CallId, way: Way, out: &mut Vec<Effect>) {
        let Some(open) = self.open.get_mut(&call) else { return };
        if open.until <= now {
            return self.end_of_time(call, out);
        }
        open.number += 1;
        open.tries += 1;
        let (stage, due) = match way {
            Way::Plain => (Stage::Plain, open.until),
            Way::Claim | Way::ClaimOfAll => (Stage::Claim, open.until.min(now.after_us(CLAIM_US))),
        };
        open.stage = stage;
        self.due.remove(&(open.due, call));
        open.due = due;
        self.due.insert((due, call));
        let attempt = Attempt { call, number: open.number };
        out.push(Effect::Publish { attempt, way, within_us: open.until.us_since(now).max(1) });
    }

    fn replied(&mut self, now: Time, attempt: Attempt, reply: Reply, out: &mut Vec<Effect>) {
        let call = attempt.call;
        let Some(open) = self.open.get_mut(&call) else { return };
        if open.number != attempt.number || open.stage == Stage::Waits {
            return;
        }
        match (open.stage, &reply) {
            (Stage::Claim, Reply::NoResponders) => {
                let program = open.program.clone();
                self.learn(program, false);
                self.publish(now, call, Way::Plain, out);
            }
            // All are asked: another one may take it still.
            (Stage::Claim, Reply::Failure { reason, .. })
                if open.tries > 1 && was_not_given(*reason) =>
            {
                open.refused = Some(reply);
            }
            // The host that had taken it has left, and nobody has heard the word.
            (Stage::Went, Reply::NoResponders) => self.again(now, call, out),
            _ => self.end(call, Ended::Replied(reply), out),
        }
    }

    fn taken(&mut self, now: Time, attempt: Attempt, to: String, out: &mut Vec<Effect>) {
        let call = attempt.call;
        let Some(open) = self.open.get_mut(&call) else { return };
        if open.number != attempt.number || !matches!(open.stage, Stage::Plain | Stage::Claim) {
            return;
        }
        if open.until <= now {
            return self.end_of_time(call, out);
        }
        // What others say to the attempt, which all of them had, is not this host's word.
        open.number += 1;
        open.stage = Stage::Went;
        self.due.remove(&(open.due, call));
        open.due = open.until;
        self.due.insert((open.due, call));
        let (within_us, program) = (open.until.us_since(now).max(1), open.program.clone());
        let attempt = Attempt { call, number: open.number };
        self.learn(program, true);
        out.push(Effect::Go { attempt, to, within_us });
    }

    fn learn(&mut self, program: String, is_claimed: bool) {
        if self.claimed.len() >= ASKS_MAX && !self.claimed.contains_key(&program) {
            self.claimed.pop_first();
        }
        self.claimed.insert(program, is_claimed);
    }

    fn is_due(&mut self, now: Time, call: CallId, out: &mut Vec<Effect>) {
        let Some(open) = self.open.get_mut(&call) else { return };
        if open.until <= now {
            return self.end_of_time(call, out);
        }
        // A claim that nobody has taken in time: whoever takes it now gets no word any more.
        if let Some(refused) = open.refused.take() {
            return self.end(call, Ended::Replied(refused), out);
        }
        self.again(now, call, out);
    }

    /// Asks all hosts to take it, where that was not tried too often.
    fn again(&mut self, now: Time, call: CallId, out: &mut Vec<Effect>) {
        match self.open.get(&call) {
            Some(open) if open.tries >= CLAIM_TRIES => {
                self.end(call, Ended::NotGiven(NotGiven::NotTaken), out);
            }
            _ => self.publish(now, call, Way::ClaimOfAll, out),
        }
    }

    fn end_of_time(&mut self, call: CallId, out: &mut Vec<Effect>) {
        let Some(open) = self.open.get(&call) else { return };
        let ended = match (open.is_given(), open.is_own) {
            (false, _) => Ended::NotGiven(NotGiven::TimedOut),
            (true, true) => Ended::TimedOut,
            (true, false) => {
                Ended::Lost(format!("no host has answered within {} s", WITHIN_US / 1_000_000))
            }
        };
        self.end(call, ended, out);
    }

    /// Nothing more is heard of any.
    fn end_all(&mut self, why: &str, out: &mut Vec<Effect>) {
        let open: Vec<(CallId, bool)> =
            self.open.iter().map(|(call, open)| (*call, open.is_given())).collect();
        for (call, is_given) in open {
            let ended = if is_given {
                Ended::Lost(why.to_owned())
            } else {
                Ended::NotGiven(NotGiven::NoConnection(why.to_owned()))
            };
            self.end(call, ended, out);
        }
    }

    fn end(&mut self, call: CallId, ended: Ended, out: &mut Vec<Effect>) {
        let Some(open) = self.open.remove(&call) else { return };
        self.due.remove(&(open.due, call));
        out.push(Effect::End { call, ended });
    }
}
