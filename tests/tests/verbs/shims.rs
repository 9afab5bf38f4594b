//! Shims: a command called by its own name is hob's, and behaves as it does without.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hob_tests::{End, Outcome, Run, World};

/// Where a world's shims are.
fn folder(world: &World) -> PathBuf {
    world.path("home/.local/share/hob/shims")
}

/// Any command with the shims first on `PATH`, then the working folder.
fn shimmed<S: AsRef<OsStr>>(world: &World, argv: &[S]) -> Run {
    let path =
        [folder(world), world.path("work"), "/usr/bin".into(), "/bin".into()].map(PathBuf::from);
    world.run(argv).env("PATH", std::env::join_paths(path).unwrap())
}

/// `hob shim ...` there.
fn shim<S: AsRef<OsStr>>(world: &World, words: &[S]) -> Outcome {
    shimmed(world, &[world.binary()]).args(&["shim"]).args(words).go()
}

const TOOL: &str = "#!/usr/bin/env python3\nimport os, subprocess, sys\nprint(sys.argv, sys.executable, flush=True)\nif sys.argv[1:] == ['nested']:\n    sys.exit(subprocess.call(['tool', 'within']))\n";

#[test]
fn a_shimmed_command_is_warm_and_sees_what_it_sees_without_hob() {
    let world = World::started();
    world.executable("tool", TOOL);
    let plain = shimmed(&world, &["tool", "a", "--help"]);
    let want = plain.go();
    want.succeeded();
    let added = shim(&world, &["add", "tool"]);
    added.succeeded();
    assert!(!added.text().contains("export"), "{added:?}");
    world.warm(&plain, |outcome| assert_eq!(outcome, &want));
    let bypassed = plain.clone().env("HOB", "0").go();
    assert_eq!(bypassed, want);
    let nested = shimmed(&world, &["tool", "nested"]).go();
    nested.succeeded();
    let lines: Vec<_> = nested.text().lines().map(str::to_owned).collect();
    assert!(lines.len() == 2 && lines[1].contains("'within'"), "{nested:?}");
    let inner = world.records(2);
    assert!(inner.iter().all(|record| record["program"]["name"] == "tool"), "{inner:?}");
}

#[test]
fn a_shimmed_interpreter_still_knows_where_it_is() {
    let world = World::started();
    let made = world.run(&["python3", "-m", "venv", "--without-pip", "venv"]).go();
    made.succeeded();
    world.file("where.py", "import sys\nprint(sys.prefix, sys.executable)\n");
    let path = |shims: bool| {
        let mut path = vec![world.path("work/venv/bin"), "/usr/bin".into(), "/bin".into()];
        if shims {
            path.insert(0, folder(&world));
        }
        std::env::join_paths(path).unwrap()
    };
    let want = world.run(&["python3", "where.py"]).env("PATH", path(false)).go();
    assert!(want.text().contains("work/venv "), "{want:?}");
    shim(&world, &["add", "python3"]).succeeded();
    let run = world.run(&["python3", "where.py"]).env("PATH", path(true));
    world.warm(&run, |outcome| assert_eq!(outcome, &want));
    assert_eq!(run.env("HOB", "0").go(), want);
}

