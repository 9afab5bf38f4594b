"""What a worker promises beyond the probes: staleness, hazards, notes, and how processes end."""

import contextlib
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import bench_give
from harness import (
    ENDED,
    FAILED,
    FINISHED,
    FORK,
    FORKED,
    GIVE,
    NOTES,
    READY,
    WAIT_S,
    Peer,
    Run,
    Worker,
    strings,
    take_strings,
    world,
)


class InAFolder(unittest.TestCase):
    """Each test has a folder of its own to write its programs in."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = os.path.realpath(holder.name)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run_of(self, name, *args, **how):
        how.setdefault("cwd", self.folder)
        return Run([name, *args], **how)

    def zygote(self, name, *modules, **options):
        """One that is told these modules, and has loaded them or says why not. Of those that are
        `allowed`, too, nothing is known."""
        worker = self.started(name, [*modules, *options.pop("allowed", ())], options)
        self.assertEqual(unknown_to(worker, modules, options), [], "it was not loaded ahead")
        return worker

    def started(self, name, modules, options):
        options = dict(options)
        options.setdefault("cwd", self.folder)
        target = os.path.join(self.folder, name)
        worker = Worker(0, options.pop("kind", 0), options.pop("target", target),
                        modules=modules, **options)
        self.addCleanup(worker.close)
        return worker

    def settled(self, modules, script="s.py", allowed=(), **options):
        """As the daemon does: a zygote without what was a hazard to load ahead, and the hazards."""
        hazards = {}
        for _ in range(9):
            left = [name for name in [*modules, *allowed] if name not in hazards]
            zygote = self.started(script, left, options)
            new = hazards_of(zygote)
            if all(name in hazards for name in new):
                loaded = [name for name in modules if name not in hazards]
                self.assertEqual(unknown_to(zygote, loaded, options), [], "it was not loaded ahead")
                return zygote, hazards
            hazards.update(new)
            zygote.close()
        self.fail("never the same: %r" % hazards)

    def same(self, run, zygote):
        """Cold, unpaid, paid and plain agree; what they agree in."""
        cold = run.cold()
        for paid in (0, 1, 2):
            self.assertEqual(repr(cold), repr(run.warm(zygote, paid)))
        return cold


class WhatEndedIt(InAFolder):
    def test_only_what_nobody_caught_is_told_as_that(self):
        for text, told in (
            ("raise ValueError", True),
            ("import sys\nsys.excepthook = print\nraise ValueError", True),
            ("raise SystemExit(1)", False),
            ("raise KeyboardInterrupt", False),
            ("raise BrokenPipeError", False),
            ("raise TimeoutError", False),
            ("try: raise ValueError\nexcept ValueError: pass", False),
            ("import os\nos.fork() and os.wait()\nraise ValueError", True),
        ):
            with self.subTest(text):
                self.write("s.py", text + "\n")
                with self.zygote("s.py") as zygote:
                    for paid in (0, 1):
                        self.assertEqual(self.run_of("s.py").warm(zygote, paid).uncaught, told)


def loaded_by(worker):
    """The modules that it has loaded ahead."""
    return {os.fsdecode(note[1:]) for note in worker.notes if note[:1] == b"M"}


def hazards_of(worker):
    return dict(os.fsdecode(note[1:]).split(":") for note in worker.notes if note[:1] == b"H")


def unknown_to(worker, modules, options):
    """Those that it has not loaded ahead without a word; start-up code may have loaded some."""
    known = loaded_by(worker) | set(hazards_of(worker))
    if known.issuperset(modules):
        return []
    words = [sys.executable, *options.get("options", ()), "-c", "import sys; print(*sys.modules)"]
    out = subprocess.run(words, env=options.get("env"), stdout=subprocess.PIPE, check=True).stdout
    return [name for name in modules if name not in known and name not in out.decode().split()]


class EditsTakeEffectOnTheNextCall(InAFolder):
    def test_an_edited_script(self):
        self.write("s.py", "print('old')\n")
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        self.assertEqual(run.warm(zygote, True).out, b"old\n")
        self.write("s.py", "print('new')\n")
        self.assertEqual(self.same(run, zygote).out, b"new\n")

    def test_an_edit_while_a_paid_copy_waits(self):
        self.write("s.py", "print('old')\n")
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        channel, pidfd, _ = zygote.copy(True)
        self.write("s.py", "print('new')\n")
        outcome, fate = run.give(channel, pidfd)
        self.assertEqual((outcome.out, fate), (b"new\n", (0, 0)))

    def test_an_edit_that_keeps_size_and_mtime(self):
        path = self.write("s.py", "print('old')\n")
        before = os.stat(path)
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        self.write("s.py", "print('new')\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(self.same(run, zygote).out, b"new\n")

    def test_an_edit_into_a_syntax_error(self):
        self.write("s.py", "print('old')\n")
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        self.write("s.py", "print('new'\n")
        self.assertIn(b"SyntaxError", self.same(run, zygote).err)

    def test_a_script_that_is_gone(self):
        path = self.write("s.py", "print('old')\n")
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        os.unlink(path)
        self.assertEqual(self.same(run, zygote).code, 2)


class TheScriptMayHaveOtherNames(InAFolder):
    SHOW = "import sys\nprint(__file__, sys.argv, sys.path[0])\nraise ValueError\n"

    def test_relative_absolute_and_roundabout(self):
        path = self.write("s.py", self.SHOW)
        os.mkdir(os.path.join(self.folder, "d"))
        zygote = self.zygote("s.py")
        for name in ("s.py", path, "./s.py", "d/../s.py"):
            self.same(self.run_of(name, "x"), zygote)

    def test_a_symbolic_link_elsewhere(self):
        path = self.write("real/s.py", self.SHOW)
        os.symlink(path, os.path.join(self.folder, "link"))
        zygote = self.zygote("link", target=os.path.join(self.folder, "link"))
        self.same(self.run_of("link"), zygote)
        self.same(self.run_of("real/s.py"), zygote)

    def test_the_same_name_in_another_place(self):
        """The zygote's search path is not this script's: it is executed anew."""
        self.write("a/s.py", "import m\n")
        self.write("a/m.py", "print('a')\n")
        self.write("b/s.py", "import m\n")
        self.write("b/m.py", "print('b')\n")
        zygote = self.zygote("a/s.py", "m")
        self.assertEqual(self.same(self.run_of("b/s.py"), zygote).out, b"b\n")

    def test_a_folder_and_an_archive_with_a_main(self):
        self.write("app/__main__.py", self.SHOW + "import other\n")
        with zipfile.ZipFile(os.path.join(self.folder, "app.pyz"), "w") as archive:
            archive.writestr("__main__.py", self.SHOW)
        for name in ("app", "app.pyz"):
            self.same(self.run_of(name, "x"), self.zygote(name))


class TheWorkingDirectoryMayBeGone(InAFolder):
    def test_a_script_named_relatively(self):
        self.write("s.py", "import os, sys\nprint(sys.argv)\nos.getcwd()\n")
        zygote = self.zygote("s.py", cwd="/")
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)
        run = self.run_of(os.path.join(self.folder, "s.py"), cwd=gone)
        relative = self.run_of("../s.py", cwd=gone)
        channels = [zygote.copy(True) for _ in range(2)]
        held = os.open(gone, os.O_RDONLY)
        os.rmdir(gone)
        self.addCleanup(os.close, held)
        run.cwd = relative.cwd = "/proc/self/fd/%d" % held
        for each, (channel, pidfd, _) in zip((run, relative), channels):
            warm, fate = each.give(channel, pidfd)
            os.close(pidfd)
            channel.close()
            zygote.gone()
            self.assertIn(fate, ((0, 1), None))
            self.assertIn(b"No such file or directory", warm.err)


class ModulesAreFoundAsInTheCallersDirectory(InAFolder):
    def test_a_neighbour_of_the_caller_shadows_what_was_preloaded(self):
        self.write("tool/__main__.py", "import json\nprint(json.__name__, hasattr(json, 'x'))\n")
        self.write("other/json.py", "x = 1\n")
        env = dict(os.environ, PYTHONPATH=self.folder)
        zygote = self.zygote("", "json", "tool", kind=1, target="tool", env=env, cwd="/")
        here = self.run_of("tool", kind=1, target="tool", env=env)
        there = self.run_of(
            "tool", kind=1, target="tool", env=env, cwd=os.path.join(self.folder, "other")
        )
        self.assertEqual(self.same(here, zygote).out, b"json False\n")
        self.assertEqual(self.same(there, zygote).out, b"json True\n")

    def test_a_module_of_the_zygotes_directory_only(self):
        self.write("one/tool.py", "print('one')\n")
        self.write("two/tool.py", "print('two')\n")
        zygote = self.zygote("", kind=1, target="tool", cwd=os.path.join(self.folder, "one"))
        for name in ("one", "two"):
            cwd = os.path.join(self.folder, name)
            run = self.run_of("tool", kind=1, target="tool", cwd=cwd)
            self.assertEqual(self.same(run, zygote).out, name.encode() + b"\n")


class TheEnvironmentIsTheCallersOwn(InAFolder):
    SHOW = "import os\nprint(list(os.environ.items()), flush=True)\nos.system('env')\n"

    def check(self, pairs):
        self.write("s.py", self.SHOW)
        base = [("PATH", os.environ["PATH"]), ("A", "1"), ("B", "2"), ("C", "3")]
        zygote = self.zygote("s.py", env=dict(base))
        self.same(self.run_of("s.py", env=dict(pairs(base))), zygote)

    def test_equal(self):
        self.check(lambda base: base)

    def test_one_value_differs(self):
        self.check(lambda base: [(k, "x" + v if k == "B" else v) for k, v in base])

    def test_another_order(self):
        self.check(lambda base: base[::-1])

    def test_one_less_and_one_more(self):
        self.check(lambda base: [("Z", ""), *base[1:], ("PATH", "/bin")])

    def test_empty(self):
        self.check(lambda base: [])

    def test_bytes_that_are_no_text(self):
        self.check(lambda base: base + [("RAW", os.fsdecode(b"\xff\xfe=\n"))])

    def test_larger_than_one_read(self):
        self.check(lambda base: base + [("BIG%d" % n, "x" * 50000) for n in range(10)])

    def test_what_a_preloaded_module_has_set(self):
        self.write("setter.py", "import os\nos.environ['SET'] = 'by a module'\n")
        self.write("s.py", "import setter\n" + self.SHOW)
        zygote = self.zygote("s.py", "setter", env={"PATH": "/bin", "A": "1"})
        run = self.run_of("s.py", env={"B": "2", "PATH": "/bin"})
        self.same(run, zygote)


class HazardsAreNoted(InAFolder):
    def hazards(self, text, role=0):
        self.write("s.py", "import json, risky\n")
        self.write("risky.py", text)
        path = os.path.join(self.folder, "s.py")
        with Worker(role, 0, path, modules=["json", "risky"], cwd=self.folder) as worker:
            self.threads = worker.threads
            return [note for note in worker.notes if note[:1] == b"H"]

    def test_output(self):
        for text in ("print('hello')", "import sys; sys.stderr.write('x')",
                     "import os; os.write(1, b'x')"):
            self.assertEqual(self.hazards(text), [b"Hrisky:output"])

    def test_a_warning_that_the_main_module_would_cause(self):
        text = "import warnings; warnings.warn('old', DeprecationWarning, stacklevel=2)"
        self.assertEqual(self.hazards(text), [b"Hrisky:output"])

    def test_a_socket_and_a_pipe(self):
        self.assertEqual(
            self.hazards("import socket; s = socket.socketpair()"), [b"Hrisky:descriptor"]
        )
        self.assertEqual(self.hazards("import os; p = os.pipe()"), [b"Hrisky:descriptor"])

    def test_harmless_devices_are_none_and_an_open_file_is_one(self):
        self.assertEqual(self.hazards("a = open('/dev/null'); b = open('/dev/zero', 'rb')"), [])
        self.assertEqual(self.hazards("a = open(__file__)"), [b"Hrisky:descriptor"])

    def test_a_failure(self):
        self.assertEqual(self.hazards("raise ValueError"), [b"Hrisky:failed"])
        self.assertEqual(self.hazards("import sys; sys.exit(3)"), [b"Hrisky:failed"])

    def test_a_process(self):
        text = "import subprocess; p = subprocess.Popen(['sleep', '1'])"
        self.assertEqual(self.hazards(text), [b"Hrisky:process"])

    # One that the interpreter knows nothing of, as libraries in C have them.
    THREAD = "import faulthandler\nfaulthandler.dump_traceback_later(10**6)\n"

    def test_a_thread(self):
        self.assertEqual(self.hazards(self.THREAD), [b"Hrisky:thread"])
        self.assertEqual(self.threads, 2)

    def test_a_thread_of_the_interpreter_is_for_the_call(self):
        text = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
        self.assertIn(b"Hrisky:state", self.hazards(text))
        self.assertIn(b"Hrisky:state", self.hazards(text, role=1))

    def test_a_standby_may_have_threads(self):
        self.assertEqual(self.hazards(self.THREAD, role=1), [])

    def test_a_zygote_with_a_thread_is_never_forked(self):
        self.write("s.py", "import risky\n")
        self.write("risky.py", self.THREAD)
        zygote = self.zygote("s.py", "risky")
        channel, _, error = zygote.copy(False)
        self.assertIsNone(channel)
        self.assertEqual(error, b"threads")


class NotesTellWhatTheWarmStateWasMadeFrom(InAFolder):
    PROGRAM = (
        "import os, pack.inner\n"
        "os.environ.get('READ_BY_MAIN')\n"
        "try:\n    import absent_one\nexcept ImportError:\n    pass\n"
    )

    def tree(self):
        self.write("pack/__init__.py", "import os\nos.environ.get('READ_BY_PACK')\n")
        self.write("pack/inner.py", "import os\n'READ_BY_INNER' in os.environ\n")

    def check(self, notes):
        self.assertIn(b"Mpack.inner", notes)
        self.assertLess(notes.index(b"Mpack"), notes.index(b"Mpack.inner"))
        for file in ("pack/__init__.py", "pack/inner.py"):
            self.assertIn(b"F" + os.path.join(self.folder, file).encode(), notes)
        self.assertIn(b"F" + os.__file__.encode(), notes)
        self.assertIn(b"D" + self.folder.encode(), notes)
        self.assertIn(b"D" + os.path.join(self.folder, "pack").encode(), notes)
        self.assertIn(b"EREAD_BY_PACK", notes)
        self.assertIn(b"EREAD_BY_INNER", notes)
        self.assertNotIn(b"EREAD_BY_MAIN", notes)
        self.assertNotIn(b"M__main__", notes)
        self.assertNotIn(b"Mos", notes)
        self.assertFalse([n for n in notes if b"worker.py" in n or n[1:] in (b"_socket", b"gc")])

    def learned(self, ending):
        self.tree()
        self.write("s.py", self.PROGRAM + ending)
        path = os.path.join(self.folder, "notes")
        outcome = self.run_of("s.py").learn(path)
        with open(path, "rb") as file:
            notes = file.read().split(b"\0")
        self.assertEqual(notes.pop(), b"")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.check(notes)
        self.assertIn(b"Xabsent_one", notes)
        return outcome.code

    def test_a_learning_run_that_returns(self):
        self.assertEqual(self.learned(""), 0)

    def test_a_learning_run_that_exits(self):
        self.assertEqual(self.learned("import sys\nsys.exit(5)\n"), 5)

    def test_a_learning_run_that_fails(self):
        self.assertEqual(self.learned("1 / 0\n"), 1)

    def test_a_learning_run_that_is_interrupted(self):
        self.assertEqual(self.learned("raise KeyboardInterrupt\n"), -2)

    def test_a_zygote(self):
        self.tree()
        self.write("s.py", "import os, pack.inner, absent_two\n" + self.PROGRAM)
        notes = self.zygote("s.py", "pack", "pack.inner", "absent_two").notes
        self.check(notes)
        self.assertIn(b"Xabsent_two", notes)
        self.assertIn(b"Habsent_two:failed", notes)

    def test_a_call_that_loads_more(self):
        self.tree()
        self.write("s.py", self.PROGRAM)
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        frames = run.warm(zygote, True).frames
        self.assertEqual([kind for kind, _, _ in frames], [FINISHED, NOTES])
        notes = take_strings(frames[1][1], 8)
        self.assertIn(b"Mpack.inner", notes)
        self.assertIn(b"F" + os.path.join(self.folder, "pack/inner.py").encode(), notes)

    def test_a_call_that_loads_nothing_more_sends_none(self):
        self.tree()
        self.write("s.py", "import pack\n")
        zygote, run = self.zygote("s.py", "pack"), self.run_of("s.py")
        self.assertEqual([kind for kind, _, _ in run.warm(zygote, False).frames], [FINISHED])


class ProcessesEndAsTheyShould(InAFolder):
    def poll(self, pidfd, ms):
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return poll.poll(ms)

    def gone(self, pidfd):
        return bool(self.poll(pidfd, WAIT_S * 1000))

    def test_the_zygote_ends_with_its_channel_and_its_copies_with_it(self):
        self.write("s.py", "pass\n")
        zygote = self.zygote("s.py")
        copies = [zygote.copy(paid) for paid in (True, True, False)]
        zygote.close()
        self.assertEqual(zygote.process.returncode, 0)
        self.assertTrue(all(self.gone(pidfd) for _, pidfd, _ in copies))

    def test_a_killed_zygote_takes_its_copies_along(self):
        self.write("s.py", "pass\n")
        zygote = self.zygote("s.py")
        copies = [zygote.copy(True) for _ in range(2)]
        zygote.process.kill()
        self.assertTrue(all(self.gone(pidfd) for _, pidfd, _ in copies))

    def test_a_waiting_copy_ends_with_its_channel(self):
        self.write("s.py", "pass\n")
        zygote = self.zygote("s.py")
        channel, pidfd, _ = zygote.copy(True)
        channel.close()
        self.assertEqual(zygote.gone(), (1, (0, 0)))
        self.assertTrue(self.gone(pidfd))

    def test_a_give_may_be_sent_before_the_copy_has_begun(self):
        """The zygote is stopped until both frames are sent. A plain copy is not ready then, and
        does not say so."""
        self.write("s.py", "print('done')\n")
        zygote = self.zygote("s.py")
        for paid in (0, 2):
            near, far = socket.socketpair()
            channel = Peer(near)
            caller, reply = socket.socketpair()
            os.kill(zygote.pid, signal.SIGSTOP)
            zygote.channel.send(FORK, struct.pack("<QB", 1, paid), [far.fileno()])
            with tempfile.TemporaryFile() as out, open("/dev/null", "r+b") as null:
                cwd = os.open(self.folder, os.O_RDONLY)
                fds = [null.fileno(), out.fileno(), null.fileno(), cwd, reply.fileno()]
                payload = struct.pack("<QI", 1, 0) + world() + strings(["s.py"])
                payload += strings([]) + bytes(9)
                channel.send(GIVE, payload, fds)
                for end in (far, reply):
                    end.close()
                os.close(cwd)
                os.kill(zygote.pid, signal.SIGCONT)
                self.assertEqual(Peer(caller).receive()[0], ENDED)
                self.assertEqual(os.pread(out.fileno(), 100, 0), b"done\n")
            self.assertEqual(channel.receive()[0], FINISHED)
            near.close()
            caller.close()

    def test_who_reads_the_output_does_not_wait_for_the_process(self):
        """Its channel takes nothing more, so that it stays where it tells the daemon of the end."""
        self.write("s.py", "print('done')\n")
        zygote = self.zygote("s.py")
        for paid in (True, False):
            near, far = socket.socketpair()
            zygote.channel.send(FORK, struct.pack("<QB", 1, paid), [far.fileno()])
            pidfd = zygote.channel.expect(FORKED)[2][0]
            channel = Peer(near)
            if paid:
                channel.expect(READY)
            with contextlib.suppress(BlockingIOError):
                while True:
                    far.send(bytes(1 << 12), socket.MSG_DONTWAIT)
            far.close()
            out, write = os.pipe()
            caller, reply = socket.socketpair()
            with open("/dev/null", "r+b") as null:
                cwd = os.open(self.folder, os.O_RDONLY)
                payload = struct.pack("<QI", 1, 0) + world() + strings(["s.py"])
                payload += strings([]) + bytes(9)
                given = [null.fileno(), write, null.fileno(), cwd, reply.fileno()]
                channel.send(GIVE, payload, given)
            for fd in (write, cwd):
                os.close(fd)
            reply.close()
            self.assertEqual(Peer(caller).receive()[0], ENDED)
            poll = select.poll()
            poll.register(out, select.POLLHUP)
            text = b""
            while not text.endswith(b"\n") or not poll.poll(0):
                self.assertTrue(poll.poll(WAIT_S * 1000), "the output has no end")
                text += os.read(out, 100)
            self.assertEqual(text, b"done\n")
            self.assertFalse(self.poll(pidfd, 0), "it has ended, which was to be kept from it")
            near.close()
            self.assertTrue(self.gone(pidfd))
            zygote.gone()
            os.close(out)
            caller.close()

    def test_many_copies_leave_nothing_in_the_zygote(self):
        self.write("s.py", "pass\n")
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        run.warm(zygote, True)
        before = sorted(os.listdir("/proc/%d/fd" % zygote.pid))
        for paid in (1, 0, 2) * 7:
            self.assertEqual(run.warm(zygote, paid).fate, (0, 0))
        self.assertEqual(sorted(os.listdir("/proc/%d/fd" % zygote.pid)), before)

    def test_a_program_that_takes_our_descriptors_numbers(self):
        text = (
            "import os\nos.closerange(3, 1024)\n"
            "f = os.open('f', os.O_RDWR | os.O_CREAT)\n"
            "for n in range(240, 256):\n    os.dup2(f, n)\n"
            "print(os.fork() and os.wait()[1], flush=True)\n"
        )
        self.write("s.py", text)
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        outcome = run.warm(zygote, True)
        self.assertEqual((outcome.code, outcome.fate, outcome.frames), (0, None, []))
        self.assertEqual(os.stat(os.path.join(self.folder, "f")).st_size, 0)

    def test_a_child_left_behind_does_not_hold_our_descriptors(self):
        text = (
            "import os, signal\npid = os.fork()\nif pid == 0:\n    signal.pause()\nprint(pid)\n"
        )
        self.write("s.py", text)
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        # The end of the copy's channel is seen although the child lives on.
        outcome = run.warm(zygote, True)
        os.kill(int(outcome.out), signal.SIGKILL)
        self.assertEqual(outcome.fate, (0, 0))

    def test_garbage_on_the_channel_ends_the_zygote_with_a_reason(self):
        self.write("s.py", "pass\n")
        zygote = self.zygote("s.py")
        zygote.channel.sock.sendall(b"garbage everywhere")
        kind, payload, _ = zygote.channel.receive()
        self.assertEqual(kind, FAILED)
        self.assertIn(b"WireError", payload)
        self.assertEqual(zygote.process.wait(WAIT_S), 1)

    def test_usage_is_told(self):
        self.write("s.py", "x = bytearray(50 << 20)\nsum(range(300000))\n")
        zygote, run = self.zygote("s.py"), self.run_of("s.py")
        channel, pidfd, _ = zygote.copy(False)
        run.give(channel, pidfd)
        _, payload, _ = zygote.channel.receive()
        user, system, peak = struct.unpack_from("<QQQ", payload, 10)
        self.assertGreater(user + system, 1000)
        self.assertGreater(peak, 50 << 10)


class PagesArePaidForAhead(InAFolder):
    def test_a_paid_copy_takes_few_faults_once_its_zygote_has_learned(self):
        path = self.write("s.py", "import json\nprint('hello')\n")
        zygote = self.zygote("s.py", "json")
        paid = [bench_give.one(zygote, path, True) for _ in range(6)]
        unpaid = [bench_give.one(zygote, path, False) for _ in range(3)]
        # None: the process had been waited for before it could be asked.
        after = [faults for _, faults, *_ in paid[3:] + [paid[-1]] if faults is not None]
        before = [faults for _, faults, *_ in unpaid if faults is not None]
        if not after or not before:
            self.skipTest("the machine was too busy to look")
        self.assertLess(min(after), 20)
        self.assertGreater(min(before), 100)
        private = [kib for _, _, kib, *_ in paid]
        self.assertLess(private[-1], 8 << 10)

    def test_what_a_zygote_has_learned_makes_no_copy_collect(self):
        # What it keeps of pages were objects enough for a collection amid each call, and a full
        # one at its end.
        path = self.write("s.py", "import asyncio, gc, http.server, json, re, "
                          "subprocess, unittest\nprint(gc.get_count(), json.dumps(1))\n")
        zygote = self.zygote("s.py", "asyncio", "gc", "http", "http.server", "json", "re",
                             "subprocess", "unittest")
        for _ in range(4):
            bench_give.one(zygote, path, True)
        plain = self.run_of("s.py").warm(zygote, 2)
        self.assertIn(b", 0, 0)", plain.out)


class ATerminalIsATerminal(InAFolder):
    SHOW = (
        "import os, sys\n"
        "for s in (sys.stdin, sys.stdout, sys.stderr):\n"
        "    print(s.isatty(), s.line_buffering, s.seekable(), s.buffer, os.ttyname(s.fileno()))\n"
        "sys.stdout.write('line\\n')\n"
        "os.write(1, b'after the line\\n')\n"
        "print(input('> '))\n"
        "os._exit(3)\n"
    )

    def through_a_terminal(self, perform):
        near, far = os.openpty()
        os.write(near, b"typed\n")
        name = os.ttyname(far)
        code = perform(far)
        os.close(far)
        seen = b""
        while True:
            try:
                data = os.read(near, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
        os.close(near)
        return code, seen.replace(name.encode(), b"TTY")

    def test_cold_and_warm(self):
        self.write("s.py", self.SHOW)
        zygote = self.zygote("s.py")

        def cold(tty):
            command = [sys.executable, "s.py"]
            return subprocess.call(command, stdin=tty, stdout=tty, stderr=tty, cwd=self.folder)

        def warm(tty):
            run = self.run_of("s.py")
            run.files = lambda: [os.fdopen(os.dup(tty), "r+b", 0) for _ in range(3)]
            outcome = run.warm(zygote, True)
            return outcome.code

        self.assertEqual(self.through_a_terminal(cold), self.through_a_terminal(warm))


class NumericLibraries(InAFolder):
    PROGRAM = (
        "import os, numpy\n"
        "print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))\n"
        "os.system('env | grep OPENBLAS')\n"
        "print(numpy.linalg.norm(numpy.ones((300, 300)) @ numpy.ones((300, 300))))\n"
    )

    def setUp(self):
        super().setUp()
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("numpy is not installed")

    def test_threads_are_avoided_while_warming_and_there_in_the_call(self):
        self.write("s.py", self.PROGRAM)
        zygote = self.zygote("s.py", "numpy")
        self.assertEqual(zygote.threads, 1)
        self.assertEqual([n for n in zygote.notes if n[:1] == b"H"], [])
        self.same(self.run_of("s.py"), zygote)

    def test_copies_draw_different_numbers(self):
        self.write("s.py", "import numpy\nprint(numpy.random.random())\n")
        zygote, run = self.zygote("s.py", "numpy", "numpy.random"), self.run_of("s.py")
        drawn = {run.warm(zygote, paid).out for paid in (True, True, False, False)}
        self.assertEqual(len(drawn), 4)


class AStandbyPerformsInItsOwnProcess(InAFolder):
    def test_it_says_that_it_is_one(self):
        self.write("s.py", "import os\nprint(os.getpid())\n")
        with Worker(1, 0, os.path.join(self.folder, "s.py"), cwd=self.folder) as worker:
            self.assertEqual((worker.role, worker.pid), (1, worker.process.pid))
            pidfd = os.pidfd_open(worker.pid)
            outcome, fate = self.run_of("s.py").give(worker.channel, pidfd)
            os.close(pidfd)
        self.assertEqual((int(outcome.out), fate), (worker.pid, (0, 0)))


class WithoutCtypes(InAFolder):
    def test_all_but_the_refinements_works(self):
        self.write("broken/_ctypes.py", "raise ImportError('none here')\n")
        self.write("s.py", "import json, os, sys\n"
                   "print(sys.argv, list(os.environ))\nsys.exit(3)\n")
        env = dict(os.environ, PYTHONPATH=os.path.join(self.folder, "broken"))
        run = self.run_of("s.py", "x", env=env)
        self.assertEqual(self.same(run, self.zygote("s.py", "json", env=env)).code, 3)


class TheTitleIsTheProgramsOwn(InAFolder):
    def test_the_kernel_shows_the_cold_command_line(self):
        self.write("s.py", "print(open('/proc/self/cmdline').read().rstrip('\\0').split('\\0'))\n"
                   "print(open('/proc/self/comm').read())\n")
        zygote = self.zygote("s.py")
        self.same(self.run_of("s.py", "one", ""), zygote)


if __name__ == "__main__":
    unittest.main()
