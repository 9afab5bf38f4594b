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

pub(crate) use asserts::{Assert, Kind, Predicate};
pub(crate) use capture::{Capture, Values};
pub(crate) use filters::{Filter, from_base64};
pub(crate) use held::Held;
pub(crate) use query::{Attribute, Query, Seen};
