//! What a person reads at the end of a run over many targets.

use std::fmt::Write;

use hob_core::hooks::HookOutcome;

use super::progress::{per_second, thousands};
use super::tally::{Cause, Slow, Tally, place, told};
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit, pad, printable, width};
use crate::show::units::duration;
use crate::spread::Spread;

/// How many hooks have a line of their own; the slowest ones, in the order of their names.
const HOOKS_MAX: usize = 20;
/// How many lines of a failed hook's output are shown.
const OUTPUT_LINES_MAX: usize = 6;
/// Names take no more room than this.
const NAME_COLUMNS_MAX: usize = 32;

/// The summary, line by line.
pub(crate) fn text(tally: &Tally, look: &Look) -> String {
    let mut out = String::new();
    let columns = look.figure_columns();
    for line in look.flow(&counts(tally, look), columns) {
        out += &line;
        out.push('\n');
    }
    if tally.ended() == 0 {
        return out;
    }
    times(&mut out, tally, look);
    slowest(&mut out, tally, look);
    causes(&mut out, tally, look);
    out
}

fn counts(tally: &Tally, look: &Look) -> Vec<(Tone, String)> {
    let mut parts = vec![(Tone::Title, plural(tally.ended(), "target"))];
    for outcome in HookOutcome::ALL {
        let count = tally.targets[place(outcome)];
        if count > 0 {
            let tone = tone(outcome);
            parts.push((tone, format!("{} {}", thousands(count), outcome.word())));
        }
    }
    if tally.retried > 0 {
        let text = format!("{} needed more than one try", thousands(tally.retried));
        parts.push((Tone::Watch, text));
    }
    let wall_us = tally.wall_us();
    let hooks = plural(tally.hooks_run(), "hook");
    parts.push((Tone::Plain, format!("{hooks} in {}", duration(wall_us, look.micro()))));
    if wall_us > 0 {
        let rate = per_second(tally.ended(), wall_us);
        parts.push((Tone::Plain, format!("{rate} targets/s")));
    }
    parts
}

fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

fn tone(outcome: HookOutcome) -> Tone {
    match outcome {
        HookOutcome::Ok => Tone::Good,
        HookOutcome::Warning | HookOutcome::Interrupt | HookOutcome::Cancelled => Tone::Watch,
        HookOutcome::Error | HookOutcome::Timeout | HookOutcome::SystemError => Tone::Bad,
    }
}

fn times(out: &mut String, tally: &Tally, look: &Look) {
    let shown = |name: &[u8]| {
        let name = printable(&String::from_utf8_lossy(name), look.charset);
        fit(&name, NAME_COLUMNS_MAX, look.charset)
    };
    let mut hooks: Vec<_> = tally.hooks.iter().collect();
    hooks.sort_by_key(|(_, hook)| std::cmp::Reverse(hook.spread.max()));
    let hidden = hooks.len().saturating_sub(HOOKS_MAX);
    hooks.truncate(HOOKS_MAX);
    hooks.sort_by_key(|(name, _)| *name);
    let mut rows = vec![("all hooks of a target".to_owned(), &tally.spread)];
    rows.extend(hooks.into_iter().map(|(name, hook)| (shown(name), &hook.spread)));
    let names = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let cell = |text: &str| pad(text, 9, Align::Right);
    let head = format!(
        "{}{}{}{}{}",
        pad("", names, Align::Left),
        cell("count"),
        cell("p50"),
        cell("p99"),
        cell("slowest")
    );
    let _ = writeln!(out, "{}", look.paint(Tone::Dim, &head));
    for (name, spread) in rows {
        let quantile = |spread: &Spread, percent| {
            let us = spread.quantile(percent).unwrap_or(0);
            cell(&duration(us, look.micro()))
        };
        let _ = writeln!(
            out,
            "{}{}{}{}{}",
            pad(&name, names, Align::Left),
            cell(&thousands(spread.count())),
            quantile(spread, 50),
            quantile(spread, 99),
            cell(&duration(spread.max(), look.micro())),
        );
    }
    if hidden > 0 {
        let _ = writeln!(out, "and {hidden} faster ones");
    }
}

fn slowest(out: &mut String, tally: &Tally, look: &Look) {
    // Where there are few, the table has said it all.
    if tally.ended() < 3 {
        return;
    }
    let columns = look.figure_columns();
    let mut list = |title: &str, slow: &[Slow]| {
        let one = |slow: &Slow| {
            let target = String::from_utf8_lossy(&slow.target);
            let hook = slow.hook.as_ref().map(|name| String::from_utf8_lossy(name));
            let name = match hook {
                Some(hook) => format!("{hook} of {target}"),
                None => target.into_owned(),
            };
            let name = fit(&printable(&name, look.charset), NAME_COLUMNS_MAX, look.charset);
            (Tone::Plain, format!("{name} {}", duration(slow.wall_us, look.micro())))
        };
        let parts: Vec<_> = slow.iter().take(3).map(one).collect();
        for (index, line) in look.flow(&parts, columns.saturating_sub(17)).iter().enumerate() {
            let title = pad(if index == 0 { title } else { "" }, 17, Align::Left);
            let _ = writeln!(out, "{}{line}", look.paint(Tone::Dim, &title));
        }
    };
    list("slowest targets", &tally.slowest);
    list("slowest hooks", &tally.slowest_hooks);
}

fn causes(out: &mut String, tally: &Tally, look: &Look) {
    for cause in &tally.causes {
        let _ = writeln!(out, "{}", title(cause, look));
        let shown = String::from_utf8_lossy(&cause.output);
        let lines: Vec<&str> = shown.lines().collect();
        for line in &lines[lines.len().saturating_sub(OUTPUT_LINES_MAX)..] {
            let line = format!("    {}", printable(line, look.charset));
            let line =
                look.columns.map_or(line.clone(), |columns| fit(&line, columns, look.charset));
            let _ = writeln!(out, "{line}");
        }
    }
    let all: u64 = HookOutcome::ALL
        .iter()
        .filter(|outcome| told(**outcome))
        .map(|outcome| tally.targets[place(*outcome)])
        .sum();
    let more = all.saturating_sub(tally.causes.iter().map(|cause| cause.count).sum());
    if more > 0 {
        let more = thousands(more);
        let _ = writeln!(out, "and {more} by other causes; `--report FILE` has all of them");
    }
}

/// One target with its time; of several how many, and the first of them.
fn title(cause: &Cause, look: &Look) -> String {
    let hook = cause.hook.as_ref().map(|name| String::from_utf8_lossy(name).into_owned());
    let hook = hook.map_or_else(String::new, |name| format!("{name}, "));
    let named = cause.first.iter();
    let named =
        named.map(|(line, name)| format!("{} (line {line})", String::from_utf8_lossy(name)));
    let named = named.collect::<Vec<_>>().join(", ");
    let rest = if cause.count == 1 {
        let took = duration(cause.wall_us, look.micro());
        format!(" {named}: {hook}{}, after {took}{}", cause.how, cause.in_which_try)
    } else {
        let more = cause.count - cause.first.len() as u64;
        let more = if more == 0 { String::new() } else { format!(" and {} more", thousands(more)) };
        let how = &cause.how;
        format!(" {} targets: {hook}{how}: {named}{more}", thousands(cause.count))
    };
    let word = cause.outcome.word();
    let rest = printable(&rest, look.charset);
    let rest = look.columns.map_or(rest.clone(), |columns| {
        fit(&rest, columns.saturating_sub(word.len()), look.charset)
    });
    look.paint(tone(cause.outcome), word) + &rest
}
