//! A request of an access log as a line: `14:02:07  200  GET  24.3 KiB  0.31 ms  /git/blob/acme`.
//!
//! Each line is made by itself, since lines that are followed come one by one: its columns have
//! fixed widths, and the address takes what is left.

use hob_core::http::access::Access;

use super::super::clock::Clock;
use super::super::style::{Look, Tone};
use super::super::text::{Align, fit, pad, printable, width};
use super::super::units;

const GAP: &str = "  ";
const METHOD_COLUMNS: usize = 6;
const SIZE_COLUMNS: usize = 8;
const TIME_COLUMNS: usize = 8;
/// An address is not made narrower than this for what is said behind it.
const TARGET_COLUMNS_MIN: usize = 20;
/// A phase that took less of the whole is not said: one in so many.
const PHASE_SHARE: u64 = 20;

/// A request.
#[must_use]
pub fn line(access: &Access, clock: &Clock, look: &Look) -> String {
    let charset = look.charset;
    let tone = match access.status {
        500.. => Tone::Bad,
        400.. => Tone::Watch,
        _ => Tone::Good,
    };
    let time = clock.show_short(&access.time, charset);
    let size = units::size(access.bytes.div_ceil(1024));
    let size = if access.bytes < 1024 { format!("{} B", access.bytes) } else { size };
    let method = fit(&printable(&access.method, charset), METHOD_COLUMNS, charset);
    let head = [
        time,
        look.paint(tone, &access.status.to_string()),
        pad(&method, METHOD_COLUMNS, Align::Left),
        pad(&size, SIZE_COLUMNS, Align::Right),
        pad(&units::duration(access.total_us, look.micro()), TIME_COLUMNS, Align::Right),
    ];
    let taken = width(&head[0]) + 3 + METHOD_COLUMNS + SIZE_COLUMNS + TIME_COLUMNS + 5 * GAP.len();
    let target = printable(&access.target, charset);
    let notes = notes(access, look);
    let left = look.columns.unwrap_or(usize::MAX).saturating_sub(taken);
    let behind = left.saturating_sub(width(&target).max(TARGET_COLUMNS_MIN) + GAP.len());
    let is_said = !notes.is_empty() && width(&notes) <= behind;
    let target = fit(&target, left, charset);
    let mut text = format!("{}{GAP}{target}", head.join(GAP));
    if is_said {
        text.push_str(&format!("{GAP}{}", look.paint(Tone::Dim, &notes)));
    }
    format!("{}\n", text.trim_end())
}

/// That lines are missing.
#[must_use]
pub fn missing(count: u64, look: &Look) -> String {
    let lines = if count == 1 { "line was" } else { "lines were" };
    format!("{}\n", look.paint(Tone::Watch, &format!("{count} {lines} dropped here")))
}

/// What is worth saying besides: why it failed, its rights, where its time went.
fn notes(access: &Access, look: &Look) -> String {
    let mut notes = Vec::new();
    notes.extend(access.failure.as_ref().map(|why| printable(why, look.charset)));
    notes.extend(
        access.rights.as_ref().map(|from| format!("rights {}", printable(from, look.charset))),
    );
    let named = access.times.named();
    let is_much = |us: u64| us > 0 && us.saturating_mul(PHASE_SHARE) >= access.total_us;
    let times = named.iter().filter(|(_, us)| is_much(*us));
    notes.extend(times.map(|(name, us)| format!("{name} {}", units::duration(*us, look.micro()))));
    notes.join(", ")
}

#[cfg(test)]
mod tests {
    use hob_core::http::access::Times;

    use super::super::super::samples::in_every_look;
    use super::*;

    #[test]
    fn requests_in_every_look() {
        let of = |target: &str, status, bytes, total_us| Access {
            time: "2026-11-21T21:38:04.120337Z".to_owned(),
            method: "GET".to_owned(),
            target: target.to_owned(),
            status,
            bytes,
            total_us,
            ..Access::default()
        };
        let mut blob = of("/git/blob/acme/main?path=application.xml", 200, 24_900, 310);
        blob.rights = Some("kept".to_owned());
        blob.times = Times { ref_us: Some(40), object_us: Some(230), ..Times::default() };
        let mut lost = of("/shop/\u{1b}[31m", 502, 31, 2_400_000);
        lost.failure = Some("lost".to_owned());
        let long = of(&format!("/{}", "long/".repeat(40)), 404, 10, 90);
        in_every_look("requests", |look| {
            let clock = super::super::super::samples::clock();
            let lines = [&blob, &lost, &long].map(|access| line(access, &clock, look));
            lines.concat() + &missing(12, look)
        });
    }
}
