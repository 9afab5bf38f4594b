//! What a row of the table says of a runtime.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::program::{ColdNote, CommandLine, Expansion, Lookup, Program, Read, RuntimeId, Start};
use crate::projects::Project;

/// Major and minor version of an interpreter.
pub type Version = (u32, u32);

/// A file of a runtime: its path below the daemon's directory, and its bytes.
pub type File = (&'static str, &'static [u8]);

/// What an interpreter is started for.
#[derive(Debug, Clone, Copy)]
pub enum Mode<'a> {
    /// A zygote or standby; the channel is its descriptor 0.
    Serve,
    /// The same, for a handler: the program is the interpreter alone.
    Handler,
    /// A learning run, which leaves notes in this file. The client executes it in its own place.
    Learn(&'a [u8]),
}

/// Where a runtime's files are.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The directory that they were written to: a daemon's own.
    pub folder: &'a [u8],
    /// The directory where runtimes keep what they have compiled; empty: nowhere.
    pub bytecode: &'a [u8],
}

impl Files<'_> {
    /// The path of the file that a runtime's interpreters are started with.
    pub(crate) fn main(self, row: &Runtime) -> Vec<u8> {
        let name = row.main().unwrap_or_default();
        [self.folder, b"/", name.as_bytes()].concat()
    }
}

/// Where an interpreter is found for a program that names none, before `PATH` is searched.
#[derive(Debug, Clone, Copy)]
pub struct Environments {
    /// The variable that names the active environment.
    pub variable: &'static [u8],
    /// The directory beside or above a program that is one.
    pub beside: &'static [u8],
    /// The interpreter in it.
    pub interpreter: &'static [u8],
}

/// The directory that an interpreter belongs to, for commands that find it by a variable.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    /// The variable that names it.
    pub variable: &'static str,
    /// The home of an interpreter, by its real file.
    pub of: fn(&Path) -> Option<&Path>,
}

/// How a runtime hosts handlers of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handlers {
    /// It does not.
    No,
    /// `FILE:FUNCTION` in an interpreter.
    Function,
    /// The file is the worker.
    Program,
}

/// An interface of web apps, and the file that shows that a directory has such an app.
#[derive(Debug, Clone, Copy)]
pub struct App {
    /// Its name in `hob.toml`.
    pub interface: &'static str,
    /// The file's usual name.
    pub file: &'static str,
    /// What in the file is called, the first usual; none: the file itself.
    pub callables: &'static [&'static str],
    /// Whether its apps take WebSockets.
    pub websocket: bool,
    /// Whether a process of it has several requests at one time, where its mount says so.
    pub concurrent: bool,
}

/// What hob must know of a language.
#[derive(Debug)]
pub struct Runtime {
    /// Its place in the table.
    pub id: RuntimeId,
    /// Its name in receipts, `hob.toml` and `hob status`.
    pub name: &'static str,
    /// What people call it, with the versions that are hosted.
    pub title: &'static str,
    /// Whether a file of this name is its interpreter.
    pub is_interpreter: fn(&[u8]) -> bool,
    /// Ends of names that make a file its script.
    pub suffixes: &'static [&'static [u8]],
    /// Whether a copy of its bare interpreter, or of one with installed packages, can be told what to
    /// run.
    pub has_bare: bool,
    /// Whether a process that has loaded a program can be forked; else each call is given one of its
    /// own, which was started ahead.
    pub forks: bool,
    /// Whether a learning run tells what is to be loaded ahead; else each process finds it itself.
    pub learns: bool,
    /// From which number on its copies take a caller's descriptors beyond 0 to 2: below are the
    /// interpreter's own. A call with others runs cold, without a number one with any.
    pub descriptors_from: Option<u32>,
    /// Whether its copies have a standard stream closed where their caller has; else such a call runs
    /// cold.
    pub takes_closed: bool,
    /// Below which number its processes have nothing of their own open: when they start,
    /// `/dev/null` is there. 0: their own are where they come to be.
    pub held_below: u32,
    /// Whether it hosts modules by name (`-m NAME`).
    pub has_modules: bool,
    /// Names of its interpreter on `PATH`, the first preferred.
    pub commands: &'static [&'static [u8]],
    /// Where its interpreter is looked for before that.
    pub environments: Option<Environments>,
    /// How commands find its interpreter that do not look for it on `PATH`.
    pub home: Option<Home>,
    /// Puts the words of argument files in the place of their names, where the interpreter has such:
    /// `None` where the command line names none.
    pub expand: fn(&[Vec<u8>], Read<'_>) -> Expansion,
    /// Reads the words behind the interpreter's name.
    pub parse: fn(&[Vec<u8>]) -> Result<CommandLine, ColdNote>,
    /// Whether the environment makes the interpreter do in each run what a copy would do once.
    pub is_talking: fn(Lookup<'_>) -> bool,
    /// Whether options or environment name places relative to the working directory.
    pub is_relative: fn(&[Vec<u8>], Lookup<'_>) -> bool,
    /// Files beside the interpreter (relative to its directory) that decide what it finds.
    pub beside: &'static [&'static [u8]],
    /// Whether the interpreter would not read this as source.
    pub is_archive: fn(Start<'_>) -> bool,
    /// Whether the interpreter opens its script when it starts, and keeps its name: the name as the
    /// caller gives it is a part of the key then, and so is the directory where it is relative.
    pub is_named: bool,
    /// How many of a program's arguments decide what it loads (`bundle exec NAME`): they are part of
    /// the key, and its zygotes are told them.
    pub words: fn(&Program) -> usize,
    /// Variables that are part of each of its keys; a last `*` makes it a family.
    pub variables: &'static [&'static str],
    /// The version of an interpreter, by its real file. `None`: it cannot be told.
    pub version: fn(&Path) -> Option<Version>,
    /// The versions that are hosted.
    pub supported: RangeInclusive<Version>,
    /// Its files, the one that interpreters are started with last.
    pub files: &'static [File],
    /// The argv of an interpreter that begins with the runtime.
    pub command: fn(&Program, Files<'_>, Mode<'_>) -> Vec<Vec<u8>>,
    /// How it hosts handlers.
    pub handlers: Handlers,
    /// The web apps that it hosts, the most telling file first.
    pub apps: &'static [App],
    /// What `hob new` makes of it.
    pub new: &'static [Project],
}

impl Runtime {
    /// The file that interpreters are started with, below the daemon's directory.
    #[must_use]
    pub fn main(&self) -> Option<&'static str> {
        self.files.last().map(|(name, _)| *name)
    }

    /// Whether this version is hosted.
    #[must_use]
    pub fn supports(&self, version: Option<Version>) -> bool {
        version.is_some_and(|version| self.supported.contains(&version))
    }
}
