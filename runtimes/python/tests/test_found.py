"""What modules, start-up code and ends of programs find is as in a cold run.

Each case is a module that keeps what it found; the script shows it. It is warmed as the daemon
does, from a zygote that had other arguments and nothing on standard input.
"""

import os
import sys
import unittest

from harness import shared
from test_worker import InAFolder, loaded_by

FOUND = {
    "the number of a file": "fd = os.open('/dev/null', 0)\nos.close(fd)\nVALUE = fd",
    "the number of a socket": "import socket\nwith socket.socket() as s: VALUE = s.fileno()",
    "the class of a stream's file": "import io, sys\nraw = sys.stdin.buffer.raw\n"
                                    "VALUE = (raw.__class__.__name__, str(type(raw)),"
                                    " raw.__class__ is io.FileIO, type(raw).__module__, repr(raw),"
                                    " type(raw).__doc__)",
    "the kind of a function": "VALUE = type(os.stat).__name__, repr(os.getpid)",
    "all arguments as text": "import sys\nVALUE = str(sys.argv)",
    "all arguments in another list": "import sys\nVALUE = sys.argv * 1, sys.argv > ['a']",
    "a method of the arguments": "import sys\nVALUE = repr(sys.argv.append)[:30]",
    "the names of the script": "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\n"
                               "VALUE = sorted(f.f_globals)",
    "the line of the script": "import traceback\nVALUE = traceback.format_stack()[0]",
    "an attribute of a file beside the caller": "try: VALUE = os.getxattr('lies.py', 'user.none')\n"
                                                "except OSError as error: VALUE = str(error)",
    "how much there is to read": "import fcntl, termios\n"
                                 "VALUE = fcntl.ioctl(0, termios.FIONREAD, bytes(4))",
    "a mapped standard input": "import mmap\nVALUE = mmap.mmap(0, 0, prot=mmap.PROT_READ)[:3]",
    "an archive beside the caller": "import zipimport\n"
                                    "VALUE = zipimport.zipimporter('a.zip').archive",
    "a module beside the caller": "from importlib.machinery import PathFinder\n"
                                  "VALUE = PathFinder.find_spec('lies', ['.']) is not None",
}
if sys.version_info < (3, 11):
    # Frames cannot be hidden there: below the script's is one of ours.
    del FOUND["the names of the script"], FOUND["the line of the script"]
# What the whole of a program's objects tells, which hob's are among.
OBJECTS = """
import gc, sys
modules = [each for each in gc.get_objects() if type(each) is type(sys)]
print(sum(each.__name__ == "__main__" for each in modules))
kinds = [each.__module__ for each in gc.get_objects() if isinstance(each, type)]
print([each for each in kinds if "hob" in str(each)])
"""
# The order in which they end is decided by the collector, and by what it has done before.
ENDS = """
class Kind:
    def __init__(self, word):
        self.word = word

    def __del__(self):
        print("del", self.word)

%s
print("main")
"""
ENDING = {
    "of a list": "held = [Kind(word) for word in 'abcdef']",
    "of a cycle": "class Node: pass\nnode = Node()\nnode.self = node\n"
                  "node.held = [Kind(word) for word in 'abcdef']",
    "of a cycle that was dropped": "class Node: pass\nnode = Node()\nnode.self = node\n"
                                   "node.held = [Kind(word) for word in 'abcdef']\ndel node",
}
# Says at its end whether the notes were there when the interpreter first flushed it.
FLUSHED = """
import os, sys

class Out:
    def __init__(self, stream):
        self.stream, self.seen = stream, []
        self.write = stream.write

    def flush(self):
        self.seen.append(os.path.exists("notes"))
        self.stream.flush()

sys.stdout = out = Out(sys.stdout)
import atexit
atexit.register(lambda: print(out.seen))
"""


