//! What one interval shows: two samples of the daemon's status, as figures. Pure.
//!
//! Totals of a daemon that was replaced begin anew, so that nothing is subtracted across two
//! daemons.

use hob_core::status::{ColdPart, PoolPart, Status};
use serde_json::{Value, json};

use crate::show::status::pools;
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, Charset, pad, printable};
use crate::show::units;

/// The name of the format.
const SCHEMA: &str = "hob.top/1";
/// The column of the words on the left.
const WORD_COLUMNS: usize = 9;
/// How many reasons are shown to a person.
const REASONS_SHOWN: usize = 6;

/// The order of programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// As the daemon lists them.
    #[default]
    Served,
    /// Those with the most calls first.
    Calls,
    /// Those with the most memory first.
    Memory,
}

impl Order {
    pub(super) fn next(self) -> Order {
        match self {
            Order::Served => Order::Calls,
            Order::Calls => Order::Memory,
            Order::Memory => Order::Served,
        }
    }

    /// How a person is told, where it is not as ever.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Order::Served => None,
            Order::Calls => Some("most calls first"),
            Order::Memory => Some("most memory first"),
        }
    }
}

/// A status, and when it was asked for.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) status: Status,
    pub(super) at_ns: u64,
}

/// Two samples' difference, with the later one.
#[derive(Debug)]
pub(super) struct Snapshot<'a> {
    now: &'a Status,
    /// What was counted between the samples; `None` where there is nothing to compare with.
    interval: Option<Interval>,
}

#[derive(Debug)]
struct Interval {
    us: u64,
    warm: u64,
    cold: u64,
    by_reason: Vec<ColdPart>,
}

impl Interval {
    fn calls_per_s(&self) -> f64 {
        let calls = u32::try_from(self.warm + self.cold).unwrap_or(u32::MAX);
        let us = u32::try_from(self.us.max(1)).unwrap_or(u32::MAX);
        f64::from(calls) * 1e6 / f64::from(us)
    }
}

