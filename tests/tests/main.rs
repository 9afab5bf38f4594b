//! The whole-system tests, in one binary.

#![expect(clippy::unwrap_used, reason = "in a test, what is not there is a failure of it")]

mod blobs;
mod browser;
mod callers;
mod chaos;
mod cli;
mod fallback;
mod fidelity;
mod guides;
mod hooks;
mod hosts;
mod java;
mod messages;
mod others;
mod ruby;
mod serve;
mod sessions;
mod verbs;
