//! `hob hooks adopt agent FILE`: the command hooks in a coding agent's settings run warm.
//!
//! Only the commands that hob would run warm are changed, and of the file nothing but their text.
//! Where hob is missing the shell runs the command as it was, so that a hook that blocks when it
//! fails still does.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use hob_core::hooks::Bytes;
use hob_os::start::Start;
use rustix::fd::{AsFd, OwnedFd};

use super::hook::Hook;
use super::kept::{self, Adopted, Change, Kept};
use super::repository;

use super::settings::{self, Format};
use super::shell::{self, Called, Simple};

/// An agent whose settings hob knows, by the folder that they are in.
struct Agent {
    folder: &'static str,
    name: &'static str,
    /// The variable with which its hooks name the project.
    project: &'static str,
    /// What a person is to know after the change.
    note: Option<&'static str>,
}

const CODEX_NOTE: &str = "Codex runs a changed hook only after you have reviewed it (/hooks)";

const AGENTS: &[Agent] = &[
    Agent { folder: ".claude", name: "Claude Code", project: "CLAUDE_PROJECT_DIR", note: None },
    Agent { folder: ".cursor", name: "Cursor", project: "CURSOR_PROJECT_DIR", note: None },
    Agent { folder: ".codex", name: "Codex", project: "CODEX_PROJECT_DIR", note: Some(CODEX_NOTE) },
    Agent { folder: ".gemini", name: "Gemini CLI", project: "GEMINI_PROJECT_DIR", note: None },
];
/// The folder of hooks in a plugin, and the variable for the folder around it.
const PLUGIN: (&str, &str) = ("hooks", "CLAUDE_PLUGIN_ROOT");

/// Which file.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// A settings file: .claude/settings.json, .cursor/hooks.json, .codex/hooks.json or config.toml,
    /// .gemini/settings.json, or a plugin's hooks.json
    pub(super) file: PathBuf,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// What was done: a line for each hook, and how many are adopted.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) lines: Vec<String>,
    pub(super) adopted: usize,
    pub(super) hooks: usize,
}

/// The folder in which what was there is kept, beside the file.
pub(super) fn kept(file: &Path) -> Result<Kept, String> {
    let dir = file.parent().ok_or_else(|| format!("{}: no file", file.display()))?;
    let own = dir.join(kept::OWN).join(file.file_name().unwrap_or_default());
    Kept::at(own, dir.to_owned(), dir)
}

/// Adopts what can be adopted.
///
/// In a file that goes to others with the project hob has its name alone: they have another home.
pub(super) fn adopt(start: &Start, of: &Of, file: &Path, hob: &Path) -> Result<Done, String> {
    let shown = file.display();
    let meta = file.symlink_metadata().map_err(|error| format!("{shown}: {error}"))?;
    if meta.is_symlink() {
        let target = std::fs::read_link(file).unwrap_or_default();
        return Err(format!("{shown}: a symbolic link; name its target, {}", target.display()));
    }
    if !meta.is_file() {
        return Err(format!("{shown}: no regular file; name the agent's settings file"));
    }
    if meta.nlink() > 1 {
        return Err(format!("{shown}: it has another name too, which would be another file then"));
    }
    let hob = hob.to_str().filter(|hob| hob.chars().all(super::edit::is_plain));
    let hob = hob.ok_or("hob has a name that would have to be quoted: install it elsewhere")?;
    let bytes = std::fs::read(file).map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown}: it is not UTF-8"))?;
    let format = Format::of(file);
    let hooks = settings::hooks(&text, format).map_err(|why| format!("{shown}: {why}"))?;
    let is_shared = repository::shares(file);
    let hob = if is_shared { Called::by_name() } else { Called::by_path(hob) };
    let mut kept = kept(file)?;
    let around = Around::of(start, file);
    let mut done = Done { lines: Vec::new(), adopted: 0, hooks: hooks.len() };
    let mut with = Vec::new();
    for hook in &hooks {
        let line = if kept.has(&hook.command) {
            done.adopted += 1;
            "is adopted already".to_owned()
        } else {
            match around.changed(hook, &hob) {
                Ok(command) => {
                    with.push((hook, command));
                    let now = if of.dry_run {
                        "would run through hob"
                    } else {
                        "runs through hob from now on"
                    };
                    now.to_owned()
                }
                Err(why) => format!("left as it is: {why}"),
            }
        };
        done.lines.push(format!("{}: {}: {line}", hook.event, hook.command));
    }
    done.adopted += with.len();
    if is_shared && !with.is_empty() && !is_on_path(start) {
        let note = "no `hob` is on PATH, by which the file calls it, since it goes to others with \
                    the project: until there is one, the commands run as they are";
        done.lines.push(note.to_owned());
    }
    if !with.is_empty() && !of.dry_run {
        let (changed, edits) = settings::exchanged(&text, &with, format);
        let adopted = Adopted {
            file: Bytes::from(std::os::unix::ffi::OsStrExt::as_bytes(file.as_os_str())),
            digest: kept::digest(changed.as_bytes()),
            edit: Change::Commands(edits),
            original: String::new(),
        };
        kept.ignored()?;
        kept.exchange(file, &adopted, changed.as_bytes(), meta.permissions().mode())?;
        done.lines.extend(around.agent.and_then(|agent| agent.note).map(str::to_owned));
    }
    Ok(done)
}

