"""ASGI apps in real processes: what they find, what they may say, and what becomes of it."""

import os
import tempfile
import textwrap
import unittest

from .apps import STANDBY, Apps, Left, Raised

# An app of several pages, each a coroutine that is named as its path.
PAGES = """
    import asyncio, json, os, sys

    noted = []

    async def app(scope, receive, send):
        if scope["type"] != "http":
            raise ValueError("only http")
        await globals()[scope["path"].rpartition("/")[2]](scope, receive, send)

    async def start(send, status=200, headers=()):
        await send({"type": "http.response.start", "status": status, "headers": headers})

    async def body(send, data=b"", more=False):
        await send({"type": "http.response.body", "body": data, "more_body": more})

    async def notes(scope, receive, send):
        await start(send)
        await body(send, repr(noted).encode())
"""
LIFESPAN = """
    import asyncio, os

    calls = []

    async def app(scope, receive, send):
        calls.append(scope["type"])
        if scope["type"] == "lifespan":
            scope["state"]["pool"] = []
            assert (await receive())["type"] == "lifespan.startup"
            await asyncio.sleep(0)
            if os.path.exists(MARK + ".down"):
                await send({"type": "lifespan.startup.failed", "message": "no database"})
                try:
                    await receive()
                finally:
                    calls.append("cancelled")
            await send({"type": "lifespan.startup.complete"})
            assert (await receive())["type"] == "lifespan.shutdown"
            with open(MARK, "w") as file:
                file.write(repr(calls))
            print("said at the end")
            await send({"type": "lifespan.shutdown.complete"})
            return
        scope["state"]["pool"].append(1)
        scope["state"]["own"] = scope["state"].get("own", 0) + 1
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": repr([calls, scope["state"]]).encode()})
"""


class Asgi(Apps):
    def page(self, text="", role=0):
        text = textwrap.dedent(PAGES) + textwrap.dedent(text)
        return self.start("asgi:asgi.py:app", text, role)

    def test_the_whole_scope(self):
        process = self.page("""
            async def page(scope, receive, send):
                await start(send)
                await body(send, repr(scope).encode())
        """)
        headers = [("host", "example.test"), ("cookie", "a"), ("x", "1"), ("cookie", "b")]
        _, _, found = process.ask("/%e4%BD%a0/page", prefix="/pre%66ix", query="a=%20", headers=headers)
        self.assertEqual(eval(found), {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/prefix/\u4f60/page",
            "raw_path": b"/pre%66ix/%e4%BD%a0/page",
            "query_string": b"a=%20",
            "root_path": "/prefix",
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "server": ("example.test", 8000),
            "client": ("192.0.2.7", 4711),
            "extensions": {"http.response.pathsend": {}, "http.response.early_hint": {}},
        })

    def test_the_body_comes_and_what_is_sent_is_joined(self):
        for role in (0, STANDBY):
            process = self.page("""
                async def page(scope, receive, send):
                    event = await receive()
                    assert event["type"] == "http.request" and event["more_body"] is False
                    await start(send, 201, [(b"a", b"1"), [b"a", b"2"]])
                    await body(send, event["body"], True)
                    await asyncio.sleep(0.001)
                    await body(send, b" and ", True)
                    await send({"type": "http.response.body", "body": bytearray(b"more")})
            """, role)
            for _ in range(2):
                found = process.ask("/page", method="POST", body=b"abc")
                self.assertEqual(found, (201, [("a", "1"), ("a", "2")], b"abc and more"))

    def test_a_client_has_left_only_when_the_response_is_complete(self):
        process = self.page("""
            async def page(scope, receive, send):
                await receive()
                left = asyncio.ensure_future(receive())
                await start(send)
                for _ in range(5):
                    await body(send, b"a", True)
                    await asyncio.sleep(0)
                    assert not left.done()
                await body(send)
                noted.append((await left)["type"])
                noted.append((await receive())["type"])
        """)
        self.assertEqual(process.ask("/page")[2], b"aaaaa")
        self.assertEqual(process.ask("/notes")[2], b"['http.disconnect', 'http.disconnect']")

    def test_raising_before_and_after_the_end(self):
        process = self.page("""
            async def before(scope, receive, send):
                raise KeyError("before")

            async def during(scope, receive, send):
                await start(send)
                await body(send, b"some", True)
                raise KeyError("during")

            async def exits(scope, receive, send):
                sys.exit(3)

            async def after(scope, receive, send):
                await start(send)
                await body(send, b"all")
                await asyncio.sleep(0.001)
                noted.append("background")
                raise KeyError("after")
        """)
        for path, text in (("/before", "^KeyError: 'before'$"), ("/during", "^KeyError: 'during'$"),
                           ("/exits", "^SystemExit: 3$")):
            with self.assertRaisesRegex(Raised, text):
                process.ask(path)
        lines = process.logged().splitlines()
        self.assertRegex(lines[1], '^  File "%s/asgi.py", line ' % self.place)
        self.assertNotIn("KeyError: 'after'", process.logged())
        self.assertEqual(process.ask("/after"), (200, [], b"all"))
        self.assertEqual(process.ask("/notes")[2], b"['background']")
        self.assertIn("KeyError: 'after'", process.logged())

    def test_what_cannot_be_said(self):
        process = self.page("""
            async def nothing(scope, receive, send):
                pass

            async def incomplete(scope, receive, send):
                await start(send)
                await body(send, b"a", True)

            async def bodyfirst(scope, receive, send):
                await body(send)

            async def twice(scope, receive, send):
                await start(send)
                await start(send)

            async def unknown(scope, receive, send):
                await send({"type": "http.response.push"})

            async def text(scope, receive, send):
                await start(send)
                await body(send, "text")

            async def textheader(scope, receive, send):
                await start(send, 200, [("a", b"b")])

            async def newline(scope, receive, send):
                await start(send, 200, [(b"a", b"b\\nc: d")])

            async def status(scope, receive, send):
                await start(send, 99)

        """)
        for path, text in (
            ("/nothing", "without a complete response"),
            ("/incomplete", "without a complete response"),
            ("/bodyfirst", "'http.response.body' cannot come here"),
            ("/twice", "'http.response.start' cannot come here"),
            ("/unknown", "'http.response.push' cannot come here"),
            ("/text", "is str where ASGI has bytes"),
            ("/textheader", "is str where ASGI has bytes"),
            ("/newline", "control character"),
            ("/status", "99 is no status"),
        ):
            with self.assertRaisesRegex(Raised, text, msg=path):
                process.ask(path)
        self.assertEqual(process.ask("/notes")[0], 200)

    def test_a_response_of_any_length(self):
        process = self.page("""
            async def large(scope, receive, send):
                await start(send)
                await body(send, b"x" * 3000000)

            async def endless(scope, receive, send):
                await start(send)
                while True:
                    await body(send, b"x" * 65536, True)

            async def stubborn(scope, receive, send):
                await receive()
                await start(send)
                try:
                    while True:
                        await body(send, b"x" * 65536, True)
                except OSError:
                    noted.append((await receive())["type"])
        """)
        self.assertEqual(process.ask("/large"), (200, [], b"x" * 3000000))
        for path in ("/endless", "/stubborn"):
            with self.assertRaises(Left, msg=path):
                process.ask(path)
        self.assertIn(b"http.disconnect", process.ask("/notes")[2])

    def test_a_body_that_comes_in_a_file(self):
        process = self.page("""
            async def page(scope, receive, send):
                parts, more = [], True
                while more:
                    event = await receive()
                    more = event["more_body"]
                    parts.append(len(event["body"]))
                await start(send)
                await body(send, repr(parts).encode())
        """)
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * 131073)
            file.seek(0)
            answer = process.ask("/page", method="POST", file=file.fileno())
        self.assertEqual(answer[2], b"[65536, 65536, 1]")

    def test_a_file_by_its_path(self):
        process = self.page("""
            async def page(scope, receive, send):
                await start(send)
                with open("data", "wb") as file:
                    file.write(b"of the file")
                await send({"type": "http.response.pathsend", "path": os.path.abspath("data")})
        """)
        self.assertEqual(process.ask("/page"), (200, [], b"of the file"))

    def test_more_than_the_whole_is_refused_and_the_response_stays(self):
        process = self.page("""
            async def page(scope, receive, send):
                await start(send)
                await body(send, b"all")
                await body(send, b"more")
        """)
        self.assertEqual(process.ask("/page"), (200, [], b"all"))
        self.assertIn("came after the end of the response", process.logged())


