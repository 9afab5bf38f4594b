"""A learning run is a cold run, and its notes are what a zygote needs to load ahead."""

import os
import signal
import unittest

from harness import FINISHED, NOTES, ROW, Case, Run, take_strings


class Learning(Case):
    def learn(self, text, *arguments, name="main.rb", **how):
        """The run as it is cold, as it is when it is learned from, and its notes."""
        self.write(name, text)
        how.setdefault("cwd", self.place)
        run = Run(ROW, [name, *arguments], **how)
        path = os.path.join(self.place, "notes")
        if os.path.exists(path):
            os.unlink(path)
        outcomes = run.cold(), run.learn(path)
        if not os.path.exists(path):
            return (*outcomes, None)
        with open(path, "rb") as file:
            notes = file.read().split(b"\0")
        self.assertEqual(notes.pop(), b"")
        self.assertEqual([n for n in os.listdir(self.place) if n.startswith("notes.")], [])
        return (*outcomes, notes)

    def same(self, text, *arguments, **how):
        cold, learned, notes = self.learn(text, *arguments, **how)
        self.assertEqual(cold, learned)
        return notes

    def names(self, notes):
        """What was given to `require`; the files and gems are named, too."""
        found = [note[1:] for note in notes if note[:1] == b"M"]
        return [name for name in found if name[:1] != b"/" and name[:4] != b"gem="]

    def test_what_is_required(self):
        self.write("lib/gemlike.rb", "require 'gemlike/part'\nmodule Gemlike; end")
        self.write("lib/gemlike/part.rb", "require 'set'")
        notes = self.same(
            """
            require "json"
            require "optparse"
            require "json"
            $LOAD_PATH.unshift(File.expand_path("lib", __dir__))
            require "gemlike"
            require "./lib/gemlike/part"
            begin
              require "no_such_library"
            rescue LoadError
              puts "absent"
            end
            puts JSON.dump([1]), Gemlike
            """
        )
        place = self.place.encode()
        wanted = [b"json", b"optparse", b"set", b"gemlike/part", b"gemlike", b"./lib/gemlike/part"]
        self.assertEqual([name for name in self.names(notes) if name in wanted], wanted)
        self.assertIn(b"M" + place + b"/lib/gemlike.rb", notes)
        self.assertIn(b"Xno_such_library", notes)
        for file in (b"F" + place + b"/lib/gemlike.rb", b"F" + place + b"/lib/gemlike/part.rb"):
            self.assertIn(file, notes)
        self.assertIn(b"D" + place + b"/lib", notes)
        self.assertIn(b"Mgem=json", notes)
        self.assertFalse([n for n in notes if b"worker.rb" in n])
        with self.zygote(modules=[n[1:] for n in notes if n[:1] == b"M"]) as zygote:
            self.assertEqual([n for n in zygote.notes if n[:1] == b"H"], [])
            # A name that begins with a dot.
            self.assertIn(b"W", zygote.notes)
            self.assertIn(b"F" + place + b"/lib/gemlike.rb", zygote.notes)
            warm = Run(ROW, ["main.rb"], cwd=self.place).warm(zygote, 1)
        self.assertEqual(warm.out, b"absent\n[1]\nGemlike\n")
        # Nothing was loaded in the call.
        self.assertEqual(warm.code, 0)

    def test_what_depends_on_the_directory(self):
        """It is loaded ahead for calls from the same directory only: behind what asks, in each call."""
        text = "require './here'; require Dir.pwd + '/there'; require 'elsewhere'"
        script = self.write("far/away/bin/main.rb", text)
        other = os.path.join(self.place, "other")
        for name in ("here", "there", "elsewhere"):
            self.write("other/%s.rb" % name, "puts __FILE__")
        self.write("main.rb", "$:.unshift Dir.pwd\n" + open(script).read())
        notes = os.path.join(self.place, "notes")
        os.rename(os.path.join(self.place, "main.rb"), script)
        run = Run(ROW, [script], cwd=other)
        self.assertEqual(run.cold(), run.learn(notes))
        with open(notes, "rb") as file:
            names = [name[1:] for name in file.read().split(b"\0") if name[:1] == b"M"]
        self.assertIn(b"./here", names)
        for name in ("here", "there", "elsewhere"):
            self.write("other/%s.rb" % name, "HERE = 1" if name == "here" else "")
        self.write("far/away/bin/main.rb", "require './here'\n" + open(script).read())
        with self.zygote(script, cwd=other, modules=names) as zygote:
            self.assertIn(b"W", zygote.notes)
            self.assertIn(b"F%s/here.rb" % os.fsencode(other), zygote.notes)
            self.assertNotIn(b"F%s/there.rb" % os.fsencode(other), zygote.notes)

    def test_a_library_beside_the_script(self):
        self.write("app/lib/own.rb", "require 'own/part'; module Own; end")
        self.write("app/lib/own/part.rb", "module Own; Part = 1; end")
        text = "$:.unshift File.expand_path('../lib', __dir__); require 'own'; p Own::Part, $:.size"
        script = self.write("app/bin/main.rb", text)
        notes = os.path.join(self.place, "notes")
        run = Run(ROW, [script], cwd="/")
        cold = run.cold()
        self.assertEqual(cold, run.learn(notes))
        with open(notes, "rb") as file:
            names = self.names(file.read().split(b"\0"))
        self.assertEqual(names, [b"own/part", b"own"])
        with self.zygote(script, cwd=self.place, modules=names) as zygote:
            self.assertNotIn(b"W", zygote.notes)
            self.assertIn(b"F%s/app/lib/own.rb" % os.fsencode(self.place), zygote.notes)
            self.assertEqual(cold, run.warm(zygote, 1))

    def test_the_run_sees_nothing(self):
        self.same(
            """
            p ARGV, $0, __FILE__, caller, $LOADED_FEATURES, $LOAD_PATH, ENV.to_a
            p File.read("/proc/self/cmdline").sub(/\\0+\\z/, "")
            p Dir.children("/proc/self/fd").size, Kernel.method(:require), method(:require)
            p Object.constants.size, global_variables.size, Thread.list.size, File.open(__FILE__).fileno
            require "json"
            begin
              require "no_such_library"
            rescue LoadError => e
              puts e.backtrace, e.message
            end
            p $LOADED_FEATURES
            def deep = raise("x")
            at_exit { p $!; p caller }
            deep
            """,
            "a",
            "b c",
            "\xe9",
        )

    def test_ends(self):
        for text in (
            "exit 3",
            "abort 'text'",
            "raise 'x'",
            "at_exit { exit 4 }",
            "at_exit { puts 'hook' }; require 'json'; puts 1",
            "if true",
            "Process.kill(:TERM, $$); sleep",
            "raise Interrupt",
            "fork { puts 'child' }; Process.wait; puts 'parent'",
            "puts STDIN.read, DATA.read\n__END__\nx",
        ):
            with self.subTest(text=text):
                notes = self.same(text, stdin=b"input")
                self.assertIsNotNone(notes)

    def test_ends_that_leave_no_notes(self):
        for text in ("exit!", "Process.kill(:KILL, $$)", "exec('true')"):
            with self.subTest(text=text):
                self.assertIsNone(self.same(text))

    def test_signal_from_outside(self):
        text = "$stdout.write(%(ready\\n)); $stdout.flush; sleep 30"
        cold, learned, _ = self.learn(text, signal=signal.SIGTERM)
        self.assertEqual(cold.code, -signal.SIGTERM)
        self.assertEqual(cold, learned)

    def test_notes_file_cannot_be_written(self):
        self.write("main.rb", "puts 1")
        run = Run(ROW, ["main.rb"], cwd=self.place)
        self.assertEqual(run.cold(), run.learn("/no/such/place/notes"))

    def test_without_gems(self):
        text, options = "require 'json'; p JSON.dump([1]), defined?(Gem)", ["--disable-gems"]
        notes = self.same(text, options=options)
        self.assertEqual(self.names(notes), [])
        modules = [note[1:] for note in notes if note[:1] == b"M"]
        self.assertTrue([name for name in modules if name.endswith(b"/json.rb")])
        cold, warm = self.both(text, options=options, modules=modules)
        self.assertEqual(cold, warm)

    def test_options(self):
        several = (
            "-w",
            "-W0",
            "-rset -rjson",
            "-Ilib",
            "-Eutf-8:iso-8859-1",
            "--disable=did_you_mean",
            "-n",
        )
        for options in map(str.split, several):
            text = "p $VERBOSE, $DEBUG, defined?(JSON), $:.size, Encoding.default_internal, gets\n"
            text += "unused = 1\nnil.foo"
            with self.subTest(options=options):
                how = {"options": options, "stdin": b"one\ntwo\n"}
                self.same(text, **how)
                if options[0].startswith("-E"):
                    with self.assertRaisesRegex(AssertionError, "failed: .*not kept warm"):
                        self.both(text, **how)
                else:
                    self.assertEqual(*self.both(text, **how))

    def test_rubyopt(self):
        self.write("pre.rb", "puts 'pre'; p ARGV; at_exit { puts 'pre ends' }")
        env = dict(os.environ, RUBYOPT="-r./pre.rb -w")
        self.same("unused = 1; puts 'main'", "a", env=env)
        self.write("main.rb", "unused = 1; puts 'main'")
        run = Run(ROW, ["main.rb", "a"], cwd=self.place, env=env)
        with self.zygote(env=env) as zygote:
            self.assertEqual(run.cold(), run.warm(zygote, 1))

    def test_lines_before_the_script(self):
        text = "not ruby\n#!ruby\np __LINE__, DATA.read\n__END__\nx\n"
        cold, warm = self.both(text, options=["-x"])
        self.assertEqual(cold, warm)
        self.assertIn(b"x", cold.out)
        cold, warm = self.both("#!/bin/sh\nexec ruby -x $0\n#!ruby\np __LINE__\n")
        self.assertEqual(cold, warm)


