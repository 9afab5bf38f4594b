"""The Ruby runtime beside Ruby itself: one program cold and warm, by the conformance driver.

Owns: writing a program to a private directory, and running it both ways. The tests compare.
"""

import os
import shutil
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "conformance"))

from driver import (  # noqa: F401
    APP,
    FAILED,
    FINISHED,
    GOLDEN,
    HANDLER,
    MESSAGE,
    NOTES,
    STANDBY,
    ZYGOTE,
    Run,
    Worker,
    take_strings,
)  # fmt: skip

from runtimes import Ruby

ROW = Ruby()


@unittest.skipUnless(ROW.interpreter, "no ruby here")
class Case(unittest.TestCase):
    """A test with a directory of its own, in which its programs lie."""

    maxDiff = None

    def setUp(self):
        self.place = self.folder()
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def folder(self):
        return os.path.realpath(tempfile.mkdtemp())

    def write(self, name, text):
        path = os.path.join(self.place, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text).lstrip("\n"))
        return path

    def zygote(self, name="main.rb", **options):
        options.setdefault("cwd", self.place)
        options.setdefault("argv", [name])
        return Worker(ROW, 0, 0, os.path.join(self.place, name), **options)

    def both(self, text, *arguments, paid=1, modules=(), name="main.rb", **how):
        """The program's outcome cold, and warm."""
        self.write(name, text)
        how.setdefault("cwd", self.place)
        run = Run(ROW, [name, *arguments], **how)
        cold = run.cold()
        options = how.get("options", ())
        # The locale is part of the key.
        env = {k: v for k, v in how.get("env", os.environ).items() if k[:4] in ("LANG", "LC_A", "PATH")}
        with self.zygote(name, modules=modules, options=options, env=env) as zygote:
            return cold, run.warm(zygote, paid)

    def learned(self, run):
        """The names that a learning run leaves; it ends as the cold one does."""
        path = os.path.join(self.place, "notes")
        run.learn(path)
        with open(path, "rb") as file:
            return [note[1:] for note in file.read().split(b"\0") if note[:1] == b"M"]

    def settled(self, run, names=None, **how):
        """A zygote without what is a hazard to load ahead, found as the daemon finds it."""
        names = self.learned(run) if names is None else names
        usual = {"cwd": run.cwd, "env": run.env, "options": run.options, "argv": run.argv[:1]}
        how = dict(usual, **how)
        for _ in range(40):
            zygote = self.zygote(run.argv[0], modules=names, **how)
            hazards = {n[1:].partition(b":")[0] for n in zygote.notes if n[:1] == b"H"}
            left = [name for name in names if name not in hazards]
            if left == names:
                return zygote
            zygote.__exit__()
            names = left
        raise AssertionError("there is always one more hazard: %r" % hazards)

    def same(self, text, *arguments, expect=None, **how):
        """Asserts that both are equal, and that the cold run did what the test is about."""
        cold, warm = self.both(text, *arguments, **how)
        if expect is not None:
            self.assertIn(expect, cold.out + cold.err)
        self.assertEqual(cold, warm)
        return warm