class WhatAModuleFinds(InAFolder):
    def test_it_is_as_cold(self):
        self.write("lies.py", "")
        with open(os.path.join(self.folder, "a.zip"), "wb") as file:
            # An archive with nothing in it.
            file.write(b"PK\5\6" + bytes(18))
        self.write("s.py", "import part\nprint(part.VALUE)\n")
        for what, text in shared(FOUND.items()):
            with self.subTest(what):
                self.write("part.py", "import os\n" + text + "\n")
                zygote, hazards = self.settled(["part"], cwd="/")
                notes = zygote.notes
                if b"W" in notes:
                    # The daemon starts it anew in the caller's directory.
                    zygote.close()
                    zygote, hazards = self.settled(["part"])
                run = self.run_of("s.py", "x", stdin=b"some text\n")
                cold = run.cold()
                self.assertEqual(cold.code, 0, cold)
                for paid in (0, 1):
                    self.assertEqual(repr(cold), repr(run.warm(zygote, paid)), hazards)
                zygote.close()

    def test_among_all_objects_none_is_named_as_ours(self):
        self.write("s.py", OBJECTS)
        run, zygote = self.run_of("s.py"), self.zygote("s.py", "gc")
        self.same(run, zygote)
        self.assertEqual(repr(run.cold()), repr(run.learn(self.folder + "/notes")))


class AProfilingRun(InAFolder):
    def test_objects_end_in_the_order_in_which_they_end_cold(self):
        for what, text in ENDING.items():
            with self.subTest(what):
                self.write("s.py", ENDS % text)
                run = self.run_of("s.py")
                cold = run.cold()
                self.assertEqual(cold.out.count(b"del"), 6, cold)
                self.assertEqual(repr(cold), repr(run.learn(self.folder + "/notes")))

    def test_what_was_printed_is_out_before_notes_are_left(self):
        self.write("s.py", FLUSHED)
        learned = self.run_of("s.py").learn(self.folder + "/notes")
        self.assertTrue(learned.out.startswith(b"[False"), learned)
        self.assertTrue(os.path.exists(self.folder + "/notes"))

    @unittest.skipIf(sys.version_info < (3, 11), "frames cannot be hidden there")
    def test_start_up_code_finds_no_frame_of_ours(self):
        self.write("lib/sitecustomize.py", "import builtins, traceback\n"
                   "builtins.SEEN = [each.name for each in traceback.extract_stack()]\n")
        self.write("s.py", "print(SEEN)\n")
        env = dict(os.environ, PYTHONPATH=self.folder + "/lib")
        run = self.run_of("s.py", env=env)
        self.assertEqual(repr(run.cold()), repr(run.learn(self.folder + "/notes")))

    def test_what_start_up_code_has_put_into_the_main_module_is_there(self):
        self.write("lib/sitecustomize.py", "import __main__\n__main__.PUT = 1\n")
        self.write("s.py", "print(PUT, list(globals()))\n")
        env = dict(os.environ, PYTHONPATH=self.folder + "/lib")
        run = self.run_of("s.py", env=env)
        self.assertEqual(repr(run.cold()), repr(run.learn(self.folder + "/notes")))


# Each reads a volatile variable while it is imported. It is warmed as the daemon does: a zygote is
# told the variable, and is replaced by one without the modules that it named.
READERS = {
    "by its name": "import os\nVALUE = os.environ.get('MOMENT')",
    "as bytes": "import os\nVALUE = os.environb.get(b'MOMENT')",
    "among all": "import os\nVALUE = [v for n, v in os.environ.items() if n == 'MOMENT']",
    "by how many there are": "import os\nVALUE = len(os.environ) - len([1 for _ in os.environ]), "
                             "os.environ['MOMENT']",
    "in a module that it imports": "from inner import VALUE",
    "in a function that it calls": "import later\nVALUE = later.get('MOMENT')",
}
OTHERS = {
    "inner.py": "import os\nVALUE = os.environ['MOMENT']\n",
    "later.py": "import os\ndef get(name): return os.environ.get(name)\n",
    "steady.py": "import os\nVALUE = os.environ.get('STEADY')\n",
}


