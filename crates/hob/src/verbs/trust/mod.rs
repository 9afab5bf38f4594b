//! `hob trust`: shows what a project's `hob.toml` holds, and records that the user allows it.
//!
//! The register and the question "is it trusted?" are `hob_daemon::trust`; this is the person's
//! side of it. What is shown is what `ask`, `tell` and `serve` would do (`hob_daemon::project`): a file
//! that they would refuse is not recorded, since its reader cannot have meant what it says.

mod listed;
mod sections;

use std::path::PathBuf;

use clap::Args;
use hob_daemon::project;
use hob_daemon::trust::{self, Entry, Project, Trusted};
use hob_os::start::Start;
use serde_json::{Value, json};

use self::listed::Listed;
use self::sections::Section;
use super::request;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit_end, pad, printable};
use crate::{fallback, say};

/// The name of the format.
const SCHEMA: &str = "hob.trust/1";
/// What to trust.
#[derive(Debug, Args)]
#[command(after_help = "\
A file is trusted as it was read, by its path and the SHA-256 of its bytes: an
edited hob.toml is untrusted again. Its handlers run with your rights, for
`hob ask` and `hob tell` from its directory and below. A handler in greet.py:

  [program.greet]
  handler = \"greet.py:handle\"")]
pub(crate) struct Trust {
    /// The project's directory [default: this one, or the nearest above it with a hob.toml]
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
    let dir = match trust.dir {
        Some(named) => directory_of(named)?,
        None => here_or_above(),
    };
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
        let text = match dir.is_dir() {
            true => "there is none; it names programs, as `[program.greet]`",
            false => "there is none, and no such directory; `hob trust DIR` takes the project's",
        };
        Failure::new(format!("{shown}: {text}"))
    })?;
    let refused = |why: String| Failure::new(format!("{why}; nothing was trusted"));
    let sections = sections::of(&project.bytes).map_err(|why| refused(format!("{shown}{why}")))?;
    let contents = project::contents(&dir, &project.bytes);
    let contents = contents.map_err(|error| refused(error.text))?;
    trust::allow(&state, &project).map_err(failed)?;
    tell(start);
    let programs = listed::of(start, &contents, &project.path);
    for missing in contents.programs.iter().filter_map(|one| one.missing.as_deref()) {
        say::line(format!("{missing} (it is trusted all the same)").as_bytes());
    }
    let file = File::new(&project, "trusted", (&sections, &programs));
    said(trust.json, &[file], &text(&shown, &project, &programs))
}

/// The nearest `hob.toml`'s directory from here upwards, as `ask` looks for it; this one if there is
/// none.
fn here_or_above() -> PathBuf {
    let here = PathBuf::from(".");
    if here.join(trust::FILE).symlink_metadata().is_ok() {
        return here;
    }
    let above = std::env::current_dir().ok().and_then(|dir| project::nearest_above(&dir));
    above.unwrap_or(here)
}

/// Tells the daemon, whose senders' lanes rest on what was trusted. It finds out by itself for all
/// others; where none runs there is nothing to tell.
fn tell(start: &Start) {
    let _ = request::ask(start, "trusted");
}

/// One file in JSON.
struct File(Value);

impl File {
    fn new(project: &Project, state: &str, (sections, listed): (&[Section], &Listed)) -> File {
        let sections: Vec<Value> = sections
            .iter()
            .map(|section| json!({"name": section.name, "keys": section.keys}))
            .collect();
        File(json!({
            "path": project.path.to_string_lossy(),
            "sha256": project.digest(),
            "state": state,
            "sections": sections,
            "programs": listed.programs_json(),
            "mounts": listed.mounts_json(),
        }))
    }

    fn known(entry: &Entry, state: &str) -> File {
        File(json!({
            "path": entry.path.to_string_lossy(),
            "sha256": entry.digest,
            "state": state,
            "sections": null,
            "programs": null,
            "mounts": null,
        }))
    }
}

fn said(as_json: bool, files: &[File], text: &str) -> Result<(), Failure> {
    if !as_json {
        return out(text);
    }
    let files: Vec<&Value> = files.iter().map(|file| &file.0).collect();
    out_json(&format!("{}\n", json!({"schema": SCHEMA, "files": files})))
}

fn text(shown: &str, project: &Project, listed: &Listed) -> String {
    let head = format!("{shown}: trusted as it is now (sha256 {})\n", project.digest());
    head + &listed.text(&Look::of_stdout())
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
