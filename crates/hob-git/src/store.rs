//! Objects: bounded before they are decoded, and held against their ids behind it.

use gix_hash::ObjectId;
use gix_object::{Find as _, FindHeader as _, Kind, TreeRefIter};

use crate::Failure;
use crate::cache::File;
use crate::failure::behind;
use crate::repository::Repository;

/// The most bytes of a commit, a tag or a directory.
const OTHER_BYTES_MAX: u64 = 64 << 20;
/// Tags that point to tags and are followed.
const TAGS_MAX: usize = 16;

/// What a revision is, with its tags taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peeled {
    /// The commit, if it is one.
    pub(crate) commit: Option<ObjectId>,
    /// The commit, or the directory if there is none: by this a path's file is known.
    pub(crate) id: ObjectId,
    /// Its directory.
    tree: ObjectId,
}

impl Repository {
    /// An object's kind and bytes, which are in `buffer` then.
    fn object(&self, id: ObjectId, most: u64, buffer: &mut Vec<u8>) -> Result<Kind, Failure> {
        let found = self.objects.try_header(&id).map_err(|error| broken(id, &error))?;
        let header = found.ok_or_else(|| object(id, "missing"))?;
        if header.size > most {
            return Err(match header.kind {
                Kind::Blob => Failure::TooLarge { bytes: header.size, most },
                Kind::Tree | Kind::Commit | Kind::Tag => object(id, "too large"),
            });
        }
        let found = self.objects.try_find(&id, buffer).map_err(|error| broken(id, &error))?;
        let data = found.ok_or_else(|| object(id, "missing"))?;
        let kind = data.kind;
        let hash = gix_object::compute_hash(self.hash, kind, data.data);
        if hash.ok() != Some(id) {
            return Err(object(id, "broken"));
        }
        Ok(kind)
    }

    /// The bytes of a file.
    pub(crate) fn blob(&self, id: ObjectId, most: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        match self.object(id, most, &mut bytes)? {
            Kind::Blob => Ok(bytes),
            Kind::Tree | Kind::Commit | Kind::Tag => Err(object(id, "broken")),
        }
    }

    /// What a revision is in the end.
    pub(crate) fn peel(&self, of: ObjectId) -> Result<Peeled, Failure> {
        let (mut id, mut buffer) = (of, Vec::new());
        for _ in 0..=TAGS_MAX {
            let kind = self.object(id, OTHER_BYTES_MAX, &mut buffer)?;
            match kind {
                Kind::Tree => return Ok(Peeled { commit: None, id, tree: id }),
                Kind::Commit => {
                    let mut commit = gix_object::CommitRefIter::from_bytes(&buffer, self.hash);
                    let tree = commit.tree_id().map_err(|_| object(id, "broken"))?;
                    return Ok(Peeled { commit: Some(id), id, tree });
                }
                Kind::Tag => {
                    let tag = gix_object::TagRefIter::from_bytes(&buffer, self.hash);
                    id = tag.target_id().map_err(|_| object(id, "broken"))?;
                }
                Kind::Blob => return Err(Failure::Absent("revision with files")),
            }
        }
        Err(object(of, "a tag of too many tags"))
    }

    /// The file of a path that was judged.
    pub(crate) fn walk(&self, of: Peeled, path: &[u8]) -> Result<File, Failure> {
        let (mut tree, mut buffer) = (of.tree, Vec::new());
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            if self.object(tree, OTHER_BYTES_MAX, &mut buffer)? != Kind::Tree {
                return Err(object(tree, "broken"));
            }
            let (mode, id) = entry(&buffer, self.hash, part)
                .map_err(|()| object(tree, "broken"))?
                .ok_or(Failure::Absent("path"))?;
            let no_file = |kind| Failure::NoFile { kind, id: id.to_string() };
            match (parts.peek().is_some(), mode) {
                (true, Entry::Directory) => tree = id,
                (true, Entry::File(_) | Entry::Submodule) => return Err(Failure::Absent("path")),
                (false, Entry::Directory) => return Err(no_file("directory")),
                (false, Entry::Submodule) => return Err(no_file("submodule")),
                (false, Entry::File(mode)) => return Ok((mode, id)),
            }
        }
        Err(Failure::Absent("path"))
    }
}

#[derive(Clone, Copy)]
enum Entry {
    Directory,
    Submodule,
    /// With the mode that git has for it.
    File(u16),
}

/// The first entry of this name, as git takes it.
fn entry(tree: &[u8], hash: gix_hash::Kind, name: &[u8]) -> Result<Option<(Entry, ObjectId)>, ()> {
    use gix_object::tree::EntryKind;
    for each in TreeRefIter::from_bytes(tree, hash) {
        let each = each.map_err(|_| ())?;
        if *each.filename == *name {
            let kind = each.mode.kind();
            let entry = match kind {
                EntryKind::Tree => Entry::Directory,
                EntryKind::Commit => Entry::Submodule,
                EntryKind::Blob => Entry::File(0o100_644),
                EntryKind::BlobExecutable => Entry::File(0o100_755),
                EntryKind::Link => Entry::File(0o120_000),
            };
            return Ok(Some((entry, each.oid.to_owned())));
        }
    }
    Ok(None)
}

fn object(id: ObjectId, what: &'static str) -> Failure {
    Failure::Object { id: id.to_string(), what }
}

/// An object that is there and cannot be decoded, unless it is the system that cannot read it.
fn broken(id: ObjectId, error: &(dyn std::error::Error + 'static)) -> Failure {
    behind(error, object(id, "broken"))
}
