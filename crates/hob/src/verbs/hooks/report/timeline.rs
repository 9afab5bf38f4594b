//! The picture of a report: targets over time, coloured by what became of them, and below it the
//! processes at work.
//!
//! A few targets have a row each, with their hooks in it. Many share rows by the lane in which
//! they ran, and time is divided into columns; a column that holds several targets has the colour
//! of the worst, so that one failure among thousands is still seen. So the picture's size does
//! not grow with the number of targets.
//!
//! Each row is a picture of its own, which is stretched to the page's width; what is to be read
//! stands beside it as text, so that its size is that of other text on any screen.

use std::fmt::Write;

use hob_core::hooks::HookOutcome;

use crate::show::page::markup::{attribute, text};
use crate::show::units::{Micro, duration};
use crate::verbs::hooks::tally::{Ended, Sitting, Tally, failed};

/// So many targets have a row each.
pub(super) const ROWS_EACH_MAX: u64 = 40;
/// More lanes than this share rows.
const ROWS_MAX: usize = 32;
/// How finely time is divided.
const COLUMNS: usize = 800;
/// How wide each row's picture is, in its own units.
const WIDTH: u64 = 1000;
/// How high the picture of the processes is.
const PROCESSES: usize = 72;
/// About so many marks of time.
const TICKS: u64 = 8;

/// One target with a row of its own.
#[derive(Debug)]
struct Row {
    line: u64,
    name: String,
    outcome: HookOutcome,
    at_us: u64,
    wall_us: u64,
    hooks: Vec<(String, HookOutcome, u64, u64)>,
}

/// What was added so far.
#[derive(Debug)]
pub(super) struct Timeline {
    /// When each sitting begins in the picture: they follow each other without a gap.
    offsets: Vec<u64>,
    total_us: u64,
    lanes: usize,
    rows: Option<Vec<Row>>,
    /// The worst outcome of each column of each shared row.
    cells: Vec<Option<HookOutcome>>,
    shared: usize,
    /// The time that hooks took within each column.
    busy_us: Vec<u64>,
}

impl Timeline {
    pub(super) fn new(tally: &Tally) -> Timeline {
        let mut total_us = 0;
        let mut offset = |sitting: &Sitting| {
            let begin = total_us;
            total_us += sitting.wall_us;
            begin
        };
        let offsets = tally.sittings.iter().map(&mut offset).collect();
        let lanes = usize::try_from(tally.lanes).unwrap_or(1).max(1);
        let shared = lanes.min(ROWS_MAX);
        Timeline {
            offsets,
            total_us: total_us.max(1),
            lanes,
            rows: (tally.ended() <= ROWS_EACH_MAX).then(Vec::new),
            cells: vec![None; shared * COLUMNS],
            shared,
            busy_us: vec![0; COLUMNS],
        }
    }

    pub(super) fn add(&mut self, sitting: u32, ended: &Ended) {
        let index = usize::try_from(sitting).unwrap_or(0);
        let offset_us = self.offsets.get(index).copied().unwrap_or(0);
        let set = &ended.set;
        let at_us = offset_us + set.at_us;
        for hook in &set.hooks {
            self.at_work(offset_us + hook.at_us, hook.wall_us);
        }
        if let Some(rows) = &mut self.rows {
            let hook = |hook: &hob_core::hooks::HookRecord| {
                let name = hook.name.text().into_owned();
                (name, hook.outcome, offset_us + hook.at_us, hook.wall_us)
            };
            rows.push(Row {
                line: ended.line,
                name: set.target.text().into_owned(),
                outcome: set.outcome,
                at_us,
                wall_us: set.wall_us,
                hooks: set.hooks.iter().map(hook).collect(),
            });
        }
        let lane = usize::try_from(ended.lane).unwrap_or(0).min(self.lanes - 1);
        let row = lane * self.shared / self.lanes;
        for column in self.column(at_us)..=self.column(at_us + set.wall_us) {
            let cell = &mut self.cells[row * COLUMNS + column];
            *cell = Some(cell.map_or(set.outcome, |worst| worst.worst(set.outcome)));
        }
    }

    fn column(&self, us: u64) -> usize {
        let exact = u128::from(us) * COLUMNS as u128 / u128::from(self.total_us);
        usize::try_from(exact).unwrap_or(COLUMNS).min(COLUMNS - 1)
    }

