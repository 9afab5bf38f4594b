//! The report for people: one page that needs nothing else, no script, and no network. Light or
//! dark as the reader's system is.
//!
//! What hooks wrote is text within it and nothing more: it is escaped, and the page forbids
//! scripts and foreign resources to itself.

use std::io::{self, Write};

use hob_core::hooks::{Bytes, HookOutcome, HookRecord, SetRecord};

use super::Overview;
use super::timeline::Timeline;
use crate::show::page;
use crate::show::page::markup::text;
use crate::show::units::{Micro, duration};
use crate::spread::Spread;
use crate::verbs::hooks::progress::{per_second, thousands};
use crate::verbs::hooks::resume::Journal;
use crate::verbs::hooks::tally::Ended;
use crate::verbs::hooks::tally::{failed, how, place};

/// So many failures are shown with their output; a browser has to lay them all out.
const FAILURES_MAX: u64 = 200;
/// So many targets are listed.
const TARGETS_MAX: u64 = 2_000;
/// How much of the end of a hook's output is shown.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// Writes it.
pub(super) fn write(
    out: &mut impl Write,
    overview: &Overview<'_>,
    journal: &Journal,
) -> io::Result<()> {
    head(out, overview)?;
    let tally = overview.tally;
    let mut timeline = Timeline::new(tally);
    journal.each(|sitting, ended| {
        timeline.add(sitting, ended);
        Ok::<(), io::Error>(())
    })?;
    let caption = timeline.caption();
    let svg = timeline.svg(&tally.sittings);
    writeln!(
        out,
        "<h2>Time</h2>\n<figure>\n{svg}<figcaption class=\"soft\">{caption}</figcaption>\n</figure>"
    )?;
    drop(timeline);
    if tally.failed() > 0 {
        failures(out, overview, journal)?;
    }
    times(out, overview)?;
    targets(out, overview, journal)?;
    out.write_all(b"</body>\n</html>\n")
}

fn head(out: &mut impl Write, overview: &Overview<'_>) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let tally = overview.tally;
    let dir = text(overview.dir.as_os_str().as_bytes());
    let title = format!("Hooks: {}", overview.dir.display());
    writeln!(out, "{}<h1>{dir}</h1>", page::head(&title))?;
    let first = tally.sittings.first().map_or("", |sitting| sitting.at.as_str());
    let resumed = match tally.sittings.len() {
        0 | 1 => String::new(),
        2 => " · resumed once".to_owned(),
        sittings => format!(" · resumed {} times", sittings - 1),
    };
    let jobs = tally.sittings.last().map_or(1, |sitting| sitting.jobs);
    writeln!(
        out,
        "<p class=\"soft\">{} · {} targets, {} hooks in {} ({} targets a second) · {jobs} at a \
         time · begun {}{resumed}</p>",
        text(overview.targets.as_bytes()),
        thousands(tally.ended()),
        thousands(tally.hooks_run()),
        duration(tally.wall_us(), Micro::Sign),
        per_second(tally.ended(), tally.wall_us()),
        begun(first),
    )?;
    out.write_all(b"<ul class=\"counts\">\n")?;
    for outcome in HookOutcome::ALL {
        let count = tally.targets[place(outcome)];
        if count > 0 {
            let word = outcome.word();
            writeln!(out, "<li><b>{}</b><i class=\"{word}\"></i>{word}</li>", thousands(count))?;
        }
    }
    if overview.left > 0 {
        let left = thousands(overview.left);
        writeln!(out, "<li><b>{left}</b><i class=\"left\"></i>not ended</li>")?;
    }
    if tally.retried > 0 {
        let retried = thousands(tally.retried);
        writeln!(out, "<li><b>{retried}</b>needed more than one try</li>")?;
    }
    out.write_all(b"</ul>\n")
}

