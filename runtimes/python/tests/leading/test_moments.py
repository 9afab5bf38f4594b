"""A module is what it is at its own moment: after all that the program has done before it."""

import itertools
import os
import unittest

from harness import EXECUTES, FINISHED, shared
from test_worker import loaded_by

from leading.programs import LOOKS, Warmed, named

# Why a call is executed anew: its program begins otherwise.
EDITED = 9
# What is imported by then, what changes the state, and what a module keeps of it.
STATES = {
    "an attribute of a module": ("conf", "conf.debug = True", LOOKS),
    "an object behind it": ("conf", "conf.options['debug'] = True", LOOKS),
    "an attribute of an object": ("conf", "conf.flags.size = 7", LOOKS),
    "an attribute of a class": ("conf", "setattr(conf.Flags, 'size', 7)", LOOKS),
    "a registry": ("conf", "conf.registry.append(1)", LOOKS),
    "a registry, by a decorator": ("conf", "@conf.mark\ndef f(): pass", LOOKS),
    "an attribute of the program": ("sys", "sys.modules['__main__'].debug = 1", "import sys\n"
                                    "VALUE = getattr(sys.modules['__main__'], 'debug', 0)"),
    "a name of the program": ("sys", "vars(sys.modules['__main__'])['debug'] = 1", "import sys\n"
                              "VALUE = vars(sys.modules['__main__']).get('debug')"),
    "a context variable": ("conf", "conf.var.set(1)", "import conf\nVALUE = conf.var.get()"),
    "the search path": ("sys", "sys.path.insert(0, VENDOR)", "import twin\nVALUE = twin.VALUE"),
    "the search path, another": ("sys", "sys.path[:0] = [VENDOR]", "import twin\nVALUE = twin.VALUE"),
    "a stub": ("conf, sys", "sys.modules['twin'] = conf", "import twin\nVALUE = twin.VALUE"),
    "a module that is forbidden": ("sys", "sys.modules['twin'] = None",
                                   "try:\n    import twin\n    VALUE = twin.VALUE\n"
                                   "except ImportError as error: VALUE = str(error)"),
    "a finder": ("conf, sys", "sys.meta_path.insert(0, type('F', (), {'find_spec': staticmethod("
                              "lambda *a: conf.registry.append(a[0]))}))",
                 "import conf, twin\nVALUE = conf.registry"),
    "a patched function": ("json", "json.dumps = lambda *a: 'patched'",
                           "import json\nVALUE = json.dumps(1)"),
    "a patched clock": ("time", "time.time = lambda: 1", "import time\nVALUE = time.time() < 9"),
    "a patched `open`": ("builtins", "builtins.open = lambda *a: 'patched'",
                         "VALUE = str(open('/dev/null'))[:7]"),
    "a name for all": ("builtins", "builtins.flag = 1",
                       "import builtins\nVALUE = hasattr(builtins, 'flag')"),
    "a variable": ("os", "os.environ['MOMENT'] = 'own'", "import os\nVALUE = os.environ.get('MOMENT')"),
    "variables": ("os", "os.environ.update(MOMENT='own')",
                  "import os\nVALUE = os.environ.get('MOMENT')"),
    "a level": ("logging", "logging.basicConfig(level=logging.DEBUG)",
                "import logging\nVALUE = logging.getLogger('a').isEnabledFor(10)"),
    "a handler of messages": ("logging", "logging.getLogger().addHandler(logging.NullHandler())",
                              "import logging\nVALUE = len(logging.getLogger().handlers)"),
    "a filter": ("warnings", "warnings.simplefilter('error')",
                 "import warnings\nVALUE = warnings.filters[0][0]"),
    "a signal handler": ("signal", "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
                         "import signal\nVALUE = signal.getsignal(signal.SIGUSR1)"),
    "a hook": ("sys", "sys.excepthook = print", "import sys\nVALUE = sys.excepthook is print"),
    "the directory": ("os", "os.chdir('/usr')", "import os\nVALUE = os.getcwd()"),
    "the umask": ("os", "os.umask(0o77)", "import os\nVALUE = os.umask(0o22)"),
    "a precision": ("decimal", "decimal.getcontext().prec = 5",
                    "import decimal\nVALUE = str(decimal.Decimal(1) / 3)"),
    "the arguments": ("sys", "sys.argv.append('more')", "import sys\nVALUE = sys.argv[-1]"),
    "the arguments, taken away": ("sys", "del sys.argv[1:]", "import sys\nVALUE = sys.argv[1:]"),
    "the arguments, other ones": ("sys", "sys.argv = ['own']", "import sys\nVALUE = sys.argv"),
    "a limit": ("sys", "sys.setrecursionlimit(4321)", "import sys\nVALUE = sys.getrecursionlimit()"),
    "a limit of the kernel": ("resource", "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
                              "import resource\nVALUE = resource.getrlimit(resource.RLIMIT_CORE)"),
    "the locale": ("locale", "locale.setlocale(locale.LC_ALL, 'C')",
                   "import locale\nVALUE = locale.setlocale(locale.LC_ALL)"),
    "the zone": ("os, time", "os.environ['TZ'] = 'ABC3'; time.tzset()",
                 "import time\nVALUE = time.tzname"),
    "a patched draw": ("random", "random.random = lambda: 0.5",
                       "import random\nVALUE = random.random()"),
    "a patched generator": ("random", "random.Random.getrandbits = lambda *a: 4",
                            "import random\nVALUE = random.Random().getrandbits(9)"),
    "a profiler": ("sys", "sys.setprofile(lambda *a: None)",
                   "import sys\nVALUE = sys.getprofile() is None"),
    "a tracer": ("sys", "sys.settrace(lambda *a: None)", "import sys\nVALUE = sys.gettrace() is None"),
    "a seed": ("random", "random.seed(3)", "import random\n"
                                           "VALUE = random.random() == 0.23796462709189137"),
    "a start method": ("multiprocessing", "multiprocessing.set_start_method('spawn')",
                       "import multiprocessing\nVALUE = multiprocessing.get_start_method()"),
    "the collector": ("gc", "gc.disable()", "import gc\nVALUE = gc.isenabled()"),
    "an exit hook": ("atexit", "atexit.register(print, 'of the program')",
                     "import atexit\natexit.register(print, 'of the module')\nVALUE = 1"),
    "a stream": ("sys", "sys.stdout.reconfigure(errors='replace')",
                 "import sys\nVALUE = sys.stdout.errors"),
    "a file": ("os", "open(os.path.join(HERE, 'settings'), 'w').close()",
               "import os\nVALUE = os.path.exists(os.path.join(HERE, 'settings'))"),
}
# These a zygote does as well, where each call does them before it imports anything more.
AHEAD_TOO = "the search path", "a variable"
# Of these an import may be loaded ahead, as nothing of them is of the moment or of the process.
PURE = ("an attribute of a module", "an object behind it", "an attribute of an object", "a registry",
        "an attribute of a class", "a patched function", "a registry, by a decorator")


