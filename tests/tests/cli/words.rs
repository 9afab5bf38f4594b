//! The command line: help, mistakes, options.

use hob_tests::{End, Terminal, World};

/// The exit code and the one line of a call that is not run.
fn refused(world: &World, words: &[&str]) -> (End, String) {
    let outcome = world.hob(words).go();
    assert_eq!(outcome.text(), "", "{words:?}");
    assert_eq!(outcome.complaint().lines().count(), 1, "{words:?}: {outcome:?}");
    (outcome.end, outcome.complaint())
}

#[test]
fn what_cannot_be_run_gets_one_line_and_the_shells_code() {
    let world = World::started();
    world.file("text", "no program\n");
    world.file("unreadable.py", "print(1)\n");
    world.executable("lost", "#!/no/such/interpreter\n");
    world.executable("circle", "#!./circle\n");
    world.executable("env-lost", "#!/usr/bin/env no-such-interpreter\n");
    std::fs::create_dir(world.path("work/folder")).unwrap();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["no-such-program"], 127, "no-such-program: not found"),
        (&["./no-such-program"], 127, "./no-such-program: not found"),
        (&["no-such.py"], 127, "no-such.py: not found"),
        (&["./folder"], 126, "./folder"),
        (&["folder/x"], 127, "folder/x: not found"),
        (&["./text"], 126, "./text"),
        // As shells do: the interpreter is what is not found.
        (&["./lost"], 127, "./lost"),
        (&["text/x"], 127, "text/x: not found"),
        (&[""], 127, ""),
    ];
    for (words, code, line) in cases {
        let all: Vec<&str> = ["run"].iter().chain(words).copied().collect();
        let (end, said) = refused(&world, &all);
        assert_eq!(end, End::Code(code), "{words:?}: {said}");
        assert!(said.starts_with(&format!("hob: {line}")), "{words:?}: {said}");
        // In its own place the same is said, with the same code.
        let cold = world.hob(&all).env("HOB", "0").go();
        assert_eq!((cold.end, cold.complaint()), (end, said), "{words:?}");
    }
    for name in ["./circle", "./env-lost"] {
        let outcome = world.hob(&["run", name]).go();
        assert!(matches!(outcome.end, End::Code(126 | 127)), "{name}: {outcome:?}");
        assert_eq!(outcome.complaint().lines().count(), 1, "{name}: {outcome:?}");
    }
    assert!(world.daemon_if_any().is_some());
}

#[test]
fn a_refused_call_leaves_its_pipe_and_a_receipt() {
    let world = World::started();
    let daemon = world.daemon();
    let before = hob_tests::leftovers::descriptors(daemon);
    let hob = world.binary().display();
    // `cat` ends when nobody holds the pipe any more.
    let piped = world
        .run(&[
            "bash",
            "-c",
            &format!("{hob} run no-such-program 2>&1 | cat; echo ${{PIPESTATUS[@]}}"),
        ])
        .go();
    let said =
        "hob: no-such-program: not found; it is not on PATH: install it, or name it by its path";
    assert_eq!(piped.text(), format!("{said}\n127 0\n"));
    let outcome = world.in_time(&world.hob(&["run", "no-such-program"]));
    let record = world.record(outcome.pid);
    assert_eq!(
        (&record["outcome"]["kind"], &record["reason"]),
        (&"refused".into(), &"not-found".into()),
        "{record}"
    );
    assert_eq!(record["isolation"], "none");
    let folder = world.in_time(&world.hob(&["run", "/"]));
    assert_eq!(world.reason(folder.pid), "not-executable");
    let status = world.status();
    assert_eq!(
        (&status["calls"]["running"], &status["calls"]["refused_total"]),
        (&0.into(), &3.into()),
        "{status}"
    );
    let held = || hob_tests::leftovers::descriptors(daemon);
    hob_tests::wait::until("nothing is held", || (held() <= before).then_some(()));
}

