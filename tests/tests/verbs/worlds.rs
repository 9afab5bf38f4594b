//! The worlds in which `hob verify` runs a program: that each is tried and named, that what differs
//! there is found, and that nothing is made up.
//!
//! Which differences the runtime has is not decided here. Where one of them would be a fault, the
//! test looks itself, with the program in that world without hob and through it, and `hob verify`
//! must say what was seen.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::Path;

use hob_tests::{End, Outcome, Run, World, leftovers, wait};
use rustix::process::Signal;
use serde_json::Value;

/// A warm program has two descriptors more, which are hob's.
const COUNTS: &str = "import os\nprint(sorted(map(int, os.listdir('/proc/self/fd'))))\n";

/// How often a program is called until a call is warm.
const CALLS_MAX: usize = 20;

fn verified(run: &Run) -> (End, Value) {
    let outcome = run.go();
    let value = serde_json::from_slice(&outcome.out);
    (outcome.end, value.unwrap_or_else(|_| panic!("no JSON: {outcome:?}")))
}

fn verify(world: &World, words: &[&str]) -> (End, Value) {
    verified(&world.hob(&[&["verify", "-n", "1", "--json"], words].concat()))
}

fn worlds(verdict: &Value) -> Vec<&Value> {
    verdict["worlds"].as_array().unwrap_or_else(|| panic!("no worlds: {verdict}")).iter().collect()
}

fn in_world<'a>(verdict: &'a Value, name: &str) -> &'a Value {
    let found = worlds(verdict).into_iter().find(|part| part["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {verdict}"))
}

#[test]
fn a_plain_program_is_the_same_in_every_world_and_each_is_named() {
    let world = World::started();
    world.file("hello.py", "import json, sys\nprint('hello', len(sys.argv[0]) > 0)\nsys.exit(3)\n");
    let (end, verdict) = verify(&world, &["hello.py", "one"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"same".into()), "{verdict}");
    let mut tried = 0;
    for part in worlds(&verdict) {
        let name = part["name"].as_str().unwrap();
        // Nothing was given to read, and nothing is asked for; the rest is tried.
        let is_left_out = ["input-part", "input-null", "environment-read"].contains(&name);
        let expected = match name {
            _ if is_left_out => "not tried",
            "limits-core" if part["verdict"] == "not tried" => "not tried",
            _ => "same",
        };
        assert_eq!(part["verdict"], expected, "{part}");
        assert!(expected == "not tried" || !part["varied"].as_str().unwrap().is_empty(), "{part}");
        assert!(expected != "same" || part["runs"]["cold"].as_u64() >= Some(2), "{part}");
        tried += usize::from(expected != "not tried");
    }
    assert!(tried >= 21, "{verdict}");
    // It could do in earnest what it was only to try.
    assert!(worlds(&verdict).iter().all(|part| part["name"] != "arguments-none"), "{verdict}");
}

