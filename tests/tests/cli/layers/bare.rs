//! In copies of their bare interpreter.

use hob_tests::{End, Outcome, World, wait};
use serde_json::Value;

/// A world whose interpreter is there, bare.
fn world() -> World {
    let world = World::started();
    world.file("first.py", "import sys\nprint('first', sys.argv)\n");
    world.hob(&["run", "first.py"]).go().succeeded();
    wait::until("a copy of the bare interpreter waits", || (bare(&world) > 0).then_some(()));
    world
}

/// How many copies of bare interpreters wait.
fn bare(world: &World) -> u64 {
    let status = world.status();
    let pools = status["pools"].as_array().expect("a list of pools").iter();
    let bare =
        pools.filter(|pool| pool["program"].as_str().is_some_and(|name| name.ends_with("(bare)")));
    bare.filter_map(|pool| pool["ready"].as_u64()).sum()
}

fn reason(world: &World, outcome: &Outcome) -> String {
    world.record(outcome.pid)["reason"].as_str().unwrap_or("none").to_owned()
}

/// The same through hob as cold, in a copy of the bare interpreter.
fn as_cold(world: &World, words: &[&str]) -> Outcome {
    as_cold_for(world, words, "bare-interpreter")
}

/// The same, with the reason that its receipt has.
fn as_cold_for(world: &World, words: &[&str], why: &str) -> Outcome {
    let run = world.hob(words);
    let cold = run.clone().env("HOB", "0").go();
    let outcome = run.go();
    assert_eq!(outcome, cold, "{words:?}");
    assert_eq!(reason(world, &outcome), why, "{words:?}");
    wait::until("another copy waits", || (bare(world) > 0).then_some(()));
    outcome
}

/// What was never called before, and what was edited since, is performed there; the next call is warm,
/// and imports at the same moment as a cold one.
#[test]
fn a_script_never_seen_and_one_that_was_edited_are_performed_in_a_copy_of_the_interpreter() {
    let world = world();
    world.file("own.py", "value = 1\n");
    let text = "import own, json, sys\nprint(own.value, 'here', sys.argv)\n";
    world.file("shows.py", text);
    assert!(as_cold(&world, &["run", "shows.py", "a b"]).text().starts_with("1 here"));
    assert!(world.warmed(&["run", "shows.py"]).text().starts_with("1 here"));
    world.file("own.py", "value = 22\n");
    let edited = world.hob(&["run", "shows.py"]).go();
    assert!(edited.text().starts_with("22 here"), "{edited:?}");
    assert_eq!(reason(&world, &edited), "bare-interpreter");
    assert!(world.warmed(&["run", "shows.py"]).text().starts_with("22 here"));
}

/// However it ends, and whatever it looks at.
#[test]
fn what_ends_in_another_way_ends_there_as_it_does_cold() {
    let world = world();
    for (name, text) in [
        ("raises.py", "def f():\n    raise ValueError('x')\nf()\n"),
        ("exits.py", "import sys\nsys.exit('why')\n"),
        ("hard.py", "import os, sys\nprint('out')\nsys.stdout.flush()\nos._exit(7)\n"),
        ("signal.py", "import os\nos.kill(os.getpid(), 15)\n"),
        ("interrupt.py", "raise KeyboardInterrupt\n"),
        ("missing.py", "import no_such_module\n"),
        (
            "forks.py",
            "import os, sys\npid = os.fork()\nif pid == 0:\n    import json\n    sys.exit(3)\nprint(os.waitpid(pid, 0)[1])\n",
        ),
        (
            "main.py",
            "import sys\nprint(sorted(globals()), __file__, __spec__, sys.path[0], sys.orig_argv[1:] if hasattr(sys, 'orig_argv') else None, sys.flags.no_site)\n",
        ),
        (
            "late.py",
            "import atexit\natexit.register(lambda: print('late', __import__('json').dumps(1)))\n",
        ),
        (
            "thread.py",
            "import threading\nthreading.Thread(target=lambda: print('thread')).start()\n",
        ),
    ] {
        world.file(name, text);
        as_cold(&world, &["run", name, "x"]);
    }
    // What does not compile is executed cold, in the copy's place.
    world.file("syntax.py", "print(1\n");
    as_cold_for(&world, &["run", "syntax.py", "x"], "not-as-loaded");
    assert_eq!(world.hob(&["run", "hard.py"]).go().end, End::Code(7));
}

/// A module is one, and a directory with `__main__`, too; each with its own first entry of the path.
#[test]
fn modules_are_performed_there_as_well() {
    let world = world();
    world.file("package/__init__.py", "");
    world
        .file("package/__main__.py", "import sys\nprint(sys.argv[1:], sys.path[0], __package__)\n");
    let run = world.hob(&["run", "-m", "package", "one"]);
    let cold = run.clone().env("HOB", "0").go();
    assert_eq!(run.go(), cold);
    // A module's interpreter is warm for its directory alone: each of these was never seen.
    let mut seen = 0;
    wait::until("a module that is performed there", || {
        seen += 1;
        let name = format!("other{seen}");
        let text = "import sys\nprint(sys.argv[1:], sys.path[0], __package__)\n";
        world.file(&format!("{name}.py"), text);
        let run = world.hob(&["run", "-m", &name, "two"]);
        let outcome = run.go();
        assert_eq!(outcome, run.clone().env("HOB", "0").go());
        (reason(&world, &outcome) == "bare-interpreter").then_some(())
    });
    world.file(
        "package/__main__.py",
        "import sys\nprint('edited', sys.argv[1:], sys.path[0], __package__)\n",
    );
    let edited = run.go();
    assert_eq!(edited, run.clone().env("HOB", "0").go());
}

/// The start-up code has changed: no copy that has run the old one is given a call.
#[test]
fn what_the_interpreter_loads_at_its_start_is_never_older_than_the_call() {
    let world = World::started();
    let site = world.path("work/site");
    std::fs::create_dir(&site).expect("a directory can be made");
    world.file("site/sitecustomize.py", "import builtins\nbuiltins.mark = 1\n");
    let run = |name: &str| {
        world.file(name, "print(mark)\n");
        world.hob(&["run", name]).env("PYTHONPATH", &site)
    };
    assert_eq!(run("one.py").go().text(), "1\n");
    wait::until("a copy of the bare interpreter waits", || (bare(&world) > 0).then_some(()));
    let second = run("two.py").go();
    assert_eq!(
        (second.text().as_str(), reason(&world, &second).as_str()),
        ("1\n", "bare-interpreter")
    );
    world.file("site/sitecustomize.py", "import builtins\nbuiltins.mark = 22\n");
    assert_eq!(run("three.py").go().text(), "22\n");
    let gone = |status: Value| status["lost"].as_u64().unwrap_or(0);
    assert_eq!(gone(world.status()), 0);
}

/// Nothing says beforehand that it will ask for all objects.
#[test]
fn a_program_that_asks_for_all_objects_there_sees_those_of_the_interpreter() {
    let world = world();
    let text = "import gc\nprint(gc.get_freeze_count())\nimport os\n\
        print(any(each is os.__dict__ for each in gc.get_objects()))\n";
    world.file("asks.py", text);
    assert_eq!(as_cold(&world, &["run", "asks.py"]).text(), "0\nTrue\n");
}
