//! What was asked of peers and has no answer yet: an answer finds its ask by its token, a cancel by
//! whose the ask is. Pure.
//!
//! An ask of the links' own shard has a slot there, whose generation tells one tenant from the
//! next. So that slot is its token, and all that is kept of it is one line of twelve bytes: who has
//! just slept finds each line of its memory in no cache (`docs/why/peers.md`). All other calls have
//! a table of their own. The lowest bit of a token says which of the two it is.
//!
//! Invariant: a token is never valid twice.

use std::collections::HashMap;

use super::tokens::{Mixed, Tokens};
use crate::link::commands::Found;
use crate::link::table::Asker;
use crate::memory::parcel::Slot;
use crate::memory::when::{NEVER, Place, When};

/// A call that is over, or about to be.
pub(crate) enum Call {
    Ask { link: u32, asker: Asker, entry: u16 },
    Resolve { link: u32, found: Found },
}

impl Call {
    fn link(&self) -> u32 {
        match self {
            Call::Ask { link, .. } | Call::Resolve { link, .. } => *link,
        }
    }
}

/// An ask of the links' own shard.
#[derive(Debug, Clone, Copy)]
struct Here {
    /// Of its slot.
    generation: u32,
    link: u32,
    entry: u16,
    is_open: bool,
}

const CLOSED: Here = Here { generation: 0, link: 0, entry: 0, is_open: false };

/// How many slots have a line of their own.
const LINES: u32 = 1 << 16;

/// All of them.
pub(crate) struct Calls {
    /// The links' own shard.
    place: Place,
    here: Vec<Here>,
    /// The same, of slots that have no line, or that somebody else's has.
    more: HashMap<Slot, Here, Mixed>,
    others: Tokens<Call>,
    /// The tokens of asks of other shards, by whose they are.
    elsewhere: HashMap<(Slot, Place), u64, Mixed>,
}

/// What a token names.
enum Named {
    Here(Slot),
    Other(u64),
}

fn named(token: u64) -> Named {
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    let (index, generation) = (half(token) >> 1, half(token >> 32));
    if token & 1 == 0 {
        Named::Here(Slot { index, generation })
    } else {
        Named::Other(u64::from(generation) << 32 | u64::from(index))
    }
}

/// A slot has 28 bits for its index, a line of a table fewer than 31.
#[inline]
fn token_here(slot: Slot) -> u64 {
    u64::from(slot.generation) << 32 | u64::from(slot.index) << 1
}

fn token_other(token: u64) -> u64 {
    let index = token & u64::from(u32::MAX);
    (token - index) | (index << 1) | 1
}

impl Calls {
    pub(crate) fn new(place: Place) -> Calls {
        Calls {
            place,
            here: Vec::new(),
            more: HashMap::default(),
            others: Tokens::default(),
            elsewhere: HashMap::default(),
        }
    }

    /// The token of an ask that is about to be sent. Nothing is open yet if it cannot be.
    #[inline]
    pub(crate) fn token(&mut self, asker: Asker, link: u32, entry: u16) -> u64 {
        if asker.1.place() == self.place {
            token_here(asker.0)
        } else {
            token_other(self.others.open(Call::Ask { link, asker, entry }))
        }
    }

    /// It was sent: an answer finds it from now on, and a cancel.
    #[inline]
    pub(crate) fn sent(&mut self, asker: Asker, token: u64, link: u32, entry: u16) {
        let (slot, when) = asker;
        if when.place() != self.place {
            self.elsewhere.insert((slot, when.place()), token);
            return;
        }
        let Slot { index, generation } = slot;
        let open = Here { generation, link, entry, is_open: true };
        if index as usize >= self.here.len() && index < LINES {
            self.here.resize(index as usize + 1, CLOSED);
        }
        match self.here.get_mut(index as usize) {
            Some(line) if !line.is_open || line.generation == generation => *line = open,
            Some(_) | None => drop(self.more.insert(slot, open)),
        }
    }

    /// It could not be sent.
    pub(crate) fn unsent(&mut self, token: u64) {
        if let Named::Other(token) = named(token) {
            drop(self.others.close(token));
        }
    }

