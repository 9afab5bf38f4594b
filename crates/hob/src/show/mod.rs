//! What a person sees: receipts, lists of them, and the daemon's status, as text.
//!
//! Rendering is pure: data, a [`clock::Clock`] and a [`style::Look`] in, a `String` with line ends
//! out. Nothing here prints; [`entries::recent`] reads the disk, [`style::Look::of_stdout`] and
//! [`clock::Clock::now`] look around, and no other function does. Every text that came from a
//! program goes through [`text::printable`], so that a file name cannot command a terminal.
//!
//! What is text here may change at any time. Programs read the JSON ([`entries::Entry::json`],
//! `hob_core::status::Status`), which `docs/json.md` describes.

pub mod clock;
mod columns;
pub mod entries;
pub mod gain;
pub(crate) mod page;
pub mod reasons;
mod saved;
pub mod sites;
pub mod status;
pub mod style;
pub mod table;
pub mod text;
pub mod trace;
pub mod units;
pub mod waterfall;

#[cfg(test)]
pub(crate) mod samples;
