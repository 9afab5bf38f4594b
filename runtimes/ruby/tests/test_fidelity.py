"""What a program can see of its process is the same warm as cold: each program runs both ways."""

import os
import pty
import resource
import signal
import tempfile
import unittest

from harness import ROW, Case, Run


class Arguments(Case):
    def test_arguments_are_the_same_kind_of_strings(self):
        self.same(
            """
            p ARGV, $*, ARGV.equal?($*), ARGV.frozen?, ARGV.class
            p ARGV.map { |a| [a, a.encoding, a.frozen?, a.valid_encoding?] }
            """,
            "a",
            "",
            "b c",
            "--x=\xe9",
            b"\xff\xfe",
            expect=b"b c",
        )

    def test_arguments_in_other_locales(self):
        text = "p ARGV.map { |a| [a, a.encoding, a.frozen?] }, ENV['X'].encoding\n"
        text += "p Encoding.default_external"
        for locale in ("C", "POSIX", "C.UTF-8"):
            env = {"LC_ALL": locale, "PATH": os.environ["PATH"], "X": "\xe9"}
            self.same(text, "\xe9", "a", env=env, expect=b"Encoding")

    def test_name_and_frames(self):
        self.same(
            """
            p $0, $PROGRAM_NAME, __FILE__, __dir__, __LINE__, __method__, caller, caller_locations
            def f = caller
            p f, binding.source_location, self, binding.local_variables
            p [__FILE__ == $0, require_relative("beside")]
            """
            if self.write("beside.rb", "p caller, __FILE__")
            else "",
            expect=b"main.rb",
        )

    def test_arguments_of_a_mebibyte(self):
        self.same("p ARGV.size, ARGV.sum(&:size)", *["x" * 100_000] * 9, expect=b"900000")

    def test_command_line(self):
        warm = self.same(
            """
            own = File.binread("/proc/self/cmdline").split("\\0").reject(&:empty?)
            p own.drop(1)
            system("ps", "-o", "args=", "-p", Process.pid.to_s) if system("command -v ps >/dev/null")
            """,
            "a",
            "b c",
            expect=b"main.rb",
        )
        self.assertNotIn(b"worker", warm.out)