#[test]
fn mistakes_are_named_before_anything_is_run() {
    let world = World::new();
    world.file("hello.py", "print('hello')\n");
    for words in [
        &["run"][..],
        &["run", "--"],
        &["run", "-m"],
        &["run", "--isolation", "jail", "hello.py"],
        &["run", "--timeout", "0", "hello.py"],
        &["run", "--timeout", "soon", "hello.py"],
        &["run", "--ahead", "65", "hello.py"],
        &["run", "--status-fd", "99", "hello.py"],
        &["run", "--unknown", "hello.py"],
    ] {
        let (end, said) = refused(&world, words);
        assert_eq!(end, End::Code(2), "{words:?}: {said}");
    }
    let outcome = world.hob(&["runn"]).go();
    assert_eq!(outcome.end, End::Code(2));
    assert!(outcome.complaint().contains("run"), "{outcome:?}");
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

#[test]
fn help_fits_the_screen_and_names_every_verb() {
    let world = World::new();
    let first = world.hob(&["--help"]).env("COLUMNS", "80").go();
    for verb in ["run", "shim", "last", "log", "why", "doctor", "hooks", "ab"] {
        assert!(first.text().contains(&format!("\n  {verb} ")), "{verb}: {}", first.text());
    }
    assert!(first.text().lines().count() <= 24, "{}", first.text());
    assert!(first.text().contains("hob help --all"), "{}", first.text());
    let help = world.hob(&["help", "--all"]).env("COLUMNS", "80").go();
    help.succeeded();
    let lifecycle = ["start", "stop", "restart"];
    let shows = ["last", "log", "status", "why", "top", "doctor", "shim", "trust", "completions"];
    for verb in ["run"].into_iter().chain(lifecycle).chain(shows) {
        assert!(help.text().contains(&format!("\n  {verb} ")), "{verb}: {}", help.text());
    }
    for words in [
        &["--help"][..],
        &["help", "--all"],
        &["run", "--help"],
        &["log", "--help"],
        &["doctor", "--help"],
        &["shim", "--help"],
        &["shim", "add", "--help"],
        &["top", "--help"],
        &["trust", "--help"],
        &["-h"],
    ] {
        let help = world.hob(words).env("COLUMNS", "80").go();
        help.succeeded();
        let widest = help.text().lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!((1..=80).contains(&widest), "{words:?}: {widest} columns");
    }
    let version = world.hob(&["--version"]).go();
    assert!(version.text().starts_with("hob "), "{version:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = world.hob(&["completions", shell]).go();
        script.succeeded();
        assert!(script.text().contains(&format!("HOB_COMPLETE={shell} hob")), "{shell}");
    }
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

#[test]
fn options_end_where_the_program_begins() {
    let world = World::started();
    world.file("arguments.py", "import sys\nprint(sys.argv[1:])\n");
    let outcome = world.hob(&["run", "arguments.py", "--cold", "--timeout", "-m", "--", "x"]).go();
    assert_eq!(outcome.text(), "['--cold', '--timeout', '-m', '--', 'x']\n");
    let outcome = world.hob(&["run", "--", "arguments.py", "--"]).go();
    assert_eq!(outcome.text(), "['--']\n");
}

#[test]
fn isolation_is_chosen_by_name_and_told_in_the_receipt() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    for (name, reason) in [("fork", None), ("standby", Some("standby-ready"))] {
        let run = world.hob(&["run", "--isolation", name, "hello.py"]);
        let warm = world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
        let record = world.record(warm.pid);
        assert_eq!(record["isolation"], name);
        if let Some(reason) = reason {
            assert!(record["reason"] == reason || record["reason"] == "queued", "{record}");
        }
    }
    for (words, reason) in [(&["--isolation", "spawn"][..], "spawn-asked"), (&["--cold"], "asked")]
    {
        let outcome = world.hob(&["run"]).args(words).args(&["hello.py"]).go();
        assert_eq!(outcome.text(), "hello\n");
        let record = world.record(outcome.pid);
        assert_eq!(
            (&record["warm"], &record["reason"], &record["isolation"]),
            (&false.into(), &reason.into(), &"spawn".into())
        );
    }
}

#[test]
fn without_copies_ahead_a_call_is_forked_on_demand() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    let run = world.hob(&["run", "--ahead", "0", "hello.py"]);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
    // What the first calls found ready may still be there.
    let found = (0..20).any(|_| {
        let outcome = run.go();
        assert_eq!(outcome.text(), "hello\n");
        world.reason(outcome.pid) == "forked-on-demand"
    });
    assert!(found, "{:?}", world.records(30));
    assert_eq!(world.pools()[0]["ahead"], 0);
}

