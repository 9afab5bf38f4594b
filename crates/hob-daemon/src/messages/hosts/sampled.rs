//! Which of what other hosts have leaves a receipt, and for how many of its kind that stands.
//!
//! Thousands may come in a second, so they are sampled as `thin` does it for messages that are
//! performed here: a kind leaves one receipt each [`EVERY_US`], which says for how many it stands. The
//! newest without one is kept, and has its own that long after the last one at the latest, or when the
//! daemon ends. So none is missing.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use hob_core::ids::Time;

use crate::messages::thin::EVERY_US;

/// What has no receipt yet, by its kind.
#[derive(Debug)]
pub(super) struct Sampled<K, T> {
    kinds: HashMap<K, Last<T>>,
}

#[derive(Debug)]
struct Last<T> {
    /// When it has left a receipt.
    at: Time,
    newest: Option<Due<T>>,
}

/// What a receipt is to be left of, and for how many it stands.
pub(super) type Due<T> = (T, u64);

impl<K, T> Default for Sampled<K, T> {
    fn default() -> Sampled<K, T> {
        Sampled { kinds: HashMap::new() }
    }
}

impl<K: Eq + Hash, T> Sampled<K, T> {
    /// Takes in one that is of this kind. Returns it where it leaves a receipt.
    pub(super) fn take<Q>(&mut self, kind: &Q, now: Time, one: T) -> Option<Due<T>>
    where
        K: Borrow<Q> + for<'q> From<&'q Q>,
        Q: Eq + Hash + ?Sized,
    {
        let Some(last) = self.kinds.get_mut(kind) else {
            self.kinds.insert(K::from(kind), Last { at: now, newest: None });
            return Some((one, 1));
        };
        let before = last.newest.take().map_or(0, |(_, stands_for)| stands_for);
        let due = (one, before + 1);
        if last.is_due(now) {
            last.at = now;
            return Some(due);
        }
        last.newest = Some(due);
        None
    }

    /// When the next one is due that no other has come to stand for.
    pub(super) fn next_due(&self) -> Option<Time> {
        let waiting = self.kinds.values().filter(|last| last.newest.is_some());
        waiting.map(|last| last.at.after_us(EVERY_US)).min()
    }

    /// What is due of them; kinds that have rested are forgotten.
    pub(super) fn due(&mut self, now: Time) -> Vec<Due<T>> {
        self.leave(now, |last| last.is_due(now))
    }

    /// All of them, due or not.
    pub(super) fn all(&mut self, now: Time) -> Vec<Due<T>> {
        self.leave(now, |_| true)
    }

    fn leave(&mut self, now: Time, leaves: impl Fn(&Last<T>) -> bool) -> Vec<Due<T>> {
        self.kinds.retain(|_, last| last.newest.is_some() || !last.is_due(now));
        let waiting = self.kinds.values_mut().filter(|last| leaves(last));
        let left = waiting.filter_map(|last| {
            let newest = last.newest.take()?;
            last.at = now;
            Some(newest)
        });
        left.collect()
    }
}

impl<T> Last<T> {
    fn is_due(&self, now: Time) -> bool {
        now.us_since(self.at) >= EVERY_US
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time((1_000_000 + us) * 1000)
    }

    fn said(due: impl IntoIterator<Item = Due<u32>>) -> Vec<Due<u32>> {
        let mut said: Vec<_> = due.into_iter().collect();
        said.sort_unstable();
        said
    }

    fn take(sampled: &mut Sampled<String, u32>, kind: &str, us: u64, one: u32) -> Vec<Due<u32>> {
        said(sampled.take(kind, at(us), one))
    }

    #[test]
    fn a_kind_leaves_a_receipt_now_and_then_that_stands_for_those_before_it() {
        let mut sampled = Sampled::default();
        assert_eq!(take(&mut sampled, "notes", 0, 1), [(1, 1)]);
        assert_eq!(take(&mut sampled, "notes", 1, 2), []);
        assert_eq!(take(&mut sampled, "notes", 2, 3), []);
        assert_eq!(take(&mut sampled, "mailer", 2, 4), [(4, 1)]);
        assert_eq!(take(&mut sampled, "notes", EVERY_US, 5), [(5, 3)]);
        assert_eq!(sampled.next_due(), None, "nothing waits");
    }

    #[test]
    fn the_last_have_their_receipt_when_no_other_comes_or_when_all_is_wanted() {
        let mut sampled = Sampled::default();
        assert_eq!(take(&mut sampled, "notes", 0, 1), [(1, 1)]);
        assert_eq!(take(&mut sampled, "notes", 1, 2), []);
        assert_eq!(take(&mut sampled, "notes", 2, 3), []);
        assert_eq!(sampled.next_due(), Some(at(EVERY_US)));
        assert_eq!(said(sampled.due(at(EVERY_US - 1))), []);
        assert_eq!(said(sampled.due(at(EVERY_US))), [(3, 2)]);
        // That was this time's receipt; and whoever asks for all has all.
        assert_eq!(take(&mut sampled, "notes", EVERY_US + 1, 4), []);
        assert_eq!(said(sampled.all(at(EVERY_US + 2))), [(4, 1)]);
        assert_eq!(said(sampled.all(at(EVERY_US + 2))), []);
    }

    #[test]
    fn a_kind_that_has_rested_is_forgotten() {
        let mut sampled = Sampled::default();
        assert_eq!(take(&mut sampled, "notes", 0, 1), [(1, 1)]);
        sampled.due(at(EVERY_US - 1));
        assert_eq!(sampled.kinds.len(), 1, "its next one is too early for a receipt");
        sampled.due(at(EVERY_US));
        assert!(sampled.kinds.is_empty());
        assert_eq!(take(&mut sampled, "notes", EVERY_US, 2), [(2, 1)]);
    }
}
