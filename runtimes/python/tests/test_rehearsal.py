"""What a zygote runs of the standard library ahead of calls helps them, and none can tell."""

import os
import struct
import sys
import unittest

from harness import shared
from test_worker import InAFolder

LOADED = "argparse", "gettext", "shutil", "locale"
INSTALLED = "importlib.metadata", "pathlib", "operator"
# Each counts what is called of its own in `CALLS`; what others than the rehearsed call too, only
# by those.
COUNT = """CALLS = []
def by(name):
    if sys._getframe(2).f_globals['__name__'] == name:
        CALLS.append(1)
"""
REPLACED = {
    "a function of a class": "real = argparse.ArgumentParser.parse_known_args\n"
                             "def parse(*a):\n    CALLS.append(1)\n    return real(*a)\n"
                             "argparse.ArgumentParser.parse_known_args = parse",
    "a static one": "argparse.ArgumentParser._get_formatter = staticmethod(lambda: CALLS.append(1))",
    "a function of a module": "argparse._ = lambda text: CALLS.append(1) or text",
    "an object that is called": "class Own:\n    def __call__(self, text):\n"
                                "        CALLS.append(1)\n        return text\n"
                                "argparse._ = gettext.gettext = Own()",
    "a part of a function": "def parse(*a):\n    CALLS.append(1)\n"
                            "argparse.ArgumentParser.parse_known_args = functools.partial(parse)",
    "something of no module": "class Odd:\n    pass\nOdd.__module__ = None\nargparse.odd = Odd()",
    "what is below": "real = os.path.exists\ndef exists(path):\n    by('gettext')\n"
                     "    return real(path)\nos.path.exists = exists",
    "what is built in": "import builtins\nreal = hasattr\ndef own(*a):\n    by('argparse')\n"
                        "    return real(*a)\nbuiltins.hasattr = own",
    "who is asked for what is installed": "class Finder:\n    @classmethod\n"
                                          "    def find_distributions(cls, *a):\n"
                                          "        CALLS.append(1)\n        return []\n"
                                          "    @classmethod\n    def find_spec(cls, *a):\n"
                                          "        return None\nsys.meta_path.append(Finder)",
    "who is told of calls": "def told(frame, *_):\n"
                            "    if frame.f_globals['__name__'] == 'argparse':\n"
                            "        CALLS.append(1)\nsys.setprofile(told)",
}


class TheStandardLibraryIsRehearsed(InAFolder):
    @unittest.skipIf(sys.version_info < (3, 11), "code is adapted from 3.11 on")
    def test_code_is_adapted_before_the_first_call(self):
        self.write("s.py", "import argparse, gettext, shutil, locale, dis\n"
                           "code = argparse._ActionsContainer.add_argument.__code__\n"
                           "names = {i.opname for i in dis.get_instructions(code, adaptive=True)}\n"
                           "print(any(name.startswith('LOAD_GLOBAL_') for name in names))\n")
        run = self.run_of("s.py")
        self.assertEqual(run.cold().out, b"False\n")
        self.assertEqual(run.warm(self.zygote("s.py", *LOADED), True).out, b"True\n")

    @unittest.skipIf(sys.version_info < (3, 10), "nothing is rehearsed before")
    def test_the_expression_of_an_installed_command_is_compiled_for_such_a_command(self):
        text = "import re, sys\nshown = 'pyw' in str(re._cache)\n"
        text += "sys.argv[0] = re.sub(r'%s', '', sys.argv[0])\nprint(shown)\n"
        for pattern, shown in ((r"(-script\.pyw|\.exe)?$", b"True\n"), ("x", b"False\n")):
            self.write("s.py", text % pattern)
            self.assertEqual(self.run_of("s.py").cold().out, b"False\n")
            self.assertEqual(self.run_of("s.py").warm(self.zygote("s.py", "re"), True).out, shown)

    def test_what_a_program_has_put_in_is_not_called(self):
        for what, text in shared(REPLACED.items()):
            with self.subTest(what):
                lines = ["import %s" % name for name in ("os", "sys", "functools") + LOADED]
                lines += ["import %s" % name for name in INSTALLED if sys.version_info > (3, 10)]
                self.write("own.py", "\n".join([*lines, COUNT, text, ""]))
                self.write("s.py", "import own\nprint(len(own.CALLS))\n")
                zygote = self.zygote("s.py", *LOADED, "own", allowed=INSTALLED)
                self.assertNotIn(b"failed", b"".join(zygote.notes))
                self.assertEqual(self.same(self.run_of("s.py"), zygote).out, b"0\n")

    def test_no_catalogue_of_messages_is_kept(self):
        folder = os.path.join(self.folder, "xx", "LC_MESSAGES")
        os.makedirs(folder)
        with open(os.path.join(folder, "messages.mo"), "wb") as file:
            file.write(struct.pack("<7I", 0x950412DE, 0, 0, 28, 28, 0, 28))
        self.write("bound.py", "import gettext\ngettext.bindtextdomain('messages', %r)\n"
                   % self.folder)
        self.write("s.py", "import argparse, gettext, shutil, locale, bound\n"
                           "print(len(gettext._translations))\n"
                           "gettext.gettext('x')\nprint(len(gettext._translations))\n")
        env = dict(os.environ, LANGUAGE="xx")
        zygote = self.zygote("s.py", *LOADED, "bound", env=env)
        outcome = self.same(self.run_of("s.py", env=env), zygote)
        self.assertEqual(outcome.out, b"0\n1\n")

    @unittest.skipIf(sys.version_info < (3, 10), "nothing of it is kept before")
    def test_what_lies_where_is_looked_for_anew(self):
        self.write("s.py", "import argparse, gettext, shutil, locale, operator, pathlib\n"
                           "import importlib.metadata as m, sys\n"
                           "print(m.FastPath.__new__.cache_info().currsize)\n")
        zygote = self.zygote("s.py", *LOADED, "importlib", *INSTALLED)
        self.assertEqual(self.same(self.run_of("s.py"), zygote).out, b"0\n")


if __name__ == "__main__":
    unittest.main()