    fn column_us(&self, column: usize) -> u64 {
        let exact = column as u128 * u128::from(self.total_us) / COLUMNS as u128;
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    fn at_work(&mut self, at_us: u64, wall_us: u64) {
        let end_us = at_us + wall_us;
        for column in self.column(at_us)..=self.column(end_us) {
            let begin = self.column_us(column).max(at_us);
            let end = if column + 1 == COLUMNS { end_us } else { self.column_us(column + 1) };
            self.busy_us[column] += end.min(end_us).saturating_sub(begin);
        }
    }

    /// How the picture is to be read.
    pub(super) fn caption(&self) -> &'static str {
        match &self.rows {
            Some(_) => "One row a target, its hooks one after another.",
            None => {
                "One row for each target that ran at the same time; where several share a stretch \
                 of time, it has the colour of the worst."
            }
        }
    }

    /// The picture, as HTML with SVG in it.
    pub(super) fn html(&mut self, sittings: &[Sitting]) -> String {
        if let Some(rows) = &mut self.rows {
            rows.sort_by_key(|row| row.at_us);
        }
        let scale = Scale { total_us: self.total_us };
        let behind = self.marks(&scale, sittings);
        let named = if self.rows.is_some() { " class=\"named\"" } else { "" };
        let mut html = format!(
            "<div id=\"timeline\"{named} role=\"img\" aria-label=\"Targets over time, and the \
             processes at work\">\n"
        );
        match &self.rows {
            Some(rows) => rows.iter().for_each(|row| draw_row(&mut html, &scale, row, &behind)),
            None => self.draw_lanes(&mut html, &scale, &behind),
        }
        self.draw_processes(&mut html, &scale, &behind);
        self.ticks(&mut html, &scale);
        html += "</div>\n";
        html
    }

    /// What stands behind every row: lines at the marks of time, and where a run was resumed.
    fn marks(&self, scale: &Scale, sittings: &[Sitting]) -> String {
        let mut lines = String::new();
        let mut line = |class: &str, at_us: u64, title: &str| {
            let x = scale.x(at_us);
            let _ = write!(
                lines,
                "<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"100%\">{title}</line>"
            );
        };
        for at_us in ticks(self.total_us) {
            line("tick", at_us, "");
        }
        for (offset_us, sitting) in self.offsets.iter().zip(sittings).skip(1) {
            let at = text(sitting.at.as_bytes());
            line("resumed", *offset_us, &format!("<title>resumed at {at}</title>"));
        }
        lines
    }

    /// The times of the marks. On a narrow page every other one has room.
    fn ticks(&self, html: &mut String, scale: &Scale) {
        *html += if self.rows.is_some() { "<div><span></span>" } else { "<div>" };
        *html += "<div class=\"ticks\">";
        for (index, at_us) in ticks(self.total_us).enumerate() {
            let tenths = scale.tenths(at_us);
            let class = match (index, tenths) {
                (0, _) => "first",
                (_, tenths) if tenths > WIDTH * 10 * 19 / 20 && index % 2 == 1 => "odd last",
                (_, tenths) if tenths > WIDTH * 10 * 19 / 20 => "last",
                _ if index % 2 == 1 => "odd",
                _ => "even",
            };
            let time = if at_us == 0 { "0".to_owned() } else { duration(at_us, Micro::Sign) };
            let (whole, part) = (tenths / 100, tenths % 100);
            let _ =
                write!(html, "<i class=\"{class}\" style=\"left:{whole}.{part:02}%\">{time}</i>");
        }
        *html += "</div></div>\n";
    }

    /// Neighbouring cells of one outcome are one rectangle.
    fn draw_lanes(&self, html: &mut String, scale: &Scale, behind: &str) {
        let height = if self.shared > 8 { 10 } else { 20 };
        for row in 0..self.shared {
            let cells = &self.cells[row * COLUMNS..(row + 1) * COLUMNS];
            // What failed is drawn over what did not, whose edges may be wider than itself.
            let (mut well, mut badly) = (String::new(), String::new());
            let mut begin = 0;
            while begin < COLUMNS {
                let run = cells[begin..].iter().take_while(|cell| **cell == cells[begin]).count();
                if let Some(outcome) = cells[begin] {
                    let (from, to) = (self.column_us(begin), self.column_us(begin + run));
                    let at = Place { y: 1, height: height - 2 };
                    let title = format!(
                        "{} to {}: {}",
                        duration(from, Micro::Sign),
                        duration(to, Micro::Sign),
                        outcome.word()
                    );
                    let bar = Bar { from_us: from, to_us: to, outcome, title: &title };
                    let svg = if failed(outcome) { &mut badly } else { &mut well };
                    rectangle(svg, scale, at, bar);
                }
                begin += run;
            }
            *html += "<div>";
            open(html, height);
            let _ = writeln!(html, "{behind}{well}{badly}</svg></div>");
        }
    }

