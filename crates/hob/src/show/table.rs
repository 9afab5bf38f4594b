//! Records as a list: a line each, aligned, cut to the terminal's width.
//!
//! The columns are as wide as their widest cell. When that is too wide, the columns of text give
//! way, and columns that still find no room are left out, the last ones first. A pipe has room
//! for all columns, and no cell is wider than `TEXT_COLUMNS_MAX`: whole names are in the JSON.

use std::time::Duration;

use hob_core::receipt::Receipt;
use hob_core::receipt::naming::distinct;
use jiff::Timestamp;

use super::clock::{Clock, moment};
use super::entries::{Entry, How};
use super::saved::{Saved, saved};
use super::style::{Look, Tone};
use super::text::{Align, fit, fit_end, pad, printable, width};
use super::{units, waterfall};

const HEADS: [&str; COLUMNS] =
    ["CALL", "TIME", "PROGRAM", "HOW", "TOTAL", "SAVED", "REASON", "OUTCOME"];
const COLUMNS: usize = 8;
/// The columns of figures.
const FIGURES: [usize; 3] = [0, 4, 5];
/// Of a longer number only the end is shown. No recorder of one person's gets there.
const CALL_COLUMNS_MAX: usize = 7;
/// The columns that give way, in this order, when all are too wide: program, outcome, reason.
const GIVE_WAY: [usize; 3] = [2, 7, 6];
/// They are not made narrower than this.
const TEXT_COLUMNS_MIN: usize = 10;
/// Nor wider than this, even in a pipe: one long name must not spread the whole list.
const TEXT_COLUMNS_MAX: usize = 40;
/// What was saved: the first column to be left out.
const SAVED: usize = 5;
/// The column of names.
const PROGRAM: usize = 2;
const GAP: &str = "  ";

#[derive(Debug)]
struct Cell {
    text: String,
    tone: Tone,
}

fn plain(text: String) -> Cell {
    Cell { text, tone: Tone::Plain }
}

fn toned(tone: Tone, text: String) -> Cell {
    Cell { text, tone }
}

/// The records in the order given, at most `count` rows of the newest, with a heading and a line of
/// sums; a sentence if there are none. The calls of a run of hooks have one row, which is the
/// run's.
#[must_use]
pub fn entries(entries: &[Entry], count: usize, clock: &Clock, look: &Look) -> String {
    if entries.is_empty() {
        return format!("{NONE}\n");
    }
    let list = list(entries, count, clock, look);
    let rows = list.rows.iter().map(|(_, line)| line);
    std::iter::once(&list.heading)
        .chain(rows)
        .chain(&list.sums)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// What is said where there are no records.
pub(crate) const NONE: &str = "no calls are recorded yet: `hob run PROGRAM` makes one";

/// The lines of [`entries`].
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) heading: String,
    /// Each row, with the place of its record among those that were given.
    pub(crate) rows: Vec<(usize, String)>,
    pub(crate) sums: Vec<String>,
}

/// The same as lines.
pub(crate) fn list(entries: &[Entry], count: usize, clock: &Clock, look: &Look) -> List {
    let folded = folded(entries);
    let rows = folded.iter().filter(|folded| !**folded).count();
    let mut before = rows.saturating_sub(count);
    let from = folded.iter().position(|folded| {
        let is_shown = !folded && before == 0;
        before = before.saturating_sub(usize::from(!folded));
        is_shown
    });
    let from = from.unwrap_or(entries.len());
    let shown: Vec<(usize, &Entry)> = (from..entries.len())
        .filter(|at| folded.get(*at) == Some(&false))
        .filter_map(|at| entries.get(at).map(|entry| (at, entry)))
        .collect();
    let namings: Vec<_> = shown.iter().map(|(_, entry)| entry.naming()).collect();
    let rows: Vec<_> = shown
        .iter()
        .zip(distinct(&namings))
        .map(|((_, entry), name)| cells(entry, &name, clock, look))
        .collect();
    let widths = widths(&rows, look);
    let heads = HEADS.map(|head| toned(Tone::Dim, head.to_owned()));
    let lines = rows.iter().map(|row| line(row, &widths, look));
    let within = folded.iter().skip(from).filter(|folded| **folded).count();
    List {
        heading: line(&heads, &widths, look),
        rows: shown.iter().map(|(at, _)| *at).zip(lines).collect(),
        sums: sums(entries.get(from..).unwrap_or_default(), within, look),
    }
}

/// Which records are calls of a run of hooks that has a record of its own: they are of a file in
/// its directory, and came while it ran.
fn folded(entries: &[Entry]) -> Vec<bool> {
    let runs: Vec<_> = entries.iter().filter_map(Run::of).collect();
    let is_folded = |entry: &Entry| {
        let Entry::Receipt(receipt) = entry else { return false };
        let at = moment(&receipt.at).filter(|_| receipt.hooks.is_none());
        at.is_some_and(|at| runs.iter().any(|run| run.has(at, &receipt.program.target)))
    };
    entries.iter().map(is_folded).collect()
}

