//! `hob why`: phases that add up, for programs of every kind, which are not changed by it.

use hob_tests::{End, Outcome, Run, Terminal, World, wait};
use rustix::process::Signal;
use serde_json::Value;

/// The report of a `hob why --json` that succeeded: whatever it is of, its phases add up.
fn report(outcome: &Outcome) -> Value {
    outcome.succeeded();
    let report: Value = serde_json::from_slice(&outcome.out).expect("the report is JSON");
    assert_eq!(report["schema"], "hob.why/1");
    let phases = report["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["exec", "link", "start", "imports", "main", "tail", "teardown"]);
    let sum: u64 = phases.iter().map(|phase| phase["us"].as_u64().unwrap()).sum();
    let wall = report["wall_us"].as_u64().unwrap();
    assert!(sum.abs_diff(wall) * 100 <= wall * 3, "{sum} of {wall}: {report}");
    report
}

fn us(report: &Value, name: &str) -> u64 {
    let phases = report["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == name).unwrap();
    phase["us"].as_u64().unwrap()
}

/// The phase that took longest.
fn longest(report: &Value) -> String {
    let phases = report["phases"].as_array().unwrap();
    let phase = phases.iter().max_by_key(|phase| phase["us"].as_u64()).unwrap();
    phase["name"].as_str().unwrap().to_owned()
}

fn why(world: &World, words: &[&str]) -> Run {
    world.hob(&["why", "--json", "--runs", "1"]).args(words)
}

/// Whether a command is there; what is not is said, and its test has nothing to check.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn is_there(command: &str) -> bool {
    let found = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|folder| std::path::Path::new(folder).join(command).is_file());
    if !found {
        eprintln!("skipped: there is no {command} on this machine");
    }
    found
}

#[test]
fn imports_count_however_they_are_made_and_the_dearest_is_named() {
    let world = World::new();
    world.file("slow.py", "import time\ntime.sleep(0.2)\n");
    world.file("plugin.py", "import time\ntime.sleep(0.4)\n");
    let text = "import slow, importlib\nprint('begin', flush=True)\n\
        importlib.import_module('plugin')\nprint('end')\n";
    world.file("imports.py", text);
    let report = report(&why(&world, &["imports.py"]).go());
    assert_eq!(longest(&report), "imports", "{report}");
    let dearest = report["imports"]["dearest"].as_array().unwrap();
    let names: Vec<_> = dearest.iter().take(2).map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["plugin", "slow"], "{report}");
    assert!(dearest.len() <= 10);
    let imported: u64 = dearest.iter().map(|one| one["self_us"].as_u64().unwrap()).sum();
    assert!(imported >= 500_000 && us(&report, "start") > 0 && us(&report, "link") > 0);
    let warm = &report["warm"];
    assert_eq!((&warm["hosted"], &warm["next"]), (&true.into(), &"hob run imports.py".into()));
    // What comes first is not imported again; what comes after something else is.
    let saves = warm["saves_us"].as_i64().unwrap();
    assert!(saves > 100_000, "{report}");
    assert_eq!(warm["repeated"]["why"]["later"], 1, "{report}");
    assert_eq!(warm["repeated"]["dearest"][0]["name"], "plugin", "{report}");
    assert!(warm["repeated"]["stopped"].as_str().unwrap().ends_with("imports.py:2"), "{report}");
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

#[test]
fn the_tail_is_what_follows_the_last_byte_and_main_what_precedes_it() {
    let world = World::new();
    let text = "import sys, time\ntime.sleep(float(sys.argv[1]))\n\
        print('x', flush=True)\ntime.sleep(float(sys.argv[2]))\n";
    world.file("sleeps.py", text);
    for (before, after, phase) in [("0.5", "0", "main"), ("0", "0.5", "tail")] {
        let report = report(&why(&world, &["sleeps.py", before, after]).go());
        assert_eq!(longest(&report), phase, "{report}");
        // Both are the program's own: neither would vanish.
        assert!(report["warm"]["predicted_us"].as_u64().unwrap() > 300_000, "{report}");
    }
    world.file("silent.py", "import time\ntime.sleep(0.5)\n");
    assert_eq!(longest(&report(&why(&world, &["silent.py"]).go())), "main");
}

