"""A project with a bundle: a Gemfile, a gem beside it, commands; and calls within it."""

import glob
import os
import pathlib
import shutil
import unittest

from harness import NOTES, ROW, Case, Run  # noqa: F401

BUNDLE = shutil.which("bundle")

GEMSPEC = """
    Gem::Specification.new do |s|
      s.name, s.version, s.summary, s.author = "hobtest", "%s", "x", "x"
      s.files = ["lib/hobtest.rb"]
    end
"""

# What a program can see of its bundle.
PROBE = """
    require "rspec/core"
    require "rake"
    require "hobtest"
    p HOBTEST, ENV.to_a, ENV.sort
    p Bundler.original_env.to_a, Bundler.unbundled_env.to_a, Bundler::ORIGINAL_ENV.size
    p Gem.loaded_specs.map { |name, spec| [name, spec.full_name, spec.activated?, spec.full_gem_path] }
    p $LOAD_PATH, $0, __FILE__, ARGV, caller
    puts $LOADED_FEATURES.grep_v(/worker.rb/).sort
    puts "in order:", $LOADED_FEATURES.grep(/gems.(rspec|rake)|hobtest/)
    p Bundler.root, Bundler.bundle_path, Bundler.settings.all, Bundler.default_lockfile
    p Bundler.definition.specs.map(&:full_name), Bundler.definition.groups, Bundler.load.class
    p Bundler.singleton_methods.sort, Bundler.instance_variables.sort, Bundler.constants.sort
    p Bundler::Plugin.instance_variables.sort, Bundler.autoload?(:Graph), Bundler.ui.class
    p Gem.path, Gem.dir, Gem::Specification.dirs, Gem.instance_variables.sort, Gem.post_reset_hooks.size
    p Gem::Specification.stubs.map(&:full_name).sort, Gem::Specification.map(&:full_name).sort
    p method(:require).source_location, method(:gem).source_location, Kernel.method(:gem).owner
    p Kernel.private_instance_methods(false).sort, Gem.method(:bin_path).source_location
    p Gem.singleton_methods(false).sort, Gem.method(:finish_resolve).source_location
    p Object.constants.sort, global_variables.sort, Gem.ui.class rescue p $!.class
    GC.start # What is silent and no longer needed holds descriptors.
    p Dir.pwd, File.open(__FILE__).fileno
    p trap("INT", "DEFAULT"), $!, $stdout.sync
    begin
      gem "no-such-gem"
    rescue LoadError => e
      p e.class, e.message, e.backtrace
    end
    begin
      require "no_such_library"
    rescue LoadError => e
      p e.message, e.backtrace
    end
    system("tr '\\\\0' '\\\\n' < /proc/self/environ")
    puts Bundler.with_unbundled_env { `env` }
    at_exit { p ENV["RUBYOPT"], $! }
    exit 3
"""

# And what a Ruby does that it starts, which takes as long as all else of it.
CHILD = 'system("ruby", "-e", "p $:, ENV.to_a, Gem.loaded_specs.keys, defined?(Bundler)")'
WITH_CHILD = PROBE.replace("at_exit", CHILD + "\n    at_exit")

STUB = """
    #!/usr/bin/env ruby
    load Gem.activate_bin_path("%s", "%s", ">= 0.a")
"""


@unittest.skipUnless(BUNDLE, "no Bundler here")
class Project(Case):
    # What Bundler has found of the usual Gemfile, wherever it lies.
    lock = None

    def setUp(self):
        super().setUp()
        self.write("home/x", "")
        self.cwd = os.path.join(self.place, "app")
        self.gem("1.0")
        self.write("app/Gemfile", self.gemfile())
        self.stub("probe", "#!/usr/bin/env ruby\n" + PROBE.replace("\n    ", "\n"))
        self.stub("rspec", STUB % ("rspec-core", "rspec"))
        self.stub("rake", STUB % ("rake", "rake"))
        self.write("app/Rakefile", "task(:default) { |t| p t.name, ENV.to_a, Rake::VERSION }")
        self.write("app/spec/a_spec.rb", "require 'hobtest'; RSpec.describe('x') { it { p HOBTEST } }")
        self.write("app/main.rb", 'require "bundler/setup"\n' + PROBE)
        self.base = {"PATH": self.place + "/bin:" + os.environ["PATH"], "LANG": "C.UTF-8", "B": "1"}
        self.base.update(HOME=self.place + "/home", A="2")
        if Project.lock is None:
            self.exec("ruby", "-e", "").cold()
            with open(self.cwd + "/Gemfile.lock") as file:
                Project.lock = file.read()
        self.write("app/Gemfile.lock", Project.lock)

    def gemfile(self, more=""):
        text = 'source "https://rubygems.org"\ngem "rspec"\ngem "hobtest", path: "../gem"\n'
        return text + 'group(:tool) { gem "rake" }\n' + more

    def stub(self, name, text):
        os.chmod(self.write("bin/" + name, text), 0o755)

    def gem(self, version, where="gem", text="HOBTEST = '%s'"):
        self.write(where + "/hobtest.gemspec", GEMSPEC % version)
        self.write(where + "/lib/hobtest.rb", text % version if "%" in text else text)

    def call(self, *words, **how):
        how.setdefault("cwd", self.cwd)
        how["env"] = dict(self.base, **how.pop("more", {}))
        return Run(ROW, list(words), **how)

    def exec(self, *words, **how):
        return self.call(BUNDLE, "exec", *words, **how)

    def steady(self, run):
        """The outcome cold; a run that writes the lock tells of it."""
        before, cold = self.locks(), run.cold()
        return cold if before == self.locks() else run.cold()

    def locks(self):
        """What Bundler has written, by where."""
        paths = glob.glob(self.place + "/**/Gemfile.lock", recursive=True)
        return {path: pathlib.Path(path).read_bytes() for path in paths}

    def learned(self, run, compared=True):
        """The names of a learning run, which is equal; but for the times that some programs tell."""
        path = os.path.join(self.place, "notes")
        self.cold, learned = self.steady(run), run.learn(path)
        if compared:
            self.assertEqual(self.cold, learned)
        with open(path, "rb") as file:
            self.notes = file.read().split(b"\0")
        return [note[1:] for note in self.notes if note[:1] == b"M"]

    def started(self, run, names, hazards=(), **how):
        how.setdefault("argv", run.argv[:1])
        worker = self.zygote(run.argv[0], modules=names, cwd=run.cwd, env=run.env, **how)
        self.assertEqual({n for n in worker.notes if n[:1] == b"H"}, set(hazards))
        return worker

    def ahead(self, zygote, *parts):
        """Whether files whose path ends so were loaded ahead."""
        files = [os.fsdecode(note[1:]) for note in zygote.notes if note[:1] == b"F"]
        return [any(file.endswith(part) for file in files) for part in parts]

    def equal(self, run, zygote, cold=None):
        """The warm outcome, equal to the cold one; which may be known."""
        cold, warm = cold or run.cold(), run.warm(zygote, 1)
        for outcome in (cold, warm):
            # RSpec tells how long it took.
            outcome.out = b"".join(x for x in outcome.out.splitlines(True) if b" seconds (" not in x)
        self.assertEqual(cold, warm)
        return warm
