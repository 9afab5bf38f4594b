//! A client's messages to its session, and the session's to the client: which pass, and which hob
//! answers or adds to.
//!
//! ```text
//!   client ── clone, describe ───▶ passed on; the answer is read, and added to
//!          ── close, ls-sessions ▶ answered at once; a close is passed on, its answer dropped
//!          ── interrupt ─────────▶ passed on, with a time until which it must have helped
//!          ── anything else ─────▶ passed on as the bytes that came
//! ```
//! Invariants: what hob does not own passes unchanged, in its order; each message with an id that is
//! passed on has its `done` once, from the session or, after an interrupt that did not help, from
//! hob.

use std::collections::{BTreeMap, BTreeSet};

use hob_wire::bencode::{Fault, Item, Message, message};

use crate::ids::Time;

/// How long an interrupt may take to help, in microseconds.
pub const INTERRUPT_US: u64 = 5_000_000;
/// What a client may have begun that has not ended.
pub const OPEN_MAX: usize = 4096;
/// What hob's own ids begin with.
const OURS: &[u8] = b"hob/";

/// The dialogues that clients have opened in one session by `clone`, and the one that is shared.
#[derive(Debug, Default)]
pub struct Cloned {
    ids: BTreeSet<Vec<u8>>,
    shared: Option<Vec<u8>>,
}

/// What is to be done with bytes, or was learned of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Send to the session.
    ToSession(Vec<u8>),
    /// Send to the client.
    ToClient(Vec<u8>),
    /// Something was begun that evaluates.
    Began,
    /// It has ended.
    Ended(Done),
    /// Send this to the client, and end the connection.
    Refuse(Vec<u8>),
}

/// An eval that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// When it came.
    pub began: Time,
    /// Whether it threw nothing.
    pub ok: bool,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Whether hob knows of no end: an interrupt did not help, or its session ended.
    pub lost: bool,
}

#[derive(Debug)]
struct Open {
    /// Whether it evaluates.
    evaluates: bool,
    clones: bool,
    describes: bool,
    session: Vec<u8>,
    began: Time,
    failed: bool,
    interrupted: bool,
}

#[derive(Debug)]
struct Interrupt {
    session: Vec<u8>,
    target: Vec<u8>,
    due: Time,
}

/// One client's dialogue.
#[derive(Debug)]
pub struct Dialogue {
    /// Whether `clone` gives the shared one.
    shared: bool,
    /// What the first message must have; `None`: nothing any more.
    token: Option<Vec<u8>>,
    open: BTreeMap<Vec<u8>, Open>,
    interrupts: Vec<Interrupt>,
    /// Ids whose `done` hob has told by itself.
    told: BTreeSet<Vec<u8>>,
    next: u64,
}

impl Dialogue {
    /// A client that has said nothing. An empty token is none.
    #[must_use]
    pub fn new(shared: bool, token: &[u8]) -> Dialogue {
        Dialogue {
            shared,
            token: Some(token.to_vec()).filter(|token| !token.is_empty()),
            open: BTreeMap::new(),
            interrupts: Vec::new(),
            told: BTreeSet::new(),
            next: 0,
        }
    }