    /// An actor is looked for.
    pub(crate) fn resolve(&mut self, link: u32, found: Found) -> u64 {
        token_other(self.others.open(Call::Resolve { link, found }))
    }

    #[inline]
    fn line(&mut self, slot: Slot) -> Option<&mut Here> {
        let line = self.here.get_mut(slot.index as usize)?;
        (line.is_open && line.generation == slot.generation).then_some(line)
    }

    /// The ask with this token has an answer, if it was asked on this link: who asked, and what.
    #[inline]
    pub(crate) fn answered(&mut self, token: u64, on: u32) -> Answered {
        if let Named::Here(slot) = named(token)
            && let Some(line) = self.line(slot)
            && line.link == on
        {
            line.is_open = false;
            let entry = line.entry;
            return Answered::Ask((slot, When::new(self.place, NEVER)), entry);
        }
        self.answered_otherwise(token, on)
    }

    #[cold]
    fn answered_otherwise(&mut self, token: u64, on: u32) -> Answered {
        match self.seen(token) {
            Some(Seen::Ask(link)) if link == on => match self.close(token) {
                Some(Call::Ask { asker, entry, .. }) => Answered::Ask(asker, entry),
                Some(Call::Resolve { .. }) | None => Answered::Nobody,
            },
            Some(Seen::Ask(_)) | None => Answered::Nobody,
            Some(Seen::Resolve(_)) => Answered::Nonsense,
        }
    }

    /// The call with this token has failed, if it is one of this link's.
    pub(crate) fn failed(&mut self, token: u64, on: u32) -> Option<Call> {
        match self.seen(token)? {
            Seen::Ask(link) | Seen::Resolve(link) if link == on => self.close(token),
            Seen::Ask(_) | Seen::Resolve(_) => None,
        }
    }

    fn seen(&self, token: u64) -> Option<Seen> {
        match named(token) {
            Named::Here(slot) => {
                let line = self.here.get(slot.index as usize).copied();
                let line = line.filter(|line| line.is_open && line.generation == slot.generation);
                let line = line.or_else(|| self.more.get(&slot).copied());
                line.map(|line| Seen::Ask(line.link))
            }
            Named::Other(token) => self.others.get(token).map(|call| match call {
                Call::Ask { link, .. } => Seen::Ask(*link),
                Call::Resolve { link, .. } => Seen::Resolve(*link),
            }),
        }
    }

    /// The call is over. None: it was before.
    pub(crate) fn close(&mut self, token: u64) -> Option<Call> {
        match named(token) {
            Named::Here(slot) => {
                let place = self.place;
                let closed = match self.line(slot) {
                    Some(line) => std::mem::replace(line, CLOSED),
                    None => self.more.remove(&slot)?,
                };
                let asker = (slot, When::new(place, NEVER));
                Some(Call::Ask { link: closed.link, asker, entry: closed.entry })
            }
            Named::Other(token) => {
                let call = self.others.close(token)?;
                if let Call::Ask { asker, .. } = &call {
                    self.elsewhere.remove(&(asker.0, asker.1.place()));
                }
                Some(call)
            }
        }
    }

    /// Whoever asked this does not wait any more: its token, and the link that is to be told.
    pub(crate) fn cancel(&mut self, slot: Slot, place: Place) -> Option<(u64, u32)> {
        let token = if place == self.place {
            token_here(slot)
        } else {
            *self.elsewhere.get(&(slot, place))?
        };
        self.close(token).map(|call| (token, call.link()))
    }

    /// All calls on a link; they are over.
    pub(crate) fn end(&mut self, of: u32) -> Vec<Call> {
        let lines = (0..).zip(&self.here).filter(|(_, line)| line.is_open);
        let more = self.more.iter().map(|(slot, line)| (*slot, line));
        let here = lines
            .map(|(index, line)| (Slot { index, generation: line.generation }, line))
            .chain(more)
            .filter(|(_, line)| line.link == of)
            .map(|(slot, _)| token_here(slot));
        let others = self.others.of(|call| call.link() == of).into_iter().map(token_other);
        let tokens: Vec<u64> = here.chain(others).collect();
        tokens.into_iter().filter_map(|token| self.close(token)).collect()
    }
}

