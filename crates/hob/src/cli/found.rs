//! What to do about a program that is not found or cannot be executed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_os::start::Start;

use super::{quoted, verbs};
use crate::verbs::shim::folder;
use hob_resolve::near::{folder_of, names_in, nearest_beside, nearest_of_many};
use hob_wire::exit::ExitCode;

/// The next step, to stand behind the cause; empty where there is none that is sure to help.
/// `program` is what was typed, `code` what hob exits with.
pub(crate) fn hint(start: &Start, program: &[u8], code: u8) -> String {
    let name = String::from_utf8_lossy(program).into_owned();
    let path = Path::new(std::ffi::OsStr::from_bytes(program));
    // A file that is there lacks its interpreter, and the cause says so.
    let lacks_more = is_path(&name) && path.symlink_metadata().is_ok();
    if code == ExitCode::NotFound as u8 && !lacks_more {
        return not_found(start, &name, path);
    }
    let shown = quoted(&[path.into()]);
    if code == ExitCode::NotExecutable as u8 && path.is_dir() {
        return "; name a program in it".to_owned();
    }
    if code == ExitCode::NotExecutable as u8 && path.is_file() {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().map_or(0o111, |meta| meta.permissions().mode());
        let is_script = hob_os::look::head(path).is_ok_and(|(bytes, _)| &bytes == b"#!");
        return match (mode & 0o111 == 0, is_script) {
            (true, true) => format!("; `chmod +x {shown}` makes it a program"),
            (true, false) => "; name the program that reads it before it".to_owned(),
            (false, _) => String::new(),
        };
    }
    String::new()
}

fn not_found(start: &Start, name: &str, path: &Path) -> String {
    if name.is_empty() {
        return "; name a program, as in `hob run black src`".to_owned();
    }
    if is_path(name) {
        let folder = folder_of(path);
        if !folder.is_dir() {
            return format!("; there is no folder {}", quoted(&[folder.into()]));
        }
        return match nearest_beside(path, |_| true) {
            Some(meant) => format!("; did you mean `{}`?", quoted(&[meant.into()])),
            None => format!("; there is no such file in {}", shown_folder(folder)),
        };
    }
    let command = super::command();
    if verbs(&command).any(|verb| verb == name) {
        return format!("; did you mean `hob {name}`?");
    }
    if Path::new(".").join(name).is_file() {
        return format!("; did you mean `./{name}`?");
    }
    let scripts = names_in(Path::new("."), |_| true);
    let is_its_script =
        |file: &&String| Path::new(file.as_str()).file_stem() == Some(name.as_ref());
    if let Some(script) = scripts.iter().filter(is_script).find(is_its_script) {
        return format!("; did you mean `{}`?", quoted(&[script.into()]));
    }
    let path = start.variable(b"PATH").unwrap_or_default();
    let folders = std::env::split_paths(std::ffi::OsStr::from_bytes(path));
    let mut names: Vec<String> = folders.flat_map(|folder| names_in(&folder, |_| true)).collect();
    names.sort_unstable();
    let commands = names.iter().map(String::as_str).filter(|command| command.len() > 2);
    match nearest_of_many(name, commands)
        .filter(|near| folder::command(near.as_ref(), start).is_some())
    {
        Some(near) => format!("; did you mean `{near}`?"),
        None => "; it is not on PATH: install it, or name it by its path".to_owned(),
    }
}

/// Whether a name means a file where it says, and not a command on `PATH`.
fn is_path(name: &str) -> bool {
    name.contains('/') || hob_runtimes::by_suffix(name.as_bytes()).is_some()
}

fn shown_folder(folder: &Path) -> String {
    match folder == Path::new(".") {
        true => "this folder".to_owned(),
        false => quoted(&[folder.into()]),
    }
}

fn is_script(file: &&String) -> bool {
    hob_runtimes::by_suffix(file.as_bytes()).is_some()
}
