"""Rack apps in real workers, asked as the front asks them.

All are run with the Rack that is installed, and with each whose gems lie where the variable HOB_RACKS
says (directories as `gem env` calls them, joined by colons).
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from harness import APP, FAILED, MESSAGE, ROW, STANDBY, ZYGOTE, Case, Worker  # noqa: F401

RAISED, CANCELLED = 1, 4
RACKS = [rack for rack in os.environ.get("HOB_RACKS", "").split(":") if rack]


def words(items):
    texts = (struct.pack("<I", len(item)) + item for item in items)
    return struct.pack("<I", len(items)) + b"".join(texts)


def request(method="GET", path="/", body=b"", headers=(), **other):
    """A request's bytes, as the front sends them."""
    told = {
        "target": path,
        "prefix": "",
        "query": "",
        "protocol": "HTTP/1.1",
        "scheme": "http",
        "host": "example.org",
        "port": "8000",
        "peer": "192.0.2.7",
        "peer_port": "40000",
    }
    told.update(other)
    order = [method, told["target"], told["prefix"], path, told["query"], told["protocol"]]
    order += [told["scheme"], told["host"], told["port"], told["peer"], told["peer_port"]]
    order += [word for pair in headers for word in pair]
    return words([word.encode("latin-1") for word in order]) + body


def response(data):
    """A response's status, headers and body."""
    status, count = struct.unpack_from("<HI", data)
    at, found = 6, []
    for _ in range(count):
        size = struct.unpack_from("<I", data, at)[0]
        found.append(data[at + 4 : at + 4 + size].decode("latin-1"))
        at += 4 + size
    return status, list(zip(found[::2], found[1::2])), data[at:]


class Rack(Case):
    """Apps in `config.ru`; `rack` is where the gems of another Rack lie."""

    rack = None

    def setUp(self):
        super().setUp()
        self.env = dict(os.environ, LANG="C.UTF-8")
        if self.rack:
            self.env["GEM_PATH"] = self.rack
        self.log = os.path.join(self.place, "log")

    def start(self, text=None, role=STANDBY, file=None):
        if file is None:
            file = self.write("app/config.ru", text)
        with open(self.log, "wb") as log:
            target = "rack:%s:" % file
            worker = Worker(ROW, role, APP, target, cwd=os.path.dirname(file), env=self.env, stderr=log)
        self.addCleanup(worker.close)
        return worker

    def logged(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def ask(self, worker, *given, **how):
        """The response; of an app that raised its last line."""
        return self.told(getattr(worker, "channel", worker).ask(1, request(*given, **how)))

    def told(self, answer):
        kind, data = answer
        if kind in (RAISED, CANCELLED):
            return data.decode()
        self.assertEqual(kind, b"")
        return response(data)

    def close(self, zygote, channel, pidfd):
        channel.close()
        self.assertEqual(zygote.gone()[1], (0, 0))
        os.close(pidfd)

    def refused(self, text, file=None):
        with self.assertRaises(AssertionError) as caught:
            self.start(text, file=file)
        return str(caught.exception)


def with_each_rack(names):
    """Adds the same tests with each Rack that was named, to the names of a module."""
    cases = [case for case in names.values() if isinstance(case, type) and issubclass(case, Rack)]
    for number, rack in enumerate(RACKS):
        for case in cases:
            if case is not Rack:
                name = "%sOfRack%d" % (case.__name__, number)
                names[name] = type(name, (case,), {"rack": rack})