    /// When an interrupt must have helped.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.interrupts.iter().map(|interrupt| interrupt.due).min()
    }

    /// What the client has begun that evaluates and has not ended.
    #[must_use]
    pub fn evaluating(&self) -> usize {
        self.open.values().filter(|open| open.evaluates).count()
    }

    /// Takes a message of the client's.
    pub fn client(
        &mut self,
        now: Time,
        bytes: Vec<u8>,
        cloned: &mut Cloned,
        acts: &mut Vec<Act>,
    ) -> Result<(), Fault> {
        let read = Message::read(&bytes)?;
        if let Some(token) = &self.token {
            if !read.text("token").is_some_and(|given| is_same(given, token)) {
                let text = "the first message has another `token` than `hob session repl --token` named, \
                            or none";
                acts.push(Act::Refuse(refusal(&read, text)));
                return Ok(());
            }
            self.token = None;
        }
        let id = read.text("id").unwrap_or_default().to_vec();
        let session = read.text("session").unwrap_or_default();
        match read.text("op").unwrap_or_default() {
            b"close" if !session.is_empty() => {
                cloned.ids.remove(session);
                if cloned.shared.as_deref() == Some(session) {
                    cloned.shared = None;
                }
                acts.push(Act::ToClient(answer(&read, &[b"done", b"session-closed"], &[])));
                acts.push(Act::ToSession(self.own("close", session, &[])));
            }
            b"ls-sessions" => {
                let ids: Vec<&[u8]> = cloned.ids.iter().map(Vec::as_slice).collect();
                acts.push(Act::ToClient(answer(
                    &read,
                    &[b"done"],
                    &[("sessions", Item::Texts(&ids))],
                )));
            }
            b"clone" if self.shared && cloned.shared.is_some() => {
                let known = cloned.shared.as_deref().unwrap_or_default();
                acts.push(Act::ToClient(answer(
                    &read,
                    &[b"done"],
                    &[("new-session", Item::Text(known))],
                )));
            }
            op => {
                if !id.is_empty() && self.open.len() >= OPEN_MAX {
                    let text = format!("{OPEN_MAX} messages are open: wait for some to end");
                    acts.push(Act::ToClient(refusal(&read, &text)));
                    return Ok(());
                }
                let evaluates = matches!(op, b"eval" | b"load-file" | b"hob/run");
                if op == b"interrupt" {
                    self.interrupt(now, session, read.text("interrupt-id"));
                }
                if evaluates {
                    acts.push(Act::Began);
                }
                let open = Open {
                    evaluates,
                    clones: op == b"clone",
                    describes: op == b"describe",
                    session: session.to_vec(),
                    began: now,
                    failed: false,
                    interrupted: false,
                };
                if !id.is_empty() || evaluates {
                    // An id that is open already is its client's mistake: the later one counts.
                    if let Some(before) = self.open.insert(id, open)
                        && before.evaluates
                    {
                        acts.push(Act::Ended(before.done(true)));
                    }
                }
                acts.push(Act::ToSession(bytes));
            }
        }
        Ok(())
    }

    /// Takes a message of the session's.
    pub fn session(&mut self, bytes: Vec<u8>, cloned: &mut Cloned, acts: &mut Vec<Act>) {
        // What the session says is not hob's to judge.
        let Ok(read) = Message::read(&bytes) else { return acts.push(Act::ToClient(bytes)) };
        let id = read.text("id").unwrap_or_default();
        if id.starts_with(OURS) {
            return;
        }
        let is_done = read.says("status", "done");
        if self.told.contains(id) {
            if is_done {
                self.told.remove(id);
            }
            return;
        }
        let Some(open) = self.open.get_mut(id) else { return acts.push(Act::ToClient(bytes)) };
        open.failed |= read.says("status", "eval-error") || read.says("status", "error");
        open.interrupted |= read.says("status", "interrupted");
        let mut more = None;
        if open.clones
            && let Some(made) = read.text("new-session")
        {
            cloned.ids.insert(made.to_vec());
            if self.shared {
                cloned.shared = Some(made.to_vec());
            }
        }
        if open.describes {
            more = described(&read);
        }
        if is_done && let Some(ended) = self.open.remove(id) {
            self.interrupts.retain(|interrupt| interrupt.target != id);
            if ended.evaluates {
                acts.push(Act::Ended(ended.done(false)));
            }
        }
        acts.push(Act::ToClient(more.unwrap_or(bytes)));
    }

    /// Time has passed: what an interrupt did not end is told as interrupted.
    pub fn tick(&mut self, now: Time, acts: &mut Vec<Act>) {
        let due: Vec<_> =
            self.interrupts.extract_if(.., |interrupt| interrupt.due <= now).collect();
        for Interrupt { session, target, .. } in due {
            let Some(mut open) = self.open.remove(&target) else { continue };
            open.interrupted = true;
            let said = |pairs: &[(&str, Item<'_>)]| {
                let mut all = vec![("id", Item::Text(&target)), ("session", Item::Text(&session))];
                all.extend_from_slice(pairs);
                message(&all)
            };
            let text = "hob: it does not heed the interrupt and goes on; `hob session list` shows its \
                        session, and `hob session kill NAME` ends it\n";
            let mut told = said(&[("err", Item::Text(text.as_bytes()))]);
            told.extend(said(&[("status", Item::Texts(&[b"interrupted", b"done"]))]));
            acts.push(Act::ToClient(told));
            let more = [("interrupt-id", Item::Text(&target[..])), ("abandon", Item::Number(1))];
            let abandon = self.own("interrupt", &session, &more);
            acts.push(Act::ToSession(abandon));
            if open.evaluates {
                acts.push(Act::Ended(open.done(true)));
            }
            self.told.insert(target);
        }
    }

    /// The connection of either side has ended: what was open has no end that hob knows of.
    pub fn over(&mut self, acts: &mut Vec<Act>) {
        for (_, open) in std::mem::take(&mut self.open) {
            if open.evaluates {
                acts.push(Act::Ended(open.done(true)));
            }
        }
    }

    /// Messages to the session that interrupt all that the client has begun.
    #[must_use]
    pub fn interrupt_all(&mut self) -> Vec<u8> {
        let open = self.open.iter().filter(|(_, open)| open.evaluates);
        let open: Vec<_> = open.map(|(id, open)| (id.clone(), open.session.clone())).collect();
        let interrupt = |(id, session): (Vec<u8>, Vec<u8>)| {
            self.own("interrupt", &session, &[("interrupt-id", Item::Text(&id))])
        };
        open.into_iter().flat_map(interrupt).collect()
    }

    fn interrupt(&mut self, now: Time, session: &[u8], target: Option<&[u8]>) {
        let evals = self.open.iter().filter(|(_, open)| open.evaluates && open.session == session);
        let oldest = evals.min_by_key(|(_, open)| open.began).map(|(id, _)| id.clone());
        let target = target.map(<[u8]>::to_vec).filter(|id| self.open.contains_key(id));
        if let Some(target) = target.or(oldest) {
            let due = now.after_us(INTERRUPT_US);
            self.interrupts.push(Interrupt { session: session.to_vec(), target, due });
        }
    }

    /// A message of hob's own to the session.
    fn own(&mut self, op: &str, session: &[u8], more: &[(&str, Item<'_>)]) -> Vec<u8> {
        self.next += 1;
        let id = [OURS, self.next.to_string().as_bytes()].concat();
        let mut pairs = vec![
            ("op", Item::Text(op.as_bytes())),
            ("id", Item::Text(&id)),
            ("session", Item::Text(session)),
        ];
        pairs.extend_from_slice(more);
        message(&pairs)
    }
}

impl Open {
    fn done(&self, lost: bool) -> Done {
        let Open { began, failed, interrupted, .. } = *self;
        Done { began, ok: !failed && !interrupted && !lost, interrupted, lost }
    }
}

/// Compares all of both, so that the time tells nothing of where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differ == 0
}

/// An answer of hob's own to a message.
fn answer(to: &Message<'_>, status: &[&[u8]], more: &[(&str, Item<'_>)]) -> Vec<u8> {
    let mut pairs = vec![("status", Item::Texts(status))];
    for key in ["id", "session"] {
        if let Some(value) = to.raw(key) {
            pairs.push((key, Item::Raw(value)));
        }
    }
    pairs.extend_from_slice(more);
    message(&pairs)
}

