//! `hob setup`: each file that it writes is named, works, and is taken away again.

use std::path::{Path, PathBuf};

use hob_tests::{End, Outcome, Run, World};

/// `hob setup` where a manager of the user's runs: a `systemctl` that notes what it is told.
fn setup(world: &World, words: &[&str]) -> Run {
    let said = world.path("said");
    world.executable("bin/systemctl", format!("#!/bin/sh\necho \"$@\" >>{}\n", said.display()));
    // Shells, so that completions are written for each of them.
    for shell in ["bash", "zsh", "fish"] {
        world.executable(&format!("bin/{shell}"), "#!/bin/sh\n");
    }
    std::fs::create_dir_all(world.path("runtime/systemd")).unwrap();
    std::fs::write(world.path("runtime/systemd/private"), "").unwrap();
    let bin = world.path("work/bin");
    let path = std::env::join_paths([bin, "/usr/bin".into(), "/bin".into()]).unwrap();
    let run = world.hob(&["setup"]).args(words);
    run.env("PATH", path).env("XDG_RUNTIME_DIR", world.path("runtime"))
}

/// Every file and link below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// The paths behind this word, one on each line.
fn named(outcome: &Outcome, word: &str) -> Vec<PathBuf> {
    let text = outcome.text();
    let mut paths: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| Some(PathBuf::from(line.strip_prefix(word)?.trim_start())))
        .collect();
    paths.sort();
    paths
}

#[test]
fn each_file_is_named_when_it_is_written_and_none_is_left_when_they_are_removed() {
    let world = World::new();
    let home = world.path("home");
    let dry = setup(&world, &["--dry-run"]).go();
    dry.succeeded();
    assert_eq!(files(&home), [""; 0].map(PathBuf::from));
    let done = setup(&world, &[]).go();
    done.succeeded();
    let written = files(&home);
    assert_eq!(written.len(), 5, "{done:?}");
    assert_eq!(named(&done, "written "), written);
    assert_eq!(named(&dry, "would write "), written);
    assert!(done.text().contains("systemctl --user start hob\n"), "{done:?}");
    let folder = home.join(".local/share/zsh/site-functions");
    assert!(done.text().contains(&format!("fpath=({} ", folder.display())), "{done:?}");
    let zsh = std::fs::read_to_string(folder.join("_hob")).unwrap();
    assert!(zsh.starts_with("#compdef hob\n"), "{zsh}");

    assert_eq!(named(&setup(&world, &[]).go(), "unchanged "), written);
    // Another memory: the unit alone differs.
    let other = setup(&world, &[]).env("HOB_MEMORY_MB", "77").go();
    assert_eq!(named(&other, "replaced "), [home.join(".config/systemd/user/hob.service")]);

    let dry = setup(&world, &["--remove", "--dry-run"]).go();
    assert_eq!((named(&dry, "would remove "), files(&home)), (written.clone(), written.clone()));
    let removed = setup(&world, &["--remove"]).go();
    removed.succeeded();
    assert_eq!((named(&removed, "removed "), files(&home)), (written, Vec::new()));
    let again = setup(&world, &["--remove"]).go();
    again.succeeded();
    assert_eq!(again.text(), "nothing of `hob setup` is there\n");
    let said = std::fs::read_to_string(world.path("said")).unwrap();
    let reload = "--user daemon-reload\n";
    assert_eq!(said, format!("{reload}{reload}{reload}--user stop hob.service\n{reload}"));
}

#[test]
fn the_unit_is_one_of_systemds_and_its_daemon_makes_calls_warm() {
    let world = World::new();
    // Only the fake one is told anything.
    setup(&world, &[]).go().succeeded();
    let unit = world.path("home/.config/systemd/user/hob.service");
    if Path::new("/usr/bin/systemd-analyze").exists() {
        let check = world.run(&["systemd-analyze", "--user", "--man=no", "verify"]).args(&[&unit]);
        let checked = check.env("XDG_RUNTIME_DIR", world.path("runtime")).go();
        assert!(checked.end == End::Code(0) && checked.err.is_empty(), "{checked:?}");
    }
    let text = std::fs::read_to_string(&unit).unwrap();
    let line = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    let mut words = vec!["env".to_owned()];
    words.extend(text.lines().filter_map(|line| Some(line.strip_prefix("Environment=")?.into())));
    words.extend(line("ExecStart=").split(' ').map(str::to_owned));
    assert!(words.contains(&format!("HOB_DIR={}", world.hob_dir().display())), "{words:?}");
    let daemon = world.run(&words).start();
    while world.daemon_if_any().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(world.daemon(), daemon.pid());
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    assert_eq!(world.daemon(), daemon.pid());
    world.stop();
    assert_eq!(daemon.finish().end, End::Code(0));
}

#[test]
fn what_cannot_be_written_is_named_and_what_is_not_hobs_is_left() {
    let world = World::new();
    let unit = world.path("home/.config/systemd/user/hob.service");
    std::fs::create_dir_all(unit.parent().unwrap()).unwrap();
    std::fs::write(&unit, "mine\n").unwrap();
    for words in [&[][..], &["--remove"]] {
        let refused = setup(&world, words).go();
        assert_eq!(refused.end, End::Code(1));
        let why = format!("hob: {} is not hob's, and is left as it is\n", unit.display());
        assert_eq!(refused.complaint(), why);
        assert_eq!(std::fs::read(&unit).unwrap(), b"mine\n");
    }
    // The others were written, and removed.
    assert_eq!(files(&world.path("home")), [unit]);

    // A place that nothing can be written to, for root either.
    let refused = setup(&world, &[]).env("HOME", "/proc/self").go();
    assert_eq!(refused.end, End::Code(1));
    assert!(refused.complaint().contains("hob: cannot write /proc/self/.config/systemd/user/hob"));
    let refused = setup(&world, &[]).without("HOME").go();
    assert!(refused.complaint().starts_with("hob: no place for files: HOME"), "{refused:?}");

    let plain = world.hob(&["setup"]).without("XDG_RUNTIME_DIR").go();
    plain.succeeded();
    let is_there = Path::new("/run/systemd/system").is_dir();
    assert_ne!(plain.text().contains("systemd does not run here: no unit is written"), is_there);
}
