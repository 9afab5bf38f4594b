//! Which hooks are started before their turn, and how one is taken when it comes.

use std::ffi::CStr;

use hob_core::hooks::Reason;
use hob_os::trace::Child;

use super::Runner;
use crate::event::SetId;
use crate::listing::{Identity, Listing};
use crate::set::{Isolation, Prestart, Set};
use crate::start::OurPipes;

/// How many hooks are held at most: a start takes a few times as long as what is left of a small
/// hook's run, and more would only take memory.
const DEPTH_MAX: usize = 4;

/// How many hooks are prestarted: as many as there are processors without a set of their own,
/// and the one that follows.
pub(super) fn depth(jobs: usize, prestart: Prestart) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match prestart {
        Prestart::Never => 0,
        Prestart::WhenIdle if jobs >= processors => 0,
        Prestart::WhenIdle => (processors - jobs + 1).min(DEPTH_MAX),
        Prestart::WhileIdle if processors < 2 => 0,
        Prestart::WhileIdle => processors.min(DEPTH_MAX),
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
    /// It is to be spawned, because of this.
    Spawn(Option<Reason>),
}

impl Runner {
    /// Begins to start the hooks that are next, and ends those that are not next any more;
    /// whether more is to be started as soon as nothing else happens.
    pub(super) fn plan_prestarts(&mut self) -> bool {
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
        // A set's next hooks, and then those of the sets that wait. Where all that runs is of the
        // same directory and not to be held, nor will they be, and need not be listed before.
        let missing = depth.saturating_sub(active);
        let mut dirs = Vec::new();
        for active in self.places.iter().flatten() {
            if !(0..active.listing.len()).any(|at| held(&active.set, &active.listing, at)) {
                dirs.push(active.set.dir.clone());
            }
        }
        for waiting in self.waiting.iter_mut().take(missing.max(1)) {
            let wanted = waiting.set.isolation == Isolation::Fastest;
            if waiting.listing.is_none() && wanted && !dirs.contains(&waiting.set.dir) {
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
        holders.want(&wanted)
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
            return Ready::Spawn(Some(Reason::SpawnAsked));
        }
        let Some(holders) = &mut self.holders else {
            return Ready::Spawn(Some(Reason::NoProcessor));
        };
        match holders.take(id, path) {
            None => Ready::Spawn(Some(Reason::First)),
            Some(Err(reason)) => Ready::Spawn(Some(reason)),
            Some(Ok(held)) => match held.release(script) {
                Ok((child, pipes)) => Ready::Runs(child, pipes),
                Err(reason) => Ready::Spawn(Some(reason)),
            },
        }
    }
}
