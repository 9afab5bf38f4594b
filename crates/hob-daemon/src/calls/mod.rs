//! Calls in the daemon: what is open of each, from its arrival until its receipt. What is decided
//! is `hob_core::calls`'.
//!
//! | file | does |
//! |---|---|
//! | `arrive` | a call that came in; what its caller does afterwards; what a learning run left |
//! | `facts` | what the plan decides by |
//! | `keys` | the keys of calls, and what zygotes of them are started from |
//! | `perform` | the core's effects |
//! | `workers` | what processes of programs say, and how they end |
//! | `ledger` | the calls that are open, and their receipts |

mod arrive;
mod facts;
mod gain;
mod keys;
pub(crate) mod ledger;
mod perform;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::HashMap;
use std::path::PathBuf;

use facts::Own;
use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::limits::Limits;
use ledger::Ledger;
pub(crate) use perform::{reason, start};

/// All that the loop holds for calls.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) ledger: Ledger,
    /// Workers whose process has ended and whose last words may not have been read yet.
    silences: HashMap<WorkerId, CallId>,
    /// Calls that may be complete when the core has heard of what has just happened.
    closing: Vec<CallId>,
    own: Own,
    /// When a caller was last asked to start a daemon in this one's place.
    successor_at: Option<Time>,
    /// Where learning runs leave what they saw.
    directory: PathBuf,
    /// What decides when more is loaded ahead.
    bounds: Limits,
}
