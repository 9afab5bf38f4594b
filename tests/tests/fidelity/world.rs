//! The caller's world in a warm call: streams, directory, arguments, environment, limits, signals.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use hob_tests::{Called, Run, Terminal, World, wait};

/// Shows its arguments as bytes.
const ARGUMENTS: &str = "import os, sys\nprint([os.fsencode(a) for a in sys.argv[1:]])\n";
const HELLO: &str = "print('hello')\n";

/// The same words after `python3` and after `hob run`, which must do the same until a call is warm.
fn same(world: &World, words: &[&OsStr], shape: impl Fn(Run) -> Run) {
    let cold = shape(world.run(&["python3"]).args(words)).go();
    world.warm(&shape(world.hob(&["run"]).args(words)), |outcome| assert_eq!(&cold, outcome));
}

#[test]
fn arguments_are_bytes() {
    let world = World::started();
    world.file("arguments.py", ARGUMENTS);
    let odd: [&[u8]; 7] = [b"", b"\xff\xfe", b"two\nlines", b"'q' \"d\"", b"-", b"--", b"\x01\x7f"];
    let mut words = vec![OsStr::new("arguments.py")];
    words.extend(odd.iter().map(|bytes| OsStr::from_bytes(bytes)));
    same(&world, &words, |run| run);
}

#[test]
fn the_environment_keeps_its_bytes_and_its_order() {
    let world = World::started();
    let script = "import os, subprocess, sys\nsys.stdout.buffer.write(b'|'.join(k + b'=' + v for k, v in os.environb.items()))\nsys.stdout.flush()\nsubprocess.run(['/usr/bin/env', '-0'])\n";
    world.file("environment.py", script);
    let mut exact = vec![OsStr::new("env"), OsStr::new("-i")];
    let folder = |name: &str, path: &str| format!("{name}={}", world.path(path).display());
    let ours = [
        folder("ZZ_LAST", "x"),
        folder("HOB_DIR", "run"),
        folder("XDG_STATE_HOME", "state"),
        folder("HOME", "home"),
    ];
    exact.extend(ours.iter().map(OsStr::new));
    exact.extend(
        ["PATH=/usr/bin:/bin", "AA=", "MULTI=a\nb", "EQ=a=b", "Z=1", "B=2"].map(OsStr::new),
    );
    exact.push(OsStr::from_bytes(b"BYTES=\xff\xfe"));
    same(&world, &[OsStr::new("environment.py")], |run| run.under(&exact));
    // A variable that differs from the zygote's own, one that is new, and one that is gone.
    let other = |run: Run| run.under(&exact).after("export B=3 NEW=n; unset Z");
    let words = [OsStr::new("environment.py")];
    let cold = other(world.run(&["python3"]).args(&words)).go();
    world.warm(&other(world.hob(&["run"]).args(&words)), |outcome| assert_eq!(&cold, outcome));
}

#[test]
fn stdin_is_shared_with_the_caller_at_its_offset() {
    let world = World::started();
    world.file(
        "line.py",
        "import sys\nsys.stdout.write('<' + sys.stdin.buffer.raw.read(6).decode() + '>')\n",
    );
    world.file("rest.py", "import sys\nprint([l for l in sys.stdin])\n");
    world.warmed(&["run", "line.py"]);
    world.warmed(&["run", "rest.py"]);
    let hob = world.binary().to_string_lossy().into_owned();
    let commands =
        |program: &str| format!("{program} line.py; {program} line.py; cat; {program} rest.py");
    let script = |program: &str| {
        world.run(&["sh", "-c", &commands(program)]).stdin("first\nsecondthird\nfourth")
    };
    assert_eq!(script("python3").go(), script(&format!("{hob} run")).go());
    let piped = |program: &str| {
        world.run(&[
            "sh",
            "-c",
            &format!("printf 'a\\nb' | {program} rest.py; {program} rest.py </dev/null"),
        ])
    };
    assert_eq!(piped("python3").go(), piped(&format!("{hob} run")).go());
}

