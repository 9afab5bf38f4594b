//! Options of a run, as they are asked for.
//!
//! Deliberately not here: what they do.

mod many;

use std::time::Duration;

pub(crate) use many::Many;

use crate::durations;
use crate::failure::Failure;

/// What an option says as a time.
pub(super) fn time(option: &str, text: Option<&str>) -> Result<Option<Duration>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let time = durations::parse(text);
    time.map(Some).map_err(|wrong| Failure::usage(format!("{option} {text}: {wrong}")))
}
