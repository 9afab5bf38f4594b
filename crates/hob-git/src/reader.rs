//! A reader: one thread's open repositories, and what it answers.

use std::sync::Arc;

use gix_hash::ObjectId;

use crate::cache::Blob;
use crate::identity::Identity;
use crate::repository::Repository;
use crate::store::Peeled;
use crate::{Failure, Root, names, place};

/// Repositories that one reader keeps open; the least recently used is closed.
const REPOSITORIES_MAX: usize = 128;
/// How often an object is looked for again that was not there: packs are replaced while one reads.
const AGAIN_MAX: usize = 2;

/// What is asked for, decoded.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The project: its directory's name, with or without `.git`.
    pub project: &'a [u8],
    /// `HEAD`, a full ref, a tag, a branch, or an object's whole id.
    pub rev: &'a [u8],
    /// The file's path.
    pub path: &'a [u8],
}

/// A file that was found, and not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The commit, in hex; `None`: the revision is a directory.
    pub commit: Option<String>,
    /// The file's object id, in hex.
    pub oid: String,
    /// What git says it is: 100644, 100755 or 120000, in octal.
    pub mode: u16,
    /// Whether it was asked for by an object's id, which always means the same.
    pub is_fixed: bool,
    /// Whether the path's file was kept.
    pub was_kept: bool,
    project: Vec<u8>,
    of: Identity,
    id: ObjectId,
}

/// One thread's reader.
pub struct Reader {
    root: Arc<Root>,
    /// The one used last is at the end.
    open: Vec<Repository>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("root", &self.root).field("open", &self.open.len()).finish()
    }
}

impl Reader {
    /// A reader with nothing open.
    #[must_use]
    pub fn new(root: Arc<Root>) -> Reader {
        Reader { root, open: Vec::new() }
    }

    /// Finds a file. Its ref is read now.
    ///
    /// # Errors
    /// Why there is none.
    pub fn locate(&mut self, asked: &Asked<'_>) -> Result<Located, Failure> {
        names::check_project(asked.project)?;
        names::check_rev(asked.rev)?;
        names::check_path(asked.path)?;
        let root = Arc::clone(&self.root);
        self.with(asked.project, None, |repository| find(repository, &root, asked))
    }

    /// Reads a file that this reader has found. Says whether its bytes were kept.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(&mut self, located: &Located) -> Result<(Blob, bool), Failure> {
        let (root, id) = (Arc::clone(&self.root), located.id);
        if let Some(blob) = root.kept.blob(located.of, id) {
            return Ok((blob, true));
        }
        let most = root.terms.blob_bytes;
        let bytes =
            self.with(&located.project, Some(located.of), |repository| repository.blob(id, most))?;
        let blob = Blob::new(bytes);
        root.kept.keep_blob(located.of, id, &blob);
        Ok((blob, false))
    }

    /// Does something with a project's repository, once more where that may be outdated.
    fn with<T>(
        &mut self,
        project: &[u8],
        of: Option<Identity>,
        mut what: impl FnMut(&mut Repository) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut left = AGAIN_MAX;
        loop {
            let mut repository = self.take(project, of)?;
            match what(&mut repository) {
                // It is dropped, and opened again.
                Err(failure) if failure.may_be_outdated() && left > 0 => left -= 1,
                result => {
                    if self.open.len() >= REPOSITORIES_MAX {
                        self.open.remove(0);
                    }
                    self.open.push(repository);
                    return result;
                }
            }
        }
    }

    /// Takes a project's repository, as it is now, out of those that are open, or opens it.
    fn take(&mut self, project: &[u8], of: Option<Identity>) -> Result<Repository, Failure> {
        let place = place::find(&self.root, project)?;
        if of.is_some_and(|of| of != place.identity) {
            return Err(Failure::Absent("project"));
        }
        let at = self.open.iter().rposition(|each| each.place.identity == place.identity);
        match at.map(|at| self.open.remove(at)) {
            Some(repository) if repository.is_current() => Ok(repository),
            Some(_) | None => Repository::open(place, &self.root),
        }
    }
}

fn find(repository: &mut Repository, root: &Root, asked: &Asked<'_>) -> Result<Located, Failure> {
    let of = repository.place.identity;
    let (id, is_fixed) = match repository.id(asked.rev) {
        Some(_) if !root.terms.oids() => return Err(Failure::Ids),
        Some(id) => (id, true),
        None => (named(repository, root, asked.rev)?, false),
    };
    // A commit's id is what most refs have, by which its path may be known.
    let kept = root.kept.file(of, id, asked.path);
    let was_kept = kept.is_some();
    let (commit, (mode, id)) = if let Some(file) = kept {
        (Some(id), file)
    } else {
        let peeled = repository.peel(id)?;
        let file = repository.walk(peeled, asked.path)?;
        if peeled.commit == Some(id) {
            root.kept.keep_file(of, id, asked.path, file);
        }
        (peeled.commit, file)
    };
    Ok(Located {
        commit: commit.map(|commit| commit.to_string()),
        oid: id.to_string(),
        mode,
        is_fixed,
        was_kept,
        project: asked.project.to_vec(),
        of,
        id,
    })
}

/// What a name points to: `HEAD`, a full ref, a tag or a branch.
fn named(repository: &mut Repository, root: &Root, rev: &[u8]) -> Result<ObjectId, Failure> {
    let absent = Failure::Absent("revision");
    if rev == b"HEAD" || rev.starts_with(b"refs/") {
        return repository.ref_of(rev, &root.terms)?.ok_or(absent);
    }
    let mut below = |folder: &[u8]| repository.ref_of(&[folder, rev].concat(), &root.terms);
    match (below(b"refs/tags/")?, below(b"refs/heads/")?) {
        (None, None) => Err(absent),
        (Some(id), None) | (None, Some(id)) => Ok(id),
        (Some(tag), Some(branch)) if tag == branch => Ok(branch),
        (Some(tag), Some(branch)) => {
            let same: [Peeled; 2] = [repository.peel(tag)?, repository.peel(branch)?];
            if same[0] == same[1] { Ok(branch) } else { Err(Failure::Ambiguous) }
        }
    }
}
