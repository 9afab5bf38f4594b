"""WSGI apps in real processes: what they may say, and what becomes of it."""

import tempfile
import textwrap
import unittest

from .apps import HELLO, STANDBY, Apps, Left, Raised

BODY_MAX = 1040384
# An app of several pages, each a function that is named as its path.
PAGES = """
    import sys

    closed = []

    def application(environ, start_response):
        return globals()[environ["PATH_INFO"][1:]](environ, start_response)

    class Body:
        def __init__(self, *chunks):
            self.chunks = chunks
        def __iter__(self):
            for chunk in self.chunks:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk
        def close(self):
            closed.append(len(self.chunks))

    def count(environ, start_response):
        start_response("200 OK", [])
        return [repr(closed).encode()]

    def ask(environ, start_response):
        start_response("201 Created", [("A", "1"), ("A", "2")])
        return [environ["REQUEST_METHOD"].encode()]
"""


class Responses(Apps):
    def page(self, text):
        text = textwrap.dedent(PAGES) + textwrap.dedent(text)
        return self.start("wsgi:wsgi.py:application", text)

    def test_status_headers_and_body(self):
        process = self.page("")
        self.assertEqual(process.ask("/ask"), (201, [("A", "1"), ("A", "2")], b"GET"))
        self.assertEqual(process.ask("/ask", method="HEAD")[2], b"HEAD")

    def test_a_standby_answers_too(self):
        process = self.start("wsgi:wsgi.py:application", HELLO, STANDBY)
        self.assertEqual(process.ask(), (200, [("Content-Type", "text/plain")], b"hello"))

    def test_write_goes_before_the_body(self):
        process = self.page("""
            def page(environ, start_response):
                write = start_response("200 OK", [])
                write(b"a")
                write(b"b")
                return Body(b"c", b"", b"d")
        """)
        self.assertEqual(process.ask("/page"), (200, [], b"abcd"))

    def test_start_response_again(self):
        process = self.page("""
            def boo():
                try:
                    raise KeyError("boo")
                except KeyError:
                    return sys.exc_info()

            def replaced(environ, start_response):
                start_response("200 OK", [("Old", "1")])
                start_response("500 Oh", [("New", "1")], boo())
                return [b"error"]

            def replaced_late(environ, start_response):
                start_response("200 OK", [])
                yield b""
                start_response("500 Oh", [], boo())
                yield b"error"

            def too_late(environ, start_response):
                start_response("200 OK", [])
                yield b"some"
                start_response("500 Oh", [], boo())

            def written(environ, start_response):
                start_response("200 OK", [])(b"")
                start_response("500 Oh", [], boo())
                return []

            def first(environ, start_response):
                start_response("500 Oh", [], boo())
                return []

            def twice(environ, start_response):
                start_response("200 OK", [])
                start_response("200 OK", [])
        """)
        self.assertEqual(process.ask("/replaced"), (500, [("New", "1")], b"error"))
        self.assertEqual(process.ask("/replaced_late"), (500, [], b"error"))
        self.assertEqual(process.ask("/first"), (500, [], b""))
        for path in ("/too_late", "/written"):
            with self.assertRaisesRegex(Raised, "^KeyError: 'boo'$"):
                process.ask(path)
        with self.assertRaisesRegex(Raised, "RuntimeError: start_response was called before"):
            process.ask("/twice")

    def test_close_is_called_whatever_happens(self):
        process = self.page("""
            def ends(environ, start_response):
                start_response("200 OK", [])
                return Body(b"a")

            def raises(environ, start_response):
                start_response("200 OK", [])
                return Body(b"a", KeyError("boo"))

            def never_starts(environ, start_response):
                return Body(b"a", b"b", b"c")

            def too_much(environ, start_response):
                start_response("200 OK", [])
                return Body(*[b"x" * 600000] * 4)

            def generates(environ, start_response):
                start_response("200 OK", [])
                try:
                    yield b"a"
                    yield "text"
                finally:
                    closed.append("generator")
        """)
        self.assertEqual(process.ask("/ends")[2], b"a")
        self.assertEqual(len(process.ask("/too_much")[2]), 2400000)
        for path, text in (("/raises", "KeyError: 'boo'"), ("/never_starts", "start_response"),
                           ("/generates", "not of str")):
            with self.assertRaisesRegex(Raised, text):
                process.ask(path)
        self.assertEqual(process.ask("/count")[2], b"[1, 4, 2, 3, 'generator']")

    def test_close_that_raises_is_told_and_changes_nothing(self):
        process = self.page("""
            class Bad(Body):
                def close(self):
                    raise KeyError("in close")

            def page(environ, start_response):
                start_response("200 OK", [])
                return Bad(b"a")

            def both(environ, start_response):
                start_response("200 OK", [])
                return Bad(ValueError("in body"))
        """)
        self.assertEqual(process.ask("/page"), (200, [], b"a"))
        self.assertIn("KeyError: 'in close'\n", process.logged())
        with self.assertRaisesRegex(Raised, "^ValueError: in body$"):
            process.ask("/both")

    def test_a_traceback_begins_in_the_app(self):
        process = self.page("""
            def page(environ, start_response):
                raise KeyError("boo")
        """)
        with self.assertRaisesRegex(Raised, "^KeyError: 'boo'$"):
            process.ask("/page")
        lines = process.logged().splitlines()
        self.assertEqual(lines[0], "Traceback (most recent call last):")
        self.assertRegex(lines[1], '^  File "%s/wsgi.py", line ' % self.place)
        self.assertNotIn("web.py", process.logged())
        self.assertEqual(process.ask("/ask")[0], 201)

    def test_exit_counts_as_raising(self):
        process = self.page("""
            def page(environ, start_response):
                sys.exit(3)
        """)
        with self.assertRaisesRegex(Raised, "^SystemExit: 3$"):
            process.ask("/page")
        self.assertEqual(process.ask("/ask")[0], 201)

    def test_what_cannot_be_a_head(self):
        process = self.page("""
            def page(environ, start_response):
                status, headers = eval(environ["QUERY_STRING"])
                start_response(status, headers)
                return []
        """)
        for said, text in (
            ("'200 OK', [('A', 'b\\nSet-Cookie: c')]", "control character"),
            ("'200 OK', [('A', 'b\\r')]", "control character"),
            ("'200 OK', [('A', '\\0')]", "control character"),
            ("'200 OK', [('A', '\\x7f')]", "control character"),
            ("'200 OK', [('A\\n', 'b')]", "cannot be named"),
            ("'200 OK', [('A:', 'b')]", "cannot be named"),
            ("'200 OK', [('', 'b')]", "cannot be named"),
            ("'200 OK', [('A', '\\u20ac')]", "UnicodeEncodeError"),
            ("'200 OK', [('A', 1)]", "TypeError: a header is two str"),
            ("'200 OK', [(b'A', b'1')]", "TypeError: a header is two str"),
            ("'200 OK', ()", "TypeError: headers are a list"),
            ("200, []", "TypeError: a status is a str"),
            ("'OK', []", "is no status"),
            ("'20', []", "is no status"),
            ("'2000 OK', []", "is no status"),
            ("'\\u0662\\u0660\\u0660 OK', []", "is no status"),
            ("'099 Low', []", "99 is no status"),
            ("'600 High', []", "600 is no status"),
        ):
            with self.assertRaisesRegex(Raised, text, msg=said):
                process.ask("/page", query=said)
        good = process.ask("/page", query="'299 Odd', [('A', 'b\\tc'), ('X-!', ''), ('L', '\\xff')]")
        self.assertEqual(good, (299, [("A", "b\tc"), ("X-!", ""), ("L", "\xff")], b""))

    def test_a_response_of_any_length(self):
        process = self.page("""
            def page(environ, start_response):
                start_response("200 OK", [("A", "b")])
                return [b"x" * int(environ["QUERY_STRING"])]

            def endless(environ, start_response):
                start_response("200 OK", [])
                while True:
                    yield b"x" * 65536

            def stubborn(environ, start_response):
                write = start_response("200 OK", [])
                try:
                    while True:
                        write(b"x" * 2000000)
                except BrokenPipeError:
                    return [b"nobody reads this"]
        """)
        head = 6 + 10
        self.assertEqual(len(process.ask("/page", query=str(BODY_MAX - head))[2]), BODY_MAX - head)
        for size in (BODY_MAX - head + 1, 3_000_000):
            self.assertEqual(len(process.ask("/page", query=str(size))[2]), size)
        for path in ("/endless", "/stubborn"):
            # A worker whose reader has left says so, and is there for the next.
            with self.assertRaises(Left, msg=path):
                process.ask(path)
        self.assertEqual(process.logged(), "")

    def test_what_is_whole_is_one_frame(self):
        process = self.page("""
            def given(environ, start_response):
                start_response("200 OK", [])
                return [b"a", b"b"]

            def counted(environ, start_response):
                start_response("200 OK", [("Content-Length", "2")])
                return Body(b"", b"ab")

            def pieces(environ, start_response):
                start_response("200 OK", [("Content-Length", "2")])
                return Body(b"a", b"b")
        """)
        for path, begun in (("/given", 0), ("/counted", 0), ("/pieces", 1)):
            self.assertEqual(process.ask(path)[2], b"ab", path)
            self.assertEqual(process.channel.begun, begun, path)

    def test_a_body_that_comes_in_a_file(self):
        process = self.page("""
            def page(environ, start_response):
                body = environ["wsgi.input"]
                start_response("200 OK", [])
                return [body.readline(), str(body.seekable()).encode(), b"".join(body)]
        """)
        with tempfile.TemporaryFile() as file:
            file.write(b"before\none\ntwo\nthree")
            file.seek(7)
            answer = process.ask("/page", method="POST", file=file.fileno())
        self.assertEqual(answer[2], b"one\nTruetwo\nthree")

    def test_a_file_is_a_body_and_is_closed(self):
        process = self.page("""
            import io

            class File(io.BytesIO):
                def close(self):
                    closed.append("file")
                    super().close()

            def page(environ, start_response):
                start_response("200 OK", [])
                return environ["wsgi.file_wrapper"](File(b"x" * 9000), 4096)
        """)
        self.assertEqual(process.ask("/page")[2], b"x" * 9000)
        self.assertEqual(process.ask("/count")[2], b"['file']")


if __name__ == "__main__":
    unittest.main()
