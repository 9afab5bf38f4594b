"""The frames of messages, as handlers' workers and the library for callers have them."""

import os
import socket
import struct
import sys
import threading
import unittest

from harness import RUNTIMES, WORKER
from test_wire import golden, worker

sys.path.insert(0, os.path.join(RUNTIMES, "../clients/python"))
import hob  # noqa: E402

worker._socket = worker.borrow("_socket")
PATH = os.path.join(os.path.dirname(WORKER), "message.py")
NAMES = {"worker": worker, "__file__": PATH}
with open(PATH) as source:
    exec(compile(source.read(), PATH, "exec"), NAMES)
perform = NAMES["perform"]
PAYLOAD = b'{"name":"x"}'


class Messages(unittest.TestCase):
    def test_a_message_is_decoded_and_its_answer_is_the_golden_one(self):
        seen = []

        def handle(payload, message):
            seen.append((payload, message.kind, message.key, message.content_type, message.id))
            self.assertIsNotNone(message.deadline)
            return "hello x"

        frame = golden("message")
        fields = NAMES["FIXED"].unpack_from(frame)
        self.assertEqual(fields[0], NAMES["A_MESSAGE"])
        answer, raised = perform(handle, fields, frame, 1)
        self.assertEqual(seen, [(PAYLOAD, "ask", "tab-1", "application/json", "m-1")])
        self.assertEqual(raised, 0)
        # Text says so: the golden frame has another content type.
        kind = b"text/plain; charset=utf-8"
        want = struct.pack("<QI", 11, len(kind)) + kind + b"hello x"
        self.assertEqual(answer, worker.encode_frame(23, want))
        answer, _ = perform(lambda payload, message: b"raw", fields, frame, 1)
        want = struct.pack("<QI", 11, 0) + b"raw"
        self.assertEqual(answer, worker.encode_frame(23, want))

    def test_what_is_raised_is_the_golden_failure(self):
        failure = NAMES["failure"](11, NAMES["RAISED"], "KeyError: 'name'")
        self.assertEqual(failure, golden("failure"))

    def test_a_report_is_the_golden_one(self):
        body = NAMES["REPORT"].pack(13, 100, 1, 0, 1_000_400_000, 1_000_410_000, 1)
        self.assertEqual(worker.encode_frame(NAMES["HANDLED"], body), golden("handled"))

    def test_the_library_sends_and_reads_the_golden_frames(self):
        lengths = len(b"greeter"), len(b"tab-1"), len(b"application/json"), len(b"m-1")
        words = b"greetertab-1application/jsonm-1"
        size = 33 + len(words) + len(PAYLOAD)
        head = hob._SENT.pack(hob._MAGIC, 8, 0, 0, size, 11, 0, 5_000_000, *lengths)
        self.assertEqual(head + words + PAYLOAD, golden("message"))
        answer = hob._answer(golden("answer"))
        self.assertEqual((answer, answer.content_type), (b"hello x", "text/plain"))
        error = hob._failure(golden("failure"))
        self.assertIsInstance(error, hob.Raised)
        self.assertEqual(str(error), "KeyError: 'name'")
        body = hob._STATED.pack(14, 2, -1, 60_000_000, 4) + b"hits\0value"
        self.assertEqual(hob._frame(13, body), golden("state"))
        self.assertEqual(NAMES["LENT"].unpack(golden("lend")[12:]), (13, 256))

    def test_the_library_finds_what_is_in_replies(self):
        for name, kind, number in (
            ("lent", hob._LENT, 12),
            ("accepted", hob._ACCEPTED, 11),
            ("state-reply", hob._STATE_REPLY, 14),
        ):
            frame = golden(name)
            self.assertEqual((frame[4], frame[hob._AT_ID]), (kind, number), name)
        self.assertEqual(golden("lent")[hob._AT_LANE], 13)
        self.assertEqual(golden("accepted")[hob._AFTER_NAME :], b"m-1")
        reply = golden("state-reply")
        self.assertEqual(struct.unpack_from("<Bq", reply, hob._AT_HELD), (hob._THERE, 42))
        self.assertEqual(reply[hob._AFTER_HELD :], b"value")

    def test_the_library_asks_for_lanes_and_state_as_the_golden_frames_do(self):
        near, far = socket.socketpair()
        self.addCleanup(far.close)
        self.addCleanup(near.close)
        sender = object.__new__(hob._Sender)
        sender.connection, sender.stream = near, hob._Stream(near)
        sender.number, sender.patience, sender.lanes = 11, {"greeter": 0}, {}
        far.sendall(golden("lent"))
        self.assertIsNone(sender.lane("greeter", None), "no descriptor came with it")
        self.assertEqual(far.recv(4096), golden("want-lane"))
        sender.number = 13
        far.sendall(golden("state-reply"))
        self.assertEqual(sender.state(hob._COUNT, "hits"), (True, 42, b"value"))
        asked = far.recv(4096)
        self.assertEqual(asked[12:20], golden("state")[12:20])
        self.assertEqual(asked[20], hob._COUNT)


