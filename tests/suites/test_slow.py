"""slowhttptest against a site of `hob serve`: slow heads, slow bodies, slow readers.

The site has one worker. While each attack goes on, requests of ours have to be answered: no slow
client holds the worker. The front has to cut all of the attack's connections before the tool has
enough; where it does not by intention, `HELD` says why, and the test fails if it does.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request

HOB = os.environ["HOB_BIN"]
TOOL = shutil.which("slowhttptest")
# How long an attack goes on that is not cut, in seconds.
LASTS = 12
ANSWER_S = 20

APP = """
def application(environ, start):
    environ["wsgi.input"].read()
    start("200 OK", [])
    if environ["PATH_INFO"] == "/large":
        return (b"x" * 65536 for _ in range(64))
    return [b"here"]
"""

CONFIG = """
[serve]
log = "none"
timeouts = { head = "2s", body = "5s", write = "2s" }

[mount."/"]
wsgi = "wsgi.py"
isolation = "prefork"
workers = 1
"""

# How many connections, what the tool is told beside the usual, and the path that it asks for: for a
# slow reader one with more bytes than the kernel takes at once.
ATTACKS = {
    "slow heads": (200, ["-H"], "/"),
    "slow bodies": (200, ["-B"], "/"),
    "slow readers": (40, ["-X", "-w", "1", "-y", "512", "-n", "1", "-z", "5"], "/large"),
}
HELD = {"slow bodies": "bytes come within `timeouts.body`: a connection is held, and no worker"}


class Site:
    """A site with one worker, which is trusted and started."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="hob-suite-")
        for name, text in [("wsgi.py", APP), ("hob.toml", CONFIG)]:
            with open(os.path.join(self.place, name), "w", encoding="utf-8") as file:
                file.write(text)
        env = {"PATH": os.environ["PATH"], "HOME": self.place, "HOB_DIR": self.place + "/run"}
        usual = {"env": env, "cwd": self.place, "stdin": subprocess.DEVNULL}
        subprocess.run([HOB, "trust"], check=True, stdout=subprocess.DEVNULL, **usual)
        self.process = subprocess.Popen(
            [HOB, "serve", ".", "--listen", "0"], stdout=subprocess.PIPE, **usual
        )
        first = self.process.stdout.readline().decode()
        self.control = self.place + "/run/serve/" + first.rpartition(":")[2].strip("/\n") + "/control"
        self.base = re.fullmatch(r"hob: serving (http://127\.0\.0\.1:\d+)/\n", first)[1]

    def ask(self):
        with urllib.request.urlopen(self.base + "/", timeout=ANSWER_S) as answer:
            return answer.read()

    def connections(self):
        """How many the front has."""
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(ANSWER_S)
            stream.connect(self.control)
            stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n")
            with stream.makefile("rb") as answer:
                return int(re.search(rb"\nhob_http_connections (\d+)\n", answer.read())[1])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=ANSWER_S)
        shutil.rmtree(self.place)


def goes_on(tool):
    """Whether a tool does not end, which closes its connections before it does."""
    try:
        tool.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return True
    return False


@unittest.skipUnless(TOOL, "slowhttptest is not there")
class Slow(unittest.TestCase):
    def setUp(self):
        self.site = Site()
        self.addCleanup(self.site.end)

    def is_cut(self, name):
        """Whether the front has cut all connections before the attack was over."""
        count, options, path = ATTACKS[name]
        usual = ["-c", str(count), "-r", str(count), "-i", "1", "-l", str(LASTS)]
        words = [TOOL, *options, *usual, "-u", self.site.base + path]
        said = os.path.join(self.site.place, "said")
        with open(said, "wb") as out:
            tool = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        most, left = 0, 0
        while tool.poll() is None:
            self.assertEqual(self.site.ask(), b"here")
            left = self.site.connections()
            most = max(most, left)
            if most > count // 4 and left == 0 and goes_on(tool):
                tool.terminate()
                tool.wait()
                return True
        self.assertGreater(most, count // 4)
        with open(said, "rb") as file:
            return b"No open connections left" in file.read()

    def check(self, name):
        self.assertEqual(self.site.ask(), b"here")
        self.assertEqual(self.is_cut(name), name not in HELD, HELD.get(name))

    def test_slow_heads(self):
        self.check("slow heads")

    def test_slow_bodies(self):
        self.check("slow bodies")

    def test_slow_readers(self):
        self.check("slow readers")
