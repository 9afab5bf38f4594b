//! Sets: how one begins, goes from hook to hook, and ends.

use hob_core::hooks::{Bytes, HookOutcome, HookRecord, SetRecord};
use hob_os::clock;

use super::active::{Active, Hook};
use super::{Runner, Sink, Waiting, never_begun};
use crate::event::{Event, SetId};
use crate::listing::{Listing, limits_of};
use crate::set::Set;

impl Runner {
    /// Begins sets while there are places for them, and ends those that were cancelled before.
    pub(super) fn begin_sets(&mut self, sink: Sink<'_>) {
        if self.draining || !self.given_up.is_empty() {
            let given_up = std::mem::take(&mut self.given_up);
            let at_us = self.micros(clock::now_ns());
            for waiting in std::mem::take(&mut self.waiting) {
                if self.draining || given_up.contains(&waiting.id) {
                    sink(Event::SetEnded(never_begun(waiting.id, &waiting.set, at_us)));
                } else {
                    self.waiting.push_back(waiting);
                }
            }
        }
        while self.active().count() < self.limits.jobs {
            let Some(Waiting { id, set, .. }) = self.waiting.pop_front() else { break };
            self.begin_set(id, set, sink);
        }
    }

    fn begin_set(&mut self, id: SetId, set: Set, sink: Sink<'_>) {
        let at_ns = clock::now_ns();
        let listing = Listing::read(set.place(), &set.dir.0, &set.ignored).map_err(|error| {
            let text = std::io::Error::from(error);
            format!("{}: cannot be listed: {text}", set.dir.text())
        });
        let limits = || limits_of(set.place(), &set.dir.0);
        let (listing, limits) = match listing.and_then(|listing| Ok((listing, limits()?))) {
            Ok(both) => both,
            Err(message) => {
                let record = SetRecord {
                    outcome: HookOutcome::SystemError,
                    message: Some(message),
                    ..never_begun(id, &set, self.micros(at_ns))
                };
                return sink(Event::SetEnded(record));
            }
        };
        sink(Event::SetStarted {
            set: id,
            target: &set.target,
            hooks: listing.len(),
            names: &listing.listed.hooks,
        });
        let active = Active {
            id,
            set,
            listing,
            limits,
            index: 0,
            at_ns,
            outcome: HookOutcome::Ok,
            records: Vec::new(),
            hook: Hook::Due,
            cancelled: false,
        };
        let place = match self.places.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.places.push(None);
                self.places.len() - 1
            }
        };
        self.places[place] = Some(active);
        self.go_on(place, sink);
    }

    /// Starts the set's next hook, or ends the set. A hook that cannot be started ends here too, so
    /// that this is a loop and no recursion.
    pub(super) fn go_on(&mut self, place: usize, sink: Sink<'_>) {
        loop {
            let Some(active) = &self.places[place] else { return };
            let stopped = active.cancelled || !active.outcome.goes_on();
            if stopped || active.index == active.listing.len() {
                return self.end_set(place, sink);
            }
            match self.start_hook(place, sink) {
                Some(record) => self.recorded(place, record, sink),
                None => return,
            }
        }
    }

    /// Keeps the record of the set's current hook.
    pub(super) fn recorded(&mut self, place: usize, record: HookRecord, sink: Sink<'_>) {
        let Some(active) = &mut self.places[place] else { return };
        sink(Event::HookEnded { set: active.id, record: &record });
        active.outcome = active.outcome.worst(record.outcome);
        active.records.push(record);
        active.index += 1;
        active.hook = Hook::Due;
    }

    fn end_set(&mut self, place: usize, sink: Sink<'_>) {
        let Some(active) = self.places[place].take() else { return };
        let now_ns = clock::now_ns();
        let outcome = if active.cancelled { HookOutcome::Cancelled } else { active.outcome };
        let rest = active.listing.listed.hooks.into_iter().skip(active.records.len());
        sink(Event::SetEnded(SetRecord {
            set: active.id.0,
            target: active.set.target,
            dir: active.set.dir,
            outcome,
            at_us: self.micros(active.at_ns),
            wall_us: now_ns.saturating_sub(active.at_ns) / 1000,
            hooks: active.records,
            not_run: rest.map(Bytes).collect(),
            message: None,
            host: None,
        }));
    }
}
