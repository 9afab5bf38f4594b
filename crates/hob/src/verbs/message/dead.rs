//! `hob dead`: tells that failed too often.

use std::time::Duration;

use clap::{Args, Subcommand};
use hob_core::requests::dead::{self, Changed, Elsewhere, OfHost, SCHEMA};
use hob_daemon::dead_letters;
use hob_os::clock;
use hob_os::start::Start;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connect::{self, Trouble};
use crate::failure::Failure;
use crate::fallback;
use crate::output::{out, out_json};
use crate::show;
use crate::show::clock::Clock;
use crate::show::style::Look;
use crate::verbs::lifecycle;
use crate::verbs::request::{self, RequestError};

/// How long a daemon may take to start.
const START_MS: u64 = 5_000;
/// How long its answer may take: it may be opening an outbox, on a slow disk.
const ANSWER_MS: u64 = 30_000;
/// How long a daemon that ends or starts is waited for, and how often it is looked at.
const PASSING_MS: u64 = 30_000;
const PASSING_LOOK: Duration = Duration::from_millis(20);

/// What is to be done with dead letters.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Dead {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Clone, Copy, Args)]
struct List {
    /// Only those of this host, at once
    #[arg(long)]
    here: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them, the oldest first (what `hob dead` alone does)
    List(List),
    /// Have them tried again, as if they were new
    Retry(Which),
    /// Drop them for good
    Drop(Which),
}

#[derive(Debug, Args)]
struct Which {
    /// Their ids
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All that there are
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them, has them tried again, or drops them.
pub(crate) fn run(start: &Start, asked: Dead) -> Result<(), Failure> {
    match asked.what {
        None => list(start, asked.list),
        Some(What::List(asked)) => list(start, asked),
        Some(What::Retry(which)) => change(start, &which, ("retry", "tried again")),
        Some(What::Drop(which)) => change(start, &which, ("drop", "dropped")),
    }
}

fn list(start: &Start, asked: List) -> Result<(), Failure> {
    let mut dead: dead::Dead = read(ask(start, &json!({ "verb": "dead", "do": "list" }))?)?;
    if !asked.here {
        dead.elsewhere = elsewhere(start)?;
    }
    if asked.json {
        let text = serde_json::to_string(&dead).map_err(|error| Failure::new(error.to_string()))?;
        return out_json(&format!("{text}\n"));
    }
    out(&show::status::dead::letters(&dead, &Clock::now(), &Look::of_stdout()))
}

/// Does it to each that is named, and says which were not there.
fn change(start: &Start, which: &Which, (word, done): (&str, &str)) -> Result<(), Failure> {
    let requests: Vec<Value> = if which.all {
        vec![json!({ "verb": "dead", "do": word })]
    } else {
        let one = |id: &String| json!({ "verb": "dead", "do": word, "id": id });
        which.ids.iter().map(one).collect()
    };
    let mut all = Changed { schema: SCHEMA.to_owned(), changed: 0, unknown: Vec::new() };
    for request in requests {
        let Changed { changed, unknown, .. } = read(ask(start, &request)?)?;
        all.changed += changed;
        all.unknown.extend(unknown);
    }
    if which.json {
        let text = serde_json::to_string(&all).map_err(|error| Failure::new(error.to_string()))?;
        out_json(&format!("{text}\n"))?;
    } else if all.changed > 0 || all.unknown.is_empty() {
        out(&format!("hob: {} {done}\n", all.changed))?;
    }
    let Some(id) = all.unknown.first() else { return Ok(()) };
    let elsewhere = elsewhere(start)?;
    if let Some(host) = host_of(id, &elsewhere) {
        let next = format!("run `hob dead {word} {id}` there");
        return Err(Failure::new(format!("{id}: its host is {host}: {next}")));
    }
    let listed = |said: &&OfHost| said.total > said.letters.len() as u64;
    let cut = elsewhere.hosts.iter().filter(listed).map(|said| said.host.as_str());
    let unlisted: Vec<&str> = cut.chain(elsewhere.silent.iter().map(String::as_str)).collect();
    let next = match unlisted.is_empty() {
        true => "`hob dead` lists them".to_owned(),
        false => format!("not all are listed of {}: look there", unlisted.join(", ")),
    };
    Err(Failure::new(match all.unknown.as_slice() {
        [one] => format!("{one}: no dead letter has this id; {next}"),
        more => format!("{}: no dead letters have these ids; {next}", more.join(", ")),
    }))
}

/// Those of other hosts. Without a daemon there is no connection to any.
fn elsewhere(start: &Start) -> Result<Elsewhere, Failure> {
    if matches!(connect::connect(&connect::directory(start)), Err(Trouble::NoDaemon)) {
        return Ok(Elsewhere::default());
    }
    read(ask(start, &json!({ "verb": "dead", "do": "elsewhere" }))?)
}

/// The host that has this letter.
fn host_of<'a>(id: &str, elsewhere: &'a Elsewhere) -> Option<&'a str> {
    let has = |said: &&OfHost| said.letters.iter().any(|letter| letter.id == id);
    elsewhere.hosts.iter().find(has).map(|said| said.host.as_str())
}

/// Asks the daemon; where none runs, the letters are looked at where they lie. One that is ending
/// or starting this moment is waited for.
fn ask(start: &Start, request: &Value) -> Result<Value, Failure> {
    let until_ns = clock::now_ns() + PASSING_MS * 1_000_000;
    let answer = loop {
        let answer = match connect::connect(&connect::directory(start)) {
            Err(Trouble::NoDaemon) if !lifecycle::is_held(start) => break alone(start, request),
            Err(Trouble::NoDaemon) => Err(RequestError::NoDaemon),
            Ok(_) | Err(_) => request::send(start, &request.to_string(), ANSWER_MS),
        };
        match answer {
            Ok((answer, _)) => break answer,
            Err(RequestError::NoDaemon | RequestError::Ended) if clock::now_ns() < until_ns => {
                std::thread::sleep(PASSING_LOOK);
            }
            Err(error) => return Err(Failure::new(error.to_string())),
        }
    };
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(Failure::new(error)),
        None => Ok(answer),
    }
}

/// Without a daemon. Letters that are to be tried again have one started for them.
fn alone(start: &Start, request: &Value) -> Value {
    let answer = dead_letters::answer(fallback::state_dir().as_deref(), request);
    let retried = request.get("do").and_then(Value::as_str) == Some("retry");
    if retried && answer.get("changed").and_then(Value::as_u64).unwrap_or(0) > 0 {
        // Without one they wait for the next daemon, whoever starts it.
        let _ = connect::connect_or_start(start, START_MS);
    }
    answer
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| {
        Failure::new(format!("the daemon is of another build ({error}); `hob restart` replaces it"))
    })
}