class Files(Case):
    def test_data(self):
        self.same(
            """
            p DATA.class, DATA.pos, DATA.lineno, DATA.path, DATA.external_encoding, DATA.fileno
            p DATA.read, DATA.rewind, DATA.gets
            __END__
            one
            two
            """,
            expect=b"one",
        )

    def test_data_after_a_first_line_with_options(self):
        self.same(
            """
            #!/usr/bin/env ruby -w
            # frozen_string_literal: true
            unused = 1
            p DATA.pos, DATA.lineno, DATA.read, $VERBOSE, "".frozen?
            __END__
            one
            """,
            expect=b"one",
        )

    def test_input(self):
        self.same(
            "p STDIN.gets, $stdin.read(3), STDIN.pos, STDIN.lineno, system('cat')",
            stdin=b"first\nsecond\nthird\n",
            expect=b"first",
        )

    def test_argf(self):
        self.write("a.txt", "in a\n")
        self.same("while line = gets; p ARGF.filename, line; end; p ARGV, $.", "a.txt", expect=b"in a")
        self.same("p ARGF.read, gets", stdin=b"from input\n", expect=b"from input")

    def test_descriptors(self):
        self.same(
            """
            p Dir.children("/proc/self/fd").map(&:to_i).select { |n| n < 240 && n != 251 }.sort
            p IO.pipe.map(&:fileno), File.open(__FILE__).fileno
            """
        )

    def test_streams(self):
        self.same(
            """
            [STDIN, STDOUT, STDERR, $stdin, $stdout, $stderr].each do |io|
              p [io.fileno, io.sync, io.tty?, io.external_encoding, io.internal_encoding,
                 io.binmode?, io.close_on_exec?, io.inspect, io.class]
            end
            p $stdout.equal?(STDOUT), $stdin.equal?(STDIN), $>.equal?(STDOUT)
            p Encoding.default_external, Encoding.default_internal, __ENCODING__
            p Encoding.find("locale"), Encoding.find("filesystem")
            """,
            expect=b"STDOUT",
        )

    def test_terminal(self):
        self.write("main.rb", "p [STDIN, STDOUT, STDERR].map(&:tty?); $stdout.write('x'); exit!")
        outputs = []
        run = Run(ROW, ["main.rb"], cwd=self.place)
        for warm in (False, True):
            ours, theirs = pty.openpty()
            run.stdout = os.ttyname(theirs)
            if warm:
                with self.zygote() as zygote:
                    run.warm(zygote, 1)
            else:
                run.cold()
            outputs.append(os.read(ours, 4096))
            os.close(ours)
            os.close(theirs)
        self.assertEqual(*outputs)
        self.assertIn(b"true", outputs[0])
        # It had written at once, as to a terminal: `exit!` flushes nothing.
        self.assertTrue(outputs[0].endswith(b"x"), outputs)

    def test_deleted_directory(self):
        results = []
        script = self.write("main.rb", "puts((Dir.pwd rescue $!.class)); p File.exist?('.')")
        for warm in (False, True):
            place = tempfile.mkdtemp()
            run = Run(ROW, [script], cwd=place)
            if warm:
                with self.zygote(argv=[script]) as zygote:
                    results.append(self.given_in_nowhere(run, zygote, place))
            else:
                script_cold = "Dir.rmdir(Dir.pwd); exec(*ARGV)"
                run.argv = [self.write("remove.rb", script_cold), ROW.interpreter, script]
                results.append(run.cold())
        self.assertEqual(results[0].out, results[1].out)
        self.assertIn(b"ENOENT", results[0].out)

    def given_in_nowhere(self, run, zygote, place):
        channel, pidfd, _ = zygote.copy(1)
        keep = os.open(place, os.O_RDONLY)
        os.rmdir(place)
        run.cwd = "/proc/self/fd/%d" % keep
        outcome, _ = run.give(channel, pidfd)
        os.close(keep)
        os.close(pidfd)
        channel.close()
        return outcome

    def test_names_that_are_no_text(self):
        name = b"sc\xff.rb".decode("utf-8", "surrogateescape")
        env = {"X": b"\xff", "PATH": os.environ["PATH"]}
        self.same("p $0, __FILE__, Dir.pwd, ENV['X']", name=name, env=env)

    def test_broken_pipe_and_full_device(self):
        self.same("puts 'x' * 100_000", stdout="/dev/full", expect=b"ENOSPC")
        self.same("puts 'x'", stdout="/dev/full")
        self.same("$stdout.sync = true; puts 'x'", stdout="/dev/full", expect=b"ENOSPC")
        self.same("r, w = IO.pipe; r.close; w.write('x')", expect=b"EPIPE")
        text = "r, w = IO.pipe; r.close; $stdout.reopen(w); puts 'x'; $stdout.flush"
        self.same(text, expect=b"EPIPE")


