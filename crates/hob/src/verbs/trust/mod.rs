//! `hob trust`: shows what a project's `hob.toml` holds, and records that the user allows it.
//!
//! The register and the question "is it trusted?" are `hob_daemon::trust`; this is the person's
//! side of it. A file that is no TOML is not recorded: nobody can have read what it means.
//!
//! A trusted `hob.toml` names programs that can be asked and told (`hob_daemon::project`).

mod sections;

use std::path::PathBuf;

use clap::Args;
use hob_daemon::trust::{self, Entry, Project, Trusted};
use hob_os::start::Start;
use serde_json::{Value, json};

use self::sections::Section;
use super::{Failure, out, request};
use crate::fallback;
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit_end, pad, printable};

/// The name of the format.
const SCHEMA: &str = "hob.trust/1";
/// What is said to whoever trusts a file.
const NOTE: &str =
    "its programs can be asked and told (`hob ask PROGRAM`), its mounts served (`hob serve`)";

/// What to trust.
#[derive(Debug, Args)]
#[command(after_help = "\
A file is trusted as it was read, by its path and the SHA-256 of its bytes: an
edited hob.toml is untrusted again. Its handlers run with your rights, for
`hob ask` and `hob tell` from its directory and below. A handler in greet.py:

  [program.greet]
  handler = \"greet.py:handle\"")]
pub(crate) struct Trust {
    /// The project's directory [default: this one]
    dir: Option<PathBuf>,
    /// List what is trusted, and whether it still says the same
    #[arg(long, conflicts_with_all = ["dir", "remove"])]
    list: bool,
    /// Trust the directory's file no longer
    #[arg(long)]
    remove: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The directory that is named, by itself or by its `hob.toml`, which may be gone.
pub(crate) fn directory_of(named: PathBuf) -> Result<PathBuf, Failure> {
    if named.is_dir() {
        return Ok(named);
    }
    if named.file_name().is_some_and(|name| name == trust::FILE) {
        let parent = named.parent().filter(|parent| !parent.as_os_str().is_empty());
        return Ok(parent.map_or_else(|| PathBuf::from("."), PathBuf::from));
    }
    if named.exists() {
        let shown = printable(&named.to_string_lossy(), Look::of_stdout().charset);
        let text = format!("{shown}: neither a directory nor a {}; `hob trust DIR`", trust::FILE);
        return Err(Failure::new(text));
    }
    Ok(named)
}

/// Runs the verb.
pub(crate) fn run(start: &Start, trust: Trust) -> Result<(), Failure> {
    let state = fallback::state_dir().ok_or_else(|| {
        Failure::new(
            "nowhere to record it: neither XDG_STATE_HOME nor HOME is set to an absolute path",
        )
    })?;
    if trust.list {
        return list(&state, trust.json);
    }
    let dir = directory_of(trust.dir.unwrap_or_else(|| PathBuf::from(".")))?;
    let path = dir.join(trust::FILE);
    let shown = printable(&path.to_string_lossy(), Look::of_stdout().charset);
    let failed = |error: trust::TrustError| Failure::new(error.to_string());
    if trust.remove {
        let removed = trust::remove(&state, &dir).map_err(failed)?;
        tell(start);
        return match removed {
            true => said(trust.json, &[], &format!("{shown}: no longer trusted\n")),
            false => Err(Failure::new(format!(
                "{shown}: was not trusted; `hob trust --list` names what is"
            ))),
        };
    }
    let project = trust::read(&dir).map_err(failed)?.ok_or_else(|| {
        Failure::new(format!("{shown}: there is none; a project's settings would be in it"))
    })?;
    let sections = sections::of(&project.bytes)
        .map_err(|why| Failure::new(format!("{shown}{why}; nothing was trusted")))?;
    trust::allow(&state, &project).map_err(failed)?;
    tell(start);
    let file = File::new(&project, "trusted", Some(&sections));
    said(trust.json, &[file], &text(&shown, &project, &sections))
}

/// Tells the daemon, whose senders' lanes rest on what was trusted. It finds out by itself for all
/// others; where none runs there is nothing to tell.
fn tell(start: &Start) {
    let _ = request::ask(start, "trusted");
}

/// One file in JSON.
struct File(Value);

impl File {
    fn new(project: &Project, state: &str, sections: Option<&[Section]>) -> File {
        let sections = sections.map(|all| {
            all.iter()
                .map(|section| json!({"name": section.name, "keys": section.keys}))
                .collect::<Vec<_>>()
        });
        File(json!({
            "path": project.path.to_string_lossy(),
            "sha256": project.digest(),
            "state": state,
            "sections": sections,
        }))
    }

    fn known(entry: &Entry, state: &str) -> File {
        File(json!({
            "path": entry.path.to_string_lossy(),
            "sha256": entry.digest,
            "state": state,
            "sections": null,
        }))
    }
}

fn said(as_json: bool, files: &[File], text: &str) -> Result<(), Failure> {
    if !as_json {
        return out(text);
    }
    let files: Vec<&Value> = files.iter().map(|file| &file.0).collect();
    out(&format!("{}\n", json!({"schema": SCHEMA, "files": files})))
}

fn text(shown: &str, project: &Project, sections: &[Section]) -> String {
    let look = Look::of_stdout();
    let mut text = format!("{shown}: trusted as it is now (sha256 {})\n", project.digest());
    for section in sections {
        let name = printable(&section.name, look.charset);
        let keys = if section.keys == 1 { "key" } else { "keys" };
        text += &format!("  {name}, {} {keys}\n", section.keys);
    }
    if sections.is_empty() {
        text += "  it is empty\n";
    }
    text + &format!("{NOTE}\n")
}

fn list(state: &std::path::Path, as_json: bool) -> Result<(), Failure> {
    let entries = trust::list(state).map_err(|error| Failure::new(error.to_string()))?;
    let look = Look::of_stdout();
    let mut text = String::new();
    let mut files = Vec::new();
    for entry in &entries {
        let dir = entry.path.parent().unwrap_or(&entry.path);
        let (word, tone) = match trust::trusted(Some(state), dir) {
            Trusted::Yes(_) => ("trusted", Tone::Good),
            Trusted::Changed => ("changed", Tone::Watch),
            Trusted::NoFile => ("gone", Tone::Watch),
            // It is listed, so it is there and cannot be read, or leads elsewhere by now.
            Trusted::No => ("unreadable", Tone::Bad),
        };
        files.push(File::known(entry, word));
        let path = printable(&entry.path.to_string_lossy(), look.charset);
        let room = look.columns.map_or(usize::MAX, |columns| columns.saturating_sub(12));
        let word = look.paint(tone, &pad(word, 12, Align::Left));
        text += &format!("{word}{}\n", fit_end(&path, room, look.charset));
    }
    if entries.is_empty() {
        "nothing is trusted; `hob trust DIR` allows a project's hob.toml\n".clone_into(&mut text);
    }
    said(as_json, &files, &text)
}
