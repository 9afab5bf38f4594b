//! What being warm has gained and lost: the report of `hob gain`, as data and as text.
//!
//! It is added up from the daily sums (`hob_daemon::recorder::gain`) and from the lines of calls
//! that no daemon took. Those lines know a name only: they count for the program that was called
//! by that name last. `docs/gain.md` describes the JSON.

mod notes;

use std::collections::BTreeMap;

use hob_core::outcome::ColdReason;
use hob_core::receipt::naming::{Naming, distinct};
use hob_daemon::recorder::gain::{Day, Row};
use serde::Serialize;

use crate::show::columns;
use crate::show::entries::FallbackLine;
use crate::show::style::{Look, Tone};
use crate::show::text::{printable, width};
use crate::show::units;

/// The name of the format.
pub const SCHEMA: &str = "hob.gain/1";

const HEADS: [&str; COLUMNS] =
    ["PROGRAM", "WARM", "COLD", "SAVED", "AT MOST", "LOST", "A CALL", "NOW"];
const COLUMNS: usize = 8;
/// Figures are aligned to the right.
const FIGURES: std::ops::RangeInclusive<usize> = 1..=6;
const NAME_COLUMNS_MIN: usize = 10;
const NAME_COLUMNS_MAX: usize = 40;

/// What was gained and lost.
#[derive(Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The first day, of UTC.
    pub since: String,
    /// The last day: today.
    pub until: String,
    /// All programs, all days.
    pub total: Sums,
    /// All days of each program, whoever saved most first.
    pub programs: Vec<Program>,
    /// Each day that had calls, the oldest first.
    pub days: Vec<OneDay>,
}

/// What calls amount to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Warm calls.
    pub warm: u64,
    /// Cold calls that a daemon saw.
    pub cold: u64,
    /// Calls that no daemon took; they ran cold too.
    pub fallback: u64,
    /// Warm calls that can be compared with a cold run of the same arguments.
    pub compared: u64,
    /// Those of them that took longer than every such run.
    pub losses: u64,
    /// Warm calls of other arguments, of which only the upper end is known.
    pub bounded: u64,
    /// The start-up that was saved at least, in microseconds.
    pub saved_us: u64,
    /// The same at most.
    pub most_us: u64,
    /// What was lost.
    pub lost_us: u64,
    /// How often each reason was given.
    pub reasons: BTreeMap<String, u64>,
}

/// A program.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Program {
    /// `program.id` of its receipts; empty for one that only fallback lines name.
    pub id: String,
    /// The name as it was last called.
    pub name: String,
    /// The file or module that it resolved to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Its interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// What its calls amount to.
    #[serde(flatten)]
    pub sums: Sums,
    /// Its newest cold run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_us: Option<u64>,
    /// When it was last called, and the reason of that call.
    pub at: String,
    /// See there.
    pub reason: String,
    /// Whether its last call ran cold because it was slower warm.
    pub slower_warm: bool,
}

/// A day.
#[derive(Debug, Serialize)]
pub struct OneDay {
    /// `2026-11-21`.
    pub day: String,
    /// All programs.
    pub total: Sums,
    /// Each program.
    pub programs: Vec<Program>,
}

impl Sums {
    fn add_row(&mut self, row: &Row) {
        self.warm += row.warm;
        self.cold += row.cold;
        self.compared += row.compared;
        self.losses += row.losses;
        self.bounded += row.bounded;
        self.most_us = self.most_us.saturating_add(row.most_us);
        self.saved_us = self.saved_us.saturating_add(row.saved_us);
        self.lost_us = self.lost_us.saturating_add(row.lost_us);
        for (reason, count) in &row.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
    }

    fn add_fallback(&mut self, line: &FallbackLine) {
        self.fallback += 1;
        *self.reasons.entry(line.reason.clone()).or_default() += 1;
    }

    /// What a compared call gained on average, in microseconds; negative if it lost.
    fn per_call_us(&self) -> Option<i64> {
        let calls = i64::try_from(self.compared).ok().filter(|calls| *calls > 0)?;
        let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
        Some((signed(self.saved_us) - signed(self.lost_us)) / calls)
    }
}

impl Program {
    fn add_row(&mut self, row: &Row) {
        self.sums.add_row(row);
        if row.at >= self.at {
            self.id.clone_from(&row.id);
            self.name.clone_from(&row.name);
            self.target.clone_from(&row.target);
            self.interpreter.clone_from(&row.interpreter);
            self.cold_us = row.cold_us.or(self.cold_us);
            self.at.clone_from(&row.at);
            self.reason.clone_from(&row.reason);
            self.slower_warm = row.reason == ColdReason::SlowerWarm.code();
        }
    }

    fn add_fallback(&mut self, line: &FallbackLine) {
        self.sums.add_fallback(line);
        if line.at > self.at {
            self.at.clone_from(&line.at);
            self.reason.clone_from(&line.reason);
            if self.id.is_empty() {
                self.name.clone_from(&line.program.name);
            }
        }
    }
}