/// Why a message is not taken.
fn refusal(to: &Message<'_>, text: &str) -> Vec<u8> {
    answer(to, &[b"error", b"done"], &[("err", Item::Text(format!("hob: {text}\n").as_bytes()))])
}

/// A refusal of bytes that are no message.
#[must_use]
pub fn fault(fault: Fault) -> Vec<u8> {
    let text = format!("hob: this is no message of nREPL's: {fault}\n");
    message(&[("err", Item::Text(text.as_bytes())), ("status", Item::Texts(&[b"error", b"done"]))])
}

/// What a client is told whose session is over.
#[must_use]
pub fn closing(text: &str) -> Vec<u8> {
    message(&[
        ("err", Item::Text(format!("hob: {text}\n").as_bytes())),
        ("status", Item::Texts(&[b"session-closed", b"error", b"done"])),
    ])
}

/// What the session says of itself, with hob's version among those of its parts.
fn described(read: &Message<'_>) -> Option<Vec<u8>> {
    let versions = read.raw("versions")?;
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let own = message(&[("version-string", Item::Text(version))]);
    let inner = Message::read(versions).ok()?;
    let merged = with(&inner, "hob", Item::Raw(&own))?;
    with(read, "versions", Item::Raw(&merged))
}

/// A message with another value for this key.
fn with(read: &Message<'_>, key: &str, item: Item<'_>) -> Option<Vec<u8>> {
    let others = read.pairs().iter().filter(|(known, _)| *known != key.as_bytes());
    let mut pairs = Vec::new();
    for (known, value) in others {
        pairs.push((core::str::from_utf8(known).ok()?, Item::Raw(value)));
    }
    pairs.push((key, item));
    Some(message(&pairs))
}
