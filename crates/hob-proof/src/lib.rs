//! Proof that one thing takes longer than another, with a known rate of error, on a machine that
//! others use too. Pure but for the seed of a [`coin`]: the times, what the coin said and the number
//! of the pair are arguments.
//!
//! ```text
//!   pairs: A and B, one after the other, a fair coin says which is first
//!      ─▶ d = ln(B/A) of each ─▶ score: estimate and interval ─▶ looks: decided, or go on
//! ```
//! The coin is what makes it right: if A and B are the same, the sign of each `d` is a fair coin,
//! whatever drifts, comes in bursts or depends on the run before.
//!
//! Invariants (held by `tests/proof/looks.rs`, in simulated machines with drift and bursts): A against A
//! is called different in at most 5 of 100 series; an interval covers the truth in about 95. Of runs of
//! many cells (`runs`, held by `tests/proof/runs.rs`): at most 5 of 100 that are as those before have a cell
//! that is called slower.

#![forbid(unsafe_code)]

pub mod coin;
pub mod looks;
pub mod many;
pub mod normal;
pub mod runs;
pub mod score;
pub mod series;
