//! `hob trust`: what a user allows is what was read, and an untrusted file does nothing at all.

mod hostile;

use std::os::unix::fs::PermissionsExt;

use hob_tests::{End, Outcome, World};
use serde_json::Value;

fn trust(world: &World, words: &[&str]) -> Outcome {
    world.hob(&["trust"]).args(words).go()
}

/// The one file in an answer: its state.
fn states(outcome: &Outcome) -> Vec<String> {
    outcome.succeeded();
    let answer: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(answer["schema"], "hob.trust/1");
    let state = |file: &Value| file["state"].as_str().unwrap().to_owned();
    answer["files"].as_array().unwrap().iter().map(state).collect()
}

#[test]
fn an_edited_file_is_untrusted_again() {
    let world = World::new();
    let program =
        |ahead: u32| format!("[program.greet]\nhandler = \"greet.py:handle\"\nahead = {ahead}\n");
    world.file("project/greet.py", "def handle(payload, message):\n    return payload\n");
    world.file("project/hob.toml", program(1));
    assert_eq!(states(&trust(&world, &["--list", "--json"])), [""; 0]);
    let trusted = trust(&world, &["project"]);
    trusted.succeeded();
    let rows: Vec<String> = trusted
        .text()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert!(rows[1].starts_with("PROGRAM HANDLER RUN BY"), "{rows:?}");
    assert!(rows[2].starts_with("greet greet.py:handle /"), "{rows:?}");
    assert!(rows[2].ends_with("/python3 prefork"), "{rows:?}");
    assert!(rows[3].contains("`hob ask PROGRAM`"), "{rows:?}");
    assert_eq!(states(&trust(&world, &["--list", "--json"])), ["trusted"]);
    let mode = std::fs::metadata(world.path("state/hob/trusted")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    world.file("project/hob.toml", program(2));
    assert_eq!(states(&trust(&world, &["--list", "--json"])), ["changed"]);
    assert!(trust(&world, &["--list"]).text().starts_with("changed "));
    assert_eq!(states(&trust(&world, &["project", "--json"])), ["trusted"]);
    std::fs::remove_file(world.path("work/project/hob.toml")).unwrap();
    assert_eq!(states(&trust(&world, &["--list", "--json"])), ["gone"]);
    trust(&world, &["--remove", "project"]).succeeded();
    assert_eq!(states(&trust(&world, &["--list", "--json"])), [""; 0]);
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

#[test]
fn the_file_itself_means_its_directory() {
    let world = World::new();
    world.file("project/hob.toml", "[program.greet]\nhandler = \"greet.py:handle\"\n");
    world.file("project/notes.txt", "to be read\n");
    let project = world.path("work/project");
    let within = |words: &[&str]| world.hob(&["trust"]).args(words).within(&project).go();
    assert_eq!(states(&within(&["hob.toml", "--json"])), ["trusted"]);
    assert_eq!(states(&trust(&world, &["--list", "--json"])), ["trusted"]);
    assert_eq!(states(&trust(&world, &["project", "--json"])), ["trusted"]);
    let other = within(&["notes.txt"]);
    assert_eq!(other.end, End::Code(1), "{other:?}");
    let complaint = other.complaint();
    assert!(complaint.contains("notes.txt: neither a directory nor a hob.toml"), "{complaint}");
    assert!(complaint.contains("`hob trust DIR`"), "{complaint}");
    // The file may be gone by then.
    std::fs::remove_file(project.join("hob.toml")).unwrap();
    let gone = within(&["hob.toml"]);
    assert!(gone.complaint().contains("hob.toml: there is none"), "{gone:?}");
    assert!(!gone.complaint().contains("hob.toml/"), "{gone:?}");
    within(&["--remove", "hob.toml"]).succeeded();
    assert_eq!(states(&trust(&world, &["--list", "--json"])), [""; 0]);
}

#[test]
fn a_file_above_is_found_as_ask_finds_it() {
    let world = World::new();
    world.file("greet.py", "def handle(payload, message):\n    return payload\n");
    world.file("hob.toml", "[program.greet]\nhandler = \"greet.py:handle\"\n");
    world.file("deep/er/file", "");
    let within = |words: &[&str]| world.hob(words).within(world.path("work/deep/er")).go();
    let trusted = within(&["trust"]);
    trusted.succeeded();
    assert!(trusted.text().contains("work/hob.toml: trusted"), "{trusted:?}");
    assert_eq!(within(&["ask", "greet", "well"]).text(), "well");
    within(&["trust", "--remove"]).succeeded();
    assert_eq!(states(&trust(&world, &["--list", "--json"])), [""; 0]);
    world.stop();
}

#[test]
fn what_ask_would_refuse_is_not_trusted_and_the_meant_word_is_named() {
    let world = World::new();
    world.file("greet.py", "def handle(payload, message):\n    return payload\n");
    for (text, said) in [
        ("[programs.greet]\nhandler = \"greet.py:handle\"\n", "did you mean `program`?"),
        ("[program.greet]\nhandlr = \"greet.py:handle\"\n", "did you mean `handler`?"),
        ("[program.greet]\nhandler = \"greet.py:handle\"\nidel = \"5m\"\n", "did you mean `idle`?"),
        ("[program.greet]\nhandler = \"greet.py\"\n", "a file, a colon and a function"),
        ("[program.greet]\nhandler = \"greet.py:handle\"\nworkers = 900\n", "between 1 and 64"),
        ("[mount.\"/\"]\nstatik = \"public\"\n", "unknown key `statik`"),
    ] {
        world.file("hob.toml", text);
        let refused = trust(&world, &[]);
        assert_eq!((refused.end, refused.out.len()), (End::Code(1), 0), "{refused:?}");
        let complaint = refused.complaint();
        let wanted = complaint.contains(said) && complaint.ends_with("; nothing was trusted\n");
        assert!(wanted && complaint.lines().count() == 1, "{text}: {complaint}");
    }
    assert_eq!(states(&trust(&world, &["--list", "--json"])), [""; 0]);
    // A file that may come later is named, and hinders nothing.
    world.file("hob.toml", "[program.greet]\nhandler = \"gret.py:handle\"\n");
    let trusted = trust(&world, &["--json"]);
    assert!(trusted.complaint().contains("did you mean `greet.py`?"), "{trusted:?}");
    assert_eq!(states(&trusted), ["trusted"]);
    let answer: Value = serde_json::from_slice(&trusted.out).unwrap();
    let program = &answer["files"][0]["programs"][0];
    assert_eq!((&program["name"], &program["runtime"]), (&"greet".into(), &"python".into()));
    assert!(program["missing"].as_str().unwrap().contains("gret.py is not there"), "{program}");
    let asked = world.hob(&["ask", "gret", "x"]).go();
    assert!(asked.complaint().contains("did you mean `greet`?"), "{asked:?}");
    world.stop();
}

#[test]
fn what_cannot_be_trusted_is_said_in_one_line() {
    let world = World::new();
    world.file("broken/hob.toml", "a = 1\nb =\n");
    world.file("binary/hob.toml", b"\xff\n");
    std::fs::create_dir_all(world.path("work/folder/hob.toml")).unwrap();
    for (words, said) in [
        (&["broken"][..], "hob.toml:2:"),
        (&["binary"], "not UTF-8"),
        (&["folder"], "not a regular file"),
        (&["nowhere"], "there is none"),
        (&[], "there is none"),
        (&["--remove", "broken"], "was not trusted"),
    ] {
        let outcome = trust(&world, words);
        assert_eq!((outcome.end, outcome.out.len()), (End::Code(1), 0), "{words:?}: {outcome:?}");
        let complaint = outcome.complaint();
        assert!(
            complaint.contains(said) && complaint.lines().count() == 1,
            "{words:?}: {complaint}"
        );
    }
    assert_eq!(states(&trust(&world, &["--list", "--json"])), [""; 0]);
    let usage = trust(&world, &["--list", "broken"]);
    assert_eq!(usage.end, End::Code(2), "{usage:?}");
    let homeless = world.hob(&["trust", "broken"]).without("HOME").without("XDG_STATE_HOME").go();
    assert_eq!((homeless.end, homeless.complaint().lines().count()), (End::Code(1), 1));
}

#[test]
fn an_untrusted_file_executes_nothing_and_changes_nothing() {
    let world = World::started();
    let canary = world.path("canary");
    let touch = format!("touch {}", canary.display());
    // Whatever a later version may read, in the widest sense: nothing of it may happen.
    let text = format!(
        "run = \"{touch}\"\n[programs.hello]\ncommand = \"{touch}\"\npreload = \"import os; os.system('{touch}')\"\nisolation = \"nonsense\"\n[env]\nCANARY = \"sung\"\n[hooks]\nbefore = \"{touch}\"\n"
    );
    world.file("project/hello.py", "import os\nprint('hello', os.environ.get('CANARY'))\n");
    let run = world.hob(&["run", "hello.py"]).within(world.path("work/project"));
    let want = run.go();
    assert_eq!(want.text(), "hello None\n");
    let file = world.file("project/hob.toml", &text);
    world.warm(&run, |outcome| assert_eq!(outcome, &want));
    // It is not understood, and so it cannot be trusted.
    let refused = trust(&world, &["project"]);
    assert_eq!(refused.end, End::Code(1), "{refused:?}");
    world.warm(&run, |outcome| assert_eq!(outcome, &want));
    // One that nobody could read as TOML is no trouble either.
    std::fs::write(&file, "][").unwrap();
    world.warm(&run, |outcome| assert_eq!(outcome, &want));
    assert!(!canary.exists(), "the canary sang");
}
