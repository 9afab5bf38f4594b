//! Questions of other hosts that this one performs, or says why not.
//!
//! A question may come twice (a network repeats it), too late, or from a client that is none of
//! hob's: what it says of itself is checked before it is given, and the reply's address tells doubles
//! apart.

use std::collections::{HashSet, VecDeque};

use hob_wire::message::Reason;

use super::{HOPS_MAX, QUESTIONS_MAX, Question, WITHIN_US};
use crate::ids::Time;

/// Addresses that are remembered after their questions have ended, so that a double is known.
const REMEMBERED_MAX: usize = 8192;

/// What is done with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Perform it, until then.
    Give {
        /// When its asker no longer waits.
        deadline: Time,
    },
    /// Answer that it was not given.
    Refuse {
        /// Why.
        reason: Reason,
        /// The same, for a person.
        text: String,
    },
    /// Say nothing: it was here already, or nobody waits for a reply.
    Ignore,
}

/// What is open, and what was lately.
#[derive(Debug, Default)]
pub struct Host {
    known: HashSet<String>,
    order: VecDeque<String>,
    open: HashSet<String>,
}

impl Host {
    /// What is done with a question. One that is to be given is open from now on.
    pub fn came(&mut self, now: Time, question: &Question) -> Verdict {
        let to = &question.reply_to;
        if to.is_empty() || self.known.contains(to) {
            return Verdict::Ignore;
        }
        let refuse = |reason, text: &str| Verdict::Refuse { reason, text: text.to_owned() };
        let within_us = match question.within.as_deref().map(str::parse::<i128>) {
            None => WITHIN_US,
            Some(Ok(us)) if us <= 0 => {
                return refuse(Reason::TimedOut, "its time had passed when it was sent");
            }
            Some(Ok(us)) => u64::try_from(us).unwrap_or(u64::MAX).min(WITHIN_US * 12),
            Some(Err(_)) => return refuse(Reason::Malformed, "Hob-Within: not a number"),
        };
        match question.hops.as_deref().map(str::parse::<u64>) {
            None => {}
            Some(Ok(hops)) if hops <= HOPS_MAX => {}
            Some(Ok(_)) => return refuse(Reason::Malformed, "it has come over too many hosts"),
            Some(Err(_)) => return refuse(Reason::Malformed, "Hob-Hops: not a number"),
        }
        if self.open.len() >= QUESTIONS_MAX {
            return refuse(Reason::Busy, "too many questions of other hosts are open");
        }
        if self.order.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(to.clone());
        self.order.push_back(to.clone());
        self.open.insert(to.clone());
        Verdict::Give { deadline: now.after_us(within_us) }
    }

    /// A question has its outcome.
    pub fn ended(&mut self, reply_to: &str) {
        self.open.remove(reply_to);
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
}
