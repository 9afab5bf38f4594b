"""Requests and responses as the front writes and reads them, and processes of web apps."""

import json
import os
import shutil
import struct
import tempfile
import textwrap
import unittest

from harness import APP, Worker

ZYGOTE, STANDBY = 0, 1
RAISED, CANCELLED = 1, 4
HELLO = """
    def application(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"hello"]
"""


def words(items):
    items = [item if isinstance(item, bytes) else item.encode("latin-1") for item in items]
    packed = [struct.pack("<I", len(item)) + item for item in items]
    return struct.pack("<I", len(items)) + b"".join(packed)


def request(path="/", method="GET", prefix="", query="", headers=(), body=b""):
    """The payload of a message."""
    target = prefix + path + ("?" + query if query else "")
    fixed = [method, target, prefix, path, query, "HTTP/1.1", "http", "example.test", "8000",
             "192.0.2.7", "4711"]
    return words(fixed + [word for pair in headers for word in pair]) + body


def response(payload):
    """(status, headers, body)."""
    status, count = struct.unpack_from("<HI", payload)
    at, found = 6, []
    for _ in range(count):
        size = struct.unpack_from("<I", payload, at)[0]
        found.append(payload[at + 4 : at + 4 + size].decode("latin-1"))
        at += 4 + size
    return status, list(zip(found[::2], found[1::2])), payload[at:]


class Raised(Exception):
    """The app raised: the failure's text."""


class Left(Exception):
    """The app has seen that nobody reads its answer."""


class Process:
    """A worker that performs an app: a copy of a zygote, or a standby."""

    def __init__(self, worker, channel, log):
        self.worker, self.channel, self.log = worker, channel, log
        self.number = 0

    def ask(self, path="/", file=None, **more):
        return self.send(request(path, **more), file)

    def send(self, payload, file=None):
        self.number += 1
        kind, body = self.channel.ask(self.number, payload, file)
        if kind == RAISED:
            raise Raised(body.decode())
        if kind == CANCELLED:
            raise Left
        return response(body)

    def json(self, path="/", **more):
        return json.loads(self.ask(path, **more)[2])

    def logged(self):
        """What has come to standard error, and to standard output, so far."""
        self.log.seek(0)
        return self.log.read().decode()


class Apps(unittest.TestCase):
    """What tests of apps have: a project's directory, and processes in it."""

    def setUp(self):
        self.place = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)

    def write(self, name, text):
        path = os.path.join(self.place, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def zygote(self, target, role=ZYGOTE):
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        interface, name, function = target.split(":")
        target = "%s:%s:%s" % (interface, os.path.join(self.place, name), function)
        # As most have it: what these would do is the runtime's to do.
        env = {name: value for name, value in os.environ.items()
               if name not in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")}
        worker = Worker(role, APP, target, cwd=self.place, stderr=log, env=env)
        self.addCleanup(worker.close)
        return worker, log

    def start(self, target, text=None, role=ZYGOTE):
        """A process that performs the app, of which `text` is the file."""
        if text is not None:
            self.write(target.split(":")[1], text)
        worker, log = self.zygote(target, role)
        if role == STANDBY:
            return Process(worker, worker.channel, log)
        return self.copy(worker, log)

    def copy(self, worker, log):
        channel, pidfd, _ = worker.copy(1)
        self.addCleanup(os.close, pidfd)
        self.addCleanup(channel.close)
        return Process(worker, channel, log)

    def leave(self, process):
        """Has it leave as the daemon does."""
        process.channel.close()
        return process.worker.gone()[1]
