"""What imports open, list and start besides modules is noted, and nobody can tell afterwards."""

import os
import sys
import unittest

from test_worker import InAFolder

TELLS_OF_HOOKS = """
import sys
import timeit
alone = min(timeit.repeat("id(x)", "x = 1", number=2000, repeat=20))
seen = []
sys.addaudithook(lambda event, arguments: seen.append(event))
open("/dev/null").close()
hooked = min(timeit.repeat("id(x)", "x = 1", number=2000, repeat=20))
print(seen[0], "open" in seen, alone < hooked / 1.5)
"""


class WhatImportsReadIsNoted(InAFolder):
    def notes(self, text, *before):
        for name in before:
            self.write(name, "old\n")
        self.write("s.py", "import part\n")
        self.write("part.py", "import os\n%s\n" % text)
        worker = self.zygote("s.py", "part")
        inside = self.folder.encode() + b"/"
        heads = inside, b"f" + inside, b"d" + inside, b"-" + inside, b"part"
        return [
            note[:1].decode() + note[1:].replace(inside, b"").decode()
            for note in worker.notes
            if note[:1] in b"ACFLH" and note[1:].startswith(heads)
        ]

    def test_a_file_that_is_opened(self):
        for opens in (
            "open('c')",
            "open(b'c', 'rb')",
            "os.open('c', os.O_RDONLY)",
            "import io; io.open_code(os.path.abspath('c'))",
            "import pathlib; pathlib.Path('c').read_text()",
        ):
            notes = self.notes(opens + ".close()" * opens.startswith("open"), "c")
            self.assertEqual([note for note in notes if note[0] in "FCL"],
                             ["Fpart.py", "Cc"], opens)

    def test_a_file_that_is_not_there(self):
        self.assertIn("Cc", self.notes("try: open('c')\nexcept OSError: pass"))

    def test_a_file_that_is_written(self):
        notes = self.notes("open('log', 'a').close(); open('new', 'w').close()", "log")
        self.assertEqual(notes, ["Cpart.py", "Hpart:state"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "new")))

    def test_a_file_that_was_made_and_removed(self):
        notes = self.notes("open('c', 'w').close(); open('c').close(); os.remove('c')")
        self.assertEqual(notes, ["Cpart.py", "Hpart:state"])

    def test_a_file_that_is_read_and_written_is_no_part_of_warm_state(self):
        notes = self.notes("open('c').close(); open('c', 'w').close()", "c")
        self.assertEqual(notes, ["Cpart.py", "Cc", "Hpart:state"])

    def test_what_is_asked_for(self):
        for asks, notes in (
            ("os.path.exists('c')", ["Afc"]),
            ("os.path.getsize('c')", ["Cc"]),
            ("os.path.isdir('e'); os.path.isfile('none')", ["A-e", "A-none"]),
            ("import pathlib; pathlib.Path('none').is_file()", ["A-none"]),
            ("os.access('c', os.R_OK); open('c').close()", ["Cc"]),
            ("os.makedirs('d', exist_ok=True)", ["Add"]),
        ):
            asked = self.notes(asks, "c", "d/x")
            self.assertEqual([note for note in asked if note[0] in "AC"], notes, asks)

    def test_a_directory_that_is_listed(self):
        for lists in ("os.listdir('d')", "list(os.scandir('d'))", "import glob; glob.glob('d/*')"):
            self.assertIn("Ld", self.notes(lists, "d/x"), lists)

    def test_the_directory_of_temporary_files_is_another_one_in_each_call(self):
        self.assertEqual(self.notes("os.listdir('/tmp')"), ["Cpart.py", "Hpart:moment"])
        self.assertNotIn(b"L/tmp", self.zygote("s.py", "part").notes)

    def test_a_directory_that_is_searched_for_modules_or_packages_is_not_listed(self):
        notes = self.notes("import importlib.metadata as m; list(m.distributions()); import more",
                           "more.py")
        self.assertEqual([note for note in notes if note[0] == "L"], [])

    def test_a_process_that_has_ended(self):
        notes = self.notes("import subprocess; subprocess.run(['true'])")
        self.assertIn("Hpart:process", notes)

    def test_a_directory_that_is_entered(self):
        self.assertIn("Hpart:directory", self.notes("os.chdir('/')"))

    def test_a_relative_name_where_the_callers_directory_is_not_known(self):
        self.write("s.py", "import part\n")
        for text in ("try: open('c')\nexcept OSError: pass", "import os; os.getcwd()",
                     "import os; os.path.exists('c')", "import pathlib; pathlib.Path.cwd()"):
            self.write("part.py", text + "\n")
            self.assertIn(b"W", self.zygote("s.py", "part", cwd="/").notes, text)
            self.assertNotIn(b"W", self.zygote("s.py", "part").notes, text)

    def test_all_that_import_a_hazard_are_found_at_once(self):
        self.write("s.py", "import one\n")
        self.write("culprit.py", "import subprocess; subprocess.run(['true'])\n")
        for name, imports in (("one", "two"), ("two", "three"), ("three", "culprit")):
            self.write(name + ".py", "import json, %s\n" % imports)
        notes = self.zygote("s.py", "one", "two", "three", "json", "culprit").notes
        self.assertEqual({note for note in notes if note[:1] == b"H"},
                         {b"H%s:process" % name for name in (b"one", b"two", b"three", b"culprit")})

    def test_where_a_hazard_lies_is_told_of_who_came_upon_it(self):
        """Its own statement, however deep below it that happens, and not those of its importers."""
        self.write("s.py", "import one\n")
        self.write("one.py", "import below\nimport culprit\n")
        self.write("below.py", "import os, tempfile\ndef name():\n    return tempfile.mktemp()\n")
        for text in ("NAME = below.name()\nMORE = below.name()\n", "import time\nNOW = time.time()\n",
                     "import subprocess\nsubprocess.run(['true'])\n"):
            self.write("culprit.py", "import below\n" + text)
            notes = self.zygote("s.py", "one", "culprit", "below").notes
            place = os.path.join(self.folder, "culprit.py")
            line = 2 if "MORE" in text else 3
            self.assertEqual([os.fsdecode(note) for note in notes if note[:1] == b"S"],
                             ["Sculprit:%s:%d" % (place, line)], text)
        self.write("culprit.py", "import below\n")
        notes = self.zygote("s.py", "one", "culprit", "below").notes
        self.assertFalse([note for note in notes if note[:1] in b"HS"])

    def test_a_question_about_the_systems_libraries_is_none(self):
        notes = self.notes("import ctypes.util; ctypes.util.find_library('c')")
        self.assertEqual([note for note in notes if note[0] == "H"], [])

    def test_a_pseudo_file(self):
        notes = self.notes("open('/proc/cpuinfo').close(); open('/dev/null').close()")
        self.assertEqual(notes, ["Fpart.py"])

    def test_shared_objects_and_the_interpreter_itself(self):
        self.write("s.py", "import json\n")
        notes = self.zygote("s.py", "json").notes
        files = [os.fsdecode(note[1:]) for note in notes if note[:1] == b"F"]
        self.assertIn(os.path.realpath(sys.executable), files)
        self.assertTrue([file for file in files if "/libc" in file])
        self.assertEqual(len(files), len(set(files)))


