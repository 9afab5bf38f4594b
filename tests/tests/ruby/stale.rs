//! What was edited, installed or set takes effect on the next call.

use hob_tests::World;

/// A world whose script requires `part` from a directory on the search path.
fn project(part: &str) -> World {
    let world = World::started();
    world.file("lib/part.rb", part);
    world.file("main.rb", "require 'part'\nputs Part::SAYS\n");
    world
}

fn run(world: &World) -> hob_tests::Run {
    world.hob(&["run", "main.rb"]).env("RUBYLIB", world.path("work/lib"))
}

#[test]
fn an_edited_file_is_new_on_the_next_call() {
    let world = project("module Part; SAYS = 0; end\n");
    for turn in 1..4 {
        world.warm(&run(&world), |_| {});
        world.file("lib/part.rb", format!("module Part; SAYS = {turn}; end\n"));
        assert_eq!(run(&world).go().text(), format!("{turn}\n"));
    }
}

#[test]
fn a_file_that_comes_before_another_is_found() {
    let world = project("module Part; SAYS = 'behind'; end\n");
    std::fs::create_dir(world.path("work/first")).unwrap();
    let both = [world.path("work/first"), world.path("work/lib")];
    let both = std::env::join_paths(both).unwrap();
    let run = world.hob(&["run", "main.rb"]).env("RUBYLIB", both);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "behind\n"));
    world.file("first/part.rb", "module Part; SAYS = 'first'; end\n");
    assert_eq!(run.go().text(), "first\n");
}

#[test]
fn a_variable_that_is_read_while_a_file_is_loaded_is_each_callers() {
    let world = project("module Part; SAYS = ENV.fetch('MODE', 'none'); end\n");
    world.warm(&run(&world), |outcome| assert_eq!(outcome.text(), "none\n"));
    for mode in ["a", "b", "a"] {
        let run = run(&world).env("MODE", mode);
        world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("{mode}\n")));
    }
}

#[test]
fn what_a_file_does_while_it_is_loaded_each_call_does() {
    for body in [
        "puts 'loading'",
        "File.write('made', Process.pid.to_s)",
        "system('echo', 'from a child')",
        "STDIN.read",
    ] {
        let world = project(&format!("module Part; SAYS = 1; end\n{body}\n"));
        let run = run(&world).stdin("given");
        let cold = run.clone().env("HOB", "0").go();
        world.warm(&run, |outcome| {
            assert_eq!(*outcome, cold, "{body}");
            let made = world.path("work/made");
            assert_eq!(made.exists(), body.contains("made"), "{body}");
            let _ = std::fs::remove_file(made);
        });
    }
}

#[test]
fn each_call_has_a_moment_of_its_own() {
    let world = project(
        "require 'securerandom'\nmodule Part; SAYS = [Time.now.to_f, Process.pid, rand, \
         SecureRandom.hex, Random.new.rand].inspect; end\n",
    );
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let outcome = world.warm(&run(&world), |_| {});
        assert!(seen.insert(outcome.text()), "{seen:?}");
    }
}