def indented(text):
    return "".join("    %s\n" % line for line in text.split("\n"))


# Who changes it: files, and whether the reader comes before all else then; None if that depends.
def by_the_script(imports, changes):
    return {"s.py": "import %s\n%s\nimport reader\n" % (imports, changes)}


def by_a_function_of_the_script(imports, changes):
    text = "import %s\ndef change():\n%schange()\nimport reader\n"
    return {"s.py": text % (imports, indented(changes))}


def by_a_function_of_a_module(imports, changes):
    text = "import %s\ndef change():\n%s" % (imports, indented(changes))
    return {"other.py": text, "s.py": "import other\nother.change()\nimport reader\n"}


def in_some_calls(imports, changes):
    text = "import sys, %s\nif sys.argv[1:]:\n%simport reader\n"
    return {"s.py": text % (imports, indented(changes))}


def in_a_class(imports, changes):
    return {"s.py": "import %s\nclass K:\n%simport reader\n" % (imports, indented(changes))}


def in_a_block(imports, changes):
    text = "import conf, %s\nwith conf.lock:\n%simport reader\n"
    return {"s.py": text % (imports, indented(changes))}


def by_a_package(imports, changes):
    return {"pk/__init__.py": "import %s\n%s\nfrom pk import child\n" % (imports, changes),
            "pk/child.py": "import reader\n", "s.py": "import pk, reader\n"}


