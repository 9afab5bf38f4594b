//! The report for programs: `hob.hooks-report/1`, everything that is known. `docs/hooks-reports.md`
//! describes it.

use std::io::{self, Write};

use hob_core::hooks::{Bytes, HookOutcome};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Overview;
use crate::spread::Spread;
use crate::verbs::hooks::resume::Journal;
use crate::verbs::hooks::tally::{Ended, place};

/// The name of the format.
const SCHEMA: &str = "hob.hooks-report/1";

/// A target with the number of its sitting.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    pub(super) sitting: u32,
    #[serde(flatten)]
    pub(super) ended: &'a Ended,
}

/// Writes it.
pub(super) fn write(
    out: &mut impl Write,
    overview: &Overview<'_>,
    journal: &Journal,
) -> io::Result<()> {
    let mut head = summary(overview);
    head.insert("schema".to_owned(), json!(SCHEMA));
    let head = serde_json::to_string(&head)?;
    // The targets come last, so that they are written as they are read.
    out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
    out.write_all(b",\n\"targets\":[")?;
    let mut first = true;
    journal.each(|sitting, ended| {
        out.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        serde_json::to_writer(&mut *out, &Row { sitting, ended }).map_err(io::Error::from)
    })?;
    out.write_all(b"\n]}\n")
}

/// All but the targets.
pub(crate) fn summary(overview: &Overview<'_>) -> Map<String, Value> {
    use std::os::unix::ffi::OsStrExt;
    let tally = overview.tally;
    let sittings: Vec<Value> = tally
        .sittings
        .iter()
        .map(|one| {
            json!({"at": one.at, "jobs": one.jobs, "wall_us": one.wall_us, "targets": one.targets})
        })
        .collect();
    let hooks: Vec<Value> = tally
        .hooks
        .iter()
        .map(|(name, hook)| {
            let mut value = spread(&hook.spread);
            value.insert("name".to_owned(), json!(Bytes(name.clone())));
            value.insert("outcomes".to_owned(), counts(&hook.outcomes));
            Value::Object(value)
        })
        .collect();
    let causes: Vec<Value> = tally
        .causes
        .iter()
        .map(|cause| {
            let first = cause.first.iter();
            let first =
                first.map(|(line, name)| json!({"line": line, "target": Bytes(name.clone())}));
            json!({
                "outcome": cause.outcome.word(),
                "hook": cause.hook.clone().map(Bytes),
                "how": cause.how,
                "targets": cause.count,
                "first": first.collect::<Vec<_>>(),
            })
        })
        .collect();
    let value = json!({
        "dir": Bytes::from(overview.dir.as_os_str().as_bytes()),
        "targets_file": overview.targets,
        "outcome": tally.outcome().word(),
        "outcomes": counts(&tally.targets),
        "ended": tally.ended(),
        "left": overview.left,
        "retried": tally.retried,
        "hooks_run": tally.hooks_run(),
        "wall_us": tally.wall_us(),
        "sittings": sittings,
        "took": spread(&tally.spread),
        "hooks": hooks,
        "causes": causes,
    });
    if let Value::Object(map) = value { map } else { Map::new() }
}

fn spread(spread: &Spread) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("count".to_owned(), json!(spread.count()));
    map.insert("p50_us".to_owned(), json!(spread.quantile(50)));
    map.insert("p99_us".to_owned(), json!(spread.quantile(99)));
    map.insert("max_us".to_owned(), json!(spread.max()));
    map
}

fn counts(counts: &[u64; HookOutcome::ALL.len()]) -> Value {
    let one = |outcome: &HookOutcome| (outcome.word().to_owned(), json!(counts[place(*outcome)]));
    Value::Object(HookOutcome::ALL.iter().map(one).collect())
}
