//! What the plan decides by: what of a caller's world a worker could take on, and what this process
//! itself may use.

use std::sync::Arc;

use hob_core::isolation::{Name, Origin};
use hob_core::plan::{
    Cgroup, ColdAsked, Context, Descriptors, Facts, HardLimits, Hosted, Priority, Terminal,
};
use hob_os::process::limits;
use hob_resolve::{Program, ResolveError};
use hob_wire::call::{Call, Isolation, World};
use hob_wire::exit::ExitCode;

use crate::around::{Around, Seen};
use crate::ctx::Ctx;

/// The place of the limit on open descriptors among all.
const NOFILE: usize = 7;
/// Numbers that a worker has for what it is given, and for its own, below and above the caller's.
const ROOM: u64 = 256;

/// The world of this process, which callers' worlds are compared with.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) around: Arc<Around>,
    /// What it may use: a call that has more runs cold.
    limits: [(u64, u64); 16],
}

impl Own {
    pub(super) fn new(around: Arc<Around>) -> Own {
        Own { around, limits: limits::own() }
    }

    /// What the plan decides by.
    pub(super) fn facts(
        &self,
        ctx: &mut Ctx<'_>,
        call: &Call,
        seen: &Seen,
        resolved: &Result<Program, ResolveError>,
    ) -> Facts {
        let above = |((_, hard), (_, own)): (&(u64, u64), &(u64, u64))| hard > own;
        Facts {
            hosted: match resolved {
                Ok(program) => ctx.warm.programs.hosted(program),
                Err(error) if error.exit_code() == ExitCode::NotFound as u8 => Hosted::NotFound,
                Err(_) => Hosted::NotExecutable,
            },
            origin: match resolved {
                Ok(program) if !program.row().forks => Origin::Exec,
                Ok(_) | Err(_) => Origin::Fork,
            },
            cold: if call.asked.cold { ColdAsked::Yes } else { ColdAsked::No },
            isolation: match call.asked.isolation {
                Isolation::Auto => None,
                Isolation::Spawn => Some(Name::Spawn),
                Isolation::Standby => Some(Name::Standby),
                Isolation::Fork => Some(Name::Fork),
            },
            context: self.around.context(&call.context, seen),
            cgroup: self.around.cgroup(seen),
            priority: self.around.priority(&call.world.priority),
            limits: if call.world.limits.iter().zip(&self.limits).any(above) {
                HardLimits::Above
            } else {
                HardLimits::Within
            },
            terminal: match call.terminal.session {
                0 => Terminal::Reached,
                session if ctx.processes.reaches(session) => Terminal::Reached,
                _ => Terminal::Unreached,
            },
            descriptors: if self.takes(resolved, call) {
                Descriptors::Standard
            } else {
                Descriptors::Beyond
            },
            ..Facts::default()
        }
    }

    /// Whether a daemon that this caller starts would be worse than this one in nothing, and better
    /// in what sends the call cold.
    pub(super) fn surpasses(&self, world: &World, seen: &Seen, facts: &Facts) -> bool {
        let is_bounded = facts.cgroup == Cgroup::Limited;
        let is_below = facts.priority == Priority::Above || facts.limits == HardLimits::Above;
        let reaches = |((_, hard), (_, own)): (&(u64, u64), &(u64, u64))| hard >= own;
        facts.context == Context::Equal
            && (is_bounded || is_below)
            && self.around.is_outranked(&world.priority)
            && world.limits.iter().zip(&self.limits).all(reaches)
            && (!is_bounded || self.around.is_freer(seen))
    }

    /// Whether a worker of the program would have the caller's descriptors, if these are more or
    /// fewer than 0 to 2.
    fn takes(&self, resolved: &Result<Program, ResolveError>, call: &Call) -> bool {
        if call.closed == 0 && call.beyond.is_empty() {
            return true;
        }
        let (_, most) = self.limits[NOFILE];
        let has_room =
            call.beyond.last().is_none_or(|last| u64::from(*last).max(ROOM) + ROOM <= most);
        let Ok(row) = resolved.as_ref().map(Program::row) else { return false };
        let above = |from| call.beyond.first().is_none_or(|first| *first >= from);
        has_room
            && (call.closed == 0 || row.takes_closed)
            && row.descriptors_from.is_some_and(above)
    }
}
