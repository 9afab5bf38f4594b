"""WSGI apps in real processes: what they find of a request, and what judges of it find."""

import unittest

from .apps import HELLO, Apps, Raised, request, words

ENVIRON = """
    import json

    def application(environ, start_response):
        start_response("200 OK", [])
        kept = {name: value for name, value in environ.items() if type(value) in (str, bool)}
        kept["version"] = list(environ["wsgi.version"])
        return [json.dumps(kept).encode()]
"""


class Environ(Apps):
    def test_the_whole(self):
        process = self.start("wsgi:wsgi.py:application", ENVIRON)
        found = process.json(
            "/a%20b/%e4%BD%a0%2f%zz%4", prefix="/pre%66ix", query="x=%20&y", method="PUT", body=b"abc",
            headers=[("host", "example.test:8000"), ("content-length", "3"),
                     ("content-type", "text/x"), ("x-one", "1"), ("cookie", "a=1"),
                     ("x-one", "2"), ("cookie", "b=2"), ("x-latin", "\xe4\xff")],
        )
        self.assertEqual(found, {
            "REQUEST_METHOD": "PUT",
            "REQUEST_URI": "/pre%66ix/a%20b/%e4%BD%a0%2f%zz%4?x=%20&y",
            "RAW_URI": "/pre%66ix/a%20b/%e4%BD%a0%2f%zz%4?x=%20&y",
            "SCRIPT_NAME": "/prefix",
            "PATH_INFO": "/a b/\xe4\xbd\xa0/%zz%4",
            "QUERY_STRING": "x=%20&y",
            "CONTENT_TYPE": "text/x",
            "CONTENT_LENGTH": "3",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "SERVER_NAME": "example.test",
            "SERVER_PORT": "8000",
            "SERVER_SOFTWARE": "hob",
            "REMOTE_ADDR": "192.0.2.7",
            "REMOTE_PORT": "4711",
            "HTTP_HOST": "example.test:8000",
            "HTTP_X_ONE": "1,2",
            "HTTP_COOKIE": "a=1; b=2",
            "HTTP_X_LATIN": "\xe4\xff",
            "version": [1, 0],
            "wsgi.url_scheme": "http",
            "wsgi.input_terminated": True,
            "wsgi.multithread": False,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        })

    def test_nothing_of_a_request_is_in_the_next(self):
        process = self.start("wsgi:wsgi.py:application", ENVIRON)
        first = process.json("/", headers=[("x-secret", "1")])
        self.assertEqual(first.pop("HTTP_X_SECRET"), "1")
        self.assertEqual(process.json("/"), first)

    def test_the_input_ends_where_the_body_does(self):
        process = self.start("wsgi:wsgi.py:application", """
            def application(environ, start_response):
                start_response("200 OK", [])
                body = environ["wsgi.input"]
                parts = body.read(2), body.readline(), body.readlines(), body.read(9), body.read()
                return [repr(parts).encode()]
        """)
        _, _, body = process.ask(method="POST", body=b"abcd\nef\ng", headers=[("content-length", "9")])
        self.assertEqual(body, b"(b'ab', b'cd\\n', [b'ef\\n', b'g'], b'', b'')")

    def test_its_errors_go_to_the_log(self):
        process = self.start("wsgi:wsgi.py:application", """
            def application(environ, start_response):
                environ["wsgi.errors"].write("oh\\n")
                start_response("204 No Content", [])
                return []
        """)
        self.assertEqual(process.ask(), (204, [], b""))
        self.assertEqual(process.logged(), "oh\n")

    def test_what_is_no_request_raises(self):
        process = self.start("wsgi:wsgi.py:application", HELLO)
        whole = request()
        for payload in (words(["GET"] * 10), words(["GET"] * 12), whole[:-1]):
            with self.assertRaisesRegex(Raised, "ValueError: what came is no request"):
                process.send(payload)
        self.assertEqual(process.send(whole)[0], 200)


