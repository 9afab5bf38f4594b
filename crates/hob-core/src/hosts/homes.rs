//! Where asks with a key go: to the host that has answered the one before, for as long as it offers the
//! program. What a session of a key has in memory is there, and nowhere else.

use std::collections::{BTreeMap, VecDeque};

/// Keys that are remembered; of more the oldest is forgotten, and goes to any host again.
const HOMES_MAX: usize = 4096;

/// A program's name, and a sender's key.
type Keyed = (String, Vec<u8>);

/// The hosts of keys.
#[derive(Debug, Default)]
pub struct Homes {
    hosts: BTreeMap<Keyed, String>,
    /// The oldest first.
    order: VecDeque<Keyed>,
}

impl Homes {
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
        if self.order.len() > HOMES_MAX
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
        let mut homes = Homes::default();
        homes.learn("a", b"k", "web-1");
        homes.learn("a", b"", "web-1");
        assert_eq!(homes.find("a", b"k"), Some("web-1"));
        assert_eq!((homes.find("b", b"k"), homes.find("a", b"")), (None, None));
        homes.learn("a", b"k", "web-2");
        assert_eq!(homes.find("a", b"k"), Some("web-2"));
        homes.forget("a", b"k");
        homes.forget("a", b"never");
        assert_eq!(homes.find("a", b"k"), None);
        assert!(homes.order.is_empty() && homes.hosts.is_empty());
    }

    #[test]
    fn of_too_many_keys_the_oldest_is_forgotten() {
        let mut homes = Homes::default();
        for number in 0..=HOMES_MAX {
            homes.learn("a", number.to_string().as_bytes(), "web-1");
        }
        assert_eq!(homes.find("a", b"0"), None);
        assert_eq!(homes.find("a", b"1"), Some("web-1"));
        assert_eq!(homes.hosts.len(), HOMES_MAX);
    }
}
