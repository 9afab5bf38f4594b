//! Why nothing can run, in one line each: what happened, and why.
//!
//! `Display` is the text after `hob: `. The exit codes are those of a POSIX shell: 127 when there
//! is nothing to execute, 126 when there is something that cannot be executed. Names are shown
//! with escapes for what a terminal would obey, since a broken line may hold anything.

use hob_os::say::{Layout, escaped_bytes};
use rustix::io::Errno;

/// Why nothing can run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no program in argv.
    #[error("no program given")]
    NoProgram,
    /// `-m` without a name.
    #[error("-m: a module name is missing")]
    NoModule,
    /// No such file, or no such command on `PATH`.
    #[error("{}: not found", show(name))]
    NotFound {
        /// The name as given.
        name: Vec<u8>,
    },
    /// There is a file, but the caller may not execute it.
    #[error("{}: cannot execute: {why}", show(path))]
    NotExecutable {
        /// The file.
        path: Vec<u8>,
        /// The kernel's reason, or that it is no regular file.
        why: &'static str,
    },
    /// It is a directory.
    #[error("{}: is a directory", show(path))]
    IsDirectory {
        /// The directory.
        path: Vec<u8>,
    },
    /// A script that the caller may not read, or a path that cannot be walked.
    #[error("{}: cannot read: {}", show(path), say(*errno))]
    Unreadable {
        /// The file.
        path: Vec<u8>,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The first line names an interpreter that does not exist.
    #[error(
        "{}: its first line names `{}`, which does not exist{}",
        show(path),
        show(interpreter),
        hint(interpreter)
    )]
    BrokenShebang {
        /// The script.
        path: Vec<u8>,
        /// What its first line names.
        interpreter: Vec<u8>,
    },
}

impl ResolveError {
    /// What a shell would exit with.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            ResolveError::NoProgram | ResolveError::NoModule => 2,
            ResolveError::NotFound { .. } | ResolveError::BrokenShebang { .. } => 127,
            ResolveError::NotExecutable { .. }
            | ResolveError::IsDirectory { .. }
            | ResolveError::Unreadable { .. } => 126,
        }
    }
}

/// Bytes within a line: nothing of them is obeyed.
fn show(bytes: &[u8]) -> String {
    escaped_bytes(bytes, Layout::Within)
}

/// The text of an errno without the number that std appends.
fn say(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM => "permission denied",
        Errno::LOOP => "too many symbolic links",
        Errno::NAMETOOLONG => "the name is too long",
        Errno::IO => "input/output error",
        Errno::MFILE | Errno::NFILE => "too many open files",
        _ => "the system refuses it",
    }
}

/// What to do about the commonest broken line.
fn hint(interpreter: &[u8]) -> &'static str {
    if interpreter.ends_with(b"\r") {
        " (the file has Windows line ends; remove the carriage returns)"
    } else if interpreter.contains(&b' ') {
        " (more than one word after env needs `env -S`)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_line_and_commands_no_terminal() {
        let name = b"a\nb\x1b[8m\xff\xe2\x80\xae".to_vec();
        let told = ResolveError::NotFound { name }.to_string();
        assert_eq!(told, "a\\nb\\u{1b}[8m\\xff\\u{202e}: not found");
    }
}
