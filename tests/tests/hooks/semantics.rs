//! Which hooks run, in which order, with what around them, and what their ends mean.

use hob_tests::bytes::contains;
use hob_tests::{End, wait};

use super::{Hooks, each, name_of_bytes, wrote};

#[test]
fn executable_files_run_in_the_order_of_their_bytes_and_others_do_not() {
    let hooks = Hooks::new();
    for name in ["b", "B", "10", "9", "a.bak", "a.BAK", "c~", "d.dpkg-old", "e.rpmsave", "f.rpm.sh"]
    {
        hooks.hook(name, ":");
    }
    hooks.world.file("d/README", "not a hook");
    std::fs::create_dir(hooks.world.path("work/d/folder")).unwrap();
    std::os::unix::fs::symlink("b", hooks.world.path("work/d/linked")).unwrap();
    std::os::unix::fs::symlink("nowhere", hooks.world.path("work/d/dangling")).unwrap();
    let (outcome, set) = hooks.json(&[]);
    assert_eq!(outcome.end, End::Code(0));
    assert_eq!(each(&set, "name"), ["10", "9", "B", "b", "f.rpm.sh", "linked"]);
    let listed = hooks.world.hob(&["hooks", "list", "d"]).go();
    let text = listed.text();
    assert!(text.starts_with("10\n9\nB\nb\nf.rpm.sh\nlinked\n#"), "{text}");
    for why in ["# README: not executable", "# folder: no regular", "# dangling: leads to nothing"]
    {
        assert!(text.contains(why), "{text}");
    }
    let (_, set) = hooks.json(&["--ignore-suffix", ".SH"]);
    assert_eq!(each(&set, "name"), ["10", "9", "B", "b", "linked"]);
    let (_, set) = hooks.json(&["--no-default-suffixes"]);
    assert_eq!(set["hooks"].as_array().unwrap().len(), 11);
}

#[test]
fn an_absent_directory_is_an_empty_set_and_a_file_is_none() {
    let hooks = Hooks::new();
    hooks.world.hob(&["hooks", "run", "absent"]).go().succeeded();
    hooks.world.file("plain", "x");
    let outcome = hooks.world.hob(&["hooks", "run", "plain"]).go();
    assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
    assert!(contains(&outcome.err, b"plain: cannot be listed"), "{outcome:?}");
}

#[test]
fn each_end_has_its_outcome_and_exit_code() {
    let check = |body: &str, outcome: &str, code: i32, goes_on: bool| {
        let hooks = Hooks::of(&[("1", body), ("2", ":")]);
        let (ended, set) = hooks.json(&["--kill-after", "30s"]);
        assert_eq!(
            (set["hooks"][0]["outcome"].as_str(), ended.end),
            (Some(outcome), End::Code(code)),
            "{body}: {set}"
        );
        assert_eq!(set["outcome"], outcome, "{body}");
        assert_eq!(set["hooks"].as_array().unwrap().len() == 2, goes_on, "{body}");
        assert_eq!(set["not_run"].as_array().unwrap().is_empty(), goes_on, "{body}");
    };
    check("exit 0", "ok", 0, true);
    check("exit 1", "error", 1, false);
    check("exit 31", "error", 1, false);
    check("exit 32", "warning", 0, true);
    check("exit 63", "warning", 0, true);
    check("exit 64", "error", 1, false);
    check("exit 100", "interrupt", 3, false);
    check("exit 255", "error", 1, false);
    check("kill -9 $$", "error", 1, false);
}

#[test]
fn a_hook_sees_its_own_name_its_callers_world_and_its_parameters() {
    let body = r#"echo "$0|$#|$A|$B|$C|$D"; pwd; readlink /proc/$$/fd/0; ps -o pgid= -p $$ | tr -d ' '; echo $$; umask; cat; echo err >&2"#;
    let hooks = Hooks::of(&[("1", body), ("2", body)]);
    let file = hooks.world.file("vars", "# a comment\nB=file\nC=file\n\n  D=in front\n");
    let words = ["--set", "C=set", "--env-file", file.to_str().unwrap()];
    let run = hooks.run(&words).args(&["--json"]).env("A", "caller").env("B", "caller");
    let outcome = run.after("umask 027").go();
    let set = super::set_of(&outcome);
    let work = std::fs::canonicalize(hooks.world.path("work")).unwrap();
    for (at, name) in [(0, "1"), (1, "2")] {
        let hook = &set["hooks"][at];
        let pid = hook["pid"].to_string();
        let want = format!(
            "d/{name}|0|caller|file|set|in front\n{}\n/dev/null\n{pid}\n{pid}\n0027\n",
            work.display()
        );
        assert_eq!((wrote(hook, "stdout"), wrote(hook, "stderr")), (want.as_str(), "err\n"));
    }
}