#[test]
fn a_module_begins_where_its_first_file_is_opened() {
    let world = World::new();
    world.file("tool/__init__.py", "import time\ntime.sleep(0.5)\n");
    world.file("tool/__main__.py", "print('x')\n");
    let report = report(&why(&world, &["-m", "tool", "--flag"]).go());
    assert_eq!(longest(&report), "imports", "{report}");
    assert_eq!(report["imports"]["dearest"][0]["name"], "tool");
    assert_eq!(report["warm"]["next"], "hob run -m tool --flag");
    assert_eq!(
        (&report["program"]["name"], &report["program"]["arguments"]),
        (&"tool".into(), &1.into())
    );
}

/// Appends what a program sees of itself to `seen`, one line a run.
const SEES: &str = "import os, sys\nfd = os.open('/dev/null', 0)\n\
    line = repr((sorted(os.environ.items()), sys.path, sys.argv, sys.orig_argv, fd, sys.flags,\n\
        'sitecustomize' in sys.modules, getattr(sys, 'marker', None), os.umask(0),\n\
        sorted(sys.path_importer_cache), __file__, os.getcwd()))\n\
    open('seen', 'a').write(line + '\\n')\n";

#[test]
fn the_program_sees_the_same_world_watched_as_plain() {
    let world = World::new();
    world.file("sees.py", SEES);
    world.file("site/sitecustomize.py", "import sys\nsys.marker = 'mine'\n");
    let own = world.path("work/site").into_os_string().into_string().unwrap();
    for (path, marker) in [(None, "None"), (Some(own), "'mine'")] {
        let mut run = world.hob(&["why", "--json", "--runs", "2", "sees.py", "one"]);
        if let Some(path) = path {
            run = run.env("PYTHONPATH", path);
        }
        report(&run.go());
        let seen = std::fs::read_to_string(world.path("work/seen")).unwrap();
        let lines: Vec<_> = seen.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| *line == lines[0]), "{seen}");
        assert!(lines[0].contains(marker), "{seen}");
        std::fs::remove_file(world.path("work/seen")).unwrap();
    }
}

#[test]
fn an_interpreter_that_ignores_pythonpath_is_told_of_and_nothing_is_predicted() {
    let world = World::new();
    world.file("hello.py", "import json\nprint('hello')\n");
    let report = report(&why(&world, &["python3", "-I", "hello.py"]).go());
    assert_eq!(report["imports"], Value::Null);
    assert_eq!(report["warm"]["predicted_us"], Value::Null);
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.contains("-I"), "{report}");
}

#[test]
fn a_shell_script_has_its_start_and_what_it_starts_is_left_alone() {
    let world = World::new();
    world.executable(
        "late",
        "#!/bin/sh\necho begun\n(sleep 0.2; cat /proc/version >late.txt) >/dev/null 2>&1 &\n",
    );
    let report = report(&why(&world, &["./late"]).go());
    assert_eq!(report["program"]["runtime"], "shell");
    assert!(us(&report, "start") > 0 && us(&report, "exec") > 0, "{report}");
    assert_eq!(report["warm"]["hosted"], false);
    assert!(report["warm"]["why_not"].as_str().unwrap().contains("shell"), "{report}");
    // It opens files after its watcher has left.
    wait::until("what was left in the background is done", || {
        std::fs::read(world.path("work/late.txt")).ok().filter(|text| !text.is_empty())
    });
}

#[test]
fn a_static_binary_has_neither_linking_nor_start() {
    if !is_there("gcc") {
        return;
    }
    let world = World::new();
    world.file("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 3; }\n");
    world.run(&["gcc", "-static", "-o", "static", "hello.c"]).go().succeeded();
    world.run(&["gcc", "-o", "dynamic", "hello.c"]).go().succeeded();
    for (name, linked) in [("./static", false), ("./dynamic", true)] {
        let report = report(&why(&world, &[name]).go());
        assert_eq!(report["program"]["runtime"], "native");
        assert_eq!(report["exit"]["code"], 3);
        assert_eq!((us(&report, "link") > 0, us(&report, "start")), (linked, 0), "{report}");
        assert!(us(&report, "exec") > 0 && us(&report, "main") > 0, "{report}");
    }
}

