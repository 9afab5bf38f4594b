//! Messages that have no answer: each says why, and its pool goes on.

use hob_tests::{End, Outcome, World, run, wait};
use rustix::process::Signal;

use super::{ask, program, project, trusted};

const HANDLERS: &str = r#"
import os, signal, sys, time

def end(payload, message):
    print("printed", payload.decode())
    how = payload.decode()
    if how == "raise":
        raise KeyError("name")
    if how == "exit":
        sys.exit(3)
    if how == "_exit":
        os._exit(4)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "set":
        return {1, 2}
    if how == "huge":
        return bytes(1 << 20)
    if how == "fork":
        if os.fork() == 0:
            return b"from the child"
        return b"from the parent"
    return how

def hang(payload, message):
    with open(payload.decode(), "w") as file:
        file.write(str(os.getpid()))
    while True:
        time.sleep(1)
"#;

fn end(world: &World, words: &[&str]) -> (End, String) {
    let outcome = world.hob(&["ask"]).args(words).go();
    assert_eq!(outcome.out, b"", "{words:?}: {outcome:?}");
    (outcome.end, outcome.complaint())
}

#[test]
fn what_ends_a_handler_is_told_and_ends_nothing_else() {
    let world = project(HANDLERS, &program("end", "end", ""));
    for (how, code, words) in [
        ("raise", 1, "KeyError: 'name'"),
        ("exit", 1, "SystemExit: 3"),
        ("set", 1, "TypeError: Object of type set"),
        ("huge", 1, "over the cap"),
        ("_exit", 125, "its worker ended before it answered"),
        ("killed", 125, "its worker ended before it answered"),
    ] {
        let (ended, said) = end(&world, &["end", how]);
        assert_eq!(ended, End::Code(code), "{how}: {said}");
        assert!(said.contains(words), "{how}: {said}");
        assert_eq!(ask(&world, &["end", "well"]), "well", "after {how}");
    }
    assert_eq!(ask(&world, &["end", "fork"]), "from the parent");
    // What a handler prints, and whole tracebacks, are in its log.
    let log = world.hob(&["log", "--output", "end"]).go().text();
    assert!(log.contains("printed raise") && log.contains("line "), "{log}");
    // A receipt stands for the messages of the ten milliseconds before it, so that one message need
    // not have its own.
    for (kind, how) in [("answered", "well"), ("raised", "raise"), ("lost", "_exit")] {
        wait::until(&format!("a receipt of a message that was {kind}"), || {
            let _ = world.hob(&["ask", "end", how]).go();
            let records = world.records(50);
            records.iter().any(|record| record["outcome"]["kind"] == kind).then_some(())
        });
    }
}

/// A handler that was asked and says where it is.
fn hanging(path: &str) -> u32 {
    wait::until("the handler's pid", || std::fs::read_to_string(path).ok()?.parse().ok())
}

#[test]
fn a_time_that_passes_ends_the_waiting_and_the_handler() {
    let world = project(HANDLERS, &program("hang", "hang", ""));
    let mark = world.path("mark").to_str().unwrap().to_owned();
    let (ended, said) = end(&world, &["hang", &mark, "--timeout", "2s"]);
    assert_eq!(ended, End::Code(124), "{said}");
    assert!(said.contains("the time passed"), "{said}");
    assert!(wait::ended(hanging(&mark), wait::LONG), "the handler goes on");
    let (ended, said) = end(&world, &["hang", "x", "--timeout", "soon"]);
    assert_eq!(ended, End::Code(2), "{said}");
}

#[test]
fn an_asker_that_leaves_takes_its_message_back() {
    let world = project(HANDLERS, &program("hang", "hang", ""));
    let mark = world.path("mark").to_str().unwrap().to_owned();
    let asker = world.hob(&["ask", "hang", &mark]).start();
    let pid = hanging(&mark);
    run::kill(asker.pid(), Signal::KILL);
    assert!(wait::ended(pid, wait::LONG), "the handler goes on");
    assert_eq!(asker.finish().end, End::Signal(9));
}

