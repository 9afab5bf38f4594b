//! What being warm has gained and lost, per program and day: the sums that `hob gain` shows.
//!
//! The ring of receipts forgets; these sums do not, for [`super::days::DAYS_MAX`] days. A row is
//! added up from receipts and from other rows, and nothing else: no file is touched here.
//!
//! What a call saved is in its receipt (`hob_core::calls::saving` says what counts). All calls are
//! counted. A day is a day of UTC, as in the receipts.

use std::collections::BTreeMap;

use hob_core::receipt::Receipt;
use serde::{Deserialize, Serialize};

use super::format::clip;

/// The name of the format of a line.
pub const SCHEMA: &str = "hob.gain-day/2";

/// The format before it. Its calls are counted; what it calls saved compared whole runs, which may
/// have done other work, and is left out.
const SCHEMA_WHOLE_RUNS: &str = "hob.gain-day/1";

/// Programs that are told apart on one day; the calls of others are summed up as one.
pub const PROGRAMS_PER_DAY_MAX: usize = 256;

/// Reasons that are told apart in one row. There are about forty.
const REASONS_MAX: usize = 64;

/// The `id` of the row of all other programs.
pub const OTHERS: &str = "others";

/// One program on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// [`SCHEMA`].
    pub schema: String,
    /// What tells programs apart: `program.id` of their receipts.
    pub id: String,
    /// The name as it was last called.
    pub name: String,
    /// The file or module that it resolved to.
    pub target: String,
    /// Its interpreter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Warm calls.
    pub warm: u64,
    /// Cold calls that the daemon saw.
    pub cold: u64,
    /// Warm calls that can be compared with a cold run of the same arguments.
    pub compared: u64,
    /// Those of them that took longer than every such run.
    pub losses: u64,
    /// Warm calls of other arguments, of which only the upper end is known.
    #[serde(default)]
    pub bounded: u64,
    /// The start-up that was saved at least, in microseconds.
    pub saved_us: u64,
    /// The same at most.
    #[serde(default)]
    pub most_us: u64,
    /// What was lost.
    pub lost_us: u64,
    /// How often each reason was given, warm and cold.
    pub reasons: BTreeMap<String, u64>,
    /// When the newest call was received.
    pub at: String,
    /// Its reason.
    pub reason: String,
    /// The newest cold run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_us: Option<u64>,
}

impl Row {
    /// What one call amounts to, and its day; `None` for a call that was not run, of a program that
    /// did not resolve, or that was made to compare it.
    #[must_use]
    pub fn of(receipt: &Receipt) -> Option<(String, Row)> {
        let id = receipt.program.id.clone()?;
        let day = receipt.at.get(..10)?.to_owned();
        if receipt.isolation == "none" || receipt.purpose.is_some() {
            return None;
        }
        let mut row = Row {
            schema: SCHEMA.to_owned(),
            id,
            name: receipt.program.name.clone(),
            target: receipt.program.target.clone(),
            interpreter: receipt.program.interpreter.clone(),
            warm: u64::from(receipt.warm),
            cold: u64::from(!receipt.warm),
            reasons: BTreeMap::from([(receipt.reason.clone(), 1)]),
            at: receipt.at.clone(),
            reason: receipt.reason.clone(),
            ..Row::default()
        };
        for text in [&mut row.name, &mut row.target].into_iter().chain(&mut row.interpreter) {
            clip(text);
        }
        let exited = receipt.outcome.code.is_some();
        match (receipt.warm, receipt.cold_us) {
            (true, Some(cold_us)) if exited => row.cold_us = Some(cold_us),
            // The first, watched run is better than nothing to compare with.
            (false, None) if exited => row.cold_us = Some(receipt.total_us),
            (false, Some(cold_us)) if !exited || is_watched(&receipt.reason) => {
                row.cold_us = Some(cold_us);
            }
            (false, Some(_)) => row.cold_us = Some(receipt.total_us),
            (true, _) | (false, None) => {}
        }
        if let Some(gain) = receipt.gain.filter(|_| receipt.warm) {
            row.compared = u64::from(gain.cold_runs > 0);
            row.bounded = 1 - row.compared;
            row.losses = u64::from(gain.lost_us > 0);
            (row.saved_us, row.most_us) = (gain.saved_us, gain.most_us);
            row.lost_us = gain.lost_us;
        }
        Some((day, row))
    }

