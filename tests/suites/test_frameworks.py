"""Apps of frameworks, as their users write them, under every isolation, at `/` and at a prefix.

`make suites` installs the frameworks. An app of one that is not there is left out, which is told.
"""

import http.client
import http.cookies
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.parse

HOB = os.environ["HOB_BIN"]
PYTHON = os.environ["HOB_SUITE_PYTHON"]
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frameworks")
ANSWER_S = 60
ISOLATIONS = ("spawn", "standby", "fork", "session", "prefork")
# The interface, the file with the app, and what has to be there.
APPS = {
    "flask": ("wsgi", "flask_app.py:app", [PYTHON, "-c", "import flask"]),
    "django": ("wsgi", "django_app.py:application", [PYTHON, "-c", "import django"]),
    "django-async": ("asgi", "django_app.py:asynchronous", [PYTHON, "-c", "import django"]),
    "validate": ("wsgi", "checked_app.py:validated", [PYTHON, "-c", "import flask, asgiref"]),
    "asgiref": ("asgi", "checked_app.py:adapted", [PYTHON, "-c", "import flask, asgiref"]),
    "starlette": ("asgi", "starlette_app.py:app", [PYTHON, "-c", "import starlette"]),
    "sinatra": ("rack", "sinatra.ru", ["ruby", "-e", 'require "sinatra/base"']),
}
FORM = (
    '--limit\r\nContent-Disposition: form-data; name="name"\r\n\r\nbolt\r\n'
    '--limit\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n" + "x" * 100_000 + "\r\n--limit--\r\n"
)

# With the key of RFC 6455's own example.
HANDSHAKE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: news, chat\r\n"
)


