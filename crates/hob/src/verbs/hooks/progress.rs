//! The one line that shows how far many targets are: how many ended, how many of them failed, how
//! fast it goes, and how long it will take. Only on a terminal.
//!
//! [`Progress::line`] is pure; when it is drawn is `watch`'s.

use std::collections::VecDeque;

use crate::show::style::{Look, Tone};
use crate::show::text::{Charset, width};
use crate::show::units;

/// The rate is that of so much time.
const WINDOW_US: u64 = 10_000_000;
/// A sample of the window is not taken more often.
const SAMPLE_US: u64 = 250_000;
/// The picture of the bar is not narrower than this, and not wider.
const BAR_MIN: usize = 8;
const BAR_MAX: usize = 30;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// How many targets ended, with those of an earlier run.
    pub(crate) ended: u64,
    /// How many of them failed.
    pub(crate) failed: u64,
    /// How many there are.
    pub(crate) total: u64,
}

/// How it went until now.
#[derive(Debug)]
pub(crate) struct Progress {
    samples: VecDeque<(u64, u64)>,
}

impl Progress {
    /// It begins, with so many targets of an earlier run.
    pub(crate) fn new(ended: u64) -> Progress {
        Progress { samples: VecDeque::from([(0, ended)]) }
    }

    /// The line for this moment, no wider than the terminal.
    pub(crate) fn line(
        &mut self,
        counts: Counts,
        now_us: u64,
        ending: bool,
        look: &Look,
    ) -> String {
        let rate = self.rate(counts.ended, now_us);
        let mut parts =
            vec![(Tone::Plain, format!("{}/{}", thousands(counts.ended), thousands(counts.total)))];
        if counts.failed > 0 {
            parts.push((Tone::Bad, format!("{} failed", thousands(counts.failed))));
        }
        if ending {
            parts.push((Tone::Watch, "ending: ^C again ends at once".to_owned()));
        } else if let Some((count, time_us)) = rate {
            parts.push((Tone::Plain, format!("{}/s", per_second(count, time_us))));
            let left_us = counts.total.saturating_sub(counts.ended).saturating_mul(time_us) / count;
            parts
                .push((Tone::Dim, format!("{} left", units::seconds(left_us.div_ceil(1_000_000)))));
        }
        // The last column stays free: some terminals go to the next line when it is filled.
        let columns = look.figure_columns().saturating_sub(1);
        let dot = look.dot();
        let needs = |parts: &[(Tone, String)]| {
            let texts: usize = parts.iter().map(|(_, text)| width(text)).sum();
            texts + width(dot) * parts.len().saturating_sub(1)
        };
        while parts.len() > 1 && needs(&parts) > columns {
            parts.pop();
        }
        let room = columns.saturating_sub(needs(&parts) + 2).min(BAR_MAX);
        let mut line = String::new();
        if room >= BAR_MIN {
            line += &bar(counts, room, look);
            line += "  ";
        }
        for (index, (tone, text)) in parts.iter().enumerate() {
            if index > 0 {
                line += &look.paint(Tone::Dim, dot);
            }
            line += &look.paint(*tone, text);
        }
        line
    }

    /// How many targets ended in how much of the last time.
    fn rate(&mut self, ended: u64, now_us: u64) -> Option<(u64, u64)> {
        if self.samples.back().is_none_or(|(at_us, _)| now_us >= at_us + SAMPLE_US) {
            self.samples.push_back((now_us, ended));
        }
        // One that is older than the window stays, so that the window is always full.
        while self.samples.get(1).is_some_and(|(at_us, _)| at_us + WINDOW_US <= now_us) {
            self.samples.pop_front();
        }
        let (since_us, before) = *self.samples.front()?;
        let (count, time_us) = (ended.saturating_sub(before), now_us.saturating_sub(since_us));
        (count > 0 && time_us > 0).then_some((count, time_us))
    }
}

fn bar(counts: Counts, columns: usize, look: &Look) -> String {
    let (full, empty) = match look.charset {
        Charset::Unicode => ("━", "─"),
        Charset::Ascii => ("#", "."),
    };
    let part = |count: u64| {
        let exact = u128::from(count) * columns as u128 / u128::from(counts.total.max(1));
        usize::try_from(exact).unwrap_or(columns).min(columns)
    };
    let done = part(counts.ended);
    // One failure among thousands must still be seen.
    let bad = part(counts.failed).max(usize::from(counts.failed > 0 && done > 0)).min(done);
    look.paint(Tone::Good, &full.repeat(done - bad))
        + &look.paint(Tone::Bad, &full.repeat(bad))
        + &look.paint(Tone::Dim, &empty.repeat(columns - done))
}

