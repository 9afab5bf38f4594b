//! What follows from a report: the dearest phase, what warmth would save, what to type next.

use super::super::report::{Figure, RepeatedPart, Report, Verdict};
use crate::show::style::{Look, Tone};
use crate::show::text::{printable, width, wrap};
use crate::show::units;

/// A phase with less than this share in hundredths is not what the time goes into.
const SHARE_MIN: u64 = 5;

/// Below the figure and the table.
pub(super) fn lines(report: &Report, columns: usize, look: &Look) -> Vec<String> {
    let warm = &report.warm;
    let mut parts = Vec::new();
    let largest = report.phases.iter().max_by_key(|phase| phase.us);
    if let Some(phase) = largest.filter(|one| one.us * 100 > report.wall_us * SHARE_MIN) {
        parts.push((Tone::Plain, format!("dearest   {}: {}", phase.name, meaning(phase.name))));
    }
    match (&warm.verdict, &warm.why_not) {
        (Some(verdict), _) => parts.push(compared(verdict, look)),
        (None, Some(why)) => parts.push((Tone::Watch, format!("warm      {why}"))),
        (None, None) => {}
    }
    if let Some(repeated) = warm.repeated.as_ref().and_then(|part| repeated(part, look)) {
        parts.push((Tone::Watch, repeated));
    }
    let lines = parts.into_iter().flat_map(|(tone, text)| {
        let wrapped = wrap(&printable(&text, look.charset), "", columns, look.charset);
        wrapped.into_iter().map(move |line| look.paint(tone, &line)).collect::<Vec<_>>()
    });
    lines.chain(next(report, columns, look)).collect()
}

/// The one verdict: warm beside cold, each with its range, and what it rests on.
fn compared(verdict: &Verdict, look: &Look) -> (Tone, String) {
    let duration = |us| units::duration(us, look.micro());
    let figure = |one: &Figure| match (one.low_us, one.high_us) {
        (low, high) if low == high => duration(one.us),
        (low, high) => format!("{} ({} to {})", duration(one.us), duration(low), duration(high)),
    };
    let Verdict { warm, cold, .. } = verdict;
    let calls = |count: usize, kind: &str| match count {
        1 => format!("one {kind} call"),
        _ => format!("{count} {kind} calls"),
    };
    let rests = match verdict.from {
        "estimate" => format!("estimated from {}", calls(cold.calls, "cold")),
        _ => format!("from {} and {}", calls(warm.calls, "warm"), calls(cold.calls, "cold")),
    };
    let times = units::ratio(cold.us, warm.us).filter(|_| cold.us > warm.us);
    let (tone, gain) = match times {
        Some(times) => (Tone::Good, format!("{times} times as fast")),
        None => (Tone::Watch, "nothing is saved".to_owned()),
    };
    let about = if verdict.from == "estimate" { "about " } else { "" };
    (tone, format!("warm      {about}{}, cold {}: {gain}, {rests}", figure(warm), figure(cold)))
}

/// What no call is spared, if there is anything, and why.
fn repeated(repeated: &RepeatedPart, look: &Look) -> Option<String> {
    let spent = units::duration(repeated.self_us, look.micro());
    let modules = match repeated.modules {
        0 if repeated.in_terminal == 0 => return None,
        0 => {
            let count = repeated.in_terminal;
            return Some(format!(
                "repeated  in a terminal {count} modules are imported by each call, since they \
                 look for one"
            ));
        }
        1 => format!("one module ({spent}) is imported by each call, since it"),
        count => format!("{count} modules ({spent}) are imported by each call, since they"),
    };
    let whys = repeated.why.iter().map(|(why, count)| match repeated.why.len() {
        1 => does(why).to_owned(),
        _ => format!("{} ({count})", does(why)),
    });
    let whys = whys.collect::<Vec<_>>().join(", ");
    let stopped = repeated.stopped.as_ref().filter(|_| repeated.why.contains_key("later"));
    let moved = stopped.map(|at| format!("; imports above {at} would be loaded ahead"));
    let first = repeated.first.as_ref().map(|at| format!("; the first at {at}"));
    let (first, moved) = (first.unwrap_or_default(), moved.unwrap_or_default());
    Some(format!("repeated  {modules} would {whys}{first}{moved}"))
}

/// What a module does that each call must do itself, by the word of the worker's notes.
fn does(why: &str) -> &str {
    match why {
        "state" => "change something outside",
        "moment" => "keep something of the moment",
        "process" => "start a process",
        "directory" => "change the directory",
        "descriptor" => "leave a file open",
        "output" => "write to the terminal",
        "variable" => "read a variable that differs in each call",
        "argv" => "look at the arguments",
        "finder" => "be found in a way of the program's own",
        "later" => "run after other statements",
        other => other,
    }
}

/// The same in a column.
pub(super) fn briefly(why: &str) -> &str {
    match why {
        "state" => "changes something outside",
        "moment" => "keeps something of the moment",
        "process" => "starts a process",
        "directory" => "changes the directory",
        "descriptor" => "leaves a file open",
        "output" => "writes to the terminal",
        "variable" => "reads a changing variable",
        "argv" => "looks at the arguments",
        "finder" => "found by its own finder",
        "later" => "comes after other statements",
        other => other,
    }
}

/// The command to type next: where it needs more than a line, a shell reads it as one.
fn next(report: &Report, columns: usize, look: &Look) -> Vec<String> {
    const LABEL: &str = "next      ";
    let command = printable(&report.warm.next, look.charset);
    // What is quoted, or longer than a line, must not be broken: then it is one line.
    let room = columns.saturating_sub(12);
    let whole = command.contains('\'') || command.split(' ').any(|word| width(word) > room);
    let room = if whole { usize::MAX } else { room };
    let mut lines = wrap(&command, "", room, look.charset);
    let last = lines.len() - 1;
    for (at, line) in lines.iter_mut().enumerate() {
        let label = if at == 0 { LABEL } else { "          " };
        let on = if at < last { " \\" } else { "" };
        *line = look.paint(Tone::Title, &format!("{label}{line}{on}"));
    }
    if !report.warm.hosted {
        let dim = "          (it runs cold, and leaves a receipt)";
        lines.push(look.paint(Tone::Dim, dim));
    }
    lines
}

/// What a phase is, for who sees it for the first time.
fn meaning(phase: &str) -> &'static str {
    match phase {
        "exec" => "the kernel executing the file",
        "link" => "the dynamic linker finding shared libraries",
        "start" => "the interpreter making itself ready",
        "imports" => "loading modules, wherever the program does so",
        "main" => "the program's own work",
        "tail" => "what comes after its last byte of output",
        _ => "the kernel taking the process apart",
    }
}
