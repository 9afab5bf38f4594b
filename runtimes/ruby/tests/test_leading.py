"""What a program begins with is loaded ahead, in its order, and nothing that comes later is.

The texts of files that come later are compiled ahead, and executed in the call.
"""

import os
import subprocess
import unittest

from harness import FINISHED, ROW, Case, Run

BESIDE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Begun(Case):
    def setUp(self):
        super().setUp()
        for name in "abcd":
            self.write("lib/%s.rb" % name, "$order = [*$order, '%s']" % name)
        self.env = dict(os.environ, RUBYLIB=self.place + "/lib")

    def started(self, text, *arguments, name="main.rb", **how):
        """A zygote of the program, without what is a hazard; four calls are warm, and as cold."""
        self.write(name, text)
        run = Run(ROW, [name, *arguments], cwd=self.place, env=self.env, **how)
        cold = run.cold()
        zygote = self.settled(run)
        for _ in range(4):
            warm = run.warm(zygote, 1)
            self.assertEqual(cold, warm, text)
            self.assertIsNotNone(warm.fate)
            self.assertEqual(warm.frames[0][0], FINISHED)
        return zygote

    def ahead(self, text, *names, **how):
        with self.started(text + "\np $order\n", **how) as zygote:
            head = b"F" + os.fsencode(self.place) + b"/"
            files = [note for note in zygote.notes if note.startswith(head) and b"main.rb" not in note]
            found = {os.fsdecode(note[len(head) :]) for note in files}
            found = {name.removeprefix("lib/").removesuffix(".rb") for name in found}
            self.assertEqual(sorted(found), sorted(names), text)