#[test]
fn node_is_loading_until_its_last_module() {
    if !is_there("node") {
        return;
    }
    let world = World::new();
    world.file("slow.js", "const end = Date.now() + 400; while (Date.now() < end);\n");
    world.file("last.js", "");
    world.file("main.js", "require('./slow.js'); require('./last.js'); console.log('x')\n");
    let report = report(&why(&world, &["node", "main.js"]).go());
    assert_eq!(report["program"]["runtime"], "node");
    let dearest = report["imports"]["dearest"][0]["name"].as_str().unwrap();
    assert!(dearest.ends_with("/slow.js"), "{report}");
    // The phases are those of the watched run, fitted to a plain one: a machine that was busy in
    // one of the two only stretches that one.
    let [wall, watched] = ["wall_us", "watched_us"].map(|name| report[name].as_u64().unwrap());
    assert!(us(&report, "imports") * watched / wall >= 300_000, "{report}");
    assert!(us(&report, "start") > 0, "{report}");
}

#[test]
fn a_jvm_starts_until_its_class_is_opened() {
    if !is_there("java") || !is_there("javac") {
        return;
    }
    let world = World::new();
    let text = "public class Main { public static void main(String[] a) throws Exception \
        { Thread.sleep(1500); System.out.println(1); } }\n";
    world.file("Main.java", text);
    world.run(&["javac", "Main.java"]).go().succeeded();
    let report = report(&why(&world, &["java", "-cp", ".", "Main"]).go());
    assert_eq!(report["program"]["runtime"], "jvm");
    assert!(us(&report, "start") > 0 && us(&report, "main") > 1_000_000, "{report}");
}

#[test]
fn perl_and_ruby_name_the_files_that_they_load() {
    let world = World::new();
    let scripts = [
        ("perl", "pl", "use lib '.'; use Slow; print 1;\n", "Slow.pm", "sleep 1; 1;\n"),
        ("ruby", "rb", "require './Slow'\nrequire 'set'\nputs 1\n", "Slow.rb", "sleep 1\n"),
    ];
    for (name, ending, text, module, slow) in scripts.iter().filter(|one| is_there(one.0)) {
        let script = format!("main.{ending}");
        world.file(&script, text);
        world.file(module, slow);
        let report = report(&why(&world, &[name, &script]).go());
        assert_eq!(report["program"]["runtime"], *name);
        let loaded = report["imports"]["count"].as_u64();
        assert!(us(&report, "start") > 0 && loaded.is_some(), "{report}");
    }
}

#[test]
fn what_the_program_writes_never_mixes_with_the_report() {
    let world = World::new();
    world.file(
        "writes.py",
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(4)\n",
    );
    let silent = why(&world, &["writes.py"]).go();
    assert_eq!(
        (report(&silent)["exit"]["code"].as_u64(), silent.complaint()),
        (Some(4), String::new())
    );
    let shown = world.hob(&["why", "--json", "--show-output", "--runs", "2", "writes.py"]).go();
    report(&shown);
    let mut lines: Vec<String> = shown.complaint().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["err", "out"]);
    world.file("floods.py", "import sys\nsys.stdout.write('x' * (32 << 20))\n");
    assert_eq!(report(&why(&world, &["floods.py"]).go())["exit"]["code"], 0);
}

