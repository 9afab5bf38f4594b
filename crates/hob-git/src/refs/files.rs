//! Refs as files: one for each, or else a line of the packed refs.
//!
//! Times of modification of a ref's file lie: its 41 bytes are read. The packed refs are kept as
//! long as inode, size and times are the same, and were not written just before they were read.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fd::AsFd;

use super::{BROKEN, Value, id, symbolic};
use crate::Failure;
use crate::identity::{Stamp, stamp};
use crate::place::Place;

/// A ref's file has a name or an id.
const LOOSE_BYTES_MAX: usize = 4096;
/// The packed refs of the largest public repositories have some tens of megabytes.
const PACKED_BYTES_MAX: usize = 128 << 20;
/// A file system's clock may stand for so long.
const SETTLED: Duration = Duration::from_secs(2);
const PACKED: &str = "packed-refs";

/// The packed refs that were read last, and whether their stamp is old enough to be believed.
#[derive(Default)]
pub(crate) struct Packed(Option<(Stamp, bool, Vec<u8>)>);

/// What the ref of this full name says.
pub(super) fn value(
    packed: &mut Packed,
    place: &Place,
    hash: gix_hash::Kind,
    name: &[u8],
) -> Result<Option<Value>, Failure> {
    let file: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
    let loose = place.read(Path::new(file), LOOSE_BYTES_MAX, "a ref is broken")?;
    match loose {
        Some(text) => read_loose(hash, &text).map(Some),
        None => Ok(packed.find(place, hash, name)?.map(Value::Id)),
    }
}

fn read_loose(hash: gix_hash::Kind, text: &[u8]) -> Result<Value, Failure> {
    let text = text.trim_ascii();
    match text.strip_prefix(b"ref:") {
        Some(target) => symbolic(target.trim_ascii_start()),
        None => id(hash, text).map(Value::Id).ok_or(BROKEN),
    }
}

impl Packed {
    fn find(
        &mut self,
        place: &Place,
        hash: gix_hash::Kind,
        name: &[u8],
    ) -> Result<Option<gix_hash::ObjectId>, Failure> {
        let Some(now) = stamp(place.dir.as_fd(), PACKED) else {
            self.0 = None;
            return Ok(None);
        };
        let kept = self.0.take();
        let kept = kept.filter(|(then, settled, _)| *settled && *then == now);
        let kept = match kept {
            Some(kept) => kept,
            None => read_packed(place, now)?,
        };
        let found = match line_of(&kept.2, name) {
            None => None,
            Some(hex) => Some(id(hash, hex).ok_or(BROKEN)?),
        };
        self.0 = Some(kept);
        Ok(found)
    }
}

/// Reads the packed refs, whose stamp was taken before.
fn read_packed(place: &Place, before: Stamp) -> Result<(Stamp, bool, Vec<u8>), Failure> {
    let text = place.read(Path::new(PACKED), PACKED_BYTES_MAX, "its packed refs are too large")?;
    let text = text.unwrap_or_default();
    let seconds = u64::try_from(before.modified.0).unwrap_or(0);
    let modified = SystemTime::UNIX_EPOCH + Duration::new(seconds, before.modified.1);
    let age = SystemTime::now().duration_since(modified).unwrap_or_default();
    // What was replaced between the stamp and the reading is read again the next time.
    let same = stamp(place.dir.as_fd(), PACKED) == Some(before) && before.size == text.len() as u64;
    Ok((before, same && age > SETTLED, text))
}

/// The id in hex of a name's line.
fn line_of<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let header = text.strip_prefix(b"# pack-refs with:").map(|rest| {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        (&rest[..end], rest.get(end + 1..).unwrap_or_default())
    });
    let is_sorted =
        |traits: &[u8]| traits.split(|byte| *byte == b' ').any(|each| each == b"sorted");
    match header {
        Some((traits, lines)) if is_sorted(traits) => bisected(lines, name),
        Some((_, lines)) => one_by_one(lines, name),
        None => one_by_one(text, name),
    }
}

/// Id and name of a line that has them: one that begins with `^` belongs to the one before.
fn parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[..space], &line[space + 1..]))
}

fn one_by_one<'t>(lines: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let mut all = lines.split(|byte| *byte == b'\n').filter_map(parts);
    all.find(|(_, each)| *each == name).map(|(id, _)| id)
}

/// Looks for a name in sorted lines.
fn bisected<'t>(mut lines: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    while !lines.is_empty() {
        let middle = lines.len() / 2;
        let mut start =
            lines[..middle].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if lines.get(start) == Some(&b'^') {
            // The line that it belongs to is before it, in the same part.
            let before = lines[..start].strip_suffix(b"\n")?;
            start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        }
        let line_end = |from: usize| {
            let length = lines[from..].iter().position(|byte| *byte == b'\n');
            length.map_or(lines.len(), |length| from + length)
        };
        let end = line_end(start);
        let (id, here) = parts(&lines[start..end])?;
        match here.cmp(name) {
            std::cmp::Ordering::Equal => return Some(id),
            std::cmp::Ordering::Greater => lines = &lines[..start],
            std::cmp::Ordering::Less => {
                let mut next = (end + 1).min(lines.len());
                if lines.get(next) == Some(&b'^') {
                    next = (line_end(next) + 1).min(lines.len());
                }
                lines = &lines[next..];
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways_find_the_same(
            names in proptest::collection::btree_set("refs/(heads|tags)/[a-d]{1,4}", 0..20),
            peeled in proptest::collection::vec(any::<bool>(), 20),
        ) {
            let mut lines = String::new();
            for (at, name) in names.iter().enumerate() {
                lines.push_str(&format!("{at:040x} {name}\n"));
                if peeled[at] {
                    lines.push_str(&format!("^{at:040x}\n"));
                }
            }
            let sorted = format!("# pack-refs with: peeled fully-peeled sorted \n{lines}");
            let plain = format!("# pack-refs with: peeled \n{lines}");
            for name in names.iter().map(String::as_str).chain(["refs/heads/", "refs/tags/zz", ""]) {
                let found = line_of(sorted.as_bytes(), name.as_bytes());
                prop_assert_eq!(found, line_of(plain.as_bytes(), name.as_bytes()));
                prop_assert_eq!(found.is_some(), names.contains(name));
            }
        }

        #[test]
        fn no_text_makes_it_fail(text in any::<Vec<u8>>(), name in any::<Vec<u8>>()) {
            let _ = line_of(&text, &name);
            let _ = bisected(&text, &name);
        }
    }
}
