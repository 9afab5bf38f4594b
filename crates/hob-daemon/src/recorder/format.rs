//! One receipt, one line: NDJSON, so that `jq` reads it, and a damaged line costs one receipt.
//!
//! The version is in every line (`"schema":"hob.receipt/1"`), not in the file, because one file
//! may hold lines of several builds. The rule for a change:
//! - *old reader, new data*: fields that it does not know are ignored. What it cannot ignore (a
//!   field that changed its meaning or went away) raises the number, and the old reader skips the
//!   line as [`Skipped::Newer`].
//! - *new reader, old data*: a field that was added has a default, so every older number is read.
//! - *old writer, new data* (a build was replaced by an older one): a writer only appends and
//!   only removes whole segments by their number, so it never rewrites what it cannot read. Its
//!   lines and newer lines stand in one file.
//!
//! A line is bounded: a name that would not fit is clipped, as its end is worth less than the
//! receipt.

use hob_core::receipt::{Receipt, SCHEMA};
use serde::Deserialize;

/// The longest line that is written or read, with its line end.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// The longest text in a receipt. JSON can make six bytes of one, and a receipt has few texts.
pub const TEXT_BYTES_MAX: usize = 1024;

/// Why a line was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// It is a receipt of a format that this build does not know.
    Newer,
    /// It is no receipt: a line that was cut short by a crash or a full disk, or damage.
    Torn,
}

/// The receipt did not fit into a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Appends the receipt as one line to `lines`, or leaves `lines` as it was.
pub fn encode(mut receipt: Receipt, lines: &mut Vec<u8>) -> Result<(), TooLong> {
    clip_texts(&mut receipt);
    let start = lines.len();
    // A receipt has only string keys and a vector takes every write, so this fails only if the
    // type is changed into one that JSON cannot say; that costs the receipt, not the daemon.
    let written = serde_json::to_writer(&mut *lines, &receipt);
    lines.push(b'\n');
    if written.is_err() || lines.len() - start > LINE_BYTES_MAX {
        lines.truncate(start);
        return Err(TooLong);
    }
    Ok(())
}

/// Reads one line, without or with its line end.
pub fn decode(line: &[u8]) -> Result<Receipt, Skipped> {
    match serde_json::from_slice::<Receipt>(line) {
        Ok(receipt) if is_known(&receipt.schema) => Ok(receipt),
        Ok(receipt) if is_receipt(&receipt.schema) => Err(Skipped::Newer),
        Ok(_) => Err(Skipped::Torn),
        Err(_) => {
            // A newer receipt may lack what this build needs, and is still no damage.
            let head = serde_json::from_slice::<Head>(line).map_err(|_| Skipped::Torn)?;
            let newer = is_receipt(&head.schema) && !is_known(&head.schema);
            Err(if newer { Skipped::Newer } else { Skipped::Torn })
        }
    }
}

#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// The name before the slash and the number after it.
fn split(schema: &str) -> Option<(&str, u32)> {
    let (name, number) = schema.split_once('/')?;
    Some((name, number.parse().ok()?))
}

fn is_receipt(schema: &str) -> bool {
    split(schema).map(|(name, _)| name) == split(SCHEMA).map(|(name, _)| name)
}

fn is_known(schema: &str) -> bool {
    is_receipt(schema) && split(schema) <= split(SCHEMA)
}

/// Clips each text that is too long.
pub(super) fn clip_texts(receipt: &mut Receipt) {
    texts(receipt).for_each(clip);
}

fn texts(receipt: &mut Receipt) -> impl Iterator<Item = &mut String> {
    let program = &mut receipt.program;
    let outcome = &mut receipt.outcome;
    [
        &mut receipt.schema,
        &mut receipt.at,
        &mut receipt.reason,
        &mut receipt.isolation,
        &mut program.name,
        &mut program.target,
        &mut program.runtime,
        &mut outcome.kind,
    ]
    .into_iter()
    .chain(&mut receipt.directory)
    .chain(&mut program.id)
    .chain(&mut program.interpreter)
    .chain(&mut outcome.phase)
}

