//! A directory with repositories, and on what terms they are read.

use std::path::PathBuf;

use crate::Pattern;
use crate::cache::Kept;

/// On what terms repositories are read.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Which refs may be named; `None`: heads, tags and `HEAD`.
    pub refs: Option<Vec<Pattern>>,
    /// Whether object ids may be named, which reach what no ref has any more; `None`: if `refs` is
    /// `None`.
    pub oids: Option<bool>,
    /// The users, besides the one who runs this, whose repositories are read.
    pub owners: Vec<u32>,
    /// The most bytes of a file.
    pub blob_bytes: u64,
    /// The bytes that are kept of files and paths, about.
    pub cache_bytes: u64,
}

impl Terms {
    pub(crate) fn oids(&self) -> bool {
        self.oids.unwrap_or(self.refs.is_none())
    }

    /// Whether a ref of this full name may be named, or be what a symbolic one stands for.
    pub(crate) fn allows(&self, name: &[u8]) -> bool {
        match &self.refs {
            None => {
                name == b"HEAD"
                    || name.starts_with(b"refs/heads/")
                    || name.starts_with(b"refs/tags/")
            }
            Some(patterns) => patterns.iter().any(|pattern| pattern.allows(name)),
        }
    }
}

/// A directory with repositories. All its readers share what is kept.
#[derive(Debug)]
pub struct Root {
    pub(crate) path: PathBuf,
    pub(crate) terms: Terms,
    pub(crate) kept: Kept,
}

impl Root {
    /// Of an absolute path; nothing is opened yet.
    #[must_use]
    pub fn new(path: PathBuf, terms: Terms) -> Root {
        let kept = Kept::new(terms.cache_bytes);
        Root { path, terms, kept }
    }
}
