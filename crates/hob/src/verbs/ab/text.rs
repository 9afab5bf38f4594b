//! What a comparison found, for people: on a terminal, and in a pull request.

use std::fmt::Write as _;

use hob_proof::looks::{Gate, Look as Seen, Verdict};
use hob_proof::score::Estimate;

use super::measured::Spread;
use super::report::Report;
use super::run::ended;
use crate::show::style::{Colour, Figures, Look, Tone};
use crate::show::text::{Align, Charset, fit, pad, printable, width, wrap};
use crate::show::units::duration;
use hob_wire::exit::Exit;

/// What stands before each line's own text.
const LABEL: usize = 9;
/// Columns of the figure's axis, at most.
const AXIS_MAX: usize = 60;

/// The report, for a terminal.
pub(super) fn report(found: &Report, look: &Look) -> String {
    let columns = look.figure_columns();
    let mut text = String::new();
    for (at, side) in found.sides.iter().enumerate() {
        let times = times(found, at, look);
        let room = columns.saturating_sub(width(&times) + 5).max(10);
        let shown = fit(&printable(&side.shown, look.charset), room, look.charset);
        let shown = pad(&shown, room.min(40).max(width(&shown)), Align::Left);
        let letter = look.paint(Tone::Title, side.letter.name());
        let _ = writeln!(text, "{}", format!("{letter}  {shown}  {times}").trim_end());
    }
    text.push('\n');
    for line in verdict(found, look) {
        text += &line;
        text.push('\n');
    }
    if let Some(looked) = &found.looked {
        text.push('\n');
        let rows: Vec<(&str, &Seen)> = [
            ("wall", looked.wall.as_ref()),
            ("cpu", looked.cpu.as_ref()),
            ("A and A", looked.check.as_ref()),
        ]
        .into_iter()
        .filter_map(|(name, seen)| Some((name, seen?)))
        .collect();
        text += &match look.figures {
            Figures::Drawn => figure(&rows, look),
            Figures::Told => told(&rows),
        };
        text.push('\n');
    }
    for (label, line) in beside(found, look) {
        let room = columns.saturating_sub(LABEL).max(20);
        for (at, part) in wrap(&line, "", room, look.charset).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let _ =
                writeln!(text, "{}{part}", look.paint(Tone::Dim, &pad(label, LABEL, Align::Left)));
        }
    }
    text
}

/// The report as Markdown.
pub(super) fn markdown(found: &Report) -> String {
    let look = Look {
        colour: Colour::Off,
        charset: Charset::Unicode,
        figures: Figures::Drawn,
        columns: None,
    };
    let mut text = String::new();
    for line in verdict(found, &look) {
        let _ = writeln!(text, "**{}**", line.replace('*', "\\*"));
    }
    text += "\n| | command | median | fastest | processor time |\n|---|---|--:|--:|--:|\n";
    for (at, side) in found.sides.iter().enumerate() {
        let wall = found.wall[at];
        let cell = |spread: Option<Spread>, of: fn(&Spread) -> f64| {
            spread.map_or("?".to_owned(), |spread| time(of(&spread), &look))
        };
        let command =
            printable(&side.shown, Charset::Unicode).replace('|', "\\|").replace('`', "'");
        let _ = writeln!(
            text,
            "| {} | `{command}` | {} | {} | {} |",
            side.letter.name(),
            cell(wall, |spread| spread.median),
            cell(wall, |spread| spread.min),
            cell(found.cpu[at], |spread| spread.median),
        );
    }
    if let Some(looked) = &found.looked {
        text += "\n| B / A | estimate | surely |\n|---|--:|--:|\n";
        for (name, seen) in
            [("wall", &looked.wall), ("cpu", &looked.cpu), ("A and A", &looked.check)]
        {
            if let Some(seen) = seen {
                let Estimate { middle, low, high, .. } = seen.estimate;
                let ratio = Estimate::ratio;
                let _ = writeln!(
                    text,
                    "| {name} | {:.3} | {:.3} to {:.3} |",
                    ratio(middle),
                    ratio(low),
                    ratio(high)
                );
            }
        }
    }
    text.push('\n');
    for (label, line) in beside(found, &look) {
        let _ = writeln!(text, "- {label}: {line}");
    }
    text
}

fn time(us: f64, look: &Look) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
    duration(us.round().max(0.0) as u64, look.micro())
}