/// A moment to the second.
fn begun(at: &str) -> String {
    let moment = at.parse::<jiff::Timestamp>();
    moment.map_or_else(
        |_| text(at.as_bytes()),
        |moment| moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

fn failures(out: &mut impl Write, overview: &Overview<'_>, journal: &Journal) -> io::Result<()> {
    out.write_all(b"<h2>Failures</h2>\n<section id=\"failures\">\n")?;
    let mut shown = 0;
    journal.each(|_, ended| {
        if failed(ended.set.outcome) && shown < FAILURES_MAX {
            shown += 1;
            failure(out, ended)?;
        }
        Ok::<(), io::Error>(())
    })?;
    if overview.tally.failed() > shown {
        let more = thousands(overview.tally.failed() - shown);
        writeln!(out, "<p class=\"soft\">and {more} more; the JSON report has all of them</p>")?;
    }
    out.write_all(b"</section>\n")
}

/// A target's name, with the host that it ran on where that was another one.
fn name(set: &SetRecord) -> String {
    let name = text(&set.target.0);
    match &set.host {
        Some(host) => format!("{name} <span class=\"soft\">on {}</span>", text(host.as_bytes())),
        None => name,
    }
}

fn failure(out: &mut impl Write, ended: &Ended) -> io::Result<()> {
    let set = &ended.set;
    let hook = set.hooks.iter().rev().find(|hook| failed(hook.outcome));
    let why = match (hook, &set.message) {
        (Some(hook), _) => format!("{}, {}", hook.name.text(), how(hook)),
        (None, Some(message)) => message.clone(),
        (None, None) => String::new(),
    };
    writeln!(
        out,
        "<details><summary><span class=\"word {word}\">{word}</span> {} <span class=\"soft\">line \
         {} · {} · {}{}</span></summary>",
        name(set),
        ended.line,
        text(why.as_bytes()),
        duration(set.wall_us, Micro::Sign),
        ended.in_which_try(),
        word = set.outcome.word(),
    )?;
    for hook in set.hooks.iter() {
        output(out, hook)?;
    }
    if !set.not_run.is_empty() {
        let names: Vec<_> = set.not_run.iter().map(Bytes::text).collect();
        writeln!(out, "<p class=\"soft\">not run: {}</p>", text(names.join(", ").as_bytes()))?;
    }
    out.write_all(b"</details>\n")
}

fn output(out: &mut impl Write, hook: &HookRecord) -> io::Result<()> {
    let streams = [("stdout", &hook.stdout), ("stderr", &hook.stderr)];
    for (name, stream) in streams.into_iter().filter(|(_, stream)| stream.total > 0) {
        let mut shown = stream.shown();
        let mut cut = "";
        if shown.len() > OUTPUT_BYTES_MAX {
            shown.drain(..shown.len() - OUTPUT_BYTES_MAX);
            cut = ", its end";
        }
        let (hook, shown) = (text(&hook.name.0), text(&shown));
        writeln!(out, "<p class=\"soft\">{hook}, {name}{cut}</p>\n<pre>{shown}</pre>")?;
    }
    Ok(())
}

fn times(out: &mut impl Write, overview: &Overview<'_>) -> io::Result<()> {
    let tally = overview.tally;
    out.write_all(
        b"<h2>Times</h2>\n<div class=\"wide\"><table>\n<tr><th></th><th class=\"figure\">count</th>\
          <th class=\"figure\">p50</th><th class=\"figure\">p99</th><th class=\"figure\">slowest\
          </th><th>failed</th></tr>\n",
    )?;
    let row = |out: &mut dyn Write, name: &str, spread: &Spread, bad: u64| {
        let time = |us: Option<u64>| us.map_or(String::new(), |us| duration(us, Micro::Sign));
        writeln!(
            out,
            "<tr><td>{name}</td><td class=\"figure\">{}</td><td class=\"figure\">{}</td>\
             <td class=\"figure\">{}</td><td class=\"figure\">{}</td><td>{}</td></tr>",
            thousands(spread.count()),
            time(spread.quantile(50)),
            time(spread.quantile(99)),
            time((spread.count() > 0).then_some(spread.max())),
            if bad > 0 { thousands(bad) } else { String::new() },
        )
    };
    row(out, "<b>targets</b>", &tally.spread, tally.failed())?;
    for (name, hook) in &tally.hooks {
        let of = |outcome: &&HookOutcome| failed(**outcome);
        let bad = HookOutcome::ALL.iter().filter(of).map(|one| hook.outcomes[place(*one)]).sum();
        row(out, &text(name), &hook.spread, bad)?;
    }
    out.write_all(b"</table></div>\n")?;
    if tally.slowest.is_empty() {
        return Ok(());
    }
    out.write_all(b"<h2>Slowest</h2>\n<div class=\"wide\"><table class=\"narrow\">\n")?;
    for slow in tally.slowest.iter().chain(&tally.slowest_hooks) {
        let hook = slow.hook.as_deref().map_or("all hooks".to_owned(), text);
        writeln!(
            out,
            "<tr><td class=\"figure\">{}</td><td>{}</td><td class=\"soft\">line {}</td>\
             <td>{hook}</td></tr>",
            duration(slow.wall_us, Micro::Sign),
            text(&slow.target),
            slow.line,
        )?;
    }
    out.write_all(b"</table></div>\n")
}

fn targets(out: &mut impl Write, overview: &Overview<'_>, journal: &Journal) -> io::Result<()> {
    let ended = overview.tally.ended();
    out.write_all(b"<h2>Targets</h2>\n")?;
    if ended > TARGETS_MAX {
        let (ended, shown) = (thousands(ended), thousands(TARGETS_MAX));
        writeln!(
            out,
            "<p class=\"soft\">the first {shown} of {ended} that ended; the JSON report has all</p>"
        )?;
    }
    out.write_all(
        b"<details><summary>in the order in which they ended</summary>\n<div class=\"wide\"><table>\
          \n<tr><th>line</th><th>target</th><th>outcome</th><th class=\"figure\">began</th>\
          <th class=\"figure\">took</th><th class=\"figure\">hooks</th></tr>\n",
    )?;
    let mut shown = 0;
    journal.each(|_, ended| {
        shown += 1;
        if shown > TARGETS_MAX {
            return Ok::<(), io::Error>(());
        }
        let set = &ended.set;
        let word = set.outcome.word();
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"word {word}\">{word}{}</td>\
             <td class=\"figure\">{}</td><td class=\"figure\">{}</td><td class=\"figure\">{}</td></tr>",
            ended.line,
            name(set),
            ended.in_which_try(),
            duration(set.at_us, Micro::Sign),
            duration(set.wall_us, Micro::Sign),
            set.hooks.len(),
        )
    })?;
    out.write_all(b"</table></div></details>\n")
}