impl<'a> Snapshot<'a> {
    /// What happened between two samples.
    pub(super) fn between(earlier: Option<&Sample>, now: &'a Sample) -> Snapshot<'a> {
        let earlier = earlier.filter(|earlier| earlier.status.pid == now.status.pid);
        let interval = earlier.map(|earlier| {
            let (was, is) = (&earlier.status.calls, &now.status.calls);
            Interval {
                us: now.at_ns.saturating_sub(earlier.at_ns) / 1_000,
                warm: is.warm_total.saturating_sub(was.warm_total),
                cold: is.cold_total.saturating_sub(was.cold_total),
                by_reason: grown(&earlier.status.cold, &now.status.cold),
            }
        });
        Snapshot { now: &now.status, interval }
    }

    /// The share of warm calls: of the interval, or of all where it had none.
    fn warm_share(&self) -> Option<f64> {
        let calls = &self.now.calls;
        let interval = self.interval.as_ref().map(|interval| (interval.warm, interval.cold));
        let of = |(warm, cold): (u64, u64)| {
            let part = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
            (warm + cold > 0).then(|| part(warm) / part(warm + cold))
        };
        interval.and_then(of).or_else(|| of((calls.warm_total, calls.cold_total)))
    }

    fn workers(&self) -> (u32, u32) {
        let pools = &self.now.pools;
        (pools.iter().map(|pool| pool.ready).sum(), pools.iter().map(|pool| pool.busy).sum())
    }

    /// One line of `hob.top/1`.
    pub(super) fn json(&self) -> String {
        let (ready, busy) = self.workers();
        let new = |reason: &str| {
            let interval = self.interval.as_ref()?;
            let part = interval.by_reason.iter().find(|part| part.reason == reason);
            Some(part.map_or(0, |part| part.total))
        };
        let cold: Vec<Value> = self
            .now
            .cold
            .iter()
            .map(|part| {
                json!({"reason": part.reason, "total": part.total, "new": new(&part.reason)})
            })
            .collect();
        json!({
            "schema": SCHEMA,
            "at": jiff::Timestamp::now().to_string(),
            "daemon": {
                "pid": self.now.pid,
                "version": self.now.version,
                "uptime_s": self.now.uptime_s,
            },
            "interval_us": self.interval.as_ref().map(|interval| interval.us),
            "calls_per_s": self.interval.as_ref().map(Interval::calls_per_s),
            "warm_share": self.warm_share(),
            "calls": self.now.calls,
            "cold": cold,
            "workers": {"ready": ready, "busy": busy},
            "memory_kib": self.now.memory_kib,
            "budget_kib": self.now.budget_kib,
            "pools": self.now.pools,
        })
        .to_string()
    }

    /// The same for a person.
    pub(super) fn lines(&self, look: &Look) -> Vec<String> {
        let mut lines = self.head(look);
        lines.extend(pools(&self.now.pools, look));
        lines
    }

    /// The same with those programs only that are wanted, in this order, and what came each second.
    pub(super) fn ordered(
        &self,
        (order, rates): (Order, &[f64]),
        look: &Look,
        wanted: impl Fn(&PoolPart) -> bool,
    ) -> Vec<String> {
        let mut lines = self.head(look);
        let room = look.figure_columns().saturating_sub(WORD_COLUMNS);
        let word = pad("", WORD_COLUMNS, Align::Left);
        // Below the rate that it is of.
        lines.insert(2.min(lines.len()), word + &sparkline(rates, room, look.charset));
        let mut chosen: Vec<_> =
            self.now.pools.iter().filter(|pool| wanted(pool)).cloned().collect();
        match order {
            Order::Served => {}
            Order::Calls => chosen.sort_by_key(|pool| std::cmp::Reverse(pool.calls)),
            Order::Memory => chosen.sort_by_key(|pool| std::cmp::Reverse(pool.memory_kib)),
        }
        if chosen.is_empty() && !self.now.pools.is_empty() {
            lines.push("no program has this in its name".to_owned());
        } else {
            lines.extend(pools(&chosen, look));
        }
        lines
    }

    /// Calls a second in the interval, if there is one.
    pub(super) fn rate(&self) -> Option<f64> {
        self.interval.as_ref().map(Interval::calls_per_s)
    }

    /// What is said of the daemon as a whole.
    fn head(&self, look: &Look) -> Vec<String> {
        let columns = look.columns.unwrap_or(usize::MAX);
        let room = columns.saturating_sub(WORD_COLUMNS);
        let calls = &self.now.calls;
        let (ready, busy) = self.workers();
        let plain = |text: String| (Tone::Plain, text);
        let title = [
            (Tone::Title, format!("hob {}", printable(&self.now.version, look.charset))),
            plain(format!("pid {}", self.now.pid)),
            plain(format!("up {}", units::seconds(self.now.uptime_s))),
        ];
        let rate = self
            .interval
            .as_ref()
            .map_or("-/s".to_owned(), |interval| format!("{:.1}/s", interval.calls_per_s()));
        let share = self.warm_share().map_or("nothing called yet".to_owned(), |share| {
            format!("{:.0} % warm", share * 100.0)
        });
        let rows = [
            (
                "calls",
                vec![
                    plain(rate),
                    (Tone::Good, share),
                    plain(format!("{} running, {} queued", calls.running, calls.queued)),
                    plain(format!("{} warm, {} cold", calls.warm_total, calls.cold_total)),
                ],
            ),
            ("cold", self.reasons()),
            ("workers", vec![plain(format!("{ready} ready, {busy} busy"))]),
            (
                "memory",
                vec![plain(format!(
                    "{} of {}",
                    units::size(self.now.memory_kib),
                    units::size(self.now.budget_kib)
                ))],
            ),
        ];
        let mut lines = look.flow(&title, columns);
        for (word, parts) in rows {
            for (number, line) in look.flow(&parts, room).iter().enumerate() {
                let word = pad(if number == 0 { word } else { "" }, WORD_COLUMNS, Align::Left);
                lines.push(look.paint(Tone::Dim, &word) + line);
            }
        }
        lines.push(String::new());
        lines
    }

    /// Why calls were cold, with what the interval added.
    fn reasons(&self) -> Vec<(Tone, String)> {
        let added = |reason: &str| {
            let interval = self.interval.as_ref()?;
            interval.by_reason.iter().find(|part| part.reason == reason)
        };
        let shown =
            self.now.cold.iter().take(REASONS_SHOWN).map(|part| match added(&part.reason) {
                Some(new) => {
                    (Tone::Watch, format!("{} {} (+{})", part.reason, part.total, new.total))
                }
                None => (Tone::Plain, format!("{} {}", part.reason, part.total)),
            });
        let shown: Vec<_> = shown.collect();
        if shown.is_empty() { vec![(Tone::Plain, "none".to_owned())] } else { shown }
    }
}

/// The last of these rates that have room, each as a bar beside the highest, with that one's number.
fn sparkline(rates: &[f64], room: usize, charset: Charset) -> String {
    let bars: &[char] = match charset {
        Charset::Unicode => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        Charset::Ascii => &['_', '.', ':', '-', '=', '+', '*', '#'],
    };
    let highest = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let number = format!(" up to {:.1}/s", highest(rates));
    let shown = &rates[rates.len().saturating_sub(room.saturating_sub(number.len()))..];
    let highest = highest(shown);
    if highest <= 0.0 {
        return String::new();
    }
    let bar = |rate: &f64| {
        let share = rate / highest;
        let step = bars.iter().zip(1_u8..).find(|(_, step)| share <= f64::from(*step) / 8.0);
        step.map_or(bars[7], |(bar, _)| *bar)
    };
    shown.iter().map(bar).collect::<String>() + &format!(" up to {highest:.1}/s")
}

/// A line of `hob.top/1` for a moment without a daemon.
pub(super) fn without_daemon() -> String {
    json!({"schema": SCHEMA, "at": jiff::Timestamp::now().to_string(), "daemon": null}).to_string()
}

/// What was added to each reason.
fn grown(earlier: &[ColdPart], now: &[ColdPart]) -> Vec<ColdPart> {
    let before = |reason: &str| {
        earlier.iter().find(|part| part.reason == reason).map_or(0, |part| part.total)
    };
    now.iter()
        .map(|part| ColdPart {
            reason: part.reason.clone(),
            total: part.total.saturating_sub(before(&part.reason)),
        })
        .filter(|part| part.total > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::style::{Colour, Figures};
    use crate::show::text::{Charset, width};

    /// A sample of this daemon at this second: warm calls, and cold ones by reason.
    fn sample(pid: u32, at_s: u64, warm: u64, cold: &[(&str, u64)]) -> Sample {
        let cold_total: u64 = cold.iter().map(|(_, total)| total).sum();
        let cold: Vec<_> =
            cold.iter().map(|(why, total)| json!({"reason": why, "total": total})).collect();
        let status = json!({
            "schema": "hob.status/1", "pid": pid, "build": "00", "version": "0.1.0",
            "uptime_s": at_s, "socket": "/s", "memory_kib": 2048, "budget_kib": 1_048_576,
            "calls": {"running": 0, "queued": 0, "warm_total": warm, "cold_total": cold_total},
            "cold": cold, "pools": [], "recorder": {"written": 0, "dropped": 0},
        });
        Sample { status: serde_json::from_value(status).unwrap(), at_ns: at_s * 1_000_000_000 }
    }

    fn json_of(earlier: Option<&Sample>, now: &Sample) -> Value {
        serde_json::from_str(&Snapshot::between(earlier, now).json()).unwrap()
    }

    #[test]
    fn an_interval_counts_what_it_brought() {
        let earlier = sample(7, 10, 100, &[("learning", 2)]);
        let now = sample(7, 12, 109, &[("learning", 2), ("stale", 1)]);
        let line = json_of(Some(&earlier), &now);
        assert_eq!((&line["calls_per_s"], &line["warm_share"]), (&5.0.into(), &0.9.into()));
        assert_eq!((&line["cold"][0]["new"], &line["cold"][1]["new"]), (&0.into(), &1.into()));
        assert_eq!(line["interval_us"], 2_000_000);
    }

    #[test]
    fn nothing_is_subtracted_across_two_daemons() {
        let earlier = sample(7, 10, 100, &[("learning", 9)]);
        let now = sample(8, 11, 3, &[("learning", 1)]);
        let line = json_of(Some(&earlier), &now);
        assert!(line["calls_per_s"].is_null() && line["interval_us"].is_null(), "{line}");
        assert!(line["cold"][0]["new"].is_null(), "{line}");
        // What the new one has done since its start is known all the same.
        assert_eq!(line["warm_share"], 0.75);
    }

    #[test]
    fn a_daemon_that_has_done_nothing_has_no_share() {
        let line = json_of(None, &sample(7, 10, 0, &[]));
        assert!(line["warm_share"].is_null(), "{line}");
    }

    #[test]
    fn rates_are_bars_beside_the_highest() {
        let line = |rates: &[f64], room| sparkline(rates, room, Charset::Ascii);
        assert_eq!(line(&[], 40), "");
        assert_eq!(line(&[0.0, 0.0], 40), "");
        assert_eq!(line(&[0.0, 1.0, 4.0, 8.0, 7.9], 40), "__-## up to 8.0/s");
        assert_eq!(line(&[9.0, 2.0, 1.0, 2.0], 15), "#-# up to 2.0/s");
        assert!(sparkline(&[1.0, 2.0], 40, Charset::Unicode).starts_with("▄█ "));
    }

    #[test]
    fn a_person_sees_the_same_in_as_many_columns_as_there_are() {
        let earlier = sample(7, 10, 100, &[("learning", 2)]);
        let now = sample(7, 12, 109, &[("learning", 2), ("stale", 1)]);
        let look = Look {
            colour: Colour::Off,
            charset: Charset::Ascii,
            figures: Figures::Drawn,
            columns: Some(40),
        };
        let lines = Snapshot::between(Some(&earlier), &now).lines(&look);
        assert!(lines.iter().all(|line| width(line) <= 40), "{lines:?}");
        let text = lines.join("\n");
        for part in ["5.0/s", "90 % warm", "learning 2", "stale 1 (+1)", "2.00 MiB of 1.00 GiB"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
