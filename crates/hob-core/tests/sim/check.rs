//! The invariants, after every step and at the end.

use hob_core::event::{Aim, Event, Pages, Took};
use hob_core::requests::Event as Told;
use hob_wire::exit::Exit;

use crate::perform::hold;
use crate::world::{Kind, World};

/// The views of pools are looked at every so many steps; they cost more than a step.
const VIEW_STEPS: u64 = 16;

impl World {
    /// What an event means to the world's own books, before the supervisor hears it.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Gone { worker, exit } => {
                self.handler_died(*worker, *exit);
                self.processes.remove(worker);
            }
            Event::ForkFailed { worker, .. } => {
                // The system refused, which ends like a signal.
                self.handler_died(*worker, Exit::Signal(9));
                self.processes.remove(worker);
            }
            Event::Ready { worker, .. } => self.handler_is_ready(*worker),
            Event::Request(Told::Unreached { unread: Some(call), .. }) => {
                self.request_is_unread(*call);
            }
            Event::Drain => self.draining = true,
            Event::Stale { program } => {
                let entry = self.programs.entry(*program).or_default();
                entry.told_generation += 1;
                entry.warm_measured = 0;
                entry.ends.clear();
            }
            Event::LoadsAnew { program } => {
                self.programs.entry(*program).or_default().warm_measured = 0;
            }
            Event::Measured { program, took: Took::Warm { .. } } => {
                self.programs.entry(*program).or_default().warm_measured += 1;
            }
            // An edit ends what was seen of a program, as a person's asking does.
            Event::Arrived(arrival) => {
                let entry = self.programs.entry(arrival.program).or_default();
                if arrival.aim == Aim::Prepare || entry.told_edition != arrival.work.edition {
                    entry.told_edition = arrival.work.edition;
                    entry.ends.clear();
                }
            }
            Event::Learned { .. }
            | Event::ZygoteReady { .. }
            | Event::Finished { .. }
            | Event::Executes { .. }
            | Event::Uncaught { .. }
            | Event::GiveFailed { .. }
            | Event::CallerGone { .. }
            | Event::TakenBack { .. }
            | Event::ColdEnded { .. }
            | Event::Measured { .. }
            | Event::Memory { .. }
            | Event::Request(_)
            | Event::Active
            | Event::Tick => {}
        }
    }

    pub(crate) fn check(&mut self) -> Result<(), String> {
        let counts = self.core.counts();
        self.most_open = self.most_open.max(counts.calls);
        let limits = &self.limits;
        hold!(counts.given <= limits.calls_max, "{} calls at once", counts.given);
        hold!(counts.queued <= limits.queue_max, "{} calls wait", counts.queued);
        // A handler is opened over the bound when all other pools are in use.
        let handlers = u32::try_from(self.scenario.handlers).expect("a small world");
        hold!(counts.pools <= limits.pools_max + handlers, "{} pools", counts.pools);
        hold!(counts.paying <= limits.refills_at_once, "{} copies pay", counts.paying);
        let starts = match self.scenario.handlers {
            0 => limits.starts_at_once,
            _ => limits.starts_at_once.max(limits.starts_waited_for),
        };
        hold!(counts.starting <= starts, "{} start", counts.starting);
        hold!(
            counts.programs <= limits.programs_max + limits.pools_max + self.most_open,
            "{} programs",
            counts.programs
        );
        hold!(
            counts.given + counts.queued + counts.cold + counts.preparing == counts.calls,
            "calls are lost: {counts:?}"
        );
        if self.at_once.is_empty() && !self.exited {
            let open = u32::try_from(self.open.len()).expect("a small world");
            let live = u32::try_from(self.processes.len()).expect("a small world");
            let requests = u32::try_from(self.handlers.open()).expect("a small world");
            hold!(counts.requests == requests, "{requests} requests are open, not {counts:?}");
            hold!(counts.calls == open, "{} calls are open, not {}", open, counts.calls);
            hold!(counts.workers == live, "{} processes live, not {}", live, counts.workers);
            if let Some(deadline) = self.core.next_deadline() {
                hold!(deadline > self.now, "the deadline {deadline:?} has passed");
            }
        }
        if self.totals.steps.is_multiple_of(VIEW_STEPS) {
            self.check_views()?;
        }
        Ok(())
    }

    fn check_views(&self) -> Result<(), String> {
        let pays = |process: &&crate::world::Process| {
            let copy = matches!(process.kind, Kind::Copy(_));
            let ends = process.told_to_end || process.killed || process.zygote_died;
            copy && process.pages == Pages::Paid
                && !process.was_ready
                && process.performed == 0
                && !ends
        };
        let paying = self.processes.values().filter(pays).count();
        let most = usize::try_from(self.limits.refills_at_once).expect("a small number");
        hold!(paying <= most, "{paying} copies pay at one time");
        self.check_handlers()?;
        let mut of_program = std::collections::BTreeMap::<_, u32>::new();
        for pool in self.core.pools().into_iter().filter(|pool| pool.program.is_some()) {
            let count = of_program.entry(pool.program).or_default();
            *count += 1;
            hold!(*count <= self.limits.program_pools_max, "{count} pools of {:?}", pool.program);
            let live = pool.idle + pool.starting + pool.busy;
            hold!(live <= self.limits.workers_max, "{live} workers in {pool:?}");
            hold!(pool.ahead <= self.limits.ahead_asked_max, "too far ahead: {pool:?}");
            if let Some(zygote) = pool.zygote {
                let process = self.processes.get(&zygote);
                hold!(process.is_some(), "the zygote of {pool:?} is gone");
            }
            hold!(
                pool.queued == 0 || pool.state == "ready" || pool.state == "standby",
                "calls wait for nothing: {pool:?}"
            );
        }
        Ok(())
    }

    /// After `Exit`: everything has ended.
    pub(crate) fn check_end(&self) -> Result<(), String> {
        hold!(self.handlers.open() == 0, "requests were never settled: {:?}", self.handlers);
        if let Some(call) = self.open.first() {
            return Err(format!("{call:?} was never settled: {:?}", self.callers[call]));
        }
        for (worker, process) in &self.processes {
            hold!(process.killed, "{worker:?} was left: {process:?}");
        }
        Ok(())
    }
}
