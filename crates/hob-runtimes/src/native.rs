//! The row of programs that are their own runtime: linked with `hob-worker`, they host handlers.

use crate::exec;
use crate::program::RuntimeId;
use crate::projects::Project;
use crate::row::{Handlers, Runtime};

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Native,
    name: "native",
    title: "a program linked with hob-worker",
    handlers: Handlers::Program,
    apps: &[],
    new: &NEW,
    ..exec::ROW
};

const NEW: [Project; 1] = [Project {
    kind: "actor",
    title: "a Rust program with an actor, and a test",
    files: &[
        ("Cargo.toml", include_str!("../../../runtimes/native/new/manifest.toml")),
        ("src/main.rs", include_str!("../../../runtimes/native/new/main.rs")),
    ],
    steps: &[("cargo run -- Ada Bob", "Build it and run it"), ("cargo test", "Test it")],
}];
