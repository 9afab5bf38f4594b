"""The golden frames: decoded if a worker receives them, encoded byte-identical if it sends them; and
where the descriptors of a call are put, and that they are closed: also by a Python that was built with
a C library without `close_range`, or runs on a kernel before 5.9."""

import importlib.util
import os
import sys
import unittest

from harness import GOLDEN, WORKER
from platforms import cases

from runtimes import Python


def load():
    """The runtime's functions, without starting it: it hands over only when run as a script."""
    argv, hook = sys.argv, sys.excepthook
    sys.argv = [WORKER, "wire"]
    try:
        spec = importlib.util.spec_from_file_location("worker_under_test", WORKER)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.argv, sys.excepthook = argv, hook
    return module


worker = load()


def golden(name):
    with open(os.path.join(GOLDEN, name + ".bin"), "rb") as file:
        return file.read()


def payload(name, kind, fds):
    frame = golden(name)
    head = worker.decode_header(frame[:12])
    assert head == (kind, fds, len(frame) - 12), head
    return frame[12:]


NOTES = [b"Mjson", b"F/usr/lib/python3.11/json/__init__.py", b"EHOME"]
SEVEN = (7).to_bytes(8, "little")


class FramesAreAsTheGoldenOnes(unittest.TestCase):
    def test_preload_is_decoded(self):
        self.assertEqual(
            worker.decode_preload(payload("preload", 32, 0)),
            (
                *(0, 0, b"/srv/app/script.py", [b"/usr/bin/python3", b"-u"]),
                *([b"json", b"os.path"], [b"script.py", b""], [b"TRACEPARENT"]),
            ),
        )

    def test_fork_is_decoded(self):
        self.assertEqual(worker.decode_fork(payload("fork", 34, 1)), (9, True))

    def test_give_is_decoded_at_the_fixed_offsets(self):
        frame = golden("give")
        self.assertEqual(worker.decode_header(frame)[:2], (37, 6))
        self.assertEqual(frame[worker.AT_CALL : worker.AT_GROUP], SEVEN)
        self.assertEqual(frame[worker.AT_GROUP : worker.AT_UMASK], b"\x29\0\0\0")
        self.assertEqual(frame[worker.AT_UMASK : worker.AT_IGNORED], b"\x17\0\0\0")
        ignored = int.from_bytes(frame[worker.AT_IGNORED : worker.AT_BLOCKED], "little")
        self.assertEqual(worker.signals_of(ignored), [13])
        limits = frame[worker.AT_LIMITS : worker.AT_PRIORITY]
        self.assertEqual(limits[7 * 16 : 8 * 16], b"\0\x04" + bytes(7) + b"\x10" + bytes(6))
        argv, at = worker.decode_strings(frame, worker.AT_ARGV)
        self.assertEqual(argv, [b"script.py", b"", "café".encode(), b"\xff\xfe"])
        env, at = worker.decode_strings(frame, at)
        processors, at = worker.decode_blob(frame, at)
        self.assertEqual(processors, b"\x05")
        self.assertEqual(worker.decode_numbers(frame, at + 1), [9])
        self.assertEqual((frame[at], at + 9), (1, len(frame)))
        self.assertTrue(all(b"=" in variable for variable in env))

    def test_joined_is_encoded(self):
        self.assertEqual(worker.encode_joined(SEVEN, 1_000_350_000), golden("joined"))

    def test_ready_is_encoded(self):
        self.assertEqual(worker.encode_ready(0, 43, 1, NOTES), golden("ready"))

    def test_forked_is_encoded(self):
        self.assertEqual(worker.encode_forked(9, 44, b""), golden("forked"))

    def test_gone_is_encoded(self):
        self.assertEqual(worker.encode_gone(9, (1, 11), (1500, 250, 9216)), golden("gone"))

    def test_ended_is_encoded(self):
        self.assertEqual(worker.encode_ended(SEVEN, (0, 3)), golden("ended"))

    def test_finished_is_encoded(self):
        main, finished = (
            int.from_bytes(golden("finished")[at : at + 8], "little") for at in (22, 30)
        )
        frame = worker.encode_finished(SEVEN, (0, 3), main, finished)
        self.assertEqual(frame, golden("finished"))

    def test_notes_is_encoded(self):
        self.assertEqual(worker.encode_notes(SEVEN, NOTES), golden("notes"))

    def test_failed_is_encoded(self):
        self.assertEqual(worker.encode_failed("no module"), golden("failed"))


