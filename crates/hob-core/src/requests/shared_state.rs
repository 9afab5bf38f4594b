//! The state that programs share outside their isolation: counters, and a cache with a bound.
//! Pure: the time is an argument.
//!
//! Invariants: the cache's entries take at most [`CACHE_BYTES_MAX`] with their keys and
//! [`ENTRY_BYTES`] each, the least recently used go first; an entry whose time has passed is never
//! read; there are at most [`COUNTERS_MAX`] counters, and none is dropped to make room: a count
//! that silently began anew would be worse than an error.

use std::collections::{BTreeMap, HashMap};

use crate::ids::Time;

/// What the cache may take.
pub const CACHE_BYTES_MAX: usize = 64 << 20;
/// What an entry is counted for beside its key and value.
pub const ENTRY_BYTES: usize = 128;
/// Counters at one time.
pub const COUNTERS_MAX: usize = 65_536;

#[derive(Debug)]
struct Entry {
    value: Vec<u8>,
    until: Option<Time>,
    used: u64,
}

/// The state.
#[derive(Debug)]
pub struct Shared {
    counters: HashMap<Vec<u8>, i64>,
    entries: HashMap<Vec<u8>, Entry>,
    /// Keys by when they were last used: the first goes first.
    order: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    turn: u64,
}

/// There is no room, and none can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl Default for Shared {
    fn default() -> Self {
        Shared::with_room(CACHE_BYTES_MAX)
    }
}

impl Shared {
    /// Nothing, with room for so many bytes of cache.
    #[must_use]
    pub fn with_room(bytes_max: usize) -> Shared {
        Shared {
            counters: HashMap::new(),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            bytes: 0,
            bytes_max,
            turn: 0,
        }
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.entries.is_empty()
    }

    /// What the cache takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds to a counter; its number then. It stays at the largest or smallest number rather than
    /// to begin anew.
    ///
    /// # Errors
    /// [`NoRoom`] for one more counter.
    pub fn add(&mut self, name: &[u8], number: i64) -> Result<i64, NoRoom> {
        if let Some(counter) = self.counters.get_mut(name) {
            *counter = counter.saturating_add(number);
            return Ok(*counter);
        }
        if self.counters.len() >= COUNTERS_MAX {
            return Err(NoRoom);
        }
        self.counters.insert(name.to_vec(), number);
        Ok(number)
    }

    /// A counter's number; 0 before anything was added.
    #[must_use]
    pub fn count(&self, name: &[u8]) -> i64 {
        self.counters.get(name).copied().unwrap_or_default()
    }

    /// Sets an entry, in the place of what was there. `ttl_us` 0: for as long as there is room.
    ///
    /// # Errors
    /// [`NoRoom`] if it alone is larger than the cache; what was there is gone then too.
    pub fn set(
        &mut self,
        now: Time,
        (key, value): (&[u8], &[u8]),
        ttl_us: u64,
    ) -> Result<(), NoRoom> {
        self.delete(key);
        let size = size(key, value);
        if size > self.bytes_max {
            return Err(NoRoom);
        }
        while self.bytes + size > self.bytes_max {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.drop_entry(&oldest);
        }
        self.turn += 1;
        let until = (ttl_us > 0).then(|| now.after_us(ttl_us));
        self.bytes += size;
        self.order.insert(self.turn, key.to_vec());
        self.entries.insert(key.to_vec(), Entry { value: value.to_vec(), until, used: self.turn });
        Ok(())
    }

    /// An entry's value, if its time has not passed.
    pub fn get(&mut self, now: Time, key: &[u8]) -> Option<&[u8]> {
        let entry = self.entries.get_mut(key)?;
        if entry.until.is_some_and(|until| until <= now) {
            self.delete(key);
            return None;
        }
        self.turn += 1;
        let before = std::mem::replace(&mut entry.used, self.turn);
        if let Some(key) = self.order.remove(&before) {
            self.order.insert(self.turn, key);
        }
        self.entries.get(key).map(|entry| entry.value.as_slice())
    }