    fn draw_processes(&self, html: &mut String, scale: &Scale, behind: &str) {
        let bottom = PROCESSES;
        // In hundredths of a process. Columns differ by a microsecond, and so may hooks that follow
        // each other: no more are at work than there are lanes.
        let level = |(column, busy_us): (usize, &u64)| {
            let width_us = self.column_us(column + 1) - self.column_us(column);
            let level = busy_us.saturating_mul(100) / width_us.max(1);
            level.min(100 * self.lanes as u64)
        };
        let most = self.busy_us.iter().enumerate().map(level).max().unwrap_or(0).max(1);
        // A whole number of processes is the top.
        let full = most.div_ceil(100) * 100;
        let mut path = format!("M{} {bottom}", scale.x(0));
        for (column, busy_us) in self.busy_us.iter().enumerate() {
            let y = bottom as u64 - level((column, busy_us)) * PROCESSES as u64 / full;
            let (from, to) = (self.column_us(column), self.column_us(column + 1));
            let _ = write!(path, "H{}V{y}H{}", scale.x(from), scale.x(to));
        }
        let _ = write!(path, "V{bottom}Z");
        let count = full / 100;
        let es = if count == 1 { "" } else { "es" };
        let _ = write!(html, "<div class=\"busy-row\"><span>{count} process{es} at work</span>");
        open(html, PROCESSES);
        let _ = writeln!(
            html,
            "{behind}<path id=\"processes\" class=\"busy\" d=\"{path}\"/>\
             <line class=\"level\" x1=\"0\" x2=\"{WIDTH}\" y1=\"0\" y2=\"0\"/></svg></div>"
        );
    }
}

/// From time to the picture's units.
#[derive(Debug)]
struct Scale {
    total_us: u64,
}

impl Scale {
    /// With one digit behind the point.
    fn x(&self, us: u64) -> String {
        let tenths = self.tenths(us);
        format!("{}.{}", tenths / 10, tenths % 10)
    }

    fn tenths(&self, us: u64) -> u64 {
        let all = u128::from(us.min(self.total_us)) * u128::from(WIDTH) * 10;
        u64::try_from(all / u128::from(self.total_us)).unwrap_or(WIDTH * 10)
    }
}

/// Begins a row's picture.
fn open(html: &mut String, height: usize) {
    let _ = write!(
        html,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" preserveAspectRatio=\"none\" \
         style=\"height:{height}px\">"
    );
}

/// Where a rectangle stands in its row.
#[derive(Debug, Clone, Copy)]
struct Place {
    y: usize,
    height: usize,
}

/// What a rectangle shows.
struct Bar<'a> {
    from_us: u64,
    to_us: u64,
    outcome: HookOutcome,
    title: &'a str,
}

fn rectangle(svg: &mut String, scale: &Scale, at: Place, bar: Bar<'_>) {
    let Bar { from_us, to_us, outcome, title } = bar;
    // Nothing is so short that it cannot be seen.
    let width = scale.tenths(to_us).saturating_sub(scale.tenths(from_us)).max(8);
    let _ = write!(
        svg,
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}.{}\" height=\"{}\"><title>{title}</title></rect>",
        outcome.word(),
        scale.x(from_us),
        at.y,
        width / 10,
        width % 10,
        at.height
    );
}

