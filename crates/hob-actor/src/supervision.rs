//! What becomes of an actor that fails, and of those beside it. Pure: failures and the time go in,
//! a verdict comes out.
//!
//! ```text
//!   failed ──within the intensity──▶ restart (One: it, All: its group, Rest: it and the later ones)
//!          └─more often than that──▶ escalate: the group's own group decides; without one, it ends
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::memory::parcel::Slot;
use crate::memory::when::{Millis, deadline_after};

/// Whom a failure restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The actor that failed.
    One,
    /// All of its group.
    All,
    /// It, and those that were spawned after it.
    Rest,
}

/// How a group of actors is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervision {
    scope: Scope,
    restarts_max: u32,
    within: Duration,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Supervision {
    /// Three restarts within five seconds, the first at once, then after pauses of 10 ms that
    /// double up to a second; one more failure escalates.
    #[must_use]
    pub fn of(scope: Scope) -> Supervision {
        Supervision {
            scope,
            restarts_max: 3,
            within: Duration::from_secs(5),
            first_pause: Duration::from_millis(10),
            longest_pause: Duration::from_secs(1),
        }
    }

    /// How many restarts within how long are borne.
    #[must_use]
    pub fn intensity(mut self, restarts_max: u32, within: Duration) -> Supervision {
        self.restarts_max = restarts_max;
        self.within = within;
        self
    }

    /// The pause before the second of a series of restarts, and what it doubles up to. The first
    /// is at once.
    #[must_use]
    pub fn back_off(mut self, first: Duration, longest: Duration) -> Supervision {
        self.first_pause = first;
        self.longest_pause = longest;
        self
    }
}

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Actor(Slot),
    Group(u32),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Restart {
        members: Vec<Member>,
        at: Millis,
    },
    Escalate,
    /// It is no member any more.
    Nothing,
}

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    rules: Supervision,
    /// In the order in which they were spawned.
    pub(crate) members: Vec<Member>,
    pub(crate) within: Option<u32>,
    recent: VecDeque<Millis>,
}

impl Group {
    pub(crate) fn new(rules: Supervision, within: Option<u32>) -> Group {
        Group { rules, members: Vec::new(), within, recent: VecDeque::new() }
    }

    /// A member failed.
    pub(crate) fn failed(&mut self, member: Member, now: Millis) -> Verdict {
        let Some(at) = self.members.iter().position(|other| *other == member) else {
            return Verdict::Nothing;
        };
        let span = deadline_after(0, self.rules.within);
        while self.recent.front().is_some_and(|&before| before.saturating_add(span) <= now) {
            self.recent.pop_front();
        }
        let before = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        if before >= self.rules.restarts_max {
            return Verdict::Escalate;
        }
        self.recent.push_back(now);
        let members = match self.rules.scope {
            Scope::One => vec![member],
            Scope::All => self.members.clone(),
            Scope::Rest => self.members[at..].to_vec(),
        };
        Verdict::Restart { members, at: deadline_after(now, self.pause(before)) }
    }

    fn pause(&self, before: u32) -> Duration {
        match before {
            0 => Duration::ZERO,
            n => {
                let doubled = self.rules.first_pause.checked_mul(1 << (n - 1).min(30));
                doubled.unwrap_or(Duration::MAX).min(self.rules.longest_pause)
            }
        }
    }

    /// A member has ended for good.
    pub(crate) fn forget(&mut self, member: Member) {
        self.members.retain(|other| *other != member);
    }

    /// A new beginning: what failed before no longer counts.
    pub(crate) fn reset(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(index: u32) -> Member {
        Member::Actor(Slot { index, generation: 1 })
    }

    fn group(scope: Scope) -> Group {
        let rules = Supervision::of(scope)
            .intensity(3, Duration::from_millis(100))
            .back_off(Duration::from_millis(10), Duration::from_millis(15));
        let mut group = Group::new(rules, None);
        group.members = vec![actor(1), actor(2), actor(3)];
        group
    }

    #[test]
    fn the_scope_says_who_is_restarted() {
        let check = |scope, expected: &[Member]| {
            let verdict = group(scope).failed(actor(2), 50);
            assert_eq!(verdict, Verdict::Restart { members: expected.to_vec(), at: 50 });
        };
        check(Scope::One, &[actor(2)]);
        check(Scope::Rest, &[actor(2), actor(3)]);
        check(Scope::All, &[actor(1), actor(2), actor(3)]);
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_too_many_failures_escalate() {
        let mut group = group(Scope::One);
        let mut at = |now| match group.failed(actor(1), now) {
            Verdict::Restart { at, .. } => Some(at - now),
            Verdict::Escalate => None,
            Verdict::Nothing => panic!("it is a member"),
        };
        assert_eq!([at(0), at(1), at(2), at(3)], [Some(0), Some(10), Some(15), None]);
        // The first two are long ago.
        assert_eq!(at(101), Some(10));
    }

    #[test]
    fn one_that_has_left_is_not_restarted() {
        let mut group = group(Scope::All);
        group.forget(actor(2));
        assert_eq!(group.failed(actor(2), 0), Verdict::Nothing);
    }
}