class Surroundings(Case):
    def test_environment_and_its_order(self):
        env = {"ZEBRA": "1", "PATH": os.environ["PATH"], "ALPHA": "", "MID": "a=b", "B": "x\xe9"}
        env["LANG"] = os.environ.get("LANG", "C")
        self.same(
            """
            p ENV.to_a, ENV["B"].encoding, ENV["NO"], ENV["PATH"].frozen?
            $stdout.flush
            system("env")
            """,
            env=env,
            expect=b"ZEBRA",
        )
        self.same("p ENV.to_h", env={}, expect=b"{}")

    def test_time_zone(self):
        for zone in ("Asia/Tokyo", "America/New_York", "UTC"):
            env = dict(os.environ, TZ=zone)
            self.same("p Time.at(0).to_s, Time.local(2020, 7).zone", env=env, modules=["json"])

    def test_umask_and_limits(self):
        limits = {resource.RLIMIT_NOFILE: (100, 200), resource.RLIMIT_CORE: (0, 0)}
        self.same(
            """
            p File.umask, Process.getrlimit(:NOFILE), Process.getrlimit(:CORE)
            system("umask; ulimit -n")
            """,
            world={"umask": 0o077, "limits": limits},
            expect=b"100",
        )

    def test_signals(self):
        ignored = 1 << signal.SIGHUP - 1 | 1 << signal.SIGINT - 1 | 1 << signal.SIGPIPE - 1
        blocked = 1 << signal.SIGUSR1 - 1 | 1 << signal.SIGTERM - 1
        self.same(
            """
            puts File.read("/proc/self/status").scan(/^Sig(?:Blk|Ign|Cgt).*/)
            %w[HUP INT PIPE TERM USR1 CHLD].each { |s| p trap(s) {} }
            """,
            world={"ignored": ignored, "blocked": blocked},
        )
        self.same(
            """
            puts File.read("/proc/self/status").scan(/^Sig(?:Blk|Ign|Cgt).*/)
            system("grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status")
            %w[HUP INT PIPE TERM USR1 CHLD EXIT QUIT].each { |s| p trap(s) {} }
            """
        )

    def test_priority(self):
        self.same(
            "p Process.getpriority(Process::PRIO_PROCESS, 0), File.read('/proc/self/oom_score_adj')",
            world={"priority": {"nice": 3, "oom": 700}},
            expect=b"3",
        )

    def test_group_and_session(self):
        self.same("p Process.getpgrp == Process.pid, (Process.setsid.class rescue $!.class)")

    def test_children(self):
        self.same(
            """
            system("echo from system"); puts `echo from backtick`
            pid = spawn("echo from spawn", out: :err); Process.wait(pid); p $?.exitstatus
            IO.popen(["cat"], "r+") { |io| io.puts "x"; io.close_write; p io.read }
            $stdout.flush
            pid = fork { at_exit { puts "child's" }; puts "in child"; exit 3 }
            Process.wait(pid)
            p $?.exitstatus
            fork { exit! 4 }
            p Process.wait2[1].exitstatus
            puts "parent's"
            """,
            expect=b"in child",
        )

    def test_a_child_that_lives_on(self):
        self.same("fork { sleep 0.2; puts 'late' }; puts 'early'", expect=b"early")

    def test_exec(self):
        self.same("at_exit { puts 'never' }; exec('echo', 'replaced')", expect=b"replaced")

    def test_chance(self):
        text = "p rand, Random.rand, Random.new.seed, Random.seed, [*1..99].shuffle, Random.bytes(4)\n"
        text += "srand(3); p rand"
        _, first = self.both(text, modules=["securerandom"])
        with self.zygote(modules=["securerandom"]) as zygote:
            run = Run(ROW, ["main.rb"], cwd=self.place)
            runs = [run.warm(zygote, 1).out for _ in range(3)]
        lines = [out.splitlines() for out in [first.out, *runs]]
        for column in range(6):
            self.assertEqual(len({line[column] for line in lines}), 4, column)
        self.assertEqual(len({line[6] for line in lines}), 1)
        cold, warm = self.both("require 'securerandom'; p SecureRandom.hex", modules=["securerandom"])
        self.assertNotEqual(cold.out, warm.out)


