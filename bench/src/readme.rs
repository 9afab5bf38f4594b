//! Renders the README's table and receipt from `bench/results.json` and `results-hooks.json`,
//! between markers.
//!
//! Nothing in the table is written by hand: a figure that was not measured is not in it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::{Figure, Results};

/// What stands before and after a part that is rendered.
type Markers = (&'static str, &'static str);

const FIGURES: Markers = (
    "<!-- figures: made by `make readme` from bench/results.json -->\n",
    "<!-- end of figures -->",
);
const RECEIPT: Markers = ("<!-- receipt: likewise -->\n", "<!-- end of receipt -->");

/// Puts the table in its place.
pub(crate) fn render(root: &Path) -> Result<()> {
    let path = root.join("README.md");
    let text = std::fs::read_to_string(&path).context("cannot read README.md")?;
    let mut results = Results::read(&root.join("bench/results.json"))?;
    // Measured by a command of its own, since its peers need a JDK.
    let hooks = root.join("bench/results-hooks.json");
    if hooks.exists() {
        results.figures.extend(Results::read(&hooks)?.figures);
    }
    let text = replaced(&text, FIGURES, &table(&results))?;
    let receipt = results.figures.iter().find_map(|figure| figure.receipt.as_deref());
    let receipt = receipt.map(|receipt| format!("```\n{}\n```\n", receipt.trim_end()));
    let text = replaced(&text, RECEIPT, &receipt.unwrap_or_default())?;
    std::fs::write(&path, text).context("cannot write README.md")
}

fn replaced(text: &str, (open, close): Markers, part: &str) -> Result<String> {
    let (before, rest) =
        text.split_once(open).with_context(|| format!("README.md lacks {open}"))?;
    let (_, after) = rest.split_once(close).with_context(|| format!("README.md lacks {close}"))?;
    Ok(format!("{before}{open}{part}{close}{after}"))
}

fn table(results: &Results) -> String {
    let mut out = String::from("| what | without hob | with hob | faster |\n|---|--:|--:|--:|\n");
    for figure in &results.figures {
        rows(figure, &mut out);
    }
    let machine = &results.machine;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\nMedians of whole processes in interleaved rounds, on {} ({} cores), {}, {}. \
         `make bench` measures them on your machine; [bench/README.md](bench/README.md) says how.",
        machine.processor, machine.cores, machine.kernel, machine.python
    );
    out
}

/// The rows of one figure. Names are those that the figures give to their series.
fn rows(figure: &Figure, out: &mut String) {
    let p50 =
        |part: &str| figure.series.iter().find(|one| one.name.contains(part)).map(|one| one.p50_us);
    let mut pair = |what: &str, cold: &str, warm: &str| {
        if let (Some(cold), Some(warm)) = (p50(cold), p50(warm)) {
            let _ = writeln!(
                out,
                "| {what} | {} | {} | **{}** |",
                ms(cold),
                ms(warm),
                times(cold / warm)
            );
        }
    };
    match figure.name.as_str() {
        "hello" => {
            // Beside cold, as the ratio is measured: the first pass has another company.
            pair("a Python script that prints one line", "hello.py, cold", "hob, beside cold");
            let read = "the same, its output read to the end (`x=$(...)`)";
            pair(read, "cold, through a pipe", "hob, through a pipe");
            beside_true(figure, out);
        }
        "commands" => {
            for one in &figure.ratios {
                let (cold, warm) = (format!("{}, cold", one.name), format!("{}, hob", one.name));
                pair(&format!("`{}`", one.name), &cold, &warm);
            }
        }
        "pandas" => {
            let what = "a script that imports numpy and pandas";
            pair(what, "imports.py, cold", "imports.py, hob");
            pair(&format!("{what}, and groups a few rows"), "frame.py, cold", "frame.py, hob");
        }
        "hooks" => {
            pair("a tiny shell hook, beside `run-parts`", "run-parts", "hob, beside peers");
            let hob = "hob's client, ZIO 2.1";
            pair("a tiny shell hook from ZIO, beside NuProcess", "NuProcess newest, ZIO", hob);
            pair("a Python hook", "Python hooks, hob, spawned", "Python hooks, hob");
        }
        "throughput" => throughput(figure, out),
        "soak" => soak(figure, out),
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
            ms(plain.p50_us),
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

fn soak(figure: &Figure, out: &mut String) {
    let got = |what: &str| figure.targets.iter().find(|one| one.what == what).map(|one| one.got);
    if let (Some(failed), Some(processes), Some(descriptors)) =
        (got("failed calls"), got("leaked processes"), got("leaked descriptors"))
    {
        let _ = writeln!(
            out,
            "| 10,000 calls, 8 callers at once | | {failed} failed | {processes} processes, \
             {descriptors} descriptors leaked |"
        );
    }
}

fn ms(us: f64) -> String {
    match us / 1e3 {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1} ×") } else { format!("{ratio:.0} ×") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let marked = |part: &str| format!("a\n{}{part}{}\nb\n", FIGURES.0, FIGURES.1);
        assert_eq!(replaced(&marked("old\n"), FIGURES, "new\n").unwrap(), marked("new\n"));
        assert!(replaced("no markers", FIGURES, "new").is_err());
    }

    #[test]
    fn times_read_well() {
        assert_eq!(
            (ms(906.0), ms(14_218.0), ms(550_000.0)),
            ("0.91 ms".to_owned(), "14.2 ms".to_owned(), "550 ms".to_owned())
        );
        assert_eq!((times(0.96), times(219.4)), ("1.0 ×".to_owned(), "219 ×".to_owned()));
    }
}
