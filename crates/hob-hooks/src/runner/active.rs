//! What a set is that has begun, and what its hook is doing. Deliberately not here: what makes it go
//! on (`sets.rs`), and what a hook that runs is (`running.rs`).

use hob_core::hooks::{HookOutcome, HookRecord, Reason, TimeLimits, Times};
use hob_wire::reply::RunCold;
use rustix::fd::OwnedFd;

use super::running::Running;
use crate::event::SetId;
use crate::listing::Listing;
use crate::set::Set;

/// A set that has begun and not ended.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) id: SetId,
    pub(super) set: Set,
    pub(super) listing: Listing,
    /// Of single hooks; what the set says is for all others.
    pub(super) limits: TimeLimits,
    /// The hook whose turn it is.
    pub(super) index: usize,
    pub(super) at_ns: u64,
    pub(super) outcome: HookOutcome,
    pub(super) records: Vec<HookRecord>,
    pub(super) hook: Hook,
    pub(super) cancelled: bool,
}

/// What the set's current hook is doing.
#[derive(Debug)]
pub(super) enum Hook {
    /// It is to be started now.
    Due,
    /// It is to be spawned now, after another way was tried.
    Again {
        /// When its turn came.
        since_ns: u64,
        /// Why not in the other way.
        reason: Reason,
        /// How a daemon wants it started.
        cold: Option<Box<Cold>>,
    },
    /// Its file was open for writing: it is started again later.
    Retry {
        /// When its turn came.
        since_ns: u64,
        /// When it is tried again.
        at_ns: u64,
        /// How often that was done.
        count: u32,
    },
    /// It runs.
    Running(Box<Running>),
}

/// What a daemon wants run in a hook's place.
#[derive(Debug)]
pub(super) struct Cold {
    pub(super) run: RunCold,
    /// Where its end is reported.
    pub(super) socket: OwnedFd,
}

impl Active {
    /// When it wants to be looked at.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        match &self.hook {
            Hook::Due | Hook::Again { .. } => None,
            Hook::Retry { at_ns, .. } => Some(*at_ns),
            Hook::Running(running) => running.deadline_ns(),
        }
    }

    /// What the current hook may take.
    pub(super) fn times(&self) -> Times {
        let (warn_after, kill_after) = (self.set.warn_after, self.set.kill_after);
        self.limits.of(self.name()).or(Times { warn_after, kill_after })
    }

    /// The name of the current hook.
    pub(super) fn name(&self) -> &[u8] {
        &self.listing.listed.hooks[self.index]
    }
}

/// The hook that runs in this place, if it is still that one.
pub(super) fn running_in(
    places: &mut [Option<Active>],
    place: usize,
    generation: u32,
) -> Option<(SetId, &mut Running)> {
    let active = places.get_mut(place)?.as_mut()?;
    match &mut active.hook {
        Hook::Running(running) if running.generation == generation => Some((active.id, running)),
        Hook::Running(_) | Hook::Due | Hook::Again { .. } | Hook::Retry { .. } => None,
    }
}

/// How a turn begins: since when, after how many tries, and what is known of the way.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) since_ns: u64,
    pub(super) retries: u32,
    pub(super) again: Option<Reason>,
}

impl Turn {
    pub(super) fn of(hook: &Hook, now_ns: u64) -> Turn {
        let (since_ns, retries, again) = match hook {
            Hook::Retry { since_ns, count, .. } => (*since_ns, *count, None),
            Hook::Again { since_ns, reason, .. } => (*since_ns, 0, Some(*reason)),
            Hook::Due | Hook::Running(_) => (now_ns, 0, None),
        };
        Turn { since_ns, retries, again }
    }
}