def by_a_module(imports, changes):
    return {"other.py": "import %s\n%s\n" % (imports, changes), "s.py": "import other, reader\n"}


OF_THE_SCRIPT = (by_the_script, by_a_function_of_the_script, by_a_function_of_a_module, in_some_calls,
                 in_a_class, in_a_block)
OF_IMPORTS = by_a_package, by_a_module


class AModuleIsWhatItIsAtItsOwnMoment(Warmed):
    def see(self, number, state, writer):
        """Whether the zygote of such a program has loaded its reader."""
        imports, changes, reads = STATES[state]
        shows = "print(reader.VALUE)\n"
        files = writer(imports, changes)
        files["s.py"] += shows
        files["reader.py"] = reads + "\n"
        self.clean()
        run, zygote, hazards = self.warmed(files)
        self.clean()
        for words in ([], ["x"]) if writer is in_some_calls else (["x"],):
            run.argv[1:] = words
            cold = self.same_and_warm(run, zygote, [number % 3])
            self.assertEqual(cold.code, 0, cold)
        loaded = "reader" in loaded_by(zygote)
        zygote.close()
        return loaded

    def test_after_a_statement_of_the_script_it_is_imported_by_the_calls(self):
        cases = []
        for number, state in enumerate(STATES):
            writers = {by_the_script: 0, OF_THE_SCRIPT[number % len(OF_THE_SCRIPT)]: 1}
            # In turn, so that who runs every other case sees each state, and writers of both kinds.
            cases += [(number, state, writer) for writer in list(writers)[:: (-1) ** number]]
        for number, state, writer in shared(cases):
            with self.subTest(state, writer=writer.__name__):
                loaded = self.see(number, state, writer)
                if state not in AHEAD_TOO:
                    self.assertFalse(loaded, "it was loaded ahead")

    def test_after_an_import_it_is_loaded_ahead_unless_that_is_for_the_call(self):
        cases = []
        for number, state in enumerate(STATES):
            writers = OF_IMPORTS if state in PURE else [OF_IMPORTS[number % 2]]
            cases += [(number, state, writer) for writer in writers]
        for number, state, writer in shared(cases):
            with self.subTest(state, writer=writer.__name__):
                loaded = self.see(number, state, writer)
                if state in PURE:
                    self.assertTrue(loaded, "it was not loaded ahead")


CLOCK = "import time\nNOW = time.time()\n"


