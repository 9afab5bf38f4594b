//! `hob last`.

use hob_os::start::Start;

use super::log::{flush, state_dir, unreadable};
use super::{Failure, Format, out};
use crate::show::clock::Clock;
use crate::show::style::Look;
use crate::show::{entries, waterfall};

/// Shows the receipt of the last call.
pub(crate) fn run(start: &Start, format: Format) -> Result<(), Failure> {
    flush(start);
    let Some(entry) = entries::last(&state_dir()?).map_err(unreadable)? else {
        return Err(Failure::new("no call has been recorded yet; `hob run PROGRAM` makes one"));
    };
    if format.json {
        return out(&format!("{}\n", entry.json()));
    }
    out(&waterfall::entry(&entry, &Clock::now(), &Look::of_stdout()))
}
