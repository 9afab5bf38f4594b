//! Hooks run from a JVM: what a caller is told, and that what it asks for is done.

use hob_tests::{World, wait};

use super::caller::{Jvm, hooks, pid, stays};

/// As [`super::caller::Jvm`] shows bytes.
fn hex(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[test]
fn each_kind_of_end_is_told_with_what_the_hooks_wrote() {
    let world = World::new();
    let mut jvm = Jvm::start(&world);
    let cases = [
        ("ok", "echo out; echo err >&2", "exit0", "Ok"),
        ("warn", "exit 32", "exit32", "Warning"),
        ("error", "printf '\\377\\n'; exit 7", "exit7", "Error"),
        ("signal", "kill -SEGV $$", "signal11", "Error"),
        ("interrupt", "echo wait; exit 100", "exit100", "Interrupt"),
    ];
    for (name, body, end, kind) in cases {
        let dir = hooks(&world, name, &[("10-a", body), ("20-b", "echo after")]);
        let told = jvm.run(name, &dir);
        assert!(told.starts_with(&format!("{kind} ran=10-a/")), "{name}: {told}");
        assert!(told.contains(&format!("/{end}/")), "{name}: {told}");
        let stopped = !["ok", "warn"].contains(&name);
        assert_eq!(told.contains("notrun=20-b "), stopped, "{name}: {told}");
        assert_eq!(told.contains(&hex("after\n")), !stopped, "{name}: {told}");
    }
    assert!(jvm.told("ok").contains(&format!("/{}/{}", hex("out\n"), hex("err\n"))));
    assert!(jvm.told("error").contains("/ff0a/"));
    // No directory is an empty set; a hook that cannot be started is a fault of the system.
    let gone = world.path("work/nothing").display().to_string();
    assert_eq!(jvm.run("empty", &gone), "Ok ran= running=- notrun= because=- ways=");
    let broken = hooks(&world, "broken", &[]);
    world.executable("broken/10-x", "#!/nonexistent/interpreter\n");
    let told = jvm.run("broken", &broken);
    assert!(told.starts_with("SystemError ran=10-x/SYSTEM_ERROR/-/"), "{told}");
    jvm.finish();
}

#[test]
fn hooks_get_the_worlds_parts_that_were_asked_for() {
    let world = World::new();
    let mut jvm = Jvm::with(&world, |run| run.env("ODD", "jvm").env("UUID", "inherited"));
    let show = "echo $UUID,$ODD,$OWN,$(umask),$(pwd)";
    let dir = hooks(&world, "show", &[("10-a", show), ("20-b.bak", "echo bak")]);
    // SIGPIPE (13) and its like end a hook, as they would end a child of the JVM.
    // What a C library keeps for itself (32 and 33) cannot be told to it.
    let signals = "s=$(grep SigIgn /proc/self/status); echo $((0x${s#*:?} & 0x7fffffff))";
    let signals = hooks(&world, "signals", &[("10-a", signals)]);
    let work = world.path("work").canonicalize().unwrap();
    let said = |told: String| told.split('/').nth(3).unwrap().to_owned();
    let told = said(jvm.run("own", &dir));
    assert_eq!(told, hex(&format!("inherited,jvm,,0022,{}\n", work.display())));
    let told = said(jvm.run("asked", &format!("{dir} UUID=1-2 env=x umask=027 cwd=/")));
    assert_eq!(told, hex("1-2,,x,0027,/\n"));
    let told = jvm.run("signals", &signals);
    assert_eq!(said(told), hex("0\n"));
    let told = jvm.run("suffixes", &format!("{dir} ignore=.none"));
    assert!(told.contains("20-b.bak/OK/"), "{told}");
    let told = jvm.run("nowhere", &format!("{dir} cwd=/nonexistent"));
    assert!(told.starts_with("NotRun/MALFORMED ran= "), "{told}");
    assert!(told.contains("/nonexistent: no working directory"), "{told}");
    jvm.finish();
}

#[test]
fn sets_of_two_threads_run_at_once_and_are_not_mixed_up() {
    let world = World::new();
    // Each goes on only when the other has come: one after the other they would never end.
    let meet = "touch met-$ME; until [ -e met-$OTHER ]; do sleep 0.01; done; echo $ME";
    let dir = hooks(&world, "meet", &[("10-a", meet)]);
    let mut jvm = Jvm::start(&world);
    jvm.say(&format!("block one {dir} ME=one OTHER=two"));
    jvm.say(&format!("block two {dir} ME=two OTHER=one"));
    for name in ["one", "two"] {
        let told = jvm.told(name);
        assert_eq!(told.split('/').nth(3).unwrap(), hex(&format!("{name}\n")), "{told}");
    }
    let dir = hooks(&world, "many", &[("10-a", "echo $ME"), ("20-b", "echo $ME >&2")]);
    for number in 0..40 {
        let how = if number % 2 == 0 { "run" } else { "block" };
        jvm.say(&format!("{how} n{number} {dir} ME={number}"));
    }
    for number in 0..40 {
        let said = hex(&format!("{number}\n"));
        let want = format!("Ok ran=10-a/OK/exit0/{said}/,20-b/OK/exit0//{said} ");
        let told = jvm.told(&format!("n{number}"));
        assert!(told.starts_with(&want), "{number}: {told}");
    }
    jvm.finish();
}

#[test]
fn hooks_of_a_warm_interpreter_are_warm_and_say_the_same() {
    let world = World::new();
    let dir = hooks(&world, "mixed", &[("20-sh", "echo $ME")]);
    let script = "#!/usr/bin/env python3\nimport os\nprint(os.environ['ME'])\n";
    world.executable("mixed/10-py", script);
    let mut jvm = Jvm::start(&world);
    let mut number = 0;
    wait::until("a warm hook", || {
        number += 1;
        let told = jvm.run(&format!("n{number}"), &format!("{dir} ME={number}"));
        let said = hex(&format!("{number}\n"));
        let want = format!("Ok ran=10-py/OK/exit0/{said}/,20-sh/OK/exit0/{said}/ ");
        assert!(told.starts_with(&want), "{told}");
        told.contains(" ways=WARM,").then_some(())
    });
    jvm.finish();
}

#[test]
fn a_set_is_cancelled_in_each_of_the_three_ways() {
    let world = World::new();
    let mut jvm = Jvm::start(&world);
    for (way, how) in [("run", "cancel"), ("run", "drop"), ("block", "interrupt")] {
        let stays = stays(&world, &format!("{how}.pid"));
        let dir = hooks(&world, how, &[("10-a", "echo a"), ("20-b", &stays), ("30-c", "echo c")]);
        jvm.say(&format!("{way} {how} {dir}"));
        let pid = pid(&world, &format!("{how}.pid"));
        jvm.say(&format!("{how} {how}"));
        assert!(wait::ended(pid, wait::LONG), "{how}");
    }
    let told = jvm.told("cancel");
    assert!(told.starts_with("Cancelled ran=10-a/OK/"), "{told}");
    assert!(told.contains(",20-b/CANCELLED/") && told.contains(" notrun=30-c "), "{told}");
    assert!(jvm.told("drop").contains("CancellationException"));
    assert_eq!(jvm.told("interrupt"), "interrupted");
    let reasons = wait::until("three receipts", || {
        let records = world.records(10);
        let reasons: Vec<_> = records.iter().map(|record| record["reason"].clone()).collect();
        (reasons.len() == 3).then_some(reasons)
    });
    assert_eq!(reasons, ["cancelled"; 3]);
    jvm.finish();
}

#[test]
fn time_that_is_over_ends_a_hook_or_a_set() {
    let world = World::new();
    let stays = stays(&world, "stays.pid");
    let dir = hooks(&world, "slow", &[("10-a", "echo a"), ("20-b", &stays), ("30-c", "echo c")]);
    let mut jvm = Jvm::start(&world);
    let told = jvm.run("hook", &format!("{dir} kill=300"));
    assert!(told.starts_with("Timeout ran=10-a/OK/"), "{told}");
    assert!(told.contains(",20-b/TIMEOUT/signal15/") && told.contains(" notrun=30-c "), "{told}");
    let told = jvm.run("set", &format!("{dir} deadline=500"));
    assert!(told.starts_with("Timeout ran=10-a/OK/"), "{told}");
    assert!(told.contains(",20-b/CANCELLED/signal15/") && told.contains(" notrun=30-c "), "{told}");
    assert_eq!(world.record(jvm.pid())["outcome"]["kind"], "timed-out");
    // The next one has all its time.
    let quick = hooks(&world, "quick", &[("10-a", "echo a")]);
    assert!(jvm.run("next", &format!("{quick} deadline=60000")).starts_with("Ok "));
    jvm.finish();
}

#[test]
fn a_gigabyte_of_output_is_bounded_on_both_sides() {
    let world = World::new();
    let dir = hooks(&world, "flood", &[("10-a", "head -c 1073741824 /dev/zero; echo end")]);
    let mut jvm = Jvm::start(&world);
    let told = jvm.run("flood", &dir);
    let cut = 1_073_741_824 + 4 - (1 << 20);
    assert!(told.contains(&format!("/524288+{cut}+524288/")), "{told}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 64 * 1024, "{peak_kib} KiB");
    jvm.finish();
}
