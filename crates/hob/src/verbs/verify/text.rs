//! Verdicts for a person: one with its parts and differences, or a list of those that are kept.

use super::compare::{Aspect, Verdict};
use super::record::{Found, Record, Runs, WorldPart};
use crate::show::clock::Clock;
use crate::show::reasons;
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit, pad, printable, width, wrap};
use crate::show::units;

/// The columns of the names of parts.
const NAME_COLUMNS: usize = 13;
/// The columns of verdicts.
const VERDICT_COLUMNS: usize = 18;
/// The columns of the names of worlds.
const WORLD_COLUMNS: usize = 19;
/// What is shown of a line that differs, so that both sides are seen.
const SIDE_COLUMNS_MAX: usize = 24;
/// However long the name of the part is.
const SIDE_COLUMNS_MIN: usize = 6;
/// What is shown before the place where the sides part.
const SIDE_CONTEXT: usize = 3;
/// Too wide for one column, so that the mark of what is cut off stands in its place.
const TOO_WIDE: &str = "..";
/// The world that is the caller's own, later.
const TIME: &str = "time";
/// A program's name in the list.
const PROGRAM_COLUMNS_MAX: usize = 28;
const INDENT: &str = "  ";

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Same => Tone::Good,
        Verdict::Varies | Verdict::NeverWarm => Tone::Watch,
        Verdict::Frozen | Verdict::Differs => Tone::Bad,
    }
}

fn world_tone(found: Found) -> Tone {
    match found {
        Found::Same => Tone::Good,
        Found::Varies | Found::Cold => Tone::Watch,
        Found::NotTried => Tone::Dim,
        Found::Frozen | Found::Differs => Tone::Bad,
    }
}

