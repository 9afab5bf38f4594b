//! The daemon's status as text: what it is, what it has done, its pools, and whether receipts
//! are kept.

pub mod dead;
pub mod hosts;
pub mod sessions;

use hob_core::receipt::naming::{Naming, distinct};
use hob_core::status::{PoolPart, Status, WorkersPart};

use super::style::{Look, Tone};
use super::text::{Align, fit_end, pad, printable, width, wrap};
use super::{columns, units};

/// The column of the words on the left.
const WORD_COLUMNS: usize = 10;
/// A build hash is told apart by fewer digits than it has.
const BUILD_SHOWN: usize = 12;
/// A program's name is not made narrower than this.
const PROGRAM_COLUMNS_MIN: usize = 8;

const HEADS: [&str; COLUMNS] = [
    "PROGRAM",
    "ISOLATION",
    "STATE",
    "READY",
    "BUSY",
    "QUEUED",
    "CALLS",
    "MEMORY",
    "IDLE",
    "RUNTIME",
];
const COLUMNS: usize = 10;
/// Those that a program's name is made narrower for.
const NEEDED: usize = 9;
/// Columns from here on are figures, but for those that are not needed.
const FIGURES_FROM: usize = 3;

/// The status as text.
#[must_use]
pub fn status(status: &Status, look: &Look) -> String {
    let charset = look.charset;
    let build = printable(status.build.get(..BUILD_SHOWN).unwrap_or(&status.build), charset);
    let calls = &status.calls;
    let mut counted = vec![
        format!("{} running, {} queued", calls.running, calls.queued),
        format!("{} warm, {} cold", calls.warm_total, calls.cold_total),
    ];
    for (count, word) in [(calls.refused_total, "refused"), (calls.lost_total, "lost")] {
        if count > 0 {
            counted.push(format!("{count} {word}"));
        }
    }
    let counted: Vec<_> = counted.into_iter().map(|part| (Tone::Plain, part)).collect();
    let title = [
        (Tone::Title, format!("hob {} (build {build})", printable(&status.version, charset))),
        (Tone::Plain, format!("pid {}", status.pid)),
        (Tone::Plain, format!("up {}", units::seconds(status.uptime_s))),
    ];
    let memory =
        format!("{} of {}", units::size(status.memory_kib), units::size(status.budget_kib));
    let mut lines = look.flow(&title, look.columns.unwrap_or(usize::MAX));
    lines.push(word(
        "socket",
        &fit_end(&printable(&status.socket, charset), room(look), charset),
        look,
    ));
    for (number, line) in look.flow(&counted, room(look)).iter().enumerate() {
        lines.push(word(if number == 0 { "calls" } else { "" }, line, look));
    }
    lines.push(word("memory", &memory, look));
    lines.extend(messages(status, look));
    lines.extend(outbox(status, look));
    lines.extend(recorder(status, look));
    lines.extend(push(status, look));
    lines.extend(log(status, look));
    lines.push(String::new());
    lines.extend(pools(&status.pools, look));
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A word and what it is.
fn word(word: &str, text: &str, look: &Look) -> String {
    look.paint(Tone::Dim, &pad(word, WORD_COLUMNS, Align::Left)) + text
}

/// The columns beside a word.
fn room(look: &Look) -> usize {
    look.columns.map_or(usize::MAX, |columns| columns.saturating_sub(WORD_COLUMNS))
}

/// Tells that are kept, if there are any.
fn messages(status: &Status, look: &Look) -> Vec<String> {
    let messages = &status.messages;
    if messages.waiting + messages.dead == 0 {
        return Vec::new();
    }
    let mut parts = vec![(Tone::Plain, format!("{} waiting", messages.waiting))];
    if messages.held > 0 {
        parts.push((Tone::Watch, format!("{} held", messages.held)));
    }
    if messages.dead > 0 {
        let noun = if messages.dead == 1 { "dead letter" } else { "dead letters" };
        parts.push((Tone::Bad, format!("{} {noun} (`hob dead`)", messages.dead)));
    }
    let flow = look.flow(&parts, room(look));
    let heads = std::iter::once("messages").chain(std::iter::repeat(""));
    let mut lines: Vec<_> =
        flow.iter().zip(heads).map(|(line, head)| word(head, line, look)).collect();
    if let Some(why) = &messages.held_why {
        let why = format!("held: {}", printable(why, look.charset));
        lines.extend(wrapped(&why, Tone::Watch, look));
    }
    lines
}

/// Who has the outbox, once there is one.
fn outbox(status: &Status, look: &Look) -> Vec<String> {
    let messages = &status.messages;
    let mut lines = Vec::new();
    if let Some(pid) = messages.outbox_owner {
        lines.push(word("outbox", &format!("kept by pid {pid}"), look));
    }
    if let Some(why) = &messages.outbox_why {
        let why = format!("the outbox cannot be used: {}", printable(why, look.charset));
        lines.extend(wrapped(&why, Tone::Bad, look));
    }
    lines
}

fn recorder(status: &Status, look: &Look) -> Vec<String> {
    let recorder = &status.recorder;
    let dir = recorder.dir.as_deref().unwrap_or("no directory");
    let dir = printable(dir, look.charset);
    let mut counts = format!("{} written", recorder.written);
    if recorder.dropped > 0 {
        counts += &format!(", {} dropped", recorder.dropped);
    }
    let counts = format!("{}{counts}", look.dot());
    let dir = fit_end(&dir, room(look).saturating_sub(width(&counts)), look.charset);
    let mut lines = vec![word("receipts", &(dir + &counts), look)];
    if let Some(reason) = &recorder.off_reason {
        let reason = format!("receipts are not kept: {}", printable(reason, look.charset));
        lines.extend(wrapped(&reason, Tone::Bad, look));
    }
    lines
}

/// The daemon's own log, where it tells more than it always does, or less.
fn log(status: &Status, look: &Look) -> Vec<String> {
    let Some(log) = status.log.as_ref().filter(|log| !log.on.is_empty() || log.lost > 0) else {
        return Vec::new();
    };
    let mut parts = vec![(Tone::Plain, printable(&log.path, look.charset))];
    if !log.on.is_empty() {
        parts.push((Tone::Plain, format!("on: {}", printable(&log.on.join(", "), look.charset))));
    }
    if log.lost > 0 {
        let why = printable(log.why.as_deref().unwrap_or_default(), look.charset);
        parts.push((Tone::Watch, format!("{} not written: {why}", log.lost)));
    }
    let heads = std::iter::once("log").chain(std::iter::repeat(""));
    let flow = look.flow(&parts, room(look));
    flow.iter().zip(heads).map(|(line, head)| word(head, line, look)).collect()
}

/// What becomes of receipts at a collector, if they are pushed to one.
fn push(status: &Status, look: &Look) -> Vec<String> {
    let Some(push) = &status.push else { return Vec::new() };
    let mut parts = vec![
        (Tone::Plain, format!("to {}", printable(&push.to, look.charset))),
        (Tone::Plain, format!("{} sent, {} waiting", push.sent, push.waiting)),
    ];
    if push.to.is_empty() {
        parts.remove(0);
    }
    if push.dropped > 0 {
        parts.push((Tone::Watch, format!("{} dropped", push.dropped)));
    }
    if push.rejected_spans > 0 {
        parts.push((Tone::Watch, format!("{} spans not kept there", push.rejected_spans)));
    }
    let flow = look.flow(&parts, room(look));
    let heads = std::iter::once("export").chain(std::iter::repeat(""));
    let mut lines: Vec<_> =
        flow.iter().zip(heads).map(|(line, head)| word(head, line, look)).collect();
    if let Some(why) = &push.why {
        let why = format!("export: {}", printable(why, look.charset));
        lines.extend(wrapped(&why, Tone::Watch, look));
    }
    lines
}

/// The pools as a table, one line each and one more for what is to be said of it.
pub(crate) fn pools(pools: &[PoolPart], look: &Look) -> Vec<String> {
    if pools.is_empty() {
        return vec!["nothing is warm yet".to_owned()];
    }
    let namings: Vec<_> = pools.iter().map(naming).collect();
    let named = pools.iter().zip(distinct(&namings));
    let rows: Vec<_> = named.map(|(pool, name)| cells(pool, &name, look)).collect();
    let mut widths = HEADS.map(width);
    for row in &rows {
        for (column, text) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(text));
        }
    }
    if let Some(columns) = look.columns {
        let all = widths[..NEEDED].iter().sum::<usize>() + (NEEDED - 1) * columns::GAP.len();
        let narrower = widths[0].saturating_sub(all.saturating_sub(columns));
        widths[0] = narrower.max(PROGRAM_COLUMNS_MIN).min(widths[0]);
    }
    let mut lines = vec![look.paint(Tone::Dim, &line(&HEADS.map(str::to_owned), &widths, look))];
    for (pool, row) in pools.iter().zip(&rows) {
        lines.push(line(row, &widths, look));
        if let Some(text) = workers(pool) {
            lines.extend(wrapped(&text, Tone::Dim, look));
        }
        if let Some(why) = &pool.why {
            let why = format!("why: {}", printable(why, look.charset));
            lines.extend(wrapped(&why, Tone::Watch, look));
        }
    }
    lines
}

