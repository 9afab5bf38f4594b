"""Copies of the layer with a script's installed packages, in this very interpreter."""

import os
import sys
import tempfile
import unittest

from harness import PRELOAD, Run, Worker, blob, strings

INSTALLED, SCRIPT = 5, 0
SHOWS = """
names = "deep", "wide", "string", "own"
print([name for name in sys.modules if name.partition(".")[0] in names])
"""


class Layer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = os.path.realpath(folder.name)
        self.write("site-packages/deep/__init__.py", "from . import part\nimport string\n")
        self.write("site-packages/deep/part.py", "def fails():\n    raise ValueError(__name__)\n")
        self.write("site-packages/wide.py", "from deep.part import fails\nVALUE = 'wide'\n")
        self.write("own.py", "VALUE = 1\n")
        self.env = dict(os.environ, PYTHONPATH=self.path("site-packages"))
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"

    def path(self, name):
        return os.path.join(self.place, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)

    def layer(self):
        modules = ["wide", "deep", "deep.part", "string", "own", "decimal", "fractions"]
        return Worker(0, INSTALLED, self.path("script.py"), modules=modules, env=self.env, cwd="/")

    def same(self, text):
        """A script does in a copy what it does cold."""
        self.write("script.py", "import sys\n" + text + SHOWS)
        run = Run(["script.py"], cwd=self.place, env=self.env)
        with self.layer() as layer:
            for paid in (0, 1):
                channel, pidfd, _ = layer.copy(paid)
                payload = bytes((1, SCRIPT)) + blob(os.fsencode(self.path("script.py")))
                payload += strings([sys.executable]) + strings([]) * 3
                channel.send(PRELOAD, payload)
                outcome, _ = run.give(channel, pidfd)
                _, how = layer.gone()
                outcome.code = -how[1] if how[0] else how[1]
                channel.close()
                os.close(pidfd)
                self.assertEqual(run.cold(), outcome)
        return outcome.out.decode()

    def test_own_modules_are_not_loaded_and_installed_ones_are(self):
        # Its own come last: what is imported after one is left to the calls.
        self.write("script.py", "import wide, deep.part, string, decimal, own, fractions\n")
        with self.layer() as layer:
            named = {note[1:] for note in layer.notes if note[:1] == b"M"}
        self.assertLessEqual({b"wide", b"deep", b"deep.part", b"decimal"}, named)
        self.assertFalse({b"own", b"fractions"} & named)

    def test_what_is_imported_is_there_and_nothing_else(self):
        self.assertIn("['own']", self.same("import own"))
        self.same("import wide, own")
        self.same("import deep\nprint(deep.part, 'wide' in sys.modules)")
        self.same("from deep import part\nimport wide\nprint(wide.fails is part.fails)")
        self.same("import importlib\nprint(importlib.import_module('deep.part').__name__)")
        self.same("def later():\n    import wide\n    return wide.VALUE\nprint(later())")

    def test_errors(self):
        self.same("import wide\nwide.fails()")
        self.same("import deep.nothing")
        self.same("from deep import nothing")

    def test_who_changes_the_path_or_looks_on_finds_all_itself(self):
        self.write("vendor/deep.py", "print('vendored')\n")
        vendor = "sys.path.insert(0, %r)\n" % self.path("vendor")
        self.assertIn("vendored", self.same(vendor + "import deep"))
        looks = "seen = []\nsys.setprofile(lambda *a: seen.append(a[0].f_code.co_name))\n"
        self.same(looks + "import wide\nsys.setprofile(None)\nprint(seen.count('<module>'))")
        finder = "class F:\n    def find_spec(*_): return None\nsys.meta_path.insert(0, F)\n"
        self.same(finder + "import wide\nprint(wide.VALUE)")

    def test_what_a_module_does_at_the_end_it_does_where_it_is_imported(self):
        text = "import atexit\nfrom atexit import register\natexit.register(print, 'end', sep='-')\n"
        text += "@register\ndef other():\n    print('other', VALUE)\nVALUE = 'wide'\n"
        self.write("site-packages/wide.py", text)
        self.assertNotIn("end", self.same("import own"))
        self.assertIn("other wide\nend", self.same("import wide"))
        self.same("import atexit, wide\natexit.register(print, 'own')")

    def test_a_module_that_was_taken_away_is_loaded_anew(self):
        self.same("import deep\ndel sys.modules['deep.part']\nfrom deep import part\n"
                  "import deep.part as now\nprint(now is sys.modules['deep.part'], now is part)")


if __name__ == "__main__":
    unittest.main()
