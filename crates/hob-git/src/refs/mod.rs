//! What a ref points to, read at each request, by the way in which the repository keeps its refs.

mod files;
mod reftable;

use gix_hash::ObjectId;

use crate::place::Place;
use crate::root::Terms;
use crate::{Failure, names};

/// Symbolic refs that are followed, as git does.
const SYMBOLIC_MAX: usize = 5;
/// What a client is told of a ref that git would not read either.
const BROKEN: Failure = Failure::Repository("a ref is broken");

/// What a ref says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Id(ObjectId),
    /// The full name of another ref, judged.
    Symbolic(Vec<u8>),
}

/// Where a repository keeps its refs, and what was read of them.
pub(crate) enum Refs {
    Files(files::Packed),
    Reftable(reftable::Stack),
}

impl Refs {
    /// One file for each ref, and one with many: what every git reads.
    pub(crate) fn files() -> Refs {
        Refs::Files(files::Packed::default())
    }

    /// Tables, of which each lookup reads the list again.
    pub(crate) fn reftable() -> Refs {
        Refs::Reftable(reftable::Stack::default())
    }

    /// What a ref of this full name points to in the end, if it may be named and is there. Its name
    /// was judged.
    pub(crate) fn resolve(
        &mut self,
        place: &Place,
        hash: gix_hash::Kind,
        name: &[u8],
        terms: &Terms,
    ) -> Result<Option<ObjectId>, Failure> {
        if name != b"HEAD" && !terms.allows(name) {
            return Ok(None);
        }
        let mut name = name.to_vec();
        for _ in 0..=SYMBOLIC_MAX {
            match self.value(place, hash, &name)? {
                None => return Ok(None),
                Some(Value::Id(id)) => return Ok(terms.allows(&name).then_some(id)),
                Some(Value::Symbolic(target)) => name = target,
            }
        }
        Err(Failure::Repository("its symbolic refs go in a circle"))
    }

    fn value(
        &mut self,
        place: &Place,
        hash: gix_hash::Kind,
        name: &[u8],
    ) -> Result<Option<Value>, Failure> {
        match self {
            Refs::Files(packed) => files::value(packed, place, hash, name),
            Refs::Reftable(stack) => stack.value(place, hash, name),
        }
    }
}

/// An object's id, if this is a whole one of this kind.
pub(crate) fn id(hash: gix_hash::Kind, hex: &[u8]) -> Option<ObjectId> {
    if hex.len() == hash.len_in_hex() { ObjectId::from_hex(hex).ok() } else { None }
}

/// What a symbolic ref says, if its target may be one: names come from a file, and become a path.
fn symbolic(target: &[u8]) -> Result<Value, Failure> {
    let is_ref = target.starts_with(b"refs/") && names::check_rev(target).is_ok();
    if is_ref { Ok(Value::Symbolic(target.to_vec())) } else { Err(BROKEN) }
}
