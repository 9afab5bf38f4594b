"""Every runtime holds the dialogue of docs/worker.md: one suite for all, by the table `runtimes.py`.

A runtime that passes can be put behind the daemon; what only its language has is tested beside it.
`Dialogue` is what each holds; the other classes are for those whose row says that they fork, take
closed streams, learn or have handlers.
"""

import fcntl
import os
import resource
import select
import shutil
import signal
import struct
import tempfile
import unittest

from driver import EXECUTES, FAILED, FINISHED, GIVE, HANDLER, STANDBY, WAIT_S, ZYGOTE, Run, Worker

from runtimes import rows


class Case:
    """The programs of a row, and its ways to run them."""

    row = None
    # With what its workers are started beside the usual.
    started = {}

    def setUp(self):
        self.place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.place)
        self.row.write(self.place)

    def path(self, name):
        return os.path.join(self.place, self.row.named(name))

    def run_of(self, name, *arguments, **how):
        how.setdefault("cwd", self.place)
        how.update(self.row.how(self.place, name))
        return Run(self.row, [self.row.named(name), *arguments], **how)

    def zygote(self, name, role=ZYGOTE, **options):
        options = {"cwd": self.place, "argv": [self.row.named(name)], **self.started, **options}
        how = self.row.how(self.place, name)
        options.setdefault("options", how.get("options", []))
        target = how.get("target", self.path(name))
        return Worker(self.row, role, how.get("kind", 0), target, **options)

    def standby(self, name):
        return self.zygote(name, STANDBY)

    def same(self, name, *arguments, paid=1, **how):
        """Runs it cold, and in the way in which this runtime's calls are warm."""
        run = self.run_of(name, *arguments, **how)
        cold = run.cold()
        warm = self.warm(name, run, paid)
        self.assertEqual(cold, warm)
        return warm

    def warm(self, name, run, paid=1):
        if not self.row.forks:
            warm = run.standby(cwd=self.place, **self.started)
            self.assertIsNone(warm.unfit, "executed cold in its place, for this")
            return warm
        with self.zygote(name) as zygote:
            warm = run.warm(zygote, paid)
        # It was warm, but where the caller has a number of the interpreter's own.
        executed = EXECUTES in [kind for kind, _, _ in warm.frames]
        self.assertEqual(executed, not self.row.own_numbers.isdisjoint(run.beyond), warm)
        return warm


