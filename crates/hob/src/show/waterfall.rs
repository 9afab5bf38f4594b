//! One record as a figure: a row per phase, each bar where the phase was on the call's time.
//!
//! ```text
//! black · exited 0 · warm: copy-ready · 1.37 ms
//! call 7 · 21:38:04 · fork · python · 2 arguments · worker 4712
//!
//!           0                                                            1.37 ms
//! connect   62 µs   5%  ██▋
//! main     450 µs  33%          ██████████████████▊
//! ```
//! A bar that would be too short to see gets an eighth of a cell, so every phase that took time
//! is seen; the figures beside it say how long. Nothing is wider than the look's columns.

use hob_core::receipt::naming::Naming;
use hob_core::receipt::{GainPart, HooksPart, ImportedPart, OutcomePart, PhasePart, Receipt};

use super::clock::Clock;
use super::entries::{Entry, FallbackLine, How};
use super::reasons;
use super::style::{Figures, Look, Tone};
use super::text::{Align, Charset, fit, fit_end, pad, printable, width, wrap};
use super::units::{self, Micro};

/// A wider figure is no better to read.
const COLUMNS_MAX: usize = 100;
/// The column of phase names.
const NAME_COLUMNS: usize = 7;
/// With less room than this beside it, the program's name gets a line of its own.
const TITLE_COLUMNS_MIN: usize = 12;
/// Steps within a cell.
const EIGHTHS: usize = 8;

/// The record as a figure.
#[must_use]
pub fn entry(entry: &Entry, clock: &Clock, look: &Look) -> String {
    match entry {
        Entry::Receipt(each) => receipt(each, clock, look),
        Entry::Fallback(line) => fallback(line, clock, look),
    }
}

/// A receipt as a figure.
#[must_use]
pub fn receipt(receipt: &Receipt, clock: &Clock, look: &Look) -> String {
    with_rows(receipt, figure(receipt, columns(look), look), clock, look)
}

/// A receipt with these rows in the place of its phases.
pub(super) fn with_rows(
    receipt: &Receipt,
    rows: Vec<String>,
    clock: &Clock,
    look: &Look,
) -> String {
    let mut lines = head(receipt, clock, look);
    if !receipt.phases.is_empty() {
        lines.push(String::new());
        lines.extend(rows);
    }
    let footer = footer(receipt, columns(look), look);
    if !footer.is_empty() {
        lines.push(String::new());
        lines.extend(footer);
    }
    joined(&lines)
}

/// How wide a figure is.
pub(super) fn columns(look: &Look) -> usize {
    look.figure_columns().min(COLUMNS_MAX)
}

/// What stands above a receipt's figure.
pub(super) fn head(receipt: &Receipt, clock: &Clock, look: &Look) -> Vec<String> {
    let columns = columns(look);
    let mut lines = header(receipt, columns, look);
    lines.extend(particulars(receipt, columns, clock, look));
    lines
}

fn fallback(line: &FallbackLine, clock: &Clock, look: &Look) -> String {
    let columns = look.figure_columns().min(COLUMNS_MAX);
    let name = fit(&printable(&line.program.name, look.charset), columns, look.charset);
    let cold = format!("cold: {}", printable(&line.reason, look.charset));
    let mut lines = look.flow(&[(Tone::Title, name), (Tone::Watch, cold)], columns);
    let seen = [
        clock.show(&line.at, look.charset),
        format!("caller {}", line.caller_pid),
        "no daemon saw it, so there are no phases".to_owned(),
    ];
    lines.extend(look.flow(&seen.map(|part| (Tone::Dim, part)), columns));
    let meaning = reasons::meaning(reasons::FALLBACK, &line.reason);
    lines.extend(meaning.into_iter().flat_map(|meaning| why(meaning, columns, look)));
    let descriptors = line.descriptors.iter().map(|text| printable(text, look.charset));
    lines.extend(descriptors.flat_map(|text| why(&text, columns, look)));
    joined(&lines)
}

