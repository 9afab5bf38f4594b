//! `hob status`.

use hob_core::status::Status;
use hob_os::start::Start;

use super::request;
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::show;
use crate::show::style::Look;

/// Shows the daemon as it is now.
pub(crate) fn run(start: &Start, format: Format) -> Result<(), Failure> {
    let (answer, _) = request::ask(start, "status").map_err(|e| Failure::new(e.to_string()))?;
    if format.json {
        return out_json(&format!("{answer}\n"));
    }
    let status: Status = serde_json::from_value(answer).map_err(|error| {
        Failure::new(format!("the daemon is of another build ({error}); `hob restart` replaces it"))
    })?;
    out(&show::status::status(&status, &Look::of_stdout()))
}
