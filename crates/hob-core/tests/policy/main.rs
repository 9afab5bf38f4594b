//! The policy of the supervisor, as sentences: one small story each, told through the public
//! interface, with times that stand in the limits. What holds in every story is the simulation's
//! to find.
#![expect(clippy::wildcard_enum_match_arm, reason = "a story looks for the effects it is about")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod anything;
mod beside;
mod calls;
mod desk;
mod differs;
mod learning;
mod memory;
mod pace;
mod refill;
mod requests;
mod sessions;
mod stopping;
mod trouble;
mod warm;
