"""Every probe is the same cold and warm: by a paid copy, an unpaid one, a standby, by learning.

Of interpreters that share their cases, each has every probe by copies, and some by the two others.
The probes and their first line are described in probes/README.md.
"""

import os
import re
import resource
import shlex
import signal
import sys
import tempfile
import unittest

from harness import PROBES, Run, Worker, shared

NOT_PROBES = {"neighbour.py"}
PRELOADED = ["json", "argparse", "subprocess", "runpy", "logging"]
# The same small environment for cold and warm; the order is the caller's.
ENVIRONMENT = [("LANG", "C.UTF-8"), ("HOME", "/nowhere"), ("PATH", os.environ["PATH"])]


class Probe:
    """One script and the words of its first line."""

    def __init__(self, name):
        self.name = name
        with open(os.path.join(PROBES, name), "rb") as file:
            line = file.readline().decode("utf-8", "replace")
        self.words = {}
        if line.startswith("# probe:"):
            for word in shlex.split(line[len("# probe:") :]):
                key, _, value = word.partition("=")
                self.words.setdefault(key, []).append(value)

    def one(self, key, default=None):
        return self.words.get(key, [default])[0]

    def runs_here(self):
        oldest = tuple(map(int, self.one("python", "3.0").split(".")))
        return sys.version_info[:2] >= oldest

    def world(self):
        world = {"umask": int(self.one("umask", "022"), 8), "limits": {}}
        for key in ("ignored", "blocked"):
            numbers = [signal.Signals["SIG" + s] for s in self.one(key, "").split(",") if s]
            world[key] = sum(1 << (number - 1) for number in numbers)
        for limit in self.words.get("limit", []):
            name, soft, hard = limit.split(":")
            world["limits"][getattr(resource, "RLIMIT_" + name)] = int(soft), int(hard)
        asked = ((word, self.one(word)) for word in ("nice", "io", "policy", "oom", "slack"))
        world["priority"] = {word: int(value) for word, value in asked if value is not None}
        return world

    def run(self):
        env = dict(ENVIRONMENT)
        env.update(item.partition("=")[::2] for item in self.words.get("env", []))
        module = self.one("module")
        number = self.one("signal")
        return Run(
            [module or self.name, *shlex.split(self.one("args", ""))],
            kind=1 if module else 0,
            target=module or os.path.join(PROBES, self.name),
            cwd=PROBES,
            env=env,
            stdin=self.one("stdin", "").encode().decode("unicode_escape").encode(),
            options=shlex.split(self.one("options", "")),
            world=self.world(),
            stdout=self.one("stdout"),
            signal=number and signal.Signals["SIG" + number],
        )

    def zygote_environment(self):
        """The daemon starts a zygote with the variables of the key; others differ."""
        env = dict(ENVIRONMENT, UNRELATED="1")
        for item in self.words.get("env", []):
            name, _, value = item.partition("=")
            if name.startswith(("PYTHON", "LC_", "LANG")):
                env[name] = value
        return env


def probes():
    chosen = os.environ.get("HOB_PROBES")
    names = sorted(n for n in os.listdir(PROBES) if n.endswith(".py") and n not in NOT_PROBES)
    return [Probe(n) for n in names if not chosen or n[:-3] in chosen.split(",")]


STANDBY, LEARNING = "a standby", "learning"


def without_copies():
    """The probes with the ways that are gone here beside copies."""
    cases = []
    for number, probe in enumerate(probes()):
        cases += [(probe.name, way) for way in (STANDBY, LEARNING)[:: (-1) ** number]]
    return set(shared(cases))


class ProbesAreTheSameColdAndWarm(unittest.TestCase):
    """One test a probe; made below."""

    maxDiff = None
    without_copies = without_copies()

    def compare(self, cold, warm, way):
        # Addresses differ from run to run.
        cold, warm = (re.sub(r"0x[0-9a-f]{8,}", "0xADDRESS", repr(each)) for each in (cold, warm))
        self.assertEqual(cold, warm, way)

    def check(self, probe):
        if not probe.runs_here():
            self.skipTest("for a newer Python")
        run = probe.run()
        cold = run.cold()
        start = {
            "modules": PRELOADED,
            "options": run.options,
            "cwd": PROBES,
            "env": probe.zygote_environment(),
        }
        # What is loaded before the program can be seen by looking: such probes get no preload.
        if probe.name in ("threads.py", "modules_unloaded.py", "main_module.py"):
            start["modules"] = []
        with Worker(0, run.kind, run.target, **start) as zygote:
            self.assertEqual(zygote.threads, 1)
            self.compare(cold, run.warm(zygote, False), "an unpaid copy")
            self.compare(cold, run.warm(zygote, True), "a paid copy")
        if (probe.name, STANDBY) in self.without_copies:
            self.compare(cold, run.standby(**start), STANDBY)
        if (probe.name, LEARNING) in self.without_copies:
            with tempfile.TemporaryDirectory() as folder:
                notes = os.path.join(folder, "notes")
                self.compare(cold, run.learn(notes), LEARNING)


def add(probe):
    name = "test_%s_is_the_same" % probe.name[:-3]
    setattr(ProbesAreTheSameColdAndWarm, name, lambda self: self.check(probe))


for each in probes():
    add(each)


if __name__ == "__main__":
    unittest.main()
