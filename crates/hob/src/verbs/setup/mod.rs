//! `hob setup`: what a user's system has to know of hob, in files of that user alone: a unit of
//! systemd for the daemon, and completions for the shells that are there.
//!
//! Invariants: each file that is written or removed has a line of its own; what is not hob's stays;
//! nothing is written into the start files of a shell, the lines for them are printed; nothing is
//! started.
//!
//! Deliberately not here: shims (`hob shim`) and hooks (`hob hooks adopt`), which name what they are
//! for.

pub mod completions;
mod files;
mod unit;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use clap_complete::Shell;
use hob_os::start::Start;

use self::files::{Content, File, MARK};
use super::shim;
use crate::failure::Failure;
use crate::output::out;
use crate::say;

/// The unit's name.
const UNIT: &str = "hob.service";

/// What to do.
#[derive(Debug, Args)]
#[command(after_help = "\
It writes a unit of systemd that runs the daemon from login on, and completions
for the shells on PATH; only into your own folders, and nothing is started. hob
works without any of it: the first call starts the daemon.")]
pub(crate) struct Setup {
    /// Take away what it wrote
    #[arg(long)]
    remove: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Write the unit though systemd does not run here
    #[arg(long, conflicts_with = "remove")]
    systemd: bool,
}

/// Where a user's files are.
struct Home {
    config: PathBuf,
    data: PathBuf,
}

impl Home {
    fn of(start: &Start) -> Option<Home> {
        let absolute = |name: &[u8]| {
            let value = Path::new(OsStr::from_bytes(start.variable(name)?));
            value.is_absolute().then(|| value.to_owned())
        };
        let below = |name: &[u8], folder: &str| {
            absolute(name).or_else(|| Some(absolute(b"HOME")?.join(folder)))
        };
        Some(Home {
            config: below(b"XDG_CONFIG_HOME", ".config")?,
            data: below(b"XDG_DATA_HOME", ".local/share")?,
        })
    }
}

/// Runs the verb.
pub(crate) fn run(start: &Start, asked: &Setup) -> Result<(), Failure> {
    let home = Home::of(start).ok_or_else(|| {
        Failure::new(
            "no place for files: HOME, or XDG_CONFIG_HOME and XDG_DATA_HOME, must be absolute \
             paths",
        )
    })?;
    let systemd = Systemd::of(start);
    if asked.remove { remove(&home, &systemd, asked) } else { write(start, &home, &systemd, asked) }
}

fn write(start: &Start, home: &Home, systemd: &Systemd, asked: &Setup) -> Result<(), Failure> {
    let mut files = Vec::new();
    let with_unit = asked.systemd || systemd.is_there;
    if with_unit {
        files.extend(units(home, unit_text(start)?));
    }
    for shell in SHELLS {
        if shim::folder::command(OsStr::new(shell.1), start).is_some() {
            files.push(completions_of(home, shell));
        }
    }
    let mut lines = Vec::new();
    let result = each(&files, |file| file.write(!asked.dry_run).map(Some), &mut lines);
    if with_unit && !asked.dry_run {
        systemd.tell(&["daemon-reload"]);
    }
    if with_unit {
        lines.push(
            "the daemon starts when you log in; at once: hob stop; systemctl --user start hob"
                .into(),
        );
    } else {
        lines.push(
            "systemd does not run here: no unit is written, and the first call starts the daemon"
                .into(),
        );
    }
    if let Some(file) = files.iter().find(|file| file.path.ends_with("site-functions/_hob")) {
        let folder = file.path.parent().unwrap_or(&file.path).as_os_str().as_bytes();
        let folder = say::command([folder]);
        let folder = String::from_utf8_lossy(&folder);
        lines.push(format!("for zsh, in ~/.zshrc before compinit: fpath=({folder} $fpath)"));
    }
    out(&(lines.join("\n") + "\n"))?;
    result
}

