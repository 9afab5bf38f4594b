//! The caller's descriptors beyond 0 to 2, which go with its call.
//!
//! Runs before hob opens anything of its own. A call without such descriptors pays for one look.

use std::os::unix::ffi::OsStrExt;

use rustix::fd::{AsRawFd, BorrowedFd};

use hob_os::process::{self, inherited};
use hob_wire::call::BEYOND_MAX;

use crate::connect::Trouble;

/// What goes along, the lowest number first; `own` are open that need not be looked at: 0 to 2,
/// and hob's own.
pub(crate) fn look(own: u64) -> Result<Vec<BorrowedFd<'static>>, Trouble> {
    match process::open_descriptors() {
        Ok(count) if count == own => Ok(Vec::new()),
        Ok(_) => list(),
        Err(_) => Err(Trouble::Descriptors),
    }
}

/// Apart from what each call executes.
#[cold]
fn list() -> Result<Vec<BorrowedFd<'static>>, Trouble> {
    let found = inherited::beyond_stdio().map_err(|_| Trouble::Descriptors)?;
    if found.len() > BEYOND_MAX { Err(Trouble::Descriptors) } else { Ok(found) }
}

/// Why a call with these goes cold: how many there are, and number and target of the first that is
/// too many; `None` where one of 0 to 2 is closed.
pub(crate) fn in_words() -> Option<Vec<u8>> {
    let found = inherited::beyond_stdio().ok()?;
    let first = *found.get(BEYOND_MAX)?;
    let mut words = format!("{} open: {}", found.len(), first.as_raw_fd()).into_bytes();
    if let Some(target) = inherited::target(first) {
        words.extend_from_slice(b" (");
        words.extend_from_slice(target.as_os_str().as_bytes());
        words.push(b')');
    }
    Some(words)
}