class HazardsAmongThem(Warmed):
    def hazards(self, ahead, later, hazards, **files):
        run, zygote, found = self.warmed(named(files))
        self.assertLessEqual(set(hazards), set(found))
        self.assertLessEqual(set(ahead), loaded_by(zygote))
        self.assertFalse(set(later) & loaded_by(zygote))
        return self.same_and_warm(run, zygote)

    def test_it_ends_there_and_what_the_hazard_begins_with_comes(self):
        self.hazards(["one", "inner", "deep"], ["two", "after", "three"], ["two"],
                     s="import one, two, three\nprint('done')\n", one="",
                     inner="import deep\n", deep="", after="", three="",
                     two="'text'\nimport inner\n" + CLOCK + "import after\n")

    def test_a_hazard_within_a_hazard(self):
        self.hazards(["inner"], ["two", "deep", "after", "three"], ["two", "deep"],
                     s="import two, three\nprint('done')\n", two="import deep, after\n", three="",
                     deep="import inner\n" + CLOCK, inner="", after="")

    def test_a_hazard_that_is_tried(self):
        self.hazards(["one"], ["two", "three"], ["two"],
                     s="import one\ntry:\n    import two\nexcept ImportError:\n    two = None\n"
                       "import three\nprint('done')\n", one="", two=CLOCK, three="")

    def test_a_package_that_sets_something_before_its_child(self):
        child = "import conf\nVALUE = conf.debug\n"
        firsts = {CLOCK + "import conf\n": [], "import conf\n" + CLOCK: ["conf"],
                  "import conf, clock\n": ["conf"]}
        changes = "conf.debug = True\n", "conf.mark()\n"
        ways = "from pk import child\n", "from . import child\n", "import pk.child\n"
        for first, imports, change in shared(itertools.product(firsts, ways, changes)):
            with self.subTest(first, change=change, imports=imports):
                hazards = ["pk", "clock"] if "clock" in first else ["pk"]
                cold = self.hazards(
                    firsts[first], ["pk", "pk.child"], hazards, pk_=first + change + imports,
                    pk_child=child, clock=CLOCK, s="import pk\nprint(pk.child.VALUE)\n")
                self.assertEqual(cold.out, b"True\n")

    def test_a_child_that_a_script_names_after_such_a_package(self):
        cold = self.hazards([], ["pk", "pk.child"], ["pk"],
                            pk_=CLOCK + "import conf\nconf.debug = True\n",
                            pk_child="import conf\nVALUE = conf.debug\n",
                            s="from pk import child\nprint(child.VALUE)\n")
        self.assertEqual(cold.out, b"True\n")


class AScriptThatIsEdited(Warmed):
    FILES = {"one.py": "", "two.py": "", "new.py": "", "pk/__init__.py": "", "pk/sub.py": "",
             "lazy.py": "def __getattr__(name):\n    if name != 'made': raise AttributeError(name)\n"
                        "    global made\n    import two\n    made = 1\n    return made\n",
             "tool.py": "def main():\n    import two\n    return 3\n"}
    BEGINS = ("import one, two", "from pk import sub\nimport two", "import pk.sub, two",
              "from lazy import made\nimport one", "import one\ntry:\n    import not_there\n"
              "except ImportError:\n    import two", "from pk import *\nimport one",
              "import os\nos.environ['A'] = 'b'\nimport one",
              "import one\nfrom tool import main\nmain()")

    def check_edit(self, before, after, is_warm):
        run, zygote, _ = self.warmed({**self.FILES, "s.py": before})
        waiting = zygote.copy(True)
        self.write("s.py", after)
        cold = run.cold()
        outcomes = [run.warm(zygote, paid) for paid in (0, 1, 2)]
        for outcome in outcomes:
            self.assertEqual(repr(cold), repr(outcome))
            kinds = [kind for kind, _, _ in outcome.frames[:1]]
            self.assertEqual(kinds, [FINISHED if is_warm else EXECUTES], after)
            if not is_warm:
                self.assertEqual(outcome.frames[0][1][-1], EDITED)
        channel, pidfd, _ = waiting
        self.assertEqual(run.give(channel, pidfd)[0].out, cold.out)
        channel.close()
        os.close(pidfd)
        zygote.close()

    def test_what_begins_as_before_is_warm_with_its_new_text(self):
        for begins in shared(self.BEGINS):
            with self.subTest(begins):
                after = "# more\n" + begins + "\nprint('new')\n"
                self.check_edit(begins + "\nprint('old')\n", after, True)

    def test_what_imports_more_behind_is_warm(self):
        self.check_edit("import one\nprint('old')\n", "import one\nimport new\nprint('new')\n", True)

    def test_what_begins_otherwise_is_executed_anew(self):
        old = "import one, two\nprint('old')\n"
        texts = ("import two, one\n", "import one\n", "import new, one, two\n", "",
                 "import one\nimport os\nprint(1)\nimport two\n", "import one\nif 1: import two\n",
                 "import one\ndef f(): import two\n", "import one.two\n",
                 "import sys\nsys.argv.append(1)\nimport one, two\n", "import one\nimport two(\n")
        for text in shared(texts):
            with self.subTest(text):
                if text == "import one\nif 1: import two\n":
                    # It is known that it always does.
                    self.check_edit(old, text + "print('new')\n", True)
                    continue
                self.check_edit(old, text + "print('new')\n", False)

    def test_what_sets_something_before_is_executed_anew(self):
        old = "import conf\nimport reader\nprint(reader.VALUE)\n"
        for sets in ("conf.debug = True", "conf.options['a'] = 1", "setattr(conf, 'debug', 2)"):
            with self.subTest(sets):
                self.furnish({"reader.py": LOOKS})
                self.check_edit(old, old.replace("\n", "\n%s\n" % sets, 1), False)

    def test_a_function_that_it_calls_begins_otherwise(self):
        old = "import one\ndef main():\n    import two\nmain()\n"
        self.check_edit(old, old.replace("import two", "import new"), False)
        self.check_edit(old, old + "print('new')\n", True)