    /// Removes an entry; whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let Some(used) = self.entries.get(key).map(|entry| entry.used) else { return false };
        self.order.remove(&used);
        self.drop_entry(key);
        true
    }

    fn drop_entry(&mut self, key: &[u8]) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= size(key, &entry.value);
        }
    }
}

/// The key is held twice.
fn size(key: &[u8], value: &[u8]) -> usize {
    2 * key.len() + value.len() + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_counter_adds_and_does_not_begin_anew() {
        let mut shared = Shared::default();
        assert_eq!(shared.count(b"hits"), 0);
        assert_eq!(shared.add(b"hits", 2), Ok(2));
        assert_eq!(shared.add(b"hits", -3), Ok(-1));
        assert_eq!(shared.count(b"hits"), -1);
        assert_eq!(shared.add(b"top", i64::MAX), Ok(i64::MAX));
        assert_eq!(shared.add(b"top", 1), Ok(i64::MAX));
    }

    #[test]
    fn an_entry_is_read_until_its_time_has_passed() {
        let mut shared = Shared::default();
        shared.set(Time(0), (b"a", b"1"), 5).unwrap();
        shared.set(Time(0), (b"b", b"2"), 0).unwrap();
        assert_eq!(shared.get(Time(4999), b"a"), Some(&b"1"[..]));
        assert_eq!(shared.get(Time(5000), b"a"), None);
        assert_eq!(shared.get(Time(u64::MAX), b"b"), Some(&b"2"[..]));
        assert!(shared.delete(b"b") && !shared.delete(b"b") && shared.bytes() == 0);
    }

    #[test]
    fn the_least_recently_used_goes_first_and_what_never_fits_is_refused() {
        let mut shared = Shared::with_room(2 * (ENTRY_BYTES + 3));
        shared.set(Time(0), (b"a", b"1"), 0).unwrap();
        shared.set(Time(0), (b"b", b"2"), 0).unwrap();
        shared.get(Time(0), b"a");
        shared.set(Time(0), (b"c", b"3"), 0).unwrap();
        assert_eq!(shared.get(Time(0), b"b"), None);
        assert!(shared.get(Time(0), b"a").is_some() && shared.get(Time(0), b"c").is_some());
        assert_eq!(shared.set(Time(0), (b"a", &[0; 999]), 0), Err(NoRoom));
        assert_eq!(shared.get(Time(0), b"a"), None);
    }

    proptest! {
        #[test]
        fn the_cache_keeps_to_its_bound_and_tells_nothing_but_what_was_set(
            steps in prop::collection::vec((0u8..4, 0u8..8, 0usize..400, 0u64..3), 0..200),
        ) {
            let mut shared = Shared::with_room(1500);
            let mut set: HashMap<Vec<u8>, (Vec<u8>, Option<u64>)> = HashMap::new();
            for (at, (verb, key, len, ttl)) in steps.into_iter().enumerate() {
                let (now, key) = (Time(at as u64 * 1000), vec![key]);
                match verb {
                    0 | 1 => {
                        let value = vec![verb; len];
                        shared.set(now, (&key, &value), ttl).unwrap();
                        let until = (ttl > 0).then(|| now.0 + ttl * 1000);
                        set.insert(key, (value, until));
                    }
                    2 => {
                        if let Some(value) = shared.get(now, &key) {
                            let (want, until) = &set[&key];
                            prop_assert_eq!(value, want.as_slice());
                            prop_assert!(until.is_none_or(|until| now.0 < until));
                        }
                    }
                    _ => {
                        shared.delete(&key);
                        prop_assert_eq!(shared.get(now, &key), None);
                    }
                }
                prop_assert!(shared.bytes() <= 1500);
                prop_assert_eq!(shared.entries.len(), shared.order.len());
            }
        }
    }
}