/// A run of hooks: its directory as it was named, when it began and ended.
struct Run<'a> {
    directory: &'a str,
    from: Timestamp,
    to: Timestamp,
}

impl Run<'_> {
    fn of(entry: &Entry) -> Option<Run<'_>> {
        let Entry::Receipt(receipt) = entry else { return None };
        receipt.hooks?;
        let from = moment(&receipt.at)?;
        let to = from.checked_add(Duration::from_micros(receipt.total_us)).ok()?;
        let directory = receipt.program.target.trim_start_matches("./").trim_end_matches('/');
        Some(Run { directory, from, to })
    }

    /// Whether a call of this file that came then is one of its hooks.
    fn has(&self, at: Timestamp, target: &str) -> bool {
        let within = (self.from..=self.to).contains(&at);
        let folder = target.rsplit_once('/').map_or("", |(folder, _)| folder);
        let same = || {
            folder == self.directory
                || matches!(self.directory, "" | ".")
                || folder.strip_suffix(self.directory).is_some_and(|rest| rest.ends_with('/'))
        };
        within && same()
    }
}

fn cells(entry: &Entry, name: &str, clock: &Clock, look: &Look) -> [Cell; COLUMNS] {
    let time = clock.show_short(entry.at(), look.charset);
    match entry {
        Entry::Receipt(receipt) => receipt_cells(receipt, name, time, look),
        Entry::Fallback(line) => [
            plain(String::new()),
            toned(Tone::Dim, time),
            plain(printable(name, look.charset)),
            toned(Tone::Watch, "cold".to_owned()),
            plain(String::new()),
            plain(String::new()),
            plain(printable(&line.reason, look.charset)),
            toned(Tone::Dim, "not seen".to_owned()),
        ],
    }
}

fn receipt_cells(receipt: &Receipt, name: &str, time: String, look: &Look) -> [Cell; COLUMNS] {
    let how = How::of(receipt);
    let outcome = waterfall::short_outcome(&receipt.outcome, look.charset);
    let tone = waterfall::outcome_tone(&receipt.outcome);
    // What is as it should be needs no colour in a list.
    let outcome = toned(if tone == Tone::Good { Tone::Plain } else { tone }, outcome);
    let saved = match saved(receipt) {
        None => plain(String::new()),
        Some(Saved::Gain(us)) => plain(units::duration(us, look.micro())),
        Some(Saved::Loss(us)) => {
            toned(Tone::Bad, format!("-{}", units::duration(us, look.micro())))
        }
    };
    [
        toned(Tone::Dim, fit_end(&receipt.call.to_string(), CALL_COLUMNS_MAX, look.charset)),
        toned(Tone::Dim, time),
        plain(printable(name, look.charset)),
        toned(how.tone(), how.word().to_owned()),
        plain(units::duration(receipt.total_us, look.micro())),
        saved,
        plain(reason(receipt, look)),
        outcome,
    ]
}

/// The code; of a run of hooks, how many of them were performed how.
fn reason(receipt: &Receipt, look: &Look) -> String {
    match &receipt.hooks {
        Some(hooks) => waterfall::ways(hooks),
        None => printable(&receipt.reason, look.charset),
    }
}

fn widths(rows: &[[Cell; COLUMNS]], look: &Look) -> [usize; COLUMNS] {
    let mut widths = HEADS.map(width);
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(&cell.text)).min(TEXT_COLUMNS_MAX);
        }
    }
    let all = widths.iter().sum::<usize>() + (COLUMNS - 1) * GAP.len();
    let mut excess = look.columns.map_or(0, |columns| all.saturating_sub(columns));
    for column in GIVE_WAY {
        let given = widths[column].saturating_sub(TEXT_COLUMNS_MIN).min(excess);
        widths[column] -= given;
        excess -= given;
    }
    if excess > 0 {
        // Rather than how it ended.
        widths[SAVED] = 0;
    }
    widths
}

fn line(row: &[Cell; COLUMNS], widths: &[usize; COLUMNS], look: &Look) -> String {
    let mut left = look.columns.unwrap_or(usize::MAX);
    let mut line = String::new();
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (column, cell) in row.iter().enumerate().take(last + 1) {
        if widths[column] == 0 {
            continue;
        }
        let gap = if column == 0 { "" } else { GAP };
        let room = left.saturating_sub(gap.len());
        let figures = FIGURES.contains(&column);
        // Half a figure would be a wrong one.
        if room < if figures { widths[column] } else { widths[column].min(TEXT_COLUMNS_MIN) } {
            break;
        }
        let columns = widths[column].min(room);
        // The end of a path says more than its beginning.
        let is_path = column == PROGRAM && cell.text.contains('/');
        let cut = if is_path { fit_end } else { fit }(&cell.text, columns, look.charset);
        let align = if figures { Align::Right } else { Align::Left };
        let padded = pad(&cut, widths[column].min(room), align);
        let shown = if column == last { padded.trim_end() } else { &padded };
        left = room - width(shown);
        line += gap;
        line += &look.paint(cell.tone, shown);
    }
    line.trim_end().to_owned()
}

