"""Within a bundle: `bundle exec`, and scripts that set it up, as they are cold.

Bundler decides again in each call; a zygote has loaded the files of what it will choose. Every test
compares a call with the cold run of the same moment.
"""

import os
import shutil
import tempfile
import textwrap
import unittest

from bundled import BUNDLE, NOTES, PROBE, WITH_CHILD, Project


class Equal(Project):
    def test_what_a_program_sees(self):
        self.stub("probe", "#!/usr/bin/env ruby\n" + textwrap.dedent(WITH_CHILD))
        run = self.exec("probe", "a", "b c")
        names = self.learned(run)
        with self.started(run, names) as zygote:
            loaded = self.ahead(zygote, "/rspec/core.rb", "/gem/lib/hobtest.rb", "/bundler/cli.rb")
            self.assertEqual(loaded, [True] * 3)
            for note in (b"Xrspec/core", b"Xhobtest", b"Xbundler/cli"):
                self.assertIn(note, self.notes)
            self.assertIn(b"W", zygote.notes)
            self.assertNotIn(b"E*", zygote.notes)
            for _ in range(2):
                warm = self.equal(run, zygote)
                self.assertIsNotNone(warm.fate)
                self.assertFalse([frame for frame in warm.frames if frame[0] == NOTES])
            self.assertEqual(warm.code, 3)
            self.equal(self.exec("probe", "a", "b c", more={"OTHER": "x", "A": "3"}), zygote)

    def test_commands(self):
        for command in ("rspec", "rake"):
            run = self.exec(command)
            names = self.learned(run, False)
            with self.subTest(command=command), self.started(run, names) as zygote:
                file = "/rake/task.rb" if command == "rake" else "/rspec/core.rb"
                self.assertEqual(self.ahead(zygote, file), [True])
                self.assertIsNotNone(self.equal(run, zygote).fate)

    def test_two_commands(self):
        """One is loaded ahead: the first that was learned, or that the zygote is told of."""
        runs = [self.exec("rspec"), self.exec("rake")]
        names = [self.learned(run, False) for run in runs]
        names = names[0] + [name for name in names[1] if name not in names[0]]
        with self.started(runs[0], names) as zygote:
            self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/rake/task.rb"), [True, False])
            for run in runs:
                self.equal(run, zygote)
        for run, loaded in zip(runs, ([True, False], [False, True])):
            with self.started(run, names, argv=run.argv) as zygote:
                self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/rake/task.rb"), loaded)
                for other in runs:
                    self.equal(other, zygote)

    def test_a_standby(self):
        run = self.exec("probe")
        names = self.learned(run)
        warm = run.standby(modules=names, env=run.env, argv=run.argv[:1])
        self.assertEqual(run.cold(), warm)

    def test_a_script_that_sets_it_up(self):
        run = self.call("main.rb", "x")
        names = self.learned(run)
        with self.started(run, names) as zygote:
            self.assertEqual(self.ahead(zygote, "/rspec/core.rb", "/gem/lib/hobtest.rb"), [True, True])
            self.assertIsNotNone(self.equal(run, zygote).fate)

    def test_an_option_that_sets_it_up(self):
        self.write("app/main.rb", PROBE)
        run = self.call("main.rb", "x", more={"RUBYOPT": "-rbundler/setup"})
        names = self.learned(run)
        with self.started(run, names) as zygote:
            self.equal(run, zygote)

    def test_before_it_is_set_up(self):
        """Nothing of it is there until it is asked for."""
        self.write(
            "app/main.rb",
            """
            p defined?(Bundler), $LOADED_FEATURES.grep(%r{/bundler(/|.rb)}), $LOAD_PATH, ENV.to_a
            p Gem.loaded_specs.map { |name, spec| [name, spec.activated?] }, Gem.path
            p Gem.post_reset_hooks.size, method(:gem).source_location, method(:require).source_location
            require "bundler/version"
            p Bundler::VERSION, ENV.to_a
            require "bundler"
            p ENV.to_a, Bundler.original_env.to_a, Bundler.instance_variables
            Bundler.setup
            require "hobtest"
            p HOBTEST, ENV.to_a
            Bundler.require
            p defined?(RSpec)
            """,
        )
        run = self.call("main.rb")
        with self.started(run, self.learned(run)) as zygote:
            self.equal(run, zygote)
            # Something of the program comes before.
            self.assertEqual(self.ahead(zygote, "/bundler.rb"), [False])
        # What is warned of when it is loaded is to be warned of in the call.
        self.write("app/main.rb", 'require "bundler/setup"\np Bundler::VERSION, ENV.to_a')
        run = self.call("main.rb", options=["-w"])
        names = self.learned(run)
        self.assertTrue(names[0].endswith(b"/bundler.rb"), names[0])
        with self.settled(run, names) as zygote:
            self.assertEqual(self.ahead(zygote, "/bundler.rb"), [False])
            self.equal(run, zygote)

    def test_other_words_behind_bundle(self):
        run = self.exec("probe")
        names = self.learned(run)
        text = "p ARGV, ENV.to_a, defined?(RSpec), Gem.loaded_specs.keys"
        script = self.write("app/script.rb", text)
        with self.started(run, names) as zygote:
            for words in (
                ["exec", "rake"],
                ["exec", "ruby", script, "x"],
                ["exec", "no-such-command"],
                ["exec"],
                ["list"],
                ["show", "rake"],
                ["config"],
                ["check"],
                ["install", "--local"],
                ["no-such-subcommand"],
                ["--version"],
                [],
                ["_%s_" % "9.9.9", "list"],
            ):
                with self.subTest(words=words):
                    self.equal(self.call(BUNDLE, *words), zygote)

    def test_only_bundler_itself_ahead(self):
        """As where its setup cannot be performed ahead."""
        run = self.exec("probe")
        names = [name for name in self.learned(run) if name.startswith(b"bundler=")]
        with self.started(run, names) as zygote:
            self.assertEqual(self.ahead(zygote, "/bundler/cli.rb", "/rspec/core.rb"), [True, False])
            warm = self.equal(run, zygote)
            told = [frame for frame in warm.frames if b"Mbundled=" in frame[1]]
            self.assertTrue(told)
            others = "list", "install --local", "exec rake", "config", "exec none", "help"
            for words in map(str.split, others):
                with self.subTest(words=words):
                    self.equal(self.call(BUNDLE, *words), zygote)