class Ends(Case):
    def end(self, text, code, expect=None, told=True, **how):
        warm = self.same(text, expect=expect, **how)
        self.assertEqual(warm.code, code)
        self.assertEqual(warm.fate is not None, told, warm)

    def test_order_of_exit_hooks(self):
        self.end(
            """
            END { puts "END" }
            at_exit { puts "first"; p $! }
            at_exit { puts "second"; at_exit { puts "nested" } }
            ObjectSpace.define_finalizer("x".dup, proc { puts "finalizer" })
            puts "body"
            """,
            0,
            b"finalizer",
        )

    def test_codes(self):
        self.end("exit 3", 3)
        self.end("exit false", 1)
        self.end("exit 300", 300 & 0xFF)
        self.end("at_exit { exit 5 }; exit 3", 5)
        self.end("at_exit { raise 'in hook' }; puts 1", 1, b"in hook")
        self.end("at_exit { exit! 6 }; exit 3", 6, told=False)
        self.end("exit! 4", 4, told=False)
        self.end("abort", 1)
        self.end("abort 'the text'", 1, b"the text")
        self.end("raise SystemExit", 0)
        self.end("throw :nothing", 1, b"UncaughtThrowError")
        self.end("Thread.new { exit 7 }.join", 7)
        self.end("begin; exit 2; ensure; puts 'ensured'; end", 2, b"ensured")
        self.end("fork { exit 9 }; Process.wait; exit 1", 1)

    def test_uncaught(self):
        self.end(
            """
            class Odd < StandardError
              def message = "first line\\nsecond"
            end
            def f = raise(Odd)
            begin
              nil.foo
            rescue => e
              f
            end
            """,
            1,
            b"second",
        )
        self.end("nil.uppcase", 1, b"undefined method")
        self.end("[].frist", 1, b"Did you mean?")
        self.end("def f = f()\nf", 1, b"stack level too deep")

    def test_only_what_nobody_rescued_is_told_as_that(self):
        for text, told in (
            ("raise 'x'", True),
            ("at_exit { puts 1 }\nnil.no_such_method", True),
            ("exit 1", False),
            ("abort 'x'", False),
            ("raise Errno::EPIPE", False),
            ("begin; raise 'x'; rescue RuntimeError; end", False),
            ("fork { raise 'x' }\nProcess.wait", False),
        ):
            with self.subTest(text):
                _, warm = self.both(text)
                self.assertEqual(warm.uncaught, told)

    def test_depth_of_the_stack(self):
        text = "$n = 0; def f = ($n += 1; f)\nbegin; f; rescue SystemStackError; p $n; end"
        cold, warm = self.both(text)
        self.assertLess(abs(int(cold.out) - int(warm.out)), 200)

    def test_does_not_parse(self):
        self.end("puts 1\nif true\n", 1, b"syntax error")

    def test_nothing_to_run(self):
        self.end("", 0)
        self.end("# said\n", 0)

    def test_ends_by_a_signal(self):
        self.end("Process.kill(:TERM, $$); sleep", -signal.SIGTERM, told=False)
        self.end("Process.kill(:KILL, $$)", -signal.SIGKILL, told=False)
        self.end("raise Interrupt, 'x'", -signal.SIGINT, told=False)
        self.end("raise SignalException, 'HUP'", -signal.SIGHUP, told=False)
        self.end("trap('INT') { puts 'got it'; exit 3 }; Process.kill(:INT, $$); sleep 5", 3, b"got it")
        self.end("trap('EXIT') { puts 'trapped' }; puts 1", 0, b"trapped")
        text = "at_exit { puts 'hook' }; Process.kill(:TERM, $$); sleep"
        self.end(text, -signal.SIGTERM, b"hook", told=False)

    def test_interrupted_from_outside(self):
        text = """
            begin
              $stdout.write("ready\\n"); $stdout.flush
              sleep 30
            ensure
              puts "ensured"
            end
            """
        self.end(text, -signal.SIGINT, b"ensured", told=False, signal=signal.SIGINT)

    def test_buffers_are_flushed(self):
        self.write("out.txt", "")
        self.same(
            """
            f = File.open("out.txt", "w"); f.write("unflushed")
            g = IO.for_fd(1, "w"); g.write("other object\\n")
            $stdout.write("mine\\n")
            $keep = f
            """,
            expect=b"mine",
        )
        with open(os.path.join(self.place, "out.txt")) as file:
            self.assertEqual(file.read(), "unflushed")

    def test_temporary_files_and_finalizers(self):
        text = """
            require "tempfile"
            t = Tempfile.new("x", "."); t.write("y"); t.flush
            at_exit { p Dir.children(".").size }
            """
        self.end(text, 0, b"2", modules=["tempfile"])
        self.assertEqual(os.listdir(self.place), ["main.rb"])

    def test_threads_at_the_end(self):
        text = "Thread.new { begin; sleep; ensure; puts 'thread ensured'; end }; sleep 0.05"
        self.end(text, 0, b"ensured")
        quiet = "t = Thread.new { raise 'in thread' }; t.report_on_exception = false; "
        self.end(quiet + "p((t.join rescue $!))", 0, b"in thread")
        text = "Thread.abort_on_exception = true; Thread.report_on_exception = false; "
        self.end(text + "Thread.new { raise 'x' }; sleep 5", 1, b"x")

    def test_what_is_seen_when_it_is_freed(self):
        # With the time of no run, which it would write.
        text = "require 'zlib'; $z = Zlib::GzipWriter.new($stdout); $z.mtime = 1; $z.write('x')"
        self.end(text, 0, told=False)

    def test_closed_streams(self):
        self.end("$stdout.close; $stderr.close; exit 2", 2)
        self.end("STDIN.close; IO.for_fd(1).close; exit 2", 2)

    def test_all_descriptors_closed(self):
        cold, warm = self.both("(3..300).each { |n| IO.for_fd(n).close rescue nil }; puts 'closed'")
        self.assertEqual((cold.code, cold.out), (warm.code, warm.out))


if __name__ == "__main__":
    unittest.main()
