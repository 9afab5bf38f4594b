//! Sessions with a real interpreter and the language's own jars: what evals keep, print and leave, what
//! ends a session, and what its clients are told.
//!
//! `.ci/deps` puts the jars under `target/tools/session`.

mod editor;
mod evals;
mod repl;
mod scripts;

use std::path::PathBuf;

use hob_tests::{Run, World};

/// The class path of a session.
pub(crate) fn libraries() -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/session");
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}; run `.ci/deps`", folder.display()));
    let jars = entries.flatten().map(|entry| entry.path());
    let jars = jars.filter(|path| path.extension().is_some_and(|end| end == "jar"));
    let jars: Vec<String> = jars.map(|path| path.display().to_string()).collect();
    assert!(jars.len() >= 3, "{}: {jars:?}", folder.display());
    jars.join(":")
}

/// A call of hob in a world that has the language.
pub(crate) fn hob(world: &World, words: &[&str]) -> Run {
    world.hob(words).env("HOB_CLOJURE", libraries())
}
