//! `hob log --daemon`: the daemon's own log, and which of its categories are on.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hob_daemon::LOG_FILE;
use hob_os::log::older;
use hob_os::start::Start;
use serde_json::{Value, json};

use super::super::request::{self, ANSWER_MS, RequestError};
use super::super::serve::sites;
use super::tail::Tail;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, pad, printable};
use crate::{connect, say};

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The columns of a category's name, and of whether it is on.
const NAME_COLUMNS: usize = 12;
const ON_COLUMNS: usize = 5;
/// The name of a line's format.
const SCHEMA: &str = "hob.log.line/1";

/// What is asked of the daemon's own log alone.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Own {
    /// The daemon's own log instead: what it decided, and why
    #[arg(long, conflicts_with_all = ["program", "cold", "failed", "slower", "since", "here"])]
    pub(super) daemon: bool,
    /// Turn categories on, as `pool,tells` or `all`; the daemon goes on meanwhile
    #[arg(long, value_name = "CATEGORIES", requires = "daemon", value_delimiter = ',')]
    on: Vec<String>,
    /// Turn categories off
    #[arg(long, value_name = "CATEGORIES", requires = "daemon", value_delimiter = ',')]
    off: Vec<String>,
    /// Show the categories, and which are on
    #[arg(long, requires = "daemon", conflicts_with = "follow")]
    categories: bool,
}

/// How it is shown.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    pub(super) count: usize,
    pub(super) json: bool,
    pub(super) follow: bool,
    pub(super) site: Option<&'a Path>,
}

/// Shows lines, the newest last, or the categories where these are asked for.
pub(super) fn run(start: &Start, asked: &Own, shown: &Shown<'_>) -> Result<(), Failure> {
    let directory = directory(start, shown.site)?;
    let turns = !asked.on.is_empty() || !asked.off.is_empty();
    if turns || asked.categories {
        let body = json!({ "verb": "log", "on": asked.on, "off": asked.off }).to_string();
        let (answer, _) = request::send_to(&directory, &body, ANSWER_MS)
            .map_err(|error| Failure::new(error.to_string()))?;
        if let Some(why) = answer.get("error").and_then(Value::as_str) {
            return Err(Failure::usage(why));
        }
        if asked.categories || !shown.follow {
            return match shown.json {
                true => out_json(&format!("{answer}\n")),
                false => out(&table(&answer)),
            };
        }
    }
    let path = directory.join(LOG_FILE);
    let from = Tail::at_end(&path);
    let newest = newest(&path, shown.count)?;
    if newest.is_empty() && !shown.follow {
        return match request::send_to(&directory, "{\"verb\":\"log\"}", ANSWER_MS) {
            Ok(_) => out("nothing is in it yet\n"),
            Err(RequestError::NoDaemon) => Err(Failure::new(
                "no daemon is running, and its log ends with it; `hob start` starts one",
            )),
            Err(error) => Err(Failure::new(error.to_string())),
        };
    }
    put(&newest, shown.json)?;
    if shown.follow { follow(&path, from, shown.json) } else { Ok(()) }
}

/// The directory of the daemon, or of the site that is meant.
fn directory(start: &Start, site: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(site) = site else { return Ok(connect::directory(start)) };
    let mut meant = sites::meant(start, Some(&site.to_string_lossy()))?;
    meant.pop().map(|site| site.directory).ok_or_else(|| Failure::new("no such site runs"))
}

/// The newest lines of the log and of the one before, the oldest first.
fn newest(path: &Path, count: usize) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for path in [older(path), path.to_owned()] {
        match std::fs::File::open(&path).map(std::io::BufReader::new) {
            Ok(file) => {
                let unreadable = |error| Failure::new(format!("{}: {error}", path.display()));
                for line in file.split(b'\n') {
                    let line = line.map_err(unreadable)?;
                    lines.push(String::from_utf8_lossy(&line).into_owned());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::new(format!("{}: {error}", path.display()))),
        }
    }
    lines.drain(..lines.len().saturating_sub(count));
    Ok(lines)
}

/// Prints what comes, over ends of the daemon, until a signal ends this.
fn follow(path: &Path, mut log: Option<Tail>, json: bool) -> Result<(), Failure> {
    let mut begun = Vec::new();
    loop {
        if let Some(open) = &mut log {
            let more = open.more();
            begun.extend(
                more.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?,
            );
        }
        // A line that is being written is shown when it is whole.
        let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text: Vec<u8> = begun.drain(..whole).collect();
        let lines: Vec<_> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
        put(&lines, json)?;
        if !log.as_ref().is_some_and(|open| open.is_at(path)) {
            log = Tail::open(path).or(log);
        }
        // sleeps: a file has no mark that another process has written to it but by watching it.
        std::thread::sleep(LOOK);
    }
}

fn put(lines: &[String], json: bool) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    let charset = Look::of_stdout().charset;
    let text = |line: &String| {
        if json { format!("{}\n", as_json(line)) } else { printable(line, charset) + "\n" }
    };
    let text: String = lines.iter().map(text).collect();
    if json { out_json(&text) } else { out(&text) }
}

/// A line's words by their names.
fn as_json(line: &str) -> Value {
    let mut words = line.splitn(5, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (at, level, thread, category, text) = (word(), word(), word(), word(), word());
    json!({
        "schema": SCHEMA, "at": at, "level": level, "thread": thread, "category": category,
        "text": text,
    })
}

/// The categories, and where the log is.
fn table(answer: &Value) -> String {
    let look = Look::of_stdout();
    let told = |value: &Value| printable(value.as_str().unwrap_or_default(), look.charset);
    let mut text = String::new();
    for each in answer["categories"].as_array().into_iter().flatten() {
        let is_on = each["on"] == true;
        let (tone, on) = if is_on { (Tone::Good, "on") } else { (Tone::Dim, "off") };
        let name = pad(&told(&each["name"]), NAME_COLUMNS, Align::Left);
        let on = look.paint(tone, &pad(on, ON_COLUMNS, Align::Left));
        text += &format!("{name}{on}{}\n", told(&each["about"]));
    }
    text += &format!("\n{}\n", told(&answer["path"]));
    let lost = answer["lost"].as_u64().unwrap_or(0);
    if lost > 0 {
        let line = if lost == 1 { "line was" } else { "lines were" };
        say::line(format!("{lost} {line} not written: {}", told(&answer["why"])).as_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_by_its_words() {
        let line = "2026-11-28T06:30:12.345678Z DEBUG main pool worker 7 is started for greet";
        let value = as_json(line);
        let words = ["at", "level", "thread", "category", "text"].map(|key| value[key].clone());
        let want = [
            "2026-11-28T06:30:12.345678Z",
            "DEBUG",
            "main",
            "pool",
            "worker 7 is started for greet",
        ];
        assert_eq!(words.as_slice(), want.map(Value::from).as_slice());
        assert_eq!(as_json("torn")["text"], "");
    }

    #[test]
    fn the_newest_lines_go_on_from_the_log_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOG_FILE);
        assert_eq!(newest(&path, 5).unwrap(), Vec::<String>::new());
        std::fs::write(older(&path), "1\n2\n").unwrap();
        std::fs::write(&path, "3\n4\n").unwrap();
        assert_eq!(newest(&path, 3).unwrap(), ["2", "3", "4"]);
        assert_eq!(newest(&path, 9).unwrap().len(), 4);
        assert_eq!(newest(&path, 0).unwrap(), Vec::<String>::new());
    }
}
