//! What can be called: scripts, modules, installed commands, anything executable.

use hob_tests::{End, World};
use rustix::process::Signal;

#[test]
fn an_interpreter_named_as_the_program_is_the_same_as_its_script() {
    let world = World::started();
    world.file("main.py", "import sys\nprint(sys.argv, sys.executable, __file__)\n");
    let cold = world.run(&["python3", "main.py", "a"]).go();
    let warm =
        world.warm(&world.hob(&["run", "main.py", "a"]), |outcome| assert_eq!(outcome, &cold));
    let outcome = world.hob(&["run", "python3", "main.py", "a"]).go();
    assert_eq!(outcome, cold);
    let (one, other) = (world.record(warm.pid), world.record(outcome.pid));
    assert_eq!(one["program"]["target"], other["program"]["target"]);
    assert_eq!(other["warm"], true, "it is the same program, and warm: {other}");
}

#[test]
fn a_module_runs_warm() {
    let world = World::started();
    let run = world.hob(&["run", "-m", "json.tool", "--compact"]).stdin("{\"a\": [1,  2]}");
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "{\"a\":[1,2]}\n"));
    let wrong = world.hob(&["run", "-m", "json.tool"]).stdin("{");
    let cold = world.run(&["python3", "-m", "json.tool"]).stdin("{").go();
    world.warm(&wrong, |outcome| assert_eq!(outcome, &cold));
    assert_eq!(cold.end, End::Code(1));
}

#[test]
fn code_on_the_command_line_runs_cold_and_right() {
    let world = World::started();
    for words in [&["-c", "import sys; print(sys.argv)", "x"][..], &["-V"], &["-"]] {
        let cold = world.run(&["python3"]).args(words).stdin("print(1)").go();
        let run = world.hob(&["run", "python3"]).args(words).stdin("print(1)");
        let outcome = world.in_time(&run);
        assert_eq!(outcome, cold, "{words:?}");
        let reason = world.reason(outcome.pid);
        assert!(["not-a-program", "not-hosted"].contains(&reason.as_str()), "{words:?}: {reason}");
    }
}

#[test]
fn anything_else_runs_with_a_receipt() {
    let world = World::started();
    let echo = world.hob(&["run", "echo", "a", "b"]).go();
    assert_eq!(echo.text(), "a b\n");
    let record = world.record(echo.pid);
    assert_eq!(
        (&record["reason"], &record["program"]["runtime"]),
        (&"not-hosted".into(), &"exec".into())
    );
    assert_eq!(record["program"]["arguments"], 2);
    let killed = world.hob(&["run", "sh", "-c", "kill -USR1 $$"]).go();
    assert_eq!(killed.end, End::Signal(10));
    world.executable("plain", "echo \"no shebang: $1\"\n");
    let plain = world.hob(&["run", "./plain", "x"]).go();
    assert_eq!((plain.end, plain.text()), (End::Code(0), "no shebang: x\n".to_owned()));
    world.executable("shell", "#!/bin/sh -e\necho $0 $1\n");
    assert_eq!(world.hob(&["run", "./shell", "x"]).go().text(), "./shell x\n");
}

#[test]
fn hob_in_a_shebang_runs_its_script_warm() {
    let world = World::started();
    let path = world
        .executable("script", "#!/usr/bin/env -S hob run python3\nimport sys\nprint(sys.argv)\n");
    let other =
        world.executable("script.py", "#!/usr/bin/env -S hob run\nimport sys\nprint(sys.argv)\n");
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(world.binary(), bin.join("hob")).unwrap();
    for path in [path, other] {
        let run = world
            .run(&[&path])
            .args(&["x"])
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let want = format!("['{}', 'x']\n", path.display());
        world.warm(&run, |outcome| {
            assert_eq!((outcome.text(), outcome.end), (want.clone(), End::Code(0)), "{outcome:?}")
        });
    }
}

/// A virtual environment with one command in it, made without the network.
fn environment(world: &World, folder: &str) {
    world.run(&["python3", "-m", "venv", "--without-pip", folder]).go().succeeded();
    let find = "import glob, sys; print(glob.glob(sys.argv[1] + '/lib/python*/site-packages')[0])";
    let packages = world.run(&["python3", "-c", find, folder]).go().text();
    let packages = packages.trim();
    world.file(&format!("{packages}/greeter.py"), "import json, sys\nGREETING = 'hello from ' + sys.prefix\ndef main():\n    print(GREETING, sys.argv)\n    return 3\n");
    let python = world.path("work").join(folder).join("bin/python3");
    let text = format!(
        "#!{}\n# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom greeter import main\nif __name__ == '__main__':\n    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n",
        python.display()
    );
    world.executable(&format!("{folder}/bin/greet"), text);
}

