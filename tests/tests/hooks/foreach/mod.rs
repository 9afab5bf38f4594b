//! Hooks for many targets: each with its own parameters, what is left when a run ends before its
//! time, and that a second run does the rest.

mod given;
mod lines;
mod retries;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use hob_tests::run::kill;
use hob_tests::{End, Outcome, Run, Terminal, World, leftovers, wait};
use rustix::process::Signal;
use serde_json::Value;

/// Notes who it runs for; with `WAIT` set, then says that it waits, and waits until somebody
/// writes to `gate`.
const NOTES: &str = "#!/bin/sh\necho \"$HOST\" >> ran\n\
    if [ \"$WAIT\" ]; then echo $$ > waits; read line < gate; fi\necho \"out $HOST\"\n\
    case $HOST in *bad) echo \"no $HOST\" >&2; exit 3;; esac\n";

/// A world with a hooks directory of that one hook, and a gate.
fn noting() -> World {
    let world = World::new();
    world.executable("hooks.d/10-note", NOTES);
    world.run(&["mkfifo", "gate"]).go().succeeded();
    world
}

fn hooks(world: &World, words: &[&str]) -> Run {
    world.hob(&["hooks", "run", "hooks.d"]).args(words)
}

/// Who the hook ran for, in order.
fn ran(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("work/ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until the hook waits; its process.
fn waiting(world: &World) -> u32 {
    let file = world.path("work/waits");
    let pid = wait::until("a hook waits", || {
        let text = std::fs::read_to_string(&file).ok()?;
        text.ends_with('\n').then(|| text.trim().parse().ok()).flatten()
    });
    std::fs::remove_file(file).unwrap();
    pid
}

fn open_gate(world: &World) {
    OpenOptions::new().write(true).open(world.path("work/gate")).unwrap().write_all(b"\n").unwrap();
}

/// The one resume file.
fn resume_file(world: &World) -> Option<PathBuf> {
    let entries = std::fs::read_dir(world.path("state/hob/hooks")).ok()?;
    let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "resume");
    entries.map(|entry| entry.unwrap().path()).find(is_one)
}

fn summary(outcome: &Outcome) -> Value {
    serde_json::from_slice(&outcome.out).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

#[test]
fn each_target_has_its_own_parameters_and_sees_nothing_of_another() {
    let world = noting();
    world
        .executable("hooks.d/20-show", "#!/bin/sh\necho \"$HOST/$ONLY/$SHARED/$CALLERS\" >> all\n");
    world.file("t.csv", "HOST,ONLY\na,1\n\"b c\",\n");
    world.file(
        "t.ndjson",
        "{\"HOST\":\"d\",\"ONLY\":1.50}\n\n{\"HOST\":\"e\",\"SHARED\":\"own\"}\n",
    );
    for file in ["t.csv", "t.ndjson"] {
        let words = ["--for-each", file, "--set", "SHARED=s", "--jobs", "1", "--json"];
        let outcome = hooks(&world, &words).env("CALLERS", "c").go();
        outcome.succeeded();
        let summary = summary(&outcome);
        assert_eq!(summary["schema"], "hob.hooks-summary/1");
        assert_eq!((&summary["ended"], &summary["outcomes"]["ok"]), (&2.into(), &2.into()));
    }
    let all = std::fs::read_to_string(world.path("work/all")).unwrap();
    assert_eq!(all, "a/1/s/c\nb c//s/c\nd/1.50/s/c\ne//own/c\n");
    assert_eq!(resume_file(&world), None, "everything is done");
}

#[test]
fn what_failed_is_told_with_its_output_and_can_be_run_again() {
    let world = noting();
    world.file("t.csv", "HOST\na\nx-bad\nb\n");
    let outcome = hooks(&world, &["--for-each", "t.csv", "--jobs", "2"]).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let text = outcome.text();
    assert!(text.starts_with("3 targets · 2 ok · 1 error · 3 hooks in "), "{text}");
    assert!(text.contains("error x-bad (line 3): 10-note, exit code 3, after "), "{text}");
    assert!(text.contains("\n    no x-bad\n"), "{text}");
    assert!(text.contains("slowest targets") && text.contains("p99"), "{text}");
    assert!(outcome.complaint().contains("--resume=failed"), "{outcome:?}");
    assert!(
        !text.contains('\x1b') && !outcome.complaint().contains('\r'),
        "no terminal: {outcome:?}"
    );
    let rest = hooks(&world, &["--for-each", "t.csv", "--resume"]).go();
    assert_eq!((rest.end, ran(&world).len()), (End::Code(1), 3), "all have ended: {rest:?}");
    world.executable("hooks.d/10-note", NOTES.replace("exit 3", "exit 0"));
    let again = hooks(&world, &["--for-each", "t.csv", "--resume=failed"]).go();
    again.succeeded();
    assert!(again.text().starts_with("3 targets · 3 ok · "), "{again:?}");
    assert_eq!(ran(&world)[3..], ["x-bad"]);
    assert_eq!(resume_file(&world), None);
}

#[test]
fn a_mistake_is_named_with_its_place_and_nothing_runs() {
    let world = noting();
    world.file("t.ndjson", "{\"HOST\":\"a\"}\n{\"HOST\":[1]}\n");
    world.file("t.csv", "HOST,B\na,1\nb\n");
    let check = |words: &[&str], code: i32, want: &str| {
        let outcome = hooks(&world, words).go();
        assert_eq!(outcome.end, End::Code(code), "{outcome:?}");
        let said = outcome.complaint();
        assert!(said.contains(want) && said.lines().count() == 1, "{want}: {said}");
    };
    check(&["--for-each", "t.ndjson"], 2, "t.ndjson: line 2, column 9: `HOST`: a parameter is a");
    check(&["--for-each", "t.csv"], 2, "t.csv: line 3, column 2: it has 1 of the 2 fields");
    check(&["--for-each", "none.csv"], 2, "none.csv: No such file");
    world.file("t.csv", "HOST\na\n");
    check(&["--for-each", "t.csv", "--jobs", "0"], 2, "--jobs 0");
    check(&["--for-each", "t.csv", "--report", "r.pdf"], 2, ".json, .jsonl, .xml (JUnit) or .html");
    check(&["--for-each", "t.csv", "--report", "no/r.xml"], 5, "no/r.xml: No such file");
    assert_eq!(ran(&world), [""; 0]);
}

#[test]
fn a_dry_run_shows_what_would_run_and_runs_nothing() {
    let world = noting();
    world.executable("hooks.d/05-first", "#!/bin/sh\n");
    world.executable("hooks.d/x.bak", "#!/bin/sh\n");
    let piped =
        hooks(&world, &["--for-each", "-", "--dry-run"]).stdin("{\"HOST\":\"a b\"}\n{\"X\":1}\n");
    let outcome = piped.go();
    outcome.succeeded();
    assert_eq!(
        outcome.text(),
        "2 hooks for each of 2 targets, in this order:\n05-first\n10-note\ntargets, by line:\n\
         1 a b 'HOST=a b'\n2 1 X=1\n"
    );
    assert_eq!((ran(&world), resume_file(&world)), (Vec::new(), None));
    // A pipe can be read twice too.
    let mut feeding = hooks(&world, &["--for-each", "-"]).stdin_pipe().start();
    feeding.take_stdin().write_all(b"HOST\np\nq\n").unwrap();
    feeding.finish().succeeded();
    let mut names = ran(&world);
    names.sort();
    assert_eq!(names, ["p", "q"]);
}

#[test]
fn an_interrupt_finishes_what_runs_and_resume_does_the_rest() {
    let world = noting();
    world.file("t.csv", "HOST,WAIT\na,1\nb,\nc,\n");
    let words = ["--for-each", "t.csv", "--jobs", "1", "--report", "r.json"];
    let run = hooks(&world, &words).env("TERM", "xterm");
    let mut terminal = Terminal::open(&run);
    waiting(&world);
    terminal.keys("\x03");
    terminal.expect("ending: ^C again ends at once");
    open_gate(&world);
    terminal.expect("2 targets have not ended; the same command with --resume runs them");
    let (end, _) = terminal.finish();
    assert_eq!(end, End::Signal(2), "a shell sees the ^C");
    assert_eq!(ran(&world), ["a"]);
    let report: Value =
        serde_json::from_slice(&std::fs::read(world.path("work/r.json")).unwrap()).unwrap();
    assert_eq!((&report["ended"], &report["left"]), (&1.into(), &2.into()));
    let rest = hooks(&world, &words).args(&["--resume"]).go();
    rest.succeeded();
    assert!(rest.complaint().contains("resuming: 1 of 3 targets are done\n"), "{rest:?}");
    assert_eq!(ran(&world), ["a", "b", "c"]);
    let report: Value =
        serde_json::from_slice(&std::fs::read(world.path("work/r.json")).unwrap()).unwrap();
    let sittings: Vec<&Value> =
        report["targets"].as_array().unwrap().iter().map(|t| &t["sitting"]).collect();
    assert_eq!((sittings, &report["left"]), (vec![&0.into(), &1.into(), &1.into()], &0.into()));
}

#[test]
fn a_second_interrupt_ends_at_once_and_what_ran_is_named_when_it_is_resumed() {
    let world = noting();
    world.file("t.csv", "HOST,WAIT\na,1\nb,\n");
    let words = ["--for-each", "t.csv", "--jobs", "1"];
    let mut terminal = Terminal::open(&hooks(&world, &words).env("TERM", "xterm"));
    let hook = waiting(&world);
    terminal.keys("\x03");
    terminal.expect("ending");
    terminal.keys("\x03");
    assert_eq!(terminal.finish().0, End::Signal(2));
    assert!(wait::ended(hook, wait::LONG), "the hook was ended too");
    let rest = hooks(&world, &words).args(&["--resume", "--set", "X=1"]).start();
    waiting(&world);
    open_gate(&world);
    let rest = rest.finish();
    rest.succeeded();
    let said = rest.complaint();
    assert!(
        said.contains("1 had begun when that run ended, and nobody knows how far: a (line 2)"),
        "{said}"
    );
    assert_eq!(ran(&world), ["a", "a", "b"]);
}

#[test]
fn a_run_that_was_killed_is_resumed_where_it_was() {
    let world = noting();
    world.file("t.csv", "HOST,WAIT\na,\nx-bad,\nb,1\nc,\n");
    let words = ["--for-each", "t.csv", "--jobs", "1", "--report", "r.json"];
    let running = hooks(&world, &words).start();
    let hook = waiting(&world);
    // Nobody else works on them meanwhile.
    let other = hooks(&world, &words).go();
    assert_eq!(other.end, End::Code(5), "{other:?}");
    assert!(
        other.complaint().contains("another `hob hooks run` works on these targets"),
        "{other:?}"
    );
    running.signal(Signal::KILL);
    assert_eq!(running.finish().end, End::Signal(9));
    kill(hook, Signal::KILL);
    assert!(wait::ended(hook, wait::LONG));
    let rest = hooks(&world, &words).args(&["--resume"]).start();
    waiting(&world);
    open_gate(&world);
    let rest = rest.finish();
    assert_eq!(rest.end, End::Code(1), "of all, one failed: {rest:?}");
    assert!(
        rest.complaint().contains("resuming: 2 of 4 targets are done; 1 had begun"),
        "{rest:?}"
    );
    assert_eq!(ran(&world), ["a", "x-bad", "b", "b", "c"]);
    assert!(rest.text().starts_with("4 targets · 3 ok · 1 error"), "{rest:?}");
    assert!(!world.path("work/r.json").with_extension("hob").exists());
    // Without --resume everything runs anew, and what was there is put aside.
    std::fs::remove_file(world.path("work/ran")).unwrap();
    world.file("t.csv", "HOST,WAIT\na,\nx-bad,\n");
    let anew = hooks(&world, &["--for-each", "t.csv", "--jobs", "1"]).go();
    assert_eq!((anew.end, ran(&world)), (End::Code(1), vec!["a".to_owned(), "x-bad".to_owned()]));
}

/// Says that it runs, waits for everybody, and says how many of hob's threads have the pipe that
/// is its stdout.
const WHOSE_PIPE: &str = "#!/bin/sh\necho \"$HOST\" >> ran; read line < \"gate-$HOST\"\n\
    own=$(readlink /proc/$$/fd/1); has=0\n\
    for thread in /proc/$PPID/task/*; do\n\
        case $(ls -l \"$thread/fd\") in *\"$own\"*) has=$((has + 1));; esac\n\
    done\necho \"$has of $(ls /proc/$PPID/task | wc -l)\" > \"whose-$HOST\"\n";

/// Runs a program to which `unshare` is refused, as containers do by default.
const WITHOUT_UNSHARE: &str = "import ctypes, os, struct, sys\n\
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, {'x86_64': 272, 'aarch64': 97}[os.uname().machine]),\n\
             (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]\n\
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))\n\
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(code)))\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    assert libc.prctl(38, 1, 0, 0, 0) == 0\n\
    assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())\n\
    os.execv(sys.argv[1], sys.argv[1:])\n";

#[test]
fn what_runs_at_once_shares_no_pipe_among_hobs_threads() {
    let world = World::new();
    world.executable("hooks.d/10-show", WHOSE_PIPE);
    world.file("without.py", WITHOUT_UNSHARE);
    let hosts = ["a", "b", "c", "d"];
    world.file("t.csv", format!("HOST\n{}\n", hosts.join("\n")));
    for host in hosts {
        world.run(&["mkfifo", &format!("gate-{host}")]).go().succeeded();
    }
    let processors = std::thread::available_parallelism().unwrap().get();
    for (isolation, refused) in [("fastest", false), ("spawn", false), ("fastest", true)] {
        let words = ["hooks", "run", "hooks.d", "--for-each", "t.csv", "--jobs", "4"];
        let hob = if refused {
            world.run(&["python3", "without.py"]).args(&[world.binary().to_str().unwrap()])
        } else {
            world.run(&[world.binary().to_str().unwrap()])
        };
        let running = hob.args(&words).args(&["--isolation", isolation]).start();
        wait::until("all run", || (ran(&world).len() == hosts.len()).then_some(()));
        for host in hosts {
            let gate = world.path(format!("work/gate-{host}"));
            OpenOptions::new().write(true).open(gate).unwrap().write_all(b"\n").unwrap();
        }
        running.finish().succeeded();
        for host in hosts {
            let whose = std::fs::read_to_string(world.path(format!("work/whose-{host}"))).unwrap();
            let (has, of) = whose.trim().split_once(" of ").unwrap();
            assert_eq!(has, "1", "{host}, {isolation}, refused: {refused}");
            // A thread whose share is done has left.
            let threads = if refused { 1 } else { processors.min(4) };
            assert!(of.parse::<usize>().unwrap() <= threads, "{whose}");
        }
        std::fs::remove_file(world.path("work/ran")).unwrap();
    }
}

#[test]
fn a_long_target_keeps_nobody_waiting() {
    let world = noting();
    let rest: Vec<String> = (0..9).map(|n| format!("h{n},")).collect();
    for (jobs, long) in [("2", 0), ("3", 1), ("4", 8)] {
        let mut rows = rest.clone();
        rows.insert(long, "long,1".to_owned());
        world.file("t.csv", format!("HOST,WAIT\n{}\n", rows.join("\n")));
        let running = hooks(&world, &["--for-each", "t.csv", "--jobs", jobs, "--json"]).start();
        waiting(&world);
        wait::until("the others have run", || (ran(&world).len() == rows.len()).then_some(()));
        open_gate(&world);
        let outcome = running.finish();
        outcome.succeeded();
        assert_eq!(summary(&outcome)["outcomes"]["ok"], rows.len(), "{outcome:?}");
        std::fs::remove_file(world.path("work/ran")).unwrap();
    }
}

#[test]
fn signals_reach_hooks_of_every_thread() {
    // Two of a kind could become one.
    for signals in [&[Signal::TERM, Signal::INT][..], &[Signal::KILL]] {
        let world = World::new();
        let waits = "#!/bin/sh\necho $$ >> ran\nread line < gate\n";
        world.executable("hooks.d/10-wait", waits);
        world.run(&["mkfifo", "gate"]).go().succeeded();
        world.file("t.csv", "HOST\na\nb\nc\nd\n");
        let running = hooks(&world, &["--for-each", "t.csv", "--jobs", "4"]).start();
        wait::until("all run", || (ran(&world).len() == 4).then_some(()));
        signals.iter().for_each(|signal| running.signal(*signal));
        let ends: Vec<End> = signals.iter().map(|signal| End::Signal(signal.as_raw())).collect();
        let outcome = running.finish();
        assert!(ends.contains(&outcome.end), "{outcome:?}");
        wait::until("nothing of the run to be left", || {
            leftovers::processes(&world.path("work")).is_empty().then_some(())
        });
    }
}

#[test]
fn what_is_plain_has_no_line_of_progress() {
    let world = noting();
    world.file("t.csv", "HOST,WAIT\na,1\nb,\n");
    let words = ["--for-each", "t.csv", "--jobs", "1", "--plain"];
    let mut terminal = Terminal::open(&hooks(&world, &words).env("TERM", "xterm"));
    waiting(&world);
    // As long as a line is drawn ten times a second, it would have come by what follows.
    terminal.keys("\x03");
    terminal.expect("^C");
    open_gate(&world);
    let (_, shown) = terminal.finish();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("1 ok"), "{shown:?}");
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn the_progress_line_fits_the_window_and_has_no_colour_where_none_is_wanted() {
    let world = noting();
    let waits = |n: u32| if n == 25 { "1" } else { "" };
    let rows: String = (0..50)
        .map(|n| format!("h-{n}{},{}\n", if n == 3 { "bad" } else { "" }, waits(n)))
        .collect();
    world.file("t.csv", format!("HOST,WAIT\n{rows}"));
    let run = hooks(&world, &["--for-each", "t.csv", "--jobs", "1"])
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    let mut terminal = Terminal::open(&run);
    waiting(&world);
    terminal.expect("25/50 · 1 failed · ");
    terminal.expect("/s · ");
    terminal.expect(" left");
    terminal.resize(24, 30);
    terminal.expect("\r\x1b[K25/50 · 1 failed");
    terminal.resize(24, 80);
    terminal.expect("━");
    open_gate(&world);
    let (end, shown) = terminal.finish();
    assert_eq!(end, End::Code(1));
    let shown = String::from_utf8(shown).unwrap();
    for line in shown.split("\r\x1b[K") {
        let line = line.split("\r\n").next().unwrap();
        assert!(!line.contains('\x1b'), "only the line's own begin: {line:?}");
        assert!(line.chars().count() < 80, "{line:?}");
    }
    assert!(
        shown.contains("\r\x1b[K50 targets · 49 ok · 1 error"),
        "it is gone at the end: {shown:?}"
    );
}

#[test]
fn memory_does_not_grow_with_the_number_of_targets() {
    let world = World::new();
    std::fs::create_dir(world.path("work/empty.d")).unwrap();
    let measure = "import os, resource, subprocess, sys\n\
        code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)\n\
        print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n";
    world.file("measure.py", measure);
    let peak = |targets: usize| {
        let rows: String = (0..targets).map(|n| format!("host-{n},{}\n", "x".repeat(50))).collect();
        world.file("t.csv", format!("HOST,NOTE\n{rows}"));
        let mut words = vec!["python3", "measure.py"];
        let hob = world.binary().to_str().unwrap();
        words.extend([hob, "hooks", "run", "empty.d", "--for-each", "t.csv"]);
        words.extend(["--report", "r.json", "--report", "r.xml", "--report", "r.html"]);
        let text = world.run(&words).go().text();
        let (code, peak) = text.trim().split_once(' ').unwrap();
        assert_eq!(code, "0", "{text}");
        peak.parse::<u64>().unwrap()
    };
    let (few, many) = (peak(1_000), peak(20_000));
    assert!(many < few + 4 * 1024, "{few} KiB for 1,000, {many} KiB for 20,000");
    assert!(Path::new(&world.path("work/r.html")).metadata().unwrap().len() < 2_000_000);
}