    /// Reads a line; `None` if it is damaged, or of a newer build.
    #[must_use]
    pub fn read(line: &[u8]) -> Option<Row> {
        let row: Row = serde_json::from_slice(line).ok()?;
        match row.schema.as_str() {
            SCHEMA => Some(row),
            SCHEMA_WHOLE_RUNS => Some(Row {
                schema: SCHEMA.to_owned(),
                compared: 0,
                losses: 0,
                saved_us: 0,
                lost_us: 0,
                ..row
            }),
            _ => None,
        }
    }

    /// Adds another row of the same program to this one.
    pub fn add(&mut self, other: &Row) {
        self.warm += other.warm;
        self.cold += other.cold;
        self.compared += other.compared;
        self.losses += other.losses;
        self.bounded += other.bounded;
        self.saved_us = self.saved_us.saturating_add(other.saved_us);
        self.most_us = self.most_us.saturating_add(other.most_us);
        self.lost_us = self.lost_us.saturating_add(other.lost_us);
        for (reason, count) in &other.reasons {
            if self.reasons.len() < REASONS_MAX || self.reasons.contains_key(reason) {
                *self.reasons.entry(reason.clone()).or_default() += count;
            }
        }
        // Calls are written when they have ended, so not quite in the order in which they came.
        if other.at >= self.at {
            self.at.clone_from(&other.at);
            self.reason.clone_from(&other.reason);
            self.cold_us = other.cold_us.or(self.cold_us);
            if self.id != OTHERS {
                self.name.clone_from(&other.name);
            }
        } else {
            self.cold_us = self.cold_us.or(other.cold_us);
        }
    }
}

/// Whether a cold call was watched, which takes time of its own.
#[must_use]
pub fn is_watched(reason: &str) -> bool {
    reason == "learning" || reason == "stale"
}

/// The rows of one day, by their `id`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    rows: BTreeMap<String, Row>,
}

impl Day {
    /// Adds a row.
    pub fn add(&mut self, row: Row) {
        if let Some(known) = self.rows.get_mut(&row.id) {
            return known.add(&row);
        }
        if self.rows.len() + 1 < PROGRAMS_PER_DAY_MAX || row.id == OTHERS {
            self.rows.insert(row.id.clone(), row);
            return;
        }
        let others = self.rows.entry(OTHERS.to_owned()).or_insert_with(|| Row {
            schema: SCHEMA.to_owned(),
            id: OTHERS.to_owned(),
            name: "(other programs)".to_owned(),
            ..Row::default()
        });
        others.add(&Row { cold_us: None, ..row });
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::*;
    use hob_core::receipt::GainPart;

    fn row(change: impl FnOnce(&mut Receipt)) -> Row {
        let mut receipt = receipt(1);
        change(&mut receipt);
        Row::of(&receipt).unwrap().1
    }

    #[test]
    fn what_a_row_says_of_a_warm_call_is_what_its_receipt_does() {
        let saved = row(|_| {});
        assert_eq!((saved.compared, saved.bounded, saved.losses), (1, 0, 0));
        assert_eq!((saved.saved_us, saved.most_us, saved.lost_us), (40_000, 44_000, 0));
        let gain = |saved_us, most_us, lost_us, cold_runs| {
            Some(GainPart { saved_us, most_us, lost_us, cold_runs })
        };
        let lost = row(|receipt| receipt.gain = gain(0, 0, 12, 1));
        assert_eq!((lost.compared, lost.losses, lost.lost_us), (1, 1, 12));
        let bounded = row(|receipt| receipt.gain = gain(0, 900, 0, 0));
        assert_eq!((bounded.compared, bounded.bounded), (0, 1));
        assert_eq!((bounded.saved_us, bounded.most_us), (0, 900));
        let incomparable = row(|receipt| receipt.gain = None);
        assert_eq!((incomparable.warm, incomparable.compared, incomparable.bounded), (1, 0, 0));
        assert_eq!((incomparable.saved_us, incomparable.most_us), (0, 0));
    }

    #[test]
    fn what_an_older_build_called_saved_is_left_out_and_its_calls_are_not() {
        let line = br#"{"schema":"hob.gain-day/1","id":"a","name":"w.py","target":"/w.py","warm":7,
            "cold":2,"compared":7,"losses":1,"saved_us":563000000,"lost_us":5,"reasons":{},
            "at":"2026-11-21T10:00:00Z","reason":"copy-ready","cold_us":3000000}"#;
        let row = Row::read(line).unwrap();
        assert_eq!((row.warm, row.cold, row.cold_us), (7, 2, Some(3_000_000)));
        assert_eq!((row.compared, row.losses, row.saved_us, row.lost_us), (0, 0, 0, 0));
        assert_eq!(row.schema, SCHEMA);
        let newer = String::from_utf8_lossy(line).replace("day/1", "day/3");
        assert_eq!(Row::read(newer.as_bytes()), None);
    }

