//! Hooks directories: which files run, how, what becomes of each, and what is left when something
//! goes wrong. Real processes, by the binary's own verbs.

mod adopt;
mod caller;
mod faults;
mod foreach;
mod front;
mod jvm;
mod jvm_faults;
mod reports;
mod semantics;
mod starts;
mod warm;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hob_tests::{Outcome, Run, World};
use serde_json::Value;

/// A hooks directory in a world of its own.
struct Hooks {
    world: World,
}

impl Hooks {
    /// An empty directory `d`, and nothing warm: no daemon is started.
    fn new() -> Hooks {
        let world = World::new();
        std::fs::create_dir(world.path("work/d")).unwrap();
        Hooks { world }
    }

    /// With these shell hooks: name and body.
    fn of(hooks: &[(&str, &str)]) -> Hooks {
        let made = Hooks::new();
        for (name, body) in hooks {
            made.hook(name, body);
        }
        made
    }

    /// Writes a shell hook.
    fn hook(&self, name: &str, body: &str) -> PathBuf {
        self.world.executable(&format!("d/{name}"), format!("#!/bin/sh\n{body}\n"))
    }

    /// `hob hooks run d` with more words.
    fn run(&self, words: &[&str]) -> Run {
        self.world.hob(&["hooks", "run", "d"]).args(words).env("HOB", "0")
    }

    /// The same with `--json`: how it ended, and the set's record.
    fn json(&self, words: &[&str]) -> (Outcome, Value) {
        let outcome = self.run(words).args(&["--json"]).go();
        let value = set_of(&outcome);
        (outcome, value)
    }

    /// A file in the working folder, as text.
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.world.path("work").join(name)).unwrap_or_default()
    }
}

fn set_of(outcome: &Outcome) -> Value {
    let value: Value =
        serde_json::from_slice(&outcome.out).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    assert_eq!(value["schema"], "hob.hooks/1");
    value["set"].clone()
}

/// What one stream of a hook wrote.
fn wrote<'a>(hook: &'a Value, stream: &str) -> &'a str {
    hook[stream]["head"].as_str().unwrap_or_else(|| panic!("{hook}"))
}

/// One field of every hook that ran.
fn each(set: &Value, field: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    set["hooks"].as_array().unwrap().iter().map(|hook| text(&hook[field])).collect()
}

fn name_of_bytes(bytes: &[u8]) -> &std::ffi::OsStr {
    std::ffi::OsStr::from_bytes(bytes)
}
