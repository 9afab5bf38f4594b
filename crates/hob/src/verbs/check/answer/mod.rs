//! What is found in an answer: taken by a name for the requests that come after it, or asserted.
//!
//! ```text
//!   answer ─▶ query: status, header, cookie, body, … ─▶ filters ─┬▶ capture: a text, number, truth
//!                                                               └▶ assert: a predicate
//! ```
//! How a file writes them is not known here.

mod asserts;
mod capture;
mod filters;
mod held;
mod query;

pub(super) use asserts::{Assert, Kind, Predicate};
pub(super) use capture::{Capture, Values};
pub(super) use filters::{Filter, from_base64};
pub(super) use held::Held;
pub(super) use query::{Attribute, Query, Seen};