/// What the row does not tell of the workers of an app or a handler: those that start or end, those
/// of another generation, and how many have been replaced.
fn workers(pool: &PoolPart) -> Option<String> {
    let of = |part: &WorkersPart| {
        let counts = [
            (part.starting, "starting"),
            (part.ready, "ready"),
            (part.busy, "busy"),
            (part.retiring, "retiring"),
        ];
        let named = counts.iter().filter(|(count, _)| *count > 0);
        let named: Vec<_> = named.map(|(count, word)| format!("{count} {word}")).collect();
        format!("generation {}: {}", part.generation, named.join(", "))
    };
    let mut parts: Vec<_> = pool.workers.iter().map(of).collect();
    if pool.recycled > 0 {
        parts.push(format!("{} recycled", pool.recycled));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn naming(pool: &PoolPart) -> Naming<'_> {
    Naming { name: &pool.program, target: &pool.target, interpreter: pool.interpreter.as_deref() }
}

fn cells(pool: &PoolPart, name: &str, look: &Look) -> [String; COLUMNS] {
    [
        printable(name, look.charset),
        printable(&pool.isolation, look.charset),
        printable(&pool.state, look.charset),
        format!("{}/{}", pool.ready, pool.ahead),
        pool.busy.to_string(),
        pool.queued.to_string(),
        pool.calls.to_string(),
        memory(pool),
        units::seconds(pool.idle_s),
        printable(&pool.runtime, look.charset),
    ]
}

/// What has no process, or none that was measured yet (that is every five seconds), does not
/// use nothing: it has no figure.
fn memory(pool: &PoolPart) -> String {
    match pool.memory_kib {
        0 => "-".to_owned(),
        kib => units::size(kib),
    }
}

fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS], look: &Look) -> String {
    columns::line(row, widths, |column| (FIGURES_FROM..NEEDED).contains(&column), look)
}

/// A reason is worth its lines.
fn wrapped(text: &str, tone: Tone, look: &Look) -> Vec<String> {
    let lines = wrap(text, "  ", look.columns.unwrap_or(usize::MAX), look.charset);
    lines.into_iter().map(|line| look.paint(tone, &line)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, in_every_look};
    use super::*;

    fn check(name: &str, given: &Status) {
        in_every_look(&format!("status-{name}"), |look| status(given, look));
    }

    #[test]
    fn a_fresh_daemon() {
        check("fresh", &samples::fresh_status());
    }

    #[test]
    fn a_daemon_with_pools_and_troubles() {
        check("busy", &samples::busy_status());
    }

    #[test]
    fn a_status_reads_back_equal_and_an_older_one_is_read() {
        let status = samples::busy_status();
        let mut value = serde_json::to_value(&status).unwrap();
        assert_eq!(serde_json::from_value::<Status>(value.clone()).unwrap(), status);
        assert_eq!(value["schema"], "hob.status/1");
        value["calls"].as_object_mut().unwrap().remove("lost_total");
        value["a_later_field"] = true.into();
        serde_json::from_value::<Status>(value).unwrap();
    }
}
