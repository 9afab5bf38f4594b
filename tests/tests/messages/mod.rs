//! Messages: asks and tells to handlers, by the daemon and on lanes.

mod asks;
mod counted;
mod dead;
mod ends;
mod fresh;
mod library;
mod logs;
mod memory;
mod native;
mod restarts;
mod tells;

use hob_tests::World;

/// A world whose work folder is a trusted project with one file of handlers.
pub(crate) fn project(handlers: &str, programs: &str) -> World {
    let world = World::new();
    world.file("handlers.py", handlers);
    trusted(&world, programs);
    world
}

/// Writes and trusts the project's `hob.toml`.
pub(crate) fn trusted(world: &World, programs: &str) {
    world.file("hob.toml", programs);
    world.hob(&["trust"]).go().succeeded();
}

/// What an ask is answered.
pub(crate) fn ask(world: &World, words: &[&str]) -> String {
    let outcome = world.hob(&["ask"]).args(words).go();
    outcome.succeeded();
    outcome.text()
}

/// A script of a sender that has hob's library.
pub(crate) fn python(world: &World, script: &str) -> hob_tests::Run {
    world.hob(&["start"]).go().succeeded();
    let path = world.file("sender.py", script);
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/python");
    world.run(&["python3".as_ref(), path.as_os_str()]).env("PYTHONPATH", library)
}

/// `[program.NAME]` of `handlers.py:FUNCTION`, with more lines.
pub(crate) fn program(name: &str, function: &str, more: &str) -> String {
    format!("[program.{name}]\nhandler = \"handlers.py:{function}\"\n{more}\n")
}