/// One verdict; with each world, or with those alone in which it is not simply the same.
pub(super) fn record(record: &Record, verbose: bool, look: &Look) -> String {
    let columns = look.columns.unwrap_or(usize::MAX);
    let word = record.verdict.word();
    let room = columns.saturating_sub(word.len() + 2).max(NAME_COLUMNS);
    let name = fit(&printable(&record.program.name, look.charset), room, look.charset);
    let verdict = look.paint(tone(record.verdict), word);
    let mut lines = vec![format!("{}: {verdict}", look.paint(Tone::Title, &name))];
    for line in indented(&why_never(record), Tone::Plain, look) {
        lines.push(line[INDENT.len()..].to_owned());
    }
    lines.extend(
        look.flow(&counts(record, look), columns.saturating_sub(INDENT.len()))
            .iter()
            .map(|line| format!("{INDENT}{line}")),
    );
    for aspect in &record.aspects {
        lines.extend(part(aspect, look));
    }
    if !record.worlds.is_empty() {
        lines.extend(
            look.flow(&world_counts(&record.worlds, verbose), columns.saturating_sub(INDENT.len()))
                .iter()
                .map(|line| format!("{INDENT}{line}")),
        );
    }
    let own: Vec<&Aspect> = record.aspects.iter().chain(time(&record.worlds)).collect();
    let shown = record.worlds.iter().filter(|part| verbose || is_shown(part.verdict));
    lines.extend(shown.map(|part| world(part, &own, look)));
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Why it was never warm, with what the reason means.
fn why_never(record: &Record) -> String {
    let Some(reason) = &record.reason else { return String::new() };
    let meaning =
        reasons::of_receipt(reason).or_else(|| reasons::meaning(reasons::FALLBACK, reason));
    match meaning {
        Some(meaning) => format!("{reason}: {meaning}"),
        None => reason.clone(),
    }
}

fn counts(record: &Record, look: &Look) -> Vec<(Tone, String)> {
    let runs = &record.runs;
    let timed = |count: usize, word: &str, us: Option<u64>| {
        let took =
            us.map_or(String::new(), |us| format!(" ({})", units::duration(us, look.micro())));
        (Tone::Dim, format!("{count} {word}{took}"))
    };
    let mut parts = vec![timed(runs.cold, "cold", runs.cold_us)];
    if runs.warm > 0 {
        parts.push(timed(runs.warm, "warm", runs.warm_us));
    }
    if runs.other > 0 {
        parts.push((Tone::Dim, format!("{} not warm yet", runs.other)));
    }
    parts
}

/// Whether a world has a line of its own where not all of them have.
fn is_shown(found: Found) -> bool {
    match found {
        Found::Same | Found::Varies | Found::NotTried => false,
        Found::Cold | Found::Frozen | Found::Differs => true,
    }
}

/// How many worlds and what was found there, how many runs they took, and how to see each.
fn world_counts(worlds: &[WorldPart], verbose: bool) -> Vec<(Tone, String)> {
    let number = |of: Found| worlds.iter().filter(|part| part.verdict == of).count();
    let tried = worlds.len() - number(Found::NotTried);
    let sum = |of: fn(&Runs) -> usize| worlds.iter().map(|part| of(&part.runs)).sum::<usize>();
    let plural = if tried == 1 { "" } else { "s" };
    let kinds = [Found::Same, Found::Varies, Found::Cold, Found::Frozen, Found::Differs];
    let found = kinds.into_iter().filter(|kind| number(*kind) > 0);
    let found: Vec<String> = match found.clone().count() {
        1 => found.map(|kind| kind.word().to_owned()).collect(),
        _ => found.map(|kind| format!("{} {}", number(kind), kind.word())).collect(),
    };
    let mut parts = vec![
        (Tone::Plain, format!("in {tried} other world{plural}: {}", found.join(", "))),
        (Tone::Dim, format!("{} cold runs", sum(|runs| runs.cold))),
        (Tone::Dim, format!("{} warm", sum(|runs| runs.warm))),
    ];
    let other = sum(|runs| runs.other);
    if other > 0 {
        parts.push((Tone::Dim, format!("{other} not warm")));
    }
    if !verbose && worlds.iter().any(|part| !is_shown(part.verdict)) {
        parts.push((Tone::Dim, "--verbose lists them".to_owned()));
    }
    parts
}

/// What was found in the caller's own world, a while later.
fn time(worlds: &[WorldPart]) -> &[Aspect] {
    let time = worlds.iter().find(|part| part.name == TIME);
    time.map_or(&[], |part| &part.aspects)
}

/// One world in one line: its name, its verdict, and what was other, or different.
fn world(part: &WorldPart, own: &[&Aspect], look: &Look) -> String {
    let columns = look.columns.unwrap_or(usize::MAX);
    let name = pad(&printable(&part.name, look.charset), WORLD_COLUMNS, Align::Left);
    let verdict = pad(part.verdict.word(), VERDICT_COLUMNS, Align::Left);
    let reason = part.reason.as_deref().unwrap_or_default();
    let room = columns.saturating_sub(INDENT.len() + WORLD_COLUMNS + VERDICT_COLUMNS);
    let said = match part.verdict {
        Found::Same | Found::Varies => part.varied.clone(),
        Found::Cold => format!("{} ({reason})", part.varied),
        Found::NotTried => reason.to_owned(),
        Found::Frozen | Found::Differs => {
            let mut faults = part.aspects.iter().filter(|aspect| aspect.verdict.is_fault());
            let is_own = |aspect: &Aspect| own.iter().any(|other| is_alike(aspect, other));
            if part.name != TIME && faults.clone().all(is_own) {
                "as in your own world".to_owned()
            } else {
                let first = faults.next().map_or(String::new(), |aspect| gist(aspect, room, look));
                let others = faults.map(|aspect| format!(", {}", aspect.name));
                format!("{first}{}{}{}", others.collect::<String>(), look.dot(), part.varied)
            }
        }
    };
    let said = fit(&printable(&said, look.charset), room, look.charset);
    let verdict = look.paint(world_tone(part.verdict), &verdict);
    format!("{INDENT}{name}{verdict}{}", look.paint(Tone::Dim, &said))
}

/// Whether two differences are the same one. What is frozen has other values each time.
fn is_alike(one: &Aspect, other: &Aspect) -> bool {
    let place = |aspect: &Aspect| {
        let lines = if aspect.verdict == Verdict::Frozen { 1 } else { aspect.diff.len() };
        aspect.diff[..lines.min(aspect.diff.len())].to_vec()
    };
    (&one.name, one.verdict) == (&other.name, other.verdict) && place(one) == place(other)
}

/// A difference in a few words: where, and the first line of each side from where they part.
fn gist(aspect: &Aspect, room: usize, look: &Look) -> String {
    if let (Verdict::Frozen, Some(note)) = (aspect.verdict, &aspect.note) {
        return format!("{}: {note}", aspect.name);
    }
    let at = aspect.diff.first().filter(|line| line.starts_with("@@"));
    // An end has one line.
    let at = at.filter(|_| aspect.name != "exit").map_or("", |line| line.trim_matches('@'));
    let mut said = format!("{}{}", aspect.name, at.trim_end());
    let side = |sign: char| aspect.diff.iter().find_map(|line| line.strip_prefix(sign));
    let (cold, warm) = (side('-'), side('+'));
    let both = cold.unwrap_or_default().chars().zip(warm.unwrap_or_default().chars());
    let common = both.take_while(|(cold, warm)| cold == warm).count();
    // As much of either, with its sign and the space before it.
    let each = (room.saturating_sub(width(&said)) / 2).saturating_sub(2);
    let each = each.clamp(SIDE_COLUMNS_MIN, SIDE_COLUMNS_MAX);
    let skipped = if common > each / 2 { common.saturating_sub(SIDE_CONTEXT) } else { 0 };
    for (sign, line) in [('-', cold), ('+', warm)] {
        let Some(line) = line else { continue };
        let rest: String = line.chars().skip(skipped).collect();
        let cut = if skipped > 0 { fit(TOO_WIDE, 1, look.charset) } else { String::new() };
        said += &format!(" {sign}{}", fit(&(cut + &rest), each, look.charset));
    }
    said
}

fn part(aspect: &Aspect, look: &Look) -> Vec<String> {
    let columns = look.columns.unwrap_or(usize::MAX);
    let name = pad(&printable(&aspect.name, look.charset), NAME_COLUMNS, Align::Left);
    let verdict = pad(aspect.verdict.word(), VERDICT_COLUMNS, Align::Left);
    let mut line = format!("{INDENT}{name}{}", look.paint(tone(aspect.verdict), &verdict));
    let mut lines = Vec::new();
    if let Some(note) = &aspect.note {
        let note = printable(note, look.charset);
        let used = INDENT.len() + NAME_COLUMNS + VERDICT_COLUMNS;
        if used + width(&note) <= columns {
            line += &look.paint(Tone::Dim, &note);
            lines.push(line);
        } else {
            lines.push(line);
            lines.extend(indented(&note, Tone::Dim, look));
        }
    } else {
        lines.push(line);
    }
    for line in &aspect.diff {
        let tone = match line.as_bytes().first() {
            Some(b'-') => Tone::Watch,
            Some(b'+') => Tone::Bad,
            Some(_) | None => Tone::Dim,
        };
        let room = columns.saturating_sub(2 * INDENT.len());
        let line = fit(&printable(line, look.charset), room, look.charset);
        lines.push(format!("{INDENT}{INDENT}{}", look.paint(tone, &line)));
    }
    lines
}

/// Wrapped and indented; nothing for nothing.
fn indented(text: &str, tone: Tone, look: &Look) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let columns = look.columns.unwrap_or(usize::MAX).saturating_sub(2 * INDENT.len());
    let lines = wrap(text, "", columns, look.charset);
    lines.iter().map(|line| format!("{INDENT}{INDENT}{}", look.paint(tone, line))).collect()
}