/// A real environment's own script of activation, between prompts of real shells.
#[test]
fn an_activated_shell_calls_shims_in_a_virtual_environment_too() {
    let world = World::started();
    let made = world.run(&["python3", "-m", "venv", "--without-pip", "venv"]).go();
    made.succeeded();
    world.executable("venv/bin/tool", "#!/usr/bin/env python3\nimport sys\nprint(sys.prefix)\n");
    let links = world.path("links");
    std::fs::create_dir(&links).unwrap();
    std::os::unix::fs::symlink(world.binary(), links.join("hob")).unwrap();
    let path = format!("{}:/usr/bin:/bin", links.display());
    let shims = folder(&world);
    std::fs::create_dir_all(&shims).unwrap();
    std::os::unix::fs::symlink(world.binary(), shims.join("tool")).unwrap();
    let typed = |begin: &str, activate: &str, prompt: &str| {
        let status = if prompt == ":" { "$?" } else { "$status" };
        format!(
            "{begin}\nfalse\necho is {status}\n{activate}\n{prompt}\necho in \"$PATH\"\ntool\n\
             deactivate\n{prompt}\necho out \"$PATH\"\nexit 0\n"
        )
    };
    let (posix, fish) = (". venv/bin/activate", ". venv/bin/activate.fish");
    for (argv, typed) in [
        (&["bash", "--norc", "-i"][..], typed("eval \"$(hob activate bash)\"", posix, ":")),
        (&["zsh", "-f", "-i"], typed("eval \"$(hob activate zsh)\"", posix, ":")),
        (&["fish", "--no-config"], typed("hob activate fish | source", fish, "emit fish_prompt")),
    ] {
        let before = world.records(400).len();
        let shell = world.run(argv).env("PATH", &path).stdin(typed).go();
        let text = shell.text();
        let line = |head: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(head));
            line.unwrap_or_else(|| panic!("{argv:?}: no {head}: {shell:?}")).to_owned()
        };
        assert_eq!(line("is "), "1", "{argv:?}: the status is kept");
        let inside = format!("{}:{}", shims.display(), world.path("work/venv/bin").display());
        assert_eq!(line("in "), format!("{inside}:{path}"), "{argv:?}");
        assert_eq!(line("out "), format!("{}:{path}", shims.display()), "{argv:?}");
        let prefix = world.path("work/venv").display().to_string();
        assert!(text.lines().any(|line| line == prefix), "{argv:?}: its own interpreter: {text}");
        let records = world.records(400);
        assert_eq!(records.len(), before + 1, "{argv:?}");
        assert_eq!(records.last().unwrap()["program"]["name"], "tool");
    }
}

/// An environment with a command as installers write them, one of a shell, and what it has itself.
fn environment(world: &World, name: &str) -> PathBuf {
    world.run(&["python3", "-m", "venv", "--without-pip", name]).go().succeeded();
    let dir = world.path("work").join(name);
    let shebang = format!("#!{}/bin/python", dir.display());
    let tool = format!("{shebang}\nimport sys\nprint(sys.prefix)\n");
    world.executable(&format!("{name}/bin/tool"), &tool);
    world.executable(&format!("{name}/bin/shell-tool"), "#!/bin/sh\necho x\n");
    dir
}

