//! Refs in tables: a list names them, a newer one goes before an older one, and none ever changes.
//!
//! The list is read at each lookup, which makes it as fresh as a ref's file. A table is kept by its
//! name and its stamp, as long as the list has it. Who packs tables writes a new one, then the list,
//! then removes what was packed: a table that is not there is a list that is old.

mod block;
mod table;

use std::path::Path;

use gix_hash::ObjectId;
use rustix::fd::AsFd;

use self::block::Reference;
use self::table::Table;
use super::{BROKEN, Value, symbolic};
use crate::Failure;
use crate::identity::{Stamp, stamp};
use crate::place::Place;

const LIST: &str = "reftable/tables.list";
/// git keeps the number of its tables at about the logarithm of their bytes.
const LIST_BYTES_MAX: usize = 64 << 10;
/// A table has the refs of a whole repository.
const TABLE_BYTES_MAX: usize = 128 << 20;
/// How often the list is read again where one of its tables was packed meanwhile.
const AGAIN_MAX: usize = 8;

/// The tables that were read last, the newest first.
#[derive(Default)]
pub(crate) struct Stack {
    kept: Vec<(String, Stamp, Table)>,
}

impl Stack {
    /// What the ref of this full name says.
    pub(super) fn value(
        &mut self,
        place: &Place,
        hash: gix_hash::Kind,
        name: &[u8],
    ) -> Result<Option<Value>, Failure> {
        self.refresh(place, hash)?;
        for (_, _, table) in &self.kept {
            match table.find(name).ok_or(BROKEN)? {
                None => {}
                Some(Reference::Deleted) => return Ok(None),
                Some(Reference::Id(id)) => {
                    let id = ObjectId::try_from(id).map_err(|_| BROKEN)?;
                    return Ok(Some(Value::Id(id)));
                }
                Some(Reference::Symbolic(target)) => return symbolic(target).map(Some),
            }
        }
        Ok(None)
    }

    /// Has the tables that the list names now.
    fn refresh(&mut self, place: &Place, hash: gix_hash::Kind) -> Result<(), Failure> {
        for _ in 0..=AGAIN_MAX {
            let list = place.read(Path::new(LIST), LIST_BYTES_MAX, TOO_LARGE)?;
            // A repository that never had a ref may have no list.
            let list = list.unwrap_or_default();
            let list = std::str::from_utf8(&list).map_err(|_| BROKEN)?;
            let mut before = std::mem::take(&mut self.kept);
            let found: Option<Vec<_>> = list
                .lines()
                .rev()
                .map(|name| take(&mut before, place, hash, name))
                .collect::<Result<_, _>>()?;
            if let Some(tables) = found {
                self.kept = tables;
                return Ok(());
            }
        }
        Err(Failure::Repository("its reftable names tables that are not there"))
    }
}

const TOO_LARGE: &str = "its reftable is too large";

/// A table of those that were read before, or else read now; `None`: it is not there any more.
fn take(
    before: &mut Vec<(String, Stamp, Table)>,
    place: &Place,
    hash: gix_hash::Kind,
    name: &str,
) -> Result<Option<(String, Stamp, Table)>, Failure> {
    if name.contains('/') || name.starts_with('.') {
        return Err(BROKEN);
    }
    let path = format!("reftable/{name}");
    let Some(now) = stamp(place.dir.as_fd(), &path) else { return Ok(None) };
    if let Some(at) = before.iter().position(|(kept, then, _)| kept == name && *then == now) {
        return Ok(Some(before.swap_remove(at)));
    }
    let Some(bytes) = place.read(Path::new(&path), TABLE_BYTES_MAX, TOO_LARGE)? else {
        return Ok(None);
    };
    let table = Table::new(bytes, hash).ok_or(BROKEN)?;
    Ok(Some((name.to_owned(), now, table)))
}