class BadFramesAreRefused(unittest.TestCase):
    def check(self, head):
        with self.assertRaises(worker.WireError):
            worker.decode_header(head)

    def test_another_magic(self):
        self.check(b"bob\x01" + bytes(8))

    def test_another_version(self):
        self.check(b"hob\x02" + bytes(8))

    def test_a_length_beyond_the_cap(self):
        self.check(b"hob\x01" + bytes(4) + (1 << 20 | 1).to_bytes(4, "little"))

    def test_a_list_with_a_wrong_count(self):
        with self.assertRaises(worker.WireError):
            worker.decode_strings(b"\2\0\0\0\2\0\0\0a\0", 0)

    def test_a_blob_beyond_its_frame(self):
        with self.assertRaises(worker.WireError):
            worker.decode_blob(b"\5\0\0\0abc", 0)


# Where the descriptors beyond 0 to 2 of a `give` are put, whatever stands in their way.
LOW, HIGH, COPY, REPLY = 600, 601, 604, 605


class Beyond(unittest.TestCase):
    def setUp(self):
        self.open, self.ends = set(), os.pipe()
        for name, number in ("COPY_FD", COPY), ("REPLY_FD", REPLY):
            setattr(worker, name, number)
            self.put("/dev/zero", number)
            worker.KEPT[number] = worker.identity_of(number)

    def tearDown(self):
        for number in {*self.open, *worker.KEPT, *self.ends}:
            try:
                os.close(number)
            except OSError:
                pass
        worker.KEPT.clear()

    def put(self, file, number):
        fd = file if isinstance(file, int) else os.open(file, os.O_RDONLY)
        os.dup2(fd, number, False)
        self.open.add(number)
        if fd != file:
            os.close(fd)
        return os.fstat(number).st_ino

    def take(self, numbers, fds):
        self.open.update(numbers)
        return worker.take_beyond(numbers, fds)

    def test_each_where_the_other_belongs(self):
        null, pipe = self.put("/dev/null", LOW), self.put(self.ends[0], HIGH)
        self.assertEqual(self.take([LOW, HIGH], [HIGH, LOW]), (LOW, HIGH))
        self.assertEqual([os.fstat(n).st_ino for n in (LOW, HIGH)], [pipe, null])
        self.assertTrue(os.get_inheritable(LOW) and os.get_inheritable(HIGH))

    def test_one_that_is_there_already_is_inherited(self):
        self.put("/dev/null", LOW)
        self.assertEqual(self.take([LOW], [LOW]), (LOW,))
        self.assertTrue(os.get_inheritable(LOW))

    def test_our_own_move_above_and_stay_ours(self):
        null, pipe = self.put("/dev/null", LOW), self.put(self.ends[0], HIGH)
        self.assertEqual(self.take([COPY, REPLY], [LOW, HIGH]), (COPY, REPLY))
        self.assertEqual([os.fstat(n).st_ino for n in (COPY, REPLY)], [null, pipe])
        own = worker.COPY_FD, worker.REPLY_FD
        self.assertEqual(set(worker.KEPT), set(own))
        self.assertTrue(all(n > REPLY and worker.is_ours(n) for n in own), own)
        self.assertFalse(any(map(os.get_inheritable, own)))
        self.assertFalse(worker.is_ours(COPY) or worker.is_ours(REPLY))
        self.assertTrue(worker.is_free(LOW) and worker.is_free(HIGH))

    def test_a_number_that_something_else_has_is_said(self):
        self.put("/dev/null", LOW)
        self.put("/dev/zero", HIGH)
        self.assertIsNone(self.take([HIGH], [LOW]))

    def test_numbers_without_descriptors_are_no_frame(self):
        with self.assertRaises(worker.WireError):
            self.take([LOW, HIGH], [])


globals().update(cases([Python()]))

if __name__ == "__main__":
    unittest.main()