/// `12,345`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `0.52`, `9.8`, `412`, `12,345`.
pub(crate) fn per_second(count: u64, time_us: u64) -> String {
    let exact = u128::from(count) * 1_000_000;
    let whole = u64::try_from(exact / u128::from(time_us.max(1))).unwrap_or(u64::MAX);
    if whole >= 100 {
        return thousands(whole);
    }
    units::ratio(count.saturating_mul(1_000_000), time_us).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::style::{Colour, Figures};

    fn look(columns: usize, charset: Charset) -> Look {
        Look { colour: Colour::Off, charset, figures: Figures::Drawn, columns: Some(columns) }
    }

    /// A second has passed since 100 of 2,000 had ended.
    fn line(columns: usize, charset: Charset, failed: u64, ending: bool) -> String {
        let mut progress = Progress::new(100);
        let look = look(columns, charset);
        let counts = |ended| Counts { ended, failed, total: 2_000 };
        let first = progress.line(counts(100), 0, false, &look);
        assert!(first.ends_with("100/2,000") || failed > 0, "no rate yet: {first}");
        progress.line(counts(500), 1_000_000, ending, &look)
    }

    #[test]
    fn it_shows_the_rate_the_rest_and_the_failures() {
        assert_eq!(
            line(80, Charset::Unicode, 3, false),
            "━━━━━━━───────────────────────  500/2,000 · 3 failed · 400/s · 4 s left"
        );
        assert_eq!(
            line(44, Charset::Ascii, 0, false),
            "###..........  500/2,000 - 400/s - 4 s left"
        );
        assert_eq!(line(30, Charset::Ascii, 0, false), "500/2,000 - 400/s - 4 s left");
        assert_eq!(line(20, Charset::Ascii, 3, false), "##......  500/2,000");
        assert!(line(80, Charset::Ascii, 0, true).ends_with("^C again ends at once"));
        for columns in 10..120 {
            assert!(width(&line(columns, Charset::Unicode, 12, false)) < columns, "{columns}");
        }
    }

    #[test]
    fn one_failure_is_seen_and_nothing_overflows() {
        let mut look = look(80, Charset::Ascii);
        look.colour = Colour::On;
        let shown = bar(Counts { ended: 20_000, failed: 1, total: 20_000 }, 10, &look);
        assert_eq!(
            shown,
            look.paint(Tone::Good, "#########")
                + &look.paint(Tone::Bad, "#")
                + &look.paint(Tone::Dim, "")
        );
        for counts in [
            Counts { ended: 5, failed: 9, total: 3 },
            Counts { ended: 0, failed: 0, total: 0 },
            Counts { ended: u64::MAX, failed: u64::MAX, total: u64::MAX },
        ] {
            bar(counts, 10, &look);
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_moments() {
        let mut progress = Progress::new(0);
        let look = look(80, Charset::Ascii);
        let mut shown = String::new();
        // Fast for a minute, then 2 a second.
        for second in 0..60 {
            let counts = Counts { ended: second * 100, failed: 0, total: 10_000 };
            shown = progress.line(counts, second * 1_000_000, false, &look);
        }
        assert!(shown.contains(" 100/s "), "{shown}");
        for second in 0..20 {
            let counts = Counts { ended: 5_900 + second * 2, failed: 0, total: 10_000 };
            shown = progress.line(counts, (60 + second) * 1_000_000, false, &look);
        }
        assert!(shown.contains(" 2.0/s "), "{shown}");
    }

    #[test]
    fn numbers_are_read_at_a_glance() {
        let all = [0, 12, 999, 1_000, 1_234_567].map(thousands);
        assert_eq!(all, ["0", "12", "999", "1,000", "1,234,567"]);
        let rates = [(1, 2_000_000), (98, 10_000_000), (412, 1_000_000), (12_345, 1_000_000)];
        assert_eq!(rates.map(|(n, us)| per_second(n, us)), ["0.50", "9.8", "412", "12,345"]);
    }
}
