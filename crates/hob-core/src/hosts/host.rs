//! Questions of other hosts that this one performs, or says why not.
//!
//! ```text
//!   came ─▶ Give
//!        ├▶ Refuse, Ignore
//!        └▶ Take ── went ─▶ Give, Refuse
//!             └ no word comes: forgotten
//! ```
//! A question may come twice (a network repeats it), too late, or from a client that is none of
//! hob's: what it says of itself is checked before it is given, and the reply's address tells doubles
//! apart.
//!
//! The time that was left is counted from here: from the question's arrival, or, where it was taken,
//! from when that was said. The word to perform it was said after that, so such a question is never
//! given after its asker gave up, however long this host, the server or the network stood still. The
//! time that is passed in must go on while this machine sleeps.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use hob_wire::message::Reason;

use super::{Claim, GO_US, HOPS_MAX, QUESTIONS_MAX, Question, WITHIN_US};
use crate::ids::Time;

/// Addresses that are remembered after their questions have ended, so that a double is known.
const REMEMBERED_MAX: usize = 8192;

/// What is done with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Perform it.
    Give(Box<Given>),
    /// Say that it is taken, and wait for a word.
    Take {
        /// Where to say so.
        to: String,
        /// What the word names.
        ticket: u64,
    },
    /// Answer that it was not given.
    Refuse {
        /// Where to.
        to: String,
        /// Why.
        reason: Reason,
        /// The same, for a person.
        text: String,
    },
    /// Say nothing: it was here already, or nobody waits for a reply.
    Ignore,
}

/// A question that is to be performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// What is asked.
    pub question: Question,
    /// The time that is left for it, in µs.
    pub within_us: u64,
    /// The hosts that it has come over.
    pub hops: u64,
}

/// A question that waits for the word to perform it.
#[derive(Debug)]
struct Taken {
    question: Question,
    at: Time,
}

/// What is open, and what was lately.
#[derive(Debug, Default)]
pub struct Host {
    known: HashSet<String>,
    order: VecDeque<String>,
    open: HashSet<String>,
    taken: BTreeMap<u64, Taken>,
    /// When tickets are forgotten.
    due: BTreeSet<(Time, u64)>,
    taken_bytes: usize,
    last: u64,
    /// This host has stood still, and may not have seen all that had come meanwhile.
    is_behind: bool,
}

impl Host {
    /// What is done with a question to a program that is claimed, or is not. One that is to be given,
    /// or is taken, is open from now on.
    pub fn came(&mut self, now: Time, question: Question, is_claimed: bool) -> Verdict {
        let to = &question.reply_to;
        if to.is_empty() || self.known.contains(to) {
            return Verdict::Ignore;
        }
        let refuse =
            |reason, text: &str| Verdict::Refuse { to: to.clone(), reason, text: text.to_owned() };
        let within_us = match within(question.within.as_deref()) {
            Ok(within_us) => within_us,
            Err((reason, text)) => return refuse(reason, text),
        };
        match question.hops.as_deref().map(str::parse::<u64>) {
            None => {}
            Some(Ok(hops)) if hops <= HOPS_MAX => {}
            Some(Ok(_)) => return refuse(Reason::Malformed, "it has come over too many hosts"),
            Some(Err(_)) => return refuse(Reason::Malformed, "Hob-Hops: not a number"),
        }
        let is_taken = match question.claim {
            Claim::Unknown => false,
            Claim::Known => is_claimed,
            Claim::Needed => true,
        };
        // A double of one that is refused is not performed either.
        self.remember(&question.reply_to);
        let to = &question.reply_to;
        if self.is_behind && !is_taken {
            return refuse(Reason::Busy, "it came while this host stood still");
        }
        if self.open.len() >= QUESTIONS_MAX {
            return refuse(Reason::Busy, "too many questions of other hosts are open");
        }
        self.open.insert(to.clone());
        if is_taken { self.take(now, question) } else { give(question, within_us) }
    }

