//! What a measurement says: a JSON file for machines, a table for people.
//!
//! The format is `hob.bench/1`; `bench/results.json` holds one that was made on a quiet machine,
//! and the README's table is made from it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::measure::Series;
use crate::stats::{self, Ratio};

pub(crate) const SCHEMA: &str = "hob.bench/1";

/// Everything that one run measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) schema: String,
    pub(crate) machine: Machine,
    pub(crate) figures: Vec<Figure>,
}

/// Where it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) python: String,
}

/// One measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The command's name: `make bench-NAME`.
    pub(crate) name: String,
    /// In a sentence.
    pub(crate) what: String,
    pub(crate) series: Vec<SeriesPart>,
    pub(crate) ratios: Vec<RatioPart>,
    pub(crate) targets: Vec<Target>,
    /// Numbers that are neither times nor ratios.
    pub(crate) facts: Vec<Fact>,
    /// A receipt of one of the calls, as `hob last` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<String>,
}

/// The times of one side, in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeriesPart {
    pub(crate) name: String,
    pub(crate) runs: usize,
    pub(crate) min_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
}

/// How two sides compare.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RatioPart {
    pub(crate) name: String,
    pub(crate) of_medians: f64,
    pub(crate) of_rounds: f64,
}

/// A figure that is to be reached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) want: String,
    pub(crate) got: f64,
    pub(crate) met: bool,
}

/// A number with a name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// Which side of a target is the good one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Want {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    pub(crate) fn new(name: &str, what: &str) -> Figure {
        Figure {
            name: name.to_owned(),
            what: what.to_owned(),
            series: Vec::new(),
            ratios: Vec::new(),
            targets: Vec::new(),
            facts: Vec::new(),
            receipt: None,
        }
    }

    pub(crate) fn series(&mut self, series: &Series) {
        self.series.push(SeriesPart {
            name: series.name.clone(),
            runs: series.us.len(),
            min_us: round(series.p(0.0)),
            p50_us: round(stats::median(&series.us)),
            p90_us: round(series.p(0.9)),
            p99_us: round(series.p(0.99)),
        });
    }

    pub(crate) fn ratio(&mut self, name: &str, above: &Series, below: &Series) -> Ratio {
        let ratio = stats::ratio(&above.us, &below.us);
        self.ratios.push(RatioPart {
            name: name.to_owned(),
            of_medians: round(ratio.of_medians),
            of_rounds: round(ratio.of_rounds),
        });
        ratio
    }

    pub(crate) fn target(&mut self, what: &str, want: Want, got: f64) {
        let (want, met) = match want {
            Want::AtLeast(bound) => (format!("at least {bound}"), got >= bound),
            Want::AtMost(bound) => (format!("at most {bound}"), got <= bound),
        };
        self.targets.push(Target { what: what.to_owned(), want, got: round(got), met });
    }

    pub(crate) fn fact(&mut self, name: &str, value: f64) {
        self.facts.push(Fact { name: name.to_owned(), value: round(value) });
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut out = format!("\n{}: {}\n", self.name, self.what);
        // Writing to a string cannot fail.
        if !self.series.is_empty() {
            let head = ["", "runs", "min", "p50", "p90", "p99"];
            let [name, runs, min, p50, p90, p99] = head;
            let _ =
                writeln!(out, "{name:40} {runs:>6} {min:>10} {p50:>10} {p90:>10} {p99:>10}   ms");
        }
        for one in &self.series {
            let [min, p50, p90, p99] = [one.min_us, one.p50_us, one.p90_us, one.p99_us]
                .map(|us| format!("{:.2}", us / 1e3));
            let (name, runs) = (&one.name, one.runs);
            let _ = writeln!(out, "{name:40} {runs:>6} {min:>10} {p50:>10} {p90:>10} {p99:>10}");
        }
        for one in &self.ratios {
            let _ = writeln!(
                out,
                "{:40} {:.2} (ratio of medians), {:.2} (median of the rounds' ratios)",
                one.name, one.of_medians, one.of_rounds
            );
        }
        for one in &self.facts {
            let _ = writeln!(out, "{:40} {}", one.name, one.value);
        }
        for one in &self.targets {
            let _ = writeln!(out, "{}", one.line());
        }
        out
    }
}

/// Four digits say all that such a measurement knows.
fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3.0 - value.abs().log10().floor();
    let scale = 10f64.powf(digits);
    (value * scale).round() / scale
}

impl Target {
    /// A line for people.
    pub(crate) fn line(&self) -> String {
        let verdict = if self.met { "reached" } else { "MISSED" };
        format!("{verdict:8} {}: {} ({})", self.what, self.got, self.want)
    }
}

impl Results {
    pub(crate) fn read(path: &Path) -> Result<Results> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// This machine, without anything that names it.
pub(crate) fn machine(python: String) -> Machine {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split(['-', '+']).next().unwrap_or_default();
    Machine {
        processor: processor.to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: format!("Linux {kernel}"),
        python,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(round(12.3456), 12.35);
        assert_eq!(round(123_456.0), 123_500.0);
        assert_eq!(round(0.001_234_56), 0.001_235);
        assert_eq!(round(0.0), 0.0);
    }

    #[test]
    fn a_target_knows_whether_it_is_met() {
        let mut figure = Figure::new("x", "X.");
        figure.target("fast", Want::AtLeast(2.0), 2.0);
        figure.target("small", Want::AtMost(2.0), 2.1);
        let met: Vec<bool> = figure.targets.iter().map(|target| target.met).collect();
        assert_eq!(met, [true, false]);
        assert!(figure.table().contains("MISSED   small: 2.1 (at most 2)"));
    }
}
