//! What sites were asked: sums of their mounts, and single requests.

pub mod mounts;
pub mod requests;
