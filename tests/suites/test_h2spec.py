"""h2spec against a site of `hob serve`: what RFC 9113 and RFC 7541 ask of a server.

`DIFFERS` says of each test that fails why it has to; one that passes and stands there fails too. The
app takes its time: where a stream has ended before the tool has sent all, there is nothing to refuse.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

HOB = os.environ["HOB_BIN"]
TOOL = os.environ.get("HOB_H2SPEC", "")
# Of each test of the tool, in seconds, and of all of them.
ANSWER_S = 10
WHOLE_S = 600
# A tool that sends less has found no server.
MOST = 140

APP = """
import time

def application(environ, start):
    body = environ["wsgi.input"].read()
    time.sleep(0.05)
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"here", body]
"""

CONFIG = """
[serve]
log = "none"

[mount."/"]
wsgi = "wsgi.py"
workers = 2
"""

BOTH = "one port speaks HTTP/1 too: what is no preface is refused by an answer of HTTP/1"
DIFFERS = {("http2/3.5", "Sends invalid connection preface"): BOTH}


@unittest.skipUnless(TOOL, "h2spec is not there")
class H2spec(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="hob-suite-")
        self.addCleanup(shutil.rmtree, self.place)
        for name, text in [("wsgi.py", APP), ("hob.toml", CONFIG)]:
            with open(os.path.join(self.place, name), "w", encoding="utf-8") as file:
                file.write(text)
        env = {"PATH": os.environ["PATH"], "HOME": self.place, "HOB_DIR": self.place + "/run"}
        usual = {"env": env, "cwd": self.place, "stdin": subprocess.DEVNULL}
        subprocess.run([HOB, "trust"], check=True, stdout=subprocess.DEVNULL, **usual)
        self.process = subprocess.Popen(
            [HOB, "serve", ".", "--listen", "0"], stdout=subprocess.PIPE, **usual
        )
        self.addCleanup(self.end)
        first = self.process.stdout.readline().decode()
        self.port = re.fullmatch(r"hob: serving http://127\.0\.0\.1:(\d+)/\n", first)[1]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=ANSWER_S)

    def test_an_app(self):
        told = os.path.join(self.place, "told.xml")
        words = ["--strict", "-h", "127.0.0.1", "-p", self.port, "-o", str(ANSWER_S), "-j", told]
        usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "timeout": WHOLE_S}
        said = subprocess.run([TOOL, *words], check=False, **usual).stdout.decode()
        cases = list(xml.etree.ElementTree.parse(told).iter("testcase"))
        self.assertGreater(len(cases), MOST, said)
        bad = [case for case in cases for kind in ("failure", "error") if case.find(kind) is not None]
        failed = {(case.get("package"), case.get("classname")) for case in bad}
        self.assertEqual(failed, set(DIFFERS), said)
