//! Ruby through the whole system: scripts, commands, hooks and handlers, warm as cold.

mod commands;
mod handlers;
mod scripts;
mod stale;