#[test]
fn the_text_fits_80_columns_and_says_what_to_type_next() {
    let world = World::new();
    world.file(
        "a-rather-long-name-of-a-script-that-does-very-little.py",
        "import argparse, json\nprint('x')\n",
    );
    let name = "a-rather-long-name-of-a-script-that-does-very-little.py";
    let outcome = world.hob(&["why", "--runs", "1", name]).go();
    outcome.succeeded();
    let text = outcome.text();
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{text}");
    for part in ["imports", "teardown", "dearest", "warm      about", "next      hob run"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn warm_calls_that_were_measured_stand_beside_the_prediction() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    assert_eq!(report(&why(&world, &["hello.py"]).go())["warm"]["measured"], Value::Null);
    world.warmed(&["run", "hello.py"]);
    let report = report(&why(&world, &["hello.py"]).go());
    let measured = &report["warm"]["measured"];
    assert!(
        measured["calls"].as_u64() >= Some(1) && measured["p50_us"].as_u64() > Some(0),
        "{report}"
    );
}

#[test]
fn a_file_can_be_put_back_before_each_execution() {
    let world = World::new();
    world.file("once.py", "import os\nos.remove('input')\n");
    let run =
        world.hob(&["why", "--json", "--runs", "2", "--prepare", "touch input; echo >>count"]);
    assert_eq!(report(&run.args(&["once.py"]).go())["exit"]["code"], 0);
    assert_eq!(std::fs::read(world.path("work/count")).unwrap(), b"\n".repeat(4));
    let failed = world.hob(&["why", "--prepare", "exit 3", "once.py"]).go();
    assert_eq!(failed.end, End::Code(1));
    assert!(failed.complaint().starts_with("hob: --prepare: "), "{failed:?}");
}

#[test]
fn what_cannot_be_measured_gets_one_line_and_the_code_of_run() {
    let world = World::new();
    world.file("text", "no program\n");
    world.executable("lost", "#!/no/such/interpreter\n");
    let cases: [(&[&str], i32); 6] = [
        (&["no-such-program"], 127),
        (&["./text"], 126),
        (&["./lost"], 127),
        (&["-m"], 2),
        (&["--runs", "0", "/bin/true"], 2),
        (&[], 2),
    ];
    for (words, code) in cases {
        let outcome = world.hob(&["why"]).args(words).go();
        assert_eq!((outcome.end, outcome.text()), (End::Code(code), String::new()), "{outcome:?}");
        assert!(!outcome.complaint().is_empty());
        if code > 2 {
            assert_eq!(outcome.complaint().lines().count(), 1, "{outcome:?}");
            let run = world.hob(&["run"]).args(words).env("HOB", "0").go();
            assert_eq!((run.end, run.complaint()), (outcome.end, outcome.complaint()));
        }
    }
    let killed = report(&why(&world, &["sh", "-c", "kill -9 $$"]).go());
    assert_eq!(killed["exit"]["signal"], 9);
}

#[test]
fn at_a_terminal_the_rounds_are_counted_and_then_wiped_away() {
    let world = World::new();
    world.file("waits.py", "import time\ntime.sleep(0.3)\n");
    let run = world.hob(&["why", "--runs", "3", "waits.py"]);
    let mut terminal = Terminal::open(&run);
    terminal.expect("round 3 of 3");
    terminal.expect("\r\u{1b}[K");
    terminal.expect("next      hob run waits.py");
    assert_eq!(terminal.finish().0, End::Code(0));
}

#[test]
fn where_watching_is_refused_one_line_says_so() {
    if !is_there("strace") {
        return;
    }
    let world = World::new();
    // Its child has a tracer already, and cannot have two.
    let outcome =
        world.hob(&["why", "/bin/true"]).under(&["strace", "-f", "-qq", "-o", "/dev/null"]);
    let outcome = outcome.go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert_eq!(outcome.complaint().lines().count(), 1, "{outcome:?}");
    assert!(outcome.complaint().contains("ptrace is refused"), "{outcome:?}");
}

#[test]
fn given_up_it_leaves_nothing() {
    let world = World::new();
    std::fs::create_dir(world.path("tmp")).unwrap();
    let text = "import os, time\nopen('pids', 'a').write(f'{os.getpid()}\\n')\ntime.sleep(600)\n";
    world.file("waits.py", text);
    let run = world.hob(&["why", "waits.py"]).env("TMPDIR", world.path("tmp"));
    let running = run.start();
    let pid: u32 = wait::until("the program runs", || {
        let text = std::fs::read_to_string(world.path("work/pids")).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    });
    running.signal(Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(130), "{outcome:?}");
    assert_eq!(outcome.complaint().lines().count(), 1, "{outcome:?}");
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0);
}

