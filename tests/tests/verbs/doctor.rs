//! `hob doctor`: each fault is found and named with its fix, and looking changes nothing.

use std::os::unix::fs::{PermissionsExt, symlink};

use hob_tests::{End, Outcome, Run, Terminal, World, wait};
use rustix::process::Signal;
use serde_json::Value;

/// What it found: the exit code and the whole report.
fn report(run: &Run) -> (End, Value) {
    let outcome: Outcome = run.clone().args(&["--json"]).go();
    let report: Value =
        serde_json::from_slice(&outcome.out).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    assert_eq!(report["schema"], "hob.doctor/1");
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["fix"].is_null(), check["level"] == "fine", "{check}");
        let fix = check["fix"].as_str().unwrap_or_default();
        assert_eq!(fix.lines().count(), usize::from(!fix.is_empty()), "{check}");
    }
    (outcome.end, report)
}

/// The findings of a level other than `fine`, as `check: text | fix`.
fn findings(run: &Run, level: &str) -> Vec<String> {
    let (end, report) = report(run);
    assert_eq!(end == End::Code(1), report["faults"] != 0, "{report}");
    let checks = report["checks"].as_array().unwrap().iter();
    let of_level = checks.filter(|check| check["level"] == level);
    let word = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    of_level
        .map(|check| {
            format!("{}: {} | {}", word(check, "check"), word(check, "text"), word(check, "fix"))
        })
        .collect()
}

/// The one fault that this run has, which must hold all these words.
#[track_caller]
fn one_fault(run: &Run, words: &[&str]) {
    let found = findings(run, "fault");
    assert_eq!(found.len(), 1, "{found:?}");
    for word in words {
        assert!(found[0].contains(word), "{word}: {found:?}");
    }
}

#[test]
fn a_healthy_world_has_no_fault_with_and_without_a_daemon() {
    let world = World::empty();
    let doctor = world.hob(&["doctor"]);
    assert_eq!(findings(&doctor, "fault"), [""; 0]);
    assert!(!world.hob_dir().exists() && !world.path("state/hob").exists(), "it made something");
    world.hob(&["start"]).go().succeeded();
    assert_eq!(findings(&doctor, "fault"), [""; 0]);
    let (_, report) = report(&doctor);
    let daemon = format!("process {}, answers", world.daemon());
    assert!(report["checks"].to_string().contains(&daemon), "{report}");
    // No call was made by looking.
    assert_eq!(world.records(10), Vec::<Value>::new());
}

#[test]
fn it_works_without_a_home_a_path_or_any_variable() {
    let world = World::new();
    let bare = world.environment().into_iter().fold(world.hob(&["doctor"]), |run, (name, _)| {
        if name == "HOB_DIR" { run } else { run.without(name) }
    });
    let warnings = findings(&bare, "warning");
    assert!(warnings[0].starts_with("state: no receipts are kept"), "{warnings:?}");
    let nowhere = findings(&bare.clone().env("PATH", "/nowhere"), "warning");
    assert!(nowhere.iter().any(|warning| warning.contains("no python3 on PATH")), "{nowhere:?}");
    let text = bare.go();
    assert!(
        text.text().ends_with("no faults, 1 warning\n") && text.complaint().is_empty(),
        "{text:?}"
    );
}

#[test]
fn it_fits_a_terminal_and_has_no_colour_when_none_is_wanted() {
    let world = World::new();
    let mut terminal = Terminal::open(&world.hob(&["doctor"]).env("NO_COLOR", "1"));
    terminal.expect("no faults");
    let (end, shown) = terminal.finish();
    assert_eq!(end, End::Code(0));
    let shown = String::from_utf8(shown).unwrap();
    assert!(!shown.contains('\x1b'), "{shown}");
    for line in shown.lines().filter(|line| !line.contains("fix: ")) {
        assert!(line.trim_end().chars().count() <= 80, "{line}");
    }
}

#[test]
fn what_this_shell_would_bring_is_named() {
    let world = World::started();
    let doctor = world.hob(&["doctor"]);
    let open = doctor.clone().after("for n in {10..75}; do eval \"exec $n</dev/null\"; done");
    one_fault(&open, &["descriptors: 66 are open", "74 (/dev/null)", "exec 74>&-"]);
    let few = doctor.clone().after("exec 7</dev/null").go().text();
    assert!(few.contains("and 1 more, which go with each call"), "{few}");
    let closed = doctor.clone().after("exec 0<&-").go().text();
    assert!(closed.contains("0 closed, which goes with each call"), "{closed}");
    assert!(closed.contains("no faults"), "{closed}");
    one_fault(
        &doctor.clone().after("ulimit -Sn 512; ulimit -Hn 8000").env("HOB_DIR", "relative"),
        &["environment: HOB_DIR=relative", "absolute"],
    );
    let bypassed = findings(&doctor.clone().env("HOB", "0"), "warning");
    assert!(bypassed.iter().any(|warning| warning.contains("unset HOB")), "{bypassed:?}");
    let long = doctor.clone().env("HOB_DIR", world.path("l".repeat(120)));
    one_fault(&long, &["environment: ", "leave room for a socket", "shorter"]);
}