class Changed(Project):
    """What Bundler decides by is another than when files were loaded ahead.

    Each test's project is the same, in the same place, so that it is learned from once.
    """

    known = None

    @classmethod
    def setUpClass(cls):
        cls.holder = os.path.realpath(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.holder, ignore_errors=True)

    def folder(self):
        folder = os.path.join(self.holder, "place")
        os.mkdir(folder)
        return folder

    def setUp(self):
        super().setUp()
        self.run_ = self.exec("probe")
        if Changed.known is None:
            Changed.known = self.learned(self.run_)
        self.names = list(Changed.known)

    def both(self, run, notes=(), loaded=None):
        """In a zygote of before, and in one that is started now."""
        for zygote in (self.zygote_, self.started(run, self.names)):
            with zygote:
                self.equal(run, zygote)
        if loaded is not None:
            self.assertEqual(self.ahead(zygote, "/rspec/core.rb"), [loaded])
        for note in notes:
            self.assertIn(note, self.zygote_.notes)

    def changes(self):
        self.zygote_ = self.started(self.run_, self.names)
        self.assertEqual(self.ahead(self.zygote_, "/rspec/core.rb"), [True])

    def note(self, tag, name):
        return os.fsencode("%s%s/%s" % (tag, self.place, name))

    def test_gemfile(self):
        self.changes()
        self.write("app/Gemfile", self.gemfile('gem "ast"\n'))
        self.steady(self.run_)
        self.both(self.run_, [self.note("C", "app/Gemfile")], False)

    def test_broken_gemfile(self):
        self.changes()
        self.write("app/Gemfile", self.gemfile("syntax error here ("))
        self.both(self.run_, (), False)

    def test_missing_gem(self):
        self.changes()
        self.write("app/Gemfile", self.gemfile('gem "no-such-gem-anywhere"\n'))
        with self.started(self.run_, self.names) as zygote, self.zygote_:
            for one in (self.zygote_, zygote):
                cold, warm = self.run_.cold(), self.run_.warm(one, 1)
                self.assertEqual(cold, warm)
                self.assertNotEqual(cold.code, 3)

    def test_lock(self):
        self.changes()
        path = os.path.join(self.cwd, "Gemfile.lock")
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("diff-lcs (1.5.0)", "diff-lcs (1.4.0)"))
        with self.started(self.run_, self.names) as zygote, self.zygote_:
            for one in (self.zygote_, zygote):
                cold, warm = self.run_.cold(), self.run_.warm(one, 1)
                self.assertEqual(cold, warm)
        self.assertIn(self.note("C", "app/Gemfile.lock"), zygote.notes)

    def test_settings(self):
        self.changes()
        self.write("app/.bundle/config", '---\nBUNDLE_WITHOUT: "tool"\n')
        self.both(self.run_, (), False)

    def test_settings_of_the_user(self):
        self.changes()
        self.write("home/.bundle/config", '---\nBUNDLE_WITHOUT: "tool"\n')
        self.both(self.run_, (), False)

    def test_groups(self):
        """A variable that is always part of the key."""
        run = self.exec("probe", more={"BUNDLE_WITHOUT": "tool"})
        with self.started(run, self.names) as zygote:
            self.assertEqual(self.ahead(zygote, "/rspec/core.rb"), [False])
            self.equal(run, zygote)

    def test_another_gemfile(self):
        self.gem("3.0", "other")
        self.write("else/Gemfile", self.gemfile().replace("../gem", "../other"))
        run = self.exec("probe", more={"BUNDLE_GEMFILE": self.place + "/else/Gemfile"})
        self.steady(run)
        self.changes()
        self.both(run, (), False)
        self.assertIn(b"3.0", run.cold().out)

    def test_another_directory(self):
        self.gem("4.0", "other")
        self.write("far/app/Gemfile", self.gemfile().replace("../gem", "../../other"))
        run = self.exec("probe", cwd=self.place + "/far/app")
        self.steady(run)
        self.changes()
        self.both(run, (), False)

    def test_a_directory_without_a_gemfile(self):
        run = self.exec("probe", cwd=self.place + "/home")
        self.changes()
        self.both(run, (), False)

    def test_a_directory_below(self):
        self.write("app/below/x", "")
        run = self.exec("probe", cwd=self.place + "/app/below")
        self.changes()
        self.both(run, (), True)

    def test_a_new_version_of_a_gem(self):
        with self.started(self.run_, self.names) as zygote:
            for note in (self.note("C", "gem/hobtest.gemspec"), self.note("F", "gem/lib/hobtest.rb")):
                self.assertIn(note, zygote.notes)
        self.gem("2.0")
        self.steady(self.run_)
        with self.started(self.run_, self.names) as zygote:
            self.assertEqual(self.ahead(zygote, "/gem/lib/hobtest.rb"), [False])
            self.assertIn(b"2.0", self.equal(self.run_, zygote).out)
        names = self.names + [name for name in self.learned(self.run_) if name not in self.names]
        with self.started(self.run_, names) as zygote:
            self.assertEqual(self.ahead(zygote, "/gem/lib/hobtest.rb"), [True])
            self.equal(self.run_, zygote)


if __name__ == "__main__":
    unittest.main()
