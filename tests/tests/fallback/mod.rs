//! No worse than without hob: whatever is wrong with the daemon, the program runs.

mod asks;
mod beyond;
mod caller;
mod daemon;
mod directory;
mod platforms;
mod refused;
mod rights;
mod sandbox;
