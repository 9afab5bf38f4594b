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

/// The rows of one figure. Names are those that the figures give to their series.
fn rows(figure: &Figure, out: &mut String) {
    let p50 =
        |part: &str| figure.series.iter().find(|one| one.name.contains(part)).map(|one| one.p50_us);
    let fact = |name: &str| figure.facts.iter().find(|one| one.name == name).map(|one| one.value);
    let mut row = |what: &str, cold: Option<f64>, warm: Option<f64>| {
        if let (Some(cold), Some(warm)) = (cold, warm) {
            let (without, with) = (time(cold), time(warm));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "| {what} | {without} | {with} | **{}** |", times(cold / warm));
        }
    };
    match figure.name.as_str() {
        "hello" => {
            // Beside cold, as the ratio is measured: the first pass has another company.
            let what = "a Python script that prints one line";
            row(what, p50("hello.py, cold"), p50("hob, beside cold"));
            let read = "the same, its output read to the end (`x=$(...)`)";
            row(read, p50("cold, through a pipe"), p50("hob, through a pipe"));
            beside_true(figure, out);
        }
        "commands" | "ruby" => {
            row(
                "a Ruby script that prints one line",
                p50("hello.rb, cold"),
                p50("hob, beside cold"),
            );
            for name in figure.series.iter().filter_map(|one| one.name.strip_suffix(", cold")) {
                if name != "hello.rb" {
                    let (cold, warm) =
                        (p50(&format!("{name}, cold")), p50(&format!("{name}, hob")));
                    row(&format!("`{name}`"), cold, warm);
                }
            }
        }
        "pandas" => {
            let what = "a script that imports numpy and pandas";
            row(what, p50("imports.py, cold"), p50("imports.py, hob"));
            let more = format!("{what}, and groups a few rows");
            row(&more, p50("frame.py, cold"), p50("frame.py, hob"));
        }
        "jvm" => {
            for name in figure.series.iter().filter_map(|one| one.name.strip_suffix(", cold")) {
                let (cold, warm) = (p50(&format!("{name}, cold")), p50(&format!("{name}, hob")));
                row(&format!("{name}, on a JVM"), cold, warm);
                let beside = format!("{name}, beside nailgun");
                row(&beside, p50(&format!("{name}, nailgun")), warm);
            }
        }
        "hooks" => {
            row(
                "a tiny shell hook, beside `run-parts`",
                p50("run-parts"),
                p50("hob, beside peers"),
            );
        }
        "messages" => {
            let what = "an ask of a function, beside an echo over a bare socket";
            row(what, p50("bare socket echo"), p50("hob.ask"));
        }
        "http" => {
            for (peer, called) in [("puma 2x5", "puma"), ("unicorn 2", "unicorn"), ("thin", "Thin")]
            {
                let of = |name: &str| {
                    fact(&format!("{name}: processor time a request in us, 16 at a time"))
                };
                let what = format!(
                    "a Rack request on a new connection, its processor time, beside {called}"
                );
                row(&what, of(peer), of("hob, prefork"));
            }
            let of = |name: &str| {
                fact(&format!(
                    "{name}: on kept connections, 16 at a time: processor time a request in us"
                ))
            };
            let what = "the same on kept connections, beside puma";
            row(what, of("puma 2x5"), of("hob, prefork"));
            let file = "24 KiB of one branch of a repository, in process, beside";
            let warm = fact("24 KiB by branch, in process: p50 in us");
            row(&format!("{file} `git show`"), fact("git show: p50 in us"), warm);
            row(
                &format!("{file} `git cat-file --batch`"),
                fact("git cat-file --batch: p50 in us"),
                warm,
            );
        }
        "actors" => {
            let hop = |side: &str| {
                let prefix = format!("ring_tell: {side}");
                let found = figure.facts.iter().find(|one| one.name.starts_with(&prefix));
                found.map(|one| one.value / 1e3)
            };
            row("a tell between actors in Rust, beside actix", hop("actix"), hop("hob-actor"));
        }
        "throughput" => throughput(figure, out),
        _ => (),
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