/// `41.2 ms    cpu 40.1 ms`.
fn times(found: &Report, at: usize, look: &Look) -> String {
    let Some(wall) = found.wall[at] else { return String::new() };
    let cpu = found.cpu[at].filter(|cpu| cpu.min > 0.0);
    let cpu = cpu.map_or(String::new(), |cpu| format!("   cpu {:>7}", time(cpu.median, look)));
    format!("{:>7}{cpu}", time(wall.median, look))
}

/// What is the case, in one to three lines.
fn verdict(found: &Report, look: &Look) -> Vec<String> {
    if let Some(why) = &found.why {
        let columns = look.figure_columns();
        let why = printable(&format!("no verdict: {why}"), look.charset);
        let lines = wrap(&why, "", columns, look.charset);
        return lines.iter().map(|line| look.paint(Tone::Watch, line)).collect();
    }
    let Some(seen) = found.decides() else {
        let text =
            "no verdict: a run used no processor time that could be told; --metric wall has one";
        return vec![look.paint(Tone::Watch, text)];
    };
    let Estimate { middle, low, high, .. } = seen.estimate;
    let [middle, low, high] = [middle, low, high].map(Estimate::ratio);
    let times = match look.charset {
        Charset::Unicode => "×",
        Charset::Ascii => "x",
    };
    let what = match found.metric {
        super::Metric::Wall => "time",
        super::Metric::Cpu => "processor time",
    };
    let tone = match seen.verdict {
        Verdict::Slower => Tone::Bad,
        Verdict::Faster | Verdict::Same => Tone::Good,
        Verdict::Undecided => Tone::Watch,
    };
    let word = match seen.verdict {
        Verdict::Undecided => match seen.would_take {
            Some(pairs) => format!("undecided (about {pairs} pairs would decide)"),
            None => "not sure which is slower".to_owned(),
        },
        Verdict::Slower | Verdict::Faster | Verdict::Same => seen.verdict.word().to_owned(),
    };
    let unfinished = found.looked.as_ref().is_some_and(|looked| looked.unfinished);
    let mut after = format!("after {} pairs, in random order", seen.pairs);
    if unfinished {
        after += "; stopped, so it is unfinished";
    }
    vec![
        format!(
            "B takes {middle:.3} {times} A's {what} (surely {low:.3} to {high:.3}): {}",
            look.paint(tone, &word)
        ),
        format!("{after}{}{}", look.dot(), alike(found)),
    ]
}

fn alike(found: &Report) -> String {
    match (found.alike, found.exits) {
        (true, [Some(Exit::Code(0)), _]) => "same output, both exit code 0".to_owned(),
        (true, [Some(exit), _]) => format!("same output, both {}", ended(exit)),
        (false, [Some(a), Some(b)]) if a == b => format!("other output, both {}", ended(a)),
        (false, [Some(a), Some(b)]) => format!("A {}, B {}", ended(a), ended(b)),
        _ => String::new(),
    }
}

/// The lines below the figure: a label, and what it says.
fn beside(found: &Report, look: &Look) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let decides = found.decides();
    if let Some(gate) = decides.and_then(|seen| seen.gate) {
        let word = match gate {
            Gate::Passed => "passed",
            Gate::Failed => "FAILED",
            Gate::Undecided => "undecided",
        };
        let most = found.gate.map(|share| format!("at most {:.3}", 1.0 + share));
        let same = found.same.map(|share| format!("the same within {:.1} %", share * 100.0));
        let asked: Vec<_> = most.into_iter().chain(same).collect();
        lines.push(("gate", format!("{}: {word}", asked.join(", "))));
    }
    let machine = &found.machine;
    let processors = match machine.processors {
        1 => "1 processor".to_owned(),
        count => format!("{count} processors"),
    };
    let load = machine.load.map_or(String::new(), |load| format!(", load {load:.1}"));
    let held = match machine.held_up {
        0 => String::new(),
        1 => format!(", 1 of {} runs was held up", machine.runs),
        count => format!(", {count} of {} runs were held up", machine.runs),
    };
    lines.push(("machine", format!("{processors}{load}{held}")));
    if let Some(line) = phases(found, look) {
        lines.push(("where", line));
    }
    for (side, warm) in found.sides.iter().zip(found.warm) {
        if let Some((warm, all)) = warm {
            lines.push((side.letter.name(), format!("{warm} of {all} runs were warm")));
        }
    }
    let by_shell: Vec<_> = found.sides.iter().filter(|side| side.by_shell).collect();
    if let [one] = by_shell[..] {
        let name = one.letter.name();
        lines.push(("shell", format!("{name} is read by sh, whose own start is part of its time")));
    } else if by_shell.len() == 2 {
        lines.push(("shell", "both are read by sh, whose own start is part of both".to_owned()));
    }
    lines
}