fn remove(home: &Home, systemd: &Systemd, asked: &Setup) -> Result<(), Failure> {
    let mut files = Vec::from(units(home, String::new()));
    files.reverse();
    files.extend(SHELLS.map(|shell| completions_of(home, shell)));
    let has_unit = files[1].path.exists();
    if has_unit && !asked.dry_run {
        systemd.tell(&["stop", UNIT]);
    }
    let mut lines = Vec::new();
    let result = each(&files, |file| file.remove(!asked.dry_run), &mut lines);
    if has_unit && !asked.dry_run {
        systemd.tell(&["daemon-reload"]);
    }
    if lines.is_empty() {
        lines.push("nothing of `hob setup` is there".to_owned());
    }
    out(&(lines.join("\n") + "\n"))?;
    result
}

/// Does it for every file, whatever becomes of the others. Each failure has its line.
fn each(
    files: &[File],
    act: impl Fn(&File) -> Result<Option<String>, String>,
    lines: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut failed: Option<String> = None;
    for file in files {
        match act(file) {
            Ok(line) => lines.extend(line),
            Err(why) => {
                if let Some(earlier) = failed.replace(why) {
                    say::line(earlier.as_bytes());
                }
            }
        }
    }
    failed.map_or(Ok(()), |line| Err(Failure::new(line)))
}

/// The unit, and the link that has it started at login.
fn units(home: &Home, text: String) -> [File; 2] {
    let folder = home.config.join("systemd/user");
    let unit = folder.join(UNIT);
    let wanted = folder.join("default.target.wants").join(UNIT);
    let file = |path, content| File { path, content, base: home.config.clone() };
    [file(unit.clone(), Content::Text(text)), file(wanted, Content::Link(unit))]
}

fn unit_text(start: &Start) -> Result<String, Failure> {
    let hob = shim::own_path(start)
        .ok_or_else(|| Failure::new("cannot tell where hob itself is; is /proc mounted?"))?;
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).ok().filter(|text| !text.contains(char::is_control))
    };
    let no_text = |what: &str| Failure::new(format!("{what} is no text, which a unit has to be"));
    let hob = text(hob.as_os_str().as_bytes()).ok_or_else(|| no_text("the path of hob"))?;
    let mut environment = Vec::new();
    for name in unit::VARIABLES {
        if let Some(value) = start.variable(name.as_bytes()) {
            environment.push((name, text(value).ok_or_else(|| no_text(name))?));
        }
    }
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let tasks = unit::tasks(&group, Path::new("/sys/fs/cgroup"));
    Ok(unit::text(MARK, &hob, &environment, tasks.as_deref()))
}

/// A shell with completions: the program that it is, the file of a user's that it looks for, and how
/// many lines its script has to begin with.
type Completed = (Shell, &'static str, &'static str, usize);

const SHELLS: [Completed; 3] = [
    (Shell::Bash, "bash", "bash-completion/completions/hob", 0),
    // The first line tells zsh what the file completes.
    (Shell::Zsh, "zsh", "zsh/site-functions/_hob", 1),
    (Shell::Fish, "fish", "fish/vendor_completions.d/hob.fish", 0),
];

fn completions_of(home: &Home, (shell, _, path, before): Completed) -> File {
    let script = completions::of(shell).unwrap_or_default();
    let at: usize = script.split_inclusive('\n').take(before).map(str::len).sum();
    let text = format!("{}# {MARK}\n{}", &script[..at], &script[at..]);
    File { path: home.data.join(path), content: Content::Text(text), base: home.data.clone() }
}

/// The systemd of this machine and of this user.
struct Systemd {
    /// It started the machine, or it runs for the user.
    is_there: bool,
    /// The user's manager can be told something.
    runs: bool,
}

impl Systemd {
    fn of(start: &Start) -> Systemd {
        let runs = start
            .variable(b"XDG_RUNTIME_DIR")
            .map(|folder| Path::new(OsStr::from_bytes(folder)).join("systemd/private"))
            .is_some_and(|socket| socket.exists());
        Systemd { is_there: runs || Path::new("/run/systemd/system").is_dir(), runs }
    }

    /// Tells the user's manager something, if it runs. What it does not do now it does at the next
    /// login, so that a failure is only said.
    fn tell(&self, words: &[&str]) {
        if !self.runs {
            return;
        }
        let done =
            Command::new("systemctl").arg("--user").args(words).stdin(Stdio::null()).status();
        if !done.is_ok_and(|status| status.success()) {
            let line = format!("`systemctl --user {}` did not succeed", words.join(" "));
            say::line(line.as_bytes());
        }
    }
}