#[test]
fn output_passes_through_as_it_is_and_each_stream_to_its_own() {
    let hooks = Hooks::of(&[("1", r"printf 'a\377\000b'; printf 'c\n' >&2"), ("2", "echo d")]);
    let outcome = hooks.run(&[]).go();
    assert_eq!((&outcome.out[..], &outcome.err[..]), (&b"a\xff\0bd\n"[..], &b"c\n"[..]));
    let (_, set) = hooks.json(&[]);
    let stdout = &set["hooks"][0]["stdout"];
    assert_eq!(
        (stdout["total"].as_u64(), stdout["head"]["base64"].as_str()),
        (Some(4), Some("Yf8AYg=="))
    );
}

#[test]
fn output_beyond_the_bound_loses_its_middle_and_says_so() {
    let body = "head -c 3000000 /dev/zero | tr '\\0' a; echo end";
    let hooks = Hooks::of(&[("1", body)]);
    let (_, set) = hooks.json(&[]);
    let stdout = &set["hooks"][0]["stdout"];
    assert_eq!(stdout["total"], 3_000_004);
    assert_eq!(stdout["cut"], 3_000_004 - (1 << 20));
    assert!(stdout["tail"].as_str().unwrap().ends_with("aend\n"));
    let stamped: u64 = stdout["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chunk| chunk["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(stamped, 3_000_004);
}

#[test]
fn stamps_put_the_lines_of_both_streams_in_order() {
    let body = "for n in 1 2 3; do echo $n; sleep 0.05; echo $n >&2; sleep 0.05; done";
    let hooks = Hooks::of(&[("1", body)]);
    let (_, set) = hooks.json(&[]);
    let hook = &set["hooks"][0];
    let mut stamps: Vec<(u64, &str)> = Vec::new();
    for stream in ["stdout", "stderr"] {
        let chunks = hook[stream]["chunks"].as_array().unwrap();
        stamps.extend(chunks.iter().map(|chunk| (chunk["at_ns"].as_u64().unwrap(), stream)));
    }
    stamps.sort_unstable();
    // A busy machine may read several of them at once; the first is still the first.
    assert_eq!(stamps.first().unwrap().1, "stdout");
    assert!(stamps.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn a_hook_that_takes_too_long_is_ended_with_its_group_and_the_set_is_a_timeout() {
    let body = "sleep 600 & echo $! >child; trap '' TERM; sleep 600; sleep 600";
    let hooks = Hooks::of(&[("1", body), ("2", ":")]);
    let (outcome, set) = hooks.json(&["--kill-after", "3s", "--grace", "200ms"]);
    assert_eq!((outcome.end, set["outcome"].as_str()), (End::Code(4), Some("timeout")), "{set}");
    assert_eq!((&set["hooks"][0]["signal"], &set["not_run"][0]), (&9.into(), &"2".into()), "{set}");
    let child: u32 = hooks.text("child").trim().parse().unwrap_or_else(|_| panic!("{set}"));
    assert!(wait::ended(child, wait::LONG), "what the hook had started is left: {set}");
}

#[test]
fn a_hook_that_heeds_sigterm_is_a_timeout_too() {
    let hooks = Hooks::of(&[("1", "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done")]);
    let (outcome, set) = hooks.json(&["--kill-after", "3s"]);
    assert_eq!((outcome.end, set["outcome"].as_str()), (End::Code(4), Some("timeout")));
    assert_eq!((wrote(&set["hooks"][0], "stdout"), &set["hooks"][0]["code"]), ("bye\n", &0.into()));
}

#[test]
fn a_slow_hook_is_told_of_and_goes_on() {
    let hooks = Hooks::of(&[("1", "sleep 0.4; echo done")]);
    let outcome = hooks.run(&["--warn-after", "50ms"]).go();
    outcome.succeeded();
    assert!(contains(&outcome.err, b"1: takes longer than 50ms"), "{outcome:?}");
    let (_, set) = hooks.json(&["--warn-after", "50ms"]);
    assert_eq!((&set["hooks"][0]["slow"], &set["outcome"]), (&true.into(), &"ok".into()));
}

#[test]
fn names_may_hold_anything_that_a_file_system_lets_them() {
    let hooks = Hooks::new();
    let names: [&[u8]; 5] = [b"a b", b"c\nd", b"e\xff", b"-f", b"'g\""];
    for name in names {
        let path = hooks.world.path("work/d").join(name_of_bytes(name));
        let script = hooks.hook("made", "echo \"$0\"");
        std::fs::rename(script, path).unwrap();
    }
    let (outcome, set) = hooks.json(&[]);
    assert_eq!(outcome.end, End::Code(0), "{set}");
    let mut written: Vec<Vec<u8>> =
        names.iter().map(|name| [b"d/", *name, b"\n"].concat()).collect();
    written.sort_unstable();
    let plain = hooks.run(&[]).go();
    assert_eq!(plain.out, written.concat());
    let listed = hooks.world.hob(&["hooks", "list", "d", "--json"]).go();
    let listed: serde_json::Value = serde_json::from_slice(&listed.out).unwrap();
    assert_eq!(listed["hooks"][4]["base64"], "Zf8=", "{listed}");
}

#[test]
fn a_thousand_hooks_run_each_once() {
    let hooks = Hooks::new();
    for number in 0..1000 {
        hooks.hook(&format!("{number:04}"), "echo \"${0##*/}\"");
    }
    let outcome = hooks.run(&[]).go();
    outcome.succeeded();
    let want: String = (0..1000).map(|number| format!("{number:04}\n")).collect();
    assert_eq!(outcome.text(), want);
}

#[test]
fn what_is_no_variable_or_time_is_said() {
    let hooks = Hooks::of(&[("1", ":")]);
    for words in [
        &["--set", "A"][..],
        &["--set", "=1"],
        &["--kill-after", "soon"],
        &["--ignore-suffix", "*"],
        &["--env-file", "absent"],
    ] {
        let outcome = hooks.run(words).go();
        assert_eq!(outcome.end, End::Code(2), "{words:?}: {outcome:?}");
    }
}

#[test]
fn a_table_beside_the_directory_limits_single_hooks() {
    let hooks =
        Hooks::of(&[("1-quick", "sleep 0.4"), ("2-slow", "exec sleep 600"), ("3-never", ":")]);
    let table = "# hook warn kill\n1-* 50ms -\n2-slow  -  1s\nother 1s 1s\n";
    hooks.world.file("d.limits", table);
    let general = ["--grace", "200ms", "--kill-after", "10m"];
    let (outcome, set) = hooks.json(&general);
    assert_eq!((outcome.end, &set["outcome"]), (End::Code(4), &"timeout".into()), "{set}");
    let of = |hook: usize| (&set["hooks"][hook]["outcome"], &set["hooks"][hook]["slow"]);
    assert_eq!(of(0), (&"ok".into(), &true.into()), "{set}");
    assert_eq!(of(1), (&"timeout".into(), &false.into()), "{set}");
    assert_eq!(set["not_run"][0], "3-never");
    let told = hooks.run(&general).go();
    for line in [&b"1-quick: takes longer than 50ms"[..], b"2-slow: timeout: ended after 1."] {
        assert!(contains(&told.err, line), "{told:?}");
    }
    let listed = |words: &[&str]| hooks.world.hob(&["hooks", "list"]).args(words).go().text();
    assert!(
        listed(&["d"]).contains("other: no hook has this name, in line 4"),
        "{}",
        listed(&["d"])
    );
    let json: serde_json::Value = serde_json::from_str(&listed(&["d/.", "--json"])).unwrap();
    let limits = serde_json::json!([
        {"hook": "1-quick", "warn_after_us": 50_000, "kill_after_us": null},
        {"hook": "2-slow", "warn_after_us": null, "kill_after_us": 1_000_000},
    ]);
    assert_eq!(json["limits"], limits, "{json}");
}

#[test]
fn a_table_that_cannot_be_read_runs_nothing() {
    let hooks = Hooks::of(&[("1", "echo ran >ran")]);
    for (table, why) in [
        ("1 soon -", "d.limits: line 1: soon: is no time"),
        ("\n1 5s", "d.limits: line 2: a row is"),
    ] {
        hooks.world.file("d.limits", table);
        let outcome = hooks.run(&[]).go();
        assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
        assert!(contains(&outcome.err, why.as_bytes()), "{outcome:?}");
    }
    assert!(!hooks.world.path("work/ran").exists());
}