/// Adds up the days from `since` on.
#[must_use]
pub fn report(
    (since, until): (String, String),
    days: &[(String, Day)],
    fallbacks: &[FallbackLine],
) -> Report {
    let day_of = |line: &FallbackLine| line.at.get(..10).unwrap_or_default().to_owned();
    let kept: Vec<_> = fallbacks.iter().filter(|line| day_of(line) >= since).collect();
    let owners = owners(days, &since);
    let mut total = Sums::default();
    let mut programs: BTreeMap<String, Program> = BTreeMap::new();
    let mut by_day: BTreeMap<String, (Sums, BTreeMap<String, Program>)> = BTreeMap::new();
    for (day, rows) in days.iter().filter(|(day, _)| *day >= since) {
        for row in rows.rows() {
            total.add_row(row);
            programs.entry(row.id.clone()).or_default().add_row(row);
            let (total, of_day) = by_day.entry(day.clone()).or_default();
            total.add_row(row);
            of_day.entry(row.id.clone()).or_default().add_row(row);
        }
    }
    for line in kept {
        let name = &line.program.name;
        let key = owners.get(name).cloned().unwrap_or_else(|| format!("name {name}"));
        total.add_fallback(line);
        programs.entry(key.clone()).or_default().add_fallback(line);
        let known = programs.get(&key).cloned().unwrap_or_default();
        let (total, of_day) = by_day.entry(day_of(line)).or_default();
        total.add_fallback(line);
        let of_day = of_day.entry(key).or_insert_with(|| Program {
            id: known.id,
            name: known.name,
            target: known.target,
            interpreter: known.interpreter,
            ..Program::default()
        });
        of_day.add_fallback(line);
    }
    let days = by_day.into_iter();
    let days =
        days.map(|(day, (total, programs))| OneDay { day, total, programs: sorted(programs) });
    Report { schema: SCHEMA, since, until, total, programs: sorted(programs), days: days.collect() }
}

/// Which program each name last called.
fn owners(days: &[(String, Day)], since: &str) -> BTreeMap<String, String> {
    let mut owners: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for row in
        days.iter().filter(|(day, _)| *day.as_str() >= *since).flat_map(|(_, day)| day.rows())
    {
        let owner = owners.entry(row.name.clone()).or_default();
        *owner = (*owner).max((&row.at, &row.id));
    }
    owners.into_iter().map(|(name, (_, id))| (name, id.to_owned())).collect()
}

/// Whoever saved most first; what lost, last.
fn sorted(programs: BTreeMap<String, Program>) -> Vec<Program> {
    let mut programs: Vec<_> = programs.into_values().collect();
    let gain =
        |program: &Program| i128::from(program.sums.saved_us) - i128::from(program.sums.lost_us);
    programs.sort_by_key(|program| (std::cmp::Reverse(gain(program)), program.name.clone()));
    programs
}

/// The report for a person.
#[must_use]
pub fn text(report: &Report, look: &Look) -> String {
    if report.programs.is_empty() {
        return format!("no calls since {}: `hob run PROGRAM` makes one\n", report.since);
    }
    let mut rows = Vec::new();
    rows.push((Tone::Dim, HEADS.map(str::to_owned)));
    let namings: Vec<_> = report.programs.iter().map(naming).collect();
    for (program, name) in report.programs.iter().zip(distinct(&namings)) {
        let tone = if program.slower_warm { Tone::Watch } else { Tone::Plain };
        rows.push((tone, cells(&name, &program.sums, now(program), look)));
    }
    rows.push((Tone::Title, cells("all", &report.total, String::new(), look)));
    let mut heads = HEADS.map(str::to_owned);
    (heads[0], heads[7]) = ("DAY".to_owned(), String::new());
    rows.push((Tone::Plain, [const { String::new() }; COLUMNS]));
    rows.push((Tone::Dim, heads));
    for day in &report.days {
        rows.push((Tone::Plain, cells(&day.day, &day.total, String::new(), look)));
    }
    let widths = widths(&rows, look);
    let mut text: String = rows
        .iter()
        .map(|(tone, row)| look.paint(*tone, &line(row, &widths, look)) + "\n")
        .collect();
    let notes = notes::of(report, look);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text += &(note + "\n");
    }
    text
}

fn naming(program: &Program) -> Naming<'_> {
    Naming {
        name: &program.name,
        target: &program.target,
        interpreter: program.interpreter.as_deref(),
    }
}

/// How the program stands, in a word.
fn now(program: &Program) -> String {
    if program.slower_warm { "slower warm" } else { "" }.to_owned()
}

