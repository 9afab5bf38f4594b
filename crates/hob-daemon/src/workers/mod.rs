//! The processes of this daemon: how they are started, spoken to, measured and reaped.

pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod processes;
pub(crate) mod runtimes;
