//! `hob shim`: links to hob under the names of commands, in one folder that comes first on `PATH`.
//!
//! What a call by such a name does is not decided here: `main` sees another name than its own and
//! runs the command as `hob run` would, and `hob-resolve` passes shims over when it looks for it.
//!
//! Invariants: nothing that is not hob's link is overwritten or removed; a link appears whole, by
//! a rename; `PATH` and the files of shells are the user's, so the line for them is only printed.

pub(crate) mod activate;
pub(crate) mod folder;
mod home;
mod venv;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use hob_os::start::Start;
use hob_wire::exit::ExitCode;
use serde_json::json;

use self::folder::{Folder, State};
use self::venv::Venvs;
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::say;
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, fit, fit_end, pad, printable, width};

/// The name of the list's format.
const SCHEMA: &str = "hob.shims/1";

/// What to do with shims.
#[derive(Debug, Subcommand)]
pub(crate) enum Shim {
    /// Make links to hob under the names of these commands
    Add {
        /// Commands on PATH
        #[arg(required_unless_present = "venv", value_name = "NAME")]
        names: Vec<OsString>,
        /// All commands of this virtual environment, or of the .venv in DIR, that hob keeps warm
        #[arg(long, value_name = "DIR", conflicts_with_all = ["names", "home"])]
        venv: Option<PathBuf>,
        /// Make DIR, which looks like the home of this one interpreter, for commands that find it by
        /// a variable (JAVA_HOME)
        #[arg(long, value_name = "DIR")]
        home: Option<PathBuf>,
    },
    /// Remove such links
    Remove {
        /// Commands that were added
        #[arg(required_unless_present = "venv", value_name = "NAME")]
        names: Vec<OsString>,
        /// Those that were made for this virtual environment, or for the .venv in DIR
        #[arg(long, value_name = "DIR", conflicts_with = "names")]
        venv: Option<PathBuf>,
    },
    /// List them, and say of each whether it works
    List(Format),
}

/// Runs the verb.
pub(crate) fn run(start: &Start, what: Shim) -> Result<(), Failure> {
    let folder = Folder::of(start).ok_or_else(no_place)?;
    match what {
        Shim::Add { names, home: Some(dir), venv: _ } => match &names[..] {
            [name] => {
                let made = home::make(start, name, &dir);
                out(&made.map_err(|why| Failure::new(format!("{}: {why}", shown(name))))?)
            }
            _ => Err(Failure::with_code("--home is for one command", ExitCode::Usage as u8)),
        },
        Shim::Add { venv: Some(dir), .. } => {
            add_all(start, &folder, &dir)?;
            advice(start, &folder)
        }
        Shim::Add { names, home: None, venv: None } => {
            each(&names, |name| add(start, &folder, name))?;
            advice(start, &folder)
        }
        Shim::Remove { venv: Some(dir), .. } => remove_all(&folder, &dir),
        Shim::Remove { names, venv: None } => each(&names, |name| remove(&folder, name)),
        Shim::List(format) => list(start, &folder, format),
    }
}

fn no_place() -> Failure {
    Failure::new(
        "no place for shims: none of HOB_SHIM_DIR, XDG_DATA_HOME and HOME is an absolute path",
    )
}

/// Does it for every name, whatever becomes of the others. Each failure has its line.
fn each(names: &[OsString], act: impl Fn(&OsStr) -> Result<String, String>) -> Result<(), Failure> {
    let mut failed: Option<String> = None;
    for name in names {
        match act(name) {
            Ok(done) => out(&format!("{done}\n"))?,
            Err(why) => {
                let line = format!("{}: {why}", shown(name));
                if let Some(earlier) = failed.replace(line) {
                    say::line(earlier.as_bytes());
                }
            }
        }
    }
    failed.map_or(Ok(()), |line| Err(Failure::new(line)))
}

fn add(start: &Start, folder: &Folder, name: &OsStr) -> Result<String, String> {
    check(name)?;
    let command = folder::command(name, start)
        .ok_or("no such command on PATH; install it first, then add its shim")?;
    link(start, folder, name)?;
    forget(folder, name)?;
    Ok(format!("{}: hob runs {}", shown(name), shown(command.as_os_str())))
}

