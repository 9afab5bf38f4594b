//! Numbers that name things, and the time. Newtypes, so that none can be taken for another.

use serde::{Deserialize, Serialize};

/// A moment: nanoseconds of the machine's monotonic clock. The core never reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The moment `micros` microseconds later.
    #[must_use]
    pub fn after_us(self, micros: u64) -> Time {
        Time(self.0.saturating_add(micros.saturating_mul(1000)))
    }

    /// Microseconds since `earlier`; 0 if that is later, since clocks of two processes may
    /// disagree by a little.
    #[must_use]
    pub fn us_since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0) / 1000
    }
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u64);

/// One program as it was resolved: the same script, interpreter and options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramId(pub u64);

/// What a call of a program has to do, as digests. Calls of the same work are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Work {
    /// Which file the program is by now: an edit makes another.
    pub edition: u64,
    /// Its arguments and its directory.
    pub task: u64,
}

/// One pool: the workers of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolId(pub u64);

/// One zygote or worker process that hob started or forked. Numbers are never used twice, so a
/// late message about a dead one cannot be taken for a new one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u64);

/// A worker that is lent to one sender of messages. Numbers are never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaneId(pub u64);