#[test]
fn stdin_that_stays_open_is_waited_for() {
    let world = World::started();
    world.file(
        "sum.py",
        "import sys\nprint('ready', flush=True)\nprint(sum(map(int, sys.stdin)))\n",
    );
    world.warm(&world.hob(&["run", "sum.py"]).stdin("1\n"), |_| {});
    let mut running = world.hob(&["run", "sum.py"]).stdin_pipe().start();
    let mut stdin = running.take_stdin();
    running.expect("ready");
    for number in ["1\n", "2\n", "39\n"] {
        stdin.write_all(number.as_bytes()).unwrap();
    }
    drop(stdin);
    let outcome = running.finish();
    assert_eq!(outcome.text(), "ready\n42\n");
    assert_eq!(world.record(outcome.pid)["warm"], true);
}

#[test]
fn a_reader_that_leaves_ends_the_program_as_it_ends_it_cold() {
    let world = World::started();
    world.file("yes.py", "while True:\n    print('y')\n");
    world.file("yes_default.py", "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True:\n    print('y')\n");
    let hob = world.binary().to_string_lossy().into_owned();
    for file in ["yes.py", "yes_default.py"] {
        let pipe = |program: &str| {
            world.run(&[
                "bash",
                "-c",
                &format!("{program} {file} | head -1; echo ${{PIPESTATUS[@]}}"),
            ])
        };
        let cold = pipe("python3").go();
        wait::until(&format!("{file} is warm"), || {
            assert_eq!(cold, pipe(&format!("{hob} run")).go(), "{file}");
            let warm = |record: &Value| record["warm"] == true && record["program"]["name"] == file;
            world.records(4).iter().any(warm).then_some(())
        });
    }
}

#[test]
fn a_directory_that_is_gone_is_the_callers_own() {
    let world = World::started();
    world.file("where.py", "import os\ntry:\n    print(os.getcwd())\nexcept OSError as error:\n    print(error)\nprint(os.stat('.').st_nlink)\n");
    let file = world.path("work/where.py");
    for commands in
        ["cd /", "mkdir -p gone && cd gone && rmdir ../gone", "mkdir -p 'a b' && cd 'a b'"]
    {
        same(&world, &[file.as_os_str()], |run| run.after(commands));
    }
}

#[test]
fn umask_and_limits_are_the_callers() {
    let world = World::started();
    let script = "import os, resource as r\nm = os.umask(0)\nprint(oct(m))\nfor n in sorted(n for n in dir(r) if n.startswith('RLIMIT_')):\n    print(n, r.getrlimit(getattr(r, n)))\n";
    world.file("limits.py", script);
    let words = [OsStr::new("limits.py")];
    same(&world, &words, |run| run);
    same(&world, &words, |run| {
        run.after("umask 0127; ulimit -S -n 99; ulimit -c 0; ulimit -S -v 4000000")
    });
}

#[test]
fn a_signal_that_the_caller_ignores_stays_ignored() {
    let world = World::started();
    world.file("ignored.py", "import signal\nprint([n for n in (1, 2, 3, 15, 20) if signal.getsignal(n) == signal.SIG_IGN])\n");
    let words = [OsStr::new("ignored.py")];
    same(&world, &words, |run| run.after("trap '' INT HUP TERM"));
    same(&world, &words, |run| run.under(&["nohup"]));
}

#[test]
fn a_terminal_is_a_terminal_and_a_file_is_none() {
    let world = World::started();
    let text = "import os, sys\nprint([os.isatty(n) for n in (0, 1, 2)], sys.stdout.line_buffering, os.get_terminal_size(0), sys.stdin.encoding)\n";
    world.file("tty.py", text);
    let [cold, warm] = [Called::Cold, Called::Warm]
        .map(|how| Terminal::called(&world, "in-tty.py", text, how).finish());
    assert!(String::from_utf8_lossy(&cold.1).contains("columns=80"), "{cold:?}");
    assert_eq!(cold, warm);
    assert_eq!(world.records(1)[0]["warm"], true);
    same(&world, &[OsStr::new("tty.py")], |run| run);
}

