//! A program whose calls import more than its first one did has that loaded ahead, too.

use hob_tests::{Outcome, Run, World};
use serde_json::Value;

/// Takes long enough to import that it is worth to be loaded ahead.
const LARGE: &str = "VALUE = sum(range(2_000_000))\n";
const CALLS_MAX: usize = 200;

/// Calls until `done` of a warm call's record; each must print the same.
fn until(world: &World, run: &Run, what: &str, done: impl Fn(&Value) -> bool) -> (Outcome, Value) {
    let mut seen = Vec::new();
    for _ in 0..CALLS_MAX {
        let outcome = run.go();
        assert_eq!(outcome.text(), "1999999000000\n", "{outcome:?}");
        let record = world.record(outcome.pid);
        if record["warm"] == true && done(&record) {
            return (outcome, record);
        }
        seen.push(format!("{} {}", record["reason"], record["imported"]));
    }
    panic!("{what}: {seen:?}");
}

fn is_loaded_ahead(world: &World, run: &Run) {
    let (_, record) =
        until(world, run, "it was never seen", |record| record["imported"]["ahead"] == true);
    assert!(record["imported"]["beyond"].as_u64() >= Some(1), "{record}");
    let shown = world.hob(&["last", "--call", &record["call"].to_string()]).go().text();
    assert!(shown.contains("loaded ahead"), "{shown}");
    until(world, run, "it is imported in each call", |record| record["imported"].is_null());
}

#[test]
fn what_another_argument_imports_is_loaded_ahead_from_its_second_call_on() {
    let world = World::started();
    world.file("large.py", LARGE);
    world.file(
        "main.py",
        "import json, sys\nif sys.argv[1:]:\n    import large\n    print(large.VALUE)\n",
    );
    world.warmed(&["run", "main.py"]);
    is_loaded_ahead(&world, &world.hob(&["run", "main.py", "more"]));
}

/// What holds it has the interpreter end by itself, whose process alone tells the end.
#[test]
fn what_a_call_imports_whose_interpreter_finalises_is_loaded_ahead() {
    let world = World::started();
    world.file("large.py", LARGE);
    let held = "import builtins\nbuiltins.held = type('Kept', (), {'__del__': id})()\n";
    world.file("main.py", format!("import json\n{held}"));
    world.warmed(&["run", "main.py"]);
    world.file("main.py", format!("import json, large\nprint(large.VALUE)\n{held}"));
    is_loaded_ahead(&world, &world.hob(&["run", "main.py"]));
}

#[test]
fn what_an_edit_of_the_script_imports_is_loaded_ahead() {
    let world = World::started();
    world.file("large.py", LARGE);
    world.file("main.py", "import json\n");
    world.warmed(&["run", "main.py"]);
    world.file("main.py", "import json, large\nprint(large.VALUE)\n");
    is_loaded_ahead(&world, &world.hob(&["run", "main.py"]));
}