fn is_on_path(start: &Start) -> bool {
    let path = start.variable(b"PATH").unwrap_or_default();
    let folders = path.split(|byte| *byte == b':').map(std::ffi::OsStr::from_bytes);
    folders.into_iter().any(|folder| Path::new(folder).join("hob").is_file())
}

/// A directory, or the `cd` that leads where hob cannot tell.
type Place = Result<PathBuf, String>;

/// What is around the hooks when the agent runs them, as far as it can be known before.
struct Around<'a> {
    start: &'a Start,
    agent: Option<&'static Agent>,
    /// The project, or the home of the user, whose hooks they are.
    root: PathBuf,
}

impl<'a> Around<'a> {
    fn of(start: &'a Start, file: &Path) -> Around<'a> {
        let dir = file.parent().unwrap_or(Path::new("/"));
        let named = dir.file_name().and_then(|name| name.to_str());
        let agent = AGENTS.iter().find(|agent| named == Some(agent.folder));
        let is_inside = agent.is_some() || named == Some(PLUGIN.0);
        let root = dir.parent().filter(|_| is_inside).unwrap_or(dir).to_owned();
        Around { start, agent, root }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let project = self.agent.map_or(PLUGIN.1, |agent| agent.project);
        if name == project {
            return self.root.to_str().map(str::to_owned);
        }
        // The agent sets others of its own for each hook, so only what is everywhere is known.
        let known = self.start.variable(name.as_bytes()).filter(|_| name == "HOME")?;
        std::str::from_utf8(known).ok().map(str::to_owned)
    }

    /// The command that runs through hob, or why the hook stays as it is.
    fn changed(&self, hook: &Hook, hob: &Called) -> Result<String, String> {
        if let Some(why) = hook.refused {
            return Err(why.to_owned());
        }
        let commands = shell::commands(&hook.command, &|name| self.variable(name))?;
        let mut chosen: Vec<&Simple> = Vec::new();
        let mut why = None;
        // Where a command is run, or the `cd` that goes where hob cannot tell.
        let mut here = Ok(self.root.clone());
        for command in &commands {
            if command.words.first().is_some_and(|first| first == "cd") {
                here = self.moved(here, &command.words);
                continue;
            }
            match self.is_warm(command, &here) {
                Ok(()) => chosen.push(command),
                Err(other) => why = why.or(Some(other)),
            }
        }
        if chosen.is_empty() {
            return Err(why.unwrap_or_else(|| "it has no command".to_owned()));
        }
        Ok(shell::through(&hook.command, &chosen, hob))
    }

    /// Where a `cd` leads from here, or its words.
    fn moved(&self, here: Place, words: &[String]) -> Place {
        let home = self.variable("HOME");
        let target = match words {
            [_] => home.as_deref(),
            [_, target] if !target.starts_with('-') => Some(target.as_str()),
            [_, mark, target] if mark == "--" => Some(target.as_str()),
            _ => None,
        };
        let to = target.map(|target| {
            // An absolute one leads there from anywhere.
            here.as_deref().unwrap_or(Path::new("")).join(target)
        });
        to.filter(|to| to.is_absolute() && to.is_dir()).ok_or_else(|| words.join(" "))
    }

    /// Whether hob would keep what a command runs warm.
    fn is_warm(&self, command: &Simple, here: &Place) -> Result<(), String> {
        let Some(first) = command.words.first() else {
            return Err("it runs no program".to_owned());
        };
        if first.contains('$') {
            return Err(format!("its program is named by a variable of the agent's: {first}"));
        }
        let words: Vec<&[u8]> = command.words.iter().map(String::as_bytes).collect();
        let lookup = |name: &[u8]| self.start.variable(name);
        // Where that is unknown, only what is named by a whole path is found.
        let from = here.as_deref().unwrap_or(Path::new("/"));
        let directory = std::fs::File::open(from).ok().map(OwnedFd::from);
        let cwd = directory.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
        match (hob_resolve::resolve(&words, &lookup, cwd), here) {
            (Ok(program), _) if program.is_hosted() => Ok(()),
            (_, Err(cd)) => Err(format!(
                "`{cd}` leads where hob cannot tell; name the program by a path from the project"
            )),
            (Ok(_), Ok(_)) => Err(format!("hob does not keep what `{first}` runs warm")),
            (Err(error), Ok(here)) => Err(format!("{error} (looked for from {})", here.display())),
        }
    }
}

/// The name of the agent whose file this is.
pub(super) fn agent_of(file: &Path) -> &'static str {
    let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let agent = AGENTS.iter().find(|agent| folder == Some(agent.folder));
    agent.map_or("an agent", |agent| agent.name)
}
