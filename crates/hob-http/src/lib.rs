//! The HTTP front: it listens, routes by prefix, serves files and repositories, and gives an app's requests to the
//! loop that has the pools.
//!
//! ```text
//!   connections ─▶ listen ─▶ answer ─┬─▶ files                     (static mounts)
//!                                    ├─▶ blobs ─▶ readers         (mounts of the kind git)
//!                  checked   route   └─▶ upload ─▶ link ─▶ loop ─▶ worker
//!                                                 │
//!                  log ◀── status, bytes ◀── answer, stream ◀┤
//!                meter ◀── times, failures    websocket ◀───┘
//!   control, metrics ──▶ whoever runs the site
//! ```
//! Invariants: it knows no isolation and no language; what it decides of a request (prefix, limits,
//! refusal) is decided by `hob_core::http`; a request is given to the loop once, whole; no app is
//! asked for a request that breaks a rule; the memory of a request is bounded, whatever its body is.
#![forbid(unsafe_code)]

mod answer;
mod blobs;
mod body;
pub mod client;
mod connection;
mod control;
mod files;
mod hijack;
mod http2;
mod link;
mod listen;
mod log;
pub mod rights;
mod session;
mod spill;
mod stream;
mod upload;
mod websocket;

pub use connection::socket::Listener;
pub use control::Control;
pub use hob_git::{Pattern, Terms};
pub use listen::{Mount, Site, run};
pub use log::{Format, LogFile, Logs};
