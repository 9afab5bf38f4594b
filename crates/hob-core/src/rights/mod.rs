//! The life of rights: who may do what, as somebody else has said, and how long that is believed.
//!
//! ```text
//!   arrive ─┬─ kept: Yes, No                    answered ─▶ Yes | No | Failed, for each who waits
//!           ├─ asked already: Wait                  │
//!           ├─ Ask (one question a key)             └─ kept until so long after it was *sent*
//!           └─ Full
//! ```
//! Invariants (`tests/rights.rs` tries them in any order of events): no yes is acted on that
//! was asked for longer ago than [`KEEP_US_MAX`]; a hit lengthens nothing; there is one question a
//! key at one time; what was forgotten is not kept by an answer on its way; what failed is never a
//! yes and never kept; both tables are bounded. Time is that of the world: it counts while the
//! machine is suspended.

use std::collections::{BTreeMap, VecDeque};

/// Nothing is believed longer than this after it was asked for, in microseconds.
pub const KEEP_US_MAX: u64 = 5_000_000;
/// Answers that are kept; the oldest goes.
pub const KEYS_MAX: usize = 65_536;

/// Microseconds of a clock that never stops.
pub type Time = u64;
/// Who asks, as a digest of the credential: no secret is kept.
pub type Who = [u8; 32];

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// GET, HEAD, OPTIONS.
    Read,
    /// Anything else.
    Write,
}

impl Verb {
    /// Its word in questions and answers.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
        }
    }
}

/// What an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Who.
    pub who: Who,
    /// Does what.
    pub verb: Verb,
    /// With what: a project, or what else tells one question from another.
    pub what: Vec<u8>,
}

/// One entry of an answer that says all that somebody may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// `None`: all verbs.
    pub verb: Option<Verb>,
    /// `None`: everything.
    pub what: Option<Vec<u8>>,
}

impl Allowed {
    fn allows(&self, key: &Key) -> bool {
        self.verb.is_none_or(|verb| verb == key.verb)
            && self.what.as_ref().is_none_or(|what| *what == key.what)
    }
}

/// What was answered to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes to this question.
    Yes,
    /// No to it.
    No,
    /// All that this user may do.
    All(Vec<Allowed>),
    /// No answer, or none that makes sense.
    Failed,
}

/// How long answers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// A yes, from when it was asked for, in microseconds; at most [`KEEP_US_MAX`].
    pub keep_us: u64,
    /// A no.
    pub keep_no_us: u64,
    /// How many may wait for answers.
    pub waiting_max: usize,
}

/// What becomes of one who comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It is known: yes.
    Yes,
    /// It is known: no.
    No,
    /// Put this question, and wait for its answer.
    Ask(u64),
    /// Wait for the answer to this question, which was put.
    Wait(u64),
    /// Too many wait.
    Full,
}

/// What one who waited is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Yes.
    Yes,
    /// No.
    No,
    /// It cannot be known.
    Failed,
}

#[derive(Debug)]
struct Question {
    key: Key,
    sent: Time,
    waiting: usize,
    /// Whether others may wait for it, and its answer be kept.
    is_current: bool,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    is_yes: bool,
    until: Time,
}

#[derive(Debug, Clone)]
struct KeptAll {
    allowed: Vec<Allowed>,
    sent: Time,
}

/// The rights of one mount.
#[derive(Debug)]
pub struct Rights {
    terms: Terms,
    now: Time,
    next: u64,
    kept: BTreeMap<Key, Kept>,
    all: BTreeMap<Who, KeptAll>,
    /// In the order in which they were kept; an entry may be outdated.
    order: VecDeque<Entry>,
    questions: BTreeMap<u64, Question>,
    asking: BTreeMap<Key, u64>,
    waiting: usize,
}

#[derive(Debug)]
enum Entry {
    One(Key),
    All(Who),
}

impl Rights {
    /// Nothing is known.
    #[must_use]
    pub fn new(terms: Terms) -> Rights {
        let keep_us = terms.keep_us.min(KEEP_US_MAX);
        let terms = Terms { keep_us, keep_no_us: terms.keep_no_us.min(keep_us), ..terms };
        Rights {
            terms,
            now: 0,
            next: 0,
            kept: BTreeMap::new(),
            all: BTreeMap::new(),
            order: VecDeque::new(),
            questions: BTreeMap::new(),
            asking: BTreeMap::new(),
            waiting: 0,
        }
    }

