//! Hooks that are started before their turn, or forked from their shell, are exactly what they
//! would be: each thing that a shell can see of its own start, with and without, and everything
//! that has it spawned.

use hob_tests::End;
use serde_json::Value;

use super::{Hooks, each, set_of, wrote};

/// Nothing is forked with a variable that the C library's allocator may read before the entry.
const NOT_FORKED: [&str; 2] = ["--set", "MALLOC_ARENA_MAX=8"];

/// The ways of the hooks of a run with these words, and what they wrote, for the default and for
/// `spawn`.
fn both(hooks: &Hooks, words: &[&str]) -> [(Value, String); 2] {
    ["fastest", "spawn"].map(|isolation| {
        let run = hooks.run(&["--isolation", isolation, "--json"]).args(words).after(PAUSE);
        let outcome = run.go();
        let set = set_of(&outcome);
        assert_eq!(outcome.end, End::Code(0), "{set}");
        let written = (0..set["hooks"].as_array().unwrap().len())
            .map(|at| wrote(&set["hooks"][at], "stdout").to_owned());
        let written = written.collect();
        (set, written)
    })
}

/// Whether this machine has a processor to hold a hook on.
fn may_hold() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}

/// Whether this machine forks shells: the kernel says whether it would execute a file.
fn may_fork() -> bool {
    let release = rustix::system::uname();
    let mut numbers = release.release().to_str().unwrap().split(['.', '-']);
    let mut number = || numbers.next()?.parse::<u32>().ok();
    cfg!(target_arch = "x86_64") && (number(), number()) >= (Some(6), Some(14))
}

/// A pause that lets a hook's files grow old enough to be told from changed ones: within one tick
/// of the clock a second change could get the same stamp.
const PAUSE: &str = "sleep 0.1";

#[test]
fn what_a_shell_sees_of_its_start_is_the_same_forked_held_and_spawned() {
    // The shell reads its own status: while it starts a program, it blocks signals for a moment.
    let body = r#"echo "$0|$PWD|$-|$#|$X"
        while read -r name value; do case $name in
            SigIgn:) echo "$name ${value#?????????}";;
            PPid:) [ "$value" = "$PPID" ] && echo parent;;
            TracerPid:|SigBlk:|SigCgt:|Threads:|Seccomp:|NoNewPrivs:) echo "$name $value";;
        esac; done </proc/$$/status
        tr '\0' '|' </proc/$$/cmdline; ulimit -a; umask; ls /proc/$$/fd; cat <<EOF
here $X
EOF
        trap 'echo trapped' EXIT; set -e; (exit 0); cd /; pwd"#;
    let hooks = Hooks::of(&[("1", ":"), ("2", ":"), ("3", body), ("4", body)]);
    let script = r#"#!/bin/bash
echo "$BASH_SOURCE|$0|$SHLVL|${BASH_ARGV[*]}"; [ $BASHPID = $$ ] && echo same; exec echo replaced
"#;
    hooks.world.executable("d/5", "#!/bin/bash\n");
    hooks.world.executable("d/6", script);
    let [(forked, with), (spawned, without)] = both(&hooks, &[]);
    assert_eq!(with, without);
    assert_eq!(each(&spawned, "reason"), ["spawn-asked"; 6]);
    if may_fork() {
        assert_eq!(each(&forked, "way"), ["forked"; 6], "{forked}");
    }
    let [(held, with), (_, without)] = both(&hooks, &NOT_FORKED);
    assert_eq!(with, without);
    if may_hold() {
        // The first of a shell's that could be held says that there are such.
        let want = ["spawned", "spawned", "prestarted", "prestarted", "spawned", "prestarted"];
        assert_eq!(each(&held, "way"), want, "{held}");
        if cfg!(target_arch = "x86_64") {
            // And why they were not forked.
            assert_eq!(each(&held, "reason"), ["linker-variables"; 6], "{held}");
        }
    }
}

#[test]
fn a_shell_that_somebody_kills_before_it_is_forked_again_loses_no_hook() {
    // The shell that is forked is hob's only other child, and ignores nothing.
    let body =
        "for p in $(ps -o pid= --ppid $PPID); do [ $p = $$ ] || kill -KILL $p; done; sleep 0.1";
    let hooks = Hooks::of(&[("1", body), ("2", "echo ran >>ran; echo $0"), ("3", "echo $0")]);
    let outcome = hooks.run(&["--json"]).after(PAUSE).go();
    let set = set_of(&outcome);
    assert_eq!(outcome.end, End::Code(0), "{set}");
    assert_eq!((hooks.text("ran"), wrote(&set["hooks"][2], "stdout")), ("ran\n".into(), "d/3\n"));
}