class Leading(Begun):
    def test_up_to_the_first_other_statement(self):
        for text, names in (
            ("require 'a'; require 'b'\nrequire_relative 'lib/c'", "abc"),
            ("# a comment\n# frozen_string_literal: true\n'text'\nnil\nrequire 'a'", "a"),
            ("require 'a'\n$x = 1\nrequire 'b'", "a"),
            ("require 'a'\ndef x = 1\nrequire 'b'", "a"),
            ("require 'a'\nX = 1\nrequire 'b'", "a"),
            ("require 'a' if true\nrequire 'b'", ""),
            ("%w[a b].each { |name| require name }", ""),
            ("p require('a')", ""),
            ("BEGIN { require 'c' }\nrequire 'a'", ""),
            ("begin; require 'a'; rescue LoadError; end; require 'b'", "ab"),
            ("begin; require 'none'; rescue LoadError; end; require 'b'", ""),
            ("require 'a'\nautoload :B, 'b'\nrequire 'c'", "a"),
            ("require 'a'\n__END__\nrequire 'b'", "a"),
        ):
            with self.subTest(text=text):
                self.ahead(text, *names)

    def test_options(self):
        self.ahead("require 'a'", "a", "b", options=["-rb"])
        self.ahead("require 'a'", "a", options=["-w", "-W0"])
        self.ahead("#!/usr/bin/env ruby -W0\nrequire 'a'", "a")
        self.ahead("#!/usr/bin/env ruby -s\nrequire 'a'")

    def test_what_sets_something_known(self):
        """It is performed before the files, and again in the call."""
        for sets, reads in (
            ("$LOAD_PATH.unshift(__dir__ + '/more')", "$:.first"),
            ("$:.unshift File.expand_path('more', __dir__)", "$:.first"),
            ("$: << File.join(File.dirname(__FILE__), 'more')", "$:.last"),
            ('$:.push "#{__dir__}/more", "#{__dir__}/other"', "$:.last(2)"),
            ("STDOUT.sync = true; $stderr.sync = false", "[STDOUT.sync, STDERR.sync]"),
            ("$VERBOSE = nil; $VERBOSE = true", "$VERBOSE"),
            ("ENV['HOB_SET'] = 'x'", "ENV['HOB_SET']"),
            ("ENV['HOB_SET'] ||= 'x'", "ENV['HOB_SET']"),
        ):
            with self.subTest(sets=sets):
                self.write("lib/a.rb", "$order = [%s, $:.size, ENV.size]" % reads)
                self.ahead("%s\nrequire 'a'\np $:.size, ENV.size, $VERBOSE, STDOUT.sync" % sets, "a")

    def test_a_file_that_sets_the_same_is_loaded_in_the_call(self):
        for sets, file in (
            ("$:.unshift(__dir__ + '/more')", "$:.unshift('/other')"),
            ("$: << __dir__ + '/more'", "$:.clear"),
            ("$VERBOSE = nil", "$VERBOSE = false"),
            ("STDOUT.sync = true", "STDOUT.sync = false"),
        ):
            with self.subTest(sets=sets):
                self.write("lib/a.rb", file)
                self.ahead("%s\nrequire 'a'\nrequire 'b'\np $:, $VERBOSE, STDOUT.sync" % sets)

    def test_in_a_file_with_a_hazard_it_ends(self):
        self.write("lib/top.rb", "require 'a'\nrequire_relative 'inner'\nrequire 'c'")
        self.write("lib/inner.rb", "require 'b'\nNOW = Time.now; $order << :inner\nrequire 'd'")
        self.ahead("require 'top'\nrequire 'd'", "a", "b")
        self.write("lib/inner.rb", "require 'b'\nputs 'loaded'; $order << :inner\nrequire 'd'")
        self.ahead("require 'top'\nrequire 'd'", "a", "b")

    def test_a_file_that_comes_back_to_the_one_with_a_hazard(self):
        self.write("lib/top.rb", "require 'round'\nNOW = Time.now; $order = [*$order, defined?(Round)]")
        self.write("lib/round.rb", "require 'top'; Round = defined?(NOW)")
        self.ahead("require 'top'\np Round\nrequire 'a'")

    def test_an_edited_script(self):
        """What begins with the same runs in the copy, any other in a new interpreter."""
        before = "require 'a'\nrequire 'b'\np 1\n"
        with self.started(before) as zygote:
            for text, copy in (
                (before + "p 2\n", True),
                ("# more\n" + before, True),
                ("require 'a'\nrequire 'b'\nrequire 'c'\np $order", True),
                ("$set = 1\n" + before, False),
                ("require 'a'\n$set = 1\nrequire 'b'\np $order", False),
                ("require 'b'\nrequire 'a'\np $order", False),
                ("p $order", False),
                ("$VERBOSE = nil\n" + before, False),
            ):
                with self.subTest(text=text):
                    self.write("main.rb", text)
                    run = Run(ROW, ["main.rb"], cwd=self.place, env=self.env)
                    cold, warm = run.cold(), run.warm(zygote, 1)
                    self.assertEqual(cold, warm)
                    self.assertEqual(warm.fate is not None, copy)


class Commands(Begun):
    """Commands that RubyGems writes begin with what the executable of their gem does."""

    BINSTUB = """
        #!/usr/bin/env ruby
        #
        # This file was generated by RubyGems.
        #
        require 'rubygems'

        Gem.use_gemdeps

        version = ">= 0.a"

        str = ARGV.first
        if str
          str = str.b[/\\A_(.*)_\\z/, 1]
          if str and Gem::Version.correct?(str)
            version = str
            ARGV.shift
          end
        end

        if Gem.respond_to?(:activate_bin_path)
        load Gem.activate_bin_path('hobtest', 'says', version)
        else
        gem "hobtest", version
        load Gem.bin_path("hobtest", "says", version)
        end
        """

    def setUp(self):
        super().setUp()
        name = "gems/specifications/hobtest-1.0.gemspec"
        text = "Gem::Specification.new { |s| s.name = 'hobtest'; s.version = '1.0'; s.bindir = 'exe'; "
        self.write(name, text + "s.summary = s.author = 'x'; s.executables = ['says'] }")
        self.write("gems/gems/hobtest-1.0/lib/hobtest.rb", "Hobtest = ENV['HOB_SET']")
        self.write("gems/gems/hobtest-1.0/lib/hobtest/late.rb", "LATE = $set")
        self.env["GEM_PATH"] = os.path.join(self.place, "gems")

    def executable(self, text):
        self.write("gems/gems/hobtest-1.0/exe/says", text)

    def test_an_executable(self):
        self.executable("$:.unshift(__dir__ + '/../more'); require 'hobtest'; $set = 1; "
                        "require 'hobtest/late'\n"
                        "p Hobtest, LATE, $:, Gem.loaded_specs.keys, $0, __FILE__, ARGV, caller.size")
        for stub in (self.BINSTUB, "load Gem.activate_bin_path('hobtest', 'says', '>= 0.a')\n"):
            with self.subTest(stub=stub), self.started(stub, "word", name="says") as zygote:
                read = [note for note in zygote.notes if b"hobtest-1.0/" in note and note[:1] in b"FC"]
                names = [note[note.rindex(b"/") + 1 :] for note in read]
                self.assertEqual(names, [b"hobtest.rb", b"says"])

    def test_an_edited_executable_is_read_again(self):
        self.executable("require 'hobtest'; p Hobtest")
        with self.started(self.BINSTUB, name="says") as zygote:
            path = os.path.join(self.place, "gems/gems/hobtest-1.0/exe/says")
            self.assertIn(b"C" + os.fsencode(path), zygote.notes)


