"""A directory that a module makes while it is imported is each call's own, and is made ahead of
none: where its name can be followed the module is loaded ahead, and elsewhere calls import it.
"""

import os
import re
import resource
import shutil
import unittest

from test_worker import InAFolder

HEAD = ("import atexit, os, shutil, stat, sys, tempfile\n"
        "HERE = os.path.dirname(os.path.abspath(__file__))\n"
        "def show(*more): print(TMP, oct(os.lstat(TMP).st_mode), *more)\n")
MADE = "TMP = tempfile.mkdtemp()\natexit.register(shutil.rmtree, TMP)\n"
# How it is made and kept, so that it is found again; what is shown.
KEPT = {
    "among its names": MADE + "SHOW = show",
    "under two names": MADE + "ALSO = TMP\nSHOW = lambda: show(ALSO is TMP)",
    "in a list and a dictionary": MADE + "ALSO, MORE = [1, TMP, TMP], {'dir': TMP}\n"
                                         "SHOW = lambda: show(ALSO[1:] == [TMP] * 2, "
                                         "MORE['dir'] is TMP)",
    "in a place of the module's own": "TMP = tempfile.mkdtemp('s', 'p', dir=HERE + '/d')\n"
                                      "atexit.register(shutil.rmtree, TMP)\n"
                                      "SHOW = lambda: show(TMP.startswith(HERE + '/d/p'), TMP[-1])",
    "with the process's number": "def make():\n"
                                 "    prefix = 'local-%s-' % os.getpid()\n"
                                 "    return tempfile.mkdtemp(prefix=prefix, dir=HERE + '/d')\n"
                                 "TMP = make()\natexit.register(shutil.rmtree, TMP)\n"
                                 "SHOW = lambda: show(str(os.getpid()) in TMP)",
    "with the number, in another way": "TMP = tempfile.mkdtemp(prefix=f'local-{os.getpid()}-')\n"
                                       "atexit.register(shutil.rmtree, TMP)\n"
                                       "SHOW = lambda: show(str(os.getpid()) in TMP)",
    "as a text of another kind": "class Tagged(str):\n    __slots__ = 'tag', 'more'\n"
                                 "class Loose(str): pass\n"
                                 + MADE + "ALSO, LOOSE = Tagged(TMP), Loose(TMP)\n"
                                 "ALSO.tag, LOOSE.tag = 'here', 1\nSHOW = lambda: show(type(ALSO), "
                                 "ALSO == TMP == LOOSE, ALSO.tag, hasattr(ALSO, 'more'), "
                                 "vars(LOOSE))",
    "for a function at the exit, by name": "TMP = tempfile.mkdtemp()\n"
                                           "atexit.register(shutil.rmtree, path=TMP)\nSHOW = show",
    "hooks in their order": "atexit.register(print, 'last')\n" + MADE +
                            "atexit.register(lambda: print('second', os.path.exists(TMP)))\n"
                            "def never(): print('never')\natexit.register(never)\n"
                            "atexit.unregister(never)\n"
                            "def first(): print('first')\natexit.register(first)\nSHOW = show",
    "one that is inside of another's folder": MADE + "MORE = tempfile.mkdtemp(prefix='x')\n"
                                              "atexit.register(os.rmdir, MORE)\n"
                                              "SHOW = lambda: show(os.path.isdir(MORE), MORE != TMP)",
}
# Something of its name is where it cannot be followed, or somebody counts on the directory.
UNCLEAR = {
    "in another text": MADE + "ALSO = f'{TMP}/x'\nSHOW = lambda: show(ALSO == TMP + '/x')",
    "in another path": MADE + "ALSO = os.path.join(TMP, 'x')\n"
                              "SHOW = lambda: show(ALSO == TMP + '/x')",
    "a part of it": MADE + "ALSO = os.path.basename(TMP)\nSHOW = lambda: show(TMP.endswith(ALSO))",
    "where it is": MADE + "ALSO = os.path.dirname(TMP)\nSHOW = lambda: show(TMP.startswith(ALSO))",
    "in capitals": MADE + "ALSO = TMP.upper()\nSHOW = lambda: show(ALSO == TMP.upper())",
    "as bytes": MADE + "ALSO = TMP.encode()\nSHOW = lambda: show(ALSO == TMP.encode())",
    "as a path": "import pathlib\n" + MADE + "ALSO = pathlib.Path(TMP)\nKEPT = ALSO / 'x', str(ALSO)\n"
                                             "SHOW = lambda: show(str(ALSO) == TMP)",
    "in a set": MADE + "ALSO = {TMP}\nSHOW = lambda: show(TMP in ALSO)",
    "in a tuple": MADE + "ALSO = TMP, 1\nSHOW = lambda: show(ALSO[0] == TMP)",
    "as a key": MADE + "ALSO = {TMP: 1}\nSHOW = lambda: show(ALSO[TMP])",
    "in a class": MADE + "class K:\n    ALSO = TMP\nSHOW = lambda: show(K.ALSO == TMP)",
    "in an object": MADE + "class K:\n    __slots__ = 'a'\nALSO = K()\nALSO.a = TMP\n"
                           "SHOW = lambda: show(ALSO.a == TMP)",
    "in a closure": MADE + "def f(a): return lambda: a\nALSO = f(TMP)\n"
                           "SHOW = lambda: show(ALSO() == TMP)",
    "as a default": MADE + "def f(a=TMP): return a\nSHOW = lambda: show(f() == TMP)",
    "in a bound method": MADE + "ALSO = TMP.startswith\nSHOW = lambda: show(ALSO(TMP))",
    "in code": MADE + "exec('def f(): return %r' % TMP)\nSHOW = lambda: show(f() == TMP)",
    "in a file in memory": "import io\n" + MADE + "ALSO = io.StringIO(TMP)\n"
                           "SHOW = lambda: show(ALSO.getvalue() == TMP)",
    "in the environment": MADE + "os.environ['MINE'] = TMP\n"
                                 "SHOW = lambda: show(os.environ['MINE'] == TMP)",
    "in an object that C code made": "import re\n" + MADE + "ALSO = re.compile(TMP)\nre.purge()\n"
                                     "SHOW = lambda: show(bool(ALSO.match(TMP)))",
    "in the search path": MADE + "sys.path.append(TMP + '/lib')\n"
                                 "SHOW = lambda: show(TMP + '/lib' in sys.path)",
    "whether it is there": MADE + "ALSO = os.path.isdir(TMP)\nSHOW = lambda: show(ALSO)",
    "what is in it": MADE + "ALSO = os.listdir(TMP)\nSHOW = lambda: show(ALSO)",
    "a file in it": MADE + "open(os.path.join(TMP, 'x'), 'w').close()\n"
                           "SHOW = lambda: show(os.listdir(TMP))",
    "one in it": MADE + "MORE = tempfile.mkdtemp(dir=TMP)\n"
                        "SHOW = lambda: show(MORE.startswith(TMP + '/'))",
    "of `tempfile`'s own class": "KEPT = tempfile.TemporaryDirectory()\nTMP = KEPT.name\n"
                                 "SHOW = show",
    "as bytes from the beginning": "TMP = tempfile.mkdtemp(dir=os.fsencode(HERE) + b'/d')\n"
                                   "atexit.register(shutil.rmtree, TMP)\nSHOW = show",
    "with a number that is kept": "PID = os.getpid()\nTMP = tempfile.mkdtemp(prefix='n%d-' % PID)\n"
                                  "atexit.register(shutil.rmtree, TMP)\n"
                                  "SHOW = lambda: show(PID == os.getpid(), str(PID) in TMP)",
    "with a prefix that is kept": "PRE = 'n%s-' % os.getpid()\nTMP = tempfile.mkdtemp(prefix=PRE)\n"
                                  "atexit.register(shutil.rmtree, TMP)\n"
                                  "SHOW = lambda: show(PRE in TMP, str(os.getpid()) in PRE)",
    "with a remainder": "REST = 1000000 % os.getpid()\nTMP = tempfile.mkdtemp()\n"
                        "atexit.register(shutil.rmtree, TMP)\n"
                        "SHOW = lambda: show(REST == 1000000 % os.getpid())",
}
# As `ansible` has it.
UNIQUE = ("import secrets, uuid\ncur_id = 0\nnode_mac = ('%012x' % uuid.getnode())[:12]\n"
          "random_int = ('%08x' % secrets.randbelow(2 ** 32))[:8]\n")


