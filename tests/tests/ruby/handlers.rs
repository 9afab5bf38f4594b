//! Handlers of messages, and hooks, in Ruby.

use hob_tests::World;

fn project(handler: &str, declared: &str) -> World {
    let world = World::started();
    world.file("greeter.rb", handler);
    world.file("hob.toml", declared);
    world.hob(&["trust"]).go().succeeded();
    world
}

#[test]
fn a_handler_in_ruby_is_declared_by_its_file_alone() {
    let world = project(
        "def handle(payload)\n  \"hello #{payload}\"\nend\n",
        "[program.greeter]\nhandler = \"greeter.rb:handle\"\n",
    );
    for name in ["one", "two"] {
        let asked = world.hob(&["ask", "greeter", name]).go();
        asked.succeeded();
        assert_eq!(asked.text(), format!("hello {name}"));
    }
    let pools = world.status()["pools"].clone();
    assert_eq!(pools[0]["runtime"], "ruby", "{pools}");
}

#[test]
fn a_handler_that_raises_or_cannot_be_loaded_says_so() {
    let world = project(
        "def handle(payload)\n  raise 'no such thing'\nend\n",
        "[program.greeter]\nhandler = \"greeter.rb:handle\"\n\
         [program.broken]\nhandler = \"greeter.rb:missing\"\n",
    );
    let asked = world.hob(&["ask", "greeter", "x"]).go();
    assert!(asked.complaint().contains("no such thing"), "{asked:?}");
    let asked = world.hob(&["ask", "broken", "x"]).go();
    assert!(asked.complaint().contains("missing"), "{asked:?}");
}

#[test]
fn a_hook_in_ruby_is_warm() {
    let world = World::started();
    world.executable(
        "hooks/10-say",
        "#!/usr/bin/env ruby\nrequire 'set'\nputs Dir.pwd, ENV['UUID']\n",
    );
    let run = world.hob(&["hooks", "run", "hooks"]).env("UUID", "u-1");
    let mut ways = Vec::new();
    for _ in 0..50 {
        let outcome = run.go();
        outcome.succeeded();
        assert!(outcome.text().contains("u-1"), "{outcome:?}");
        ways = world.records(20).into_iter().map(|record| record["warm"] == true).collect();
        if ways.contains(&true) {
            return;
        }
    }
    panic!("never warm: {ways:?}");
}
