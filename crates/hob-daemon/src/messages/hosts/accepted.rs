//! Receipts of tells that streams have accepted.
//!
//! Thousands may come in a second, so they are sampled as `thin` does it for messages that are
//! performed here: an address leaves one receipt each [`EVERY_US`], which says for how many tells it
//! stands. The newest without one is kept, and has its own that long after the last one at the latest,
//! or when the daemon ends. So none is missing.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::ids::Time;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::{ACCEPTED, ELSEWHERE, MessagePart, ProgramPart, Receipt, STREAM};
use hob_os::clock;

use crate::ctx::Ctx;
use crate::messages::Messages;
use crate::messages::address::elsewhere;
use crate::messages::settle::receipt;
use crate::messages::thin::EVERY_US;

/// A tell that is said to its stream.
#[derive(Debug)]
pub(super) struct Sent {
    at: jiff::Timestamp,
    at_ns: u64,
    /// The bytes of its payload.
    bytes: usize,
}

impl Sent {
    /// It is said now.
    pub(super) fn now(bytes: usize) -> Sent {
        Sent { at: jiff::Timestamp::now(), at_ns: clock::now_ns(), bytes }
    }
}

/// Tells that streams have accepted, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    addresses: HashMap<Arc<[u8]>, Last>,
}

#[derive(Debug, Default)]
struct Last {
    /// When it has left a receipt.
    at: Time,
    newest: Option<Newest>,
}

/// The newest tell without a receipt.
#[derive(Debug)]
struct Newest {
    sent: Sent,
    accepted: Time,
    stands_for: u64,
}

/// What a receipt is to be left of.
type Due = (Arc<[u8]>, Newest);

impl Accepted {
    /// Takes in one that is accepted now. Returns it where it leaves a receipt.
    fn take(&mut self, address: Arc<[u8]>, now: Time, sent: Sent) -> Option<Due> {
        let last = self.addresses.entry(Arc::clone(&address)).or_default();
        let before = last.newest.take().map_or(0, |newest| newest.stands_for);
        let newest = Newest { sent, accepted: now, stands_for: before + 1 };
        if last.is_due(now) {
            last.at = now;
            return Some((address, newest));
        }
        last.newest = Some(newest);
        None
    }

    /// When the next one is due that no other has come to stand for.
    pub(super) fn next_due(&self) -> Option<Time> {
        let waiting = self.addresses.values().filter(|last| last.newest.is_some());
        waiting.map(|last| last.at.after_us(EVERY_US)).min()
    }

    /// What is due of them; addresses that have rested are forgotten.
    fn due(&mut self, now: Time) -> Vec<Due> {
        self.leave(now, |last| last.is_due(now))
    }

    /// All of them, due or not.
    fn all(&mut self, now: Time) -> Vec<Due> {
        self.leave(now, |_| true)
    }

    fn leave(&mut self, now: Time, leaves: impl Fn(&Last) -> bool) -> Vec<Due> {
        self.addresses.retain(|_, last| last.newest.is_some() || !last.is_due(now));
        let waiting = self.addresses.iter_mut().filter(|(_, last)| leaves(last));
        let left = waiting.filter_map(|(address, last)| {
            let newest = last.newest.take()?;
            last.at = now;
            Some((Arc::clone(address), newest))
        });
        left.collect()
    }
}

impl Last {
    fn is_due(&self, now: Time) -> bool {
        now.us_since(self.at) >= EVERY_US
    }
}

impl Messages {
    /// A stream has a tell.
    pub(super) fn accepted(&mut self, ctx: &mut Ctx<'_>, address: Arc<[u8]>, sent: Sent) {
        let due = self.hosts.accepted.take(address, Time(clock::now_ns()), sent);
        due.into_iter().for_each(|due| record(ctx, due));
    }

    /// Leaves the receipts that no other tell has come to stand for in time.
    pub(in crate::messages) fn tick_accepted(&mut self, ctx: &mut Ctx<'_>, now: Time) {
        self.hosts.accepted.due(now).into_iter().for_each(|due| record(ctx, due));
    }

