//! Which hooks are started before their turn, and how one is taken when it comes.

use std::collections::VecDeque;
use std::ffi::CStr;

use hob_core::hooks::Reason;
use hob_os::vfork::Child;

use super::sets::{Active, Hook};
use super::{Runner, Waiting};
use crate::event::SetId;
use crate::listing::{Identity, Listing};
use crate::set::{Isolation, Set, StartAhead};
use crate::start::OurPipes;

/// How many hooks are held at most: a start takes a few times as long as what is left of a small
/// hook's run, and more would only take memory.
const DEPTH_MAX: usize = 4;

/// How many hooks are started ahead: as many as there are processors without a set of their own,
/// and the one that follows.
pub(super) fn depth(jobs: usize, ahead: StartAhead) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match ahead {
        StartAhead::Never => 0,
        StartAhead::WhenIdle if jobs >= processors => 0,
        StartAhead::WhenIdle => (processors - jobs + 1).min(DEPTH_MAX),
        StartAhead::WhileIdle if processors < 2 => 0,
        StartAhead::WhileIdle => processors.min(DEPTH_MAX),
    }
}

/// How many of them at this moment, with so many sets active on so many processors.
fn depth_now(depth: usize, active: usize, processors: usize) -> usize {
    if active >= processors { 0 } else { depth.min(processors - active.max(1) + 1) }
}

/// What there is of a hook whose turn has come.
pub(super) enum Ready {
    /// It runs.
    Runs(Child, OurPipes),
    /// It is to be started afresh, because of this.
    Afresh(Option<Reason>),
}

impl Runner {
    /// Begins to start the hooks that are next, and ends those that are not next any more;
    /// whether more is to be started as soon as nothing else happens.
    pub(super) fn plan_ahead(&mut self) -> bool {
        let Some(holders) = &mut self.holders else { return false };
        let active = self.places.iter().flatten().count();
        let depth = match self.processors {
            Some(processors) => depth_now(holders.depth(), active, processors),
            None => holders.depth(),
        };
        let warm = &mut self.warm;
        let zygotes = &self.zygotes;
        // Those that the daemon performs, and those that are forked, are not held.
        let mut held = |set: &Set, listing: &Listing, index: usize| {
            let Some(identity) = listing.identity(index) else { return true };
            let path = || set.path(&listing.listed.hooks[index]);
            !zygotes.hosts(identity)
                && !warm.as_mut().is_some_and(|warm| warm.hosts(set, &path(), identity))
        };
        // A set's next hooks, and then those of the sets that wait.
        let missing = depth.saturating_sub(active);
        for waiting in self.waiting.iter_mut().take(missing.max(1)) {
            if waiting.listing.is_none() && waiting.set.isolation == Isolation::Fastest {
                let set = &waiting.set;
                // What cannot be listed now is listed when its turn comes, and said then.
                waiting.listing =
                    Some(Listing::read(set.place(), &set.dir.0, &set.ignored).unwrap_or_default());
            }
        }
        let mut wanted: Vec<(SetId, &Set, &[u8])> = Vec::with_capacity(depth);
        for distance in 0..depth {
            for active in self.places.iter().flatten() {
                let at = active.index + 1 + distance;
                let goes_on = !active.cancelled && active.set.isolation == Isolation::Fastest;
                if let Some(name) = active.listing.listed.hooks.get(at).filter(|_| goes_on)
                    && wanted.len() < depth
                    && held(&active.set, &active.listing, at)
                {
                    wanted.push((active.id, &active.set, name));
                }
            }
        }
        for waiting in self.waiting.iter().filter(|_| !self.draining) {
            let Some(listing) = &waiting.listing else { break };
            for (at, name) in listing.listed.hooks.iter().enumerate() {
                if wanted.len() < depth && held(&waiting.set, listing, at) {
                    wanted.push((waiting.id, &waiting.set, name));
                }
            }
        }
        let more = holders.want(&wanted);
        let next = if depth > 0 { next_alone(&self.places, &self.waiting) } else { None };
        self.zygotes.want(next.filter(|_| !self.draining), &self.null);
        more
    }

    /// Takes a hook whose turn has come from where it is held.
    pub(super) fn take_held(
        &mut self,
        id: SetId,
        set: &Set,
        path: &CStr,
        script: Option<Identity>,
    ) -> Ready {
        if set.isolation == Isolation::Spawn {
            return Ready::Afresh(Some(Reason::SpawnAsked));
        }
        let Some(holders) = &mut self.holders else {
            return Ready::Afresh(Some(Reason::NoProcessor));
        };
        match holders.take(id, path) {
            None => Ready::Afresh(Some(Reason::First)),
            Some(Err(reason)) => Ready::Afresh(Some(reason)),
            Some(Ok(held)) => match held.release(script) {
                Ok((child, pipes)) => Ready::Runs(child, pipes),
                Err(reason) => Ready::Afresh(Some(reason)),
            },
        }
    }
}

/// The hook that follows the one that runs, if one set is at work: its own next one, or the first
/// one of the set that waits.
fn next_alone<'a>(
    places: &'a [Option<Active>],
    waiting: &'a VecDeque<Waiting>,
) -> Option<(SetId, &'a Set, &'a [u8])> {
    let mut all = places.iter().flatten();
    let (active, None) = (all.next()?, all.next()) else { return None };
    if active.cancelled || !matches!(active.hook, Hook::Running(_)) {
        return None;
    }
    let (id, set, name) = match active.listing.listed.hooks.get(active.index + 1) {
        Some(name) => (active.id, &active.set, name),
        None => {
            let waiting = waiting.front()?;
            (waiting.id, &waiting.set, waiting.listing.as_ref()?.listed.hooks.first()?)
        }
    };
    (set.isolation == Isolation::Fastest).then_some((id, set, &name[..]))
}