#[test]
fn a_state_directory_that_takes_no_files_is_named_with_what_mends_it() {
    let world = World::new();
    let doctor = world.hob(&["doctor"]);
    // A file system that has no room, because it has no files of ours at all.
    let kernel = doctor.clone().env("XDG_STATE_HOME", "/proc");
    one_fault(&kernel, &["state: /proc takes no files", "set XDG_STATE_HOME to a directory on"]);
    let file = world.file("file", "");
    let below = doctor.clone().env("XDG_STATE_HOME", &file);
    one_fault(&below, &["file is not a directory", "set XDG_STATE_HOME to a directory of yours"]);
    for run in [&kernel, &below] {
        assert!(!findings(run, "fault")[0].contains("free some space"));
    }
    // The daemon's own finding has a fix of its own, which names no page.
    world.hob(&["start"]).env("XDG_STATE_HOME", &file).go().succeeded();
    one_fault(&doctor, &["receipts: ", "hob restart"]);
    assert!(!findings(&doctor, "fault")[0].contains("docs/"));
}

#[test]
fn a_directory_that_is_not_private_is_named_with_what_mends_it() {
    let world = World::new();
    let doctor = world.hob(&["doctor"]);
    let directory = world.hob_dir();
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mend = format!("chmod 700 {}", directory.display());
    one_fault(&doctor, &["directory: ", "0700", &mend]);
    // The fix is a command, and it does what it says.
    world.run(&["sh", "-c", &mend]).go().succeeded();
    assert_eq!(findings(&doctor, "fault"), [""; 0]);
    std::fs::remove_dir(&directory).unwrap();
    symlink(world.path("work"), &directory).unwrap();
    one_fault(&doctor, &["directory: ", "a link", "rm -r"]);
    std::fs::remove_file(&directory).unwrap();
}

#[test]
fn a_daemon_that_is_stopped_or_of_another_world_is_named() {
    let world = World::new();
    // Started with lower limits than the caller's.
    world.hob(&["start"]).after("ulimit -n 1000").go().succeeded();
    let doctor = world.hob(&["doctor"]);
    one_fault(&doctor, &["limits: the hard limit of open files", "hob restart"]);
    world.hob(&["restart"]).go().succeeded();
    assert_eq!(findings(&doctor, "fault"), [""; 0]);
    let confined = doctor.clone().under(&["setpriv", "--no-new-privs"]);
    one_fault(&confined, &["context: not the daemon's: NoNewPrivs", "hob restart"]);
    let daemon = world.daemon();
    hob_tests::run::kill(daemon, Signal::STOP);
    wait::until("it is stopped", || (hob_tests::run::state(daemon) == Some('T')).then_some(()));
    one_fault(&doctor, &["daemon: ", "is stopped", &format!("kill -CONT {daemon}")]);
    hob_tests::run::kill(daemon, Signal::CONT);
    assert_eq!(findings(&doctor, "fault"), [""; 0]);
}

#[test]
fn receipts_that_cannot_be_kept_are_named() {
    let world = World::empty();
    let state = world.path("state/hob");
    std::fs::write(&state, "").unwrap();
    let doctor = world.hob(&["doctor"]);
    one_fault(&doctor, &["state: ", "not a directory", "mv "]);
    world.hob(&["start"]).go().succeeded();
    let found = findings(&doctor, "fault");
    assert!(
        found.len() == 2 && found.iter().any(|fault| fault.starts_with("receipts: ")),
        "{found:?}"
    );
}

#[test]
fn shims_and_interpreters_that_do_not_do_their_work_are_named() {
    let world = World::new();
    let folder = world.path("shims");
    std::fs::create_dir(&folder).unwrap();
    world.executable("tool", "#!/bin/sh\n");
    let work = world.path("work").display().to_string();
    let doctor =
        |path: String| world.hob(&["doctor"]).env("HOB_SHIM_DIR", &folder).env("PATH", path);
    let first = format!("{}:{work}:/usr/bin:/bin", folder.display());
    symlink(world.binary(), folder.join("tool")).unwrap();
    assert_eq!(findings(&doctor(first.clone()), "fault"), [""; 0]);
    let export = format!("export PATH={}:\"$PATH\"", folder.display());
    one_fault(&doctor(format!("{work}:/usr/bin")), &["shims: ", "not on PATH", &export]);
    let behind = format!("{work}:{}:/usr/bin", folder.display());
    one_fault(&doctor(behind), &["shims: tool: the command itself comes first", &export]);
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&folder, open).unwrap();
    one_fault(&doctor(first.clone()), &["shims: ", "written to by others", "chmod go-w"]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = world.executable("hob-copy", std::fs::read(world.binary()).unwrap());
    symlink(&copy, folder.join("ls")).unwrap();
    let other = findings(&doctor(first.clone()), "warning");
    assert!(
        other.iter().any(|one| one.contains("ls is a shim of another hob, ")
            && one.ends_with("| hob shim add ls")),
        "{other:?}"
    );
    std::fs::remove_file(folder.join("ls")).unwrap();
    symlink(world.binary(), folder.join("gone")).unwrap();
    one_fault(&doctor(first.clone()), &["shims: gone: ", "hob shim remove gone"]);
    std::fs::remove_file(folder.join("gone")).unwrap();
    std::fs::remove_file(folder.join("tool")).unwrap();
    symlink(world.path("gone/hob"), folder.join("tool")).unwrap();
    one_fault(&doctor(first.clone()), &["shims: tool: ", "gone/hob is gone", "hob shim add tool"]);
    std::fs::remove_file(folder.join("tool")).unwrap();
    world.executable("python3.7", "\x7fELF");
    symlink("python3.7", world.path("work/python3")).unwrap();
    one_fault(&doctor(first), &["interpreters: python3 is ", "3.7", "3.9 to 3.14"]);
}

