//! The statistics of comparisons, in simulated machines.

mod chance;
mod looks;
mod runs;