class Gems(Case):
    def setUp(self):
        super().setUp()
        self.install("1.0")
        self.write("main.rb", "require 'hobtest'; p Hobtest, Gem.loaded_specs['hobtest'].version.to_s")

    def install(self, version):
        name = "gems/specifications/hobtest-%s.gemspec" % version
        text = "Gem::Specification.new { |s| s.name = 'hobtest'; s.version = '%s'; " % version
        self.write(name, text + "s.summary = s.author = 'x'; s.files = ['lib/hobtest.rb'] }")
        self.write("gems/gems/hobtest-%s/lib/hobtest.rb" % version, "Hobtest = '%s'" % version)

    def env(self, **more):
        return dict(os.environ, GEM_PATH=os.path.join(self.place, "gems"), **more)

    def learned(self, run):
        path = os.path.join(self.place, "notes")
        self.assertEqual(run.cold(), run.learn(path))
        with open(path, "rb") as file:
            return [note[1:] for note in file.read().split(b"\0") if note[:1] == b"M"]

    def test_the_version_is_the_newest(self):
        run = Run(ROW, ["main.rb"], cwd=self.place, env=self.env())
        names = self.learned(run)
        self.assertIn(b"gem=hobtest", names)
        with self.zygote(modules=names, env=self.env()) as zygote:
            self.assertTrue([n for n in zygote.notes if n.endswith(b"hobtest-1.0/lib/hobtest.rb")])
            self.assertEqual(run.cold(), run.warm(zygote, 1))
        # The program's own `require` chooses.
        self.install("1.1")
        with self.zygote(modules=names, env=self.env()) as zygote:
            self.assertTrue([n for n in zygote.notes if n.endswith(b"hobtest-1.1/lib/hobtest.rb")])
            warm = run.warm(zygote, 1)
        self.assertEqual(run.cold(), warm)
        self.assertIn(b"1.1", warm.out)

    def test_a_command_that_asks_for_a_version(self):
        self.install("1.1")
        text = "v = ARGV.first.to_s[/\\A_(.*)_\\z/, 1]; gem 'hobtest', v || '>= 0'\n"
        text += "require 'hobtest'; p Hobtest"
        self.write("main.rb", text)
        names = self.learned(Run(ROW, ["main.rb"], cwd=self.place, env=self.env()))
        with self.zygote(modules=names, env=self.env()) as zygote:
            for arguments in ([], ["_1.0_"]):
                run = Run(ROW, ["main.rb", *arguments], cwd=self.place, env=self.env())
                cold, warm = run.cold(), run.warm(zygote, 1)
                self.assertEqual(cold, warm)

    def test_what_is_loaded_ahead_of_bundler_is_of_its_bundle(self):
        self.write("Gemfile", "gem 'hobtest'")
        env = self.env(RUBYOPT="-rbundler/setup", BUNDLE_GEMFILE=os.path.join(self.place, "Gemfile"))
        run = Run(ROW, ["main.rb"], cwd=self.place, env=env)
        names = self.learned(run)
        kinds = {name.partition(b"=")[0] for name in names}
        self.assertEqual(kinds, {b"bundler", b"setup", b"bundled"})
        with self.zygote(env=env, modules=names) as zygote:
            self.assertTrue([n for n in zygote.notes if n.endswith(b"hobtest-1.0/lib/hobtest.rb")])
            self.assertEqual(run.cold(), run.warm(zygote, 1))
        # What else is named by such a program is of no use within it.
        with self.zygote(env=env, modules=["json", *names]) as zygote:
            self.assertFalse([n for n in zygote.notes if n.endswith(b"/json.rb")])
            self.assertEqual(run.cold(), run.warm(zygote, 1))


