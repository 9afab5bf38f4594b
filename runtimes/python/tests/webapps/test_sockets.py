"""WebSockets of ASGI apps in real processes: what comes on their stream, and what goes out."""

import contextlib
import socket
import struct
import textwrap

from harness import Peer

from .apps import CANCELLED, RAISED, STANDBY, Apps, request, response

MESSAGE, ANSWER, FAILURE, RESPOND = 8, 23, 24, 65
TEXT, BINARY, CLOSE, SOCKET = 68, 69, 70, 2

PAGES = """
    import asyncio, json, os

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            raise ValueError("no lifespan")
        await globals()[scope["path"].rpartition("/")[2]](scope, receive, send)

    async def accept(receive, send, **more):
        assert await receive() == {"type": "websocket.connect"}
        await send({"type": "websocket.accept", **more})

    async def text(send, data):
        await send({"type": "websocket.send", "text": data})

    async def echo(scope, receive, send):
        await accept(receive, send)
        while True:
            event = await receive()
            if event["type"] == "websocket.disconnect":
                return
            await send({**event, "type": "websocket.send"})
"""


class Open:
    """The front's side of a WebSocket that was accepted."""

    def __init__(self, process, number, head, stream):
        self.process, self.number = process, number
        self.status, self.headers, _ = response(head)
        self.peer = Peer(stream)

    def say(self, kind, data, *cuts):
        edges = [0, *cuts, len(data)]
        for at, end in zip(edges, edges[1:]):
            self.peer.send(kind, bytes((end < len(data),)) + data[at:end])

    def hear(self):
        """A whole message."""
        parts = b""
        while True:
            kind, payload, _ = self.peer.receive()
            if kind == CLOSE:
                return kind, struct.unpack_from("<I", payload)[0], payload[4:]
            parts += payload[1:]
            if not payload[0]:
                return kind, parts

    def leave(self, code=1001, reason=b""):
        self.peer.send(CLOSE, struct.pack("<I", code) + reason)

    def end(self):
        """How its message ends: the reason of a failure, or none."""
        kind, body, _ = self.process.channel.receive()
        assert struct.unpack_from("<Q", body) == (self.number,)
        return body[8] if kind == FAILURE else None


