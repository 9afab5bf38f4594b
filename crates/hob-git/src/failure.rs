//! Why there is no file.

use rustix::io::Errno;
use thiserror::Error;

/// Why there is no file. No text of these has a place of the file system in it: they are for the
/// client, whoever it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// What was asked for is no name; what is wrong with it.
    #[error("{0}")]
    Name(&'static str),
    /// There is none of what was asked for, or it may not be asked for.
    #[error("there is no such {0}")]
    Absent(&'static str),
    /// Object ids may not be asked for here.
    #[error("object ids are not served here: name a branch or a tag")]
    Ids,
    /// A tag and a branch have this name and differ.
    #[error("a tag and a branch have this name: say refs/tags/... or refs/heads/...")]
    Ambiguous,
    /// It is no file but something else, with its id.
    #[error("it is a {kind}: {id}")]
    NoFile {
        /// `directory` or `submodule`.
        kind: &'static str,
        /// Its object id, in hex.
        id: String,
    },
    /// The file has more bytes than are served.
    #[error("the file has {bytes} bytes, and {most} at most are served")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit `blob_mb`, in bytes.
        most: u64,
    },
    /// An object is missing or broken.
    #[error("the object {id} is {what}")]
    Object {
        /// Its id, in hex.
        id: String,
        /// `missing` or `broken`.
        what: &'static str,
    },
    /// The repository cannot be read, and why.
    #[error("the repository cannot be read: {0}")]
    Repository(&'static str),
    /// The repository belongs to a user who is not trusted. The client is told [`Failure::Absent`].
    #[error("the repository belongs to user {0}, who is not in `owners`")]
    Owner(u32),
    /// The system has no descriptors or memory left, or cannot read its disk.
    #[error("the file system gave an error")]
    System,
}

impl Failure {
    /// Whether what is on the disk may have changed since the repository was opened, so that it is
    /// worth another look.
    pub(crate) fn may_be_outdated(&self) -> bool {
        matches!(self, Failure::Absent(_) | Failure::Object { .. } | Failure::Repository(_))
    }
}

/// Whether the system lacks something, rather than what is read.
pub(crate) fn is_of_system(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO)
}

/// The failure of an error of a library's: of the system, if that is what is behind it.
pub(crate) fn behind(error: &(dyn std::error::Error + 'static), or: Failure) -> Failure {
    let mut next = Some(error);
    while let Some(error) = next {
        let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        if code.map(Errno::from_raw_os_error).is_some_and(is_of_system) {
            return Failure::System;
        }
        next = error.source();
    }
    or
}