pub(super) fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Program, outcome, warm or cold and the code, total. The name gives way.
fn header(receipt: &Receipt, columns: usize, look: &Look) -> Vec<String> {
    let how = How::of(receipt);
    let because = match how {
        How::Hooks => how.word().to_owned(),
        How::Warm | How::Front | How::Elsewhere | How::Cold | How::NotRun => {
            format!("{}: {}", how.word(), printable(&receipt.reason, look.charset))
        }
    };
    let rest = [
        (outcome_tone(&receipt.outcome), outcome(&receipt.outcome, look.charset)),
        (how.tone(), because),
        (Tone::Title, units::duration(receipt.total_us, look.micro())),
    ];
    let taken: usize = rest.iter().map(|(_, text)| width(look.dot()) + width(text)).sum();
    let room = columns.saturating_sub(taken);
    let room = if room < TITLE_COLUMNS_MIN { columns } else { room };
    let name = printable(&Naming::from(&receipt.program).title(), look.charset);
    let name = fit_end(&name, room, look.charset);
    let mut parts = vec![(Tone::Title, name)];
    parts.extend(rest);
    look.flow(&parts, columns)
}

/// What became of the call, in words.
fn outcome(outcome: &OutcomePart, charset: Charset) -> String {
    let short = short_outcome(outcome, charset);
    match (outcome.signal, &outcome.phase) {
        (Some(_), _) => format!("killed by {short}"),
        (None, Some(phase)) => format!("{short} in {}", printable(phase, charset)),
        (None, None) => short,
    }
}

/// The same in a word or two.
pub(super) fn short_outcome(outcome: &OutcomePart, charset: Charset) -> String {
    let kind = printable(&outcome.kind, charset).replace('-', " ");
    match (outcome.code, outcome.signal) {
        (_, Some(signal)) => {
            signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
        }
        (Some(code), None) => format!("{kind} {code}"),
        (None, None) => kind,
    }
}

/// The tone of an outcome.
pub(super) fn outcome_tone(outcome: &OutcomePart) -> Tone {
    if outcome.went_well() { Tone::Good } else { Tone::Bad }
}

