//! What is kept of a call, what of it is shown, and what never is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use hob_tests::bytes::contains;
use hob_tests::run::{kill, read};
use hob_tests::{End, World, leftovers, wait};
use rustix::process::Signal;
use serde_json::Value;

use crate::browser::pixels;

#[test]
fn the_last_receipt_is_of_the_call_that_has_just_ended() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    for words in [&["run", "hello.py"][..], &["run", "--cold", "hello.py"], &["run", "true"]] {
        for _ in 0..5 {
            let outcome = world.hob(words).go();
            let last = world.hob(&["last", "--json"]).go();
            let last: Value = serde_json::from_slice(&last.out).unwrap();
            assert_eq!(last["caller_pid"], outcome.pid, "{words:?}: {last}");
        }
    }
}

#[test]
fn a_warm_receipt_has_every_documented_field() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py", "secret-argument"]);
    let warm = world.warmed(&["run", "hello.py", "secret-argument"]);
    let receipt = world.record(warm.pid);
    assert_eq!(receipt["schema"], "hob.receipt/1");
    assert_eq!(receipt["program"]["name"], "hello.py");
    assert_eq!(receipt["program"]["runtime"], "python");
    assert_eq!(receipt["program"]["arguments"], 1);
    assert_eq!(receipt["outcome"], serde_json::json!({"kind": "exited", "code": 0}));
    assert!(receipt["call"].as_u64().unwrap() > 0);
    assert!(receipt["worker"]["pid"].as_u64().unwrap() > 0);
    assert!(receipt["cold_us"].as_u64().unwrap() > receipt["total_us"].as_u64().unwrap() / 10);
    assert!(receipt["usage"]["peak_kib"].as_u64().unwrap() > 1000, "{receipt}");
    let phases = receipt["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["connect", "send", "plan", "queue", "give", "enter", "main", "settle", "leave"]
    );
    let mut at_us = 0;
    for phase in phases {
        let start_us = phase["start_us"].as_u64().unwrap();
        assert!(start_us.abs_diff(at_us) <= 1, "a gap: {receipt}");
        at_us = start_us + phase["us"].as_u64().unwrap();
    }
    assert_eq!(receipt["total_us"].as_u64().unwrap(), at_us);
}

#[test]
fn a_receipt_ends_with_its_call_however_late_the_daemon_hears_of_it() {
    let world = World::started();
    world.file("waits.py", "import sys\nprint('begun', flush=True)\nsys.stdin.read()\n");
    world.warmed(&["run", "waits.py"]);
    let begun = Instant::now();
    let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
    running.expect("begun\n");
    let daemon = world.daemon();
    kill(daemon, Signal::STOP);
    drop(running.take_stdin());
    let outcome = running.finish();
    let waited = begun.elapsed();
    // sleeps: as long as the call took, so that the daemon is late by that much.
    std::thread::sleep(waited);
    kill(daemon, Signal::CONT);
    let receipt = world.record(outcome.pid);
    assert_eq!(receipt["outcome"], serde_json::json!({"kind": "exited", "code": 0}));
    let total_us = receipt["total_us"].as_u64().unwrap();
    assert!(u128::from(total_us) <= waited.as_micros(), "{waited:?}: {receipt}");
}

#[test]
fn a_call_that_ended_is_never_recorded_as_given_up() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let calls: Vec<_> = (0..150).map(|_| world.hob(&["run", "hello.py"]).go().pid).collect();
    // A call that was late leaves two; and what a busy daemon has not written yet, it will.
    let records = wait::until("a record of each call", || {
        let records = world.records(400);
        let has = |pid: &u32| records.iter().any(|record| record["caller_pid"] == *pid);
        calls.iter().all(has).then_some(records)
    });
    for pid in calls {
        let record = records.iter().find(|record| record["caller_pid"] == pid).expect("a record");
        // A daemon that got no processor for 50 ms was not asked any more: its call left a line.
        if record["schema"] == "hob.fallback/1" {
            assert_eq!(record["reason"], "no-answer", "{record}");
            continue;
        }
        assert_eq!(record["outcome"]["kind"], "exited", "{record}");
    }
}

#[test]
fn a_line_of_a_cold_call_says_why() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    let outcome = world.hob(&["run", "hello.py"]).go();
    let record = world.record(outcome.pid);
    assert_eq!((&record["warm"], &record["reason"]), (&false.into(), &"learning".into()));
    assert!(record.get("worker").is_none_or(Value::is_null));
}

