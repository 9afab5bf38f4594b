//! Reads one file of one revision of a git repository, as `git cat-file blob REV:PATH` does, without
//! a clone, a checkout or a process of git's.
//!
//! ```text
//!   Asked ─▶ names ─▶ repository ─▶ refs ─▶ walk ─▶ Located ─▶ store ─▶ Blob
//!            judged   beneath root  read    trees   an id      bytes, checked
//!                                   again           kept       kept
//! ```
//! Invariants: a ref is read again at each request, never kept; what is kept is named by an object's
//! id, so that it cannot become wrong; each object's bytes are held against its id before they are
//! used; nothing outside the root is opened; replace refs, grafts, filters and includes are not
//! followed; nothing is written. Nothing here waits for anything but the file system: a reader
//! belongs to one thread.
#![forbid(unsafe_code)]

mod cache;
mod failure;
mod identity;
pub mod names;
mod place;
mod reader;
mod refs;
mod repository;
mod root;
mod store;

pub use cache::{Blob, Pointer};
pub use failure::Failure;
pub use names::pattern::Pattern;
pub use reader::{Asked, Located, Reader};
pub use root::{Root, Terms};
