//! Calls in the daemon: what is open of each, from its arrival until its receipt. What is decided
//! is `hob_core::calls`'.
//!
//! | file | does |
//! |---|---|
//! | `arrive` | facts about a call that came in; its key |
//! | `perform` | the core's effects |
//! | `workers` | what processes of programs say, and how they end |
//! | `callers` | what callers do after their call; what a learning run left |
//! | `ledger` | the calls that are open, and their receipts |

mod arrive;
mod callers;
mod gain;
pub(crate) mod ledger;
mod perform;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::limits::Limits;
use hob_os::clock;
use hob_os::process::limits;

use crate::around::Around;
use crate::ctx::Ctx;

use ledger::Ledger;
pub(crate) use perform::reason;

/// All that the loop holds for calls.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) ledger: Ledger,
    /// Workers whose process has ended and whose last words may not have been read yet.
    silences: HashMap<WorkerId, CallId>,
    /// Calls that may be complete when the core has heard of what has just happened.
    closing: Vec<CallId>,
    around: Arc<Around>,
    /// What this process may use: a call that has more runs cold.
    limits: [(u64, u64); 16],
    /// When a caller was last asked to start a daemon in this one's place.
    successor_at: Option<Time>,
    /// Where learning runs leave what they saw.
    directory: PathBuf,
    /// What decides when more is loaded ahead.
    bounds: Limits,
}

impl Calls {
    pub(crate) fn new(around: Arc<Around>, directory: PathBuf) -> Calls {
        Calls {
            ledger: Ledger::default(),
            silences: HashMap::new(),
            closing: Vec::new(),
            around,
            limits: limits::own(),
            successor_at: None,
            directory,
            bounds: Limits::default(),
        }
    }

    /// Writes the receipts of calls of which nothing is outstanding any more; whether there were
    /// any to look at.
    pub(crate) fn close_settled(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let closing = std::mem::take(&mut self.closing);
        for call in &closing {
            self.close(ctx, *call);
        }
        !closing.is_empty()
    }

    /// Writes the receipts of calls whose workers did not say in time what they used.
    pub(crate) fn close_overdue(&mut self, ctx: &mut Ctx<'_>) {
        let now = Time(clock::now_ns());
        while let Some((id, entry)) = self.ledger.close_overdue(now) {
            self.record(ctx, id, &entry);
        }
    }

    /// Writes the receipts of all settled calls with what is known of them: the daemon leaves, and
    /// hears neither of their callers nor of their workers any more.
    pub(crate) fn close_all_settled(&mut self, ctx: &mut Ctx<'_>) {
        for (id, entry) in self.ledger.close_settled() {
            self.record(ctx, id, &entry);
        }
    }
}