    #[test]
    fn a_watched_run_is_compared_with_only_while_there_is_no_other() {
        let cold = |reason: &str, known: Option<u64>, code: Option<u8>| {
            row(|receipt| {
                receipt.warm = false;
                receipt.reason = reason.to_owned();
                receipt.cold_us = known;
                receipt.outcome.code = code;
            })
            .cold_us
        };
        assert_eq!(cold("learning", None, Some(0)), Some(512));
        assert_eq!(cold("stale", Some(400), Some(0)), Some(400));
        assert_eq!(cold("asked", Some(400), Some(0)), Some(512));
        assert_eq!(cold("asked", Some(400), None), Some(400));
        assert_eq!(cold("asked", None, None), None);
    }

    #[test]
    fn what_was_not_run_is_in_no_row() {
        let mut refused = receipt(1);
        refused.isolation = "none".to_owned();
        assert_eq!(Row::of(&refused), None);
    }

    #[test]
    fn a_day_has_a_bounded_number_of_rows_and_loses_no_call() {
        let mut day = Day::default();
        for number in 0..1000 {
            let one = row(|receipt| receipt.program.id = Some(format!("{number:016x}")));
            day.add(one.clone());
            day.add(one);
        }
        assert_eq!(day.rows().count(), PROGRAMS_PER_DAY_MAX);
        assert_eq!(day.rows().map(|row| row.warm).sum::<u64>(), 2000);
        assert_eq!(day.rows().map(|row| row.saved_us).sum::<u64>(), 2000 * 40_000);
        let others = day.rows().find(|row| row.id == OTHERS).unwrap();
        assert_eq!((others.warm, others.cold_us), (2 * (1000 - 255), None));
    }

    #[test]
    fn the_newest_call_names_the_row_in_whatever_order_they_are_added() {
        let named = |at: &str, name: &str, cold_us| {
            row(|receipt| {
                receipt.at = format!("2026-11-21T{at}Z");
                receipt.program.name = name.to_owned();
                receipt.cold_us = cold_us;
            })
        };
        let (old, new) = (named("10:00:00.0", "old", Some(7)), named("11:00:00.0", "new", None));
        for (first, second) in [(&old, &new), (&new, &old)] {
            let mut sum = first.clone();
            sum.add(second);
            assert_eq!((sum.name.as_str(), sum.cold_us, sum.warm), ("new", Some(7), 2));
        }
    }
}
