//! A warm call is the cold call: the same bytes, the same end.

mod afterfork;
mod context;
mod edits;
mod probes;
mod processors;
mod stale;
mod world;
