//! A warm call is the cold call: the same bytes, the same end.

mod afterfork;
mod context;
mod differs;
mod edits;
mod imports;
mod probes;
mod processors;
mod reads;
mod stale;
mod suites;
mod world;
