//! The table of runtimes: everything that hob must know of a language, beside the folder of that
//! language in `runtimes/`.
//!
//! Owns: the record of a program ([`Program`]), the closed list of runtimes ([`RuntimeId`]) and
//! one row of plain data and pure functions for each ([`Runtime`]). To add a language is to add
//! its folder and its row (`docs/add-a-runtime.md`).
//!
//! Invariants:
//! - no other crate names a language in its product code; `cargo xtask tidy` checks it.
//! - rows do no I/O, but for the version of an interpreter, which is read off names of files, or in
//!   the one that a JDK says it in.
//!
//! Deliberately not here: how a program is found (`hob-resolve`) and when it runs warm
//! (`hob-core`).
#![forbid(unsafe_code)]

mod exec;
mod jvm;
mod native;
mod program;
mod python;
mod ruby;
mod sessions;
mod table;

pub use program::{
    ColdNote, CommandLine, EnvChanges, Expanded, Expansion, Lookup, Program, Read, Start, Target,
    TargetKind, WorkingDirectory, Written,
};
pub use sessions::{
    Interpreter, Launcher, Libraries, NewProject, Resolve, Resolver, Session, Sessions, launched,
    session_language, with_sessions,
};
pub use table::{
    App, Environments, File, Files, Handlers, Home, Mode, Runtime, RuntimeId, Version, apps,
    by_interpreter, by_name, by_suffix, first_hosted, hosting_modules, rows,
};