fn cells(name: &str, sums: &Sums, now: String, look: &Look) -> [String; COLUMNS] {
    let time = |us: u64| {
        if us == 0 { String::new() } else { units::duration(us, look.micro()) }
    };
    let per_call = sums.per_call_us().map_or(String::new(), |us| {
        let sign = if us < 0 { "-" } else { "" };
        format!("{sign}{}", units::duration(us.unsigned_abs(), look.micro()))
    });
    [
        printable(name, look.charset),
        sums.warm.to_string(),
        (sums.cold + sums.fallback).to_string(),
        time(sums.saved_us),
        time(sums.most_us),
        time(sums.lost_us),
        per_call,
        now,
    ]
}

fn widths(rows: &[(Tone, [String; COLUMNS])], look: &Look) -> [usize; COLUMNS] {
    let mut widths = [0; COLUMNS];
    for (_, row) in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(cell));
        }
    }
    let others = widths[1..].iter().sum::<usize>() + (COLUMNS - 1) * columns::GAP.len();
    let room = look.columns.map_or(NAME_COLUMNS_MAX, |columns| columns.saturating_sub(others));
    widths[0] = widths[0].min(room.clamp(NAME_COLUMNS_MIN, NAME_COLUMNS_MAX));
    widths
}

fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS], look: &Look) -> String {
    columns::line(row, widths, |column| FIGURES.contains(&column), look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::samples::{LOOKS, in_every_look};

    fn row(id: &str, at: &str, (warm, cold): (u64, u64), (saved_us, lost_us): (u64, u64)) -> Row {
        Row {
            id: id.to_owned(),
            name: format!("{id}.py"),
            target: format!("/srv/{id}.py"),
            warm,
            cold,
            compared: warm,
            losses: u64::from(lost_us > 0),
            saved_us,
            most_us: saved_us + saved_us / 4,
            lost_us,
            at: at.to_owned(),
            reason: if lost_us > saved_us { "slower-warm" } else { "copy-ready" }.to_owned(),
            ..Row::default()
        }
    }

    fn line(at: &str, name: &str) -> FallbackLine {
        let value = serde_json::json!({"schema": "hob.fallback/1", "at": at, "warm": false,
            "program": {"name": name}, "reason": "no-daemon", "caller_pid": 1});
        serde_json::from_value(value).unwrap()
    }

    fn sample() -> Report {
        let days = [
            ("2026-11-01", vec![row("old", "2026-11-01T10:00:00Z", (9, 9), (9, 9))]),
            (
                "2026-11-20",
                vec![
                    row("black", "2026-11-20T10:00:00Z", (100, 2), (4_300_000, 0)),
                    row("scan", "2026-11-20T10:00:00Z", (20, 1), (0, 2_100_000)),
                ],
            ),
            ("2026-11-21", vec![row("black", "2026-11-21T10:00:00Z", (18, 0), (780_000, 1_200))]),
        ];
        let days: Vec<_> = days
            .into_iter()
            .map(|(name, rows)| {
                let mut day = Day::default();
                rows.into_iter().for_each(|row| day.add(row));
                (name.to_owned(), day)
            })
            .collect();
        let lines = [
            line("2026-11-02T00:00:00Z", "black.py"),
            line("2026-11-21T00:00:00Z", "black.py"),
            line("2026-11-21T12:00:00Z", "a-name-that-nobody-would-type-\u{1b}[2J-but-a-machine"),
        ];
        report(("2026-11-20".to_owned(), "2026-11-21".to_owned()), &days, &lines)
    }

    #[test]
    fn days_before_the_first_are_left_out_and_nothing_else_is() {
        let report = sample();
        let total = &report.total;
        assert_eq!((total.warm, total.cold, total.fallback), (138, 3, 2));
        assert_eq!((total.saved_us, total.lost_us, total.losses), (5_080_000, 2_101_200, 2));
        let names: Vec<_> = report.programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!((names[0], names[2]), ("black.py", "scan.py"));
        assert_eq!(report.days.len(), 2);
        let of_days = report.days.iter().map(|day| day.total.warm).sum::<u64>();
        assert_eq!(of_days, total.warm);
    }

    #[test]
    fn a_call_that_no_daemon_took_counts_for_the_program_of_that_name() {
        let report = sample();
        let black = &report.programs[0];
        assert_eq!((black.id.as_str(), black.sums.fallback), ("black", 1));
        assert_eq!(report.days[1].programs[0].sums.fallback, 1);
        assert_eq!(report.programs[1].id, "");
    }

    #[test]
    fn who_is_slower_warm_is_marked_and_last() {
        let report = sample();
        let marked: Vec<_> = report.programs.iter().map(|program| program.slower_warm).collect();
        assert_eq!(marked, [false, false, true]);
        assert_eq!(report.programs[2].sums.per_call_us(), Some(-105_000));
    }

    #[test]
    fn the_report_fits_in_every_look() {
        in_every_look("gain", |look| text(&sample(), look));
    }

    #[test]
    fn nothing_yet_is_a_sentence() {
        let empty = report(("2026-11-20".to_owned(), "2026-11-21".to_owned()), &[], &[]);
        assert!(text(&empty, &LOOKS[0].1).starts_with("no calls since 2026-11-20"));
    }
}
