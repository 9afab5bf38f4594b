//! The one table of all that hob does, losses among it: a few rounds of the figures that it has rows of, in
//! at most ten minutes once all is built. And its rows, which the README shows.
//!
//! Nothing in the table is written by hand: a figure that was not measured is not in it.

use std::fmt::Write;

use anyhow::Result;

use crate::figures::{self, Measure};
use crate::report::Figure;
use crate::{Setting, keep, say};

/// The name of the command, and of what it keeps.
pub(crate) const NAME: &str = "headline";

/// A figure, the part of it, and how many rounds: what is enough for a median, and fits the time.
struct Part {
    figure: &'static str,
    measure: Measure,
    only: Option<&'static str>,
    rounds: usize,
}

const fn part(
    figure: &'static str,
    measure: Measure,
    only: Option<&'static str>,
    rounds: usize,
) -> Part {
    Part { figure, measure, only, rounds }
}

const PARTS: [Part; 12] = [
    part("hello", figures::hello::measure, None, 200),
    part("throughput", figures::throughput::measure, None, 3),
    part("commands", figures::commands::measure, None, 9),
    part("pandas", figures::pandas::measure, None, 9),
    part("ruby", figures::commands::ruby::measure, None, 15),
    part("jvm", figures::jvm::measure, Some("java"), 15),
    part("jvm", figures::jvm::measure, Some("clojure"), 7),
    part("hooks", figures::hooks::measure, Some("peers"), 3),
    part("messages", figures::messages::measure, None, 5),
    part("http", figures::http::measure, Some("prefork"), 2),
    part("http", figures::http::measure, Some("blobs"), 3),
    part("actors", figures::actors::measure, Some("ring_tell"), 3),
];

/// Measures all of it, and prints the table. A part that cannot be measured here (a peer or a JDK is not there)
/// is said, and its rows are missing.
pub(crate) fn measure(setting: &Setting) -> Result<()> {
    let mut all: Vec<Figure> = Vec::new();
    for Part { figure, measure, only, rounds } in &PARTS {
        match measure(&setting.of_part(*only, *rounds)) {
            Ok(measured) => all.push(measured),
            Err(why) => say(&format!("{figure}: not measured: {why:#}")),
        }
        keep(setting, NAME, &all)?;
    }
    say(&table(&all));
    Ok(())
}

/// The table, as Markdown.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut out = String::from("| what | without hob | with hob | faster |\n|---|--:|--:|--:|\n");
    for figure in figures {
        rows(figure, &mut out);
    }
    out
}

