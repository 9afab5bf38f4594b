//! The world that a program sees: environment, descriptors, and the rest that a caller hands on.
//!
//! A program cannot be asked without changing it, and `/proc` shows of a warm worker what its
//! zygote was started with. So the program's own interpreter is asked, by a script that prints
//! what it sees, cold and warm, from the same caller and in the same directory.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hob_resolve::Program;
use serde::Deserialize;

use super::compare::{Aspect, Table, tables};
use super::runs::{Seen, Subject};

/// The script.
const PROBE: &str = include_str!("worlds/probe.py");

/// How many descriptors of hob's own a warm program has (`docs/trust.md`), and what they are.
const OURS_MAX: usize = 2;
const OURS: &str = "socket (close-on-exec)";

/// What one run of the probe saw.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct World {
    environment: Table,
    descriptors: Table,
    process: Table,
}

/// The probe in place of the program, by the same interpreter with the same options.
pub(super) fn subject(
    program: &Program,
    of: &Subject,
    state_dir: &Path,
) -> std::io::Result<Subject> {
    let mut words = vec![OsString::from_vec(program.interpreter.clone())];
    words.extend(program.options.iter().map(|option| OsStr::from_bytes(option).to_owned()));
    words.push(place(state_dir)?.into_os_string());
    Ok(Subject { words, ..of.clone() })
}

/// The script's file. It stays, so that it is warm the next time, and is written only if it is
/// not what it should be.
fn place(state_dir: &Path) -> std::io::Result<PathBuf> {
    let path = state_dir.join("verify/probe.py");
    let directory = path.parent().unwrap_or(state_dir);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if std::fs::read_to_string(&path).is_ok_and(|text| text == PROBE) {
        return Ok(path);
    }
    let new = directory.join(format!("probe.{}", std::process::id()));
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(PROBE.as_bytes())?;
    std::fs::rename(&new, &path)?;
    Ok(path)
}

/// Reads what the probe printed.
pub(super) fn read(seen: &Seen) -> Option<World> {
    serde_json::from_slice(&seen.stdout).ok()
}

/// Compares what was seen.
pub(super) fn compare(cold: &[World], warm: &[World]) -> Vec<Aspect> {
    let of = |worlds: &[World], part: fn(&World) -> &Table| -> Vec<Table> {
        worlds.iter().map(|world| part(world).clone()).collect()
    };
    let aspect =
        |name: &str, part: fn(&World) -> &Table| tables(name, &of(cold, part), &of(warm, part));
    let colds = of(cold, |world| &world.descriptors);
    let mut warms = of(warm, |world| &world.descriptors);
    let mut ours: Vec<String> = Vec::new();
    for table in &mut warms {
        let taken = take_ours(table, &colds);
        if taken.len() > ours.len() {
            ours = taken;
        }
    }
    let mut descriptors = tables("descriptors", &colds, &warms);
    if !ours.is_empty() {
        descriptors.note =
            Some(format!("hob's own: {} (sockets, close-on-exec)", ours.join(" and ")));
    }
    vec![
        aspect("environment", |world| &world.environment),
        descriptors,
        aspect("process", |world| &world.process),
    ]
}

/// Takes out the descriptors that are hob's own: the highest ones, that are what they should be,
/// and that no cold run has. Returns their numbers.
fn take_ours(table: &mut Table, cold: &[Table]) -> Vec<String> {
    let is_ours = |number: &str, what: &str| {
        what == OURS && cold.iter().all(|table| !table.contains_key(number))
    };
    let mut numbers: Vec<(u32, String)> = table
        .iter()
        .filter(|(number, what)| is_ours(number, what))
        .filter_map(|(number, _)| Some((number.parse().ok()?, number.clone())))
        .collect();
    numbers.sort_unstable();
    let ours = numbers.split_off(numbers.len().saturating_sub(OURS_MAX));
    for (_, number) in &ours {
        table.remove(number);
    }
    ours.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compare::Verdict;
    use super::*;

    fn world(descriptors: &[(&str, &str)]) -> World {
        let pairs = descriptors.iter().map(|(number, what)| ((*number).into(), (*what).into()));
        World { descriptors: pairs.collect(), ..World::default() }
    }

    fn descriptors(cold: &[(&str, &str)], warm: &[(&str, &str)]) -> Aspect {
        compare(&[world(cold), world(cold)], &[world(warm)]).swap_remove(1)
    }

    #[test]
    fn two_sockets_of_hobs_are_named_and_a_third_is_a_difference() {
        let cold = [("0", "/dev/null"), ("1", "pipe")];
        let with = |more: &[(&'static str, &'static str)]| [&cold, more].concat();
        let two = descriptors(&cold, &with(&[("1020", OURS), ("1021", OURS)]));
        assert_eq!(two.verdict, Verdict::Same);
        assert!(two.note.unwrap().contains("1020 and 1021"));
        let three = descriptors(&cold, &with(&[("7", OURS), ("1020", OURS), ("1021", OURS)]));
        assert_eq!((three.verdict, three.diff), (Verdict::Differs, vec![format!("+7 {OURS}")]));
        // One that a child would have is nobody's of ours.
        let inherited = descriptors(&cold, &with(&[("1021", "socket")]));
        assert_eq!(inherited.verdict, Verdict::Differs);
        let missing = descriptors(&cold, &cold[..1]);
        assert_eq!((missing.verdict, missing.note), (Verdict::Differs, None));
    }

    #[test]
    fn the_probe_is_written_once_and_mended() {
        let home = tempfile::tempdir().unwrap();
        let path = place(home.path()).unwrap();
        let modified = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let first = modified();
        assert_eq!(place(home.path()).unwrap(), path);
        assert_eq!(modified(), first);
        std::fs::write(&path, "print('something else')").unwrap();
        place(home.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), PROBE);
    }
}