class Descriptors(Case):
    """What each runtime holds for a caller with more descriptors open than 0 to 2."""

    def test_descriptors_beyond(self):
        # Where hob's own are in a warm process, and where an interpreter has some.
        for numbers in ((63,), (250, 251, 252, 253), (3, 4, 5, 6, 7), self.row.many):
            with self.subTest(numbers=numbers), tempfile.TemporaryFile() as file:
                file.write(b"some lines, and where they are read from")
                file.seek(5)
                beyond = dict.fromkeys(numbers, file.fileno())
                for paid in (0, 1) if self.row.forks else (1,):
                    warm = self.same("descriptors", *map(str, numbers), paid=paid, beyond=beyond)
                    self.assertEqual(warm.code, 0, warm)

    def test_a_lock_is_free_when_the_end_is_told(self):
        name = os.path.join(self.place, "lock")
        with open(name, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            run = self.run_of("hello", beyond={9: file.fileno()})
            run.ended = lambda: self.take(file, name)
            self.assertEqual(run.standby(**self.started).code, 0)
        if self.row.forks:
            with self.zygote("hello") as zygote:
                for paid in (0, 1, 2):
                    self.ends_without_a_lock(zygote, paid, name)

    def ends_without_a_lock(self, zygote, paid, name):
        with open(name, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            run = self.run_of("hello", beyond={9: file.fileno()})
            channel, pidfd, _ = zygote.copy(paid)
            run.ended = lambda: self.take(file, name)
            _, fate = run.give(channel, pidfd)
            self.assertEqual((fate, zygote.gone()[1]), ((0, 0), (0, 0)))
        channel.close()
        os.close(pidfd)

    def take(self, file, name):
        file.close()
        with open(name) as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_it_is_free_however_high_its_number(self):
        name = os.path.join(self.place, "lock")
        # A runtime puts its own above.
        high = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16) - 16
        with open(name, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            run = self.run_of("hello", beyond={high: file.fileno()})
            run.ended = lambda: self.take(file, name)
            self.assertEqual(self.warm("hello", run).code, 0)


class Dialogue(Descriptors):
    """What each runtime holds, for calls."""

    def test_world(self):
        how = {"stdin": b"line\n" * 1000, "env": dict(os.environ, HOB_TEST="x\xe9 y")}
        warm = self.same("echo", "a", "", "b c", "\xe9", **how)
        self.assertIn(b"line\n", warm.out)
        self.assertIn(b"error\n", warm.err)

    def test_another_directory(self):
        other = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, other)
        name = self.row.elsewhere(self.place, "echo")
        run = Run(self.row, [name, "a"], cwd=other, **self.row.how(self.place, "echo"))
        cold = run.cold()
        if self.row.forks:
            with Worker(self.row, ZYGOTE, 0, name, argv=[name], cwd=self.place) as zygote:
                warm = run.warm(zygote, 1)
        else:
            warm = run.standby(cwd=self.place)
        self.assertEqual(cold, warm)

    def test_exit_code_comes_before_the_end(self):
        self.assertEqual(self.same("exit", "7").fate, (0, 7))

    def test_what_nobody_rescued(self):
        self.assertEqual(self.same("raise").code, 1)

    def test_crash_is_told_by_gone_only(self):
        warm = self.same("crash")
        self.assertEqual(warm.code, -signal.SIGABRT)
        self.assertIsNone(warm.fate)
        self.assertEqual(warm.frames, [])

    def test_cancel(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            with self.subTest(number=number):
                warm = self.same("sleep", signal=number)
                # Some interpreters end by themselves then, and tell.
                ends = number != signal.SIGKILL and self.row.ends_by_itself
                self.assertEqual(warm.code, 128 + number if ends else -number)
                self.assertEqual(warm.fate, (0, warm.code) if ends else None)

    def test_times_are_in_order(self):
        warm = self.same("hello")
        kind, payload, _ = warm.frames[0]
        self.assertEqual(kind, FINISHED)
        _, _, _, main, finished = struct.unpack("<QBBQQ", payload)
        self.assertLessEqual(main, finished)

    def test_standby(self):
        run = self.run_of("exit", "5")
        outcome = run.standby()
        self.assertEqual((outcome.code, outcome.fate), (5, (0, 5)))
        self.assertEqual(outcome.frames[0][0], FINISHED)

    def test_ready_tells_of_a_standby(self):
        with self.standby("hello") as standby:
            self.assertEqual((standby.role, standby.pid), (STANDBY, standby.process.pid))
            self.assertGreaterEqual(standby.threads, 1)
            self.assertTrue([note for note in standby.notes if note[:1] == b"F"])

    def test_end_of_its_channel_ends_a_standby(self):
        standby = self.standby("sleep")
        standby.channel.close()
        self.assertEqual(standby.process.wait(WAIT_S), 0)

    def test_what_is_no_frame_ends_a_standby(self):
        for payload in (b"", b"short", b"\0" * 40):
            with self.subTest(payload=payload), self.standby("hello") as standby:
                standby.channel.send(GIVE, payload)
                self.assertEqual(standby.channel.receive()[0], FAILED)
                self.assertEqual(standby.process.wait(WAIT_S), 1)

    def test_a_standby_is_given_its_call_whole(self):
        """Not what it would make of half of it."""
        with self.standby("hello") as standby:
            standby.channel.sock.sendall(b"hob\x01" + bytes((GIVE, 0, 0, 0)) + b"\xff\0\0\0short")
            standby.channel.close()
            self.assertIn(standby.process.wait(WAIT_S), (0, 1))

class Closed:
    """What a runtime holds that takes calls with closed streams."""

    def test_closed_streams(self):
        for closed in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):
            with self.subTest(closed=closed):
                run = self.run_of("streams", closed=closed)
                cold = run.cold()
                seen = self.seen()
                with self.zygote("streams") as zygote:
                    warm = run.warm(zygote, 1)
                self.assertEqual((cold, seen), (warm, self.seen()))

    def seen(self):
        """What a program has left in a file, which has no other stream."""
        path = os.path.join(self.place, "seen")
        with open(path) as file:
            text = file.read()
        os.remove(path)
        return text


class Forks:
    """What a zygote holds, and its copies."""

    def test_ready_tells_of_itself(self):
        with self.zygote("hello") as zygote:
            self.assertEqual((zygote.role, zygote.threads), (ZYGOTE, 1))
            self.assertEqual(zygote.pid, zygote.process.pid)
            self.assertTrue([note for note in zygote.notes if note[:1] == b"F"])
            self.assertTrue([note for note in zygote.notes if note[:1] == b"D"])

    def test_each_way_of_paying(self):
        for paid in (0, 1, 2):
            with self.subTest(paid=paid):
                self.assertEqual(self.same("hello", paid=paid).fate, (0, 0))

    def test_end_of_channel_ends_zygote_and_copies(self):
        zygote = self.zygote("sleep")
        channel, pidfd, _ = zygote.copy(1)
        zygote.channel.close()
        zygote.process.wait(WAIT_S)
        self.assertTrue(_ended(pidfd))
        channel.close()
        os.close(pidfd)

    def test_end_of_its_channel_ends_a_copy(self):
        with self.zygote("hello") as zygote:
            channel, pidfd, _ = zygote.copy(1)
            channel.close()
            self.assertEqual(zygote.gone(), (1, (0, 0)))
            os.close(pidfd)

    def test_many_copies(self):
        run = self.run_of("exit", "3")
        with self.zygote("exit") as zygote:
            copies = [zygote.copy(i % 3) for i in range(6)]
            for channel, pidfd, _ in reversed(copies):
                outcome, fate = run.give(channel, pidfd)
                self.assertEqual((fate, outcome.err), ((0, 3), b""))
                channel.close()
                os.close(pidfd)
            ends = [zygote.gone() for _ in copies]
            self.assertEqual(sorted(ends), [(i + 1, (0, 3)) for i in range(6)])

    def test_what_is_no_frame_ends_a_copy(self):
        with self.zygote("hello") as zygote:
            channel, pidfd, _ = zygote.copy(1)
            channel.send(GIVE, b"short")
            self.assertEqual(channel.receive()[0], FAILED)
            self.assertEqual(zygote.gone()[1], (0, 1))
            channel.close()
            os.close(pidfd)

    def test_edited_script(self):
        with self.zygote("hello") as zygote:
            os.rename(self.path("echo"), self.path("hello"))
            run = self.run_of("hello", "x")
            self.assertEqual(run.cold(), run.warm(zygote, 1))


class Learns:
    """What a runtime holds that learns, and preloads."""

    def test_learning_run_is_a_cold_run_and_leaves_notes(self):
        notes = os.path.join(self.place, "notes")
        run = self.run_of("loads")
        self.assertEqual(run.cold(), run.learn(notes))
        with open(notes, "rb") as file:
            learned = file.read().split(b"\0")
        self.assertEqual(learned.pop(), b"")
        self.assertIn(b"M" + self.row.preloadable.encode(), learned)

    def test_preload(self):
        run = self.run_of("loads")
        cold = run.cold()
        with self.zygote("loads", modules=[self.row.preloadable, "no_such_module"]) as zygote:
            self.assertEqual(cold, run.warm(zygote, 1))
            self.assertFalse([n for n in zygote.notes if n.startswith(b"Hjson")])
            self.assertTrue([n for n in zygote.notes if n[:1] == b"F" and b"json" in n])


class Handlers:
    """What a runtime holds that has handlers."""

    def test_handler(self):
        target = self.path("handler") + ":" + self.row.handler_function
        with Worker(self.row, ZYGOTE, HANDLER, target, cwd=self.place) as zygote:
            channel, pidfd, _ = zygote.copy(1)
            for payload, answer in (
                (b"abc", (b"", b"cba")),
                (b"nothing", (b"", b"")),
                (b"object", (b"application/json", b'{"a":[1]}')),
            ):
                self.assertEqual(channel.ask(5, payload), answer)
            reason, text = channel.ask(6, b"raise")
            self.assertEqual(reason, 1)
            self.assertTrue(text.endswith(b"Error: boo"), text)
            with self.assertRaises(EOFError):
                channel.ask(7, b"die")
            self.assertEqual(zygote.gone(), (1, (0, 3)))
            channel.close()
            os.close(pidfd)

    def test_handler_standby(self):
        target = self.path("handler") + ":" + self.row.handler_function
        with Worker(self.row, STANDBY, HANDLER, target, cwd=self.place) as standby:
            self.assertEqual(standby.channel.ask(1, b"ab"), (b"", b"ba"))

    def test_handler_that_is_not_there(self):
        target = self.path("handler") + ":no_such"
        with self.assertRaisesRegex(AssertionError, "failed: .*no_such"):
            Worker(self.row, ZYGOTE, HANDLER, target, cwd=self.place)

    def test_lane(self):
        target = self.path("handler") + ":" + self.row.handler_function
        with Worker(self.row, ZYGOTE, HANDLER, target, cwd=self.place) as zygote:
            channel, pidfd, _ = zygote.copy(1)
            lane, bell, tally = channel.lend(9, 3)
            self.assertEqual(lane.ask(1, b"ab"), (b"", b"ba"))
            self.assertEqual(tally.counts(), (1, 1, 0))
            self.assertEqual(lane.ask(2, b"raise")[0], 1)
            self.assertEqual(tally.counts(), (2, 2, 1))
            bell.send(b"!")
            self.assertEqual(lane.ask(3, b"ab"), (11, b""))
            self.assertEqual(tally.counts(), (2, 2, 1))
            lane.close()
            self.assertEqual(channel.handled(), (2, 1))
            # The last of its uses.
            lane, _, tally = channel.lend(10, 1)
            self.assertEqual(lane.ask(1, b"xy"), (b"", b"yx"))
            lane.close()
            self.assertEqual(channel.handled(), (1, 0))
            channel.close()
            self.assertEqual(zygote.gone(), (1, (0, 0)))
            os.close(pidfd)


def _ended(pidfd):
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(WAIT_S * 1000))


for _row in rows():
    _parts = [part for part in (Closed, Forks, Learns, Handlers) if part.__name__ not in _row.lacks]
    _name = _row.name.capitalize() + _row.version
    globals()[_name] = type(_name, (*_parts, Dialogue, unittest.TestCase), {"row": _row})

if __name__ == "__main__":
    unittest.main()