class Validated(Apps):
    """The interpreter's own judge finds nothing."""

    def test_requests_of_all_kinds(self):
        process = self.start("wsgi:wsgi.py:application", """
            import warnings
            from wsgiref.validate import validator

            warnings.simplefilter("error")

            @validator
            def application(environ, start_response):
                body = environ["wsgi.input"].read(100)
                environ["wsgi.errors"].flush()
                write = start_response("200 OK", [("Content-Type", "text/plain"), ("X-A", "b")])
                if environ["QUERY_STRING"] == "write":
                    write(b"written ")
                if environ["QUERY_STRING"] == "file":
                    import io
                    return environ["wsgi.file_wrapper"](io.BytesIO(b"of a file"))
                if environ["QUERY_STRING"] == "generator":
                    return (part for part in [b"a", b"", b"b"])
                return [body or b"nothing"]
        """)
        for more, body in (
            ({}, b"nothing"),
            ({"method": "HEAD"}, b"nothing"),
            ({"method": "OPTIONS"}, b"nothing"),
            ({"method": "POST", "body": b"abc", "headers": [("content-length", "3")]}, b"abc"),
            ({"path": "", "prefix": "/app"}, b"nothing"),
            ({"path": "/%e4/x", "prefix": "/app"}, b"nothing"),
            ({"headers": [("cookie", "a=1"), ("cookie", "b=2"), ("x", "1"), ("x", "2")]}, b"nothing"),
            ({"query": "write"}, b"written nothing"),
            ({"query": "generator"}, b"ab"),
            ({"query": "file"}, b"of a file"),
        ):
            status, headers, found = process.ask(**more)
            self.assertEqual((status, found), (200, body), more)
            self.assertEqual(headers, [("Content-Type", "text/plain"), ("X-A", "b")])
        self.leave(process)
        self.assertEqual(process.logged(), "")


class Framework(Apps):
    """An app as frameworks make them: routes, a request, a session in a cookie, error pages."""

    def test_it(self):
        process = self.start("wsgi:app.py:app", """
            import http.cookies, io, urllib.parse
            from wsgiref.util import application_uri, request_uri

            class App:
                def __init__(self):
                    self.routes = {}
                def route(self, path):
                    return lambda page: self.routes.setdefault(path, page)
                def __call__(self, environ, start_response):
                    try:
                        page = self.routes.get(environ["PATH_INFO"])
                        status, headers, text = page(environ) if page else ("404 Not Found", [], "no")
                    except Exception as error:
                        status, headers, text = "500 Internal Server Error", [], repr(error)
                    start_response(status, [("Content-Type", "text/html; charset=utf-8"), *headers])
                    return [text.encode()]

            app = App()

            @app.route("/")
            def index(environ):
                return "200 OK", [], application_uri(environ) + " " + request_uri(environ)

            @app.route("/form")
            def form(environ):
                body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
                return "200 OK", [], repr(urllib.parse.parse_qs(body))

            @app.route("/login")
            def login(environ):
                cookies = http.cookies.SimpleCookie(environ.get("HTTP_COOKIE", ""))
                said = {name: cookie.value for name, cookie in cookies.items()}
                return "302 Found", [("Location", application_uri(environ) + "/"),
                                     ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")], repr(said)

            @app.route("/bad")
            def bad(environ):
                return 1 / 0
        """)
        uri = "http://example.test:8000/app"
        host = [("host", "example.test:8000")]
        status, _, body = process.ask("/", prefix="/app", query="a=b", headers=host)
        self.assertEqual((status, body.decode()), (200, uri + " " + uri + "/?a=b"))
        body = b"name=x+y&name=%C3%A4"
        status, _, said = process.ask("/form", method="POST", body=body, headers=[
            ("content-length", str(len(body)))])
        self.assertEqual(said.decode(), "{'name': ['x y', '\xe4']}")
        status, headers, said = process.ask("/login", prefix="/app", headers=[
            *host, ("cookie", "c=3"), ("cookie", "d=4")])
        self.assertEqual((status, said), (302, b"{'c': '3', 'd': '4'}"))
        self.assertEqual(headers[1:], [("Location", uri + "/"), ("Set-Cookie", "a=1"),
                                       ("Set-Cookie", "b=2")])
        self.assertEqual(process.ask("/bad")[0], 500)
        self.assertEqual(process.ask("/nothing")[0], 404)


if __name__ == "__main__":
    unittest.main()
