"""What a zygote says of what it loads: notes for the daemon, hazards, and nothing left behind."""

import os
import unittest

from harness import ROW, Case, Run


class Watched(Case):
    def notes(self, library, name="./lib.rb", others=(), **options):
        """The notes of a zygote that loads this library."""
        if library is not None:
            self.write("lib.rb", library)
        modules = [os.path.join(self.place, n) if n.startswith("./") else n for n in [name, *others]]
        self.write("main.rb", "".join("require '%s'\n" % module for module in modules))
        with self.zygote(modules=modules, **options) as zygote:
            self.threads = zygote.threads
            return set(zygote.notes)

    def hazards(self, library, **options):
        notes = self.notes(library, **options)
        return {note.rpartition(b":")[2].decode() for note in notes if note[:1] == b"H"}

    def test_hazards(self):
        for library, reason in (
            ("puts 'out'", "output"),
            ("$stderr.puts 'out'", "output"),
            ("$stdout.write 'buffered'", "output"),
            ("system('true')", "process"),
            ("`true`", "process"),
            ("fork { }", "process"),
            ("spawn('true')", "process"),
            ("IO.popen('true')", "process"),
            ("Process.spawn('true')", "process"),
            ("open('|true')", "process"),
            ("Thread.new { sleep }", "thread"),
            ("$kept = IO.pipe", "descriptor"),
            ("$kept = File.open(__FILE__)", "descriptor"),
            ("NOW = Time.now", "moment"),
            ("NOW = Time.new", "moment"),
            ("NOW = Process.clock_gettime(Process::CLOCK_MONOTONIC)", "moment"),
            ("N = Process.pid", "moment"),
            ("N = $$", "moment"),
            ("class C; N = [1, $$]; end", "moment"),
            ("N = rand", "moment"),
            ("N = Random.rand(3)", "moment"),
            ("N = Random.new.rand", "moment"),
            ("N = Random.new.seed", "moment"),
            ("N = [1, 2].shuffle", "moment"),
            ("require 'securerandom'; N = SecureRandom.hex", "moment"),
            ("require 'date'; N = Date.today", "moment"),
            ("A = ARGV.first", "argv"),
            ("A = ARGV.include?('x')", "argv"),
            ("gets", "state"),
            ("STDIN.read", "state"),
            ("T = $stdout.tty?", "terminal"),
            ("exit 3", "state"),
            ("exit! 3", "state"),
            ("abort", "state"),
            ("raise 'x'", "state"),
            ("require 'no_such_file_at_all'", "state"),
            ("syntax error here (", "failed"),
            ("Dir.chdir('/')", "directory"),
            ("trap('INT') { }", "state"),
            ("ENV['SET'] = '1'", "state"),
            ("require 'socket'; TCPServer.new('127.0.0.1', 0)", "state"),
            ("module Kernel; def rand(*) = 4; end", "state"),
        ):
            with self.subTest(library=library):
                self.assertIn(reason, self.hazards(library))

    def test_what_would_change_something_does_not(self):
        for library in (
            "File.write('made', 'x')",
            "File.open('made', 'w') { }",
            "File.new('made', File::WRONLY | File::CREAT)",
            "open('made', 'a')",
            "IO.write('made', 'x')",
            "Dir.mkdir('made')",
            "require 'fileutils'; FileUtils.touch('made')",
            "require 'fileutils'; FileUtils.mkdir_p('made')",
            "require 'pathname'; Pathname('made').write('x')",
            "File.symlink('x', 'made')",
            "File.rename('main.rb', 'made')",
            "File.delete('main.rb')",
            "begin; File.write('made', 'x'); rescue Exception; end",
            "system('touch made') rescue nil",
        ):
            with self.subTest(library=library):
                reason = "process" if "system" in library else "state"
                self.assertIn(reason, self.hazards(library))
                self.assertFalse(os.path.lexists(os.path.join(self.place, "made")))
                self.assertTrue(os.path.exists(os.path.join(self.place, "main.rb")))

    def test_no_hazard(self):
        for library in (
            "X = 1",
            "def late = [$$, Time.now, rand, system('true'), ARGV]",
            "at_exit { }",
            "N = Random.new",
            "T = Time.at(0); R = Random.new(3).rand",
            "File.read(__FILE__); File.open(__FILE__) { |f| f.read }",
            "require 'json'; require 'set'; require 'optparse'; require 'tempfile'; require 'logger'",
        ):
            with self.subTest(library=library):
                self.assertEqual(self.hazards(library), set())

    def test_what_is_not_there_leaves_nothing(self):
        notes = self.notes(None, name="no_such_library")
        self.assertEqual({n for n in notes if n[:1] == b"H"}, {b"Hno_such_library:failed"})

    def test_hazard_names_who_was_loaded(self):
        notes = self.notes("puts 1", others=["json"])
        named = [note for note in notes if note[:1] == b"H"]
        self.assertEqual(named, [b"H" + self.place.encode() + b"/./lib.rb:output"])

    def test_notes(self):
        place = self.place.encode()
        config, link = b"C" + place + b"/config.yml", b"R%d:%s/linkconfig.yml" % (len(place) + 5, place)
        self.write("config.yml", "a: 1")
        self.write("dir/one.txt", "")
        os.symlink("config.yml", os.path.join(self.place, "link"))
        for library, note in (
            ("X = ENV['READ_ME']", b"EREAD_ME"),
            ("X = ENV.fetch('READ_ME', 1)", b"EREAD_ME"),
            ("X = ENV.key?('READ_ME')", b"EREAD_ME"),
            ("X = ENV.values_at('READ_ME')", b"EREAD_ME"),
            ("X = ENV.to_h", b"E*"),
            ("X = ENV.map { |k, v| k }", b"E*"),
            ("X = File.expand_path('~/x')", b"EHOME"),
            ("X = Dir.home", b"EHOME"),
            ("X = Dir.pwd", b"W"),
            ("X = File.expand_path('x')", b"W"),
            ("X = File.exist?('x')", b"W"),
            ("X = ARGV.size", b"Gcount"),
            ("X = ARGV.empty?", b"Gcount"),
            ("X = File.read(__dir__ + '/config.yml')", config),
            ("X = File.read(__dir__ + '/absent') rescue 1", b"C" + place + b"/absent"),
            ("X = IO.readlines('config.yml')", config),
            ("X = open(__dir__ + '/config.yml', &:read)", config),
            ("X = File.mtime(__dir__ + '/config.yml')", config),
            ("require 'pathname'; X = Pathname(__dir__ + '/config.yml').read", config),
            ("require 'yaml'; X = YAML.load_file(__dir__ + '/config.yml')", config),
            ("load __dir__ + '/config.yml' rescue 1", config),
            ("X = File.exist?(__dir__ + '/absent')", b"A-" + place + b"/absent"),
            ("X = File.directory?(__dir__)", b"Ad" + place),
            ("X = Dir.exist?(__dir__ + '/config.yml')", b"Af" + place + b"/config.yml"),
            ("X = File.readlink(__dir__ + '/link')", link),
            ("X = File.realpath(__dir__ + '/link')", link),
            ("X = Dir.children(__dir__)", b"L" + place),
            ("X = Dir.entries(__dir__)", b"L" + place),
            ("X = Dir.open(__dir__) { |d| d.to_a }", b"L" + place),
            ("X = Dir.glob(__dir__ + '/*.yml')", b"L" + place),
            ("X = Dir[__dir__ + '/**/*.txt']", b"L" + place + b"/dir"),
            ("X = Dir.glob('*.{yml,txt}', base: __dir__)", b"L" + place),
        ):
            with self.subTest(library=library):
                self.assertIn(note, self.notes(library))

    def test_generators_are_seeded_anew(self):
        self.write("lib.rb", "N = Random.new; M = Random.new(5)")
        self.write("main.rb", "require './lib'; p N.rand, N.seed, M.rand")
        drawn = []
        with self.zygote(modules=["./lib"]) as zygote:
            self.assertIn(b"F" + self.place.encode() + b"/lib.rb", zygote.notes)
            for _ in range(3):
                drawn.append(Run(ROW, ["main.rb"], cwd=self.place).warm(zygote, 1).out.split())
        self.assertEqual([len(set(column)) for column in zip(*drawn)], [3, 3, 1])

    def test_what_is_loaded_is_noted(self):
        self.write("lib/other.rb", "")
        notes = self.notes("$:.unshift(__dir__ + '/lib'); require 'other'")
        place = self.place.encode()
        for note in (b"F%s/lib.rb", b"F%s/lib/other.rb", b"D%s/lib"):
            self.assertIn(note % place, notes)
        self.assertTrue([note for note in notes if b"libruby" in note or note.endswith(b"/ruby")])

    def test_the_interpreter_has_its_own_methods_again(self):
        """A program sees no trace of what listened to the loading."""
        text = """
            require "json"
            p File.method(:read), File.method(:open), IO.method(:popen), Kernel.method(:system)
            p method(:system), method(:open), method(:rand)
            p Time.method(:now), Time.method(:now).source_location
            p ENV.method(:[]), ENV.singleton_methods.sort.size, ARGV.singleton_methods
            p Process.method(:pid), Dir.method(:glob), File.instance_method(:initialize)
            p File.private_instance_methods(false), Kernel.private_instance_methods(false).sort
            p [1].method(:shuffle), Random.method(:rand), Signal.method(:trap), STDIN.method(:read)
            p (Object.new.system("x") rescue $!.message[/private method/])
            p Object.constants.grep(/hob|Watch|World|System|Frames/i), global_variables.grep(/hob/)
            p $stdout.method(:write), Kernel.instance_methods(false).sort
            p File::Stat.private_instance_methods(false), Kernel.singleton_methods.sort.size
            p File.singleton_methods(false).sort, IO.singleton_methods(false).sort
            system("echo shell"); puts `echo tick`
            File.write("written", "1"); p File.read("written"), ENV["HOME"], ARGV.first, rand.class
            """
        self.same(text, "an argument", modules=["json", "socket", "date"], expect=b"shell")


if __name__ == "__main__":
    unittest.main()
