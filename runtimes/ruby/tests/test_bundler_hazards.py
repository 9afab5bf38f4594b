"""Within a bundle: what cannot be loaded ahead is loaded by the call, one by one."""

import unittest

from bundled import GEMSPEC, Project


class Hazards(Project):
    def hazards(self, run, expect):
        names = self.learned(run)
        worker = self.zygote(run.argv[0], modules=names, argv=run.argv[:1], cwd=self.cwd, env=run.env)
        with worker:
            found = {n for n in worker.notes if n[:1] == b"H"}
            self.assertTrue([n for n in found if n.endswith(expect)], found)
        names = [name for name in names if not any(n[1:].startswith(name + b":") for n in found)]
        how = {"modules": names, "argv": run.argv[:1], "cwd": self.cwd, "env": run.env}
        with self.zygote(run.argv[0], **how) as zygote:
            self.equal(run, zygote, self.cold)
            return zygote

    def test_a_gem_that_prints(self):
        self.gem("1.0", text="HOBTEST = '%s'; puts 'loaded'")
        zygote = self.hazards(self.exec("probe"), b"hobtest.rb:output")
        self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/gem/lib/hobtest.rb"), [True, False])

    def test_a_gem_that_changes_what_is_undone(self):
        for text in (
            "$LOAD_PATH.unshift('/no/such/place')",
            "module Kernel; alias kept require; def require(name) = kept(name); end",
            "def Bundler.root = 'another'",
            "class << Gem; def bin_path(*) = 'another'; end",
            "Gem.post_reset { }",
            "def (RubyVM::InstructionSequence).load_iseq(path) = nil",
        ):
            with self.subTest(text=text):
                self.gem("1.0", text="HOBTEST = '%s'; " + text)
                zygote = self.hazards(self.exec("probe"), b"hobtest.rb:state")
                loaded = self.ahead(zygote, "/rspec/core.rb", "/gem/lib/hobtest.rb")
                self.assertEqual(loaded, [True, False])

    def test_a_gem_that_adds_methods(self):
        self.gem("1.0", text="HOBTEST = '%s'; module Kernel; def added = 1; end; def Gem.added = 2")
        run = self.exec("probe")
        with self.started(run, self.learned(run)) as zygote:
            self.assertEqual(self.ahead(zygote, "/gem/lib/hobtest.rb"), [True])
            self.equal(run, zygote)

    def test_a_project_that_is_a_gem(self):
        self.gem("1.0", "app")
        self.write("app/Gemfile", self.gemfile().replace('gem "hobtest", path: "../gem"', "gemspec"))
        run = self.exec("probe")
        with self.started(run, self.learned(run)) as zygote:
            self.assertEqual(self.ahead(zygote, "/app/lib/hobtest.rb"), [True])
            self.equal(run, zygote)

    def test_a_gem_in_the_place_of_a_library(self):
        """Bundler has loaded the standard library's by then; who else would load it may not."""
        self.write("gem/lib/pathname.rb", "raise 'never loaded'")
        zygote = self.hazards(self.exec("probe"), b"/bundler.rb:state")
        self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/bundler/cli.rb"), [False, False])

    def test_a_specification_that_makes_a_constant(self):
        self.write("gem/hobtest.gemspec", "MADE = 1\n" + GEMSPEC % "1.0")
        zygote = self.hazards(self.exec("probe"), b":state")
        self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/bundler/cli.rb"), [False, True])

    def test_a_gemfile_that_prints(self):
        self.write("app/Gemfile", self.gemfile("puts 'Gemfile'\n"))
        zygote = self.hazards(self.exec("probe"), b":output")
        self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/bundler/cli.rb"), [False, True])

    def test_a_specification_that_asks_a_process(self):
        text = GEMSPEC.replace('["lib/hobtest.rb"]', "`ls lib`.split")
        self.write("gem/hobtest.gemspec", text % "1.0")
        zygote = self.hazards(self.exec("probe"), b":process")
        self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/bundler/cli.rb"), [False, True])

    def test_a_gemfile_that_reads_a_variable(self):
        self.write("app/Gemfile", self.gemfile("ENV['SEEN']; ENV['CHANGED'] = '1'\n"))
        run = self.exec("probe")
        with self.started(run, self.learned(run)) as zygote:
            self.assertIn(b"ESEEN", zygote.notes)
            self.equal(run, zygote)


if __name__ == "__main__":
    unittest.main()
