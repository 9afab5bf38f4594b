//! What a run found, for people: the matrix, and each failure with its cause.

use std::fmt::Write as _;

use super::{Counts, Matrix, Ran, code_word, compared, failures, many, title, took};
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit, pad, printable, width, wrap};
use crate::show::units::duration;
use hob_check::Plan;
use hob_check::{Done, Found, State};

/// A cell: code, time, mark, and the space before.
const CELL: usize = 14;
/// What stands before a failure's text.
const LABEL: usize = 9;
/// A name is cut to no less.
const NAME_MIN: usize = 16;
const NAME_MAX: usize = 40;

/// The report, for a terminal.
pub(in super::super) fn report(ran: &Ran, look: &Look) -> String {
    let Ran { plan, found, earlier, .. } = ran;
    let columns = look.figure_columns();
    let matrix = Matrix::new(plan);
    let mut text = String::new();
    let mut head = vec![
        (Tone::Title, printable(&title(ran), look.charset)),
        (
            Tone::Plain,
            format!(
                "{} as {}",
                many(matrix.checks.len(), "check"),
                many(matrix.profiles.len(), "profile")
            ),
        ),
        (Tone::Plain, format!("{} at once", plan.jobs)),
    ];
    if let Some(number) = earlier.as_ref().and_then(|earlier| earlier.number) {
        head.push((Tone::Plain, format!("run {number}")));
    }
    for line in look.flow(&head, columns) {
        let _ = writeln!(text, "{line}");
    }
    let across = ((columns.saturating_sub(NAME_MIN)) / CELL).max(1);
    for profiles in matrix.profiles.chunks(across) {
        text.push('\n');
        let longest = matrix.checks.iter().map(|at| width(&plan.checks[*at].name)).max();
        let room = columns.saturating_sub(CELL * profiles.len()).max(NAME_MIN);
        let names = room.min(NAME_MAX).min(longest.unwrap_or(0).max(NAME_MIN));
        let mut line = pad("", names, Align::Left);
        for profile in profiles {
            let name = printable(&plan.profiles[*profile].name, look.charset);
            line += "  ";
            line += &pad(&fit(&name, CELL - 2, look.charset), CELL - 2, Align::Left);
        }
        let _ = writeln!(text, "{}", look.paint(Tone::Dim, line.trim_end()));
        for check in &matrix.checks {
            let name = printable(&plan.checks[*check].name, look.charset);
            let mut line = pad(&fit(&name, names, look.charset), names, Align::Left);
            for profile in profiles {
                let done = matrix.cell(*check, *profile).map(|at| &found.cells[at]);
                let (tone, cell) = done
                    .map_or((Tone::Plain, String::new()), |done| cell(plan, *check, done, look));
                line += "  ";
                line += &look.paint(tone, &pad(&cell, CELL - 2, Align::Left));
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text += &failed(plan, found, look);
    text.push('\n');
    let parts = compared(ran).into_iter().map(|(bad, words)| {
        let tone = if bad { Tone::Watch } else { Tone::Dim };
        (tone, printable(&words, look.charset))
    });
    for line in look.flow(&parts.collect::<Vec<_>>(), columns) {
        let _ = writeln!(text, "{line}");
    }
    for line in look.flow(&summary(plan, found), columns) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Each failure with its cause, and the line of curl that shows it.
fn failed(plan: &Plan, found: &Found, look: &Look) -> String {
    let columns = look.figure_columns();
    let mut text = String::new();
    for failure in failures(plan, found) {
        text.push('\n');
        let named = printable(&failure.title(plan, look.dot()), look.charset);
        let room = columns.saturating_sub(LABEL).max(20);
        let (tone, label) =
            if failure.ran { (Tone::Bad, "FAILED") } else { (Tone::Watch, "NOT RUN") };
        for (at, part) in wrap(&named, "", room, look.charset).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let _ = writeln!(text, "{}{part}", look.paint(tone, &pad(label, LABEL, Align::Left)));
        }
        let indent = " ".repeat(LABEL);
        for cause in &failure.causes {
            let cause = printable(cause, look.charset);
            for part in wrap(&cause, "", room, look.charset) {
                let _ = writeln!(text, "{indent}{part}");
            }
        }
        if let Some(curl) = &failure.curl {
            // A line to be copied is not wrapped.
            let _ =
                writeln!(text, "{indent}{}", look.paint(Tone::Dim, &printable(curl, look.charset)));
        }
    }
    text
}

/// `200   41 ms`, `ok   210 ms`, with a mark where it failed.
fn cell(plan: &Plan, check: usize, done: &Done, look: &Look) -> (Tone, String) {
    if let State::NotRun(_) = done.state {
        return (Tone::Watch, "not run".to_owned());
    }
    let code = code_word(plan, check, done);
    let took = done.median_us().map_or("?".to_owned(), |us| duration(us, look.micro()));
    let (tone, mark) = match done.state {
        State::Passed => (Tone::Plain, ""),
        State::Failed => (Tone::Bad, "!"),
        State::Slow => (Tone::Watch, "!"),
        State::NotRun(_) => (Tone::Watch, ""),
    };
    (tone, format!("{} {}{mark}", pad(&code, 3, Align::Left), pad(&took, 7, Align::Right)))
}

/// How many passed, failed, were late, and were not run.
fn summary(plan: &Plan, found: &Found) -> Vec<(Tone, String)> {
    let counts = Counts::new(found);
    let all = plan.cells.len();
    let tone = if counts.passed == all { Tone::Good } else { Tone::Title };
    let mut parts = vec![(tone, format!("{} of {all} passed", counts.passed))];
    parts.extend(counts.bad().into_iter().map(|words| (Tone::Bad, words)));
    parts.push((Tone::Plain, format!("{} in {}", many(counts.calls, "call"), took(found))));
    if found.interrupted.is_some() {
        parts.push((Tone::Watch, "interrupted".to_owned()));
    }
    parts
}
