"""gunicorn's own request files, sent as they are to a site of `hob serve`.

`make suites` fetches them. Each file is a test: a valid one has to reach an app as gunicorn
says, an invalid one has to be refused, with nothing behind it answered. Where hob differs by
intention, `DIFFERS` says why; a file that no longer differs fails until its line is taken out.

A request of HTTP/1.1 without a `Host` is refused by hob (RFC 9112, 3.2). Nearly all of the files
have none; they get one, so that they show what they are about.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
import unittest

HOB = os.environ["HOB_BIN"]
SUITE = os.environ["HOB_SUITE"]
REQUESTS = os.path.join(SUITE, "tests", "requests")
ANSWER_S = 20

APP = """
import json

def application(environ, start):
    body = environ["wsgi.input"].read()
    headers = [
        (name[5:] if name.startswith("HTTP_") else name, value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
    ]
    told = {
        "method": environ["REQUEST_METHOD"],
        "target": environ["REQUEST_URI"],
        "protocol": environ["SERVER_PROTOCOL"],
        "headers": headers,
        "body": body.decode("latin-1"),
    }
    start("200 OK", [])
    return [json.dumps(told).encode()]
"""

# Sent behind each file: it ends the connection of one that is valid, and must not be answered behind
# one that is not.
LAST = b"GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

BOUND = "the bound is gunicorn's own, or its option; hob's are in `hob serve status --limits`"
CODINGS = "of codings hob takes `chunked` alone"
OPTION = "an option of gunicorn's to take what is not valid; hob has none"
PROXY = "the PROXY protocol is not served yet"
UNDERSCORE = "gunicorn's option: hob drops a name with `_` that stands for another, and goes on"
DIFFERS = {
    "invalid/003c": "a method may be any token (RFC 9110, 9.1)",
    "invalid/006": BOUND,
    "invalid/007": BOUND,
    "invalid/008": BOUND,
    "invalid/010": BOUND,
    "invalid/011": BOUND,
    "invalid/012": BOUND,
    "invalid/017": BOUND,
    "invalid/019": "nobody is believed who is not in `trusted_proxies`: the headers are dropped",
    "invalid/040": UNDERSCORE,
    "invalid/chunked_07": UNDERSCORE,
    "valid/005": "a target has no fragment (RFC 9112, 3.2)",
    "valid/009": CODINGS,
    "valid/014": "a quote in a query is refused by the parser of hyper; clients send %22",
    "valid/025": CODINGS,
    "valid/025_line": CODINGS,
    "valid/028": OPTION,
    "valid/029": CODINGS,
    "valid/030": CODINGS,
    "valid/031compat": OPTION,
    "valid/040_compat": OPTION,
    "valid/compat_obs_fold": OPTION,
    "valid/compat_obs_fold_huge": OPTION,
    "valid/pp_01": PROXY,
    "valid/pp_02": PROXY,
}
# Its body is a request too, whose bytes are counted.
KEPT = {"valid/020"}
# The file says 17,914 bytes and holds 8,599.
SHORT = {"valid/099"}


def loaded(path):
    """What a description says, and whether it sets gunicorn's own options."""
    module = types.ModuleType("described")
    module.uri = lambda text: text
    module.cfg = None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    exec(compile(text, path, "exec"), vars(module))
    return module


def data_of(path):
    """A file's bytes, as gunicorn's own tests read them."""
    with open(path, "rb") as file:
        data = file.read()
    data = data.replace(b"\n", b"").replace(b"\\r\\n", b"\r\n")
    return data.replace(b"\\0", b"\0").replace(b"\\n", b"\n").replace(b"\\t", b"\t")


def with_hosts(data):
    """The same with a `Host` in each head of HTTP/1.1 that has none."""
    if re.search(rb"(?im)^host[ \t]*:", data):
        return data
    return re.sub(rb"(HTTP/1\.1\r\n)", rb"\1Host: localhost\r\n", data)


class Site:
    """One site for all files, with an app that says what it was asked."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="hob-suite-")
        with open(os.path.join(self.place, "wsgi.py"), "w", encoding="utf-8") as file:
            file.write(APP)
        env = {"PATH": os.environ["PATH"], "HOME": self.place, "HOB_DIR": self.place + "/run"}
        self.errors = open(os.path.join(self.place, "errors"), "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [HOB, "serve", self.place, "--listen", "0"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        first = self.process.stdout.readline().decode()
        self.port = int(re.fullmatch(r"hob: serving http://127\.0\.0\.1:(\d+)/\n", first)[1])

    def send(self, data):
        """All that comes back until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as stream:
            try:
                stream.sendall(data + LAST)
            except OSError:
                pass  # Refused before all was sent.
            found = b""
            try:
                while part := stream.recv(65536):
                    found += part
            except ConnectionResetError:
                pass
            return found

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=ANSWER_S)
        self.errors.close()
        shutil.rmtree(self.place)