/// Where a row's time stands in a figure, in microseconds.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// The median of the first series whose name has this in it.
    Series(&'static str),
    /// A fact of this name.
    Fact(&'static str),
    /// A fact in nanoseconds whose name begins so.
    Nanoseconds(&'static str),
}

/// A row whose names are known: of a figure, with what stands without and with hob.
type Row = (&'static str, &'static str, Of, Of);

/// What a figure gives for each of its programs is not here, see [`of_programs`].
const ROWS: [Row; 14] = [
    (
        "hello",
        "a Python script that prints one line",
        // Beside cold, as the ratio is measured: the first pass has another company.
        Of::Series("hello.py, cold"),
        Of::Series("hob, beside cold"),
    ),
    (
        "hello",
        "the same, its output read to the end (`x=$(...)`)",
        Of::Series("cold, through a pipe"),
        Of::Series("hello.py, hob, through a pipe"),
    ),
    (
        "pandas",
        "a script that imports numpy and pandas",
        Of::Series("imports.py, cold"),
        Of::Series("imports.py, hob"),
    ),
    (
        "pandas",
        "the same, which groups a few rows",
        Of::Series("frame.py, cold"),
        Of::Series("frame.py, hob"),
    ),
    (
        "ruby",
        "a Ruby script that prints one line",
        Of::Series("hello.rb, cold"),
        Of::Series("hob, beside cold"),
    ),
    (
        "hooks",
        "a tiny shell hook, beside `run-parts`",
        Of::Series("run-parts"),
        Of::Series("hob, beside peers"),
    ),
    (
        "messages",
        "an ask of a function, beside an echo over a bare socket",
        Of::Series("bare socket echo"),
        Of::Series("hob.ask"),
    ),
    (
        "http",
        "processor time of a Rack request, new connections, beside puma",
        Of::Fact("puma 2x5: processor time a request in us, 16 at a time"),
        Of::Fact("hob, prefork: processor time a request in us, 16 at a time"),
    ),
    (
        "http",
        "the same, beside unicorn",
        Of::Fact("unicorn 2: processor time a request in us, 16 at a time"),
        Of::Fact("hob, prefork: processor time a request in us, 16 at a time"),
    ),
    (
        "http",
        "the same, beside Thin",
        Of::Fact("thin: processor time a request in us, 16 at a time"),
        Of::Fact("hob, prefork: processor time a request in us, 16 at a time"),
    ),
    (
        "http",
        "the same on kept connections, beside puma",
        Of::Fact("puma 2x5: on kept connections, 16 at a time: processor time a request in us"),
        Of::Fact("hob, prefork: on kept connections, 16 at a time: processor time a request in us"),
    ),
    (
        "http",
        "24 KiB of one branch of a repository, in process, beside `git show`",
        Of::Fact("git show: p50 in us"),
        Of::Fact("24 KiB by branch, in process: p50 in us"),
    ),
    (
        "http",
        "the same beside a `git cat-file --batch` that runs",
        Of::Fact("git cat-file --batch: p50 in us"),
        Of::Fact("24 KiB by branch, in process: p50 in us"),
    ),
    (
        "actors",
        "a tell between actors in Rust, beside actix",
        Of::Nanoseconds("ring_tell: actix"),
        Of::Nanoseconds("ring_tell: hob-actor"),
    ),
];

impl Of {
    fn us(self, figure: &Figure) -> Option<f64> {
        let mut facts = figure.facts.iter();
        match self {
            Of::Series(part) => median(figure, part),
            Of::Fact(name) => facts.find(|one| one.name == name).map(|one| one.value),
            Of::Nanoseconds(start) => {
                facts.find(|one| one.name.starts_with(start)).map(|one| one.value / 1e3)
            }
        }
    }
}

fn median(figure: &Figure, part: &str) -> Option<f64> {
    figure.series.iter().find(|one| one.name.contains(part)).map(|one| one.p50_us)
}

/// The rows of one figure.
fn rows(figure: &Figure, out: &mut String) {
    for (_, what, without, with) in ROWS.iter().filter(|(name, ..)| *name == figure.name) {
        row(out, what, without.us(figure), with.us(figure));
    }
    match figure.name.as_str() {
        "hello" => beside_true(figure, out),
        "throughput" => throughput(figure, out),
        "commands" | "ruby" | "jvm" => of_programs(figure, out),
        _ => (),
    }
}

/// A row for each program that ran cold and warm, and one for each that ran by nailgun, too.
fn of_programs(figure: &Figure, out: &mut String) {
    let programs = figure.series.iter().filter_map(|one| one.name.strip_suffix(", cold"));
    for name in programs.filter(|name| *name != "hello.rb") {
        let of = |side: &str| median(figure, &format!("{name}, {side}"));
        let what = match figure.name.as_str() {
            "jvm" => format!("{name}, on a JVM"),
            _ => format!("`{name}`"),
        };
        row(out, &what, of("cold"), of("hob"));
        row(out, &format!("{what}, beside nailgun"), of("nailgun"), of("hob"));
    }
}

fn row(out: &mut String, what: &str, without: Option<f64>, with: Option<f64>) {
    if let (Some(without), Some(with)) = (without, with) {
        let faster = times(without / with);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "| {what} | {} | {} | **{faster}** |", time(without), time(with));
    }
}

/// The floor of a process, for scale.
fn beside_true(figure: &Figure, out: &mut String) {
    let p50 = |name: &str| figure.series.iter().find(|one| one.name.ends_with(name));
    if let (Some(plain), Some(warm)) = (p50("/bin/true"), p50(", hob")) {
        let _ = writeln!(
            out,
            "| for scale: `/bin/true`, which does nothing | {} | | hob takes {} its time |",
            time(plain.p50_us),
            times(warm.p50_us / plain.p50_us)
        );
    }
}

fn throughput(figure: &Figure, out: &mut String) {
    let fact = |name: &str| figure.facts.iter().find(|one| one.name.ends_with(name));
    if let (Some(hob), Some(cold)) = (fact(", hob"), fact(", cold")) {
        let _ = writeln!(
            out,
            "| 8 callers at once, calls per second | {:.0} | {:.0} | **{}** |",
            cold.value,
            hob.value,
            times(hob.value / cold.value)
        );
    }
}

/// Microseconds, in the unit that reads well.
fn time(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{:.0} ns", us * 1e3),
        us if us < 100.0 => format!("{us:.1} µs"),
        us if us < 300.0 => format!("{us:.0} µs"),
        us if us < 1e4 => format!("{:.2} ms", us / 1e3),
        us if us < 1e5 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.0} ms", us / 1e3),
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.95 => format!("{ratio:.2} ×"),
        ratio if ratio < 10.0 => format!("{ratio:.1} ×"),
        ratio => format!("{ratio:.0} ×"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(
            [0.05, 12.34, 250.0, 906.0, 14_218.0, 550_000.0].map(time),
            ["50 ns", "12.3 µs", "250 µs", "0.91 ms", "14.2 ms", "550 ms"]
        );
        assert_eq!([0.416, 0.96, 219.4].map(times), ["0.42 ×", "1.0 ×", "219 ×"]);
    }

    #[test]
    fn a_loss_is_a_row_as_a_gain_is() {
        let mut figure = Figure::new("http", "");
        let time = "on kept connections, 16 at a time: processor time a request in us";
        figure.fact(&format!("puma 2x5: {time}"), 100.0);
        figure.fact(&format!("hob, prefork: {time}"), 240.0);
        let table = table(&[figure]);
        assert!(table.contains("| 100 µs | 240 µs | **0.42 ×** |"), "{table}");
    }
}
