//! Small projects that run at once: what `hob new` makes.
//!
//! A project is of the row whose files it holds. Its files lie in the folder `new` of that language, and
//! are tested there or by whole-system tests as they are.

/// A small project that runs at once.
#[derive(Debug, Clone, Copy)]
pub struct Project {
    /// The word for it on the command line.
    pub kind: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Its files by their paths in it, and what is in them. One that begins with `#!` is executable.
    pub files: &'static [(&'static str, &'static str)],
    /// Command lines to go on with, and what they do.
    pub steps: &'static [(&'static str, &'static str)],
}

/// What stands for a project's name in its files and command lines.
pub const PLACEHOLDER: &str = "PROJECT";
