//! `hob hosts`: the programs that hosts offer, and how they do.

use hob_os::start::Start;
use serde_json::{Value, json};

use super::request;
use crate::connect;
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::show;
use crate::show::style::Look;

/// How long a daemon may take to start.
const START_MS: u64 = 5_000;
/// How long its answer may take: it waits for what all hosts say, and for its first connection.
const ANSWER_MS: u64 = 10_000;

/// Asks the daemon, which is started where none runs: it is what knows of others.
pub(crate) fn run(start: &Start, format: Format) -> Result<(), Failure> {
    // What keeps one from starting is told by the question below.
    let _ = connect::connect_or_start(start, START_MS);
    let question = json!({ "verb": "hosts" }).to_string();
    let (answer, _) = request::send(start, &question, ANSWER_MS)
        .map_err(|error| Failure::new(error.to_string()))?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return Err(Failure::new(error));
    }
    if format.json {
        return out_json(&format!("{answer}\n"));
    }
    out(&show::status::hosts::table(&answer, &Look::of_stdout()))
}
