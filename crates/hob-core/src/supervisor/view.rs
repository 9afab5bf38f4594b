//! What `hob status` shows: pools and counts as they are now. Reads only.

use crate::ids::{PoolId, ProgramId, Time, WorkerId};
use crate::isolation::Recipe;
use crate::key::Key;
use crate::pool::{Mode, Pool};

use super::Supervisor;
use super::drain::Stage;
use super::tables::{CallState, Demotion};

/// One pool, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Its number.
    pub id: PoolId,
    /// Its program.
    pub program: ProgramId,
    /// Its key.
    pub key: Key,
    /// `waiting`, `warming`, `ready`, `standby` or `failed`.
    pub state: &'static str,
    /// How its workers are made.
    pub recipe: Recipe,
    /// Whether copies are made ahead of calls now.
    pub mode: Mode,
    /// Its zygote, ready or not.
    pub zygote: Option<WorkerId>,
    /// Workers that wait for a call.
    pub idle: u32,
    /// Workers that are not ready yet.
    pub starting: u32,
    /// Workers that perform a call.
    pub busy: u32,
    /// Calls that wait for a worker.
    pub queued: u32,
    /// How many workers are to wait.
    pub ahead: u32,
    /// Calls that came for it.
    pub calls: u64,
    /// When it was last used.
    pub last_used: Time,
    /// Its zygote and waiting workers, by the newest readings.
    pub kib: u64,
    /// Why its program is not forked, if it is not.
    pub demoted: Option<Demotion>,
}

/// How much there is of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that are not settled.
    pub calls: u32,
    /// Of them: with a worker.
    pub given: u32,
    /// Of them: waiting for one.
    pub queued: u32,
    /// Of them: run by their clients.
    pub cold: u32,
    /// Calls that were settled or refused since the start.
    pub settled: u64,
    /// Living processes: zygotes, copies, standbys.
    pub workers: u32,
    /// Copies that pay for their pages.
    pub paying: u32,
    /// Interpreters that start.
    pub starting: u32,
    /// Pools.
    pub pools: u32,
    /// Programs that are remembered.
    pub programs: u32,
    /// What all that waits occupied at the newest reading.
    pub held_kib: u64,
    /// Events that came too late to mean anything.
    pub ignored: u64,
}

impl Supervisor {
    /// Every pool, in order of their numbers.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolView> {
        self.pools.values().map(|pool| self.view(pool)).collect()
    }

    fn view(&self, pool: &Pool) -> PoolView {
        PoolView {
            id: pool.id,
            program: pool.program,
            key: pool.key,
            state: pool.state.code(),
            recipe: pool.recipe,
            mode: pool.mode(&self.limits, self.now),
            zygote: pool.zygote(),
            idle: pool.idle_count(),
            starting: pool.starting,
            busy: pool.busy,
            queued: count(pool.queue.len()),
            ahead: pool.target(&self.limits, self.now),
            calls: pool.calls,
            last_used: pool.last_used,
            kib: self.kib_of(pool.id),
            demoted: self.demotion(pool.program),
        }
    }

    /// Whether it stops, or has been told to exit: every new call runs cold.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stage != Stage::Open
    }

    /// How much there is of everything.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let cold = |state| match state {
            CallState::Cold { .. } => 1,
            CallState::Queued { .. } | CallState::Given { .. } => 0,
        };
        Counts {
            calls: count(self.calls.len()),
            given: self.given,
            queued: self.queued,
            cold: self.calls.values().map(|call| cold(call.state)).sum(),
            settled: self.settled,
            workers: count(self.workers.len()),
            paying: self.paying,
            starting: self.starting,
            pools: count(self.pools.len()),
            programs: count(self.programs.len()),
            held_kib: self.held_kib,
            ignored: self.ignored,
        }
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
