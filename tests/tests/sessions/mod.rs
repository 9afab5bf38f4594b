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

/// The `java` of PATH, whose best compiler is left out: a session of a test loads much and computes
/// little, and half of its time would be that compiler's.
const BRIEF: &str = "#!/bin/sh
exec \"$(PATH=${PATH#*:} command -v java)\" -XX:TieredStopAtLevel=1 \"$@\"
";

/// A call of hob in a world that has the language.
pub(crate) fn hob(world: &World, words: &[&str]) -> Run {
    let java = world.path("brief/java");
    if !java.exists() {
        world.executable("../brief/java", BRIEF);
    }
    let mut path = java.parent().expect("it has a folder").as_os_str().to_owned();
    for (_, usual) in world.environment().iter().filter(|(name, _)| name == "PATH") {
        path.push(":");
        path.push(usual);
    }
    world.hob(words).env("HOB_CLOJURE", libraries()).env("PATH", path)
}
