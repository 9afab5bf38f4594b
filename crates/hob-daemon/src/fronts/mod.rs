//! The fronts: each turns what its callers bring into a call, and its outcome back. None knows
//! what isolation is.

pub(crate) mod hooks;
pub(crate) mod local;
pub(crate) mod message;