pub(super) fn clip(text: &mut String) {
    const MARK: &str = "…";
    if text.len() > TEXT_BYTES_MAX {
        let mut end = TEXT_BYTES_MAX - MARK.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
}

/// A moment as receipts and records say it: RFC 3339, in UTC, with microseconds.
#[must_use]
pub fn moment(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// When the call came, in nanoseconds since 1970.
pub(super) fn begun_ns(receipt: &Receipt) -> Option<u64> {
    let at: jiff::Timestamp = receipt.at.parse().ok()?;
    u64::try_from(at.as_nanosecond()).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hob_core::receipt::{GainPart, OutcomePart, PhasePart, ProgramPart, UsagePart};

    /// A receipt as a warm call leaves it.
    pub(in super::super) fn receipt(call: u64) -> Receipt {
        let phase = |name: &str, start_us, us| PhasePart { name: name.to_owned(), start_us, us };
        Receipt {
            schema: SCHEMA.to_owned(),
            call,
            at: "2026-11-21T21:38:04.120337Z".to_owned(),
            program: ProgramPart {
                id: Some("c0ffee".to_owned()),
                name: "black".to_owned(),
                target: "/srv/venv/bin/black".to_owned(),
                runtime: "python".to_owned(),
                interpreter: Some("/usr/bin/python3.11".to_owned()),
                arguments: 2,
            },
            caller_pid: 4711,
            directory: Some("/srv/app".to_owned()),
            purpose: None,
            warm: true,
            reason: "copy-ready".to_owned(),
            isolation: "fork".to_owned(),
            outcome: OutcomePart {
                kind: "exited".to_owned(),
                code: Some(0),
                signal: None,
                phase: None,
            },
            phases: vec![phase("connect", 0, 62), phase("main", 62, 450)],
            total_us: 512,
            usage: Some(UsagePart { user_us: 300, system_us: 120, peak_kib: 9216 }),
            worker: None,
            cold_us: Some(45_000),
            gain: Some(GainPart { saved_us: 40_000, most_us: 44_000, lost_us: 0, cold_runs: 2 }),
            demoted: None,
            imported: None,
            message: None,
            hooks: None,
            trace: None,
        }
    }

    #[test]
    fn a_receipt_is_one_line_and_reads_back_equal() {
        let mut lines = Vec::new();
        let mut odd = receipt(7);
        odd.program.name = "two\nlines \u{1b}[31m \"quoted\" \u{fffd}".to_owned();
        encode(odd.clone(), &mut lines).unwrap();
        encode(receipt(8), &mut lines).unwrap();
        let read: Vec<_> = lines.split_inclusive(|byte| *byte == b'\n').map(decode).collect();
        assert_eq!(read, [Ok(odd), Ok(receipt(8))]);
    }

    #[test]
    fn a_name_that_is_too_long_is_clipped_at_a_character() {
        let mut long = receipt(1);
        long.program.name = "ü".repeat(200_000);
        long.program.target = "\u{1}".repeat(200_000);
        let mut lines = Vec::new();
        encode(long, &mut lines).unwrap();
        assert!(lines.len() <= LINE_BYTES_MAX, "{}", lines.len());
        let name = decode(&lines).unwrap().program.name;
        assert!(name.len() <= TEXT_BYTES_MAX, "{}", name.len());
        assert!(name.ends_with("ü…"), "{name}");
    }

    #[test]
    fn a_receipt_that_cannot_fit_leaves_the_lines_as_they_were() {
        let mut huge = receipt(1);
        huge.phases = vec![huge.phases[0].clone(); 10_000];
        let mut lines = b"before\n".to_vec();
        assert_eq!(encode(huge, &mut lines), Err(TooLong));
        assert_eq!(lines, b"before\n");
    }

    #[test]
    fn what_is_newer_is_told_from_what_is_torn() {
        let mut lines = Vec::new();
        encode(receipt(1), &mut lines).unwrap();
        let line = String::from_utf8(lines).unwrap();
        for (text, expected) in [
            (line.replace("receipt/1", "receipt/2"), Skipped::Newer),
            (r#"{"schema":"hob.receipt/9","all":"different"}"#.to_owned(), Skipped::Newer),
            (line.replace("hob.receipt/1", "hob.other/1"), Skipped::Torn),
            (r#"{"schema":"hob.receipt/1"}"#.to_owned(), Skipped::Torn),
            (line[..line.len() / 2].to_owned(), Skipped::Torn),
            ("\n".to_owned(), Skipped::Torn),
        ] {
            assert_eq!(decode(text.as_bytes()), Err(expected), "{text}");
        }
    }

    #[test]
    fn an_old_reader_ignores_fields_that_it_does_not_know() {
        let mut lines = Vec::new();
        encode(receipt(1), &mut lines).unwrap();
        let line = String::from_utf8(lines).unwrap();
        let newer = line.replacen('{', r#"{"a_later_field":[1,2],"#, 1);
        assert_eq!(decode(newer.as_bytes()), Ok(receipt(1)));
    }
}