#[test]
fn the_last_calls_are_a_page_that_a_browser_shows() {
    let world = World::new();
    world.file("main.py", "print(1)\n");
    world.file("<b>bad.py", "import sys; sys.exit(3)\n");
    for (script, code) in [("main.py", 0), ("<b>bad.py", 3)] {
        assert_eq!(world.hob(&["run", "python3", script]).go().end, End::Code(code));
    }
    let outcome = world.hob(&["last", "9", "--html"]).go();
    outcome.succeeded();
    let page = outcome.text();
    for foreign in ["http:", "https:", "src=", "url(", "<script", "<b>"] {
        assert!(!page.contains(foreign), "{foreign}: {page}");
    }
    assert_eq!(page.matches("<tr><th>").count(), 2, "{page}");
    assert!(page.contains("<td>main</td>") && page.contains("&lt;b&gt;bad.py"), "{page}");
    let failed = world.hob(&["log", "--failed", "--html"]).go().text();
    assert_eq!(failed.matches("<tr><th>").count(), 1, "{failed}");
    assert!(failed.contains("&lt;b&gt;bad.py") && !failed.contains("<th>main.py"), "{failed}");
    let most = world.hob(&["log", "--html", "-n", "1001"]).go();
    assert!(most.complaint().contains("at most 1000 calls"), "{most:?}");
    world.file("calls.html", page);
    let found = pixels(&world, "calls.html", &[], &["ffffff", "2e9e5b", "d92d20", "5b7fa6"]);
    assert!(found.iter().all(|count| *count > 40), "{found:?}");
}

#[test]
fn log_prints_one_object_a_line_the_newest_last() {
    let world = World::started();
    let pids: Vec<u32> = (0..5).map(|_| world.hob(&["run", "true"]).go().pid).collect();
    let records = world.records(3);
    let known: Vec<_> =
        records.iter().map(|record| record["caller_pid"].as_u64().unwrap()).collect();
    assert_eq!(known, pids[2..].iter().map(|pid| u64::from(*pid)).collect::<Vec<_>>());
    let table = world.hob(&["log"]).go();
    table.succeeded();
    assert_eq!(
        table.text().lines().filter(|line| line.contains("true")).count(),
        5,
        "{}",
        table.text()
    );
    let head = world
        .run(&[
            "bash",
            "-c",
            &format!("{} log | head -1; echo ${{PIPESTATUS[@]}}", world.binary().display()),
        ])
        .go();
    assert!(head.text().ends_with("0 0\n"), "{head:?}");
}

#[test]
fn what_is_shown_is_plain_where_no_terminal_is() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    for words in [&["last"][..], &["log"], &["status"]] {
        for run in [world.hob(words), world.hob(words).env("NO_COLOR", "1").env("TERM", "xterm")] {
            let outcome = run.go();
            outcome.succeeded();
            assert!(!outcome.out.contains(&0x1b), "{words:?}: {outcome:?}");
            assert!(outcome.text().lines().count() > 1, "{words:?}");
        }
    }
    let last = world.hob(&["last"]).go().text();
    assert!(last.contains("hello.py") && last.contains("warm") && last.contains("main"), "{last}");
}

#[test]
fn values_of_the_environment_and_arguments_are_kept_nowhere() {
    let world = World::started();
    let canary = "canary-3f9d1c";
    world.file(
        "hello.py",
        "import os\nos.environ.get('PYTHONCANARY')\nprint(os.environ['SECRET'])\n",
    );
    let run = world
        .hob(&["run", "hello.py", "canary-3f9d1c-argument"])
        .env("SECRET", canary)
        .env("PYTHONCANARY", canary)
        .stdin(canary);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("{canary}\n")));
    world.hob(&["run", "--cold", "hello.py"]).env("SECRET", canary).go().succeeded();
    let _ = world.records(1);
    let mut files = leftovers::files(&world.path("state"));
    files.extend(leftovers::files(&world.hob_dir()));
    assert!(files.iter().any(|file| file.to_string_lossy().ends_with("ndjson")), "{files:?}");
    for file in files.iter().filter(|file| file.is_file()) {
        assert!(!contains(&read(file), canary.as_bytes()), "{}", file.display());
    }
    for words in [&["log", "--json"][..], &["status", "--json"], &["last"]] {
        let shown = world.hob(words).go();
        assert!(!contains(&shown.out, canary.as_bytes()), "{words:?}");
    }
}

#[test]
fn files_are_for_their_owner_only() {
    let world = World::empty();
    world.hob(&["start"]).after("umask 0").go().succeeded();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let mut paths = vec![world.hob_dir(), world.path("state/hob")];
    paths.extend(leftovers::files(&world.hob_dir()));
    paths.extend(leftovers::files(&world.path("state/hob")));
    assert!(paths.len() > 5, "{paths:?}");
    for path in paths {
        let want = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), want, "{}", path.display());
    }
}