/// A shim that was asked for by its name stays when an environment's are removed.
fn forget(folder: &Folder, name: &OsStr) -> Result<(), String> {
    let mut venvs = Venvs::of(&folder.dir);
    if !venvs.knows(name) {
        return Ok(());
    }
    venvs.forget(name);
    venvs.write(&folder.dir).map_err(|error| unwritten(folder, &error))
}

/// Makes the shims of an environment's commands.
fn add_all(start: &Start, folder: &Folder, given: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("{}: {why}", shown(given.as_os_str())));
    let dir = venv::directory(given).map_err(failed)?;
    let mut names = venv::commands(start, &dir).map_err(failed)?;
    names.retain(|name| check(name).is_ok());
    if names.is_empty() {
        return Err(failed("no command there is one that hob keeps warm".to_owned()));
    }
    let mut venvs = Venvs::of(&folder.dir);
    let theirs: Vec<_> = names
        .iter()
        .filter(|name| venvs.knows(name) || folder::target(&folder.dir.join(name)).is_none())
        .cloned()
        .collect();
    for name in &theirs {
        venvs.add(&dir, name);
    }
    each(&names, |name| {
        link(start, folder, name)?;
        let file = dir.join("bin").join(name);
        Ok(format!("{}: hob runs {}", shown(name), shown(file.as_os_str())))
    })?;
    venvs.write(&folder.dir).map_err(|error| failed(unwritten(folder, &error)))
}

/// Removes the shims that were made for an environment, which may be gone itself.
fn remove_all(folder: &Folder, given: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("{}: {why}", shown(given.as_os_str())));
    let mut venvs = Venvs::of(&folder.dir);
    let names = venv::places(given).iter().find_map(|dir| venvs.remove(dir));
    let Some(names) = names else {
        return Err(failed("no shims were made for it".to_owned()));
    };
    venvs.write(&folder.dir).map_err(|error| failed(unwritten(folder, &error)))?;
    each(&names, |name| remove(folder, name))
}

fn unwritten(folder: &Folder, error: &std::io::Error) -> String {
    format!("cannot write to {}: {error}", shown(folder.dir.as_os_str()))
}

/// Makes the link under a command's name.
fn link(start: &Start, folder: &Folder, name: &OsStr) -> Result<(), String> {
    let hob = own_path(start).ok_or("cannot tell where hob itself is; is /proc mounted?")?;
    if !hob.file_name().is_some_and(|file| hob_resolve::is_hob(file.as_bytes())) {
        let file = shown(hob.as_os_str());
        return Err(format!("its shim would link to {file}; rename that to `hob` or `hob-...`"));
    }
    let link = folder.dir.join(name);
    let place = link.symlink_metadata().is_ok();
    if place && folder::target(&link).is_none() {
        return Err(format!("{} is not hob's, and is left as it is", shown(link.as_os_str())));
    }
    std::fs::create_dir_all(&folder.dir).map_err(|error| unwritten(folder, &error))?;
    // Beside the link and then in its place, so that nobody ever finds the name without a file.
    let beside = folder.dir.join(format!(".hob-{}", std::process::id()));
    std::os::unix::fs::symlink(&hob, &beside)
        .and_then(|()| std::fs::rename(&beside, &link))
        .map_err(|error| {
            // What could not be put in its place is of no use where it is.
            let _ = std::fs::remove_file(&beside);
            unwritten(folder, &error)
        })
}

fn remove(folder: &Folder, name: &OsStr) -> Result<String, String> {
    if name.as_bytes().contains(&b'/') || name.is_empty() {
        return Err("not a command's name".to_owned());
    }
    let link = folder.dir.join(name);
    if link.symlink_metadata().is_err() {
        return Err("there is no such shim; `hob shim list` names those that are".to_owned());
    }
    if folder::target(&link).is_none() {
        return Err(format!("{} is not hob's, and is left as it is", shown(link.as_os_str())));
    }
    std::fs::remove_file(&link).map_err(|error| format!("cannot remove it: {error}"))?;
    forget(folder, name)?;
    Ok(format!("{}: removed", shown(name)))
}

/// Which names can be shims.
fn check(name: &OsStr) -> Result<(), String> {
    let bytes = name.as_bytes();
    let why = if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        "not a command's name; a shim is for a command on PATH"
    } else if hob_resolve::is_hob(bytes) {
        "hob under its own name is hob"
    } else if bytes.starts_with(b"-") {
        "a name that begins with a dash would be taken for an option"
    } else if bytes.ends_with(b".py") || bytes.ends_with(b".pyw") {
        "a name with this ending is looked for in the working directory first"
    } else {
        return Ok(());
    };
    Err(why.to_owned())
}