#[test]
fn output_that_is_appended_to_is_appended_to() {
    let world = World::started();
    world.file("hello.py", HELLO);
    world.warmed(&["run", "hello.py"]);
    let log = world.file("log", "");
    let hob = world.binary().display();
    let commands = format!("for i in 1 2 3; do {hob} run hello.py; echo $i; done >>log 2>&1");
    world.run(&["sh", "-c", &commands]).go().succeeded();
    assert_eq!(fs::read_to_string(&log).unwrap(), "hello\n1\nhello\n2\nhello\n3\n");
}

#[test]
fn a_closed_stream_is_closed() {
    let world = World::started();
    world.file("closed.py", "import sys\nprint(sys.stdin, sys.stdout and 1, sys.stderr and 1)\n");
    for closing in ["<&-", "2>&-", "<&- 2>&-", ">&-"] {
        let begins = format!("exec {closing}");
        let cold = world.run(&["python3", "closed.py"]).after(&begins).go();
        let run = world.hob(&["run", "closed.py"]).after(&begins);
        world.warm(&run, |outcome| assert_eq!(cold, *outcome, "{closing}"));
    }
}

#[test]
fn large_output_comes_whole_and_in_order() {
    let world = World::started();
    world.file(
        "large.py",
        "import sys\nfor i in range(300000):\n    print(i)\nprint('end', file=sys.stderr)\n",
    );
    let cold = world.run(&["python3", "large.py"]).go();
    world
        .warm(&world.hob(&["run", "large.py"]), |outcome| assert!(&cold == outcome, "they differ"));
    let hob = world.binary().display();
    let piped = world.run(&["sh", "-c", &format!("{hob} run large.py | sha256sum")]).go();
    let want = world.run(&["sh", "-c", "python3 large.py | sha256sum"]).go();
    assert_eq!(piped, want);
}

#[test]
fn what_a_module_works_out_while_it_is_loaded_is_of_the_callers_zone_and_locale() {
    let world = World::started();
    let module = "import datetime, locale, sys\nzone = datetime.datetime(2026, 1, 1).astimezone().tzname()\nencoding = locale.getpreferredencoding(False), sys.getfilesystemencoding()\n";
    world.file("places.py", module);
    world.file(
        "place.py",
        "import places, time\nprint(places.zone, places.encoding, time.tzname)\n",
    );
    let run = |run: Run, zone: &str, locale: &str| run.env("TZ", zone).env("LC_ALL", locale);
    for (zone, locale) in [
        ("Asia/Kathmandu", "C.UTF-8"),
        ("America/Lima", "C.UTF-8"),
        ("America/Lima", "POSIX"),
        ("UTC", "C"),
    ] {
        let cold = run(world.run(&["python3", "place.py"]), zone, locale).go();
        let through = run(world.hob(&["run", "place.py"]), zone, locale);
        world.warm(&through, |outcome| assert_eq!(outcome, &cold));
    }
}

#[test]
fn what_the_interpreter_and_the_loader_read_is_the_callers() {
    let world = World::started();
    world.file("path/only.py", "name = 'only there'\n");
    world.file(
        "reads.py",
        "import sys\ntry:\n    from only import name\nexcept ImportError:\n    name = None\nprint(name, sys.flags.optimize, sys.flags.utf8_mode, sys.dont_write_bytecode, sys.stdout.encoding)\n",
    );
    let words = [OsStr::new("reads.py")];
    same(&world, &words, |run| run);
    let path = world.path("work/path");
    same(&world, &words, |run| run.env("PYTHONPATH", &path));
    for (name, value) in [
        ("PYTHONOPTIMIZE", "2"),
        ("PYTHONUTF8", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONIOENCODING", "latin-1"),
        ("LD_BIND_NOW", "1"),
        ("MALLOC_ARENA_MAX", "1"),
    ] {
        same(&world, &words, |run| run.env(name, value));
    }
}
