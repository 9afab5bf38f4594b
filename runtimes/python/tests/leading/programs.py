"""Programs that are profiled and warmed as the daemon does: their zygotes are told what they import.

Owns: the module that the programs of these tests change and look at, and how one is compared with a
cold run. What is loaded ahead of which program the tests say.
"""

import compileall
import os

from harness import FINISHED
from test_worker import InAFolder, loaded_by

# What programs change, and modules look at.
CONF = """
import contextlib, contextvars
debug, number, options, registry = False, 1, {}, []
var = contextvars.ContextVar("var", default=0)
lock = contextlib.nullcontext()
class Flags:
    size = 1
flags = Flags()
class Base:
    pass
class Told:
    def __init_subclass__(cls):
        registry.append(cls)
class Meta(type):
    def __init__(cls, *rest):
        registry.append(cls)
class Field:
    def __set_name__(self, owner, name):
        registry.append(name)
field = Field()
class Reads:
    def __getattr__(self, name):
        registry.append(name)
        return 1
reads = Reads()
class object(Told):
    def __init_subclass__(cls):
        registry.append(cls)
VALUE = "stub"
def mark(function=None):
    global debug
    debug = True
    registry.append(function)
    return function
"""
LOOKS = "import conf\nVALUE = conf.debug, conf.options, len(conf.registry), conf.flags.size\n"


def named(files):
    """By `pk_sub` lies the module `pk.sub`, and by `pk_` the package."""
    places = {name: name.replace("_", "/") + ("__init__.py" if name[-1] == "_" else ".py")
              for name in files}
    return {places[name]: text for name, text in files.items()}


class Warmed(InAFolder):
    """A program whose zygote is told what a profile of it says."""

    def furnish(self, files):
        self.write("conf.py", CONF)
        self.write("twin.py", "VALUE = 'of the program'\n")
        self.write("vendor/twin.py", "VALUE = 'vendored'\n")
        for name, text in files.items():
            head = ("import os\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
                    if "HERE" in text else "")
            vendor = os.path.join(self.folder, "vendor")
            self.write(name, head + text.replace("VENDOR", repr(vendor)))

    def profile(self, run):
        path = os.path.join(self.folder, "notes")
        run.learn(path)
        with open(path, "rb") as file:
            notes = [os.fsdecode(note) for note in file.read().split(b"\0")]
        os.unlink(path)
        alone = {note[1:].partition(":")[0] for note in notes if note[:1] == "H"}
        return [note[1:] for note in notes if note[:1] == "M" and note[1:] not in alone]

    def warmed(self, files, *words, **how):
        """Its call, its zygote, and what that was not to load."""
        self.furnish(files)
        target = how.pop("target", "s.py")
        run = self.run_of(target, *words, **how)
        options = {"kind": 1, "target": target} if how.get("kind") else {}
        run.target = options.get("target")
        # So that what is left to the calls is made ready, whatever the environment says.
        compileall.compile_dir(self.folder, quiet=2)
        zygote, hazards = self.settled([], script=target, allowed=self.profile(run), **options)
        return run, zygote, hazards

    def same_and_warm(self, run, zygote, ways=(0, 1, 2)):
        cold = run.cold()
        for paid in ways:
            self.clean()
            outcome = run.warm(zygote, paid)
            self.assertEqual(repr(cold), repr(outcome))
            self.assertEqual([frame[0] for frame in outcome.frames[:1]], [FINISHED], "not warm")
        self.clean()
        return cold

    def clean(self):
        """What a program leaves."""
        settings = os.path.join(self.folder, "settings")
        if os.path.exists(settings):
            os.unlink(settings)

    def check(self, text, ahead=(), later=(), **files):
        """A script of this text, and which modules come before all else."""
        run, zygote, _ = self.warmed({**named(files), "s.py": text})
        loaded = loaded_by(zygote)
        self.assertEqual(set(ahead) - loaded, set(), "it was not loaded ahead")
        self.assertEqual(set(later) & loaded, set(), "it was loaded ahead")
        # Each in its turn: one of the ways tells as much of what was loaded as all do.
        self.turn = getattr(self, "turn", 0) + 1
        cold = self.same_and_warm(run, zygote, [self.turn % 3])
        zygote.close()
        return cold
