//! The report for people: one page that needs nothing else, and no network. Light or dark as the
//! reader's system is. What failed comes first.
//!
//! What hooks wrote is text within it and nothing more: it is escaped, and the page forbids foreign
//! resources to itself, and scripts but for its own (`search`), without which it shows everything.

use std::io::{self, Write};

use hob_core::hooks::HookOutcome;

use super::timeline::Timeline;
use super::{Overview, causes, search};
use crate::show::page;
use crate::show::page::markup::text;
use crate::show::units::{Micro, duration};
use crate::spread::Spread;
use crate::verbs::hooks::progress::{per_second, thousands};
use crate::verbs::hooks::resume::Journal;
use crate::verbs::hooks::tally::{failed, place};

/// So many targets are listed.
const TARGETS_MAX: u64 = 2_000;

/// Writes it.
pub(super) fn write(
    out: &mut impl Write,
    overview: &Overview<'_>,
    journal: &Journal,
) -> io::Result<()> {
    head(out, overview)?;
    let tally = overview.tally;
    let is_searched = tally.ended() > 1;
    if is_searched {
        search::field(out)?;
    }
    if tally.failed() > 0 {
        causes::write(out, journal)?;
    }
    let mut timeline = Timeline::new(tally);
    journal.each(|sitting, ended| {
        timeline.add(sitting, ended);
        Ok::<(), io::Error>(())
    })?;
    let caption = timeline.caption();
    let picture = timeline.html(&tally.sittings);
    writeln!(
        out,
        "<h2>Time</h2>\n<figure>\n{picture}<figcaption class=\"soft\">{caption}</figcaption>\n\
         </figure>"
    )?;
    drop(timeline);
    times(out, overview)?;
    targets(out, overview, journal)?;
    if is_searched {
        search::script(out)?;
    }
    out.write_all(b"</body>\n</html>\n")
}

fn head(out: &mut impl Write, overview: &Overview<'_>) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let tally = overview.tally;
    let dir = text(overview.dir.as_os_str().as_bytes());
    let title = format!("Hooks: {}", overview.dir.display());
    writeln!(out, "{}<h1>{dir}</h1>", page::head_with_script(&title, search::SCRIPT_SHA256))?;
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

fn times(out: &mut impl Write, overview: &Overview<'_>) -> io::Result<()> {
    let tally = overview.tally;
    out.write_all(
        b"<h2>Times</h2>\n<div class=\"wide\"><table class=\"times\">\n<tr><th></th><th class=\"figure\">count</th>\
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
        b"<details id=\"targets\"><summary>in the order in which they ended</summary>\n<div class=\"wide\"><table>\
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
            "<tr data-line=\"{line}\"><td>{line}</td><td>{}</td><td class=\"word {word}\">{word}{}</td>\
             <td class=\"figure\">{}</td><td class=\"figure\">{}</td><td class=\"figure\">{}</td></tr>",
            causes::name(set),
            ended.in_which_try(),
            duration(set.at_us, Micro::Sign),
            duration(set.wall_us, Micro::Sign),
            set.hooks.len(),
            line = ended.line,
        )
    })?;
    out.write_all(b"</table></div></details>\n")
}
