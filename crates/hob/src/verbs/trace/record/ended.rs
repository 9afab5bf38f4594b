//! Recordings that are kept, and the list of all.

use std::io::Read;
use std::path::{Path, PathBuf};

use hob_daemon::recorder::recording::{Head, read_head};
use hob_os::start::Start;
use serde_json::{Value, json};

use super::super::super::rings::{ENDING, RECORDINGS};
use super::talk;
use crate::{connect, fallback};

/// How many are kept, the newest.
const KEPT_MAX: usize = 32;
/// How much of a file is read for its head.
const HEAD_BYTES_MAX: u64 = 64 * 1024;

/// Those that are kept, the oldest first.
fn files(state_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state_dir.join(RECORDINGS)).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let path = entry.path();
        path.file_name()?.to_str()?.strip_suffix(ENDING)?;
        Some((entry.metadata().ok()?.modified().ok()?, path))
    });
    let mut files: Vec<_> = files.collect();
    files.sort_unstable();
    files.into_iter().map(|(_, path)| path).collect()
}

/// Removes all but the newest.
pub(super) fn forget_old(state_dir: &Path) {
    let files = files(state_dir);
    let surplus = files.len().saturating_sub(KEPT_MAX);
    files.iter().take(surplus).for_each(|file| _ = std::fs::remove_file(file));
}

/// The list of those that go on, and those that are kept.
pub(super) fn list(start: &Start, as_json: bool) -> String {
    let directory = connect::directory(start);
    let running = talk::running(&directory);
    let states = running.iter().filter_map(|name| talk::ask(&directory, name, talk::STATE));
    let mut all: Vec<Value> =
        states.filter_map(|state| serde_json::from_slice(&state).ok()).collect();
    let kept = fallback::state_dir().map(|place| files(&place)).unwrap_or_default();
    all.extend(kept.iter().map(|file| kept_one(file)));
    if as_json {
        return all.iter().map(|one| format!("{one}\n")).collect();
    }
    if all.is_empty() {
        return "no recordings; `hob trace record start NAME` begins one\n".to_owned();
    }
    let text = |one: &Value, key: &str| match (one[key].as_str(), one[key].as_u64()) {
        (Some(text), _) => text.to_owned(),
        (None, number) => number.map(|number| number.to_string()).unwrap_or_default(),
    };
    let rows = all.iter().map(|one| {
        let (name, state, began) = (text(one, "name"), text(one, "state"), text(one, "began"));
        let (notes, gone) = (text(one, "notes"), text(one, "gone"));
        let rest = [text(one, "file"), text(one, "error")].join(" ");
        format!("{name:<16} {state:<13} {began:<28} {notes:>8} {gone:>8}  {}\n", rest.trim())
    });
    let head = format!(
        "{:<16} {:<13} {:<28} {:>8} {:>8}  FILE\n",
        "NAME", "STATE", "BEGAN", "NOTES", "GONE"
    );
    std::iter::once(head).chain(rows).collect()
}

/// What is to be said of one that is kept.
fn kept_one(file: &Path) -> Value {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    match head(file) {
        Ok(head) => {
            let gone: u64 = head.rings.iter().map(|ring| ring.lost + ring.dropped).sum();
            let notes: u64 = head.rings.iter().map(|ring| ring.records).sum();
            json!({
                "schema": "hob.record/1", "name": name, "state": head.why, "began": head.began,
                "ended": head.ended, "notes": notes, "gone": gone, "file": file,
            })
        }
        Err(why) => json!({
            "schema": "hob.record/1", "name": name, "state": "unreadable", "error": why,
            "file": file,
        }),
    }
}

fn head(file: &Path) -> Result<Head, String> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    opened.take(HEAD_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read_head(line).map_err(|why| why.to_string())
}