#[test]
fn a_list_of_worlds_is_all_that_is_tried() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    let (end, verdict) = verify(&world, &["--worlds", "umask,signals-hup,time", "counts.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(1), &"differs".into()), "{verdict}");
    let names: Vec<_> = worlds(&verdict).iter().map(|part| part["name"].clone()).collect();
    assert_eq!(names, ["time", "umask", "signals-hup"]);
    for part in worlds(&verdict) {
        assert_eq!(part["verdict"], "differs", "{part}");
        assert_eq!(part["different"], serde_json::json!(["stdout"]), "{part}");
    }
    let shown = world.hob(&["verify", "-n", "1", "--worlds", "umask", "counts.py"]).go();
    let text = shown.text();
    assert!(text.contains("\n  in 1 other world: differs "), "{text}");
    let line = text.lines().find(|line| line.starts_with("  umask"));
    assert_eq!(line, Some("  umask              differs           as in your own world"), "{text}");
    let (_, none) = verify(&world, &["--worlds", "none", "counts.py"]);
    assert!(worlds(&none).is_empty(), "{none}");
    // When the time is over, what is left is said to be so.
    let (_, late) = verify(&world, &["--within", "1ms", "counts.py"]);
    let last = *worlds(&late).last().unwrap();
    let said = (&last["verdict"], &last["reason"]);
    assert_eq!(said, (&"not tried".into(), &"the time was over".into()), "{late}");
}

#[test]
fn what_stands_still_in_warm_runs_alone_is_frozen_and_what_goes_on_is_not() {
    let world = World::started();
    world.file("set.py", "print({str(number) for number in range(40)})\n");
    world.file("parent.py", "import os\nprint('x')\nprint(os.getppid())\n");
    for (program, note) in
        [("set.py", Some("the hash seed, which copies share")), ("parent.py", None)]
    {
        let (end, verdict) = verify(&world, &["--worlds", "umask,time", program]);
        assert_eq!((end, &verdict["verdict"]), (End::Code(1), &"differs".into()), "{verdict}");
        for part in worlds(&verdict) {
            assert_eq!(part["verdict"], "frozen", "{part}");
            assert_eq!(part["different"], serde_json::json!(["stdout"]), "{part}");
        }
        let stdout = &in_world(&verdict, "time")["aspects"][0];
        assert_eq!(stdout.get("note").and_then(Value::as_str), note, "{verdict}");
    }
    // A clock of seconds stands still between two runs, cold and warm.
    let text = "import os, time\nprint(os.getpid(), time.time())\nprint(int(time.time()))\nprint(object())\n";
    world.file("goes.py", text);
    let (end, verdict) = verify(&world, &["--worlds", "umask,time", "goes.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"varies by itself".into()), "{verdict}");
}

/// What a program did in a world, as the test itself has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Same,
    Different,
    Cold,
}

/// Calls it until a call is warm, and returns that call; `None` if none was.
fn warm(world: &World, run: &Run) -> Option<Outcome> {
    for _ in 0..CALLS_MAX {
        let outcome = run.go();
        if hob_tests::is_warm(&world.record(outcome.pid)) {
            return Some(outcome);
        }
        wait::look(std::time::Duration::from_secs(2), || {
            let pools = world.status()["pools"].as_array().cloned().unwrap_or_default();
            pools.iter().all(|pool| pool["state"] == "warm" && pool["ready"] != 0).then_some(())
        });
    }
    None
}

/// Warms a program in one world, and compares what it does in another one with a run without hob.
fn looked(world: &World, first: &Run, then: &Run) -> Is {
    assert!(warm(world, first).is_some(), "{first:?}");
    let Some(warm) = warm(world, then) else { return Is::Cold };
    let cold = then.clone().env("HOB", "0").go();
    if warm == cold { Is::Same } else { Is::Different }
}

fn agrees(verdict: &Value, name: &str, is: Is) {
    let part = in_world(verdict, name);
    let expected: &[&str] = match is {
        Is::Same => &["same"],
        Is::Different => &["differs", "frozen"],
        Is::Cold => &["cold"],
    };
    assert!(expected.contains(&part["verdict"].as_str().unwrap()), "{is:?}: {part}");
}

#[test]
fn a_module_that_reads_the_input_while_it_is_imported_is_found_out_by_another_input() {
    let [one, two] = [World::started(), World::started()];
    for world in [&one, &two] {
        world.file("taken.py", "import sys\nwords = sys.stdin.read().split()\n");
        world.file("count.py", "import taken\nprint(len(taken.words))\n");
    }
    let run = |text: &str| one.hob(&["run", "count.py"]).stdin(text);
    let is = looked(&one, &run(""), &run("one two three\n"));
    let (_, verdict) = verify(&two, &["--worlds", "input", "count.py"]);
    agrees(&verdict, "input-pipe", is);
    agrees(&verdict, "input-file", is);
    assert_eq!(in_world(&verdict, "input-empty")["verdict"], "same", "{verdict}");
}

#[test]
fn a_module_that_keeps_a_signal_is_found_out_where_it_is_ignored() {
    let [one, two] = [World::started(), World::started()];
    for world in [&one, &two] {
        world.file("kept.py", "import signal\nhup = signal.getsignal(signal.SIGHUP)\n");
        world.file("hup.py", "import kept\nprint(kept.hup)\n");
    }
    let run =
        |how: &str| one.hob(&["run", "hup.py"]).under(&["env", &format!("--{how}-signal=HUP")]);
    let is = looked(&one, &run("default"), &run("ignore"));
    let verify = ["verify", "-n", "1", "--json", "--worlds", "signals", "hup.py"];
    let (_, verdict) = verified(&two.hob(&verify).under(&["env", "--default-signal=HUP"]));
    assert_eq!(in_world(&verdict, "signals-hup")["varied"], "SIGHUP ignored");
    agrees(&verdict, "signals-hup", is);
}

#[test]
fn a_start_that_asks_for_a_variable_is_found_out_by_another_value() {
    let [one, two] = [World::started(), World::started()];
    let within = |world: &World, run: Run| run.env("PYTHONPATH", world.path("work/starts"));
    for world in [&one, &two] {
        let text = "import os\nflavour = os.environ.get('FLAVOUR_91B2', 'none')\n";
        world.file("starts/sitecustomize.py", text);
        world.file("says.py", "import sitecustomize\nprint(sitecustomize.flavour)\n");
    }
    let run = within(&one, one.hob(&["run", "says.py"]));
    let is = looked(&one, &run, &run.clone().env("FLAVOUR_91B2", "verify"));
    let verify = ["verify", "-n", "1", "--json", "--worlds", "environment-read", "says.py"];
    let (_, verdict) = verified(&within(&two, two.hob(&verify)));
    let varied = &in_world(&verdict, "environment-read")["varied"];
    assert_eq!(varied, "other values: FLAVOUR_91B2", "{verdict}");
    agrees(&verdict, "environment-read", is);
}

#[test]
fn a_module_that_keeps_the_time_is_found_out_a_while_later() {
    let [one, two] = [World::started(), World::started()];
    for world in [&one, &two] {
        let text = "import datetime\nat = f'{datetime.datetime.now():%H:%M:%S.%f}'\n";
        world.file("kept.py", text);
        world.file("at.py", "import kept\nprint(kept.at)\n");
    }
    let run = one.hob(&["run", "at.py"]);
    let calls = [warm(&one, &run), warm(&one, &run)].map(|call| call.map(|call| call.out));
    let is = match calls {
        [Some(first), Some(second)] if first == second => Is::Different,
        [Some(_), Some(_)] => Is::Same,
        _ => Is::Cold,
    };
    let (_, verdict) = verify(&two, &["--worlds", "time", "at.py"]);
    let part = in_world(&verdict, "time");
    let expected = match is {
        Is::Same => "varies by itself",
        Is::Different => "frozen",
        Is::Cold => "cold",
    };
    assert_eq!(part["verdict"], expected, "{verdict}");
}

#[test]
fn a_module_that_keeps_where_a_link_leads_is_found_out_when_it_is_moved() {
    let [one, two] = [World::started(), World::started()];
    for world in [&one, &two] {
        let text = "import os, sys\nname = sys.argv[0]\n\
                    where = os.readlink(name) if os.path.islink(name) else 'none'\n";
        world.file("kept.py", text);
        let text = "import kept, os\nprint(os.path.basename(os.path.dirname(kept.where)))\n";
        world.file("leads.py", text);
    }
    for name in ["from", "to"] {
        std::fs::create_dir(one.path(name)).unwrap();
        symlink(one.path("work/leads.py"), one.path(name).join("leads.py")).unwrap();
    }
    let link = one.path("leads.py");
    let run = one.hob(&["run", link.to_str().unwrap()]);
    lead(&link, &one.path("from/leads.py"));
    assert!(warm(&one, &run).is_some());
    lead(&link, &one.path("to/leads.py"));
    let is = match warm(&one, &run) {
        Some(warm) if warm.text() == "to\n" => Is::Same,
        Some(_) => Is::Different,
        None => Is::Cold,
    };
    let (_, verdict) = verify(&two, &["--worlds", "link", "leads.py"]);
    agrees(&verdict, "link-moved", is);
    assert_eq!(in_world(&verdict, "link-called")["verdict"], "same", "{verdict}");
    in_world(&verdict, "link-replaced");
}

fn lead(link: &Path, target: &Path) {
    let new = link.with_extension("new");
    symlink(target, &new).unwrap();
    std::fs::rename(new, link).unwrap();
}

#[test]
fn what_is_piped_into_verify_is_what_the_program_reads() {
    let world = World::started();
    world.file("words.py", "import sys\nsys.exit(len(sys.stdin.read().split()))\n");
    let words = ["verify", "-n", "1", "--json", "--worlds", "input", "words.py"];
    let (_, verdict) = verified(&world.hob(&words).stdin("a b c\nd\n"));
    let exit = |part: &Value| {
        let aspects = part["aspects"].as_array().unwrap_or_else(|| panic!("{part}"));
        aspects.iter().find(|aspect| aspect["name"] == "exit").unwrap()["note"].clone()
    };
    assert_eq!(exit(&verdict), "exited 4");
    for (name, end) in [
        ("input-empty", "exited 0"),
        ("input-pipe", "exited 4"),
        ("input-part", "exited 3"),
        ("input-file", "exited 1"),
        ("input-null", "exited 0"),
    ] {
        assert_eq!(exit(in_world(&verdict, name)), end, "{name}: {verdict}");
    }
    // A pipe that stays open and silent gives nothing, and holds nobody.
    let mut running = world.hob(&words).stdin_pipe().start();
    let held = running.take_stdin();
    let outcome = running.finish();
    drop(held);
    let silent: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(exit(&silent), "exited 0");
}

#[test]
fn paths_among_the_arguments_keep_their_meaning_in_another_directory() {
    let world = World::started();
    world.file("below/text", "abc");
    world.file("word", "");
    let text =
        "import os, sys\nsys.exit(len(open(sys.argv[1]).read()) + 10 * len(os.listdir('.')))\n";
    world.file("size.py", text);
    let (_, verdict) = verify(&world, &["--worlds", "directory", "size.py", "below/text"]);
    let part = in_world(&verdict, "directory");
    assert_eq!(part["verdict"], "same", "{verdict}");
    assert_eq!(part["varied"], "an empty one, 2 paths made absolute");
    assert_eq!(part["aspects"][2]["note"], "exited 3", "{part}");
    // Whether this one means a file nobody can tell.
    let (_, verdict) = verify(&world, &["--worlds", "directory,arguments-none", "size.py", "word"]);
    let part = in_world(&verdict, "directory");
    assert_eq!(part["reason"], "argument 1 may name a file here", "{part}");
    assert_eq!(in_world(&verdict, "arguments-none")["verdict"], "same", "{verdict}");
}

#[test]
fn worlds_leave_nothing_behind_and_are_in_no_sums() {
    let world = World::started();
    let temporary = world.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mark = world.path("mark");
    let text = "import os, time\nif os.umask(0) == 0o77:\n    open(MARK, 'w').close()\n    time.sleep(60)\n";
    world.file("sleeps.py", text.replace("MARK", &format!("{mark:?}")));
    let words = ["verify", "-n", "1", "--worlds", "umask", "sleeps.py"];
    let under = |run: Run| run.env("TMPDIR", &temporary).after("umask 022");
    let running = under(world.hob(&words)).start();
    wait::until("the program", || mark.exists().then_some(()));
    running.signal(Signal::TERM);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(15), "{outcome:?}");
    assert_eq!(leftovers::files(&temporary), Vec::<std::path::PathBuf>::new());

    world.file("hello.py", "print('hello')\n");
    let words = ["verify", "-n", "1", "--worlds", "link", "hello.py"];
    under(world.hob(&words)).go().succeeded();
    assert_eq!(leftovers::files(&temporary), Vec::<std::path::PathBuf>::new());
    let all = ["log", "-n", "100", "--json", "--purpose", "all"];
    let log = world.hob(&all).go().text();
    assert!(log.contains("hob-verify-"), "{log}");
    let gain = world.hob(&["gain", "--json"]).go().text();
    assert!(gain.contains("\"programs\":[]"), "{gain}");
}

#[test]
fn a_world_is_a_list_of_names() {
    let world = World::started();
    for (option, value, says) in [
        ("--worlds", "weather", "there is no world `weather`: all, none, or time"),
        ("--within", "soon", "--within soon: is no time; one is written as"),
    ] {
        let outcome = world
            .hob(&[OsStr::new("verify"), option.as_ref(), value.as_ref(), "x.py".as_ref()])
            .go();
        assert_eq!(outcome.end, End::Code(2), "{outcome:?}");
        assert!(outcome.complaint().contains(says), "{outcome:?}");
    }
}