#[test]
fn the_status_has_every_documented_field() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let status = world.status();
    assert_eq!(status["schema"], "hob.status/1");
    for field in [
        "pid",
        "build",
        "version",
        "uptime_s",
        "socket",
        "calls",
        "memory_kib",
        "budget_kib",
        "pools",
        "recorder",
    ] {
        assert!(!status[field].is_null(), "{field}: {status}");
    }
    let pool = &world.pools()[0];
    assert_eq!(
        (&pool["program"], &pool["state"], &pool["isolation"]),
        (&"hello.py".into(), &"warm".into(), &"fork".into())
    );
    for field in ["runtime", "ready", "busy", "queued", "ahead", "calls", "memory_kib", "idle_s"] {
        assert!(!pool[field].is_null(), "{field}: {pool}");
    }
    assert!(status["calls"]["warm_total"].as_u64().unwrap() >= 1, "{status}");
}

/// What `hob log` lists with these words: the numbers of the calls.
fn listed(world: &World, words: &[&str]) -> Vec<u64> {
    let log = world.hob(&["log", "--json"]).args(words).go();
    log.succeeded();
    let call = |line: &str| serde_json::from_str::<Value>(line).unwrap()["call"].as_u64();
    log.text().lines().filter_map(call).collect()
}

#[test]
fn a_past_call_is_found_by_its_number_and_by_what_it_was() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.file("fails.py", "import sys\nsys.exit(3)\n");
    world.file("below/slow.py", "import time\ntime.sleep(0.3)\n");
    let call = |run: &hob_tests::Run| {
        let outcome = world.in_time(run);
        world.record(outcome.pid)["call"].as_u64().unwrap()
    };
    let hello = call(&world.hob(&["run", "--cold", "hello.py"]));
    let fails = call(&world.hob(&["run", "--cold", "fails.py"]));
    let below = world.path("work/below");
    let slow = call(&world.hob(&["run", "--cold", "slow.py"]).within(&below));
    let warm = world.record(world.warmed(&["run", "hello.py"]).pid)["call"].as_u64().unwrap();

    let shown = world.hob(&["last", "--call", &fails.to_string(), "--json"]).go();
    let shown: Value = serde_json::from_slice(&shown.out).unwrap();
    assert_eq!((&shown["call"], &shown["outcome"]["code"]), (&fails.into(), &3.into()));
    let shown = world.hob(&["last", "--call", &hello.to_string()]).go().text();
    assert!(shown.starts_with("hello.py") && shown.contains(&format!("call {hello} ")), "{shown}");
    let none = world.hob(&["last", "--call", "999999"]).go();
    assert_eq!(none.end, hob_tests::End::Code(1));
    assert!(none.complaint().contains("`hob log` lists calls"), "{none:?}");

    assert_eq!(listed(&world, &["--failed"]), [fails]);
    assert_eq!(listed(&world, &["fails.py"]), [fails]);
    assert_eq!(listed(&world, &["below/slow.py"]), [slow]);
    assert_eq!(listed(&world, &["slow.py", "--slower", "250ms", "--since", "1h"]), [slow]);
    assert_eq!(listed(&world, &["--slower", "2h"]), [0; 0]);
    let cold = listed(&world, &["--cold", "hello.py"]);
    assert!(cold.contains(&hello) && !cold.contains(&warm), "{cold:?}");
    let here = world.hob(&["log", "--here", "--json"]).within(&below).go();
    let calls: Vec<Value> =
        here.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(calls.len(), 1, "{here:?}");
    assert_eq!(calls[0]["call"], slow);

    let table = world.hob(&["log", "fails.py"]).go().text();
    let row = table.lines().nth(1).unwrap();
    assert!(row.trim_start().starts_with(&fails.to_string()), "{table}");
    let last = world.hob(&["last", "2", "--json"]).go().text();
    assert_eq!(last.lines().count(), 2, "{last}");
    for words in [
        &["log", "--slower", "200"][..],
        &["log", "--since", "yesterday"],
        &["trace", "export", "jaeger"],
        &["last", "0"],
        &["last", "--call", "first"],
    ] {
        let wrong = world.hob(words).go();
        assert_eq!(wrong.end, hob_tests::End::Code(2), "{words:?}: {wrong:?}");
    }
}

