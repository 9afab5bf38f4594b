//! Programs of other hosts, over a real nats-server. Two private homes on this machine stand for two
//! hosts.

mod asks;
mod claims;
mod cuts;
mod faults;
mod foreign;
mod hooks;
mod many;
mod recipe;
mod secure;
mod seen;
mod server;
mod tells;
mod trails;

use hob_tests::{Outcome, World, wait};
use serde_json::Value;

pub(crate) use server::Server;

/// A host of this name that is configured for a server, with more lines in `[nats]`.
pub(crate) fn host(name: &str, url: &str, more: &str) -> World {
    let world = World::new();
    configured(&world, &format!("[nats]\nurl = \"{url}\"\nhost = \"{name}\"\n{more}\n"));
    world
}

/// Writes the user's configuration.
pub(crate) fn configured(world: &World, text: &str) {
    let directory = world.path("home").join(".config/hob");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), text).unwrap();
}

/// Writes and trusts a project in this host's working folder, and starts its daemon. `programs` are
/// lines of `hob.toml`.
pub(crate) fn project(world: &World, handlers: &str, programs: &str) {
    world.file("handlers.py", handlers);
    world.file("hob.toml", programs);
    world.hob(&["trust"]).go().succeeded();
    world.hob(&["start"]).go().succeeded();
}

/// `[program.NAME]` that other hosts may ask, of `handlers.py:FUNCTION`.
pub(crate) fn offered(name: &str, function: &str, more: &str) -> String {
    format!(
        "[program.{name}]\nhandler = \"handlers.py:{function}\"\noffered = true\n\
         version = \"1.2.0\"\n{more}\n"
    )
}

/// Asks, once a host offers the program: until then the answer is `no-host`.
pub(crate) fn ask(world: &World, words: &[&str]) -> Outcome {
    wait::until("a host that offers it", || {
        let outcome = world.hob(&["ask"]).args(words).go();
        let is_missing = outcome.complaint().contains("no other host offers it");
        (!is_missing).then_some(outcome)
    })
}

/// The newest receipt that fits.
pub(crate) fn receipt(world: &World, fits: impl Fn(&Value) -> bool) -> Value {
    wait::until("a receipt that fits", || world.records(100).into_iter().rev().find(&fits))
}

/// Waits until this host is connected, and offers so many programs.
pub(crate) fn connected(world: &World, offers: usize) {
    wait::until("a connection", || {
        let hosts = world.status()["hosts"].clone();
        let count = hosts["offered"].as_array().map_or(0, Vec::len);
        (hosts["connected"] == true && count == offers).then_some(())
    });
}