class InACall(Case):
    def test_what_a_call_loads_is_told(self):
        self.write("main.rb", "require 'json'; $later = 1; require 'set'; p Set[1].to_a.to_json")
        with self.zygote(modules=["json"]) as zygote:
            frames = Run(ROW, ["main.rb"], cwd=self.place).warm(zygote, 1).frames
            self.assertEqual([kind for kind, _, _ in frames], [FINISHED, NOTES])
            notes = take_strings(frames[1][1], 8)
            self.assertIn(b"Mset", notes)
            self.assertTrue([n for n in notes if n[:1] == b"F" and n.endswith(b"/set.rb")])
            self.assertFalse([n for n in notes if b"worker.rb" in n])
        # Each call executes it, which is no news.
        known = ["json"] + [note[1:] for note in notes if note[:1] == b"M"]
        with self.zygote(modules=known[:-1]) as zygote:
            frames = Run(ROW, ["main.rb"], cwd=self.place).warm(zygote, 1).frames
            told = [note for note in take_strings(frames[1][1], 8) if note[:1] == b"M"]
            self.assertEqual(told, [b"M" + known[-1]])
        with self.zygote(modules=known) as zygote:
            frames = Run(ROW, ["main.rb"], cwd=self.place).warm(zygote, 1).frames
            self.assertEqual([kind for kind, _, _ in frames], [FINISHED])


