//! Dead letters while no daemon runs: they are on the disk, so that none is started to see them.
//!
//! The process that asks has the outbox meanwhile, as a daemon would. Nothing is delivered here.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use hob_core::requests::dead::{Changed, SCHEMA};
use serde_json::{Value, json};

use super::{list, value, which};
use crate::outbox::{Done, Outbox};

/// How long the disk may take.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The one request's name.
const TOKEN: u64 = 1;

/// Answers a request for dead letters as a daemon does; see above.
#[must_use]
pub fn answer(state_dir: Option<&Path>, request: &Value) -> Value {
    let id = request.get("id").and_then(Value::as_str);
    let of_unknown = || {
        let unknown = id.into_iter().map(str::to_owned).collect();
        value(&Changed { schema: SCHEMA.to_owned(), changed: 0, unknown })
    };
    let what = request.get("do").and_then(Value::as_str);
    let Some(which) = which(id) else { return of_unknown() };
    if !state_dir.is_some_and(Outbox::is_left) {
        return if what == Some("list") { list(Vec::new(), 0) } else { of_unknown() };
    }
    let (done, answers) = mpsc::channel();
    let outbox = Outbox::start(
        state_dir,
        Box::new(move |all: Vec<Done>| {
            // Whoever asked may have stopped waiting.
            let _ = all.into_iter().all(|each| done.send(each).is_ok());
        }),
    );
    let asked = match what {
        Some("retry") => outbox.retry_dead(TOKEN, which),
        Some("drop") => outbox.drop_dead(TOKEN, which),
        Some(_) | None => outbox.list_dead(TOKEN),
    };
    if let Err(refusal) = asked {
        return json!({ "error": refusal.to_string() });
    }
    let changed = |count: u64| match count {
        0 => of_unknown(),
        changed => value(&Changed { schema: SCHEMA.to_owned(), changed, unknown: Vec::new() }),
    };
    loop {
        let answer = match answers.recv_timeout(ANSWER_MAX) {
            Ok(Done::Listed(_, letters)) => letters.map(|all| list(all, outbox.depth().2)),
            Ok(Done::Dropped(_, count)) => count.map(changed),
            Ok(Done::Revived(_, waiting)) => waiting.map(|all| changed(all.len() as u64)),
            Ok(_) => continue,
            Err(_) => Err("outbox-slow: the disk does not answer; try again".to_owned()),
        };
        return answer.unwrap_or_else(|why| json!({ "error": why }));
    }
}
