//! `hob session` and `hob run -S`: processes that keep what they evaluate.
//!
//! ```text
//!   eval ──▶ world (interpreter, libraries) ──▶ open (a connection) ──▶ dialogue (bencode)
//! ```
//! Deliberately not here: how a session is started; the daemon does it.

mod answers;
mod dialogue;
pub(crate) mod launch;
mod libraries;
mod open;
pub(crate) mod repl;
mod resolve;
mod world;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::{Args, Subcommand};
use hob_os::start::Start;
use hob_wire::exit::ExitCode;
use serde_json::{Value, json};

use super::request::{self, ANSWER_MS};
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::show;
use crate::show::style::Look;
use dialogue::{Dialogue, Eval};
use open::Wanted;

const CODES: &str = "Exit code: 0 done, 1 the code threw, 2 the command line is wrong, 125 the \
session ended meanwhile, or hob could not take the code, 126 the session cannot be started, 130 it \
was interrupted.";

/// The session of who names none.
const USUAL: &str = "main";

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// Evaluate code in a session, a process that keeps what it defines
    Eval(Evaluate),
    /// Serve a session to editors, as nREPL: on a Unix socket, and on a port if asked for
    Repl(repl::Repl),
    /// List sessions: their state, memory, evals and clients
    List(Format),
    /// End a session, or all of them
    Kill(Kill),
}

/// Runs the verb; returns the exit code.
pub(crate) fn verb(start: &Start, what: &Session) -> Result<u8, Failure> {
    match what {
        Session::Eval(asked) => eval(start, asked),
        Session::Repl(asked) => repl::run(start, asked).map(|()| 0),
        Session::List(format) => list(start, *format).map(|()| 0),
        Session::Kill(asked) => kill(start, asked).map(|()| 0),
    }
}

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
fn eval(start: &Start, asked: &Evaluate) -> Result<u8, Failure> {
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
        script: None,
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

/// What a script is run with in a session.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    /// The session's name.
    pub(crate) session: &'a str,
    /// The class path of a session that is started.
    pub(crate) cp: Option<&'a str>,
    /// Whether what it defines is kept.
    pub(crate) keep: bool,
    /// The script, or `-m` and a namespace; then its arguments.
    pub(crate) words: &'a [OsString],
}

/// Runs a script in a session; returns the exit code.
pub(crate) fn run(start: &Start, script: &Script<'_>) -> Result<u8, Failure> {
    let (first, rest) = script.words.split_first().ok_or_else(|| Failure::usage("no script"))?;
    let (pair, args) = if first == "-m" {
        let (name, rest) = rest.split_first().ok_or_else(|| {
            Failure::usage("run: -m needs the name of a namespace; as in `hob run -S work -m app`")
        })?;
        (("main", text(name)?), rest)
    } else {
        let path = std::path::absolute(first).unwrap_or_else(|_| first.into());
        if !path.is_file() {
            let shown = first.to_string_lossy();
            let code = ExitCode::NotFound as u8;
            return Err(Failure::with_code(format!("{shown}: there is no such script"), code));
        }
        (("file", text(path.as_os_str())?), rest)
    };
    let wanted = Wanted {
        name: script.session,
        libraries: script.cp,
        shared: true,
        token: "",
        script: (pair.0 == "file").then(|| Path::new(first)),
    };
    let (socket, _) = open::open(start, &wanted)?;
    let mut dialogue = Dialogue::begin(socket)?;
    let eval = Eval {
        op: "hob/run",
        pairs: vec![(pair.0, &pair.1)],
        args: args.iter().map(|word| word.as_bytes()).collect(),
        keep: script.keep,
        ..Eval::default()
    };
    dialogue.eval(&eval)
}

/// A word as text, which is what sessions take.
fn text(word: &OsStr) -> Result<String, Failure> {
    word.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{}: a session takes names that are UTF-8", word.to_string_lossy()))
    })
}

/// Lists sessions.
fn list(start: &Start, format: Format) -> Result<(), Failure> {
    let (answer, _) = request::ask(start, "sessions").map_err(|e| Failure::new(e.to_string()))?;
    if format.json {
        return out_json(&format!("{answer}\n"));
    }
    out(&show::status::sessions::table(&answer, &Look::of_stdout()))
}

/// Ends sessions.
fn kill(start: &Start, asked: &Kill) -> Result<(), Failure> {
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
            "{name}: there is no such session; `hob session list` lists them"
        )));
    }
    out(&format!("hob: {killed} ended\n"))
}