/// `6 calls: 3 warm, 2 cold, 1 not run · saved 133 ms · lost 1.20 ms`.
fn sums(entries: &[Entry], within: usize, look: &Look) -> Vec<String> {
    let (mut gain_us, mut loss_us) = (0_u64, 0_u64);
    for entry in entries {
        let Entry::Receipt(receipt) = entry else { continue };
        match saved(receipt) {
            None => {}
            Some(Saved::Gain(us)) => gain_us = gain_us.saturating_add(us),
            Some(Saved::Loss(us)) => loss_us = loss_us.saturating_add(us),
        }
    }
    let count = |how| entries.iter().filter(|entry| entry.how() == how).count();
    let mut calls = match entries.len() {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    };
    calls += &format!(": {} warm, {} cold", count(How::Warm), count(How::Cold));
    if count(How::NotRun) > 0 {
        calls += &format!(", {} not run", count(How::NotRun));
    }
    match count(How::Hooks) {
        0 => {}
        1 => calls += ", 1 run of hooks",
        runs => calls += &format!(", {runs} runs of hooks"),
    }
    let mut parts = vec![(Tone::Dim, calls)];
    if within > 0 {
        parts.push((Tone::Dim, format!("{within} of them within runs of hooks")));
    }
    for (word, us) in [("saved", gain_us), ("lost", loss_us)] {
        if us > 0 {
            parts.push((Tone::Dim, format!("{word} {}", units::duration(us, look.micro()))));
        }
    }
    look.flow(&parts, look.columns.unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, LOOKS, golden, in_every_look};
    use super::*;
    use hob_core::receipt::HooksPart;

    #[test]
    fn all_kinds_in_every_look() {
        in_every_look("table", |look| entries(&samples::all(), 20, &samples::clock(), look));
    }

    #[test]
    fn a_pipe_has_room_for_all_columns() {
        let look = Look { columns: None, ..LOOKS[0].1 };
        golden("table-pipe", &entries(&samples::all(), 20, &samples::clock(), &look));
    }

    /// A run of two hooks, with the receipts that the hooks left.
    fn run_of_hooks() -> Vec<Entry> {
        let receipt = |call: u64, second: u64, name: &str| {
            let mut receipt = samples::warm();
            receipt.call = call;
            receipt.at = format!("2026-11-21T21:38:{second:02}.500000Z");
            receipt.program.name = name.to_owned();
            receipt.program.target = format!("/srv/app/{}", name.trim_start_matches("./"));
            receipt
        };
        let mut run = receipt(9, 10, "hooks.d");
        run.program.target = "./hooks.d".to_owned();
        run.total_us = 5_000_000;
        run.reason = "hooks".to_owned();
        run.hooks = Some(HooksPart { targets: 1, warm: 2, ..HooksPart::default() });
        let all = [
            receipt(6, 9, "hooks.d/10-first.py"),
            receipt(7, 11, "hooks.d/10-first.py"),
            receipt(8, 12, "hooks.d/20-second.py"),
            receipt(10, 13, "other.py"),
            run,
        ];
        all.into_iter().map(|receipt| Entry::Receipt(Box::new(receipt))).collect()
    }

    #[test]
    fn a_run_of_hooks_has_one_row() {
        let text = entries(&run_of_hooks(), 20, &samples::clock(), &LOOKS[0].1);
        let calls = |text: &str| -> Vec<String> {
            let rows = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
            rows.map(str::to_owned).take_while(|first| first != "5").collect()
        };
        assert_eq!(calls(&text), ["6", "10", "9"], "{text}");
        assert!(text.contains("1 run of hooks") && text.contains("2 of them within"), "{text}");
        let newest = entries(&run_of_hooks(), 2, &samples::clock(), &LOOKS[0].1);
        assert!(newest.contains("other.py") && !newest.contains("10-first"), "{newest}");
    }

    #[test]
    fn names_that_say_nothing_are_not_shown() {
        let mut list = samples::all();
        for (name, target) in [
            ("-m", "json.tool"),
            ("python3", "/srv/app/job.py"),
            ("hello.py", "/srv/one/hello.py"),
            ("hello.py", "/srv/two/hello.py"),
            ("/a/very/long/path/that/has/its/useful/part/at/the/end/report.py", "/x/report.py"),
        ] {
            let mut receipt = samples::warm();
            receipt.program.name = name.to_owned();
            receipt.program.target = target.to_owned();
            list.push(Entry::Receipt(Box::new(receipt)));
        }
        let look = Look { columns: None, ..LOOKS[0].1 };
        let text = entries(&list, 20, &samples::clock(), &look);
        for shown in ["-m json.tool", " job.py", "one/hello.py", "two/hello.py", "/report.py"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("python3"), "{text}");
    }

    #[test]
    fn nothing_yet_is_a_sentence() {
        let text = entries(&[], 20, &samples::clock(), &LOOKS[0].1);
        assert!(text.starts_with("no calls are recorded yet"), "{text}");
    }
}
