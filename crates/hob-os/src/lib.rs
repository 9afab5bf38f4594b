//! The kernel, as hob needs it. Mechanism only: no policy, no frames, nothing else of ours.
//!
//! Each `unsafe` block says why it is sound. The list of modules is the map
//! of what hob asks of Linux.

pub mod arena;
pub mod build_id;
pub mod claim;
pub mod clock;
pub mod dir;
pub mod log;
pub mod look;
pub mod process;
pub mod ring;
pub mod say;
pub mod signals;
pub mod spawn;
pub mod start;
pub mod surroundings;
pub mod tally;
pub mod trace;
pub mod uds;
