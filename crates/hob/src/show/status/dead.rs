//! Dead letters as text: a line each, and below it why it failed.

use hob_core::requests::dead::{Dead, Elsewhere, Letter};

use super::super::clock::Clock;
use super::super::style::{Look, Tone};
use super::super::text::{Align, fit, pad, printable, width, wrap};

/// An id is never cut: it is what `retry` and `drop` take.
const ID_COLUMNS: usize = 36;
/// A program's name is not made wider than this.
const PROGRAM_COLUMNS_MAX: usize = 18;
const GAP: &str = "  ";

/// The letters in the order given, those of other hosts below them; a sentence if there are none.
#[must_use]
pub fn letters(dead: &Dead, clock: &Clock, look: &Look) -> String {
    let Elsewhere { hosts, silent } = &dead.elsewhere;
    let mut text = match dead.letters.is_empty() {
        false => table(&dead.letters, dead.total, clock, look),
        true if hosts.is_empty() && silent.is_empty() => "there are no dead letters\n".to_owned(),
        true => "there are no dead letters at this host\n".to_owned(),
    };
    for said in hosts {
        let name = printable(&said.host, look.charset);
        text += &format!("\n{}\n", look.paint(Tone::Title, &format!("at {name}")));
        text += &table(&said.letters, said.total, clock, look);
    }
    for host in silent {
        let name = printable(host, look.charset);
        let line = format!(
            "{name} has dead letters and does not say which: at the server it needs to subscribe \
             to `hob.dead`, and this host to publish there"
        );
        text += "\n";
        for line in wrap(&line, "", look.columns.unwrap_or(usize::MAX), look.charset) {
            text += &format!("{}\n", look.paint(Tone::Watch, &line));
        }
    }
    text
}

fn table(all: &[Letter], total: u64, clock: &Clock, look: &Look) -> String {
    let rows: Vec<_> = all.iter().map(|letter| cells(letter, clock, look)).collect();
    let mut widths = HEADS.map(width);
    for row in &rows {
        for (column, text) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(text));
        }
    }
    widths[1] = widths[1].min(PROGRAM_COLUMNS_MAX);
    let mut lines = vec![look.paint(Tone::Dim, &line(&HEADS.map(str::to_owned), &widths, look))];
    for (letter, row) in all.iter().zip(&rows) {
        lines.push(line(row, &widths, look));
        let why = format!("why: {}", printable(&letter.why, look.charset));
        let why = wrap(&why, "  ", look.columns.unwrap_or(usize::MAX), look.charset);
        lines.extend(why.iter().map(|line| look.paint(Tone::Watch, line)));
    }
    let left_out = total.saturating_sub(all.len() as u64);
    if left_out > 0 {
        lines.push(format!("and {left_out} more"));
    }
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

const HEADS: [&str; COLUMNS] = ["ID", "PROGRAM", "GIVEN UP", "TRIES"];
const COLUMNS: usize = 4;

fn cells(letter: &Letter, clock: &Clock, look: &Look) -> [String; COLUMNS] {
    [
        printable(&letter.id, look.charset),
        printable(&letter.program, look.charset),
        clock.show_short(&letter.at, look.charset),
        letter.tries.to_string(),
    ]
}

fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS], look: &Look) -> String {
    let mut left = look.columns.unwrap_or(usize::MAX).max(ID_COLUMNS);
    let mut cells = Vec::with_capacity(COLUMNS);
    for (column, text) in row.iter().enumerate() {
        // What has no room is left out.
        if left < widths[column] {
            break;
        }
        left = left.saturating_sub(widths[column] + GAP.len());
        let align = if column == COLUMNS - 1 { Align::Right } else { Align::Left };
        cells.push(pad(&fit(text, widths[column], look.charset), widths[column], align));
    }
    cells.join(GAP).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use hob_core::requests::dead::OfHost;

    use super::super::super::samples::{self, LOOKS, in_every_look};
    use super::*;

    fn letter(id: &str, program: &str, why: &str) -> Letter {
        Letter {
            id: id.to_owned(),
            program: program.to_owned(),
            directory: "/srv/app".to_owned(),
            key: None,
            content_type: String::new(),
            bytes: 12,
            told_at: "2026-11-21T20:30:00.000000Z".to_owned(),
            at: "2026-11-21T20:32:07.000000Z".to_owned(),
            tries: 8,
            why: why.to_owned(),
        }
    }

    #[test]
    fn letters_are_listed_within_the_columns() {
        let dead = Dead {
            schema: hob_core::requests::dead::SCHEMA.to_owned(),
            total: 1003,
            letters: vec![
                letter(
                    "01a201a7-5638-7000-a94f-b9f9a45ebdaf",
                    "mailer",
                    "raised: RuntimeError: no",
                ),
                letter(
                    "01a201a7-5638-7001-a94f-b9f9a45ebdaf",
                    "a-rather-long-name-of-a-工具",
                    "raised: ValueError: a reason that is so long that it does not fit into one \
                     line of the terminal that it is shown in",
                ),
                letter(
                    "01a201a7-5638-7002-a94f-b9f9a45ebdaf",
                    "x",
                    "lost: \u{1b}[31mits worker ended",
                ),
            ],
            elsewhere: Elsewhere {
                hosts: vec![OfHost {
                    host: "web-1".to_owned(),
                    total: 2,
                    letters: vec![letter(
                        "01a201a7-5638-7003-a94f-b9f9a45ebdaf",
                        "mailer",
                        "raised: RuntimeError: no",
                    )],
                }],
                silent: vec!["web-2".to_owned()],
            },
        };
        in_every_look("dead", |look| letters(&dead, &samples::clock(), look));
    }

    #[test]
    fn none_is_a_sentence() {
        let dead = Dead {
            schema: String::new(),
            total: 0,
            letters: Vec::new(),
            elsewhere: Elsewhere::default(),
        };
        assert_eq!(letters(&dead, &samples::clock(), &LOOKS[0].1), "there are no dead letters\n");
    }
}
