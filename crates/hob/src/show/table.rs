//! Records as a list: a line each, aligned, cut to the terminal's width.
//!
//! The columns are as wide as their widest cell. When that is too wide, the columns of text give
//! way, and columns that still find no room are left out, the last ones first. A pipe has room
//! for all columns, and no cell is wider than `TEXT_COLUMNS_MAX`: whole names are in the JSON.

use hob_core::receipt::Receipt;

use super::clock::Clock;
use super::entries::{Entry, How};
use super::saved::{Saved, saved};
use super::style::{Look, Tone};
use super::text::{Align, fit, pad, printable, width};
use super::{units, waterfall};

const HEADS: [&str; COLUMNS] = ["TIME", "PROGRAM", "HOW", "TOTAL", "SAVED", "REASON", "OUTCOME"];
const COLUMNS: usize = 7;
/// The columns of figures.
const FIGURES: std::ops::RangeInclusive<usize> = 3..=4;
/// The columns that give way, in this order, when all are too wide: program, outcome, reason.
const GIVE_WAY: [usize; 3] = [1, 6, 5];
/// They are not made narrower than this.
const TEXT_COLUMNS_MIN: usize = 10;
/// Nor wider than this, even in a pipe: one long name must not spread the whole list.
const TEXT_COLUMNS_MAX: usize = 40;
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

/// The records in the order given, with a heading and a line of sums; a sentence if there are
/// none.
#[must_use]
pub fn entries(entries: &[Entry], clock: &Clock, look: &Look) -> String {
    if entries.is_empty() {
        return "no calls are recorded yet: `hob run PROGRAM` makes one\n".to_owned();
    }
    let rows: Vec<_> = entries.iter().map(|entry| cells(entry, clock, look)).collect();
    let widths = widths(&rows, look);
    let mut text = String::new();
    let heads = HEADS.map(|head| toned(Tone::Dim, head.to_owned()));
    for row in std::iter::once(&heads).chain(&rows) {
        text += &line(row, &widths, look);
    }
    for line in sums(entries, look) {
        text += &(line + "\n");
    }
    text
}

fn cells(entry: &Entry, clock: &Clock, look: &Look) -> [Cell; COLUMNS] {
    let time = clock.show_short(entry.at(), look.charset);
    match entry {
        Entry::Receipt(receipt) => receipt_cells(receipt, time, look),
        Entry::Fallback(line) => [
            toned(Tone::Dim, time),
            plain(printable(&line.program.name, look.charset)),
            toned(Tone::Watch, "cold".to_owned()),
            plain(String::new()),
            plain(String::new()),
            plain(printable(&line.reason, look.charset)),
            toned(Tone::Dim, "not seen".to_owned()),
        ],
    }
}

fn receipt_cells(receipt: &Receipt, time: String, look: &Look) -> [Cell; COLUMNS] {
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
        toned(Tone::Dim, time),
        plain(printable(&receipt.program.name, look.charset)),
        toned(how.tone(), how.word().to_owned()),
        plain(units::duration(receipt.total_us, look.micro())),
        saved,
        plain(printable(&receipt.reason, look.charset)),
        outcome,
    ]
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
    widths
}

fn line(row: &[Cell; COLUMNS], widths: &[usize; COLUMNS], look: &Look) -> String {
    let mut left = look.columns.unwrap_or(usize::MAX);
    let mut line = String::new();
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or(0);
    for (column, cell) in row.iter().enumerate().take(last + 1) {
        let gap = if column == 0 { "" } else { GAP };
        let room = left.saturating_sub(gap.len());
        let figures = FIGURES.contains(&column);
        // Half a figure would be a wrong one.
        if room < if figures { widths[column] } else { widths[column].min(TEXT_COLUMNS_MIN) } {
            break;
        }
        let cut = fit(&cell.text, widths[column].min(room), look.charset);
        let align = if figures { Align::Right } else { Align::Left };
        let padded = pad(&cut, widths[column].min(room), align);
        let shown = if column == last { padded.trim_end() } else { &padded };
        left = room - width(shown);
        line += gap;
        line += &look.paint(cell.tone, shown);
    }
    line.trim_end().to_owned() + "\n"
}

/// `6 calls: 3 warm, 2 cold, 1 not run · saved 133 ms · lost 1.20 ms`.
fn sums(entries: &[Entry], look: &Look) -> Vec<String> {
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
    let mut parts = vec![(Tone::Dim, calls)];
    for (word, us) in [("saved", gain_us), ("lost", loss_us)] {
        if us > 0 {
            parts.push((Tone::Dim, format!("{word} {}", units::duration(us, look.micro()))));
        }
    }
    look.flow(&parts, look.columns.unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, LOOKS, golden};
    use super::super::style::Colour;
    use super::*;

    #[test]
    fn all_kinds_in_every_look() {
        for (name, look) in LOOKS {
            let text = entries(&samples::all(), &samples::clock(), &look);
            if look.colour == Colour::Off {
                for line in text.lines() {
                    assert!(look.columns.is_none_or(|columns| width(line) <= columns), "{line}");
                }
            }
            golden(&format!("table-{name}"), &text);
        }
    }

    #[test]
    fn a_pipe_has_room_for_all_columns() {
        let look = Look { columns: None, ..LOOKS[0].1 };
        golden("table-pipe", &entries(&samples::all(), &samples::clock(), &look));
    }

    #[test]
    fn nothing_yet_is_a_sentence() {
        let text = entries(&[], &samples::clock(), &LOOKS[0].1);
        assert!(text.starts_with("no calls are recorded yet"), "{text}");
    }
}