/// Linux numbers on x86-64 and ARM; the ones that end a program.
fn signal_name(signal: u8) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// The dim lines below the header: who and where, the target, and why it was cold.
fn particulars(receipt: &Receipt, columns: usize, clock: &Clock, look: &Look) -> Vec<String> {
    let charset = look.charset;
    let program = &receipt.program;
    let arguments = match program.arguments {
        1 => "1 argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let mut parts = vec![format!("call {}", receipt.call), clock.show(&receipt.at, charset)];
    if !matches!(How::of(receipt), How::NotRun | How::Elsewhere) {
        parts.push(printable(&receipt.isolation, charset));
        parts.push(printable(&program.runtime, charset));
    }
    let protocol = receipt.message.as_ref().and_then(|message| message.protocol.as_deref());
    parts.push(protocol.map_or(arguments, |protocol| printable(protocol, charset)));
    if let Some(message) = &receipt.message {
        parts.extend(message.host.iter().map(|host| format!("by {}", printable(host, charset))));
        parts.extend(message.host_us.map(|there_us| {
            // Each is a difference of one host's own clock.
            let way_us = receipt.total_us.saturating_sub(there_us);
            let shown = |us| units::duration(us, look.micro());
            format!("{} there, {} on the way", shown(there_us), shown(way_us))
        }));
        parts.extend(message.asked_by.iter().map(|by| format!("for {}", printable(by, charset))));
    }
    parts.extend(receipt.worker.map(|worker| format!("worker {}", worker.pid)));
    let parts: Vec<_> = parts.into_iter().map(|part| (Tone::Dim, part)).collect();
    let mut lines = look.flow(&parts, columns);
    if program.target.contains('/') && program.target != program.name {
        let target = fit_end(&printable(&program.target, charset), columns, charset);
        lines.push(look.paint(Tone::Dim, &target));
    }
    if let Some(part) = &receipt.hooks {
        lines.push(look.paint(Tone::Dim, &hooks(part)));
    }
    if !receipt.warm && receipt.hooks.is_none() {
        let meaning = reasons::of_receipt(&receipt.reason);
        lines.extend(meaning.into_iter().flat_map(|meaning| why(meaning, columns, look)));
    }
    lines
}

/// What a run of hooks was: for how many targets, and how many hooks were started which way.
fn hooks(part: &HooksPart) -> String {
    let targets = match part.targets {
        1 => "1 target".to_owned(),
        count => format!("{count} targets"),
    };
    let failed = if part.failed > 0 { format!(", {} failed", part.failed) } else { String::new() };
    format!("{targets}{failed}; hooks: {}", ways(part))
}

/// How many hooks were started which way.
pub(super) fn ways(part: &HooksPart) -> String {
    let ways = [
        (part.forked, "forked"),
        (part.prestarted, "prestarted"),
        (part.warm, "warm"),
        (part.spawned, "spawned"),
    ];
    let ways = ways.into_iter().filter(|(count, _)| *count > 0);
    let ways: Vec<String> = ways.map(|(count, way)| format!("{count} {way}")).collect();
    if ways.is_empty() { "none".to_owned() } else { ways.join(", ") }
}

fn why(meaning: &str, columns: usize, look: &Look) -> Vec<String> {
    let lines = wrap(&format!("why: {meaning}"), "", columns, look.charset);
    lines.into_iter().map(|line| look.paint(Tone::Watch, &line)).collect()
}

/// The axis and a row per phase.
fn figure(receipt: &Receipt, columns: usize, look: &Look) -> Vec<String> {
    let ends = receipt.phases.iter().map(|phase| phase.start_us.saturating_add(phase.us));
    let span_us = ends.max().unwrap_or(0).max(receipt.total_us);
    rows(&receipt.phases, span_us, (NAME_COLUMNS, columns), look)
}

/// The same of any phases within a span: `names` columns for their names, `columns` in all.
pub(crate) fn rows(
    phases: &[PhasePart],
    span_us: u64,
    (names, columns): (usize, usize),
    look: &Look,
) -> Vec<String> {
    let times: Vec<_> =
        phases.iter().map(|phase| units::duration(phase.us, look.micro())).collect();
    let time_columns = times.iter().map(|time| width(time)).max().unwrap_or(0);
    let before = names + 2 + time_columns + 1 + 4 + 2;
    let cells = columns.saturating_sub(before).max(EIGHTHS);

    let end = units::duration(span_us, look.micro());
    let axis = format!("{}0{}", " ".repeat(before), pad(&end, cells - 1, Align::Right));
    let mut lines = match look.figures {
        Figures::Drawn => vec![look.paint(Tone::Dim, &axis)],
        Figures::Told => Vec::new(),
    };
    for (phase, time) in phases.iter().zip(times) {
        let name = printable(&phase.name, look.charset);
        let name = pad(&fit(&name, names, look.charset), names, Align::Left);
        let time = pad(&time, time_columns, Align::Right);
        let share = pad(&share(phase.us, span_us), 4, Align::Right);
        let figures = format!("{name}  {time} {}", look.paint(Tone::Dim, &share));
        lines.push(figures + &drawn(phase, span_us, cells, look));
    }
    lines
}

/// The bar of a phase within a span, with the space before it.
pub(super) fn drawn(phase: &PhasePart, span_us: u64, cells: usize, look: &Look) -> String {
    let bar = match look.figures {
        Figures::Drawn => bar(phase, span_us, cells, look.charset),
        Figures::Told => String::new(),
    };
    if bar.is_empty() {
        return bar;
    }
    let tone = if phase.name == "main" { Tone::Own } else { Tone::Ours };
    let shape = bar.trim_start();
    " ".repeat(2 + width(&bar) - width(shape)) + &look.paint(tone, shape)
}

fn share(us: u64, span_us: u64) -> String {
    let percent = (u128::from(us) * 100 + u128::from(span_us) / 2) / u128::from(span_us.max(1));
    if percent == 0 && us > 0 { "<1%".to_owned() } else { format!("{percent}%") }
}

/// The bar with the space before it, and nothing behind it.
fn bar(phase: &PhasePart, span_us: u64, cells: usize, charset: Charset) -> String {
    if phase.us == 0 || span_us == 0 {
        return String::new();
    }
    let steps = cells * EIGHTHS;
    let step_at = |us: u64| {
        let exact = u128::from(us) * steps as u128 + u128::from(span_us) / 2;
        usize::try_from(exact / u128::from(span_us)).unwrap_or(steps).min(steps)
    };
    let start = step_at(phase.start_us).min(steps - 1);
    let end = step_at(phase.start_us.saturating_add(phase.us)).max(start + 1);
    let within = |cell: usize| {
        let low = start.clamp(cell * EIGHTHS, (cell + 1) * EIGHTHS) - cell * EIGHTHS;
        let high = end.clamp(cell * EIGHTHS, (cell + 1) * EIGHTHS) - cell * EIGHTHS;
        (low, high)
    };
    let drawn = (0..cells).map(within);
    let bar: String = match charset {
        Charset::Unicode => drawn.map(|(low, high)| block(low, high)).collect(),
        Charset::Ascii => {
            let short = end - start < EIGHTHS;
            let first = start / EIGHTHS;
            let character = |(cell, (low, high)): (usize, (usize, usize))| {
                if short && cell == first {
                    '|'
                } else if !short && high - low >= EIGHTHS / 2 {
                    '#'
                } else {
                    ' '
                }
            };
            drawn.enumerate().map(character).collect()
        }
    };
    bar.trim_end().to_owned()
}

/// The character that fills a cell from `low` to `high` eighths. There are blocks that grow from
/// the left by eighths, and from the right only a half and an eighth.
fn block(low: usize, high: usize) -> char {
    const FROM_LEFT: [char; EIGHTHS + 1] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let filled = high - low;
    match (low, filled) {
        (_, 0) => ' ',
        (0..4, _) if low == 0 || high < EIGHTHS => FROM_LEFT[filled],
        (_, 7) => '█',
        (_, 3..) => '▐',
        (_, _) => '▕',
    }
}

/// What it used, and what it saved.
fn footer(receipt: &Receipt, columns: usize, look: &Look) -> Vec<String> {
    let micro = look.micro();
    let mut lines = Vec::new();
    if let Some(usage) = receipt.usage {
        let cpu = format!(
            "cpu     {} user, {} system",
            units::duration(usage.user_us, micro),
            units::duration(usage.system_us, micro)
        );
        lines.push(fit(&cpu, columns, look.charset));
        lines.push(format!("memory  {} at its peak", units::size(usage.peak_kib)));
    }
    if let Some(demoted) = &receipt.demoted {
        let sentence = format!("why not forked: {}", printable(demoted, look.charset));
        lines.extend(wrap(&sentence, "", columns, look.charset));
    }
    if let Some(imported) = &receipt.imported {
        lines.extend(wrap(&imports(*imported), "", columns, look.charset));
    }
    if let Some(gain) = &receipt.gain {
        let (tone, sentence) = gained(gain, micro);
        let wrapped = wrap(&sentence, "", columns, look.charset);
        lines.extend(wrapped.iter().map(|line| look.paint(tone, line)));
    }
    lines
}

/// What a warm call imported itself.
fn imports(imported: ImportedPart) -> String {
    let modules = match imported.modules {
        1 => "a module".to_owned(),
        count => format!("{count} modules"),
    };
    let (left, beyond) = (imported.modules - imported.beyond, imported.beyond);
    let rest = match (left, beyond, imported.ahead) {
        (_, 0, _) => "left to each call; `hob why` says why".to_owned(),
        (0, _, true) => "from now on loaded ahead".to_owned(),
        (_, _, true) => format!("from now on {beyond} of them are loaded ahead"),
        (_, _, false) => format!("{beyond} of them not seen before"),
    };
    format!("imports {modules} in the call: {rest}")
}

/// What a warm call saved, with its range and what that rests on.
fn gained(gain: &GainPart, micro: Micro) -> (Tone, String) {
    let time = |us| units::duration(us, micro);
    let runs = match gain.cold_runs {
        1 => "a cold run".to_owned(),
        count => format!("{count} cold runs"),
    };
    if gain.cold_runs == 0 {
        let most = time(gain.most_us);
        let sentence = format!("saved   at most {most}: no cold run of these arguments is known");
        return (Tone::Dim, sentence);
    }
    if gain.lost_us > 0 {
        let lost = time(gain.lost_us);
        return (Tone::Bad, format!("lost    {lost}: {runs} of the same arguments took less"));
    }
    let range = if gain.most_us > gain.saved_us {
        format!(", at most {}", time(gain.most_us))
    } else {
        String::new()
    };
    let saved = time(gain.saved_us);
    (Tone::Good, format!("saved   {saved} of start-up{range}: {runs} of the same arguments"))
}

#[cfg(test)]
mod tests;
