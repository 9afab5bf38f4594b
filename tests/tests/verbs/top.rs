//! `hob top`: one snapshot, a stream of them, and a screen that gives the terminal back.

use hob_tests::{End, Run, Terminal, World, wait};
use rustix::process::Signal;
use serde_json::Value;

/// `hob top` as a screen shows it.
fn screen(world: &World) -> Run {
    world.hob(&["top"]).env("TERM", "xterm")
}

/// A shell that says how its terminal is set before and after `hob top`, and how that ended.
fn in_shell(world: &World) -> Terminal {
    let script = format!(
        "trap : INT; stty -g; {} top; echo \"ended $?\"; stty -g; echo over",
        world.binary().display()
    );
    Terminal::open(&world.run(&["bash", "-c", &script]).env("TERM", "xterm"))
}

/// Whether the two lines of `stty -g` are there and equal.
#[track_caller]
fn given_back(shown: &[u8]) {
    let shown = String::from_utf8_lossy(shown).into_owned();
    let is_settings = |line: &&str| line.contains(':') && !line.contains(' ');
    let settings: Vec<&str> = shown
        .lines()
        .map(|line| line.trim_start_matches("\x1b[?1049l").trim())
        .filter(is_settings)
        .collect();
    assert!(settings.len() == 2 && settings[0] == settings[1], "{settings:?} in {shown:?}");
    let last = |code: &str| shown.rfind(code);
    assert!(last("\x1b[?1049l") > last("\x1b[?1049h"), "the other screen is left: {shown:?}");
    assert!(last("\x1b[?25h") > last("\x1b[?25l"), "the cursor is back: {shown:?}");
}

#[test]
fn without_a_terminal_there_is_one_snapshot() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    for words in [&["top"][..], &["top", "--once"]] {
        let top = world.hob(words).go();
        top.succeeded();
        let text = top.text();
        for word in ["hob ", "% warm", "learning 1", "ready", "memory ", "hello.py"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains('\x1b'), "{text:?}");
    }
    let top = world.hob(&["top", "--once", "--json"]).go();
    let line: Value = serde_json::from_slice(&top.out).unwrap();
    assert_eq!((&line["schema"], &line["calls_per_s"]), (&"hob.top/1".into(), &0.0.into()));
    assert_eq!(line["daemon"]["pid"], world.daemon());
    assert!(line["warm_share"].as_f64().is_some_and(|share| share > 0.0 && share < 1.0), "{line}");
    let learning = line["cold"].as_array().unwrap().iter().find(|one| one["reason"] == "learning");
    assert_eq!(learning.map(|one| (&one["total"], &one["new"])), Some((&1.into(), &0.into())));
    assert!(line["workers"]["ready"].is_u64());
    let mut pools = line["pools"].as_array().unwrap().iter();
    assert!(pools.any(|pool| pool["program"] == "hello.py"), "{line}");
    assert_eq!(line["interval_us"].as_u64().map(|us| us >= 900_000), Some(true), "{line}");
}

#[test]
fn what_is_plain_has_no_screen_no_colour_and_no_figure() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let shown = |words: &[&str], variables: &[(&str, &str)]| {
        let run = world.hob(words).env("TERM", "xterm").env("LANG", "C.UTF-8");
        let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
        let (end, shown) = Terminal::open(&run).finish();
        assert_eq!(end, End::Code(0), "{words:?}");
        String::from_utf8(shown).unwrap()
    };
    let is_figure = |character: char| ('\u{2500}'..='\u{259f}').contains(&character);
    let drawn = shown(&["last"], &[]);
    assert!(drawn.contains('\x1b') && drawn.contains(is_figure), "{drawn:?}");
    for verb in ["last", "log", "status", "top", "trace"] {
        for (words, variable) in [
            (&[verb, "--plain"][..], ("HOB_PLAIN", "")),
            (&[verb], ("HOB_PLAIN", "1")),
            (&[verb], ("TERM", "dumb")),
        ] {
            let plain = shown(words, &[variable]);
            assert!(plain.contains("hello.py"), "{words:?}: {plain:?}");
            assert!(!plain.contains('\x1b') && !plain.contains(is_figure), "{words:?}: {plain:?}");
        }
    }
}

