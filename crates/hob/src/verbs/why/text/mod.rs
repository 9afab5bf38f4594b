//! `hob why` for people: the phases as a figure, the dearest imports as a table, a verdict.

mod verdict;

use hob_core::receipt::PhasePart;

use super::report::{ExitPart, ImportsPart, RepeatedPart, Report};
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit, fit_end, pad, printable, wrap};
use crate::show::{units, waterfall};

/// A wider figure is no better to read.
const COLUMNS_MAX: usize = 100;
/// The column of phase names.
const NAME_COLUMNS: usize = 8;
/// The columns of times.
const TIME_COLUMNS: usize = 9;

/// The report as text.
#[must_use]
pub(super) fn report(report: &Report, look: &Look) -> String {
    let columns = look.figure_columns().min(COLUMNS_MAX);
    let mut lines = header(report, columns, look);
    lines.push(String::new());
    let phases: Vec<PhasePart> = report
        .phases
        .iter()
        .map(|one| PhasePart { name: one.name.to_owned(), start_us: one.start_us, us: one.us })
        .collect();
    lines.extend(waterfall::rows(&phases, report.wall_us, (NAME_COLUMNS, columns), look));
    if let Some(imports) = report.imports.as_ref().filter(|imports| imports.count > 0) {
        lines.push(String::new());
        lines.extend(table(report, imports, columns, look));
    }
    if let Some(repeated) = report.warm.repeated.as_ref().filter(|one| !one.dearest.is_empty()) {
        lines.push(String::new());
        lines.extend(again(repeated, columns, look));
    }
    for note in &report.notes {
        let note = format!("note: {}", printable(note, look.charset));
        lines.extend(wrap(&note, "", columns, look.charset));
    }
    lines.push(String::new());
    lines.extend(verdict::lines(report, columns, look));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn header(report: &Report, columns: usize, look: &Look) -> Vec<String> {
    let (tone, end) = match report.exit {
        ExitPart::Code(0) => (Tone::Good, "exited 0".to_owned()),
        ExitPart::Code(code) => (Tone::Bad, format!("exited {code}")),
        ExitPart::Signal(signal) => (Tone::Bad, format!("killed by signal {signal}")),
    };
    let duration = |us| units::duration(us, look.micro());
    let name = fit(&printable(&report.program.name, look.charset), columns, look.charset);
    let cold = format!("cold: {}", duration(report.wall_us));
    let first = [(Tone::Title, name), (tone, end), (Tone::Title, cold)];
    let mut lines = look.flow(&first, columns);
    let arguments = match report.program.arguments {
        1 => "1 argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let runs = match report.runs {
        1 => "1 run, 1 watched".to_owned(),
        count => format!("median of {count} runs, {count} watched"),
    };
    let held = format!("{} watched, {} stops", duration(report.watched_us), report.stops);
    let dim = [report.program.runtime.to_owned(), arguments, runs, held];
    lines.extend(look.flow(&dim.map(|part| (Tone::Dim, part)), columns));
    if report.program.target != report.program.name {
        let target = printable(&report.program.target, look.charset);
        lines.push(look.paint(Tone::Dim, &fit_end(&target, columns, look.charset)));
    }
    lines
}

fn table(report: &Report, imports: &ImportsPart, columns: usize, look: &Look) -> Vec<String> {
    let python = report.program.interpreter.is_some();
    let shown = imports.dearest.len();
    let what = match (python, shown < imports.count) {
        (true, true) => format!("the {shown} dearest of {} imports", imports.count),
        (true, false) => "imports".to_owned(),
        (false, true) => format!("the {shown} dearest of {} loaded files", imports.count),
        (false, false) => "loaded files".to_owned(),
    };
    let name_columns = columns.saturating_sub(2 * (TIME_COLUMNS + 2)).max(16);
    let row = |name: &str, own: &str, total: &str| {
        let own = pad(own, TIME_COLUMNS, Align::Right);
        let total = pad(total, TIME_COLUMNS, Align::Right);
        let total = if python { total } else { String::new() };
        format!("{}  {own}  {total}", pad(name, name_columns, Align::Left))
    };
    let mut lines = vec![look.paint(Tone::Dim, &row(&what, "itself", "in all"))];
    for one in &imports.dearest {
        let name = printable(&one.name, look.charset);
        let name = fit_end(&name, name_columns, look.charset);
        let time = |us| units::duration(us, look.micro());
        lines.push(row(&name, &time(one.self_us), &time(one.total_us)));
    }
    lines
}

/// The modules that each call imports, with their time and the reason.
fn again(repeated: &RepeatedPart, columns: usize, look: &Look) -> Vec<String> {
    let (shown, all) = (repeated.dearest.len(), repeated.modules);
    let what = match shown < all {
        true => format!("the {shown} dearest of {all} that each call imports"),
        false => "what each call imports".to_owned(),
    };
    let name_columns = (columns / 2).saturating_sub(TIME_COLUMNS).max(16);
    let row = |name: &str, own: &str, why: &str| {
        let (name, own) =
            (pad(name, name_columns, Align::Left), pad(own, TIME_COLUMNS, Align::Right));
        fit(&format!("{name}  {own}  {why}"), columns, look.charset)
    };
    let mut lines = vec![look.paint(Tone::Dim, &fit(&what, columns, look.charset))];
    for one in &repeated.dearest {
        let name = fit_end(&printable(&one.name, look.charset), name_columns, look.charset);
        let own = units::duration(one.self_us, look.micro());
        lines.push(row(&name, &own, verdict::briefly(&one.why)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::imports::Dear;
    use super::super::report::{
        Figure, MeasuredPart, Parts, ProgramPart, RepeatedModule, SCHEMA, TriedPart, Verdict,
        WarmPart,
    };
    use super::super::split::PhaseTime;
    use super::*;
    use crate::show::samples::{LOOKS, golden};
    use crate::show::style::Colour;
    use crate::show::text::width;

    fn phases(us: [u64; 7]) -> Vec<PhaseTime> {
        let names = ["exec", "link", "start", "imports", "main", "tail", "teardown"];
        let mut start_us = 0;
        let phase = |(name, us): (&'static str, u64)| {
            let phase = PhaseTime { name, start_us, us };
            start_us += us;
            phase
        };
        names.into_iter().zip(us).map(phase).collect()
    }

    fn figure(us: u64, calls: usize) -> Figure {
        Figure { us, low_us: us - us / 20, high_us: us + us / 20, calls }
    }

    fn repeated() -> RepeatedPart {
        let module = |name: &str, self_us, why: &str| RepeatedModule {
            name: name.to_owned(),
            self_us,
            why: why.to_owned(),
        };
        RepeatedPart {
            modules: 86,
            why: [("finder".to_owned(), 85), ("variable".to_owned(), 1)].into(),
            in_terminal: 2,
            stopped: None,
            first: None,
            self_us: 64_000,
            dearest: vec![
                module("hypothesis.strategies._internal.core", 13_600, "finder"),
                module("settings", 410, "variable"),
            ],
        }
    }

    fn python() -> Report {
        let dear =
            |name: &str, self_us, total_us| Dear { name: name.to_owned(), self_us, total_us };
        Report {
            schema: SCHEMA,
            program: ProgramPart {
                name: "black".to_owned(),
                target: "/srv/venv/bin/black".to_owned(),
                runtime: "python",
                interpreter: Some("/srv/venv/bin/python".to_owned()),
                arguments: 2,
            },
            runs: 5,
            exit: ExitPart::Code(0),
            wall_us: 208_800,
            watched_us: 214_100,
            stops: 605,
            phases: phases([330, 2_620, 18_600, 151_000, 9_250, 25_000, 2_000]),
            imports: Some(ImportsPart {
                count: 188,
                dearest: vec![
                    dear("black", 39_600, 104_000),
                    dear(
                        "a_package.with.a_name.that.is_rather_long.\u{1b}[2J.and_hostile.漢字",
                        7_830,
                        29_800,
                    ),
                ],
            }),
            warm: WarmPart {
                hosted: true,
                why_not: None,
                predicted_us: Some(13_100),
                parts: Some(Parts { call_us: 2_000, own_us: 11_100, imports_us: 0 }),
                tried: Some(TriedPart { calls: 12, low_us: 12_900, high_us: 13_400 }),
                repeated: Some(repeated()),
                verdict: Some(Verdict {
                    warm: figure(13_100, 12),
                    cold: figure(208_800, 5),
                    from: "tried",
                }),
                saves_us: Some(195_700),
                measured: Some(MeasuredPart { calls: 31, p50_us: 14_020 }),
                next: "hob run black --quiet src/one.py src/two.py src/three.py src/four.py"
                    .to_owned(),
            },
            notes: Vec::new(),
        }
    }

    fn check(name: &str, report: &Report) {
        for (look_name, look) in LOOKS {
            let text = super::report(report, &look);
            if look.colour == Colour::Off {
                for line in text.lines() {
                    assert!(width(line) <= look.figure_columns(), "too wide: {line}");
                }
            }
            golden(&format!("why-{name}-{look_name}"), &text);
        }
    }

    #[test]
    fn a_python_program_that_would_gain() {
        check("python", &python());
    }

    #[test]
    fn a_runtime_that_is_not_kept_warm() {
        let mut report = python();
        report.program.runtime = "node";
        report.program.interpreter = None;
        report.exit = ExitPart::Signal(15);
        report.runs = 1;
        report.warm = WarmPart {
            hosted: false,
            why_not: Some("hob does not keep the node runtime warm yet".to_owned()),
            predicted_us: None,
            parts: None,
            tried: None,
            repeated: None,
            verdict: None,
            saves_us: None,
            measured: None,
            next: "hob run node 'a b.js'".to_owned(),
        };
        report.notes = vec![
            "2 files were executed one after the other; `exec` lasts until the last of them"
                .to_owned(),
        ];
        check("node", &report);
    }

    #[test]
    fn a_program_that_would_not_gain() {
        let mut report = python();
        report.wall_us = 900;
        report.phases = phases([300, 400, 0, 0, 100, 0, 100]);
        report.imports = None;
        report.warm.saves_us = Some(-100);
        report.warm.predicted_us = Some(1_000);
        report.warm.repeated = None;
        let warm = Figure { us: 1_000, low_us: 1_000, high_us: 1_000, calls: 0 };
        report.warm.verdict = Some(Verdict { warm, cold: figure(900, 1), from: "estimate" });
        report.warm.measured = None;
        report.warm.tried = None;
        check("loss", &report);
    }
}