/// Where hob is, as the user knows it: by a name that stays when the file behind it is replaced.
pub(crate) fn own_path(start: &Start) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let own = Path::new("/proc/self/exe");
    let place = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let called = Path::new(OsStr::from_bytes(start.argv.first()?.to_bytes()));
    let known = if called.components().count() > 1 {
        std::path::absolute(called).ok()
    } else {
        folder::command(called.as_os_str(), start)
    };
    let known = known.filter(|path| path.is_absolute() && place(path) == place(own));
    known.or_else(|| std::fs::read_link(own).ok())
}

/// What is still to be done for the shims to be found.
fn advice(start: &Start, folder: &Folder) -> Result<(), Failure> {
    if folder.place.is_some() {
        return shadowed(start, folder);
    }
    let dir = say::command([folder.dir.as_os_str().as_bytes()]);
    out(&format!(
        "Put them first on PATH, in your shell's start file:\n  export PATH={}:\"$PATH\"\nWhere \
         you activate virtual environments, rather this (`hob help activate`):\n  \
         eval \"$(hob activate bash)\"\n",
        printable(&String::from_utf8_lossy(&dir), Look::of_stdout().charset)
    ))
}

/// Says of which commands `PATH` has another file first, so that no call of theirs comes to hob.
fn shadowed(start: &Start, folder: &Folder) -> Result<(), Failure> {
    let mut shims = folder.shims(start).unwrap_or_default();
    shims.retain(|shim| shim.state == State::Shadowed);
    let names: Vec<_> = shims.iter().map(|shim| shown(&shim.name)).collect();
    match names.is_empty() {
        true => Ok(()),
        false => out(&format!(
            "Not called yet, since PATH finds another first: {}\nThis keeps shims first, in your \
             shell's start file (`hob help activate`):\n  eval \"$(hob activate bash)\"\n",
            names.join(", ")
        )),
    }
}

fn list(start: &Start, folder: &Folder, format: Format) -> Result<(), Failure> {
    let dir = shown(folder.dir.as_os_str());
    let shims =
        folder.shims(start).map_err(|error| Failure::new(format!("cannot read {dir}: {error}")))?;
    if format.json {
        let lossy = |text: &OsStr| text.to_string_lossy().into_owned();
        let shims: Vec<_> = shims
            .iter()
            .map(|shim| {
                json!({
                    "name": lossy(&shim.name),
                    "target": lossy(shim.target.as_os_str()),
                    "command": shim.command.as_ref().map(|file| lossy(file.as_os_str())),
                    "state": shim.state.code(),
                })
            })
            .collect();
        let dir = lossy(folder.dir.as_os_str());
        let on_path = folder.place.is_some();
        let list = json!({"schema": SCHEMA, "dir": dir, "on_path": on_path, "shims": shims});
        return out_json(&format!("{list}\n"));
    }
    if shims.is_empty() {
        return out(&format!("no shims in {dir}; `hob shim add NAME` makes one\n"));
    }
    let look = Look::of_stdout();
    let names: Vec<String> = shims.iter().map(|shim| shown(&shim.name)).collect();
    let column = names.iter().map(|name| width(name)).max().unwrap_or(0).min(32);
    let mut text = String::new();
    for (shim, name) in shims.iter().zip(&names) {
        let tone = if shim.state == State::Works { Tone::Good } else { Tone::Watch };
        let state = look.paint(tone, &pad(shim.state.code(), 10, Align::Left));
        let command = shim.command.as_ref().map_or(String::new(), |file| shown(file.as_os_str()));
        let room = look.columns.map_or(usize::MAX, |all| all.saturating_sub(column + 14));
        let name = pad(&fit(name, column, look.charset), column, Align::Left);
        let line = format!("{name}  {state}  {}", fit_end(&command, room, look.charset));
        text += line.trim_end();
        text.push('\n');
    }
    out(&text)
}

/// A name or path as text that no terminal obeys.
pub(crate) fn shown(text: &OsStr) -> String {
    printable(&text.to_string_lossy(), Look::of_stdout().charset)
}
