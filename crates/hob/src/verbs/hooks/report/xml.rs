//! The report for what reads JUnit's XML: a suite for each target, a case for each hook.
//!
//! There is no one schema of it; what is written is valid by both that are in use (the one of
//! Ant's tasks and the one of Jenkins). So the output of hooks stands at the suite and in the
//! failures, and attributes that only one of them knows are left out.

use std::io::{self, Write};

use hob_core::hooks::{Capture, HookOutcome, HookRecord, SetRecord};
use jiff::{SignedDuration, Timestamp};

use super::Overview;
use super::markup::{attribute, text};
use crate::verbs::hooks::resume::Journal;
use crate::verbs::hooks::tally::Ended;
use crate::verbs::hooks::tally::how;

/// How much of the end of a hook's output is shown.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// A target that ended without any hook has one case of this name.
const NO_HOOK: &str = "(hooks directory)";

/// Writes it.
pub(super) fn write(
    out: &mut impl Write,
    overview: &Overview<'_>,
    journal: &Journal,
) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let package = attribute(overview.dir.as_os_str().as_bytes());
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")?;
    let mut id = 0_u64;
    journal.each(|sitting, ended| {
        let begun = usize::try_from(sitting)
            .ok()
            .and_then(|index| overview.tally.sittings.get(index))
            .and_then(|sitting| sitting.at.parse::<Timestamp>().ok())
            .unwrap_or_default();
        suite(out, ended, begun, id, &package)?;
        id += 1;
        Ok::<(), io::Error>(())
    })?;
    out.write_all(b"</testsuites>\n")
}

fn suite(
    out: &mut impl Write,
    ended: &Ended,
    begun: Timestamp,
    id: u64,
    package: &str,
) -> io::Result<()> {
    let set = &ended.set;
    let is = |outcome| move |hook: &&HookRecord| hook.outcome == outcome;
    let system_errors = set.hooks.iter().filter(is(HookOutcome::SystemError)).count();
    let failures = set.hooks.iter().filter(|hook| is_failure(hook.outcome)).count();
    let cancelled = set.hooks.iter().filter(is(HookOutcome::Cancelled)).count();
    let hookless = set.hooks.is_empty() && set.message.is_some();
    let cases = set.hooks.len() + set.not_run.len() + usize::from(hookless);
    let at = i64::try_from(set.at_us).unwrap_or(0);
    let at = begun.checked_add(SignedDuration::from_micros(at)).unwrap_or(begun);
    writeln!(
        out,
        "<testsuite id=\"{id}\" package=\"{package}\" name=\"{}\" timestamp=\"{}\" \
         hostname=\"localhost\" tests=\"{cases}\" failures=\"{failures}\" errors=\"{}\" \
         skipped=\"{}\" time=\"{}\">",
        attribute(&set.target.0),
        at.strftime("%Y-%m-%dT%H:%M:%S"),
        system_errors + usize::from(hookless),
        set.not_run.len() + cancelled,
        seconds(set.wall_us),
    )?;
    writeln!(out, "<properties><property name=\"line\" value=\"{}\"/></properties>", ended.line)?;
    for hook in &set.hooks {
        case(out, set, hook)?;
    }
    if let Some(message) = set.message.as_deref().filter(|_| hookless) {
        begin_case(out, set, NO_HOOK.as_bytes(), set.wall_us)?;
        let message = message.as_bytes();
        writeln!(
            out,
            "><error type=\"system-error\" message=\"{}\"/></testcase>",
            attribute(message)
        )?;
    }
    for name in &set.not_run {
        begin_case(out, set, &name.0, 0)?;
        out.write_all(b"><skipped/></testcase>\n")?;
    }
    streams(out, set)?;
    out.write_all(b"</testsuite>\n")
}

/// What JUnit calls a failure; what could not be run is an error there.
fn is_failure(outcome: HookOutcome) -> bool {
    matches!(outcome, HookOutcome::Error | HookOutcome::Timeout | HookOutcome::Interrupt)
}

fn begin_case(out: &mut impl Write, set: &SetRecord, name: &[u8], wall_us: u64) -> io::Result<()> {
    let (class, name) = (attribute(&set.target.0), attribute(name));
    write!(out, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{}\"", seconds(wall_us))
}

fn case(out: &mut impl Write, set: &SetRecord, hook: &HookRecord) -> io::Result<()> {
    begin_case(out, set, &hook.name.0, hook.wall_us)?;
    let element = match hook.outcome {
        HookOutcome::Ok | HookOutcome::Warning => return out.write_all(b"/>\n"),
        HookOutcome::Cancelled => return out.write_all(b"><skipped/></testcase>\n"),
        HookOutcome::SystemError => "error",
        HookOutcome::Error | HookOutcome::Timeout | HookOutcome::Interrupt => "failure",
    };
    let stream = if hook.stderr.total > 0 { &hook.stderr } else { &hook.stdout };
    writeln!(
        out,
        "><{element} type=\"{}\" message=\"{}\">{}</{element}></testcase>",
        hook.outcome.word(),
        attribute(how(hook).as_bytes()),
        text(&end(stream)),
    )
}

/// What all hooks of the target wrote.
fn streams(out: &mut impl Write, set: &SetRecord) -> io::Result<()> {
    stream(out, "system-out", set.hooks.iter().map(|hook| (hook, &hook.stdout)))?;
    stream(out, "system-err", set.hooks.iter().map(|hook| (hook, &hook.stderr)))
}

fn stream<'a>(
    out: &mut impl Write,
    element: &str,
    hooks: impl Iterator<Item = (&'a HookRecord, &'a Capture)>,
) -> io::Result<()> {
    write!(out, "<{element}>")?;
    for (hook, written) in hooks.filter(|(_, written)| written.total > 0) {
        let shown = text(&end(written));
        let line_end = if shown.ends_with('\n') { "" } else { "\n" };
        write!(out, "[{}]\n{shown}{line_end}", text(&hook.name.0))?;
    }
    writeln!(out, "</{element}>")
}

/// The end of what was written.
fn end(stream: &Capture) -> Vec<u8> {
    let mut shown = stream.shown();
    if shown.len() > OUTPUT_BYTES_MAX {
        shown.drain(..shown.len() - OUTPUT_BYTES_MAX);
    }
    shown
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
