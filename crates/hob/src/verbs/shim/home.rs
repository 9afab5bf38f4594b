//! A directory that looks like the home of an interpreter, and runs it by hob: for commands that find
//! it by a variable, and not on `PATH`.
//!
//! Invariants: it appears whole, by a rename, and never in another's place; all of it but one file are
//! links, so that what is installed in the home is there too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hob_os::start::Start;

use super::{folder, own_path, shown};
use crate::say;

/// Makes it; returns what the user has to know, and to do.
pub(super) fn make(start: &Start, name: &OsStr, dir: &Path) -> Result<String, String> {
    let row = hob_runtimes::by_interpreter(name.as_bytes());
    let known = row.and_then(|row| row.home).ok_or("no command finds it by a variable")?;
    let hob = own_path(start).ok_or("cannot tell where hob itself is; is /proc mounted?")?;
    let named =
        start.variable(known.variable.as_bytes()).map(|text| Path::new(OsStr::from_bytes(text)));
    let named = named.filter(|home| home.is_absolute() && home.join("bin").join(name).exists());
    let home = match named {
        Some(home) => home.to_owned(),
        None => found(start, name, known.of)?,
    };
    let unwritten =
        |error: std::io::Error| format!("cannot make {}: {error}", shown(dir.as_os_str()));
    let dir = std::path::absolute(dir).map_err(unwritten)?;
    if dir.symlink_metadata().is_ok() {
        return Err(format!("{} is there already, and is left as it is", shown(dir.as_os_str())));
    }
    let mut beside = dir.clone().into_os_string();
    beside.push(format!(".hob-{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let made = fill(&beside, &home, name, &hob).and_then(|()| std::fs::rename(&beside, &dir));
    if let Err(error) = made {
        // What could not be put in its place is of no use where it is.
        let _ = std::fs::remove_dir_all(&beside);
        return Err(unwritten(error));
    }
    let runs = shown(home.join("bin").join(name).as_os_str());
    let export = String::from_utf8_lossy(&say::command([dir.as_os_str().as_bytes()])).into_owned();
    Ok(format!(
        "{}: hob runs {runs}\nName it, in your shell's start file:\n  export {}={export}\n",
        shown(name),
        known.variable,
    ))
}

/// The home of the one on `PATH`.
fn found(start: &Start, name: &OsStr, of: fn(&Path) -> Option<&Path>) -> Result<PathBuf, String> {
    let command = folder::command(name, start).ok_or("no such command on PATH")?;
    let real = command.canonicalize().map_err(|error| error.to_string())?;
    let home = of(&real).ok_or_else(|| format!("{} is in no home", shown(real.as_os_str())))?;
    Ok(home.to_owned())
}

fn fill(dir: &Path, home: &Path, name: &OsStr, hob: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir.join("bin"))?;
    for (from, to) in [(home.to_owned(), dir.to_owned()), (home.join("bin"), dir.join("bin"))] {
        for entry in std::fs::read_dir(&from)? {
            let entry = entry?.file_name();
            if to != dir && entry == name || to == dir && entry == "bin" {
                continue;
            }
            symlink(from.join(&entry), to.join(&entry))?;
        }
    }
    let word = |path: &Path| say::command([path.as_os_str().as_bytes()]);
    let (hob, real) = (word(hob), word(&home.join("bin").join(name)));
    let script = [
        b"#!/bin/sh\n# Made by `hob shim add`: by hob, or by itself where hob is gone.\n[ -x ",
        &hob[..],
        b" ] && exec ",
        &hob,
        b" run ",
        &real,
        b" \"$@\"\nexec ",
        &real,
        b" \"$@\"\n",
    ]
    .concat();
    let file = dir.join("bin").join(name);
    std::fs::write(&file, script)?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
}