#[test]
fn an_entry_point_of_a_virtual_environment_runs_warm() {
    let world = World::started();
    environment(&world, "env");
    let path = format!("{}:/usr/bin:/bin", world.path("work/env/bin").display());
    let cold = world.run(&["greet", "x"]).env("PATH", &path).go();
    assert_eq!(cold.end, End::Code(3), "{cold:?}");
    world.warm(&world.hob(&["run", "greet", "x"]).env("PATH", &path), |outcome| {
        assert_eq!(outcome, &cold)
    });
    let named = world.hob(&["run", "env/bin/greet", "x"]);
    let cold = world.run(&["env/bin/greet", "x"]).go();
    world.warm(&named, |outcome| assert_eq!(outcome, &cold));
}

#[test]
fn a_script_gets_the_environment_that_is_active_or_beside_it() {
    let world = World::started();
    environment(&world, "env");
    environment(&world, "project/.venv");
    world.file("project/deep/inside/main.py", "import greeter\ngreeter.main()\n");
    world.file("alone.py", "import greeter\ngreeter.main()\n");
    let folder = |name: &str| world.path("work").join(name).display().to_string();
    let inside = world.hob(&["run", "project/deep/inside/main.py"]);
    let want = format!("hello from {} ['project/deep/inside/main.py']\n", folder("project/.venv"));
    world.warm(&inside, |outcome| assert_eq!(outcome.text(), want, "{outcome:?}"));
    let active = world.hob(&["run", "alone.py"]).env("VIRTUAL_ENV", folder("env"));
    let want = format!("hello from {} ['alone.py']\n", folder("env"));
    world.warm(&active, |outcome| assert_eq!(outcome.text(), want, "{outcome:?}"));
    let none = world.hob(&["run", "alone.py"]).go();
    assert_eq!(none.end, End::Code(1), "{none:?}");
    assert!(none.complaint().contains("No module named 'greeter'"));
}

#[test]
fn what_is_installed_anew_is_new_on_the_next_call() {
    let world = World::started();
    environment(&world, "env");
    let run = world.hob(&["run", "env/bin/greet"]);
    world.warm(&run, |outcome| assert!(outcome.text().starts_with("hello"), "{outcome:?}"));
    let find =
        world.run(&["sh", "-c", "echo env/lib/python*/site-packages/greeter.py"]).go().text();
    world.file(find.trim(), "def main():\n    print('a new version')\n");
    assert_eq!(run.go().text(), "a new version\n");
}

#[test]
fn a_tool_that_pip_installed_runs_warm() {
    let world = World::started();
    world.run(&["python3", "-m", "venv", "env"]).go_long().succeeded();
    let install = ["env/bin/pip", "install", "--quiet", "--no-deps", "pyflakes==3.2.0"];
    // The caller's own settings say where packages come from.
    let mut pip = world.run(&install);
    for (name, value) in std::env::vars_os() {
        let known = ["PIP_", "SSL_", "REQUESTS_", "http", "HTTP", "no_proxy", "NO_PROXY"];
        if known.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            pip = pip.env(name, value);
        }
    }
    pip.go_long().succeeded();
    world.file("faulty.py", "import os\nprint(undefined)\n");
    let cold = world.run(&["env/bin/pyflakes", "faulty.py"]).go();
    assert_eq!(cold.end, End::Code(1), "{cold:?}");
    assert!(cold.text().contains("undefined name 'undefined'"), "{cold:?}");
    let check = |outcome: &hob_tests::Outcome| assert_eq!(outcome, &cold);
    world.warm(&world.hob(&["run", "env/bin/pyflakes", "faulty.py"]), check);
    let version = world.run(&["env/bin/python", "-m", "pyflakes", "--version"]).go();
    let module = world.hob(&["run", "env/bin/python", "-m", "pyflakes", "--version"]);
    world.warm(&module, |outcome| assert_eq!(outcome, &version));
}

/// Where pyenv is, with a version that it has installed.
fn pyenv() -> Option<(std::path::PathBuf, String)> {
    let named = std::env::var_os("PYENV_ROOT").map(std::path::PathBuf::from);
    let root = named.or_else(|| Some(std::env::home_dir()?.join(".pyenv")))?;
    let mut versions: Vec<String> = std::fs::read_dir(root.join("versions"))
        .ok()?
        .flatten()
        .filter(|entry| entry.path().join("bin/python3").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("3.") && !name.starts_with("3.8"))
        .collect();
    versions.sort();
    Some((root, versions.pop()?)).filter(|(root, _)| root.join("shims/python3").is_file())
}