    /// Somebody comes.
    pub fn arrive(&mut self, now: Time, key: &Key) -> Found {
        self.tick(now);
        if let Some(found) = self.known(key) {
            return if found { Found::Yes } else { Found::No };
        }
        if self.waiting >= self.terms.waiting_max {
            return Found::Full;
        }
        self.waiting += 1;
        if let Some(question) = self.asking.get(key)
            && let Some(asked) = self.questions.get_mut(question)
        {
            asked.waiting += 1;
            return Found::Wait(*question);
        }
        self.next += 1;
        let question = Question { key: key.clone(), sent: now, waiting: 1, is_current: true };
        self.questions.insert(self.next, question);
        self.asking.insert(key.clone(), self.next);
        Found::Ask(self.next)
    }

    /// A question was answered. What those are told who wait for it; `None`: nobody does.
    pub fn answered(&mut self, now: Time, question: u64, verdict: Verdict) -> Option<Told> {
        self.tick(now);
        let asked = self.end(question)?;
        let age = now.saturating_sub(asked.sent);
        let told = match &verdict {
            // What is so old is no longer true of the world.
            _ if age > KEEP_US_MAX => Told::Failed,
            Verdict::Yes => Told::Yes,
            Verdict::No => Told::No,
            Verdict::All(allowed) if allowed.iter().any(|each| each.allows(&asked.key)) => {
                Told::Yes
            }
            Verdict::All(_) => Told::No,
            Verdict::Failed => Told::Failed,
        };
        if asked.is_current && told != Told::Failed {
            self.keep(asked, verdict, told == Told::Yes);
        }
        Some(told)
    }

    /// One who waits for a question leaves. Whether it was the last: the question is over then.
    pub fn left(&mut self, question: u64) -> bool {
        let Some(asked) = self.questions.get_mut(&question) else { return false };
        asked.waiting -= 1;
        self.waiting -= 1;
        let is_last = asked.waiting == 0;
        if is_last {
            self.end(question);
        }
        is_last
    }

    /// Forgets what is known of one, or of all. An answer on its way is told to those who wait for
    /// it, and not kept; who comes from now on is asked for again.
    pub fn forget(&mut self, who: Option<&Who>) {
        let is_of = |key: &Who| who.is_none_or(|who| who == key);
        self.kept.retain(|key, _| !is_of(&key.who));
        self.all.retain(|key, _| !is_of(key));
        self.asking.retain(|key, _| !is_of(&key.who));
        for asked in self.questions.values_mut().filter(|asked| is_of(&asked.key.who)) {
            asked.is_current = false;
        }
    }

    /// How many answers are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len() + self.all.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn tick(&mut self, now: Time) {
        if now < self.now {
            // A clock that went back says nothing of ages.
            self.forget(None);
        }
        self.now = now;
    }

    fn known(&mut self, key: &Key) -> Option<bool> {
        let (now, terms) = (self.now, self.terms);
        if let Some(all) = self.all.get(&key.who) {
            let age = now.saturating_sub(all.sent);
            let is_yes = all.allowed.iter().any(|each| each.allows(key));
            if age < if is_yes { terms.keep_us } else { terms.keep_no_us } {
                return Some(is_yes);
            }
        }
        self.kept.get(key).filter(|kept| now < kept.until).map(|kept| kept.is_yes)
    }

    /// Ends a question; those who wait for it no longer do.
    fn end(&mut self, question: u64) -> Option<Question> {
        let asked = self.questions.remove(&question)?;
        self.waiting -= asked.waiting;
        if asked.is_current {
            self.asking.remove(&asked.key);
        }
        Some(asked)
    }

    fn keep(&mut self, asked: Question, verdict: Verdict, is_yes: bool) {
        let Question { key, sent, .. } = asked;
        if let Verdict::All(allowed) = verdict {
            self.order.push_back(Entry::All(key.who));
            self.all.insert(key.who, KeptAll { allowed, sent });
        } else {
            let keep_us = if is_yes { self.terms.keep_us } else { self.terms.keep_no_us };
            self.order.push_back(Entry::One(key.clone()));
            self.kept.insert(key, Kept { is_yes, until: sent.saturating_add(keep_us) });
        }
        self.make_room();
    }

    /// Takes out what is over, and the oldest where there is too much.
    fn make_room(&mut self) {
        while let Some(oldest) = self.order.front() {
            let is_over = match oldest {
                Entry::One(key) => self.kept.get(key).is_none_or(|kept| kept.until <= self.now),
                Entry::All(who) => self
                    .all
                    .get(who)
                    .is_none_or(|all| self.now.saturating_sub(all.sent) >= self.terms.keep_us),
            };
            if !is_over && self.order.len() <= KEYS_MAX {
                return;
            }
            match self.order.pop_front() {
                Some(Entry::One(key)) => drop(self.kept.remove(&key)),
                Some(Entry::All(who)) => drop(self.all.remove(&who)),
                None => return,
            }
        }
    }
}
