//! Signals and job control: a terminal's keys, and signals to the client.

use hob_tests::{Called, End, Terminal, World, wait};
use rustix::process::Signal;

/// Calls the script in a terminal, cold and warm; `act` plays the user. Both must show and end the
/// same. The echo of a key that signals is left out: the kernel shows it after it has sent the
/// signal, and by then the shell that leads the session may have ended, and the terminal with it.
fn same(script: &str, text: &str, act: impl Fn(&mut Terminal)) -> (End, String) {
    let world = World::started();
    let both = [Called::Cold, Called::Warm].map(|how| {
        let mut terminal = Terminal::called(&world, script, text, how);
        act(&mut terminal);
        let (end, shown) = terminal.finish();
        let shown = String::from_utf8_lossy(&shown).replace("^C", "").replace("^\\", "");
        (end, shown)
    });
    let [cold, warm] = both;
    assert_eq!(cold, warm);
    let record = &world.records(1)[0];
    assert_eq!(record["warm"], true, "{record}");
    warm
}

// No traceback: it would show whether the signal came before the sleep.
const READY: &str =
    "import sys, time\nsys.tracebacklimit = 0\nprint('ready', flush=True)\ntime.sleep(1000)\n";

#[test]
fn control_c_ends_a_warm_program_as_it_ends_a_cold_one() {
    let (end, _) = same("sleeps.py", READY, |terminal| {
        terminal.expect("ready");
        terminal.keys("\x03");
    });
    assert_eq!(end, End::Signal(2));
}

#[test]
fn control_c_may_be_handled() {
    let text = "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(1000)\nexcept KeyboardInterrupt:\n    print('handled')\n";
    let (end, shown) = same("handles.py", text, |terminal| {
        terminal.expect("ready");
        terminal.keys("\x03");
    });
    // The shell that called it had the signal too.
    assert!(matches!(end, End::Code(0) | End::Signal(2)), "{end:?}");
    assert_eq!(shown.matches("handled").count(), 1, "{shown}");
}

#[test]
fn control_backslash_quits() {
    let (end, _) = same("sleeps.py", READY, |terminal| {
        terminal.expect("ready");
        terminal.keys("\x1c");
    });
    assert_eq!(end, End::Signal(3));
}

#[test]
fn keys_reach_the_program() {
    let text = "name = input('name? ')\nprint('hello', name)\n";
    let (end, shown) = same("asks.py", text, |terminal| {
        terminal.expect("name? ");
        terminal.keys("bob\n");
    });
    assert_eq!(end, End::Code(0));
    assert!(shown.ends_with("hello bob\r\n"), "{shown}");
}

#[test]
fn keys_are_edited_by_readline() {
    let text = "import readline\nprint(repr(input('name? ')))\n";
    let (_, shown) = same("edits.py", text, |terminal| {
        terminal.expect("name? ");
        terminal.keys("bxb\x02\x7fo\n");
    });
    assert!(shown.contains("'bob'"), "{shown}");
}

#[test]
fn a_password_is_asked_for_on_the_terminal_and_not_shown() {
    let text = "import getpass, sys\nprint(len(getpass.getpass('word? ')))\nprint(sys.stdin.isatty(), open('/dev/tty').isatty())\n";
    let (end, shown) = same("password.py", text, |terminal| {
        terminal.expect("word? ");
        terminal.keys("secret\n");
    });
    assert_eq!(end, End::Code(0));
    assert!(shown.contains("6\r\nTrue True") && !shown.contains("secret"), "{shown}");
}

#[test]
fn a_program_is_in_the_terminals_session_and_in_its_callers_group() {
    let text = "import os, signal\nsignal.signal(signal.SIGTTOU, signal.SIG_IGN)\nprint(os.getsid(0) == os.getsid(os.getpgrp()), os.tcgetpgrp(0) == os.getpgrp())\ntty = os.open('/dev/tty', os.O_RDWR)\nos.write(tty, b'by its name\\n')\nos.tcsetpgrp(tty, os.getpgrp())\nprint(os.ttyname(0) == os.ttyname(1))\n";
    let (end, shown) = same("group.py", text, |_| ());
    assert_eq!(end, End::Code(0));
    assert!(shown.contains("True True\r\nby its name\r\nTrue"), "{shown}");
}

#[test]
fn a_pager_that_a_program_starts_has_the_terminal() {
    let text = "import subprocess\nsubprocess.run(['sh', '-c', 'read line </dev/tty; echo \"paged $line\"'], stdin=subprocess.DEVNULL)\n";
    let (_, shown) = same("pages.py", text, |terminal| terminal.keys("on\n"));
    assert!(shown.contains("paged on"), "{shown}");
}

#[test]
fn a_window_that_changes_is_told() {
    let text = "import os, signal, time\nseen = []\nsignal.signal(signal.SIGWINCH, lambda *_: seen.append(1))\nprint('ready', flush=True)\nwhile not seen:\n    time.sleep(0.01)\nprint('now', os.get_terminal_size(), len(seen), flush=True)\n";
    let (end, shown) = same("window.py", text, |terminal| {
        terminal.expect("ready");
        terminal.resize(40, 132);
    });
    assert_eq!(end, End::Code(0));
    assert!(shown.contains("now os.terminal_size(columns=132, lines=40) 1"), "{shown}");
}

