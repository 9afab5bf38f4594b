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
mod projects;
mod python;
mod row;
mod ruby;
mod sessions;
mod table;

pub use program::{
    ColdNote, CommandLine, EnvChanges, Expanded, Expansion, Lookup, Program, Read, RuntimeId,
    Start, Target, TargetKind, WorkingDirectory, Written,
};
pub use projects::{PLACEHOLDER, Project};
pub use row::{App, Environments, File, Files, Handlers, Home, Mode, Runtime, Version};
pub use sessions::{
    Interpreter, Launcher, Libraries, Resolve, Resolver, Session, Sessions, launched,
    session_language, with_sessions,
};
pub use table::{apps, by_interpreter, by_name, by_suffix, first_hosted, hosting_modules, rows};

/// Each small project that a row has.
pub fn projects() -> impl Iterator<Item = &'static Project> {
    let of_rows = rows().flat_map(|row| row.new);
    of_rows.chain(with_sessions().flat_map(|row| row.new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_projects_share_a_word_and_each_has_files_and_steps() {
        let kinds: Vec<&str> = projects().map(|project| project.kind).collect();
        let distinct: std::collections::BTreeSet<&&str> = kinds.iter().collect();
        assert_eq!(kinds.len(), distinct.len(), "{kinds:?}");
        for project in projects() {
            assert!(!project.files.is_empty() && !project.steps.is_empty(), "{}", project.kind);
        }
    }
}
