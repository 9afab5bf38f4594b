//! The caller's descriptors, which go with its call: the closed ones of 0 to 2, and what is open
//! beyond them.
//!
//! Runs before hob opens anything of its own. A call without such descriptors pays for one look.

use std::os::unix::ffi::OsStrExt;

use rustix::fd::AsRawFd;

use hob_os::process::inherited::{self, Inherited};
use hob_wire::caps::BEYOND_MAX;

use crate::connect::Trouble;

/// What goes along; `own` are open beyond 0 to 2 that are hob's.
pub(crate) fn look(own: u64) -> Result<Inherited, Trouble> {
    let found = Inherited::look(own).map_err(|_| Trouble::Descriptors)?;
    if found.closed != 0 {
        found.fill().map_err(|_| Trouble::Descriptors)?;
    }
    if found.beyond.len() > BEYOND_MAX { Err(Trouble::Descriptors) } else { Ok(found) }
}

/// Why a call with these goes cold: how many there are, and number and target of the first that is
/// too many.
pub(crate) fn in_words() -> Option<Vec<u8>> {
    let found = Inherited::look(0).ok()?.beyond;
    let first = *found.get(BEYOND_MAX)?;
    let mut words = format!("{} open: {}", found.len(), first.as_raw_fd()).into_bytes();
    if let Some(target) = inherited::target(first) {
        words.extend_from_slice(b" (");
        words.extend_from_slice(target.as_os_str().as_bytes());
        words.push(b')');
    }
    Some(words)
}
