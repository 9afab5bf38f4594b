//! The report for what reads JUnit's XML: a suite for each hook, a case in it for each target.
//!
//! Targets come one after the other, and a suite's head tells its sums. So the cases are put by in a
//! file without a name (`spool`), and memory does not grow with the number of targets.
//!
//! There is no one schema of it; what is written is valid by both that are in use (the one of
//! Ant's tasks and the one of Jenkins). So the output of hooks stands at the suite and in the
//! failures, and attributes that only one of them knows are left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hob_core::hooks::{Capture, HookOutcome, HookRecord};
use jiff::Timestamp;

use super::Overview;
use super::spool::{Part, Spool};
use crate::show::page::markup::{attribute, text};
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
    let mut suites: BTreeMap<Vec<u8>, Suite> = BTreeMap::new();
    let mut spool = Spool::new()?;
    journal.each(|sitting, ended| {
        let at = overview.tally.moment(sitting, ended.set.at_us);
        target(&mut suites, &mut spool, ended, at)
    })?;
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")?;
    for (id, (name, suite)) in suites.iter().enumerate() {
        suite.write(out, &spool, (id, name, &package))?;
    }
    out.write_all(b"</testsuites>\n")
}

/// What one hook came to, over all targets.
#[derive(Default)]
struct Suite {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
    wall_us: u64,
    begun: Option<Timestamp>,
    cases: Part,
    out: Part,
    err: Part,
}

impl Suite {
    fn write(
        &self,
        out: &mut impl Write,
        spool: &Spool,
        (id, name, package): (usize, &[u8], &str),
    ) -> io::Result<()> {
        writeln!(
            out,
            "<testsuite id=\"{id}\" package=\"{package}\" name=\"{}\" timestamp=\"{}\" \
             hostname=\"localhost\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
             skipped=\"{}\" time=\"{}\">",
            attribute(name),
            self.begun.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S"),
            self.tests,
            self.failures,
            self.errors,
            self.skipped,
            seconds(self.wall_us),
        )?;
        out.write_all(b"<properties/>\n")?;
        spool.copy(&self.cases, out)?;
        for (element, part) in [("system-out", &self.out), ("system-err", &self.err)] {
            write!(out, "<{element}>")?;
            spool.copy(part, out)?;
            writeln!(out, "</{element}>")?;
        }
        out.write_all(b"</testsuite>\n")
    }
}

/// Adds a target's hooks to their suites.
fn target(
    suites: &mut BTreeMap<Vec<u8>, Suite>,
    spool: &mut Spool,
    ended: &Ended,
    at: Timestamp,
) -> io::Result<()> {
    let set = &ended.set;
    let mut of = |name: &[u8], wall_us: u64, case: &str, streams: [&str; 2]| {
        let suite = suites.entry(name.to_vec()).or_default();
        suite.tests += 1;
        suite.failures += u64::from(case.contains("<failure "));
        suite.errors += u64::from(case.contains("<error "));
        suite.skipped += u64::from(case.contains("<skipped/>"));
        suite.wall_us += wall_us;
        suite.begun = Some(suite.begun.map_or(at, |begun| begun.min(at)));
        let (class, target) = (attribute(name), attribute(&set.target.0));
        let head = format!(
            "<testcase classname=\"{class}\" name=\"{target}\" time=\"{}\"",
            seconds(wall_us)
        );
        spool.add(&mut suite.cases, &format!("{head}{case}\n"))?;
        let [out, err] = streams;
        spool.add(&mut suite.out, out)?;
        spool.add(&mut suite.err, err)
    };
    for (index, hook) in set.hooks.iter().enumerate() {
        let [mut out, err] = [&hook.stdout, &hook.stderr].map(|written| stream(ended, written));
        if ended.tries > 1 && index + 1 == set.hooks.len() && out.is_empty() {
            // No attribute says it that both schemas know.
            out = head(ended);
        }
        of(&hook.name.0, hook.wall_us, &case(ended, hook), [&out, &err])?;
    }
    if let Some(message) = set.message.as_deref().filter(|_| set.hooks.is_empty()) {
        let message = attribute(message.as_bytes());
        let case = format!("><error type=\"system-error\" message=\"{message}\"/></testcase>");
        of(NO_HOOK.as_bytes(), set.wall_us, &case, ["", ""])?;
    }
    for name in &set.not_run {
        of(&name.0, 0, "><skipped/></testcase>", ["", ""])?;
    }
    Ok(())
}

/// What became of a hook, behind the attributes of its case. An interrupt is what its hook asked
/// for, and no failure.
fn case(ended: &Ended, hook: &HookRecord) -> String {
    let element = match hook.outcome {
        HookOutcome::Ok | HookOutcome::Warning | HookOutcome::Interrupt => return "/>".to_owned(),
        HookOutcome::Cancelled => return "><skipped/></testcase>".to_owned(),
        HookOutcome::SystemError => "error",
        HookOutcome::Error | HookOutcome::Timeout => "failure",
    };
    let stream = if hook.stderr.total > 0 { &hook.stderr } else { &hook.stdout };
    format!(
        "><{element} type=\"{}\" message=\"{}\">{}</{element}></testcase>",
        hook.outcome.word(),
        attribute(format!("{}{}", how(hook), ended.in_which_try()).as_bytes()),
        text(&end(stream)),
    )
}

/// What the hook wrote for this target, below its name.
fn stream(ended: &Ended, written: &Capture) -> String {
    if written.total == 0 {
        return String::new();
    }
    let shown = text(&end(written));
    let line_end = if shown.ends_with('\n') { "" } else { "\n" };
    head(ended) + &shown + line_end
}

/// The target's name, on a line of its own.
fn head(ended: &Ended) -> String {
    format!("[{}{}]\n", text(&ended.set.target.0), ended.in_which_try())
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
