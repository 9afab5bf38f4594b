"""The gate of a JVM beside the JVM itself: one program cold and warm, by the conformance driver.

Owns: compiling a program in a private directory, and running it both ways in each JDK that this
machine has. The tests compare.
"""

import atexit
import os
import shutil
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "conformance"))

from driver import GOLDEN, STANDBY, Run, Worker  # noqa: F401
from jvm import CLASS, Jvm, build, made  # noqa: F401

# What did not fit, as the schema of the wire has it (`docs/wire.md`, `executes`).
SIGNALS, LIMITS, PRIORITY, DESCRIPTORS = 1, 2, 3, 8


def rows():
    """One for each JDK."""
    classes, gate, homes = made()
    return [Jvm(os.path.join(home, "bin", "java"), classes, gate) for home in homes]


ROWS = rows()


@unittest.skipUnless(ROWS, "no JDK here")
class Case(unittest.TestCase):
    """A test with a directory of its own, in which its program lies."""

    maxDiff = None

    def setUp(self):
        self.place = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    # The classes of each program that these tests have compiled. A compiler takes longer than all
    # that is done with what it makes.
    compiled = {}

    def compile(self, text):
        if text not in self.compiled:
            folder = self.compiled[text] = tempfile.mkdtemp(prefix="hob-classes-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            path = os.path.join(folder, "Main.java")
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))
            build.program(folder, path)
        shutil.copytree(self.compiled[text], self.place, dirs_exist_ok=True)

    def same(self, text, *arguments, expect=None, start=None, unfit=None, **how):
        """Asserts that both are equal in each JDK, and that the cold run did what is tested. The
        standby itself performs the call, unless it is to execute it cold since this does not fit.
        What happens by chance is looked for in several `calls`."""
        calls = how.pop("calls", 1)
        self.compile(text)
        how.setdefault("cwd", self.place)
        how.setdefault("options", ["-cp", self.place])
        how.setdefault("env", {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
        kept = {name: value for name, value in how["env"].items() if name in ("PATH", "LC_ALL")}
        for row in ROWS:
            with self.subTest(java=row.interpreter):
                run = Run(row, ["Main", *arguments], kind=CLASS, target="Main", **how)
                cold = run.cold()
                if expect is not None:
                    self.assertIn(expect, cold.out + cold.err)
                for _ in range(calls):
                    warm = run.standby(env=kept, cwd=start or self.place)
                    self.assertEqual(cold, warm)
                    self.assertEqual(unfit, warm.unfit, "executed cold in its place, for this")