class WhatIsImportedLater(Warmed):
    SCRIPT = "import conf\nconf.debug = True\nimport later\nprint(later.VALUE, later.__file__, " \
             "later.f.__code__.co_filename, later.__cached__, later.__spec__.origin)\n"
    LATER = "import conf\nVALUE = %r, conf.debug\ndef f(): pass\n"

    def test_it_is_as_cold_and_as_it_is_now(self):
        run, zygote, _ = self.warmed({"s.py": self.SCRIPT, "later.py": self.LATER % "old"})
        self.assertNotIn("later", loaded_by(zygote))
        self.assertIn(b"old", self.same_and_warm(run, zygote).out)
        self.write("later.py", self.LATER % "new and longer")
        self.assertIn(b"new", self.same_and_warm(run, zygote).out)
        os.unlink(os.path.join(self.folder, "later.py"))
        self.assertIn(b"ModuleNotFoundError", self.same_and_warm(run, zygote).err)

    def test_another_of_its_name_before_it_is_found(self):
        text = "import conf, sys\nif sys.argv[1:]: sys.path.insert(0, sys.argv[1])\nimport twin\n" \
               "print(twin.VALUE)\n"
        run, zygote, _ = self.warmed({"s.py": text}, os.path.join(self.folder, "vendor"))
        self.assertNotIn("twin", loaded_by(zygote))
        self.assertEqual(self.same_and_warm(run, zygote).out, b"vendored\n")
        del run.argv[1:]
        self.assertEqual(self.same_and_warm(run, zygote).out, b"of the program\n")

    def test_it_may_be_imported_again(self):
        text = "import conf, sys\nconf.debug = True\nimport later\ndel sys.modules['later']\n" \
               "first = later\nimport later, importlib\nprint(first is later, later.VALUE)\n" \
               "importlib.reload(later)\nprint(first.f.__code__ is later.f.__code__)\n"
        run, zygote, _ = self.warmed({"s.py": text, "later.py": self.LATER % "old"})
        self.same_and_warm(run, zygote)

    def test_who_is_told_of_calls_is_told_the_same(self):
        text = "import conf, sys\nconf.debug = True\nimport later, more\nseen = []\n" \
               "%s(lambda frame, event, _: seen.append((event, frame.f_code.co_name)))\n" \
               "import twin\n%s(None)\nprint(seen, later.VALUE)\n"
        for sets in ("sys.setprofile", "sys.settrace"):
            with self.subTest(sets):
                files = {"s.py": text % (sets, sets), "later.py": self.LATER % "old", "more.py": ""}
                run, zygote, _ = self.warmed(files)
                self.same_and_warm(run, zygote)


if __name__ == "__main__":
    unittest.main()