class Texts(Case):
    """Files that are compiled ahead."""

    HEAD = """
        hob = Module.new
        hob.module_eval(File.read("%s/texts.rb"))
        texts = hob.const_get(:Texts).new
        """

    def ruby(self, text, *options):
        script = self.write("probe.rb", self.HEAD % BESIDE)
        with open(script, "a") as file:
            file.write(text)
        done = subprocess.run([ROW.interpreter, *options, script], cwd=self.place, capture_output=True)
        self.assertEqual(done.stderr, b"")
        return done.stdout.split()

    def test_a_file_runs_once_and_is_what_it_was(self):
        self.write("late.rb", "puts caller(0)[0][/`.*'|'.*'/], __FILE__ == File.realpath(__FILE__)")
        found = self.ruby(
            "file = Dir.pwd + '/late.rb'\n"
            "texts.prepare([file, Dir.pwd + '/none.rb'])\n"
            "p $LOADED_FEATURES.include?(file), RubyVM::InstructionSequence.respond_to?(:load_iseq)\n"
            "kept = texts.take(file); p kept.class; p texts.take(file).class\n"
            "texts.prepare([file]); require file; p texts.take(file).class\n"
        )
        used = [b"false", b"false", b"RubyVM::InstructionSequence", b"NilClass"]
        self.assertEqual(found[:4], used)
        self.assertEqual(found[-2:], [b"true", b"NilClass"])

    def test_when_it_is_not_used(self):
        for text, change in (
            ("X = 1", "File.write(file, 'X = 2'); File.utime(0, 0, file)"),
            ("X = 1", "RubyVM::InstructionSequence.compile_option = { tailcall_optimization: true }"),
            ("X = 1", "require 'coverage'"),
            ("X = 1", "TracePoint.new(:script_compiled) { }.enable"),
            ("def x; unused = 1; end", "$VERBOSE = true"),
            ("X = {a: 1, a: 2}", "$VERBOSE = false"),
            ("X = (", ""),
        ):
            with self.subTest(change=change):
                self.write("late.rb", text)
                head = "file = Dir.pwd + '/late.rb'; $VERBOSE = nil; texts.prepare([file])\n"
                said = self.ruby(head + change + "; p texts.take(file).class", "-W0")
                self.assertEqual(said, [b"NilClass"])

    def test_a_call_uses_it(self):
        """Seen by a file that is compiled as the zygote's compiler was told, not as the call's is."""
        self.write("late.rb", "LATE = 1")
        self.write("main.rb", "$set = 1; require './late'; p LATE\n")
        run = Run(ROW, ["main.rb"], cwd=self.place)
        with self.settled(run) as zygote:
            self.assertNotIn(b"F%s/late.rb" % os.fsencode(self.place), zygote.notes)
            self.assertEqual(run.cold(), run.warm(zygote, 1))
            # Another text is read, though no note tells of it.
            self.write("late.rb", "LATE = 2 # and more")
            warm = run.warm(zygote, 1)
            self.assertEqual((warm.out, warm.fate is not None), (b"2\n", True))


if __name__ == "__main__":
    unittest.main()
