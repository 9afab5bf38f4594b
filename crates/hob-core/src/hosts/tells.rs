//! Tells to programs of other hosts: who owns one, and what becomes of it.
//!
//! ```text
//!   teller's outbox ─ the stream says that it has it ─▶ stream ─▶ a host performs it ─▶ done
//!        ▲      │ not kept: later again                 ▲    └ failed, or no room: again, later
//!        └──────┘                                       └────────────────┘   │ failed too often
//!                                                       that host's outbox: a dead letter
//! ```
//! Tells with a key go by a stream of their own, whose partitions are given one message at a time: the
//! teller says those of one key one after another, and all of them are of one partition.
//!
//! Invariants: a tell has one owner at each moment, and goes on only when the next one has said that
//! it has it. Said twice, it has the same id. Of one key none is performed before the one that was told
//! before it is done, or dead.

/// Tells of one program that a host has open at one time, and that a teller has on their way.
pub const WINDOW: usize = 64;
/// How many partitions a program may have.
pub const PARTITIONS_MAX: u32 = 256;
/// The messages that a program's stream keeps at most; above that its tellers keep them.
pub const MESSAGES_MAX: u64 = 1_000_000;
/// Their bytes at most.
pub const BYTES_MAX: u64 = 256 << 20;
/// For so long a stream's word is waited for, in µs. Then the tell is said again.
pub const KEPT_US: u64 = 10_000_000;

/// How long a message that failed once waits, and how long at most, in ms.
const AGAIN_MS_MIN: u64 = 1_000;
const AGAIN_MS_MAX: u64 = 60_000;

/// A tell on its way to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// Its id in the outbox.
    pub id: String,
    /// The program's name.
    pub program: String,
    /// Its sender's key; empty: it may be performed in any order.
    pub key: Vec<u8>,
    /// What the payload is.
    pub content_type: Vec<u8>,
    /// What is told.
    pub payload: Vec<u8>,
}

/// Why no stream has a tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotKept {
    /// A line for a person; empty where there is no stream.
    pub why: String,
    /// There is no stream for it.
    pub nobody: bool,
    /// None will ever take it.
    pub never: bool,
}

/// A tell that a stream has given to this host. Every field is what a stranger wrote, but the last
/// two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The program's name.
    pub program: String,
    /// Its id; empty where it has none.
    pub id: String,
    /// Who tells it: a host's name and a number; empty where that is not said.
    pub from: String,
    /// Its sender's key.
    pub key: Vec<u8>,
    /// What the payload is.
    pub content_type: Vec<u8>,
    /// What is told.
    pub payload: Vec<u8>,
    /// Where its end is said.
    pub ack: String,
    /// How often it was given to a host, this time included.
    pub delivered: u32,
}

/// What a host says of a tell that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is performed.
    Done,
    /// It is to be given again, to any host.
    Again {
        /// Not before so many ms.
        delay_ms: u64,
    },
    /// It is a dead letter of this host's now.
    Dead,
}

/// How a delivery has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was performed.
    Performed,
    /// Nobody has tried, and it is not the message's fault.
    NotTried,
    /// It has failed.
    Failed,
}

/// Why nobody has taken a tell that no stream takes, in a line for a person.
#[must_use]
pub fn nobody(has_key: bool) -> &'static str {
    if has_key {
        "no stream of the server takes it with a key: no host has offered it with `partitions` yet, or \
         JetStream is off"
    } else {
        "no stream of the server takes it: no host has offered it yet, or JetStream is off"
    }
}

/// How many of a program's partitions one of so many hosts has at most: none is left over.
#[must_use]
pub fn share(partitions: usize, hosts: usize) -> usize {
    partitions.div_ceil(hosts.max(1))
}

/// What becomes of it; `None`: it is a dead letter, which this host has to keep before it says so.
#[must_use]
pub fn settle(ended: Ended, delivered: u32, tries: u32) -> Option<End> {
    match ended {
        Ended::Performed => Some(End::Done),
        Ended::NotTried => Some(End::Again { delay_ms: AGAIN_MS_MIN }),
        Ended::Failed if delivered >= tries => None,
        Ended::Failed => Some(End::Again { delay_ms: delay_ms(delivered) }),
    }
}

/// How long a message waits that was given so often.
#[must_use]
pub fn delay_ms(delivered: u32) -> u64 {
    let doubled = delivered.saturating_sub(1).min(16);
    (AGAIN_MS_MIN << doubled).min(AGAIN_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_all_partitions_among_them_and_none_has_two_more_than_it_must() {
        for partitions in 1..=20 {
            for hosts in 0..=24 {
                let share = share(partitions, hosts);
                assert!(
                    share * hosts.max(1) >= partitions && (share - 1) * hosts.max(1) < partitions
                );
            }
        }
    }

    #[test]
    fn a_failed_one_waits_longer_each_time_and_is_dead_at_the_last() {
        let after = |delivered| settle(Ended::Failed, delivered, 8);
        assert_eq!(after(1), Some(End::Again { delay_ms: 1_000 }));
        assert_eq!(after(3), Some(End::Again { delay_ms: 4_000 }));
        assert_eq!(after(7), Some(End::Again { delay_ms: 60_000 }));
        assert_eq!((after(8), after(u32::MAX)), (None, None));
        // What nobody has tried does not die, however often that was.
        assert_eq!(settle(Ended::NotTried, 99, 8), Some(End::Again { delay_ms: 1_000 }));
        assert_eq!(settle(Ended::Performed, 99, 8), Some(End::Done));
    }
}
