//! Sets: how one begins, goes from hook to hook, and ends.

use hob_core::hooks::{Bytes, HookOutcome, HookRecord, SetRecord};
use hob_os::clock;
use rustix::io;

use super::active::{Active, Hook};
use super::{Runner, Sink, Waiting, never_begun};
use crate::event::{Event, SetId};
use crate::listing::Listing;
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
        let idle = self.active().next().is_none();
        self.impatient &= !idle;
        // What begins now, and runs nothing before all of it has begun, finds the same.
        let mut listed: Option<(Set, Listing)> = None;
        while self.active().count() < self.limits.jobs {
            let Some(Waiting { id, set, .. }) = self.waiting.pop_front() else { break };
            let known = listed.as_ref().filter(|(other, _)| set.is_listed_as(other));
            let listing = match known {
                Some((_, listing)) => Ok(listing.clone()),
                None => Listing::read(set.place(), &set.dir.0, &set.ignored),
            };
            if let Ok(listing) = &listing
                && self.hooks_at_once().is_some()
                && known.is_none()
                && !self.waiting.is_empty()
            {
                listed = Some((set.clone(), listing.clone()));
            }
            self.begin_set(id, (set, listing), sink);
        }
    }

    fn begin_set(&mut self, id: SetId, (set, listing): (Set, io::Result<Listing>), sink: Sink<'_>) {
        let at_ns = clock::now_ns();
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) => {
                let text = std::io::Error::from(error);
                let message = format!("{}: cannot be listed: {text}", set.dir.text());
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
            index: 0,
            at_ns,
            outcome: HookOutcome::Ok,
            records: Vec::new(),
            hook: Hook::Due,
            due_ns: at_ns,
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

    /// Starts the hooks whose turn it is, where they take turns: of the sets that have come least
    /// far, so that sets which began together stay together.
    pub(super) fn start_due(&mut self, sink: Sink<'_>) {
        if !self.took_turns {
            return;
        }
        for place in 0..self.places.len() {
            let due = |active: &Active| active.cancelled && matches!(active.hook, Hook::Due);
            if self.places[place].as_ref().is_some_and(due) {
                self.end_set(place, sink);
            }
        }
        let waited_ns = self.patient_until_ns();
        self.impatient |= waited_ns.is_some_and(|until_ns| until_ns <= clock::now_ns());
        while self.running() < self.hooks_at_once().unwrap_or(usize::MAX) {
            let due = self.places.iter().enumerate().filter_map(|(place, active)| {
                let active = active.as_ref().filter(|active| matches!(active.hook, Hook::Due))?;
                Some((active.index, place))
            });
            let Some((_, place)) = due.min() else {
                self.took_turns = self.hooks_at_once().is_some();
                return;
            };
            if let Some(record) = self.start_hook(place, sink) {
                self.recorded(place, record, sink);
                self.go_on(place, sink);
            }
        }
    }

    /// How many hooks run at once of those that are due, where they take turns.
    pub(super) fn hooks_at_once(&self) -> Option<usize> {
        self.hooks_at_once.filter(|_| !self.impatient)
    }

    /// Until when those that are due wait for those that run: one that takes long is to keep no other
    /// waiting. `None`: none waits.
    pub(super) fn patient_until_ns(&self) -> Option<u64> {
        let due = |active: &Active| matches!(active.hook, Hook::Due);
        if !self.took_turns || !self.active().any(due) {
            return None;
        }
        let since = self.active().filter_map(|active| match &active.hook {
            Hook::Running(running) => Some(running.since_ns),
            Hook::Due | Hook::Again { .. } | Hook::Retry { .. } => None,
        });
        Some(since.min()?.saturating_add(self.patience_ns))
    }

    /// How many hooks run.
    pub(super) fn running(&self) -> usize {
        self.active().filter(|active| matches!(active.hook, Hook::Running(_))).count()
    }

    /// Starts the set's next hook, unless hooks take turns, or ends the set. A hook that cannot be
    /// started ends here too, so that this is a loop and no recursion.
    pub(super) fn go_on(&mut self, place: usize, sink: Sink<'_>) {
        loop {
            let Some(active) = &self.places[place] else { return };
            let stopped = active.cancelled || !active.outcome.goes_on();
            if stopped || active.index == active.listing.len() {
                return self.end_set(place, sink);
            }
            if self.hooks_at_once().is_some() && matches!(active.hook, Hook::Due) {
                return;
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
        (active.hook, active.due_ns) = (Hook::Due, clock::now_ns());
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
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

    use hob_core::hooks::SetRecord;

    use super::*;
    use crate::runner::Wait;
    use crate::set::{Limits, Variables};

    fn hook(dir: &Path, name: &str, script: &str) {
        let file = dir.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A runner with so many sets of this directory, each of which knows its number as `ME`, that
    /// have not begun.
    fn runner(dir: &Path, sets: usize) -> Runner {
        let mut runner = Runner::new(Limits { jobs: sets, ..Limits::default() }).unwrap();
        for me in 0..sets {
            let mut variables = Variables::default();
            variables.set(b"PATH", b"/usr/bin:/bin").unwrap();
            variables.set(b"ME", me.to_string().as_bytes()).unwrap();
            let set = Set::new(dir.to_str().unwrap().as_bytes(), &variables);
            let id = runner.shared().next_id();
            // What hangs is an error and not a test without an end.
            runner.take(id, Set { kill_after: Some(Duration::from_secs(60)), ..set });
        }
        runner
    }

    /// Works until everything has ended; what was started in which order, and what became of it.
    fn finish(
        runner: &mut Runner,
        mut see: impl FnMut(&Event<'_>),
    ) -> (Vec<String>, Vec<SetRecord>) {
        let (mut started, mut ended) = (Vec::new(), Vec::new());
        while !runner.is_idle() {
            runner
                .turn(Wait::Forever, &mut |event| {
                    see(&event);
                    match event {
                        Event::HookStarted { name, .. } => started.push(name.text().into_owned()),
                        Event::SetEnded(record) => ended.push(record),
                        Event::SetStarted { .. }
                        | Event::HookEnded { .. }
                        | Event::HookSlow { .. }
                        | Event::Output { .. }
                        | Event::Ready(_) => {}
                    }
                })
                .unwrap();
        }
        (started, ended)
    }

    #[test]
    fn hooks_that_take_turns_run_one_at_a_time_and_sets_stay_together() {
        let dir = tempfile::tempdir().unwrap();
        hook(dir.path(), "1", ":");
        hook(dir.path(), "2", ":");
        let mut runner = runner(dir.path(), 3);
        runner.run_at_once(Some(1));
        // However long one takes on this machine.
        runner.patience_ns = u64::MAX;
        let (mut runs, mut most) = (0, 0);
        let (started, ended) = finish(&mut runner, |event| {
            match event {
                Event::HookStarted { .. } => runs += 1,
                Event::HookEnded { .. } => runs -= 1,
                Event::SetStarted { .. }
                | Event::SetEnded(_)
                | Event::HookSlow { .. }
                | Event::Output { .. }
                | Event::Ready(_) => {}
            }
            most = most.max(runs);
        });
        assert_eq!((most, started), (1, ["1", "1", "1", "2", "2", "2"].map(str::to_owned).into()));
        assert!(ended.iter().all(|set| set.outcome == HookOutcome::Ok), "{ended:?}");
    }

    #[test]
    fn a_hook_that_takes_long_keeps_nobody_waiting_that_began_with_it() {
        let root = tempfile::tempdir().unwrap();
        let (dir, at) = (root.path().join("hooks"), root.path().display());
        std::fs::create_dir(&dir).unwrap();
        // The first waits for all the others, whose turn would come after its own.
        let waits = format!(
            "if [ $ME = 0 ]; then\n\
             until [ -e {at}/1 ] && [ -e {at}/2 ] && [ -e {at}/3 ]; do sleep 0.01; done\n\
             else : >{at}/$ME; fi"
        );
        hook(&dir, "1", ":");
        hook(&dir, "2", &waits);
        let mut runner = runner(&dir, 4);
        runner.run_at_once(Some(1));
        let (_, ended) = finish(&mut runner, |_| {});
        let outcomes: Vec<HookOutcome> = ended.iter().map(|set| set.outcome).collect();
        assert_eq!(outcomes, [HookOutcome::Ok; 4]);
        assert!(runner.hooks_at_once().is_none());
        // It is patient again with those that begin after these.
        runner.begin_sets(&mut |_| {});
        assert_eq!(runner.hooks_at_once(), Some(1));
    }

    #[test]
    fn sets_that_wait_for_a_turn_end_when_they_are_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        // What it says ends the turn that it began in.
        hook(dir.path(), "1", "echo; sleep 600");
        let mut runner = runner(dir.path(), 3);
        runner.run_at_once(Some(1));
        runner.patience_ns = u64::MAX;
        let mut started = 0;
        while started == 0 {
            runner
                .turn(Wait::Forever, &mut |event| {
                    started += usize::from(matches!(event, Event::HookStarted { .. }));
                })
                .unwrap();
        }
        runner.cancel_all(Duration::ZERO);
        let (later, ended) = finish(&mut runner, |_| {});
        assert!(later.len() + started < 3, "some waited: {started}, {later:?}");
        let outcomes: Vec<HookOutcome> = ended.iter().map(|set| set.outcome).collect();
        assert_eq!(outcomes, [HookOutcome::Cancelled; 3]);
    }

    /// How many hooks each of two sets has, if one is added when the first has begun.
    fn counted(hooks_at_once: Option<usize>) -> Vec<usize> {
        let dir = tempfile::tempdir().unwrap();
        hook(dir.path(), "1", ":");
        let mut runner = runner(dir.path(), 2);
        runner.run_at_once(hooks_at_once);
        let mut counts = Vec::new();
        finish(&mut runner, |event| {
            if let Event::SetStarted { hooks, .. } = event {
                counts.push(*hooks);
                hook(dir.path(), "2", ":");
            }
        });
        counts
    }

    #[test]
    fn sets_that_begin_together_find_the_same_and_one_after_another_what_is_there() {
        assert_eq!(counted(Some(1)), [1, 1]);
        assert_eq!(counted(None), [1, 2]);
    }
}
