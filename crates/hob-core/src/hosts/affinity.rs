//! Where asks with a key go: to the host that has answered the one before, for as long as it offers the
//! program. What a session of a key has in memory is there, and nowhere else.

use std::collections::{BTreeMap, VecDeque};

/// Keys that are remembered; of more the oldest is forgotten, and goes to any host again.
const KEYS_MAX: usize = 4096;

/// A program's name, and a sender's key.
type Keyed = (String, Vec<u8>);

/// The hosts that keys stay on.
#[derive(Debug, Default)]
pub struct KeyAffinity {
    hosts: BTreeMap<Keyed, String>,
    /// The oldest first.
    order: VecDeque<Keyed>,
}

impl KeyAffinity {
    /// The host to ask; `None`: any.
    #[must_use]
    pub fn find(&self, program: &str, key: &[u8]) -> Option<&str> {
        if key.is_empty() {
            return None;
        }
        self.hosts.get(&(program.to_owned(), key.to_owned())).map(String::as_str)
    }

    /// A host has answered.
    pub fn learn(&mut self, program: &str, key: &[u8], host: &str) {
        if key.is_empty() {
            return;
        }
        let keyed = (program.to_owned(), key.to_owned());
        if self.hosts.insert(keyed.clone(), host.to_owned()).is_none() {
            self.order.push_back(keyed);
        }
        if self.order.len() > KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.hosts.remove(&oldest);
        }
    }

    /// Its host offers the program no more.
    pub fn forget(&mut self, program: &str, key: &[u8]) {
        let keyed = (program.to_owned(), key.to_owned());
        if self.hosts.remove(&keyed).is_some() {
            self.order.retain(|each| *each != keyed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_host_that_answered_last_until_it_is_forgotten() {
        let mut affinity = KeyAffinity::default();
        affinity.learn("a", b"k", "web-1");
        affinity.learn("a", b"", "web-1");
        assert_eq!(affinity.find("a", b"k"), Some("web-1"));
        assert_eq!((affinity.find("b", b"k"), affinity.find("a", b"")), (None, None));
        affinity.learn("a", b"k", "web-2");
        assert_eq!(affinity.find("a", b"k"), Some("web-2"));
        affinity.forget("a", b"k");
        affinity.forget("a", b"never");
        assert_eq!(affinity.find("a", b"k"), None);
        assert!(affinity.order.is_empty() && affinity.hosts.is_empty());
    }

    #[test]
    fn of_too_many_keys_the_oldest_is_forgotten() {
        let mut affinity = KeyAffinity::default();
        for number in 0..=KEYS_MAX {
            affinity.learn("a", number.to_string().as_bytes(), "web-1");
        }
        assert_eq!(affinity.find("a", b"0"), None);
        assert_eq!(affinity.find("a", b"1"), Some("web-1"));
        assert_eq!(affinity.hosts.len(), KEYS_MAX);
    }
}
