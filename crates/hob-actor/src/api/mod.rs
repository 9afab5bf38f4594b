//! What users hold: actors, addresses, asks, replies and what a handler has at hand.

pub(crate) mod actor;
pub(crate) mod address;
pub(crate) mod asked;
pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod panic;
pub(crate) mod registry;
pub(crate) mod reply;
pub(crate) mod schedule;