class ALaneBringsWhateverItBrings(unittest.TestCase):
    def setUp(self):
        self.sender, receiver = socket.socketpair()
        self.addCleanup(self.sender.close)
        self.addCleanup(receiver.close)
        self.wire = NAMES["Wire"](receiver)

    def assert_comes(self, *frames):
        for frame in frames:
            fields, view = self.wire.message()
            self.assertEqual(bytes(view), frame)
            self.assertEqual(fields, NAMES["FIXED"].unpack_from(frame))
        self.assertEqual((self.wire.have, self.wire.start), (0, 0))

    def test_one_message_and_several_at_once(self):
        frame, other = golden("message"), message(b"other" * 9)
        for frames in ([frame], [frame, other], [other, frame, other]):
            self.sender.sendall(b"".join(frames))
            self.assert_comes(*frames)

    def test_a_message_in_two_parts_wherever_it_is_cut(self):
        frame = golden("message")
        for cut in range(1, len(frame)):
            # The first part is there, behind a whole one; the second comes only later.
            self.sender.sendall(frame + frame[:cut])
            first, _ = self.wire.message()
            self.assertEqual((first[2], self.wire.have), (11, cut))
            rest = threading.Thread(target=self.sender.sendall, args=(frame[cut:],))
            rest.start()
            self.assert_comes(frame)
            rest.join()

    def test_a_message_longer_than_the_first_read(self):
        frame = message(b"x" * (NAMES["FIRST_READ"] * 3))
        rest = threading.Thread(target=self.sender.sendall, args=(frame + golden("message"),))
        rest.start()
        self.assert_comes(frame, golden("message"))
        rest.join()

    def test_the_end_in_the_midst_of_a_message(self):
        frame = golden("message")
        self.sender.sendall(frame + frame[:-1])
        self.assertIsNotNone(self.wire.message())
        self.sender.close()
        self.assertIsNone(self.wire.message())

    def test_another_frame_and_one_too_short_for_a_message(self):
        for frame in (golden("handled"), worker.encode_frame(8, b"short"),
                      worker.encode_frame(8, b""), worker.encode_frame(9, b"x" * 100)):
            sender, receiver = socket.socketpair()
            sender.sendall(frame)
            self.assertIsNone(NAMES["Wire"](receiver).message())
            sender.close()
            receiver.close()

    def test_what_is_no_frame(self):
        for garbage in (b"GET / HTTP/1.1\r\n", b"x" * 100):
            sender, receiver = socket.socketpair()
            sender.sendall(garbage)
            with self.assertRaises(worker.WireError):
                NAMES["Wire"](receiver).message()
            sender.close()
            receiver.close()


def message(body):
    head = hob._SENT.pack(hob._MAGIC, 8, 0, 0, 33 + len(body), 12, 0, 0, 0, 0, 0, 0)
    return head + body


if __name__ == "__main__":
    unittest.main()
