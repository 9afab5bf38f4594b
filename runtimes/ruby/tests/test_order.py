"""What a program does before it requires a file is there when the file is loaded, warm as cold.

Owns: the programs, generated from a state that is set (`STATES`), a way to the file that reads it
(`WAYS`), and what lies between (`BETWEEN`). Each is learned, its zygote is started without what was a
hazard until nothing is, as the daemon does, and four calls are made, each of which is warm and equal to
the cold one.
"""

import os
import unittest

from harness import ROW, Case, Run

CALLS = 4

# Of each: what is set, what the file keeps of it, and what that is to contain.
STATES = {
    "global": ("$debug = true", "SEEN = $debug", b"true"),
    "attribute": ("require 'conf'; Conf.level = 7", "require 'conf'; SEEN = Conf.level", b"7"),
    "argument": ("require 'conf'; Conf.level = ARGV[0]", "require 'conf'; SEEN = Conf.level", b"word"),
    "element": ("require 'conf'; Conf::LIST << :more",
                "require 'conf'; SEEN = Conf::LIST.dup", b":more"),
    "prepended": (
        "require 'conf'; Base.prepend(Module.new { def say = 'prepended' })",
        "require 'conf'; SEEN = Base.new.say",
        b"prepended",
    ),
    "refined class": ("class String; def shout = upcase; end",
                      "SEEN = 'x'.respond_to?(:shout)", b"true"),
    "patched method": ("def Time.now = at(0)", "SEEN = Time.now.to_i", b"0"),
    "patched read": ("def File.read(*) = 'patched'", "SEEN = File.read(__FILE__)", b"patched"),
    "patched paths": ("def File.expand_path(*) = 'patched'\ndef Dir.pwd = nil",
                      "SEEN = File.expand_path('a')", b"patched"),
    "registry": ("require 'conf'; Conf.on { :own }", "require 'conf'; SEEN = Conf.run", b":own"),
    "variable": ("ENV['HOB_ORDER'] = 'set'", "SEEN = ENV['HOB_ORDER']", b"set"),
    "default of a variable": ("ENV['HOB_ORDER'] ||= 'set'", "SEEN = ENV['HOB_ORDER']", b"set"),
    "verbose": ("$VERBOSE = true", "SEEN = $VERBOSE", b"true"),
    "silent": ("$VERBOSE = nil", "SEEN = $VERBOSE", b"nil"),
    "warnings": ("Warning[:deprecated] = true", "SEEN = Warning[:deprecated]", b"true"),
    "debug": ("$DEBUG = true", "SEEN = $DEBUG; $DEBUG = false", b"true"),
    "file": (
        "File.write('made.txt', 'text')",
        "SEEN = File.exist?('made.txt') && File.read('made.txt')",
        b"text",
    ),
    "its own text": ("File.write('own.rb', 'OWN = 2')", "load './own.rb'; SEEN = OWN", b"2"),
    "directory": ("Dir.chdir('below')", "SEEN = Dir.pwd", b"/below"),
    "search path": (
        "$LOAD_PATH.unshift(File.expand_path('vendor', __dir__))",
        "require 'found'; SEEN = [FOUND, $LOAD_PATH.first]",
        b"vendor",
    ),
    "search path, behind": ("$: << __dir__ + '/vendor'", "SEEN = $:.last", b"vendor"),
    "search path of a method": ("def add = $:.unshift(__dir__ + '/vendor'); add",
                                "SEEN = $:.first", b"vendor"),
    "stub": (
        "module Stub; REAL = false; end",
        "require 'stub' unless defined?(Stub); SEEN = Stub::REAL",
        b"false",
    ),
    "stub of a file": ("$LOADED_FEATURES << 'stub.rb'", "SEEN = require('stub')", b"false"),
    "constant": ("LEVEL = 3", "SEEN = defined?(LEVEL)", b"constant"),
    "method": ("def level = 3", "SEEN = respond_to?(:level, true)", b"true"),
    "hook of exits": ("at_exit { puts 'first' }", "at_exit { puts 'second' }", b"second\nfirst"),
    "encoding": ("Encoding.default_external = 'ISO-8859-1'",
                 "SEEN = Encoding.default_external", b"8859-1"),
    "internal encoding": ("Encoding.default_internal = 'UTF-8'",
                          "SEEN = Encoding.default_internal", b"UTF-8"),
    "limit": ("Process.setrlimit(:NOFILE, 64)", "SEEN = Process.getrlimit(:NOFILE)[0]", b"64"),
    "umask": ("File.umask(0o077)", "SEEN = File.umask", b"63"),
    "trap": ("trap('USR1') { }", "SEEN = trap('USR1', 'DEFAULT').class", b"Proc"),
    "output": ("$stdout = STDERR", "SEEN = $stdout.fileno", b"2"),
    "synchronous": ("STDOUT.sync = true", "SEEN = STDOUT.sync", b"true"),
    "name": ("$0 = 'other'", "SEEN = $0", b"other"),
    "separator": ("$, = nil; $; = ':'; $stderr.sync = false",
                  "SEEN = ['a:b'.split, $stderr.sync]", b"false"),
    "arguments": ("ARGV.clear", "SEEN = ARGV.size", b"0"),
    "chance": ("srand(5)", "SEEN = rand(1000)", b""),
    "zone": ("ENV['TZ'] = 'Asia/Tokyo'", "SEEN = Time.at(0).hour", b"9"),
    "thread": ("Thread.current[:level] = 4", "SEEN = Thread.current[:level]", b"4"),
    "abort": ("Thread.abort_on_exception = true", "SEEN = Thread.abort_on_exception", b"true"),
    "collector": ("GC.disable", "SEEN = GC.disable; GC.enable", b"true"),
    "autoload": ("autoload :Later, './later'", "SEEN = [defined?(Later), Later]", b"1"),
    "finder": (
        "module Kernel; alias kept require; def require(n) = ($names = [*$names, n]; kept(n)); end",
        "require 'conf'; SEEN = $names",
        b"conf",
    ),
    "inherited": (
        "require 'conf'; class Base; def self.inherited(k) = $heard = 1; end",
        "require 'conf'; class Below < Base; end; SEEN = $heard",
        b"1",
    ),
    "compiler": (
        "RubyVM::InstructionSequence.compile_option = { frozen_string_literal: true }",
        "SEEN = ''.frozen?",
        b"true",
    ),
    "finder by a block": (
        "module Kernel; alias kept require\n"
        "define_method(:require) { |n| ($names ||= []) << n; kept(n) }; end",
        "require 'conf'; SEEN = $names",
        b"conf",
    ),
    "first of a hazard": ("require 'clock'", "SEEN = $clock", b"true"),
    "begun first": ("BEGIN { $begun = 1 }", "SEEN = $begun", b"1"),
}

