//! Open work: what a job is, who brought it, and what its receipt says.
//!
//! ```text
//!   origin ─▶ Job ─▶ Ledger, until its outcome is known ─▶ Receipts ─▶ the recorder
//! ```
//! | file | does |
//! |---|---|
//! | `origin` | who brings a job, and hears of its outcome |
//! | `job` | the one record of a piece of work, from its arrival until its receipt |
//! | `ledger` | the jobs without an outcome |
//! | `sampling` | which jobs leave a receipt, and for how many it stands |
//! | `receipts` | jobs with an outcome: what they wait for, and their receipts |
//!
//! Whoever adds a front adds a variant of [`Origin`](origin::Origin).

pub(crate) mod job;
pub(crate) mod ledger;
pub(crate) mod origin;
pub(crate) mod receipts;
mod sampling;
