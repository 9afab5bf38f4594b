//! Calls whose program has no warm state of its own yet, in copies of what is loaded below it.

mod bare;
mod installed;