#[test]
fn a_shim_of_pyenv_leads_to_its_interpreter() {
    // Where pyenv is not installed there is no shim; the resolver's own tests build such trees.
    let Some((root, version)) = pyenv() else { return };
    let world = World::started();
    world.file(
        "main.py",
        "import os, sys\nprint(sys.version, sys.executable, sys.prefix)\nfor n in sorted(os.environ):\n    if n not in ('_', 'SHLVL', 'PWD', 'OLDPWD'):\n        print(n, os.environ[n])\n",
    );
    let shims = root.join("shims");
    let path = format!("{}:{}:/usr/bin:/bin", shims.display(), root.join("bin").display());
    let by_pyenv = |run: hob_tests::Run| run.env("PATH", &path).env("PYENV_ROOT", &root);
    let cold = by_pyenv(world.run(&["python3", "main.py"])).env("PYENV_VERSION", &version).go();
    assert!(cold.text().contains(&version), "{cold:?}");
    let run = by_pyenv(world.hob(&["run", "python3", "main.py"])).env("PYENV_VERSION", &version);
    world.warm(&run, |outcome| assert_eq!(outcome, &cold));
    // A version file in the directory, and then another one.
    world.file(".python-version", format!("{version}\n"));
    let run = by_pyenv(world.hob(&["run", "main.py"]));
    let cold = by_pyenv(world.run(&["python3", "main.py"])).go();
    world.warm(&run, |outcome| assert_eq!(outcome, &cold));
    world.file(".python-version", "system\n");
    let cold = by_pyenv(world.run(&["python3", "main.py"])).go();
    assert!(cold.text().contains("/usr/bin/python3"), "{cold:?}");
    world.warm(&run, |outcome| assert_eq!(outcome, &cold));
}

/// Who opens a pipe to look at it, and closes it again, takes it from whoever writes to it.
#[test]
fn a_pipe_as_script_is_read_by_the_interpreter_alone() {
    let world = World::started();
    world.run(&["mkfifo", "pipe.py"]).go().succeeded();
    for words in [&["run"][..], &["run", "--cold"]] {
        for _ in 0..4 {
            let writer = world.run(&["sh", "-c", "echo 'print(6 * 7)' > pipe.py"]).start();
            writer.until_asleep();
            let run = world.hob(words).args(&["python3", "pipe.py"]).go();
            assert_eq!((run.text(), run.end), ("42\n".to_owned(), End::Code(0)), "{run:?}");
            writer.finish().succeeded();
            let reason = world.reason(run.pid);
            assert!(["not-a-program", "asked"].contains(&reason.as_str()), "{reason}");
        }
    }
    // What nobody writes to is no script, and nobody waits for it.
    let run = world.hob(&["run", "./pipe.py"]).go();
    assert_eq!(run.end, End::Code(126), "{run:?}");
    assert!(run.complaint().contains("not a regular file"), "{run:?}");
}

#[test]
fn pipes_in_the_place_of_settings_hold_nobody_up() {
    let world = World::started();
    world.file("main.py", "print('main')\n");
    for name in ["hob.toml", "pyvenv.cfg", ".python-version", "hooks.limits"] {
        world.run(&["mkfifo", name]).go().succeeded();
    }
    std::fs::create_dir(world.path("work/hooks")).unwrap();
    world.executable("hooks/one", "#!/bin/sh\necho one\n");
    world.run(&["mkfifo", "hooks/pipe"]).go().succeeded();
    let opened = world.path("work/opened");
    // Each writer would be let go by whoever opens its pipe.
    let names = ["hob.toml", "pyvenv.cfg", ".python-version", "hooks.limits", "hooks/pipe"];
    let line = |name: &str| format!("echo x > {name}; echo {name} >> {}", opened.display());
    let writers: Vec<_> =
        names.iter().map(|name| world.run(&["sh", "-c", &line(name)]).start()).collect();
    writers.iter().for_each(|writer| writer.until_asleep());
    let run = world.hob(&["run", "main.py"]);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "main\n"));
    for words in
        [&["status"][..], &["hooks", "run", "hooks"], &["trust"], &["doctor"], &["send", "x"]]
    {
        let _ = world.hob(words).go();
    }
    assert!(!opened.exists(), "opened: {}", std::fs::read_to_string(&opened).unwrap());
    for writer in &writers {
        writer.signal(Signal::TERM);
    }
    writers.into_iter().for_each(|writer| drop(writer.finish()));
}

/// Its interpreter is a file of the environment's own, whose name says no version.
#[test]
fn an_environment_of_copies_is_warm() {
    let world = World::started();
    world.run(&["python3", "-m", "venv", "--copies", "--without-pip", "env"]).go_long().succeeded();
    let python = world.path("work/env/bin/python");
    assert!(!python.is_symlink());
    world.file("main.py", "import sys\nprint(sys.prefix, sys.executable, sys.argv)\n");
    let outcome = world.warm_as_cold(&world.hob(&["run", "env/bin/python", "main.py"]));
    assert!(
        outcome.text().starts_with(&world.path("work/env ").display().to_string()),
        "{outcome:?}"
    );
    // What was made of another version than it says is not taken for it.
    let settings = world.path("work/env/pyvenv.cfg");
    let text = std::fs::read_to_string(&settings).unwrap();
    let version = text.lines().find(|line| line.starts_with("version")).expect("a version");
    std::fs::write(&settings, text.replace(version, "version = 3.2.1")).unwrap();
    std::fs::copy(&python, world.path("work/copy")).unwrap();
    std::fs::rename(world.path("work/copy"), &python).unwrap();
    let other = world.in_time(&world.hob(&["run", "env/bin/python", "main.py"]));
    assert_eq!(world.reason(other.pid), "interpreter-version");
}