fn draw_row(html: &mut String, scale: &Scale, row: &Row, behind: &str) {
    const HEIGHT: usize = 16;
    let (name, line) = (text(row.name.as_bytes()), row.line);
    let whole = attribute(row.name.as_bytes());
    let _ = write!(html, "<div data-line=\"{line}\"><span title=\"{whole}\">{name}</span>");
    open(html, HEIGHT);
    *html += behind;
    let title = |name: &str, outcome: HookOutcome, wall_us: u64| {
        let name = attribute(name.as_bytes());
        format!("{name}: {}, {}", outcome.word(), duration(wall_us, Micro::Sign))
    };
    let line = title(&row.name, row.outcome, row.wall_us);
    let (from_us, to_us) = (row.at_us, row.at_us + row.wall_us);
    let bar = Bar { from_us, to_us, outcome: row.outcome, title: &line };
    rectangle(html, scale, Place { y: HEIGHT / 2 - 1, height: 2 }, bar);
    for (name, outcome, at_us, wall_us) in &row.hooks {
        let at = Place { y: 2, height: HEIGHT - 4 };
        let title = title(&format!("{} · {name}", row.name), *outcome, *wall_us);
        let (outcome, title) = (*outcome, title.as_str());
        let bar = Bar { from_us: *at_us, to_us: at_us + wall_us, outcome, title };
        rectangle(html, scale, at, bar);
    }
    *html += "</svg></div>\n";
}

/// The marks of time.
fn ticks(total_us: u64) -> impl Iterator<Item = u64> {
    let step_us = step(total_us);
    (0..=total_us / step_us).map(move |index| index * step_us)
}

/// A round time between two marks: 1, 2 or 5 and zeros.
fn step(total_us: u64) -> u64 {
    let mut step = 1_u64;
    while step.saturating_mul(TICKS) < total_us {
        let leading = step / 10_u64.pow(step.ilog10());
        step = if leading == 2 { step / 2 * 5 } else { step.saturating_mul(2) };
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_core::hooks::{Bytes, SetRecord};

    fn ended(lane: u32, at_us: u64, wall_us: u64, outcome: HookOutcome) -> Ended {
        let target = Bytes::from("a<b");
        let set = SetRecord {
            set: 0,
            target,
            dir: "d".into(),
            outcome,
            at_us,
            wall_us,
            hooks: Vec::new(),
            not_run: Vec::new(),
            message: None,
            host: None,
        };
        Ended { line: 1, digest: String::new(), lane, tries: 1, set }
    }

    fn picture(all: &[Ended]) -> String {
        let mut tally = Tally::new();
        tally.sit("2026-11-22T07:00:00Z".to_owned(), 2);
        all.iter().for_each(|ended| tally.add(ended));
        let mut timeline = Timeline::new(&tally);
        all.iter().for_each(|ended| timeline.add(0, ended));
        timeline.html(&tally.sittings)
    }

    #[test]
    fn one_failure_among_thousands_is_seen() {
        let all: Vec<Ended> = (0..20_000)
            .map(|n| {
                let bad = n == 12_345;
                ended(
                    n % 4,
                    u64::from(n / 4) * 1_000,
                    900,
                    if bad { HookOutcome::Error } else { HookOutcome::Ok },
                )
            })
            .collect();
        let svg = picture(&all);
        assert_eq!(svg.matches("class=\"error\"").count(), 1);
        assert!(svg.len() < 200_000, "{}", svg.len());
    }

    #[test]
    fn a_few_have_their_own_rows_and_their_names_do_nothing() {
        let svg = picture(&[
            ended(0, 0, 10_000, HookOutcome::Ok),
            ended(1, 5_000, 5_000, HookOutcome::Timeout),
        ]);
        assert_eq!(
            (svg.matches("a&lt;b").count(), svg.matches("class=\"timeout\"").count()),
            (6, 1)
        );
        assert!(picture(&[]).contains("processes"));
    }

    #[test]
    fn no_more_processes_are_at_work_than_targets_run() {
        let mut tally = Tally::new();
        tally.sit("2026-11-22T07:00:00Z".to_owned(), 2);
        for lane in 0..2 {
            tally.add(&ended(lane, 0, 1_999, HookOutcome::Ok));
        }
        let mut timeline = Timeline::new(&tally);
        // Of times that are no multiple of a column's, some overlap by a rounding.
        timeline.total_us = 1_999;
        for at_us in [0, 0, 999, 1_000] {
            timeline.at_work(at_us, 1_000);
        }
        let svg = timeline.html(&tally.sittings);
        assert!(svg.contains("2 processes at work"), "{svg}");
    }

    #[test]
    fn marks_of_time_are_round() {
        for (total, want) in [(1, 1), (100, 20), (1_000, 200), (3_999, 500), (4_001, 1_000)] {
            assert_eq!(step(total), want, "{total}");
        }
    }
}
