//! The house rules that a machine can check. Each finding names the file, the line and what to do
//! instead.
//!
//! Owns: the list of checks, and what they have found. Each check is a file of its own here.
//! Deliberately not here: what rustfmt, clippy, ruff and cargo-deny check already.

mod arrows;
mod bans;
mod cycles;
mod docs;
mod fidelity;
mod functions;
mod prose;
mod shape;
mod source;
mod tokens;
mod twice;
mod types;
mod words;

use std::path::Path;

use anyhow::Result;

use source::Source;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// How many files were looked at.
    pub(crate) files: usize,
    /// What fails.
    pub(crate) faults: Vec<String>,
    /// What is worth knowing.
    pub(crate) notes: Vec<String>,
}

impl Found {
    fn fault(&mut self, source: &Source, line: usize, text: &str) {
        self.faults.push(format!("{}:{line}: {text}", source.path));
    }
}

/// Checks the whole repository.
pub(crate) fn check(root: &Path) -> Result<Found> {
    let sources = source::walk(root)?;
    let mut found = Found { files: sources.len(), ..Found::default() };
    for source in &sources {
        shape::check(source, &mut found);
        words::check(source, &mut found);
        bans::check(source, &mut found);
        prose::check(source, &mut found);
    }
    shape::folders(&sources, &mut found);
    cycles::check(&sources, &mut found);
    functions::check(&sources, &mut found);
    types::check(&sources, &mut found);
    arrows::check(root, &mut found)?;
    docs::check(root, &sources, &mut found)?;
    twice::check(&sources, &mut found);
    fidelity::check(root, &sources, &mut found)?;
    found.faults.sort();
    found.notes.sort();
    Ok(found)
}