/// The verdicts that are kept, the oldest first.
pub(super) fn list(records: &[Record], clock: &Clock, look: &Look) -> String {
    if records.is_empty() {
        return "no verdict is kept yet: `hob verify PROGRAM` makes one\n".to_owned();
    }
    let name = |record: &Record| printable(&record.program.name, look.charset);
    let names = records.iter().map(|record| width(&name(record))).max().unwrap_or(0);
    // The other columns, and the longest reason.
    let room = look.columns.unwrap_or(usize::MAX).saturating_sub(60);
    let names = names.min(room.clamp(10, PROGRAM_COLUMNS_MAX));
    let mut text = String::new();
    for record in records {
        let shown = pad(&fit(&name(record), names, look.charset), names, Align::Left);
        let verdict = pad(record.verdict.word(), VERDICT_COLUMNS, Align::Left);
        let at = pad(&clock.show_short(&record.at, look.charset), 11, Align::Left);
        let holds = match &record.why {
            Some(why) => look.paint(Tone::Watch, why),
            None => look.paint(Tone::Dim, "holds"),
        };
        let at = look.paint(Tone::Dim, &at);
        text += &format!("{at}  {shown}  {}{holds}\n", look.paint(tone(record.verdict), &verdict));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::record::{Identity, ProgramPart};
    use super::*;
    use crate::show::style::{Colour, Figures};
    use crate::show::text::Charset;

    const NARROW: Look = Look {
        colour: Colour::Off,
        charset: Charset::Unicode,
        figures: Figures::Drawn,
        columns: Some(80),
    };

    fn sample(verdict: Verdict, reason: Option<&str>, aspects: Vec<Aspect>) -> Record {
        Record {
            schema: "hob.verify/1".to_owned(),
            at: "2026-11-20T21:38:04Z".to_owned(),
            program: ProgramPart {
                id: "1".to_owned(),
                name: format!("./{}\u{1b}[2J.py", "long-name-".repeat(12)),
                target: "/srv/x.py".to_owned(),
                runtime: "python".to_owned(),
                interpreter: None,
                arguments: 0,
            },
            verdict,
            reason: reason.map(str::to_owned),
            runs: Runs { cold: 3, warm: 3, other: 2, cold_us: Some(45_310), warm_us: Some(1_374) },
            aspects,
            worlds: Vec::new(),
            identity: Identity {
                script: None,
                interpreter: "missing".to_owned(),
                build: "0".to_owned(),
            },
            holds: Some(false),
            why: Some("the interpreter has changed".to_owned()),
        }
    }

    fn differing() -> Record {
        let diff = ["@@ line 2 @@", " \u{1b}[31mcontext", "-old", "+new"];
        let part = |name: &str, verdict, diff: &[&str], note: Option<&str>| Aspect {
            name: name.to_owned(),
            verdict,
            diff: diff.iter().map(|line| format!("{line}{}", "x".repeat(150))).collect(),
            note: note.map(str::to_owned),
        };
        let aspects = vec![
            part("stdout", Verdict::Differs, &diff, None),
            part("files", Verdict::Varies, &[], Some("a note that is long: --copy compares more")),
            part("exit", Verdict::Same, &[], Some("exited 0")),
        ];
        sample(Verdict::Differs, None, aspects)
    }

    fn differing_world(name: &str, cold: &str, warm: &str) -> WorldPart {
        let diff = ["@@ line 2 @@".to_owned(), format!("-{cold}"), format!("+{warm}")];
        WorldPart {
            name: name.to_owned(),
            varied: "a \u{1b}[31mlink".to_owned(),
            verdict: Found::Differs,
            reason: None,
            different: vec!["stdout".to_owned()],
            aspects: vec![Aspect {
                name: "stdout".to_owned(),
                verdict: Verdict::Differs,
                diff: diff.to_vec(),
                note: None,
            }],
            runs: Runs { cold: 3, warm: 3, other: 1, ..Runs::default() },
        }
    }

    #[test]
    fn a_world_has_one_line_that_says_what_differs_and_whether_it_does_so_everywhere() {
        let long = "x".repeat(100);
        let [one, two] = ["1", "2"].map(|end| format!("{long}{end}{long}"));
        let worlds = vec![
            differing_world("umask", "same", "other"),
            differing_world("link-moved", "3", "0"),
            differing_world("environment-usual", &one, &two),
            WorldPart {
                verdict: Found::Cold,
                reason: Some("descriptors".to_owned()),
                varied: "closed".to_owned(),
                ..differing_world("input-closed", "", "")
            },
        ];
        let mut own = differing_world("", "same", "other").aspects;
        let mut kept = sample(Verdict::Differs, None, Vec::new());
        kept.aspects.append(&mut own);
        kept.worlds = worlds;
        let text = record(&kept, true, &NARROW);
        let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains("in 4")).collect();
        assert_eq!(
            lines,
            [
                "  in 4 other worlds: 1 cold, 3 differs · 12 cold runs · 12 warm · 4 not warm",
                "  umask              differs           as in your own world",
                "  link-moved         differs           stdout line 2 -3 +0 · a \\u{1b}[31mlink",
                "  environment-usual  differs           stdout line 2 -…xxx1xxxxxx… +…xxx2xxxxxx…",
                "  input-closed       cold              closed (descriptors)",
            ]
        );
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    }

    #[test]
    fn every_line_fits_and_commands_no_terminal() {
        let clock = Clock { now: jiff::Timestamp::UNIX_EPOCH, zone: jiff::tz::TimeZone::UTC };
        let never = sample(Verdict::NeverWarm, Some("context"), Vec::new());
        let texts = [
            record(&differing(), false, &NARROW),
            record(&never, false, &NARROW),
            list(&[differing(), never], &clock, &NARROW),
        ];
        for text in texts {
            assert!(!text.contains('\u{1b}'), "{text}");
            for line in text.lines() {
                assert!(width(line) <= 80, "{line}");
            }
        }
    }

    #[test]
    fn a_verdict_says_what_differs_and_why_it_was_never_warm() {
        let text = record(&differing(), false, &NARROW);
        assert!(text.lines().next().unwrap().ends_with(": differs"), "{text}");
        assert!(text.contains("\n    -oldxxx") && text.contains("\n    +newxxx"), "{text}");
        let never =
            record(&sample(Verdict::NeverWarm, Some("context"), Vec::new()), false, &NARROW);
        assert!(never.contains("\n  context: the caller's groups"), "{never}");
    }
}