    /// This host has stood still. When what comes now was sent cannot be told: what is not claimed is
    /// not performed, until it has caught up.
    pub fn stood_still(&mut self) {
        self.is_behind = true;
    }

    /// All that came while this host stood still has been seen.
    pub fn caught_up(&mut self) {
        self.is_behind = false;
    }

    /// The word has come to perform what was taken, and where the reply goes from now on. What is not
    /// taken, or not any more, is not performed.
    pub fn went(
        &mut self,
        now: Time,
        ticket: u64,
        (reply_to, left): (Option<String>, Option<&str>),
    ) -> Verdict {
        if reply_to.as_ref().is_some_and(|to| self.known.contains(to)) {
            return Verdict::Ignore;
        }
        let Some(mut taken) = self.forget(ticket) else {
            let text = "it was taken, and is not any more".to_owned();
            let refuse = |to| Verdict::Refuse { to, reason: Reason::Busy, text };
            return reply_to.map_or(Verdict::Ignore, refuse);
        };
        if let Some(to) = reply_to {
            self.open.remove(&taken.question.reply_to);
            self.remember(&to);
            self.open.insert(to.clone());
            taken.question.reply_to = to;
        }
        let to = taken.question.reply_to.clone();
        let spent_us = now.us_since(taken.at);
        let left = within(left).and_then(|left_us| match left_us.saturating_sub(spent_us) {
            0 => Err((Reason::TimedOut, "its time passed before it could be performed")),
            left_us => Ok(left_us),
        });
        match left {
            Ok(within_us) => give(taken.question, within_us),
            Err((reason, text)) => {
                self.ended(&to);
                Verdict::Refuse { to, reason, text: text.to_owned() }
            }
        }
    }

    /// Forgets the taken ones for which no word has come.
    pub fn tick(&mut self, now: Time) {
        while let Some((_, ticket)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            if let Some(taken) = self.forget(ticket) {
                self.ended(&taken.question.reply_to);
            }
        }
    }

    /// When the next one is forgotten.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A question has its outcome.
    pub fn ended(&mut self, reply_to: &str) {
        self.open.remove(reply_to);
    }

    /// The payloads of those that wait for a word, in bytes.
    #[must_use]
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes
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

    /// A double of what comes by this address is known from now on.
    fn remember(&mut self, to: &str) {
        if self.order.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(to.to_owned());
        self.order.push_back(to.to_owned());
    }

    fn take(&mut self, now: Time, question: Question) -> Verdict {
        self.last += 1;
        let (ticket, to) = (self.last, question.reply_to.clone());
        self.taken_bytes += question.payload.len();
        self.due.insert((now.after_us(GO_US), ticket));
        self.taken.insert(ticket, Taken { question, at: now });
        Verdict::Take { to, ticket }
    }

    fn forget(&mut self, ticket: u64) -> Option<Taken> {
        let taken = self.taken.remove(&ticket)?;
        self.taken_bytes -= taken.question.payload.len();
        self.due.remove(&(taken.at.after_us(GO_US), ticket));
        Some(taken)
    }
}

fn give(question: Question, within_us: u64) -> Verdict {
    // It was looked at when it came.
    let hops = question.hops.as_deref().and_then(|text| text.parse().ok()).unwrap_or(1);
    Verdict::Give(Box::new(Given { question, within_us, hops }))
}

/// The time that is left, in µs, as it is written.
fn within(text: Option<&str>) -> Result<u64, (Reason, &'static str)> {
    match text.map(str::parse::<i128>) {
        None => Ok(WITHIN_US),
        Some(Ok(us)) if us <= 0 => Err((Reason::TimedOut, "its time had passed when it was sent")),
        Some(Ok(us)) => Ok(u64::try_from(us).unwrap_or(u64::MAX).min(WITHIN_US * 12)),
        Some(Err(_)) => Err((Reason::Malformed, "Hob-Within: not a number")),
    }
}