def responses(data):
    """The statuses and bodies of responses that follow each other."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        length = re.search(rb"(?im)^content-length: (\d+)", head)
        size = int(length[1]) if length else 0
        found.append((status, data[:size]))
        data = data[size:]
    return found


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = Site()

    @classmethod
    def tearDownClass(cls):
        cls.site.end()

    def run_file(self, kind, name, check):
        why = DIFFERS.get(f"{kind}/{name}")
        path = os.path.join(REQUESTS, kind, name)
        data = data_of(path + ".http")
        if f"{kind}/{name}" not in KEPT:
            data = with_hosts(data)
        if f"{kind}/{name}" in SHORT:
            size = len(data.partition(b"\r\n\r\n")[2])
            data = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % size, data)
        answers = responses(self.site.send(data))
        if why is None:
            check(answers, loaded(path + ".py"))
            return
        with self.assertRaises(AssertionError, msg="it does not differ: take its line out"):
            check(answers, loaded(path + ".py"))


class Valid(Base):
    def check(self, answers, described):
        wanted = described.request
        wanted = wanted if isinstance(wanted, list) else [wanted]
        if answers and b"/last" in answers[-1][1]:
            answers = answers[:-1]
        self.assertEqual([status for status, _ in answers], [200] * len(wanted), answers)
        for (_, body), want in zip(answers, wanted):
            told = json.loads(body)
            self.assertEqual(told["method"], want["method"])
            self.assertEqual(told["target"], want["uri"])
            self.assertEqual(told["protocol"], "HTTP/%d.%d" % want["version"])
            self.assertEqual(told["body"].encode("latin-1"), want["body"] or b"")
            told_headers = dict(told["headers"])
            equal = {}
            for name, value in want["headers"]:
                equal.setdefault(name, []).append(value)
            for name, values in equal.items():
                if name in ("TRANSFER-ENCODING", "CONNECTION", "TRAILER", "CONTENT-LENGTH"):
                    continue  # Between the client and the server; the body shows the length.
                self.assertEqual(told_headers.get(name.replace("-", "_")), ",".join(values), name)


class Invalid(Base):
    def check(self, answers, described):
        del described  # Which error of gunicorn's it is says nothing here.
        self.assertTrue(answers, "it is not answered at all")
        self.assertGreaterEqual(answers[-1][0], 400, answers)
        bodies = b"".join(body for _, body in answers)
        self.assertNotIn(b"/after", bodies)
        self.assertNotIn(b"/last", bodies)


def add(kind, case):
    for file in sorted(os.listdir(os.path.join(REQUESTS, kind))):
        name, ending = os.path.splitext(file)
        if ending == ".http":
            method = lambda self, name=name: self.run_file(kind, name, self.check)  # noqa: E731
            setattr(case, f"test_{name}", method)


sys.path.insert(0, SUITE)
add("valid", Valid)
add("invalid", Invalid)

if __name__ == "__main__":
    unittest.main()