#[test]
fn what_each_call_imports_again_is_said_and_done_by_nobody_meanwhile() {
    let world = World::new();
    let work = "import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\n";
    let counts = "open('count', 'a').write('x')\n";
    world.file("does.py", format!("import heavy\n{counts}{work}"));
    world.file("over.py", "import does\n");
    world.file("heavy.py", "import json\nfor _ in range(10000): json.dumps('x')\n");
    world.file("main.py", "import over\nprint('x')\n");
    let report = report(&why(&world, &["main.py"]).go());
    let warm = &report["warm"];
    let repeated = &warm["repeated"];
    assert_eq!(repeated["modules"], 2, "{report}");
    assert_eq!(repeated["why"]["state"], 2, "{report}");
    assert!(repeated["first"].as_str().unwrap().ends_with("/does.py:2"), "{report}");
    assert!(warm["parts"]["imports_us"].as_u64().unwrap() > 200_000, "{report}");
    assert!(warm["predicted_us"].as_u64().unwrap() > 300_000, "{report}");
    // As often as it was executed, and not once more: plain and watched.
    assert_eq!(std::fs::read_to_string(world.path("work/count")).unwrap(), "xx");
    let shown = world.hob(&["why", "--runs", "1", "main.py"]).go();
    let text = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "repeated 2 modules (",
        ") are imported by each call, since they would change something outside; the first at ",
        "/does.py:2 ",
        "what each call imports does ",
        "changes something outside over ",
    ] {
        assert!(text.contains(told), "{told}: {}", shown.text());
    }
}

#[test]
fn that_a_program_ends_as_another_one_is_said_with_its_name() {
    let world = World::new();
    world.file("second.py", "print('x')\n");
    let hands = "import os, sys\nos.execv(sys.executable, [sys.executable, 'second.py'])\n";
    world.file("first.py", hands);
    let said = |program: &str| report(&why(&world, &[program]).go())["notes"].to_string();
    assert!(
        said("first.py").contains("executes second.py in its own place"),
        "{}",
        said("first.py")
    );
    assert!(!said("second.py").contains("in its own place"), "{}", said("second.py"));
}

#[test]
fn there_is_one_verdict_and_what_is_behind_the_programs_own_finder_is_named_with_its_time() {
    let world = World::new();
    world.file("large.py", "VALUE = sum(range(300_000))\n");
    let text = "import json, sys\nclass Finder:\n    def find_spec(self, *_): return None\n\
        sys.meta_path.insert(0, Finder())\nimport large\nprint(large.VALUE)\n";
    world.file("main.py", text);
    let report = report(&world.hob(&["why", "--json", "main.py"]).go());
    let (warm, repeated) = (&report["warm"], &report["warm"]["repeated"]);
    assert_eq!(repeated["why"]["finder"], 1, "{report}");
    assert_eq!(repeated["dearest"][0]["name"], "large", "{report}");
    assert_eq!(repeated["dearest"][0]["why"], "finder", "{report}");
    assert!(repeated["dearest"][0]["self_us"].as_u64() > Some(0), "{report}");
    assert!(repeated["self_us"].as_u64() >= repeated["dearest"][0]["self_us"].as_u64(), "{report}");
    let verdict = &warm["verdict"];
    assert_eq!(verdict["from"], "tried", "{report}");
    assert_eq!(verdict["warm"]["us"], warm["predicted_us"], "{report}");
    assert_eq!(verdict["cold"]["us"], report["wall_us"], "{report}");
    for side in ["warm", "cold"] {
        let of = |name: &str| verdict[side][name].as_u64();
        assert!(of("calls") >= Some(1) && of("low_us") <= of("us"), "{report}");
        assert!(of("us") <= of("high_us"), "{report}");
    }
    let shown = world.hob(&["why", "main.py"]).go().text();
    let verdicts = shown.lines().filter(|line| line.starts_with("warm      ")).count();
    assert_eq!(verdicts, 1, "{shown}");
    for line in ["tried", "measured"] {
        assert!(!shown.lines().any(|each| each.starts_with(line)), "{shown}");
    }
}

#[test]
fn a_program_whose_imports_all_are_kept_says_nothing_of_them() {
    let world = World::new();
    world.file("part.py", "import atexit, json, shutil, tempfile\n");
    world.file("main.py", "import part\nprint('x')\n");
    let report = report(&why(&world, &["main.py"]).go());
    assert_eq!(report["warm"]["repeated"]["modules"], 0, "{report}");
    assert_eq!(report["warm"]["parts"]["imports_us"], 0, "{report}");
}

/// Says whether it is a call of the daemon that `hob why` has for itself.
const TRIED: &str = "import os, sys, time\ntried = 'hob-why-' in os.environ['HOB_DIR']\n";