class Edited(Case):
    def edited(self, before, after):
        self.write("main.rb", before)
        with self.zygote() as zygote:
            self.write("main.rb", after)
            run = Run(ROW, ["main.rb"], cwd=self.place)
            cold, warm = run.cold(), run.warm(zygote, 1)
            self.assertEqual(cold, warm)
            return warm

    def test_edited(self):
        self.assertEqual(self.edited("puts 1", "puts 2").out, b"2\n")
        self.assertEqual(self.edited("puts 1", "").out, b"")
        self.assertEqual(self.edited("", "puts 2").out, b"2\n")
        self.assertEqual(self.edited("puts 1", "#!/usr/bin/ruby -w\np $VERBOSE").out, b"true\n")
        self.assertEqual(self.edited("#!/usr/bin/ruby -w\np $VERBOSE", "p $VERBOSE").out, b"false\n")
        self.assertEqual(self.edited("puts 1", "p DATA.read\n__END__\nx").out, b'"x"\n')
        self.assertEqual(self.edited("puts 1\n" * 5000, "puts 2").out, b"2\n")

    def test_gone(self):
        self.write("main.rb", "puts 1")
        with self.zygote() as zygote:
            os.unlink(os.path.join(self.place, "main.rb"))
            run = Run(ROW, ["main.rb"], cwd=self.place)
            self.assertEqual(run.cold(), run.warm(zygote, 1))

    def test_another_name(self):
        """What the daemon would not do: the copy runs what it was given."""
        self.write("main.rb", "puts 1")
        self.write("other.rb", "puts 2")
        with self.zygote() as zygote:
            run = Run(ROW, ["other.rb"], cwd=self.place)
            self.assertEqual(run.cold(), run.warm(zygote, 1))


if __name__ == "__main__":
    unittest.main()