/// The phases that differ most.
fn phases(found: &Report, look: &Look) -> Option<String> {
    let total: f64 = found.phases.iter().map(|phase| phase.a_us.max(phase.b_us)).sum();
    let mut differing: Vec<_> = found.phases.iter().collect();
    differing.retain(|phase| (phase.b_us - phase.a_us).abs() > 0.01 * total);
    differing
        .sort_by(|one, two| (two.b_us - two.a_us).abs().total_cmp(&(one.b_us - one.a_us).abs()));
    let parts = differing.iter().take(5).map(|phase| {
        let more = phase.b_us - phase.a_us;
        let sign = if more < 0.0 { "-" } else { "+" };
        format!("{} {sign}{}", phase.name, time(more.abs(), look))
    });
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| format!("{}  (receipts of both)", parts.join(look.dot())))
}

/// The same intervals in words.
fn told(rows: &[(&str, &Seen)]) -> String {
    let line = |(name, seen): &(&str, &Seen)| {
        let [low, middle, high] =
            [seen.estimate.low, seen.estimate.middle, seen.estimate.high].map(Estimate::ratio);
        format!("{}{middle:.3}, surely {low:.3} to {high:.3}\n", pad(name, LABEL, Align::Left))
    };
    rows.iter().map(line).collect()
}

/// Intervals above one axis.
fn figure(rows: &[(&str, &Seen)], look: &Look) -> String {
    let Some(width) = look.figure_columns().checked_sub(LABEL + 1).map(|room| room.min(AXIS_MAX))
    else {
        return String::new();
    };
    let ends = rows.iter().flat_map(|(_, seen)| [seen.estimate.low, seen.estimate.high]);
    let ends = ends.map(Estimate::ratio).chain([1.0]);
    let (low, high) = ends
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
    // An interval that leaves the figure is cut at its edge.
    let (low, high) = (low.max(0.02), high.min(50.0));
    let step = step((high - low).max(0.02));
    let (from, to) = ((low / step).floor() * step, (high / step).ceil() * step);
    let signs = match look.charset {
        Charset::Unicode => ['┊', '│', '├', '─', '┤', '●'],
        Charset::Ascii => [':', '|', '[', '-', ']', 'o'],
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a column of the figure, held within it"
    )]
    let column = |ratio: f64| {
        let part = ((ratio - from) / (to - from)).clamp(0.0, 1.0);
        (part * (width - 1) as f64).round() as usize
    };
    let mut ticks = Vec::new();
    let mut tick = from;
    while tick <= to + step / 2.0 {
        ticks.push(tick);
        tick += step;
    }
    let mut text = String::new();
    let mut labels = vec![' '; width + 6];
    for tick in &ticks {
        let label = format!("{tick:.2}");
        let at = column(*tick).saturating_sub(1);
        for (place, sign) in labels.iter_mut().skip(at).zip(label.chars()) {
            *place = sign;
        }
    }
    let labels: String = labels.into_iter().collect();
    let _ = writeln!(text, "{}{}", " ".repeat(LABEL), look.paint(Tone::Dim, labels.trim_end()));
    for (name, seen) in rows {
        let mut line = vec![' '; width];
        for tick in &ticks {
            line[column(*tick)] = signs[0];
        }
        line[column(1.0)] = signs[1];
        let [low, middle, high] = [seen.estimate.low, seen.estimate.middle, seen.estimate.high]
            .map(Estimate::ratio)
            .map(column);
        for place in &mut line[low..=high] {
            *place = signs[3];
        }
        line[low] = signs[2];
        line[high] = signs[4];
        line[middle] = signs[5];
        let line: String = line.into_iter().collect();
        let _ = writeln!(text, "{}{}", pad(name, LABEL, Align::Left), line.trim_end());
    }
    text
}

/// The distance of ticks: 1, 2 or 5 of some power of ten, so that there are three to eight.
fn step(span: f64) -> f64 {
    let power = 10_f64.powf((span / 4.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    steps.into_iter().find(|step| span / step <= 6.0).unwrap_or(power * 10.0)
}
