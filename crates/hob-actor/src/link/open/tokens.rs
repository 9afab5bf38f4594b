//! Numbers for what is open on a link, so that an answer finds its ask without a search. Pure.
//!
//! Invariant: a token is never valid twice. Its low half is a line of the table, its high half
//! counts the tenants of that line.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// For keys that are numbers of ours: nobody chooses them to collide.
pub(crate) type Mixed = BuildHasherDefault<Mix>;

/// Multiplies and folds, a word at a time.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        // The table takes its index from the low bits, and they know the least.
        self.0 ^ self.0 >> 32
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// How many lines are kept by their number.
const LINES: usize = 1 << 16;

/// What belongs to the tokens of another table, of this process or the other end's. Their lines
/// are few and used again and again, so most are found by number; any token is right.
#[derive(Debug, Default)]
pub(crate) struct ByToken {
    lines: Vec<Option<(u64, u64)>>,
    more: HashMap<u64, u64, Mixed>,
    count: usize,
}

impl ByToken {
    #[inline]
    pub(crate) fn insert(&mut self, token: u64, value: u64) {
        let (line, _) = split(token);
        if line >= self.lines.len() && line < LINES {
            self.lines.resize(line + 1, None);
        }
        self.count += 1;
        match self.lines.get_mut(line) {
            Some(place) if place.is_none_or(|(before, _)| before == token) => {
                self.count -= usize::from(place.replace((token, value)).is_some());
            }
            Some(_) | None => self.count -= usize::from(self.more.insert(token, value).is_some()),
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, token: u64) -> Option<u64> {
        let (line, _) = split(token);
        let removed = match self.lines.get_mut(line) {
            Some(place) if place.is_some_and(|(at, _)| at == token) => {
                place.take().map(|(_, value)| value)
            }
            Some(_) | None if self.more.is_empty() => None,
            Some(_) | None => self.more.remove(&token),
        };
        self.count -= usize::from(removed.is_some());
        removed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = u64> {
        let lines = self.lines.into_iter().flatten().map(|(_, value)| value);
        lines.chain(self.more.into_values())
    }
}

/// A table of what is open.
#[derive(Debug)]
pub(crate) struct Tokens<T> {
    lines: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Tokens<T> {
    fn default() -> Tokens<T> {
        Tokens { lines: Vec::new(), free: Vec::new() }
    }
}

fn split(token: u64) -> (usize, u32) {
    // Each half has 32 bits.
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    (half(token) as usize, half(token >> 32))
}

impl<T> Tokens<T> {
    /// A token for one more.
    pub(crate) fn open(&mut self, value: T) -> u64 {
        let line = self.free.pop().unwrap_or_else(|| {
            self.lines.push((0, None));
            u32::try_from(self.lines.len() - 1).expect("memory ends before 4 billion are open")
        });
        let (tenant, place) = &mut self.lines[line as usize];
        *place = Some(value);
        u64::from(*tenant) << 32 | u64::from(line)
    }

    pub(crate) fn get(&self, token: u64) -> Option<&T> {
        let (line, tenant) = split(token);
        let (now, value) = self.lines.get(line)?;
        value.as_ref().filter(|_| *now == tenant)
    }

    /// It is no longer open. None: it was not.
    pub(crate) fn close(&mut self, token: u64) -> Option<T> {
        let (line, tenant) = split(token);
        let (now, value) = self.lines.get_mut(line)?;
        if *now != tenant {
            return None;
        }
        let closed = value.take()?;
        *now = now.wrapping_add(1);
        self.free.push(u32::try_from(line).unwrap_or(u32::MAX));
        Some(closed)
    }

    /// All tokens for which `which` holds.
    pub(crate) fn of(&self, which: impl Fn(&T) -> bool) -> Vec<u64> {
        let lines = (0u64..).zip(&self.lines);
        lines
            .filter(|(_, (_, value))| value.as_ref().is_some_and(&which))
            .map(|(line, (tenant, _))| u64::from(*tenant) << 32 | line)
            .collect()
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.lines.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_token_is_found_wherever_its_line_is() {
        let mut by = ByToken::default();
        // Two tenants of one line at once, and lines beyond those that are kept by number.
        let tokens = [3, 1 << 32 | 3, 2 << 32 | 3, u64::from(u32::MAX), 1 << 40];
        for (token, value) in tokens.into_iter().zip(0..) {
            by.insert(token, value);
        }
        by.insert(3, 9);
        assert_eq!((by.remove(3), by.remove(3)), (Some(9), None));
        assert_eq!(by.remove(2 << 32 | 3), Some(2));
        by.insert(2 << 32 | 3, 7);
        for (token, value) in [(1 << 32 | 3, 1), (2 << 32 | 3, 7), (u64::from(u32::MAX), 3)] {
            assert_eq!(by.remove(token), Some(value));
        }
        assert!(!by.is_empty());
        assert_eq!(by.remove(1 << 40), Some(4));
        assert!(by.is_empty() && by.into_values().next().is_none());
    }

    #[test]
    fn a_late_token_finds_nobody_even_when_its_line_has_a_new_tenant() {
        let mut tokens = Tokens::default();
        let (a, b) = (tokens.open('a'), tokens.open('b'));
        assert_eq!(tokens.close(a), Some('a'));
        let c = tokens.open('c');
        assert_ne!(a, c);
        assert_eq!(tokens.get(a), None);
        assert_eq!(tokens.close(a), None);
        assert_eq!((tokens.get(c), tokens.get(b)), (Some(&'c'), Some(&'b')));
        assert_eq!((tokens.of(|_| true), tokens.count()), (vec![c, b], 2));
        assert_eq!(tokens.close(u64::MAX), None);
    }
}
