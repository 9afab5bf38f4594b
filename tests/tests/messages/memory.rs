//! One memory budget for everything that waits: calls and handlers together.

use std::time::Duration;

use hob_tests::{World, wait};

use super::{ask, trusted};

const BUDGET_MIB: u64 = 80;

#[test]
fn what_waits_for_calls_and_for_messages_shares_one_budget() {
    let world = World::new();
    let budget = BUDGET_MIB.to_string();
    world.hob(&["start"]).env("HOB_MEMORY_MB", &budget).go().succeeded();
    world.file("part.py", "HELD = b'x' * (40 << 20)\n");
    world.file("main.py", "import part\nprint(len(part.HELD))\n");
    world.file(
        "handlers.py",
        "HELD = b'y' * (60 << 20)\ndef echo(payload, message): return payload\n",
    );
    trusted(&world, "[program.echo]\nhandler = \"handlers.py:echo\"\n");
    world.warmed(&["run", "main.py"]);
    assert_eq!(ask(&world, &["echo", "x"]), "x");
    // Memory is read every five seconds; before it is, nobody knows.
    let within = wait::look(Duration::from_secs(30), || {
        let status = world.status();
        let pools = status["pools"].as_array().cloned().unwrap_or_default();
        let read = |program: &str| {
            let of = pools.iter().filter(|pool| pool["program"] == program);
            of.filter_map(|pool| pool["memory_kib"].as_u64()).sum::<u64>()
        };
        let (script, handler) = (read("main.py"), read("echo"));
        let held = status["memory_kib"].as_u64().unwrap_or(u64::MAX);
        let known = script > 30 << 10 || handler > 50 << 10;
        (known && held <= BUDGET_MIB << 10).then_some((script, handler))
    });
    assert!(within.is_some(), "{}", world.status());
    // What went comes back when it is wanted.
    assert_eq!(ask(&world, &["echo", "y"]), "y");
    world.warmed(&["run", "main.py"]);
}
