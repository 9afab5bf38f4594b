//! The decisions of hob. Pure: no I/O, no clock (time is an argument), no locks, no async.
//!
//! The daemon turns what happens into an [`event::Event`], hands it to
//! [`supervisor::Supervisor::handle`] with the time, and performs the [`event::Effect`]s that come
//! back. To change *what hob decides*, change this crate; to change *how it is done*, never.
//!
//! Invariants (checked by `tests/sim` over a million calls in seeded worlds):
//! - a call is given at most once and settled exactly once;
//! - no worker and no lease is lost: each ends in `Gone`;
//! - every queue, pool and wait is bounded, and the bound has a name in [`limits::Limits`].
#![forbid(unsafe_code)]

pub mod calls;
pub mod event;
pub mod hooks;
pub mod hosts;
pub mod http;
pub mod ids;
pub mod isolation;
pub mod key;
pub mod limits;
pub mod log;
pub mod outcome;
pub mod phase;
pub mod plan;
pub mod pool;
pub mod receipt;
pub mod requests;
pub mod rights;
pub mod sessions;
pub mod span;
pub mod status;
pub mod supervisor;
pub mod terms;