def is_there(command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Site:
    """One app at a mount for each isolation, at a prefix; the last one at `/`."""

    def __init__(self, interface, file):
        self.place = tempfile.mkdtemp(prefix="hob-suite-")
        shutil.copytree(HERE, os.path.join(self.place, "site"))
        lines = []
        for isolation in ISOLATIONS:
            prefix = "/" if isolation == ISOLATIONS[-1] else f"/a/{isolation}"
            lines += [f'[mount."{prefix}"]', f'{interface} = "{file}"', f'isolation = "{isolation}"']
            if interface != "rack":
                lines.append(f'interpreter = "{PYTHON}"')
        with open(os.path.join(self.place, "site", "hob.toml"), "w", encoding="utf-8") as text:
            text.write("\n".join(lines) + "\n")
        env = {"PATH": os.environ["PATH"], "HOME": self.place, "HOB_DIR": self.place + "/run"}
        how = {"env": env, "cwd": os.path.join(self.place, "site"), "stdin": subprocess.DEVNULL}
        subprocess.run([HOB, "trust"], check=True, stdout=subprocess.DEVNULL, **how)
        self.errors = open(os.path.join(self.place, "errors"), "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [HOB, "serve", "--listen", "0"], stdout=subprocess.PIPE, stderr=self.errors, **how
        )
        first = self.process.stdout.readline().decode()
        self.port = int(re.fullmatch(r"hob: serving http://127\.0\.0\.1:(\d+)/\n", first)[1])

    def ask(self, path, method="GET", body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        found = (answer.status, answer.headers, answer.read().decode())
        connection.close()
        return found

    def told(self):
        with open(self.errors.name, encoding="utf-8", errors="replace") as text:
            return text.read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=ANSWER_S)
        self.errors.close()
        shutil.rmtree(self.place)


class Frameworks(unittest.TestCase):
    def serve(self, name):
        interface, file, needs = APPS[name]
        if not is_there(needs):
            self.skipTest(f"{needs[-1]} fails")
        site = Site(interface, file)
        self.addCleanup(site.end)
        for isolation in ISOLATIONS:
            prefix = "" if isolation == ISOLATIONS[-1] else f"/a/{isolation}"
            with self.subTest(isolation=isolation):
                self.check(site, prefix)
                if name == "starlette":
                    self.chat(site, prefix)
        told = site.told()
        self.assertIn("ValueError: as asked" if interface != "rack" else "as asked", told)
        # What a check says of the server; it also tells of an answer that was never closed.
        self.assertNotIn("AssertionError", told)
        self.assertNotIn("without being closed", told)

    def check(self, site, prefix):
        self.assertEqual(site.ask(prefix + "/")[::2], (200, f"{prefix}/page/x"))
        status, headers, _ = site.ask(prefix + "/go")
        self.assertIn(status, (302, 303))
        self.followed(site, prefix, headers["location"], "/page/there", "page there")
        status, headers, body = site.ask(prefix + "/slash")
        if status == 200:
            self.assertEqual(body, "with a slash")
        else:
            self.assertIn(status, (301, 307, 308))
            self.followed(site, prefix, headers["location"], "/slash/", "with a slash")
        # What a copy has kept of a session is in its cookie, whatever the isolation is.
        jar = http.cookies.SimpleCookie()
        for count in ("1", "2", "3"):
            cookie = "; ".join(f"{name}={morsel.coded_value}" for name, morsel in jar.items())
            headers = [("Cookie", cookie)] if cookie else []
            status, headers, body = site.ask(prefix + "/count", headers=headers)
            self.assertEqual((status, body), (200, count))
            for line in headers.get_all("set-cookie", []):
                jar.load(line)
        kind = [("Content-Type", "multipart/form-data; boundary=limit")]
        answer = site.ask(prefix + "/form", "POST", FORM, kind)
        self.assertEqual(answer[::2], (200, "bolt a.bin 100000"))
        self.assertEqual(site.ask(prefix + "/stream")[::2], (200, "part 0\npart 1\npart 2\n"))
        self.assertEqual(site.ask(prefix + "/raise")[0], 500)
        self.assertEqual(site.ask(prefix + "/none")[0], 404)
        status, headers, body = site.ask(prefix + "/", "HEAD")
        self.assertEqual((status, body), (200, ""))

    def chat(self, site, prefix):
        """A WebSocket, byte by byte: texts below 126 bytes, with a mask of nothing."""
        stream = socket.create_connection(("127.0.0.1", site.port), timeout=ANSWER_S)
        self.addCleanup(stream.close)
        file = stream.makefile("rb")
        self.addCleanup(file.close)
        head = f"GET {prefix}/chat/x HTTP/1.1\r\nHost: a\r\n{HANDSHAKE}\r\n"
        stream.sendall(head.encode())
        status, headers = file.readline(), http.client.parse_headers(file)
        self.assertEqual(status, b"HTTP/1.1 101 Switching Protocols\r\n")
        self.assertEqual(headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        self.assertEqual(headers["sec-websocket-protocol"], "chat")
        for word in (b"hello", b"again"):
            stream.sendall(bytes((0x81, 0x80 | len(word), 0, 0, 0, 0)) + word)
            kind, size = file.read(2)
            self.assertEqual(kind, 0x81)
            self.assertEqual(json.loads(file.read(size)), {"name": "x", "said": word.decode()})
        stream.sendall(bytes((0x88, 0x82, 0, 0, 0, 0)) + (1000).to_bytes(2, "big"))
        self.assertEqual(file.read(), bytes((0x88, 2)) + (1000).to_bytes(2, "big"))

    def followed(self, site, prefix, location, path, body):
        where = urllib.parse.urlsplit(location)
        if where.netloc:
            self.assertEqual(where.netloc, f"127.0.0.1:{site.port}")
        self.assertEqual(where.path, prefix + path)
        self.assertEqual(site.ask(where.path)[::2], (200, body))

    def test_flask(self):
        self.serve("flask")

    def test_django(self):
        self.serve("django")

    def test_django_by_asgi(self):
        self.serve("django-async")

    def test_the_standard_librarys_check_of_wsgi(self):
        self.serve("validate")

    def test_the_adapter_of_asgiref(self):
        self.serve("asgiref")

    def test_starlette(self):
        self.serve("starlette")

    def test_sinatra(self):
        self.serve("sinatra")


if __name__ == "__main__":
    unittest.main()
