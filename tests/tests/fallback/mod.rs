//! No worse than without hob: whatever is wrong with the daemon, the program runs.

mod caller;
mod daemon;
mod directory;
mod refused;
mod rights;