    /// Leaves all of them.
    pub(in crate::messages) fn leave_all_accepted(&mut self, ctx: &mut Ctx<'_>, now: Time) {
        self.hosts.accepted.all(now).into_iter().for_each(|due| record(ctx, due));
    }
}

fn record(ctx: &mut Ctx<'_>, (address, newest): Due) {
    let Newest { sent, accepted, stands_for } = newest;
    let mut marks = Marks::default();
    marks.stamp(Mark::Received, Time(sent.at_ns));
    marks.stamp(Mark::Given, accepted);
    let name = String::from_utf8_lossy(elsewhere(&address).unwrap_or_default()).into_owned();
    let program = ProgramPart::named(name, ELSEWHERE);
    let message = MessagePart { bytes: sent.bytes, stands_for, ..MessagePart::default() };
    let call = ctx.recorder.next_call();
    ctx.recorder.record(Receipt {
        reason: STREAM.to_owned(),
        isolation: ELSEWHERE.to_owned(),
        ..receipt((call, sent.at, &marks), program, ACCEPTED, message)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time((1_000_000 + us) * 1000)
    }

    fn take(accepted: &mut Accepted, address: &str, us: u64, bytes: usize) -> Vec<(usize, u64)> {
        let address = Arc::from(address.as_bytes());
        said(accepted.take(address, at(us), Sent::now(bytes)))
    }

    /// The newest tell of each receipt, by its bytes, and for how many it stands.
    fn said(due: impl IntoIterator<Item = Due>) -> Vec<(usize, u64)> {
        let mut said: Vec<_> =
            due.into_iter().map(|(_, newest)| (newest.sent.bytes, newest.stands_for)).collect();
        said.sort_unstable();
        said
    }

    #[test]
    fn an_address_leaves_a_receipt_now_and_then_that_stands_for_those_before_it() {
        let mut accepted = Accepted::default();
        assert_eq!(take(&mut accepted, "notes", 0, 1), [(1, 1)]);
        assert_eq!(take(&mut accepted, "notes", 1, 2), []);
        assert_eq!(take(&mut accepted, "notes", 2, 3), []);
        assert_eq!(take(&mut accepted, "mailer", 2, 4), [(4, 1)]);
        assert_eq!(take(&mut accepted, "notes", EVERY_US, 5), [(5, 3)]);
        assert_eq!(accepted.next_due(), None, "nothing waits");
    }

    #[test]
    fn the_last_tells_have_their_receipt_when_no_other_comes_or_when_all_is_wanted() {
        let mut accepted = Accepted::default();
        assert_eq!(take(&mut accepted, "notes", 0, 1), [(1, 1)]);
        assert_eq!(take(&mut accepted, "notes", 1, 2), []);
        assert_eq!(take(&mut accepted, "notes", 2, 3), []);
        assert_eq!(accepted.next_due(), Some(at(EVERY_US)));
        assert_eq!(said(accepted.due(at(EVERY_US - 1))), []);
        assert_eq!(said(accepted.due(at(EVERY_US))), [(3, 2)]);
        // That was this time's receipt; and whoever asks for all has all.
        assert_eq!(take(&mut accepted, "notes", EVERY_US + 1, 4), []);
        assert_eq!(said(accepted.all(at(EVERY_US + 2))), [(4, 1)]);
        assert_eq!(said(accepted.all(at(EVERY_US + 2))), []);
    }

    #[test]
    fn an_address_that_has_rested_is_forgotten() {
        let mut accepted = Accepted::default();
        assert_eq!(take(&mut accepted, "notes", 0, 1), [(1, 1)]);
        accepted.due(at(EVERY_US - 1));
        assert_eq!(accepted.addresses.len(), 1, "its next tell is too early for a receipt");
        accepted.due(at(EVERY_US));
        assert!(accepted.addresses.is_empty());
        assert_eq!(take(&mut accepted, "notes", EVERY_US, 2), [(2, 1)]);
    }
}