class ReadersOfVolatileVariables(InAFolder):
    def setUp(self):
        super().setUp()
        for name, text in OTHERS.items():
            self.write(name, text)
        self.write("s.py", "import steady, reader\nprint(reader.VALUE, steady.VALUE)\n")

    def notes(self, zygote, tag):
        return {os.fsdecode(note[1:]) for note in zygote.notes if note[:1] == tag}

    def test_each_call_reads_its_own(self):
        for what, text in shared(READERS.items()):
            with self.subTest(what):
                self.write("reader.py", text + "\n")
                env = dict(os.environ, MOMENT="of the zygote", STEADY="1")
                options = {"env": env, "volatile": ["MOMENT"]}
                zygote, hazards = self.settled(["steady", "reader"], allowed=["inner", "later"],
                                               **options)
                self.assertEqual(hazards["reader"], "variable")
                self.assertNotIn("steady", hazards)
                read = self.notes(zygote, b"E")
                self.assertIn("STEADY", read)
                self.assertFalse(read & {"MOMENT", "*"}, "it would be part of the key")
                for moment in ("one", "two"):
                    run = self.run_of("s.py", env=dict(env, MOMENT=moment))
                    self.assertEqual(run.warm(zygote, 1).out, run.cold().out)

    def test_without_being_told_it_is_part_of_the_key(self):
        self.write("reader.py", READERS["by its name"] + "\n")
        zygote = self.zygote("s.py", "steady", "reader", env=dict(os.environ, MOMENT="1"))
        self.assertIn("MOMENT", self.notes(zygote, b"E"))
        self.assertFalse(self.notes(zygote, b"H"))

    def test_what_start_up_code_reads_is_part_of_the_key_all_the_same(self):
        self.write("sitecustomize.py", "import os\nos.environ.get('MOMENT')\n")
        env = dict(os.environ, MOMENT="1", PYTHONPATH=self.folder)
        zygote = self.zygote("s.py", "steady", env=env, volatile=["MOMENT"])
        self.assertIn("MOMENT", self.notes(zygote, b"E"))


class VariablesThatAScriptSets(InAFolder):
    """Who reads one is imported after it is set: ahead where each call sets it to what the text says,
    and elsewhere by the calls."""

    SURE = ("os.environ['MOMENT'] = 'own'", "os.environ.setdefault('MOMENT', 'own')",
            "os.environ.setdefault('ABSENT', 'own')")
    SETS = ("os.environ['MOMENT'] = 'own' * 2", "os.environ.update(MOMENT='own')",
            "os.environ.update({'MOMENT': 'own'})", "os.environb[b'MOMENT'] = b'own'",
            "os.environ['MOMENT'] = str(len(os.environ))", "os.environ |= {'MOMENT': 'own', 'X': 'y'}",
            "del os.environ['MOMENT']", "os.environ.pop('MOMENT')",
            "os.putenv('MOMENT', 'own')")
    WHERE = ("def f():\n    %s\nif sys.argv[1:]: f()", "class K:\n    %s",
             "for _ in 'a':\n    %s", "with open(__file__):\n    %s")
    SHOWS = "try: import inner; print(inner.VALUE)\nexcept KeyError: print('unset')\n"

    def check(self, text, expected):
        self.write("s.py", text)
        env = dict(os.environ, MOMENT="of the caller")
        zygote = self.zygote("s.py", allowed=["inner"], env=env)
        self.assertEqual(loaded_by(zygote) & {"inner"}, expected, text)
        for words in ([], ["x"]):
            self.same(self.run_of("s.py", *words, env=env), zygote)

    def test_what_reads_them_is_left_to_each_call(self):
        self.write("inner.py", OTHERS["inner.py"])
        texts = list(self.SETS) + ["def f():\n    %s\nf()" % sets for sets in self.SETS]
        texts += [where % sets for where in self.WHERE for sets in self.SURE[:1]]
        for text in shared(texts):
            with self.subTest(text):
                self.check("import os, sys\n%s\n" % text + self.SHOWS, set())

    def test_what_reads_those_that_are_sure_is_loaded_ahead(self):
        self.write("inner.py", OTHERS["inner.py"])
        for text in self.SURE:
            with self.subTest(text):
                self.check("import os, sys\n%s\n" % text + self.SHOWS, {"inner"})

    def test_who_goes_through_all_too(self):
        self.write("inner.py", "import os\nVALUE = sorted(os.environ.items())\n")
        self.check("import os\nos.environ.update(OTHER='x')\n" + self.SHOWS, set())
        self.check("import os\nos.environ['OTHER'] = 'x'\n" + self.SHOWS, {"inner"})

    def test_what_is_imported_before_is_loaded_ahead(self):
        self.write("inner.py", OTHERS["inner.py"])
        self.check("import os, inner\nos.environ['MOMENT'] = 'own'\n" + self.SHOWS, {"inner"})
        self.check("import inner\nimport os\ndef f(): os.environ['MOMENT'] = 'own'\nf()\n"
                   + self.SHOWS, {"inner"})


if __name__ == "__main__":
    unittest.main()