class TheHookIsGone(InAFolder):
    def test_a_program_sees_and_pays_nothing(self):
        self.write("s.py", "import json\n" + TELLS_OF_HOOKS)
        zygote, run = self.zygote("s.py", "json"), self.run_of("s.py")
        self.assertEqual(self.same(run, zygote).out, b"open True True\n")

    def test_functions_that_an_import_keeps_are_the_real_ones(self):
        self.write("keeps.py", "import os\nfrom os import stat\nclass K:\n    getcwd = os.getcwd\n")
        self.write("s.py", "import keeps, os, pathlib, shutil\n"
                   "print(keeps.stat is os.stat, keeps.stat, "
                   "keeps.K.getcwd, keeps.K().getcwd() == os.getcwd(), shutil._use_fd_functions, "
                   "len(os.supports_dir_fd), os.stat in os.supports_dir_fd)\n")
        self.same(self.run_of("s.py"), self.zygote("s.py", "keeps", "shutil", "pathlib"))

    def test_an_environment_that_an_import_keeps_is_the_real_one(self):
        self.write("keeps.py", "import os, posix\nKEPT = [os.environ._data, posix.environ]\n"
                   "def f(data=posix.environ): return data\n"
                   "def g(data): return lambda: data\nCLOSED = g(posix.environ)\n")
        self.write("s.py", "import keeps, os, posix\nkept = [*keeps.KEPT, keeps.f(), keeps.CLOSED()]\n"
                   "print([each is posix.environ for each in kept], posix.environ is "
                   "os.environ._data, type(kept[0]).__name__, kept[2][b'PATH'] == "
                   "os.environb[b'PATH'], len(kept[3]) > 2)\n")
        self.same(self.run_of("s.py"), self.zygote("s.py", "keeps"))

    def test_a_hook_that_an_import_adds_stays(self):
        self.write("hooks.py", "import sys\nSEEN = []\n"
                   "sys.addaudithook(lambda event, arguments: SEEN.append(event))\n")
        self.write("s.py", "import hooks\nhooks.SEEN.clear()\nopen('/dev/null')\n"
                   "print(hooks.SEEN)\n")
        self.same(self.run_of("s.py"), self.zygote("s.py", "hooks"))


if __name__ == "__main__":
    unittest.main()