class Sockets(Apps):
    def page(self, text="", role=0):
        text = textwrap.dedent(PAGES) + textwrap.dedent(text)
        return self.start("asgi:asgi.py:app", text, role)

    def send(self, process, path, **more):
        process.number += 1
        payload = request(path, **more)
        payload = payload.replace(struct.pack("<I", 4) + b"http", struct.pack("<I", 2) + b"ws", 1)
        process.channel.send(MESSAGE, struct.pack("<QBQ", process.number, 0, 0) + bytes(16) + payload)

    def open(self, process, path, **more):
        self.send(process, path, **more)
        kind, payload, fds = process.channel.receive()
        self.assertEqual(kind, RESPOND, payload)
        self.assertEqual(payload[8], SOCKET)
        stream = socket.socket(fileno=fds[0])
        self.addCleanup(stream.close)
        return Open(process, process.number, payload[25:], stream)

    def test_the_whole_scope(self):
        process = self.page("""
            async def page(scope, receive, send):
                await accept(receive, send, subprotocol="b", headers=[(b"x", b"1")])
                await text(send, repr(scope))
        """)
        headers = [("host", "a"), ("sec-websocket-protocol", "a, b"), ("sec-websocket-protocol", "c")]
        opened = self.open(process, "/page", prefix="/pre%66ix", query="a=%20", headers=headers)
        self.assertEqual(opened.status, 101)
        self.assertEqual(opened.headers, [("x", "1"), ("sec-websocket-protocol", "b")])
        self.assertEqual(eval(opened.hear()[1]), {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": "/prefix/page",
            "raw_path": b"/pre%66ix/page",
            "query_string": b"a=%20",
            "root_path": "/prefix",
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "subprotocols": ["a", "b", "c"],
            "server": ("example.test", 8000),
            "client": ("192.0.2.7", 4711),
            "extensions": {"websocket.http.response": {}},
        })
        # An app that returns has ended it.
        self.assertEqual(opened.hear(), (CLOSE, 1000, b""))
        self.assertIsNone(opened.end())

    def test_messages_are_whole_in_both_directions(self):
        for role in (0, STANDBY):
            process = self.page(role=role)
            opened = self.open(process, "/echo")
            opened.say(TEXT, "caf\u00e9".encode())
            self.assertEqual(opened.hear(), (TEXT, "caf\u00e9".encode()))
            # Cut within a letter; nothing but cuts; nothing at all.
            opened.say(TEXT, "caf\u00e9".encode(), 4)
            self.assertEqual(opened.hear(), (TEXT, "caf\u00e9".encode()))
            opened.say(BINARY, b"\0\xff\1", 1, 1, 2)
            self.assertEqual(opened.hear(), (BINARY, b"\0\xff\1"))
            opened.say(BINARY, b"")
            self.assertEqual(opened.hear(), (BINARY, b""))
            opened.leave()
            self.assertIsNone(opened.end())
            # The worker takes others.
            again = self.open(process, "/echo")
            again.leave()
            self.assertIsNone(again.end())

    def test_a_long_message_goes_in_several_frames(self):
        process = self.page("""
            async def page(scope, receive, send):
                await accept(receive, send)
                await send({"type": "websocket.send", "bytes": bytes(range(256)) * (12 << 10)})
        """)
        opened = self.open(process, "/page")
        self.assertEqual(opened.hear(), (BINARY, bytes(range(256)) * (12 << 10)))

    def test_an_app_refuses(self):
        process = self.page("""
            async def close(scope, receive, send):
                await send({"type": "websocket.close", "code": 1008})
                assert (await receive())["type"] == "websocket.connect"
                assert (await receive())["type"] == "websocket.disconnect"

            async def answer(scope, receive, send):
                await receive()
                await send({"type": "websocket.http.response.start", "status": 402, "headers": []})
                await send({"type": "websocket.http.response.body", "body": b"pay"})

            async def nothing(scope, receive, send):
                await receive()

            async def half(scope, receive, send):
                await send({"type": "websocket.http.response.start", "status": 402})

            async def wrong(scope, receive, send):
                await send({"type": "websocket.send", "text": "too early"})
        """)
        for path, found in (("/close", (403, [], b"")), ("/answer", (402, [], b"pay"))):
            self.send(process, path)
            kind, body, _ = process.channel.receive()
            self.assertEqual(kind, ANSWER)
            self.assertEqual(response(body[12:]), found)
        for path in ("/nothing", "/half", "/wrong"):
            self.send(process, path)
            kind, body, _ = process.channel.receive()
            self.assertEqual((kind, body[8]), (FAILURE, RAISED), path)

    def test_who_ends_it_says_why(self):
        process = self.page("""
            async def close(scope, receive, send):
                await accept(receive, send)
                await send({"type": "websocket.close", "code": 4000, "reason": "enough"})
                event = await receive()
                assert event == {"type": "websocket.disconnect", "code": 4000, "reason": "enough"}
                try:
                    await text(send, "more")
                except RuntimeError:
                    raise KeyError("as it should be")

            async def told(scope, receive, send):
                await accept(receive, send)
                event = await receive()
                assert event == {"type": "websocket.disconnect", "code": 3001, "reason": "bye"}
                try:
                    await text(send, "more")
                except OSError:
                    await send({"type": "websocket.close"})
                    raise

            async def wrong(scope, receive, send):
                await accept(receive, send)
                for bad in ({"code": 1006}, {"code": 99}, {"reason": "a" * 124}):
                    try:
                        await send({"type": "websocket.close", **bad})
                    except ValueError:
                        continue
                    raise AssertionError(bad)
                raise LookupError("now it fails")
        """)
        opened = self.open(process, "/close")
        self.assertEqual(opened.hear(), (CLOSE, 4000, b"enough"))
        self.assertEqual(opened.end(), RAISED)
        self.assertIn("as it should be", process.logged())
        opened = self.open(process, "/told")
        opened.leave(3001, b"bye")
        self.assertEqual(opened.end(), CANCELLED)
        opened = self.open(process, "/wrong")
        self.assertEqual(opened.hear(), (CLOSE, 1011, b""))
        self.assertEqual(opened.end(), RAISED)

    def test_an_app_that_only_sends_finds_that_its_client_has_left(self):
        process = self.page("""
            async def page(scope, receive, send):
                await accept(receive, send)
                while True:
                    await text(send, "more")
        """)
        opened = self.open(process, "/page")
        opened.hear()
        opened.peer.sock.shutdown(socket.SHUT_RD)
        while opened.peer.sock.recv(65536):
            # As the front does: it may wait for room.
            pass
        self.assertEqual(opened.end(), CANCELLED)

    def test_what_is_given_up_is_neither_lost_nor_half(self):
        process = self.page("""
            async def page(scope, receive, send):
                await accept(receive, send)
                for data in (b"a", b"b"):
                    # Longer than there is room for, and nobody reads.
                    sending = asyncio.ensure_future(
                        send({"type": "websocket.send", "bytes": data * (1 << 20)}))
                    await asyncio.sleep(0.01)
                    sending.cancel()
                    if data == b"a":
                        waiting = asyncio.ensure_future(receive())
                        await asyncio.sleep(0)
                        waiting.cancel()
                        await text(send, "between")
                await text(send, repr(await receive()))
        """)
        opened = self.open(process, "/page")
        self.assertEqual(opened.hear(), (BINARY, b"a" * (1 << 20)))
        self.assertEqual(opened.hear(), (TEXT, b"between"))
        opened.say(TEXT, b"heard")
        self.assertEqual(opened.hear(), (BINARY, b"b" * (1 << 20)))
        heard = opened.hear()[1]
        self.assertEqual(eval(heard), {"type": "websocket.receive", "text": "heard"})

    def test_several_tasks_may_send_at_once(self):
        process = self.page("""
            async def page(scope, receive, send):
                await accept(receive, send)
                async def say(letter):
                    await send({"type": "websocket.send", "text": letter * (1 << 19)})
                await asyncio.gather(*map(say, "abcdef"))
        """)
        opened = self.open(process, "/page")
        found = [opened.hear()[1] for _ in range(6)]
        self.assertEqual(sorted(found), [letter.encode() * (1 << 19) for letter in "abcdef"])
        with contextlib.suppress(OSError):
            opened.leave()
        self.assertIsNone(opened.end())
