//! The row of what no runtime hosts: a program that is executed as it is. Also what rows share
//! that have no interpreter of their own.

use std::path::Path;

use crate::program::{ColdNote, CommandLine, Expansion, Lookup, Program, Read, RuntimeId, Start};
use crate::projects::Project;
use crate::row::{Files, Handlers, Mode, Runtime, Version};

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Exec,
    name: "exec",
    title: "a program that is executed",
    is_interpreter: no_name,
    suffixes: &[],
    has_bare: false,
    forks: true,
    learns: true,
    descriptors_from: None,
    takes_closed: false,
    held_below: 0,
    has_modules: false,
    commands: &[],
    environments: None,
    home: None,
    expand: no_files,
    parse: no_line,
    is_talking: no_variable,
    is_relative: nothing_relative,
    beside: &[],
    is_archive: no_archive,
    is_named: false,
    words: no_words,
    variables: &[],
    version: no_version,
    supported: (1, 0)..=(0, 0),
    files: &[],
    command: as_it_is,
    handlers: Handlers::No,
    apps: &[],
    new: &NEW,
};

/// Hooks are programs of any language.
const NEW: [Project; 1] = [Project {
    kind: "hooks",
    title: "a directory of hooks, and a table of targets",
    files: &[
        ("hooks/10-check", include_str!("../../../runtimes/exec/new/10-check")),
        ("hooks/20-greet", include_str!("../../../runtimes/exec/new/20-greet")),
        ("targets.csv", include_str!("../../../runtimes/exec/new/targets.csv")),
    ],
    steps: &[
        ("hob hooks list hooks", "Show what runs, in which order"),
        ("hob hooks run hooks --set NAME=Ada", "Run it once"),
        ("hob hooks run hooks --for-each targets.csv", "Run it for each row of the table"),
    ],
}];

pub(crate) fn no_name(_: &[u8]) -> bool {
    false
}

pub(crate) fn no_files(_: &[Vec<u8>], _: Read<'_>) -> Expansion {
    Ok(None)
}

pub(crate) fn no_line(_: &[Vec<u8>]) -> Result<CommandLine, ColdNote> {
    Err(ColdNote::UnknownOption)
}

pub(crate) fn no_variable(_: Lookup<'_>) -> bool {
    false
}

pub(crate) fn nothing_relative(_: &[Vec<u8>], _: Lookup<'_>) -> bool {
    false
}

pub(crate) fn no_archive(_: Start<'_>) -> bool {
    false
}

pub(crate) fn no_words(_: &Program) -> usize {
    0
}

pub(crate) fn no_version(_: &Path) -> Option<Version> {
    None
}

pub(crate) fn as_it_is(program: &Program, _: Files<'_>, _: Mode<'_>) -> Vec<Vec<u8>> {
    program.argv.clone()
}
