//! What `hob hooks run` is given, by people: lists, mistyped directories, limits of failures.

use hob_tests::{End, Terminal, World};

/// A directory whose one hook notes whom it ran for, and fails for names that begin with `x`.
fn world() -> World {
    let world = World::new();
    world.executable(
        "hooks.d/10-note",
        "#!/bin/sh\necho \"$TARGET$HOST\" >>ran\necho seen\n\
         case \"$TARGET$HOST\" in x*) echo \"no $TARGET\" >&2; exit 3;; s*) exit 100;; esac\n",
    );
    world
}

fn ran(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("work/ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_plain_list_keeps_its_first_target() {
    let world = world();
    let run = world.hob(&["hooks", "run", "hooks.d", "--for-each", "-", "--jobs", "1"]);
    run.clone().stdin("web1\nweb2\n").go().succeeded();
    assert_eq!(ran(&world), ["web1", "web2"]);
    world.file("t.csv", "HOST;PORT\na;1\n");
    world.hob(&["hooks", "run", "hooks.d", "--for-each", "t.csv"]).go().succeeded();
    assert_eq!(ran(&world)[2..], ["a"]);
    world.file("t.csv", "web 1,b\nx,y\n");
    let wrong = world.hob(&["hooks", "run", "hooks.d", "--for-each", "t.csv"]).go();
    assert_eq!(wrong.end, End::Code(2), "{wrong:?}");
    assert!(wrong.complaint().contains("is no name of a variable"), "{wrong:?}");
}

#[test]
fn a_directory_that_is_not_there_is_said_and_fails_where_a_person_types() {
    let world = world();
    for words in [&["hooks", "run", "hoks.d"][..], &["hooks", "run", "hoks.d", "--for-each", "t"]] {
        world.file("t", "a\n");
        let empty = world.hob(words).go();
        assert_eq!(empty.end, End::Code(0), "{words:?}: {empty:?}");
        let said = empty.complaint();
        let wanted =
            "hob: hoks.d: there is no such directory; did you mean hooks.d?; nothing is run";
        assert!(said.starts_with(wanted) && said.lines().count() == 1, "{words:?}: {said}");
        let strict = world.hob(words).args(&["--must-exist"]).go();
        assert_eq!(strict.end, End::Code(5), "{words:?}: {strict:?}");
    }
    let mut terminal = Terminal::open(&world.hob(&["hooks", "run", "hoks.d"]));
    terminal.expect("there is no such directory");
    assert_eq!(terminal.finish().0, End::Code(5));
}

#[test]
fn reports_and_dry_runs_need_no_targets() {
    let world = world();
    let dry = world.hob(&["hooks", "run", "hooks.d", "--dry-run"]).go();
    assert_eq!(dry.text(), "1 hook, in this order:\n10-note\n");
    assert_eq!(ran(&world), [""; 0]);
    let run = world.hob(&["hooks", "run", "hooks.d", "--set", "TARGET=x1"]);
    let failed = run.args(&["--report", "r.json", "--report", "r.xml", "--report", "r.html"]).go();
    assert_eq!(failed.end, End::Code(1), "{failed:?}");
    let read = |name: &str| std::fs::read_to_string(world.path("work").join(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(report["targets"][0]["set"]["hooks"][0]["code"], 3, "{report}");
    assert_eq!((&report["ended"], &report["outcomes"]["error"]), (&1.into(), &1.into()));
    assert!(read("r.xml").contains("<failure type=\"error\" message=\"exit code 3\">no x1"));
    assert!(read("r.html").contains("10-note"));
}

#[test]
fn failures_are_grouped_by_their_cause_and_interrupts_are_none() {
    let world = world();
    world.file("t.txt", "a\nx1\nx2\nx3\nx4\ns1\n");
    let words = ["hooks", "run", "hooks.d", "--for-each", "t.txt", "--jobs", "1"];
    let outcome = world.hob(&words).args(&["--report", "r.json"]).go();
    let text = outcome.text();
    let group = "error 4 targets: 10-note, exit code 3: x1 (line 2), x2 (line 3), x3 (line 4) and 1 more\n    no x1\n";
    assert!(text.contains(group), "{text}");
    assert!(text.contains("interrupt s1 (line 6): 10-note, exit code 100"), "{text}");
    let report = std::fs::read(world.path("work/r.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["causes"][0]["targets"], 4, "{report}");
    // The interrupted one is done: only what failed is run again.
    let again = world.hob(&words).args(&["--resume=failed"]).go();
    assert_eq!(again.end, End::Code(1), "{again:?}");
    assert_eq!(ran(&world)[6..], ["x1", "x2", "x3", "x4"]);
}

#[test]
fn a_run_halts_at_so_many_failures_and_can_be_resumed() {
    for (jobs, halt) in [("1", "2"), ("1%", "30%")] {
        let world = world();
        world.file("t.txt", "a\nx1\nb\nx2\nc\nd\n");
        let words = ["hooks", "run", "hooks.d", "--for-each", "t.txt", "--jobs", jobs];
        let halted = world.hob(&words).args(&["--halt", halt]).go();
        assert_eq!(halted.end, End::Code(1), "{halted:?}");
        assert_eq!(ran(&world), ["a", "x1", "b", "x2"]);
        let said = halted.complaint();
        assert!(said.contains("--halt: 2 failed; no further target was begun"), "{said}");
        assert!(said.contains("2 targets have not ended"), "{said}");
        let rest = world.hob(&words).args(&["--resume"]).go();
        assert_eq!(rest.end, End::Code(1), "{rest:?}");
        assert_eq!(ran(&world)[4..], ["c", "d"]);
    }
}

#[test]
fn tagged_output_has_whole_lines_behind_their_names() {
    let world = world();
    world.executable("hooks.d/20-part", "#!/bin/sh\nprintf 'no end'\n");
    world.file("t.txt", "a\nb\nxc\n");
    let words = ["hooks", "run", "hooks.d", "--for-each", "t.txt", "--tag"];
    let outcome = world.hob(&words).go();
    let text = outcome.text();
    let mut lines: Vec<&str> = text.lines().filter(|line| line.contains('\t')).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a\tno end", "a\tseen", "b\tno end", "b\tseen", "xc\tseen"], "{text}");
    assert!(outcome.complaint().contains("xc\tno xc\n"), "{outcome:?}");
}

#[test]
fn times_have_units_and_may_have_several() {
    let world = world();
    world.hob(&["hooks", "run", "hooks.d", "--kill-after", "1m30s"]).go().succeeded();
    for option in ["--kill-after", "--grace", "--warn-after"] {
        let bare = world.hob(&["hooks", "run", "hooks.d", option, "90"]).go();
        assert_eq!(bare.end, End::Code(2), "{bare:?}");
        assert!(bare.complaint().contains("a time needs a unit"), "{bare:?}");
    }
}