#[test]
fn what_an_earlier_hook_changes_a_later_one_sees() {
    let check = |first: &str, want: &str| {
        let hooks =
            Hooks::of(&[("1", &format!("{PAUSE}; {first}")), ("2", "echo old $(cat state)")]);
        hooks.world.file("state", "one");
        let set = set_of(&hooks.run(&["--json"]).after(PAUSE).go());
        assert_eq!(wrote(&set["hooks"][1], "stdout"), want, "{first}: {set}");
        set
    };
    check("echo two >state", "old two\n");
    // Rewritten in place, with the same length; replaced; another interpreter.
    let set = check("sed 's/old/new/' d/2 >t; cat t >d/2", "new one\n");
    let second = &set["hooks"][1];
    // Of a file that is old enough by then, its shell may be forked.
    assert!(second["way"] == "spawned" || second["way"] == "forked", "{set}");
    assert_eq!(second["changed"], true, "{set}");
    check("sed 's/old/new/' d/2 >t; chmod +x t; mv t d/2", "new one\n");
    check("printf '#!/bin/cat\\ntext\\n' >t; cat t >d/2", "#!/bin/cat\ntext\n");
}

#[test]
fn an_interpreter_that_is_replaced_before_its_turn_is_not_used_as_it_was() {
    let hooks = Hooks::new();
    let shell = std::fs::read("/bin/sh").unwrap();
    let path = hooks.world.executable("sh", &shell);
    let first = format!("#!{}\n", path.display());
    hooks
        .hook("1", &format!("{PAUSE}; printf '#!/bin/sh\\necho other\\n' >t; chmod +x t; mv t sh"));
    // A script cannot be another script's interpreter's interpreter on every kernel; what counts
    // is that the new file is asked.
    hooks.world.executable("d/2", format!("{first}echo same\n"));
    let set = set_of(&hooks.run(&["--json"]).after(PAUSE).go());
    let second = &set["hooks"][1];
    // On a slow machine the new file is old enough by then for its shell to be forked.
    assert!(second["way"] == "spawned" || second["way"] == "forked", "{set}");
    assert_ne!(wrote(second, "stdout"), "same\n", "{set}");
}

#[test]
fn programs_that_run_once_are_not_watched_to_be_held() {
    let hooks = Hooks::new();
    let program = std::fs::read("/bin/echo").unwrap();
    for name in ["1", "2", "3", "4"] {
        hooks.world.executable(&format!("d/{name}"), &program);
    }
    let dir = hooks.world.path("work/d");
    let run = hooks.world.hob(&["hooks", "run", dir.to_str().unwrap(), "--json"]);
    let set = set_of(&run.env("HOB", "0").after(PAUSE).go());
    assert_eq!(each(&set, "way"), ["spawned"; 4], "{set}");
    if may_hold() {
        assert_eq!(each(&set, "reason"), ["first"; 4], "{set}");
    }
}

#[test]
fn variables_that_the_linker_reads_have_a_hook_spawned() {
    let hooks = Hooks::of(&[("1", PAUSE), ("2", ":")]);
    let (_, set) = hooks.json(&["--set", "LD_LIBRARY_PATH=/nowhere"]);
    assert_eq!(set["hooks"][1]["way"], "spawned");
    if may_hold() {
        assert_eq!(set["hooks"][1]["reason"], "linker-variables", "{set}");
    }
}

#[test]
fn a_held_process_that_somebody_kills_is_spawned() {
    for signal in ["KILL", "TERM"] {
        check(signal);
    }
}

/// Sends a signal to what is held for the second hook, as soon as it is.
fn check(signal: &str) {
    let body = format!(
        r#"n=0; until [ -e killed ] || [ $((n += 1)) -gt {tries} ]; do
            for p in $(ps -eo pid=,stat=,args= | awk '$2 ~ /^[tT]/ && $4 == "d/2" {{print $1}}'); do
                [ "$(readlink /proc/$p/cwd)" = "$PWD" ] && kill -{signal} $p && echo $p >>killed
            done
        done
        # Another test's process may have been the last that was looked at, and is not ours.
        exit 0"#,
        // Where nothing is held, nothing is waited for.
        tries = if may_hold() { 2000 } else { 0 }
    );
    let body = body.as_str();
    let hooks = Hooks::of(&[("0", ":"), ("1", body), ("2", "echo ran")]);
    let outcome = hooks.run(&["--json"]).args(&NOT_FORKED).after(PAUSE).go();
    let set = set_of(&outcome);
    assert_eq!((outcome.end, wrote(&set["hooks"][2], "stdout")), (End::Code(0), "ran\n"), "{set}");
    if may_hold() {
        assert!(!hooks.text("killed").is_empty(), "{signal}: nothing was held: {set}");
        assert_eq!(set["hooks"][2]["reason"], "held-gone", "{set}");
    }
}

#[test]
fn a_set_that_stops_leaves_nothing_held() {
    let hooks = Hooks::of(&[
        ("1", &format!("{PAUSE}; exit 1")),
        ("2", "echo ran >ran"),
        ("3", "echo ran >ran"),
    ]);
    let outcome = hooks.run(&["--json"]).go();
    let set = set_of(&outcome);
    assert_eq!(
        (each(&set, "outcome"), hooks.text("ran")),
        (vec!["error".to_owned()], String::new())
    );
    assert_eq!(hob_tests::leftovers::processes(&hooks.world.path("work")), []);
}