/// What an answer is for.
pub(crate) enum Answered {
    Ask(Asker, u16),
    /// A cancel was on its way when it came.
    Nobody,
    /// No ask has this token, but something else.
    Nonsense,
}

/// What is known of an open call without closing it.
#[derive(Clone, Copy)]
enum Seen {
    Ask(u32),
    Resolve(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = 1;
    const THERE: Place = 2;

    fn asker(place: Place, index: u32, generation: u32) -> Asker {
        (Slot { index, generation }, When::new(place, 77))
    }

    fn ask(calls: &mut Calls, asker: Asker, link: u32) -> u64 {
        let token = calls.token(asker, link, 5);
        calls.sent(asker, token, link, 5);
        token
    }

    fn finds(calls: &mut Calls, token: u64, on: u32) -> Option<(Slot, Place)> {
        match calls.answered(token, on) {
            Answered::Ask((slot, when), 5) => Some((slot, when.place())),
            Answered::Ask(..) | Answered::Nobody | Answered::Nonsense => None,
        }
    }

    #[test]
    fn an_answer_finds_its_ask_once_and_only_on_its_link() {
        let mut calls = Calls::new(HERE);
        // Two tenants of one slot, slots beyond those with lines, and asks of another shard.
        let all = [(HERE, 3, 1), (HERE, 3, 2), (HERE, LINES, 1), (THERE, 3, 1), (THERE, 3, 2)];
        let tokens = all
            .map(|(place, index, generation)| ask(&mut calls, asker(place, index, generation), 9));
        for (at, (place, index, generation)) in all.into_iter().enumerate() {
            assert_eq!(finds(&mut calls, tokens[at], 8), None, "of another link");
            let found = finds(&mut calls, tokens[at], 9);
            assert_eq!(found, Some((Slot { index, generation }, place)));
            assert_eq!(finds(&mut calls, tokens[at], 9), None, "it has ended");
        }
        assert!(calls.end(9).is_empty());
        let again = ask(&mut calls, asker(HERE, 3, 3), 9);
        assert_eq!(finds(&mut calls, tokens[0], 9), None, "the slot has another tenant");
        assert!(finds(&mut calls, again, 9).is_some());
    }

    #[test]
    fn a_cancel_finds_the_token_by_whose_it_is() {
        let mut calls = Calls::new(HERE);
        for place in [HERE, THERE] {
            let (slot, when) = asker(place, 4, 6);
            let token = ask(&mut calls, (slot, when), 2);
            assert_eq!(calls.cancel(slot, place), Some((token, 2)));
            assert_eq!(calls.cancel(slot, place), None);
            assert_eq!(finds(&mut calls, token, 2), None);
        }
        // One that could not be sent leaves nothing behind.
        for place in [HERE, THERE] {
            let token = calls.token(asker(place, 4, 7), 2, 5);
            calls.unsent(token);
            assert_eq!((finds(&mut calls, token, 2), calls.end(2).len()), (None, 0));
        }
    }

    #[test]
    fn what_looks_for_an_actor_is_no_ask_and_ends_with_its_link() {
        let mut calls = Calls::new(HERE);
        let resolve = calls.resolve(1, Box::new(|_, _| ()));
        assert!(matches!(calls.answered(resolve, 1), Answered::Nonsense));
        assert!(calls.failed(resolve, 2).is_none(), "of another link");
        let mine = [(HERE, 0, 1), (HERE, LINES + 1, 1), (THERE, 0, 1)];
        for (place, index, generation) in mine {
            ask(&mut calls, asker(place, index, generation), 1);
        }
        let other = ask(&mut calls, asker(HERE, 1, 1), 2);
        assert_eq!((calls.end(1).len(), calls.end(1).len()), (4, 0));
        assert!(calls.failed(other, 2).is_some() && calls.failed(other, 2).is_none());
    }
}