#[test]
fn warm_calls_of_it_are_tried_in_a_daemon_of_its_own() {
    let world = World::new();
    std::fs::create_dir(world.path("tmp")).unwrap();
    let text = "import json\nopen('seen', 'a').write(json.dumps([tried, sys.argv, os.getcwd(),\n\
        os.umask(0), {k: v for k, v in os.environ.items() if k != 'HOB_DIR'}]) + '\\n')\n\
        time.sleep(0.05)\n";
    world.file("sees.py", format!("{TRIED}{text}"));
    let run = world.hob(&["why", "--json", "sees.py", "one"]).env("TMPDIR", world.path("tmp"));
    let run = run.env("HOB", "1");
    let report = report(&run.go());
    let (warm, tried) = (&report["warm"], &report["warm"]["tried"]);
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(number(&tried["calls"]) >= 3, "{report}");
    assert!(tried["low_us"].as_u64() <= tried["high_us"].as_u64(), "{report}");
    let predicted = number(&warm["predicted_us"]);
    assert!(predicted >= 50_000, "the program itself was called: {report}");
    let parts = ["call_us", "own_us", "imports_us"].map(|name| number(&warm["parts"][name]));
    assert_eq!(parts.iter().sum::<u64>(), predicted, "{report}");
    let seen = std::fs::read_to_string(world.path("work/seen")).unwrap();
    let mut lines: Vec<Vec<Value>> =
        seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let how_many = |lines: &[Vec<Value>]| lines.iter().filter(|one| one[0] == true).count() as u64;
    assert!(how_many(&lines) > number(&tried["calls"]), "more were executed than count: {report}");
    // `HOB` decides whether hob is used at all, and is not handed on.
    for line in &mut lines {
        line[4].as_object_mut().unwrap().remove("HOB");
    }
    assert!(lines.iter().all(|line| line[1..] == lines[0][1..]), "{seen}");
    assert!(!world.hob_dir().exists(), "the caller's daemon was not started");
    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0);
}

#[test]
fn what_is_not_warm_or_ends_otherwise_is_not_counted() {
    let world = World::new();
    world.file("differs.py", format!("{TRIED}sys.exit(3 if tried else 0)\n"));
    // Whoever changes what it loads is never what was loaded, and that takes longer than a turn.
    world.file("part.py", "import time\ntime.sleep(0.1)\n");
    let text = "open(part.__file__, 'a').write('#')\n";
    world.file("changes.py", format!("import part\n{TRIED}{text}"));
    for (script, told) in
        [("differs.py", "did not end"), ("changes.py", "no warm state of their own (`")]
    {
        // Who writes no compiled file has nothing to do for itself: it is loaded ahead.
        let run = world.hob(&["why", "--json", script]).env("PYTHONDONTWRITEBYTECODE", "1");
        let report = report(&run.go());
        assert_eq!(report["warm"]["tried"], Value::Null, "{report}");
        assert!(report["warm"]["predicted_us"].as_u64() > Some(0), "{report}");
        assert!(report["notes"].to_string().contains(told), "{report}");
    }
}

#[test]
fn who_asks_for_a_number_of_runs_gets_no_more() {
    let world = World::new();
    world.file("counts.py", "open('count', 'a').write('x')\n");
    let report = report(&why(&world, &["counts.py"]).go());
    assert_eq!(std::fs::read_to_string(world.path("work/count")).unwrap(), "xx");
    assert_eq!(report["warm"]["tried"], Value::Null);
}

#[test]
fn given_up_while_warm_calls_are_tried_it_leaves_nothing() {
    let world = World::new();
    std::fs::create_dir(world.path("tmp")).unwrap();
    let text = "if tried:\n    open('pids', 'a').write(f'{os.getpid()}\\n')\n    time.sleep(600)\n";
    world.file("waits.py", format!("{TRIED}{text}"));
    let run = world.hob(&["why", "waits.py"]).env("TMPDIR", world.path("tmp"));
    let running = run.start();
    let pid: u32 = wait::until("the program is tried", || {
        let text = std::fs::read_to_string(world.path("work/pids")).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    });
    running.signal(Signal::TERM);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(143), "{outcome:?}");
    wait::until("the program has ended", || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0);
}