# How the script comes to the file that reads.
WAYS = {
    "at once": "require 'reads'",
    "beside": "require_relative 'lib/reads'",
    "through a file": "require 'through'",
    "in a method": "def main = require('reads')\nmain",
    "by its place": "require './lib/reads' rescue require_relative('lib/reads')",
    "within its module": "module Own; require 'reads'; end",
}

# What else the script begins with.
BETWEEN = {
    "nothing": ("", ""),
    "a library before": ("require 'json'", ""),
    "a library after": ("", "require 'set'"),
    "comments and literals": ("# frozen_string_literal: true\n'text'\n", "\nnil\n"),
}


class Order(Case):
    """Programs that set something, and then require who reads it."""

    def setUp(self):
        super().setUp()
        self.write("lib/conf.rb", CONF)
        self.write("lib/clock.rb", "NOW = Time.now; $clock = true; require 'conf'")
        self.write("lib/stub.rb", "module Stub; REAL = true; end")
        self.write("lib/through.rb", "require 'conf'\nrequire 'reads'")
        for place in ("lib", "vendor"):
            self.write(place + "/found.rb", "FOUND = __FILE__")
        self.write("own.rb", "OWN = 1")
        self.write("later.rb", "Later = 1")
        self.write("below/x", "")
        self.env = dict(os.environ, RUBYLIB=os.path.join(self.place, "lib"))
        self.env.pop("HOB_ORDER", None)

    def test_who_patches_what_we_need_has_its_own_end(self):
        # What a cold run is learned by must not fail, or nothing would be warm.
        script = "class String; alias plain start_with?\ndef start_with?(*words)\n" \
                 "caller.any? { |at| at[/`(?:.*#)?finish'/] } ? plain(*words) : raise('patched')\n" \
                 "end; end\nrequire 'reads'"
        reads = "SEEN = ('a'.start_with?('a') rescue $!.message)"
        self.holds(script, reads, b"patched")

    def holds(self, script, reads, expect, *options):
        self.write("lib/reads.rb", reads + "\n")
        self.write("main.rb", script + "\np defined?(SEEN) && SEEN\n")
        run = Run(ROW, ["main.rb", "word"], cwd=self.place, env=self.env, options=options)
        made = os.path.join(self.place, "made.txt")

        def fresh(perform):
            if os.path.exists(made):
                os.unlink(made)
            self.write("own.rb", "OWN = 1")
            return perform()

        cold = fresh(run.cold)
        self.assertIn(expect, cold.out + cold.err, script)
        fresh(lambda: None)
        with self.settled(run) as zygote:
            for _ in range(CALLS):
                warm = fresh(lambda: run.warm(zygote, 1))
                self.assertEqual(cold, warm, script)
                self.assertIsNotNone(warm.fate, script)
        return zygote

    def test_each_state(self):
        """Each in one of the ways in turn, with each of what lies between."""
        for number, (state, (sets, reads, expect)) in enumerate(STATES.items()):
            way = list(WAYS)[number % len(WAYS)]
            between = list(BETWEEN)[number % len(BETWEEN)]
            before, after = BETWEEN[between]
            script = "\n".join(filter(None, (before, sets, after, WAYS[way])))
            with self.subTest(state=state, way=way, between=between):
                self.holds(script, reads, expect)

    def test_each_state_that_a_file_sets(self):
        """That file is loaded ahead, unless what it sets would not last."""
        for state, (sets, reads, expect) in STATES.items():
            self.write("lib/sets.rb", sets + "\n")
            with self.subTest(state=state):
                self.holds("require 'sets'\nrequire 'reads'", reads, expect)


CONF = """
    module Conf
      LIST = []
      @hooks = []
      class << self
        attr_accessor :level
        def on(&hook) = @hooks << hook
        def run = @hooks.map(&:call)
      end
    end
    class Base; def say = "base"; end
"""


if __name__ == "__main__":
    unittest.main()
