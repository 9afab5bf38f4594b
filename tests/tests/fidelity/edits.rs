//! What was edited takes effect on the next call, whatever its times say.

use std::fs::{self, File, FileTimes};
use std::path::Path;

use hob_tests::World;
use serde_json::Value;

/// Replaces the content in place and gives the file its old times back.
fn edit_unseen(path: &Path, text: &str) {
    let before = fs::metadata(path).unwrap();
    assert_eq!(before.len(), text.len() as u64, "the edit keeps the size");
    fs::write(path, text).unwrap();
    let times = FileTimes::new()
        .set_modified(before.modified().unwrap())
        .set_accessed(before.accessed().unwrap());
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    assert_eq!(fs::metadata(path).unwrap().modified().unwrap(), before.modified().unwrap());
}

/// Calls the script once and says what it printed.
fn said(world: &World) -> String {
    let outcome = world.hob(&["run", "main.py"]).go();
    outcome.succeeded();
    outcome.text()
}

#[test]
fn an_edited_script_is_new_on_the_next_call() {
    let world = World::started();
    let script = world.file("main.py", "print('a0')\n");
    for turn in 1..6 {
        world.warmed(&["run", "main.py"]);
        edit_unseen(&script, &format!("print('a{turn}')\n"));
        assert_eq!(said(&world), format!("a{turn}\n"));
    }
}

#[test]
fn an_edited_module_is_new_on_the_next_call() {
    let world = World::started();
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    let module = world.file("part.py", "VALUE = 0\n");
    for turn in 1..6 {
        world.warmed(&["run", "main.py"]);
        // Python's own bytecode cache goes by time and size: without it, cold is new too.
        let _ = fs::remove_dir_all(world.path("work/__pycache__"));
        edit_unseen(&module, &format!("VALUE = {turn}\n"));
        assert_eq!(said(&world), format!("{turn}\n"));
    }
}

#[test]
fn a_module_that_was_replaced_by_a_rename_is_new() {
    let world = World::started();
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    world.file("part.py", "VALUE = 0\n");
    for turn in 1..4 {
        world.warmed(&["run", "main.py"]);
        // Of another size each time, as Python's own cache would miss it otherwise.
        let fresh = world.file("part.py.new", format!("VALUE = {turn}{}\n", "#".repeat(turn)));
        fs::rename(fresh, world.path("work/part.py")).unwrap();
        assert_eq!(said(&world), format!("{turn}\n"));
    }
}

#[test]
fn a_module_that_appears_earlier_on_the_path_is_found() {
    let world = World::started();
    world.file(
        "main.py",
        "import sys, os\nsys.path[:0] = ['early', 'late']\nimport part\nprint(part.VALUE)\n",
    );
    fs::create_dir(world.path("work/early")).unwrap();
    world.file("late/part.py", "VALUE = 'late'\n");
    world.warmed(&["run", "main.py"]);
    assert_eq!(said(&world), "late\n");
    world.file("early/part.py", "VALUE = 'early'\n");
    assert_eq!(said(&world), "early\n");
    world.warmed(&["run", "main.py"]);
    fs::remove_dir_all(world.path("work/early")).unwrap();
    assert_eq!(said(&world), "late\n");
}

#[test]
fn a_file_beside_the_script_shadows_the_standard_library() {
    let world = World::started();
    world.file("main.py", "import json\nprint(getattr(json, 'MINE', 'standard'))\n");
    world.warmed(&["run", "main.py"]);
    assert_eq!(said(&world), "standard\n");
    let mine = world.file("json.py", "MINE = 'mine'\n");
    assert_eq!(said(&world), "mine\n");
    world.warmed(&["run", "main.py"]);
    assert_eq!(said(&world), "mine\n");
    fs::remove_file(mine).unwrap();
    let _ = fs::remove_dir_all(world.path("work/__pycache__"));
    assert_eq!(said(&world), "standard\n");
}

#[test]
fn a_call_that_a_copy_executes_cold_is_cold_and_says_why() {
    let world = World::started();
    world.file("part.py", "import signal\nVALUE = int(signal.getsignal(signal.SIGUSR1))\n");
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    let run = world.hob(&["run", "--status-fd", "9", "main.py"]);
    let plain = run.clone().after("exec 9>line");
    world.warm(&plain, |outcome| assert_eq!(outcome.text(), "0\n"));
    let line =
        || serde_json::from_slice::<Value>(&fs::read(world.path("work/line")).unwrap()).unwrap();
    assert_eq!((&line()["warm"], &line()["reason"]), (&true.into(), &Value::Null));
    let ignores = world.in_time(&run.after("trap '' USR1; exec 9>line"));
    assert_eq!(ignores.text(), "1\n");
    // The line of `--status-fd` says what the receipt does.
    for said in [world.record(ignores.pid), line()] {
        assert_eq!((&said["warm"], &said["reason"]), (&false.into(), &"not-as-loaded".into()));
    }
}

#[test]
fn a_variable_that_was_read_while_loading_has_the_callers_value() {
    let world = World::started();
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    world.file("part.py", "import os\nVALUE = os.environ.get('COLOUR', 'none')\n");
    for colour in ["red", "blue", "red"] {
        let run = world.hob(&["run", "main.py"]).env("COLOUR", colour);
        world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("{colour}\n")));
    }
    world.warm(&world.hob(&["run", "main.py"]), |outcome| assert_eq!(outcome.text(), "none\n"));
}

#[test]
fn a_script_that_is_gone_is_not_found() {
    let world = World::started();
    let script = world.file("main.py", "print('here')\n");
    world.warmed(&["run", "main.py"]);
    fs::remove_file(script).unwrap();
    let cold = world.hob(&["run", "main.py"]).env("HOB", "0").go();
    let outcome = world.hob(&["run", "main.py"]).go();
    assert_eq!(cold, outcome);
    assert_eq!(
        outcome.complaint(),
        "hob: main.py: not found; there is no such file in this folder\n"
    );
}