#[test]
fn a_trace_for_perfetto_has_the_calls_that_are_listed() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    world.hob(&["run", "true"]).go().succeeded();
    let written = world.hob(&["trace", "export", "perfetto", "hello.py", "-o", "trace"]).go();
    written.succeeded();
    assert!(written.text().contains("ui.perfetto.dev"), "{written:?}");
    let trace = read(world.path("work/trace"));
    assert_eq!(trace.first(), Some(&0x0a), "a trace begins with a packet");
    for part in [&b"hello.py"[..], b"main", b"reason"] {
        assert!(contains(&trace, part), "{}", String::from_utf8_lossy(part));
    }
    assert!(!contains(&trace, b"true"), "a call that was not asked for");
    let piped = world.hob(&["trace", "export", "perfetto", "hello.py"]).go();
    assert_eq!(piped.out, trace);
    let nowhere = world.hob(&["trace", "export", "perfetto", "-o", "no/such/place"]).go();
    assert!(nowhere.complaint().contains("cannot write no/such/place"), "{nowhere:?}");
}

#[test]
fn a_list_names_programs_by_what_tells_them_apart() {
    let world = World::started();
    for folder in ["one", "two"] {
        world.file(&format!("{folder}/hello.py"), "print('hello')\n");
        let run = world.hob(&["run", "hello.py"]).within(world.path("work").join(folder));
        let _ = world.in_time(&run);
    }
    let _ = world.in_time(&world.hob(&["run", "python3", "one/hello.py"]));
    let _ = world.in_time(&world.hob(&["run", "-m", "json.tool", "--help"]));
    let table = world.hob(&["log"]).go().text();
    for name in ["one/hello.py", "two/hello.py", "-m json.tool"] {
        assert!(table.contains(name), "{name}: {table}");
    }
    assert!(!table.contains("python3"), "{table}");
    let gain = world.hob(&["gain"]).go().text();
    assert!(gain.contains("one/hello.py") && gain.contains("two/hello.py"), "{gain}");
}

/// How a program of Python may end; a number says that of its child's.
const PYTHON: &str = "import atexit, builtins, json, os, signal, sys, threading
how = sys.argv[1]
print(how, flush=True)
if how == 'exits': sys.exit(3)
if how == 'raises': 1 / 0
if how == 'leaves': os._exit(4)
if how == 'is killed': os.kill(os.getpid(), signal.SIGKILL)
if how == 'is ended': os.kill(os.getpid(), signal.SIGTERM)
if how == 'is interrupted': raise KeyboardInterrupt
if how == 'executes': os.execv('/bin/sh', ['sh', '-c', 'echo done; exit 5'])
if how == 'aborts': os.abort()
if how == 'holds': builtins.held = type('Kept', (), {'__del__': lambda self: os.write(1, b'held')})()
if how == 'forks' and os.fork() == 0: os._exit(6)
if how == 'closes': os.closerange(3, 100)
if how == 'threads': threading.Thread(target=print, args=('late',)).start()
if how == 'hooks': atexit.register(print, 'hook')
";

const RUBY: &str = "require 'json'
how = ARGV[0]
puts how
STDOUT.flush
case how
when 'exits' then exit 3
when 'raises' then raise 'no'
when 'leaves' then exit! 4
when 'is killed' then Process.kill(:KILL, Process.pid)
when 'is ended' then Process.kill(:TERM, Process.pid)
when 'is interrupted' then raise Interrupt
when 'executes' then exec('/bin/sh', '-c', 'echo done; exit 5')
when 'aborts' then abort 'no'
when 'holds' then require 'openssl'
when 'forks' then fork { exit! 6 }
when 'closes' then (3..100).each { |fd| IO.for_fd(fd).close rescue nil }
when 'threads' then Thread.new { puts 'late' }.join
when 'hooks' then at_exit { puts 'hook' }
end
";

const ENDS: [&str; 14] = [
    "returns",
    "exits",
    "raises",
    "leaves",
    "is killed",
    "is ended",
    "is interrupted",
    "executes",
    "aborts",
    "holds",
    "forks",
    "closes",
    "threads",
    "hooks",
];

/// That the phases of a warm call have a `main`, and are all of its time, `warm_as_cold` looks itself.
#[test]
fn a_receipt_says_how_long_a_program_ran_however_it_ends() {
    let world = World::started();
    world.file("ends.py", PYTHON);
    world.file("ends.rb", RUBY);
    for script in ["ends.py", "ends.rb"] {
        for how in ENDS {
            world.warm_as_cold(&world.hob(&["run", script, how]));
        }
        // With a descriptor that it is to find closed in time.
        for how in ["returns", "holds", "raises"] {
            world.warm_as_cold(&world.hob(&["run", script, how]).after("exec 9>held"));
        }
    }
}