#[test]
fn a_client_that_leads_its_session_runs_cold_and_says_why() {
    let world = World::started();
    world.file(
        "group.py",
        "import os\nprint(os.tcgetpgrp(0) == os.getpgrp(), open('/dev/tty').isatty())\n",
    );
    let run = world.hob(&["run", "group.py"]);
    let _ = world.warm(&run, |_| ());
    let terminal = Terminal::open(&run);
    let pid = terminal.pid();
    let (end, shown) = terminal.finish();
    assert_eq!((end, shown.as_slice()), (End::Code(0), b"True True\r\n".as_slice()));
    assert_eq!(world.record(pid)["warm"], false);
    assert_eq!(world.reason(pid), "terminal");
}

#[test]
fn what_was_started_in_a_terminal_ends_with_it() {
    let world = World::started();
    let terminal = Terminal::called(&world, "sleeps.py", READY, Called::Warm);
    let session = terminal.pid();
    wait::until("a launcher in the session", || (members(session) >= 3).then_some(()));
    drop(terminal);
    wait::until("an empty session", || (members(session) == 0).then_some(()));
    assert!(world.daemon_if_any().is_some(), "the daemon stays");
}

#[test]
fn a_program_that_ignores_the_hang_up_outlives_its_terminal() {
    let world = World::started();
    let text = "import os, signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nprint('ready', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nopen('done', 'w').close()\n";
    let mut terminal = Terminal::called(&world, "outlives.py", text, Called::Warm);
    let session = terminal.pid();
    terminal.expect("ready");
    drop(terminal);
    world.file("go", "");
    wait::until("its last deed", || world.path("work/done").exists().then_some(()));
    wait::until("an empty session", || (members(session) == 0).then_some(()));
}

/// How many processes are in a session.
fn members(session: u32) -> usize {
    let stat = |entry: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        // A zombie is somebody's to bury, and runs nothing.
        let state = fields.next()?.to_owned();
        (fields.nth(2)? == session.to_string() && state != "Z").then_some(())
    };
    std::fs::read_dir("/proc").unwrap().filter_map(stat).count()
}

#[test]
fn each_forwarded_signal_reaches_the_program_once() {
    let world = World::started();
    world.file("signals.py", "import os, signal, sys\nseen = []\ndef on(n, _):\n    seen.append(n)\n    os.write(1, b'got %d\\n' % n)\nfor n in (1, 2, 3, 10, 12, 15, 28):\n    signal.signal(n, on)\nprint('ready', flush=True)\nsys.stdin.read()\nprint(sorted(seen))\n");
    world.warm(&world.hob(&["run", "signals.py"]), |_| {});
    let mut running = world.hob(&["run", "signals.py"]).stdin_pipe().start();
    running.expect("ready");
    for signal in [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::TERM,
        Signal::WINCH,
    ] {
        running.signal(signal);
        running.expect(&format!("got {}\n", signal.as_raw()));
    }
    drop(running.take_stdin());
    let outcome = running.finish();
    assert!(outcome.text().ends_with("[1, 2, 3, 10, 12, 15, 28]\n"), "{outcome:?}");
    assert_eq!(world.record(outcome.pid)["warm"], true);
}

#[test]
fn a_signal_that_ends_the_program_ends_the_client_by_the_same() {
    let world = World::started();
    world.file("sleeps.py", READY);
    for (signal, warming) in
        [(Signal::TERM, true), (Signal::HUP, false), (Signal::USR1, false), (Signal::QUIT, false)]
    {
        let mut warm = false;
        for _ in 0..40 {
            let running = world.hob(&["run", "sleeps.py"]).start();
            running.expect("ready");
            running.signal(signal);
            let outcome = running.finish();
            assert_eq!(outcome.end, End::Signal(signal.as_raw()), "{outcome:?}");
            warm = hob_tests::is_warm(&world.record(outcome.pid));
            if warm {
                break;
            }
        }
        assert!(warm, "never warm: {warming}");
    }
}

#[test]
fn a_shell_stops_and_continues_a_warm_program() {
    let world = World::started();
    world.file("counts.py", "import sys\nprint('ready', flush=True)\nfor line in sys.stdin:\n    print('line', line.strip(), flush=True)\n");
    world.warmed(&["run", "counts.py"]);
    let hob = world.binary().display().to_string();
    let shell =
        world.run(&["bash", "--norc", "--noprofile", "-i"]).env("PS1", "$ ").env("HISTFILE", "");
    let mut terminal = Terminal::open(&shell);
    terminal.expect("$ ");
    terminal.keys(&format!("{hob} run counts.py\n"));
    terminal.expect("ready");
    terminal.keys("one\n");
    terminal.expect("line one");
    terminal.keys("\x1a");
    terminal.expect("Stopped");
    terminal.expect("$ ");
    terminal.keys("echo in the $((1+1))nd shell\n");
    terminal.expect("in the 2nd shell");
    terminal.keys("fg\n");
    terminal.expect("run counts.py");
    terminal.keys("two\n");
    terminal.expect("line two");
    terminal.keys("\x04");
    terminal.expect("$ ");
    terminal.keys("echo status $?\n");
    terminal.expect("status 0");
    terminal.keys("exit\n");
    let (end, _) = terminal.finish();
    assert_eq!(end, End::Code(0));
    assert!(world.records(3).iter().any(|record| record["warm"] == true));
}