#[test]
fn an_asker_on_a_lane_that_leaves_or_times_out_takes_its_worker_along() {
    let handlers = HANDLERS.to_owned()
        + "\ndef both(payload, message):\n    return payload if payload == b'quick' else hang(payload, message)\n";
    let world = project(&handlers, &program("both", "both", ""));
    let script = "import hob, sys\n\
                  for _ in range(5): assert hob.ask('both', b'quick') == b'quick'\n\
                  try: hob.ask('both', sys.argv[1], timeout=1)\n\
                  except hob.TimedOut: print('timed out')\n\
                  assert hob.ask('both', b'quick') == b'quick'\n\
                  hob.ask('both', sys.argv[2])\n";
    let first = world.path("first").to_str().unwrap().to_owned();
    let second = world.path("second").to_str().unwrap().to_owned();
    let asker = super::python(&world, script).args(&[&first, &second]).start();
    let timed_out = hanging(&first);
    assert!(wait::ended(timed_out, wait::LONG), "the time passed, and it goes on");
    let left = hanging(&second);
    run::kill(asker.pid(), Signal::KILL);
    assert!(wait::ended(left, wait::LONG), "the asker has left, and it goes on");
    assert_eq!(asker.finish().end, End::Signal(9));
}

#[test]
fn a_worker_that_is_killed_loses_its_ask_at_once_and_no_other() {
    let world = project(HANDLERS, &(program("hang", "hang", "") + &program("end", "end", "")));
    let mark = world.path("mark").to_str().unwrap().to_owned();
    let asker = world.hob(&["ask", "hang", &mark]).start();
    run::kill(hanging(&mark), Signal::KILL);
    let outcome: Outcome = asker.finish();
    assert_eq!(outcome.end, End::Code(125), "{outcome:?}");
    assert_eq!(ask(&world, &["end", "well"]), "well");
}

#[test]
fn what_cannot_be_asked_is_said_in_one_line_with_the_next_step() {
    let world = project(HANDLERS, "");
    world.file("broken.py", "def handle(:\n");
    world.file("raises.py", "import nothing_of_this_name\n");
    for (programs, code, words) in [
        ("", 127, "[program.end]"),
        ("[program.end\n", 2, "line 1"),
        ("[program.end]\nhandle = \"x\"\n", 2, "handle"),
        ("[program.end]\nhandler = \"gone.py:end\"\n", 127, "gone.py is not there"),
        ("[program.end]\nhandler = \"handlers.py:gone\"\n", 126, "no function `gone`"),
        ("[program.end]\nhandler = \"broken.py:handle\"\n", 126, "broken.py:1: SyntaxError"),
        ("[program.end]\nhandler = \"raises.py:handle\"\n", 126, "raises.py:1: ModuleNotFound"),
        ("[program.end]\nhandler = \"handlers.py:end\"\npython = \"nopython\"\n", 2, "nopython"),
        ("[program.end]\nhandler = \"handlers.py:end\"\npython = \"/bin/sh\"\n", 2, "/bin/sh"),
    ] {
        world.file("hob.toml", programs);
        let trust = world.hob(&["trust"]).go();
        let (ended, said) = end(&world, &["end", "well"]);
        if trust.end == End::Code(0) {
            assert_eq!(ended, End::Code(code), "{programs:?}: {said}");
            assert!(said.contains(words), "{programs:?}: {said}");
        } else {
            // What is not understood is never trusted.
            assert_eq!(ended, End::Code(2), "{programs:?}: {said}");
        }
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    // Once it is right it works, without anything else to do.
    trusted(&world, &program("end", "end", ""));
    assert_eq!(ask(&world, &["end", "well"]), "well");
}

#[test]
fn an_untrusted_project_runs_nothing() {
    let world = World::new();
    let canary = world.path("canary");
    let text = format!("open({:?}, 'w').close()\ndef end(p, m): return p\n", canary);
    world.file("handlers.py", &text);
    world.file("hob.toml", program("end", "end", ""));
    for _ in 0..2 {
        let (ended, said) = end(&world, &["end", "x"]);
        assert_eq!(ended, End::Code(2), "{said}");
        assert!(said.contains("is not trusted") && said.contains("hob trust"), "{said}");
        let told = world.hob(&["tell", "end", "x"]).go();
        assert_eq!(told.end, End::Code(2), "{told:?}");
    }
    assert!(!canary.exists(), "an untrusted handler was loaded");
    world.hob(&["trust"]).go().succeeded();
    assert_eq!(ask(&world, &["end", "x"]), "x");
    world.hob(&["trust", "--remove"]).go().succeeded();
    assert_eq!(end(&world, &["end", "x"]).0, End::Code(2));
}
