//! Scripts: what they see and leave, and what only the interpreter itself can do.

use hob_tests::{End, World};

#[test]
fn a_script_sees_its_callers_world_and_leaves_what_it_leaves_cold() {
    let world = World::started();
    world.file(
        "main.rb",
        "require 'json'\nrequire 'set'\n\
         puts JSON.dump([$0, __FILE__, __LINE__, ARGV, Dir.pwd, ENV.to_a - [%w[HOB 0]], $stdin.read, DATA.read])\n\
         puts caller.inspect, __method__.inspect, $stdout.sync, $stdin.tty?, File.umask\n\
         warn 'to stderr'\nat_exit { puts 'last' }\nexit 3\n__END__\nbehind\n",
    );
    let run = world.hob(&["run", "main.rb", "a", "", "b c"]).env("ONE", "1").stdin("given\n");
    let warm = world.warm_as_cold(&run);
    assert_eq!(warm.end, End::Code(3));
    assert!(warm.text().ends_with("last\n") && warm.complaint() == "to stderr\n", "{warm:?}");
    let record = world.record(warm.pid);
    assert_eq!(record["program"]["runtime"], "ruby", "{record}");
    let pools = world.status()["pools"].clone();
    assert_eq!(pools[0]["runtime"], "ruby", "{pools}");
}

#[test]
fn an_error_that_nobody_rescues_is_told_as_cold() {
    let world = World::started();
    world.file("part.rb", "def deep(n) = n.zero? ? raise(ArgumentError, 'no') : deep(n - 1)\n");
    world.file("main.rb", "require 'set'\nrequire_relative 'part'\ndeep(3)\n");
    let warm = world.warm_as_cold(&world.hob(&["run", "main.rb"]));
    assert_eq!(warm.end, End::Code(1));
    assert!(warm.complaint().contains("part.rb:1:in"), "{warm:?}");
}

#[test]
fn a_call_that_a_copy_executes_cold_is_cold_and_says_why() {
    let world = World::started();
    world.file("main.rb", "puts ARGV\n");
    world.warmed(&["run", "main.rb", "a"]);
    // So would a command of RubyGems ask for another version of its gem.
    let outcome = world.in_time(&world.hob(&["run", "main.rb", "_2_"]));
    assert_eq!(outcome.text(), "_2_\n");
    let record = world.record(outcome.pid);
    assert_eq!((&record["warm"], &record["reason"]), (&false.into(), &"not-as-loaded".into()));
}

#[test]
fn a_script_that_does_not_parse_is_refused_by_the_interpreter() {
    let world = World::started();
    let script = world.file("main.rb", "puts 1\n");
    world.warmed(&["run", "main.rb"]);
    std::fs::write(&script, "puts (\n").unwrap();
    let cold = world.run(&["ruby", "main.rb"]).go();
    assert!(cold.complaint().contains("main.rb:"), "{cold:?}");
    assert_eq!(world.hob(&["run", "main.rb"]).go(), cold);
}

#[test]
fn a_signal_that_ends_a_script_ends_its_caller() {
    let world = World::started();
    world.file("main.rb", "require 'set'\nProcess.kill(ARGV[0], $$)\nsleep\n");
    for signal in ["TERM", "KILL", "INT"] {
        let run = world.hob(&["run", "main.rb", signal]);
        world.warm_as_cold(&run);
    }
}

#[test]
fn what_the_interpreter_reads_in_another_way_runs_cold_with_its_reason() {
    let world = World::started();
    world.file("main.rb", "puts $_\n");
    for (words, reason) in [
        (&["ruby", "-e", "puts 1"][..], "not-a-program"),
        (&["ruby", "-n", "main.rb"], "not-a-program"),
        (&["ruby", "--version"], "not-a-program"),
        (&["ruby", "-"], "not-a-program"),
    ] {
        let cold = world.run(words).stdin("puts 2\n").go();
        let run = world.hob(&[&["run"], words].concat()).stdin("puts 2\n");
        let outcome = world.in_time(&run);
        assert_eq!(outcome, cold, "{words:?}");
        assert_eq!(world.reason(outcome.pid), reason, "{words:?}");
    }
    let loaded = world.hob(&["run", "ruby", "main.rb"]).env("RUBYOPT", "-rset");
    let loaded = world.in_time(&loaded);
    assert_eq!(world.reason(loaded.pid), "not-a-program");
}

#[test]
fn a_script_in_another_directory_and_by_another_name_is_itself() {
    let world = World::started();
    world.executable("tool", "#!/usr/bin/env ruby\nputs [$0, __FILE__, Dir.pwd].inspect\n");
    std::fs::create_dir(world.path("work/below")).unwrap();
    for (words, directory) in [
        (["run", "./tool"], "work"),
        (["run", "../tool"], "work/below"),
        (["run", "./tool"], "work"),
    ] {
        world.warm_as_cold(&world.hob(&words).within(world.path(directory)));
    }
}

#[test]
fn bytes_that_are_no_text_pass_as_they_are() {
    use std::os::unix::ffi::OsStringExt;
    let world = World::started();
    world.file("main.rb", "require 'set'\np ARGV.map(&:bytes), ENV['ODD'].bytes\n");
    let odd = std::ffi::OsString::from_vec(b"\xff\xfe".to_vec());
    let run = world.hob(&["run", "main.rb"]).args(&[&odd]).env("ODD", &odd);
    world.warm_as_cold(&run);
}

#[test]
fn a_script_without_a_statement_is_warm_and_one_that_gets_some_runs_them() {
    let world = World::started();
    for (number, text) in ["", "\n", "# said\n", "__END__\n", "=begin\n=end\n"].iter().enumerate() {
        let name = format!("none{number}.rb");
        world.file(&name, text);
        let run = world.hob(&["run", &name]);
        world.warm_as_cold(&run).succeeded();
        world.file(&name, "puts :now\n");
        assert_eq!(run.go().text(), "now\n", "{text:?}");
        world.file(&name, text);
        assert_eq!(run.go().text(), "", "{text:?}");
    }
}
