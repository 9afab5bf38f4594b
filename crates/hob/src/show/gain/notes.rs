//! What is said below the figures of `hob gain`: what they rest on, and what is not in them.

use super::{Report, Sums};
use crate::show::style::{Look, Tone};
use crate::show::text::wrap;

/// The notes below a report, as lines.
pub(super) fn of(report: &Report, look: &Look) -> Vec<String> {
    let mut notes = Vec::new();
    let slower = report.programs.iter().filter(|program| program.slower_warm).count();
    if slower > 0 {
        notes.push(
            "`slower warm`: it runs cold by itself, and is tried warm again later".to_owned(),
        );
    }
    if report.total.fallback > 0 {
        notes.push(format!("COLD has {} calls that no daemon took", report.total.fallback));
    }
    notes.extend(rests_on(&report.total));
    let columns = look.figure_columns();
    let lines = notes.iter().flat_map(|note| wrap(note, "", columns, look.charset));
    lines.map(|line| look.paint(Tone::Dim, &line)).collect()
}

/// What the figures of a report rest on.
fn rests_on(total: &Sums) -> Vec<String> {
    let calls = |count: u64| match count {
        1 => "1 warm call".to_owned(),
        count => format!("{count} warm calls"),
    };
    let mut notes = Vec::new();
    if total.compared > 0 {
        notes.push(format!(
            "SAVED is start-up alone, as far as it is sure. It rests on {} of {}, which cold runs \
             of the same arguments can be compared with",
            total.compared,
            calls(total.warm)
        ));
    }
    if total.bounded > 0 {
        notes.push(format!(
            "{} had arguments that never ran cold unwatched, so AT MOST alone has them; \
             `hob run --cold PROGRAM ARGUMENTS` is a measure for later ones",
            calls(total.bounded)
        ));
    }
    let others = total.warm.saturating_sub(total.compared + total.bounded);
    if others > 0 {
        notes.push(format!(
            "{} of runs with others beside them, at a terminal that waited, of messages, or before \
             there was a cold run count for nothing",
            calls(others)
        ));
    }
    notes
}