class DirectoriesOfImports(InAFolder):
    def setUp(self):
        super().setUp()
        self.temporary = os.path.join(self.folder, "temporary")
        for name in ("d", "temporary"):
            os.mkdir(os.path.join(self.folder, name))
        self.env = dict(os.environ, TMPDIR=self.temporary)
        self.known = {}

    def left(self):
        return sorted(os.listdir(self.temporary) + os.listdir(os.path.join(self.folder, "d")))

    def prepare(self, *texts):
        for number, text in enumerate(texts):
            self.write("part%d.py" % number, HEAD + text + "\n")
        self.write("s.py", "import sys\nimport part0 as part\npart.SHOW()\n")
        return ["part%d" % number for number in range(len(texts))]

    def warmed(self, *modules):
        more = ["tempfile", "atexit", "shutil", "io", "pathlib", "re", "stat"]
        return self.settled([*modules, *more], env=self.env)

    def directory(self, outcome):
        """Where a call's was, and the outcome without that."""
        self.assertEqual(outcome.code, 0, outcome)
        found = re.search(rb"b?'?(/[^ ']+)", outcome.out).group(1)
        return found, repr(outcome).replace(os.fsdecode(found), "TMP")

    def each_call_has_its_own(self, zygote):
        run = self.run_of("s.py", env=self.env)
        cold, expected = self.directory(run.cold())
        seen = {cold}
        for paid in (False, True, True):
            own, told = self.directory(run.warm(zygote, paid))
            self.assertEqual(told, expected)
            self.assertEqual(os.path.dirname(own), os.path.dirname(cold))
            seen.add(own)
        self.assertEqual(len(seen), 4, seen)
        self.assertEqual(self.left(), [], "somebody left something behind")

    def test_where_its_name_can_be_followed_it_is_loaded_ahead(self):
        for what, text in KEPT.items():
            with self.subTest(what):
                zygote, hazards = self.warmed(*self.prepare(text))
                self.assertEqual((hazards, self.left()), ({}, []))
                self.each_call_has_its_own(zygote)

    def test_where_it_cannot_be_followed_calls_import_it(self):
        for what, text in UNCLEAR.items():
            with self.subTest(what):
                zygote, hazards = self.warmed(*self.prepare(text))
                self.assertIn("part0", hazards)
                self.assertEqual(self.left(), [], "a zygote made it")
                self.each_call_has_its_own(zygote)

    def test_a_call_that_does_not_import_it_makes_none(self):
        modules = self.prepare(MADE + "SHOW = show", "import part0\n")
        scripts = {
            "only where it is asked for": "import sys\nif sys.argv[1:]: import %s\n",
            "after something else": "import sys\nprint(1)\nimport %s\n",
            "in a function": "def main(): import %s\nmain()\n",
            "after what each call imports": "import each, %s\n",
            "in a way of its own": "import importlib\nimportlib.import_module('%s')\n",
        }
        self.write("each.py", "import os\nos.close(os.open(__file__ + '.x', os.O_CREAT | 1))\n")
        for what, script in scripts.items():
            for module in modules:
                with self.subTest(what, module=module):
                    self.write("s.py", script % module + "import os\nprint(len(os.listdir(%r)))\n"
                               % self.temporary)
                    zygote, hazards = self.warmed(*modules, "each")
                    self.assertLessEqual({"part0"}, set(hazards))
                    for words in ([], ["x"]):
                        self.same(self.run_of("s.py", *words, env=self.env), zygote)
                    self.assertEqual(self.left(), [])

    def test_a_script_that_has_been_edited_makes_what_it_makes_now(self):
        zygote, hazards = self.warmed(*self.prepare(MADE + "SHOW = show"))
        self.assertEqual(hazards, {})
        channel, pidfd, _ = zygote.copy(True)
        self.write("s.py", "import os\nprint(os.listdir(%r))\n" % self.temporary)
        run = self.run_of("s.py", env=self.env)
        run.give(channel, pidfd)
        zygote.gone()
        channel.close()
        os.close(pidfd)
        self.assertEqual(self.same(run, zygote).out, b"[]\n")
        self.assertEqual(self.left(), [])

    def test_it_is_where_the_caller_says_and_as_the_caller_masks_it(self):
        zygote, _ = self.warmed(*self.prepare(MADE + "SHOW = show"))
        elsewhere = os.path.join(self.folder, "elsewhere")
        os.mkdir(elsewhere)
        for paid in (False, True):
            run = self.run_of("s.py", env=dict(self.env, TMPDIR=elsewhere),
                              world={"umask": 0o277})
            own, told = self.directory(run.warm(zygote, paid))
            self.assertEqual(os.path.dirname(own), os.fsencode(elsewhere))
            self.assertIn("0o40500", told)
            self.assertEqual(told, self.directory(run.cold())[1])

    def test_it_is_gone_and_nothing_is_left_of_copies_that_only_wait(self):
        zygote, _ = self.warmed(*self.prepare(MADE + "SHOW = show"))
        channel, pidfd, _ = zygote.copy(True)
        self.assertEqual(self.left(), [])
        channel.close()
        zygote.gone()
        os.close(pidfd)
        self.assertEqual(self.left(), [])

    def test_whoever_can_make_none_is_told_as_in_a_cold_run(self):
        text = "try:\n    TMP = tempfile.mkdtemp()\nexcept FileNotFoundError as error:\n" \
               "    sys.exit(7)\nSHOW = show"
        zygote, hazards = self.warmed(*self.prepare(text))
        self.assertEqual(hazards, {})
        no_room = {"limits": {resource.RLIMIT_FSIZE: (0, resource.RLIM_INFINITY)}}
        run = self.run_of("s.py", env=self.env, world=no_room)
        self.assertEqual((run.cold().code, run.warm(zygote, False).code,
                          run.warm(zygote, True).code), (7, 7, 7))

    def test_a_folder_that_has_gone_is_missed_as_in_a_cold_run(self):
        text = "MORE = tempfile.mkdtemp()\nTMP = tempfile.mkdtemp(dir=HERE + '/d')\nSHOW = show"
        zygote, hazards = self.warmed(*self.prepare(text))
        self.assertEqual(hazards, {})
        os.rmdir(os.path.join(self.folder, "d"))
        run = self.run_of("s.py", env=self.env)
        for outcome in (run.cold(), run.warm(zygote, False), run.warm(zygote, True)):
            self.assertIn(b"FileNotFoundError", outcome.err)
            self.assertIn(b"tempfile.mkdtemp(dir=HERE", outcome.err)
        self.assertEqual(len(os.listdir(self.temporary)), 3, "one of each run that failed")

    def test_a_number_by_chance_that_is_known_is_each_calls_own(self):
        os.makedirs(os.path.join(self.folder, "ansible/utils"))
        for name in ("ansible/__init__.py", "ansible/utils/__init__.py"):
            self.write(name, "")
        names = ["ansible", "ansible.utils", "ansible.utils.vars", "user"]
        more = ["tempfile", "atexit", "secrets", "uuid"]
        self.write("s.py", "import user\nprint(user.vars.random_int, user.SHOW())\n")
        cases = {
            "held by its module": ("import ansible.utils.vars as vars\nSHOW = lambda: 1\n", False),
            "held elsewhere too": ("import ansible.utils.vars as vars\nKEPT = vars.random_int\n"
                                   "SHOW = lambda: KEPT == vars.random_int\n", False),
            "a part of it": ("import ansible.utils.vars as vars\nKEPT = 'x' + vars.random_int\n"
                             "SHOW = lambda: KEPT == 'x' + vars.random_int\n", True),
        }
        for what, (text, imported) in cases.items():
            for drawn in (UNIQUE, UNIQUE + "more = secrets.token_hex()\n",
                          UNIQUE + "cur_id += 1\n"):
                with self.subTest(what, drawn=drawn):
                    self.write("ansible/utils/vars.py", drawn)
                    self.write("user.py", text)
                    zygote, hazards = self.settled(names + more, env=self.env)
                    self.assertEqual("user" in hazards, imported or drawn != UNIQUE, hazards)
                    run = self.run_of("s.py", env=self.env)
                    seen = [run.warm(zygote, paid).out.split() for paid in (False, True, True)]
                    self.assertEqual(len({first for first, _ in seen}), 3, seen)
                    self.assertTrue(all(last in (b"1", b"True") for _, last in seen), seen)

    def test_a_module_that_is_run_by_its_name_makes_its_own(self):
        self.write("part0.py", HEAD + MADE + UNIQUE)
        self.write("tool.py", "import part0\npart0.show()\n")
        zygote, hazards = self.settled(["part0", "tempfile", "atexit", "secrets", "uuid"],
                                       env=self.env, target="tool", kind=1)
        self.assertIn("part0", hazards)
        run = self.run_of("tool", env=self.env, kind=1)
        self.assertEqual(len({self.directory(run.warm(zygote, paid))[0]
                              for paid in (False, True)}), 2)
        self.assertEqual(self.left(), [])

    def test_nobody_can_tell_afterwards(self):
        self.prepare(MADE + "SHOW = show")
        self.write("s.py", "import atexit, gc, part0, tempfile, sys\n"
                   "print(atexit.register, atexit.unregister, tempfile.mkdtemp.__code__.co_name, "
                   "atexit._ncallbacks(), type(part0.TMP), sys.getrefcount(part0.TMP), "
                   "[type(each) for each in gc.get_referrers(part0.TMP) if each is not vars(part0)])\n")
        zygote, hazards = self.warmed("part0", "gc")
        self.assertEqual(hazards, {})
        run = self.run_of("s.py", env=self.env)
        cold = run.cold()
        for paid in (False, True):
            self.assertEqual(repr(run.warm(zygote, paid)), repr(cold))
        shutil.rmtree(self.temporary)


if __name__ == "__main__":
    unittest.main()