/// The shims with their states.
fn states(world: &World) -> Vec<(String, String)> {
    let list = shim(world, &["list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.out).unwrap();
    let word = |shim: &serde_json::Value, name: &str| shim[name].as_str().unwrap().to_owned();
    let shims = list["shims"].as_array().unwrap().iter();
    shims.map(|shim| (word(shim, "name"), word(shim, "state"))).collect()
}

#[test]
fn the_commands_of_an_environment_are_warm_where_it_is_active_and_no_others() {
    let world = World::started();
    let (first, second) = (environment(&world, "a/.venv"), environment(&world, "other"));
    world.executable("other/bin/extra-tool", std::fs::read(second.join("bin/tool")).unwrap());
    let added = shim(&world, &["add", "--venv", "a"]);
    added.succeeded();
    let text = added.text();
    assert_eq!(text, format!("tool: hob runs {}/bin/tool\n", first.display()), "{added:?}");
    let state = |state: &str| ("tool".to_owned(), state.to_owned());
    assert_eq!(states(&world), [state("inactive")]);
    let doctor = shimmed(&world, &[world.binary()]).args(&["doctor"]).go().text();
    assert!(doctor.contains("1 in ") && !doctor.contains("tool:"), "{doctor}");
    // Not active: no such command, as without hob.
    assert_eq!(shimmed(&world, &["tool"]).go().end, End::Code(127));
    let active = |dir: &PathBuf, command: &str| {
        let path = [folder(&world), dir.join("bin"), "/usr/bin".into(), "/bin".into()];
        world.run(&[command]).env("PATH", std::env::join_paths(path).unwrap())
    };
    for dir in [&first, &second] {
        let want = format!("{}\n", dir.display());
        world.warm(&active(dir, "tool"), |outcome| assert_eq!(outcome.text(), want));
    }
    shim(&world, &["add", "--venv", "other"]).succeeded();
    assert_eq!(states(&world).len(), 2);
    shim(&world, &["remove", "--venv", "a"]).succeeded();
    assert_eq!(states(&world).len(), 2, "the other environment has one of that name");
    // One that was asked for by its name is no environment's, and an environment may be gone.
    active(&second, world.binary().to_str().unwrap())
        .args(&["shim", "add", "extra-tool"])
        .go()
        .succeeded();
    std::fs::remove_dir_all(&second).unwrap();
    shim(&world, &["remove", "--venv", "other"]).succeeded();
    assert_eq!(states(&world), [("extra-tool".to_owned(), "no-command".to_owned())]);
    shim(&world, &["remove", "extra-tool"]).succeeded();
    assert_eq!(std::fs::read_dir(folder(&world)).unwrap().count(), 0, "nothing is left");
    for (words, why) in [
        (["remove", "--venv", "a"], "no shims were made for it"),
        (["add", "--venv", "none"], "no virtual environment"),
    ] {
        let refused = shim(&world, &words);
        assert!(refused.end == End::Code(1) && refused.complaint().contains(why), "{refused:?}");
    }
}

#[test]
fn a_shim_that_is_made_behind_its_command_says_that_no_call_comes_to_it() {
    let world = World::started();
    world.executable("tool", TOOL);
    let path = [world.path("work"), "/usr/bin".into(), "/bin".into(), folder(&world)];
    let add = world.hob(&["shim", "add", "tool"]).env("PATH", std::env::join_paths(path).unwrap());
    std::fs::create_dir_all(folder(&world)).unwrap();
    let added = add.go();
    added.succeeded();
    let text = added.text();
    assert!(text.contains("PATH finds another first: tool\n"), "{text}");
    assert!(text.contains("hob activate bash"), "{text}");
}

#[test]
fn a_shim_of_any_program_runs_it_and_a_removed_target_is_not_found() {
    let world = World::started();
    let tool = world.executable("tool", "#!/bin/sh\nprintf '%s|' \"$0\" \"$@\"; exit 3\n");
    let want = shimmed(&world, &["tool", "x y", ""]).go();
    shim(&world, &["add", "tool"]).succeeded();
    let run = shimmed(&world, &["tool", "x y", ""]);
    assert_eq!((run.go(), want.end), (want, End::Code(3)));
    std::fs::remove_file(tool).unwrap();
    for run in [run.clone(), run.env("HOB", "0")] {
        let outcome = run.go();
        assert_eq!(
            (outcome.end, outcome.complaint().as_str()),
            (End::Code(127), "hob: tool: not found\n")
        );
    }
    let list = shim(&world, &["list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.out).unwrap();
    assert_eq!(
        (&list["schema"], &list["shims"][0]["state"], &list["shims"][0]["command"]),
        (&"hob.shims/1".into(), &"no-command".into(), &serde_json::Value::Null),
        "{list}"
    );
}

#[test]
fn another_tools_shim_that_looks_on_the_path_again_does_not_go_round_for_ever() {
    let world = World::started();
    world.executable("tool", "#!/bin/sh\necho the tool\n");
    // As version managers do: it leaves its own folder out, and meets hob's.
    let other = world.executable(
        "other/tool",
        "#!/bin/sh\nPATH=${PATH#*:}\nPATH=$HOB_SHIMS:$PATH\nexec tool \"$@\"\n",
    );
    shim(&world, &["add", "tool"]).succeeded();
    let path = [
        other.parent().unwrap().to_owned(),
        folder(&world),
        world.path("work"),
        "/usr/bin".into(),
        "/bin".into(),
    ];
    let hob_first = [&path[1], &path[0], &path[2], &path[3], &path[4]];
    for daemon in ["1", "0"] {
        let run = world
            .run(&["tool"])
            .env("PATH", std::env::join_paths(hob_first).unwrap())
            .env("HOB_SHIMS", folder(&world))
            .env("HOB", daemon);
        let outcome = run.go();
        assert_eq!(
            (outcome.text().as_str(), outcome.end),
            ("the tool\n", End::Code(0)),
            "{outcome:?}"
        );
    }
}

#[test]
fn what_is_not_hobs_is_neither_overwritten_nor_removed() {
    let world = World::new();
    world.executable("tool", "#!/bin/sh\n");
    let folder = folder(&world);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tool"), "mine").unwrap();
    std::os::unix::fs::symlink("/bin/true", folder.join("true")).unwrap();
    for name in ["tool", "true"] {
        for what in ["add", "remove"] {
            let outcome = shim(&world, &[what, name]);
            assert_eq!(outcome.end, End::Code(1), "{what} {name}: {outcome:?}");
            let said = outcome.complaint();
            assert!(said.contains("is not hob's") && said.lines().count() == 1, "{said}");
        }
    }
    assert_eq!(std::fs::read(folder.join("tool")).unwrap(), b"mine");
    assert_eq!(std::fs::read_link(folder.join("true")).unwrap(), PathBuf::from("/bin/true"));
    let list = shim(&world, &["list"]);
    assert!(list.text().starts_with("no shims"), "{list:?}");
}

#[test]
fn names_may_hold_any_bytes_and_bad_ones_are_named() {
    let world = World::started();
    let odd = OsStr::from_bytes(b"od\xff d\n\x1b[2J");
    let made = world.path("work").join(odd);
    std::os::unix::fs::symlink(world.executable("real", "#!/bin/sh\necho odd\n"), &made).unwrap();
    let added = shim(&world, &[OsStr::new("add"), odd]);
    added.succeeded();
    assert!(!added.text().contains('\x1b') && added.text().lines().count() == 1, "{added:?}");
    assert_eq!(shimmed(&world, &[odd]).go().text(), "odd\n");
    shim(&world, &[OsStr::new("remove"), odd]).succeeded();
    assert_eq!(std::fs::read_dir(folder(&world)).unwrap().count(), 0);
    for name in ["", ".", "..", "a/b", "hob", "hob-old", "x.py", "no-such-command"] {
        let outcome = shim(&world, &["add", name]);
        assert_eq!(outcome.end, End::Code(1), "{name}: {outcome:?}");
        assert_eq!(outcome.complaint().lines().count(), 1, "{name}: {outcome:?}");
    }
    assert_eq!(std::fs::read_dir(folder(&world)).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_not_on_the_path_is_said_with_the_line_for_it() {
    let world = World::new();
    world.executable("tool", "#!/bin/sh\n");
    let path = format!("{}:/usr/bin:/bin", world.path("work").display());
    let hob = || world.hob(&["shim"]).env("PATH", &path).env("HOB_SHIM_DIR", world.path("shims"));
    let added = hob().args(&["add", "tool"]).go();
    added.succeeded();
    let line = format!("  export PATH={}:\"$PATH\"\n", world.path("shims").display());
    let text = added.text();
    assert!(text.contains(&line) && text.contains("hob activate bash"), "{added:?}");
    let list = hob().args(&["list"]).go();
    assert!(list.text().contains("off-path"), "{list:?}");
    let last = format!("{path}:{}", world.path("shims").display());
    let list = hob().env("PATH", last).args(&["list"]).go();
    assert!(list.text().contains("shadowed"), "{list:?}");
    let homeless = world.hob(&["shim", "list"]).without("HOME").go();
    assert_eq!((homeless.end, homeless.complaint().lines().count()), (End::Code(1), 1));
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

#[test]
fn a_link_to_a_hob_of_another_name_does_not_start_itself_for_ever() {
    let world = World::started();
    std::fs::create_dir_all(folder(&world)).unwrap();
    let image = std::fs::read(world.binary()).unwrap();
    let other = world.executable("other", image);
    std::os::unix::fs::symlink(&other, folder(&world).join("tool")).unwrap();
    for run in [shimmed(&world, &["tool"]), shimmed(&world, &["tool"]).env("HOB", "0")] {
        let outcome = run.go();
        assert_eq!(outcome.end, End::Code(127), "{outcome:?}");
        assert_eq!(outcome.complaint().lines().count(), 1, "{outcome:?}");
    }
    // Under the name of its own file it is hob, and makes no shims that nobody would know.
    let version = world.run(&[&other]).args(&["--version"]).go();
    assert!(version.text().starts_with("hob "), "{version:?}");
    world.executable("command", "#!/bin/sh\n");
    let added = shimmed(&world, &[&other]).args(&["shim", "add", "command"]).go();
    assert!(added.complaint().contains("rename that to `hob`"), "{added:?}");
}