#[test]
fn the_outcome_is_written_to_the_descriptor_that_was_named() {
    let world = World::started();
    world.file("exits.py", "import sys, os, signal\nif sys.argv[1] == 'kill':\n    os.kill(os.getpid(), signal.SIGTERM)\nsys.exit(int(sys.argv[1]))\n");
    let line = |word: &str, cold: bool| -> serde_json::Value {
        let path = world.path("work/line");
        let _ = std::fs::remove_file(&path);
        let mut run =
            world.hob(&["run", "--status-fd", "9", "exits.py", word]).after("exec 9>line");
        if cold {
            run = run.env("HOB", "0");
        }
        let _ = run.go();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    world.warm(&world.hob(&["run", "exits.py", "0"]), |_| {});
    let warm = hob_tests::wait::until("a warm outcome", || {
        Some(line("7", false)).filter(|one| one["warm"] == true)
    });
    assert_eq!(
        (&warm["schema"], &warm["outcome"], &warm["code"]),
        (&"hob.outcome/1".into(), &"exited".into(), &7.into())
    );
    assert!(warm["call"].as_u64().unwrap() > 0 && warm["reason"].is_null(), "{warm}");
    let killed = line("kill", false);
    assert_eq!(
        (&killed["signal"], &killed["code"]),
        (&15.into(), &serde_json::Value::Null),
        "{killed}"
    );
    let cold = line("7", true);
    assert_eq!(
        (&cold["code"], &cold["warm"], &cold["reason"], &cold["call"]),
        (&7.into(), &false.into(), &"bypassed".into(), &0.into()),
        "{cold}"
    );
}

#[test]
fn a_program_does_not_see_the_descriptor_of_the_outcome() {
    let world = World::started();
    // What it inherits shows in a program that it starts; its own runtime's are close-on-exec.
    world.file("lists.py", "import os, sys\nsys.stdout.flush()\nos.system('ls /proc/self/fd')\n");
    let plain = world.run(&["python3", "lists.py"]).go();
    let run = world.hob(&["run", "--status-fd", "9", "lists.py"]).after("exec 9>line");
    world.warm(&run, |outcome| assert_eq!(*outcome, plain));
}

#[test]
fn a_program_whose_imports_start_a_thread_is_not_forked_and_its_receipt_says_why() {
    let world = World::started();
    world.file("threaded.py", "import faulthandler\nfaulthandler.dump_traceback_later(10**6)\n");
    world.file("imports.py", "import os, threaded\nprint(len(os.listdir('/proc/self/task')))\n");
    let run = world.hob(&["run", "imports.py"]);
    let warm = world.warm(&run, |outcome| assert_eq!(outcome.text(), "2\n"));
    let record = world.record(warm.pid);
    assert_eq!(record["isolation"], "standby", "{record}");
    let why = record["demoted"].as_str().unwrap_or_default();
    assert!(why.starts_with("threads: "), "{record}");
    let pools = world.pools();
    assert_eq!(pools[0]["why"], record["demoted"], "{pools:?}");
}

#[test]
fn each_listing_names_its_format() {
    let world = World::started();
    world.hob(&["run", "--cold", "true"]).go().succeeded();
    for (words, schema) in [
        (&["last", "--json"][..], "hob.receipt/1"),
        (&["log", "--json"], "hob.receipt/1"),
        (&["status", "--json"], "hob.status/1"),
        (&["top", "--once", "--json"], "hob.top/1"),
        (&["doctor", "--json"], "hob.doctor/1"),
        (&["shim", "list", "--json"], "hob.shims/1"),
        (&["trust", "--list", "--json"], "hob.trust/1"),
    ] {
        let listing = world.hob(words).go();
        listing.succeeded();
        assert!(!listing.out.is_empty(), "{words:?}");
        for line in listing.text().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["schema"], schema, "{words:?}");
        }
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    for schema in ["receipt", "fallback", "outcome", "status", "top", "doctor", "shims", "trust"] {
        assert!(page.contains(&format!("hob.{schema}/1")), "{schema} is not documented");
    }
}

#[test]
fn a_reason_is_explained_without_a_daemon_and_an_unknown_one_has_its_neighbour_named() {
    let world = World::new();
    let said = world.hob(&["why", "--code", "stale"]).without("HOME").go();
    said.succeeded();
    assert!(said.text().starts_with("stale (cold)\n  means: a file, directory or"), "{said:?}");
    assert!(said.text().contains("\n  what to do: nothing: this call is"), "{said:?}");
    assert!(world.daemon_if_any().is_none());
    let refused = world.hob(&["why", "--code", "stael"]).go();
    assert_eq!(refused.end, End::Code(2));
    assert_eq!(refused.complaint(), "hob: stael: no reason code; did you mean `stale`?\n");
    let both = world.hob(&["why", "--code", "stale", "true"]).go();
    assert_eq!(both.end, End::Code(2));
}

#[test]
fn colour_is_where_it_is_asked_for_and_else_where_a_terminal_is() {
    let world = World::started();
    world.hob(&["run", "true"]).go().succeeded();
    assert_eq!(world.records(1).len(), 1);
    let last = |words: &[&str]| {
        let shown = world.hob(&[&["last"], words].concat()).go();
        shown.succeeded();
        shown.text().contains('\u{1b}')
    };
    assert!(!last(&[]) && !last(&["--color", "auto"]) && !last(&["--color=never"]));
    assert!(last(&["--color", "always"]));
    let wrong = world.hob(&["last", "--color", "green"]).go();
    assert_eq!(wrong.end, End::Code(2), "{wrong:?}");
    assert!(wrong.complaint().contains("always"), "{wrong:?}");
}

#[test]
fn a_verb_goes_on_under_its_former_name_and_says_the_new_one_on_a_terminal() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.hob(&["run", "hello.py"]).go().succeeded();
    let now = world.hob(&["last", "--call", "1", "--json"]).go();
    let former = world.hob(&["show", "1", "--json"]).go();
    assert_eq!((&former.out, &former.err), (&now.out, &now.err));
    former.succeeded();
    for (former, now) in [
        (&["show", "--help"][..], "hob last "),
        (&["help", "eval"], "hob session eval "),
        (&["help", "record", "start"], "hob trace record start "),
        (&["rights", "forget", "--help"], "hob serve rights forget "),
    ] {
        let help = world.hob(former).go();
        assert!(help.text().contains(&format!("Usage: {now}")), "{former:?}: {help:?}");
    }
    let mut terminal = Terminal::open(&world.hob(&["sessions"]));
    terminal.expect("hob: `hob sessions` is `hob session list` now\r\n");
}