#[test]
fn without_a_daemon_a_snapshot_says_so_and_starts_none() {
    let world = World::new();
    for words in [&["top"][..], &["top", "--once", "--json"]] {
        let top = world.hob(words).go();
        assert_eq!((top.end, top.complaint().lines().count()), (End::Code(1), 1), "{top:?}");
        assert!(top.complaint().contains("no daemon is running"), "{top:?}");
    }
    assert!(!world.hob_dir().exists(), "a daemon was started");
}

#[test]
fn a_stream_has_a_line_a_second_and_counts_what_each_second_brought() {
    let world = World::started();
    let running = world.hob(&["top", "--json"]).start();
    let lines = |running: &hob_tests::Running| -> Vec<Value> {
        let out = running.out();
        let whole = out.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8(out[..whole].to_vec()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    wait::until("a line", || (!lines(&running).is_empty()).then_some(()));
    world.hob(&["run", "--cold", "true"]).go().succeeded();
    let seen = wait::until("the call", || {
        let asked = |line: &Value| {
            line["cold"].as_array()?.iter().find(|one| one["reason"] == "asked")?["new"].as_u64()
        };
        lines(&running).into_iter().find(|line| asked(line) == Some(1))
    });
    assert!(seen["calls_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{seen}");
    assert_eq!(seen["warm_share"], 0.0);
    // A daemon that goes and another that comes are told, and nothing is subtracted across them.
    world.hob(&["stop"]).go().succeeded();
    let gone = |line: &Value| line["daemon"].is_null();
    wait::until("no daemon", || lines(&running).iter().any(gone).then_some(()));
    world.hob(&["start"]).go().succeeded();
    let daemon = world.daemon();
    wait::until("the new daemon", || {
        lines(&running).into_iter().find(|line| line["daemon"]["pid"] == daemon)
    });
    for line in lines(&running) {
        assert_eq!(line["schema"], "hob.top/1");
        assert!(line["calls_per_s"].as_f64().is_none_or(|rate| rate >= 0.0), "{line}");
    }
    running.signal(Signal::INT);
    drop(running.finish());
}

#[test]
fn the_screen_shows_calls_as_they_come_and_q_gives_the_terminal_back() {
    let world = World::started();
    let mut terminal = in_shell(&world);
    terminal.expect("\x1b[?1049h");
    terminal.expect("nothing is warm yet");
    world.hob(&["run", "--cold", "true"]).go().succeeded();
    terminal.expect("asked 1 (+1)");
    // A window that is made smaller is drawn anew at once, within its lines.
    terminal.resize(6, 60);
    terminal.expect("\x1b[H");
    terminal.expect("q quits");
    terminal.keys("xyz");
    terminal.keys("q");
    terminal.expect("ended 0");
    terminal.expect("over");
    let (end, shown) = terminal.finish();
    assert_eq!(end, End::Code(0));
    given_back(&shown);
    assert!(!String::from_utf8_lossy(&shown).contains("xyz"), "keys are not shown");
}

#[test]
fn control_c_gives_the_terminal_back_and_ends_by_the_signal() {
    let world = World::started();
    let mut terminal = in_shell(&world);
    terminal.expect("q quits");
    terminal.keys("\x03");
    terminal.expect("ended 130");
    terminal.expect("over");
    let (_, shown) = terminal.finish();
    given_back(&shown);
    let mut terminal = Terminal::open(&screen(&world));
    terminal.expect("q quits");
    hob_tests::run::kill(terminal.pid(), Signal::TERM);
    let (end, shown) = terminal.finish();
    assert_eq!(end, End::Signal(15));
    assert!(shown.ends_with(b"\x1b[?25h\x1b[?1049l"), "{:?}", String::from_utf8_lossy(&shown));
}

#[test]
fn it_stops_and_continues_as_any_program_in_a_shell() {
    let world = World::started();
    let shell = world
        .run(&["bash", "--norc", "--noprofile", "-i"])
        .env("PS1", "$ ")
        .env("HISTFILE", "")
        .env("TERM", "xterm");
    let mut terminal = Terminal::open(&shell);
    terminal.expect("$ ");
    terminal.keys(&format!("{} top\n", world.binary().display()));
    terminal.expect("q quits");
    terminal.keys("\x1a");
    terminal.expect("\x1b[?1049l");
    terminal.expect("Stopped");
    terminal.expect("$ ");
    terminal.keys("echo $((40+2)) seen\n");
    terminal.expect("42 seen");
    terminal.keys("fg\n");
    terminal.expect("\x1b[?1049h");
    terminal.expect("q quits");
    terminal.keys("q");
    terminal.expect("\x1b[?1049l");
    terminal.keys("exit\n");
    let (end, _) = terminal.finish();
    assert_eq!(end, End::Code(0));
}

#[test]
fn the_screen_waits_for_a_daemon_and_fits_eighty_columns() {
    let world = World::new();
    world.file(
        "a-name-of-a-script-that-is-longer-than-any-column-would-be-for-it-in-a-table.py",
        "",
    );
    let mut terminal = Terminal::open(&screen(&world).env("NO_COLOR", "1"));
    terminal.expect("no daemon is running");
    world.warmed(&[
        "run",
        "a-name-of-a-script-that-is-longer-than-any-column-would-be-for-it-in-a-table.py",
    ]);
    terminal.expect("% warm");
    terminal.expect("q quits");
    terminal.keys("q");
    let (end, shown) = terminal.finish();
    assert_eq!(end, End::Code(0));
    let shown = String::from_utf8(shown).unwrap();
    for line in shown.split("\x1b[K") {
        let text: String = line
            .replace("\x1b[?1049h", "")
            .replace("\x1b[?25l", "")
            .replace("\x1b[?25h", "")
            .replace("\x1b[?1049l", "")
            .replace("\x1b[H", "")
            .replace("\x1b[J", "");
        assert!(text.trim().chars().count() <= 80 && !text.contains('\x1b'), "{text:?}");
    }
}

#[test]
fn a_daemon_that_is_stopped_does_not_hold_the_keys() {
    let world = World::started();
    let daemon = world.daemon();
    hob_tests::run::kill(daemon, Signal::STOP);
    wait::until("it is stopped", || (hob_tests::run::state(daemon) == Some('T')).then_some(()));
    let mut terminal = Terminal::open(&screen(&world));
    terminal.expect("the daemon does not answer");
    terminal.keys("q");
    let (end, _) = terminal.finish();
    assert_eq!(end, End::Code(0));
    hob_tests::run::kill(daemon, Signal::CONT);
}

#[test]
fn calls_are_listed_opened_and_left_with_keys() {
    let world = World::started();
    for number in 1..=3 {
        let name = format!("job{number}.py");
        world.file(&name, "print('done')\n");
        world.hob(&["run", &name]).go().succeeded();
    }
    let mut terminal = Terminal::open(&screen(&world).env("NO_COLOR", "1"));
    terminal.expect("Tab calls");
    terminal.keys("\t");
    terminal.expect("CALL");
    terminal.expect("> ");
    terminal.expect("job3.py");
    terminal.expect("3 calls");
    // One that comes meanwhile is shown without a key.
    world.hob(&["run", "job1.py"]).go().succeeded();
    terminal.expect("4 calls");
    terminal.keys("/job2\r");
    terminal.expect("only job2");
    terminal.keys("\r");
    terminal.expect("Esc back");
    terminal.keys("\x1b[A?");
    terminal.expect("? back");
    terminal.keys("?\x1b\x1b\x1b");
    terminal.expect("Tab calls");
    terminal.keys("q");
    let (end, shown) = terminal.finish();
    assert_eq!(end, End::Code(0));
    let shown = String::from_utf8(shown).unwrap();
    let opened = shown.rsplit("\x1b[H").find(|screen| screen.contains("Esc back")).unwrap();
    assert!(opened.contains("job2.py") && opened.contains("cold"), "{opened}");
}
