"""How each runtime is started (docs/worker.md): one row each.

A row gives the command lines of a zygote or standby, of a learning run and of a cold run, and the
same few programs in its language. `None` where the interpreter is not installed here. JVMs are in
`jvm.py`.
"""

import os
import shutil
import sys
import textwrap

RUNTIMES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

sys.path.insert(0, os.path.join(RUNTIMES, "python"))
import join
import jvm


class Row:
    """What most runtimes have: scripts, and zygotes that fork. A row says what it lacks."""

    # With which version several rows are told apart.
    version = ""
    forks = True
    # Whether the interpreter itself exits when it is asked to end, with a code.
    ends_by_itself = False
    # More descriptors than most callers have.
    many = range(9, 73)
    # Whether it makes system calls by the C library's functions, and not by their numbers.
    asks_c_library = False
    # Numbers that a warm process has itself, and does not move: who has one is executed cold.
    own_numbers = frozenset()
    # Classes of tests that do not concern it.
    lacks = ()

    def write(self, place):
        """Writes its programs to a folder."""
        for name, text in self.programs.items():
            with open(os.path.join(place, self.named(name)), "w") as file:
                file.write(textwrap.dedent(text).strip() + "\n")

    def named(self, name):
        """What names a program to the interpreter, in its folder."""
        return name + self.suffix

    def elsewhere(self, place, name):
        """The same in any directory."""
        return os.path.join(place, self.named(name))

    def how(self, place, name):
        """How a `Run` of it is made, beside its words."""
        return {}


class Python(Row):
    name = "python"
    asks_c_library = True
    interpreter = sys.executable
    suffix = ".py"
    handler_function = "handle"
    sources, kept = join.write(), join.kept()
    start = os.path.join(sources, "start.py")
    # A module that its cold run is known to import, and a program that does.
    preloadable = "json"

    def serve(self, options, script, kind):
        return [self.interpreter, *options, "-S", self.start, "serve", self.sources, self.kept]

    def learn(self, options, argv, kind, target, notes):
        named = "module" if kind else "script"
        prefix = [self.interpreter, *options]
        head = [self.interpreter, *options, "-S", self.start, "learn", self.sources, self.kept]
        return [*head, notes, named, target, str(len(prefix)), *prefix, *argv]

    def cold(self, options, argv, kind):
        head = ["-m", argv[0]] if kind else [argv[0]]
        return [self.interpreter, *options, *head, *argv[1:]]

    programs = {
        "hello": "print('hello')",
        "echo": """
            import os, sys
            print(sys.argv, os.environ.get("HOB_TEST"), os.getcwd())
            print(sys.stdin.read(), end="")
            print("error", file=sys.stderr)
        """,
        "exit": "import sys; sys.exit(int(sys.argv[1]))",
        "raise": "raise ValueError('boo')",
        "crash": "import os; os.abort()",
        "sleep": """
            import time
            print("ready", flush=True)
            time.sleep(30)
        """,
        "loads": "import json; print(json.dumps([1]))",
        "descriptors": """
            import os, subprocess, sys
            for number in map(int, sys.argv[1:]):
                print(number, os.get_inheritable(number), os.lseek(number, 0, os.SEEK_CUR))
            print(os.open(os.devnull, os.O_RDONLY), flush=True)
            subprocess.run(["ls", "/proc/self/fd"], close_fds=False)
        """,
        "streams": """
            import os, sys
            streams = [sys.stdin, sys.stdout, sys.stderr, sys.__stdout__]
            with open("seen", "w") as seen:
                known = [each and (each.name, each.encoding) for each in streams]
                print(seen.fileno(), known, file=seen)
            print("out")
            print("error", file=sys.stderr)
        """,
        "handler": """
            import os
            def handle(payload, message):
                if payload == b"raise": raise ValueError("boo")
                if payload == b"die": os._exit(3)
                if payload == b"nothing": return None
                if payload == b"object": return {"a": [1]}
                return payload[::-1]
        """,
    }


class Ruby(Row):
    name = "ruby"
    interpreter = shutil.which("ruby")
    suffix = ".rb"
    handler_function = "handle"
    worker = os.path.join(RUNTIMES, "ruby", "worker.rb")
    # Files that the interpreter has open, and that of its pages.
    own_numbers = frozenset((3, 4, 5, 6, 7, 253))
    preloadable = "json"

    def serve(self, options, script, kind):
        script = os.devnull if kind in (2, 3) else script
        return [self.interpreter, "-r" + self.worker, *options, script, "serve"]

    def learn(self, options, argv, kind, target, notes):
        return [self.interpreter, "-r" + self.worker, *options, *argv, notes, "learn"]

    def cold(self, options, argv, kind):
        return [self.interpreter, *options, *argv]

    programs = {
        "hello": "puts 'hello'",
        "echo": """
            p ARGV, ENV["HOB_TEST"], Dir.pwd
            print STDIN.read
            warn "error"
        """,
        "exit": "exit ARGV[0].to_i",
        "raise": "raise ArgumentError, 'boo'",
        "crash": "Process.kill(:ABRT, Process.pid); sleep",
        "sleep": """
            $stdout.write("ready\\n")
            $stdout.flush
            sleep 30
        """,
        "loads": "require 'json'; puts JSON.dump([1])",
        "descriptors": """
            ARGV.map(&:to_i).each do |number|
              io = IO.for_fd(number, autoclose: false)
              puts [number, io.close_on_exec?, io.pos].inspect
            rescue SystemCallError, ArgumentError => error
              p error
            end
            $stdout.flush
            system("ls /proc/self/fd", close_others: false)
        """,
        "streams": """
            known = [STDIN, STDOUT, STDERR].map { |each| [each.fileno, each.stat.ftype] }
            File.write("seen", known.inspect)
            puts "out"
            warn "error"
        """,
        "handler": """
            def handle(payload, message)
              raise ArgumentError, "boo" if payload == "raise"
              exit!(3) if payload == "die"
              return nil if payload == "nothing"
              return { "a" => [1] } if payload == "object"
              payload.reverse
            end
        """,
    }


def rows():
    """Those whose interpreter is here; the programs of JVMs are compiled then."""
    return [row for row in (Python(), Ruby(), *jvm.rows(Row)) if row.interpreter]