#[test]
fn a_daemon_of_another_build_is_told_apart() {
    let world = World::new();
    // The same program with another build id: what a build is told by.
    let own = world.hob(&["start"]).go();
    own.succeeded();
    let build = world.status()["build"].as_str().unwrap().to_owned();
    world.hob(&["stop"]).go().succeeded();
    let id: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&build[2 * at..2 * at + 2], 16).unwrap()).collect();
    let mut image = std::fs::read(world.binary()).unwrap();
    let at = image.windows(16).position(|part| part == id).expect("the id is in the file");
    image[at] ^= 1;
    let other = world.executable("hob-other", image);
    world.run(&[&other]).args(&["start"]).go().succeeded();
    let daemon = world.daemon();
    let doctor = world.hob(&["doctor"]);
    let warnings = findings(&doctor, "warning");
    let told = format!("daemon: process {daemon} is hob ");
    assert!(
        warnings.iter().any(|one| one.starts_with(&told) && one.ends_with("| hob restart")),
        "{warnings:?}"
    );
    world.hob(&["restart"]).go().succeeded();
    assert_eq!(findings(&doctor, "warning"), [""; 0]);
}

#[test]
fn a_directory_that_cannot_be_written_in_is_named_with_what_mends_it() {
    let world = World::new();
    std::fs::create_dir(world.hob_dir()).unwrap();
    std::fs::set_permissions(world.hob_dir(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let within = |options: &str, then: &str| {
        let script = format!(
            "mount -t tmpfs -o mode=700,{options} none {0} && {then} exec \"$0\" \"$@\"",
            world.hob_dir().display()
        );
        let unshare = ["unshare", "--mount", "--propagation", "private", "bash", "-c", &script];
        (world.run(&["true"]).under(&unshare), world.hob(&["doctor"]).under(&unshare))
    };
    let fill =
        format!("{{ dd if=/dev/zero of={0}/full bs=4k; }} 2>/dev/null;", world.hob_dir().display());
    let shapes: [(&str, &str, &[&str]); 3] = [
        ("size=16k", &fill, &["directory: ", "no room", "make room"]),
        ("ro", "", &["directory: ", "read-only", "mount for writing"]),
        ("nr_inodes=1", "", &["directory: ", "no room", "make room"]),
    ];
    for (options, then, words) in shapes {
        let (trial, doctor) = within(options, then);
        if trial.go().end != End::Code(0) {
            return hob_tests::skipped("nothing can be mounted here");
        }
        one_fault(&doctor, words);
    }
    // The same where it would have to be made first.
    let (_, doctor) = within("ro", "");
    one_fault(
        &doctor.env("HOB_DIR", world.hob_dir().join("below/it")),
        &["directory: ", "read-only"],
    );
    assert_eq!(findings(&world.hob(&["doctor"]), "fault"), [""; 0]);
    assert_eq!(std::fs::read_dir(world.hob_dir()).unwrap().count(), 0, "it left something");
}

#[test]
fn too_few_descriptors_are_a_fault_where_hooks_would_fail() {
    let world = World::new();
    let few = world.hob(&["doctor"]).after("ulimit -n 12");
    one_fault(&few, &["open-files: 12 soft", "hooks", "ulimit -n 1024"]);
}

#[test]
fn a_null_device_that_is_none_is_a_fault() {
    let world = World::new();
    let (hob, file) = (world.binary().display().to_string(), world.file("not-null", ""));
    let within = |make: &str| {
        let script = format!("set -e\n{make}\necho mounted >&2\nexec {hob} doctor --json");
        world.run(&["unshare", "--mount", "bash", "-c", &script]).go()
    };
    let file = format!("mount --bind {} /dev/null", file.display());
    let device = "mount -t tmpfs tmpfs /dev";
    for (make, text) in [(file.as_str(), "another file"), (device, "cannot be opened")] {
        let outcome = within(make);
        if !outcome.complaint().contains("mounted") {
            return hob_tests::skipped(&outcome.complaint());
        }
        assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
        let report: Value = serde_json::from_slice(&outcome.out).unwrap();
        let null = |check: &&Value| check["check"] == "null";
        let found = report["checks"].as_array().unwrap().iter().find(null).unwrap();
        assert_eq!(found["level"], "fault", "{found}");
        assert!(found["text"].as_str().unwrap().contains(text), "{found}");
    }
}
