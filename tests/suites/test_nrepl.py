"""nREPL's own tests, asked of the port of `hob session repl` and of a server of nREPL's
beside it. What the plain server passes, hob passes.
"""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import time
import unittest

from world import private

HOB = os.environ["HOB_BIN"]
SOURCE = os.environ.get("HOB_NREPL", "")
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
# The server needs as long as its JVM does, on a busy machine too.
START_S = 120
# Some ten times as long as the tests take.
SUITE_S = 240
# Tests of `SPACES` but for `OUT`.
RUN = 113
SPACES = [
    "nrepl.bencode-test",
    "nrepl.core-test",
    "nrepl.describe-test",
    "nrepl.helpers-test",
    "nrepl.middleware-test",
    "nrepl.middleware.completion-test",
    "nrepl.middleware.dynamic-loader-test",
    "nrepl.middleware.load-file-test",
    "nrepl.middleware.lookup-test",
    "nrepl.middleware.print-test",
    "nrepl.misc-test",
    "nrepl.response-test",
    "nrepl.sanity-test",
    "nrepl.transport-test",
    "nrepl.util.completion-test",
    "nrepl.util.lookup-test",
]
OUT = [
    # They close their server, or start another one and wait for what it says: here there is one.
    "nrepl.core-test/clients-fail-on-disconnects",
    "nrepl.core-test/ensure-server-closeable",
    "nrepl.core-test/transports-fail-on-disconnects",
    "nrepl.core-test/test-ack",
    # It waits for 100 ms, which a busy machine exceeds.
    "nrepl.core-test/test-url-connect",
]
# They ask for the place of a definition as an older Clojure gave it, and for the ops that a fresh
# server has, where tests before them have added some.
PLAIN_FAILS = {
    "nrepl.core-test/source-tracking-eval",
    "nrepl.describe-test/simple-describe",
    "nrepl.describe-test/verbose-describe",
}


@unittest.skipUnless(SOURCE, "the source of nREPL is not there")
class Nrepl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place, cls.world = private("nrepl")
        classes = os.path.join(cls.place, "classes")
        quota = os.path.join(SOURCE, "src/java/nrepl/QuotaExceeded.java")
        subprocess.run(["javac", "-d", classes, quota], check=True)
        jars = sorted(glob.glob(os.path.join(ROOT, "target/tools/session/*.jar")))
        folders = ["src/clojure", "test/clojure", "test-resources", "load-file-test"]
        folders = [os.path.join(SOURCE, folder) for folder in folders]
        cls.classes = ":".join([*map(os.path.abspath, jars), *folders, classes])
        # What the tests define they look for in the server, as they run in its process elsewhere.
        cls.require = "(require " + " ".join(f"'{space}" for space in SPACES) + ")"

    @classmethod
    def tearDownClass(cls):
        subprocess.run([HOB, "stop"], cwd=cls.place, env=cls.world, stderr=subprocess.DEVNULL)
        shutil.rmtree(cls.place)

    @contextlib.contextmanager
    def server(self, name, words):
        """Its directory has the files that the tests open; its port is in a file there."""
        folder = os.path.join(self.place, name)
        shutil.copytree(SOURCE, folder)
        log = os.path.join(folder, "log")
        with open(log, "w") as told:
            server = subprocess.Popen(
                words, cwd=folder, env=self.world, stdout=told, stderr=told, stdin=subprocess.DEVNULL
            )
        try:
            end = time.monotonic() + START_S
            while not (port := self.port(folder)):
                if server.poll() is not None or time.monotonic() > end:
                    with open(log) as told:
                        self.fail(told.read())
                time.sleep(0.05)
            yield folder, port
        finally:
            server.terminate()
            server.wait()

    @staticmethod
    def port(folder):
        try:
            with open(os.path.join(folder, ".nrepl-port")) as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def failed(self, folder, port):
        """The tests that fail there, and how many were run; None if they hang."""
        suite = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nrepl", "suite.clj")
        words = ["java", "-cp", self.classes, f"-Dsuite.port={port}", f"-Dsuite.out={' '.join(OUT)}"]
        running = subprocess.Popen(
            [*words, "clojure.main", suite, *SPACES],
            cwd=folder,
            env=self.world,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said, _ = running.communicate(timeout=SUITE_S)
        except subprocess.TimeoutExpired:
            # The JVM says what each of its threads waits for.
            running.send_signal(signal.SIGQUIT)
            time.sleep(2)
            running.kill()
            said, _ = running.communicate()
            print(f"{folder}: hangs\n{said[-20000:]}")
            return None
        lines = [line.split() for line in said.splitlines() if line.startswith("suite: ")]
        run = [int(words[2]) for words in lines if words[1] == "run"]
        self.assertEqual(len(run), 1, said[-4000:])
        return {words[2] for words in lines if words[1] == "failed"}, run[0], said

    def failed_each_time(self, folder, port):
        """The same of up to three runs: a test of theirs that waits 100 ms for a word may fail on a
        machine that is busy, and one may hang with a plain server too; a fault is one in each run."""
        ended = []
        while len(ended) < 3 and not any(failed <= PLAIN_FAILS for failed, *_ in ended):
            if (done := self.failed(folder, port)) is None:
                done = self.failed(folder, port)
            self.assertIsNotNone(done, "they hang twice")
            ended.append(done)
        _, run, said = ended[-1]
        return set.intersection(*(failed for failed, *_ in ended)), run, said

    def test_hob_passes_what_a_plain_server_passes(self):
        plain = ["java", "-cp", self.classes, "clojure.main", "-e", self.require]
        with self.server("plain", [*plain, "-m", "nrepl.cmdline", "--port", "0"]) as at:
            failed, run, said = self.failed_each_time(*at)
            self.assertEqual((failed, run), (PLAIN_FAILS, RUN), said[-8000:])
        words = [HOB, "repl", "-S", "suite", "--port", "0", "--cp", self.classes]
        with self.server("hob", words) as at:
            required = [HOB, "eval", "-S", "suite", "-q", self.require]
            subprocess.run(required, cwd=self.place, env=self.world, check=True)
            failed, run, said = self.failed_each_time(*at)
            self.assertEqual((failed, run), (PLAIN_FAILS, RUN), said[-8000:])


if __name__ == "__main__":
    unittest.main()
