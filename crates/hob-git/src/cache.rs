//! What is kept: which object a path of a commit is, and an object's bytes. Both are named by an
//! object's id, and so never become wrong; they are only forgotten, the least recently used first.

use bytes::Bytes;
use gix_hash::ObjectId;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::identity::Identity;

/// A file's bytes, and what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The bytes, as `git cat-file blob` has them.
    pub bytes: Bytes,
    /// Whether they are UTF-8 without a NUL.
    pub is_text: bool,
    /// What a pointer of Git LFS points to, if they are one.
    pub pointer: Option<Pointer>,
}

/// What a pointer of Git LFS says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// SHA-256 of the content, in hex.
    pub oid: String,
    /// The content's bytes.
    pub size: u64,
}

/// A pointer has less (the specification of Git LFS).
const POINTER_BYTES_MAX: usize = 1024;
/// What each entry costs besides its bytes, about.
const ENTRY_BYTES: u64 = 160;
/// How many bytes of a mount's cache the table of paths may take: a part in so many.
const PATHS_PART: u64 = 8;
/// An object over such a part of the cache is never kept.
const LARGE_PART: u64 = 8;
/// How many bytes an entry has about: how many there may be is guessed by it.
const USUAL_BYTES: u64 = 8192;

impl Blob {
    /// What these bytes are.
    pub(crate) fn new(bytes: Vec<u8>) -> Blob {
        let is_text = !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok();
        let pointer = pointer(&bytes);
        Blob { bytes: Bytes::from(bytes), is_text, pointer }
    }
}

fn pointer(bytes: &[u8]) -> Option<Pointer> {
    if bytes.len() >= POINTER_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.strip_prefix("version https://git-lfs.github.com/spec/v1\n")?.lines();
    let oid = lines.find_map(|line| line.strip_prefix("oid sha256:"))?;
    let size = lines.find_map(|line| line.strip_prefix("size "))?.parse().ok()?;
    let is_hex = oid.len() == 64 && oid.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| Pointer { oid: oid.to_owned(), size })
}

/// A file of a commit, or of another object that has files: its mode and its id.
pub(crate) type File = (u16, ObjectId);
type PathKey = (Identity, ObjectId, Box<[u8]>);

#[derive(Debug, Clone)]
struct Weights;

impl Weighter<PathKey, File> for Weights {
    fn weight(&self, (_, _, path): &PathKey, _: &File) -> u64 {
        path.len() as u64 + ENTRY_BYTES
    }
}

impl Weighter<(Identity, ObjectId), Blob> for Weights {
    fn weight(&self, _: &(Identity, ObjectId), blob: &Blob) -> u64 {
        blob.bytes.len() as u64 + ENTRY_BYTES
    }
}

/// What all readers of a root keep.
#[derive(Debug)]
pub(crate) struct Kept {
    paths: Cache<PathKey, File, Weights>,
    blobs: Cache<(Identity, ObjectId), Blob, Weights>,
    large: u64,
}

impl Kept {
    /// Keeps so many bytes at most, about; 0: nothing.
    pub(crate) fn new(bytes: u64) -> Kept {
        let count = |bytes: u64, usual: u64| usize::try_from(bytes / usual).unwrap_or(0).max(16);
        let for_paths = bytes / PATHS_PART;
        let for_blobs = bytes - for_paths;
        Kept {
            paths: Cache::with_weighter(count(for_paths, ENTRY_BYTES), for_paths, Weights),
            blobs: Cache::with_weighter(count(for_blobs, USUAL_BYTES), for_blobs, Weights),
            large: bytes / LARGE_PART,
        }
    }

    pub(crate) fn file(&self, of: Identity, commit: ObjectId, path: &[u8]) -> Option<File> {
        self.paths.get(&(of, commit, path.into()))
    }

    pub(crate) fn keep_file(&self, of: Identity, commit: ObjectId, path: &[u8], file: File) {
        self.paths.insert((of, commit, path.into()), file);
    }

    pub(crate) fn blob(&self, of: Identity, id: ObjectId) -> Option<Blob> {
        self.blobs.get(&(of, id))
    }

    pub(crate) fn keep_blob(&self, of: Identity, id: ObjectId, blob: &Blob) {
        if blob.bytes.len() as u64 <= self.large {
            self.blobs.insert((of, id), blob.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_says_what_it_points_to() {
        let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let text =
            format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12\n");
        let read = Blob::new(text.clone().into_bytes());
        assert_eq!(read.pointer, Some(Pointer { oid: oid.to_owned(), size: 12 }));
        for wrong in [text.replace("size 12", "size x"), text.replace("4d7a", "zz"), text.repeat(9)]
        {
            assert_eq!(Blob::new(wrong.into_bytes()).pointer, None);
        }
    }

    #[test]
    fn text_is_utf8_without_a_nul() {
        assert!(Blob::new(b"a\n".to_vec()).is_text && Blob::new(Vec::new()).is_text);
        assert!(!Blob::new(b"a\0".to_vec()).is_text && !Blob::new(vec![0xff]).is_text);
    }
}
