//! Commands that others wrote, as Debian packages them.

use hob_tests::World;

/// Calls until a call is warm, by Ruby's runtime, each as cold.
fn warm_as_cold(world: &World, words: &[&str]) {
    let warm = world.warm_as_cold(&world.hob(&[&["run"], words].concat()));
    let record = world.record(warm.pid);
    assert_eq!(record["program"]["runtime"], "ruby", "{record}");
}

#[test]
fn rake_runs_a_task() {
    let world = World::started();
    world.file(
        "Rakefile",
        "task :default do\n  puts ENV['WHO'], Dir.pwd\n  sh 'echo from a shell'\nend\n",
    );
    let run = world.hob(&["run", "rake"]).env("WHO", "me");
    world.warm_as_cold(&run);
    warm_as_cold(&world, &["rake", "-T"]);
    warm_as_cold(&world, &["rake", "missing"]);
}

#[test]
fn rspec_runs_a_spec() {
    let world = World::started();
    let spec = "RSpec.describe 'it' do\n  it('adds') { expect(1 + 1).to eq 2 }\n\
                \x20 it('fails') { expect(1).to eq 2 }\nend\n";
    world.file("a_spec.rb", spec);
    let words = ["run", "rspec", "--no-color", "a_spec.rb"];
    let shown = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with("Finished in")).collect::<Vec<_>>().join("\n")
    };
    let cold = world.hob(&words).env("HOB", "0").go();
    assert!(cold.text().contains("2 examples, 1 failure"), "{cold:?}");
    world.warm(&world.hob(&words), |outcome| {
        assert_eq!((outcome.end, shown(&outcome.text())), (cold.end, shown(&cold.text())));
        assert_eq!(outcome.complaint(), cold.complaint());
    });
}

#[test]
fn jekyll_says_its_version() {
    let world = World::started();
    warm_as_cold(&world, &["jekyll", "--version"]);
}

#[test]
fn rubocop_checks_a_file() {
    let world = World::started();
    world.file("a.rb", "# frozen_string_literal: true\n\nputs 'a'\nx = 1\n");
    warm_as_cold(&world, &["rubocop", "--cache", "false", "a.rb"]);
}

#[test]
fn a_command_of_a_bundle_is_warm_and_sees_the_bundle_as_it_is_now() {
    let world = World::started();
    world.file(
        "part/part.gemspec",
        "Gem::Specification.new { |s| s.name = 'part'; s.version = '1'; \
         s.summary = 's'; s.authors = ['a']; s.files = ['lib/part.rb', 'exe/says']; s.bindir = 'exe'; s.executables = ['says'] }\n",
    );
    world.file("part/lib/part.rb", "module Part; SAYS = 'first'; end\n");
    world.executable(
        "part/exe/says",
        "#!/usr/bin/env ruby\nrequire 'part'\nputs Part::SAYS, ARGV.inspect\n",
    );
    world.file("Gemfile", "gem 'rspec'\ngem 'part', path: 'part'\n");
    world.file(
        "a_spec.rb",
        "require 'part'\nRSpec.describe('it') { it('says') { puts Part::SAYS, ENV['RUBYOPT'] } }\n",
    );
    world.run(&["bundle", "install", "--local", "--quiet"]).go().succeeded();
    let run = world.hob(&["run", "bundle", "exec", "rspec", "--format", "failures", "a_spec.rb"]);
    let cold = run.clone().env("HOB", "0").go();
    assert!(cold.text().starts_with("first\n"), "{cold:?}");
    world.warm(&run, |outcome| assert_eq!(*outcome, cold));
    // Another command of the bundle is warm beside it.
    let other = world.hob(&["run", "bundle", "exec", "says", "a"]);
    let says = other.clone().env("HOB", "0").go();
    assert_eq!(says.text(), "first\n[\"a\"]\n");
    world.warm(&other, |outcome| {
        assert_eq!(*outcome, says);
        assert_eq!(run.go(), cold);
    });
    world.warm(&run, |outcome| assert_eq!(*outcome, cold));
    world.file("part/lib/part.rb", "module Part; SAYS = 'second'; end\n");
    assert!(run.go().text().starts_with("second\n"));
    world.file("Gemfile", "gem 'rspec'\n");
    let without = run.clone().env("HOB", "0").go();
    assert_ne!(without.end, cold.end, "{without:?}");
    assert_eq!(run.go(), without);
}