class Lifespan(Apps):
    def begin(self):
        self.mark = os.path.join(self.place, "mark")
        self.write("asgi.py", "MARK = %r\n" % self.mark + textwrap.dedent(LIFESPAN))
        return self.zygote("asgi:asgi.py:app")

    def test_once_for_each_worker(self):
        zygote = self.begin()
        one, other = self.copy(*zygote), self.copy(*zygote)
        calls = ["lifespan", "http"]
        for process in (one, other):
            self.assertEqual(eval(process.ask()[2]), [calls, {"pool": [1], "own": 1}])
        # What the state holds is one for all requests; what a request puts into it is not.
        again = eval(one.ask()[2])
        self.assertEqual(again, [[*calls, "http"], {"pool": [1, 1], "own": 1}])
        self.assertFalse(os.path.exists(self.mark))
        self.assertEqual(self.leave(one), (0, 0))
        with open(self.mark) as file:
            self.assertEqual(file.read(), repr([*calls, "http"]))
        self.assertEqual(one.logged(), "said at the end\n")

    def test_a_worker_that_answered_nothing_begins_and_ends_nothing(self):
        process = self.copy(*self.begin())
        self.assertEqual(self.leave(process), (0, 0))
        self.assertFalse(os.path.exists(self.mark))

    def test_a_startup_that_fails_is_begun_again(self):
        process = self.copy(*self.begin())
        self.write("mark.down", "")
        for _ in range(2):
            with self.assertRaisesRegex(Raised, "the app's startup has failed: no database"):
                process.ask()
        os.unlink(self.mark + ".down")
        calls = ["lifespan", "cancelled", "lifespan", "cancelled", "lifespan", "http"]
        self.assertEqual(eval(process.ask()[2]), [calls, {"pool": [1], "own": 1}])
        self.assertEqual(self.leave(process), (0, 0))
        self.assertNotIn("never retrieved", process.logged())

    def test_an_app_that_knows_nothing_of_it(self):
        for body in ("raise KeyError", "return", "await receive(); await respond(scope, send)"):
            process = self.start("asgi:plain.py:app", """
                async def respond(scope, send):
                    await send({"type": "http.response.start", "status": 200})
                    await send({"type": "http.response.body", "body": repr("state" in scope).encode()})

                async def app(scope, receive, send):
                    if scope["type"] == "lifespan":
                        %s
                    await respond(scope, send)
            """ % body)
            for _ in range(2):
                self.assertEqual(process.ask(), (200, [], b"False"))
            self.assertEqual(self.leave(process), (0, 0))
            self.assertEqual(process.logged(), "")


if __name__ == "__main__":
    unittest.main()
