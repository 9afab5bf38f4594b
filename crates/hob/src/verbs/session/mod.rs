//! `hob eval`, `hob sessions`, `hob kill`: processes that keep what they evaluate.
//!
//! ```text
//!   eval ──▶ world (interpreter, libraries) ──▶ open (a connection) ──▶ dialogue (bencode)
//! ```
//! Deliberately not here: how a session is started; the daemon does it.

mod dialogue;
mod open;
mod world;

use clap::Args;
use hob_os::start::Start;
use serde_json::{Value, json};

use super::request::{self, ANSWER_MS};
use super::{Failure, Format, out};
use crate::show;
use crate::show::style::Look;
use dialogue::{Dialogue, Eval};
use open::Wanted;

const CODES: &str = "Exit code: 0 done, 1 the code threw, 2 the command line is wrong, 125 the \
session ended meanwhile, or hob could not take the code, 126 the session cannot be started, 130 it \
was interrupted.";

/// The session of who names none.
const USUAL: &str = "main";

/// Which session, and how it is started where there is none.
#[derive(Debug, Args)]
struct Which {
    /// The session's name; it is started if there is none
    #[arg(short = 'S', long = "session", value_name = "NAME", default_value = USUAL)]
    session: String,
    /// The class path of a session that is started; it is found otherwise
    #[arg(long, value_name = "PATH")]
    cp: Option<String>,
}

/// What is evaluated.
#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct Evaluate {
    #[command(flatten)]
    which: Which,
    /// The namespace that it is evaluated in
    #[arg(short, long, value_name = "NS")]
    ns: Option<String>,
    /// Do not print the values
    #[arg(short, long)]
    quiet: bool,
    /// The code; `-` or nothing: what comes on standard input
    #[arg(value_name = "CODE", default_value = "-", allow_hyphen_values = true)]
    #[arg(hide_default_value = true)]
    code: String,
}

/// Which sessions end.
#[derive(Debug, Args)]
pub(crate) struct Kill {
    /// The session's name; `all`: each of them
    #[arg(value_name = "NAME")]
    name: String,
}

/// Evaluates code in a session; returns the exit code.
pub(crate) fn eval(start: &Start, asked: &Evaluate) -> Result<u8, Failure> {
    let code = match asked.code.as_str() {
        "-" => std::io::read_to_string(std::io::stdin().lock())
            .map_err(|error| Failure::usage(format!("standard input: cannot be read: {error}")))?,
        code => code.to_owned(),
    };
    let wanted = Wanted {
        name: &asked.which.session,
        libraries: asked.which.cp.as_deref(),
        shared: true,
        token: "",
        scripts: None,
    };
    let (socket, _) = open::open(start, &wanted)?;
    let mut dialogue = Dialogue::begin(socket)?;
    let eval = Eval {
        op: "eval",
        pairs: vec![("code", code.as_str())],
        ns: asked.ns.as_deref(),
        values: !asked.quiet,
        ..Eval::default()
    };
    dialogue.eval(&eval)
}

/// Lists sessions.
pub(crate) fn sessions(start: &Start, format: Format) -> Result<(), Failure> {
    let (answer, _) = request::ask(start, "sessions").map_err(|e| Failure::new(e.to_string()))?;
    if format.json {
        return out(&format!("{answer}\n"));
    }
    out(&show::status::sessions::table(&answer, &Look::of_stdout()))
}

/// Ends sessions.
pub(crate) fn kill(start: &Start, asked: &Kill) -> Result<(), Failure> {
    let request = match asked.name.as_str() {
        "all" => json!({ "verb": "kill" }),
        name => json!({ "verb": "kill", "name": name }),
    };
    let answer = request::send(start, &request.to_string(), ANSWER_MS);
    let (answer, _) = answer.map_err(|error| Failure::new(error.to_string()))?;
    let killed = answer.get("killed").and_then(Value::as_array).map_or(0, Vec::len);
    if killed == 0 && asked.name != "all" {
        let name = &asked.name;
        return Err(Failure::new(format!(
            "{name}: there is no such session; `hob sessions` lists them"
        )));
    }
    out(&format!("hob: {killed} ended\n"))
}
