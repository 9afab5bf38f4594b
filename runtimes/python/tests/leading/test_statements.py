"""Which statements a program may have before an import that is loaded ahead, and which end that."""

import sys
import unittest

from harness import shared
from test_worker import loaded_by

from leading.programs import CONF, LOOKS, Warmed

# Between two imports they do nothing.
HARMLESS = {
    "a text": "'text'",
    "a longer one": "'''text\n'''\n...",
    "constants": "A = 1\nC = [None, True]\nD = {'a': (1, 2), 2: []}\nE = -1\nF = 2 * 9",
    "names": "__all__ = ['A']\n__version__ = '1.0'\nA = B = 1\nC = A\nD = conf.number\nE = conf",
    "a constant with its kind": "A: int = 1\nB: 'str' = 'x'\nC: str",
    "a constant with a kind of many": "import typing\nfrom typing import Dict, List, Optional\n"
                                      "A: Optional[int] = None\nB: Dict[str, List[int]] = {}\n"
                                      "C: typing.Tuple[int, ...] = ()",
    "a function": "def f(a, b=1, *c, d=None, e, **g): return conf.mark()",
    "a function with kinds": "def f(a: int, b: 'str' = 'x', *c: int, d: conf.Base = None) -> bool:\n"
                             "    return conf.mark()",
    "a function that waits": "async def f(a=conf.number): await conf.mark()",
    "a generator": "def f():\n    yield conf.mark()",
    "a class": "class K:\n    'text'\n    a = 1\n    b: int = 2\n    def m(self): conf.mark()\n"
               "    @property\n    def p(self): conf.mark()\n    @staticmethod\n    def s(): pass\n"
               "    @classmethod\n    def c(cls): pass\nclass L(Exception): pass\n"
               "class M(object): pass",
    "nothing": "pass",
    "what only another would do": "if __name__ != '__main__':\n    conf.mark()",
    "what it does by itself": "if __name__ == '__main__':\n    pass\nelse:\n    conf.mark()",
    "what is for the eye": "from typing import TYPE_CHECKING\nimport typing as t\n"
                           "if TYPE_CHECKING:\n    conf.mark()\nif t.TYPE_CHECKING:\n    conf.mark()",
    "what is for another version": "import sys\nif sys.version_info < (3, 0):\n    conf.mark()\n"
                                   "elif sys.version_info[0] == 2:\n    conf.mark()\nelse:\n    A = 1",
    "what is for another system": "import os, sys\nif sys.platform == 'win32' or os.name == 'nt':\n"
                                  "    conf.mark()",
    "a module that is there": "try:\n    import json\nexcept ImportError:\n    conf.mark()",
    "a module that is not there": "try:\n    import not_there\nexcept ImportError:\n"
                                  "    not_there = None",
    "one of two": "try:\n    import not_there\nexcept (ImportError, ValueError):\n"
                  "    import json as not_there\nelse:\n    conf.mark()",
    "an import that goes well": "try:\n    import json\nexcept ImportError:\n    conf.mark()\n"
                                "else:\n    import string",
    "a function that is called": "def f():\n    'text'\n    a = 1\n    return a\nf()",
    "a function that only imports": "def f(a, b=None):\n    import json\n    return json\n"
                                    "A = f(1, b='x')",
}
# These may do anything.
ENDS = {
    "a call": "conf.mark()",
    "a call of what is built in": "print('x', end='')",
    "a function's call": "def f():\n    conf.debug = True\nf()",
    "a function that ends before": "def f():\n    if conf.number:\n        return\nf()",
    "a call that is given one": "def f(a): pass\nf(conf.mark())",
    "a call among constants": "A = [1, {'a': conf.mark()}]",
    "a decorator": "@conf.mark\ndef f(): pass",
    "a decorator of a class": "@conf.mark\nclass K: pass",
    "what a name is set to": "A = conf.mark()",
    "a default": "def f(a=conf.mark()): pass",
    "a default of a keyword": "def f(*, a=conf.mark()): pass",
    "a class's body": "class K:\n    a = conf.mark()",
    "a class below one that is told": "class K(conf.Told): pass",
    "a class of another kind": "class K(metaclass=conf.Meta): pass",
    "a class in a class": "class K:\n    class L(conf.Told): pass",
    "a block": "with conf.lock: pass",
    "a loop": "for A in 'ab': pass",
    "another loop": "while conf.mark(): break",
    "a name that goes": "A = 1\ndel A",
    "an attribute that goes": "del conf.debug\nconf.debug = 2",
    "one more": "A = 1\nA += 1",
    "an attribute": "conf.debug = True",
    "an item": "conf.options['a'] = 1",
    "a comprehension": "A = [conf.mark() for _ in 'a']",
    "a text of parts": "A = f'{conf.mark()}'",
    "an assertion": "assert conf.mark() is None",
    "a sum": "A = conf.number + conf.number",
    "a comparison": "A = conf.number < 1",
    "an attribute of an object": "A = conf.reads.anything",
    "a condition": "if conf.number: conf.mark()",
    "a condition of its own": "A = 1\nif A: conf.mark()",
    "whatever comes": "try:\n    conf.mark()\nfinally:\n    pass",
    "what is tried": "try:\n    conf.mark()\nexcept ValueError:\n    pass",
    "an import that does not go well": "try:\n    from conf import nothing\nexcept ImportError:\n"
                                       "    conf.mark()",
    "a text that is executed": "exec('conf.debug = True')",
    "a name of the module": "globals()['A'] = conf.mark()",
}
if sys.version_info < (3, 14):
    ENDS["a kind"] = "A: conf.mark() = 1"
    ENDS["a kind of a function"] = "def f(a: conf.mark()): pass"
# They look like the harmless ones, and are not.
TRAPS = {
    "a class that another counts": ("import conf\nclass K(conf.Base): pass\n",
                                    "import conf\nVALUE = conf.Base.__subclasses__()\n"),
    "a class below a class that another counts": ("import conf\nclass K(conf.Base): pass\n"
                                                  "class L(K): pass\n",
                                                  "import conf\n"
                                                  "VALUE = len(conf.Base.__subclasses__())\n"),
    "a value that is told its name": ("import conf\nclass K:\n    a = conf.field\n", LOOKS),
    "a value that is told its name, by name": (
        "from conf import field\nclass K:\n    a = field\n", LOOKS),
    "a function within that is called as one outside": (
        "import conf\ndef f(): conf.debug = True\ndef main():\n    def f(): pass\n    f()\n"
        "main()\nf()\n", LOOKS),
    "an argument that is called as a function": (
        "import conf\ndef f(): pass\ndef main(f): f()\nmain(conf.mark)\n", LOOKS),
    "an argument that is called as a function, by its key": (
        "import conf\ndef f(): pass\ndef main(f=None): f()\nmain(f=conf.mark)\n", LOOKS),
    "a name of a loop that is called as a function": (
        "import conf\ndef f(): pass\nfor f in [conf.mark]: f()\n", LOOKS),
    "names of another that hide what is built in": (
        "import conf\nfrom conf import *\nclass K(object): pass\n", LOOKS),
    "names of another that hide a module": (
        "import conf, sys\nfrom hides import *\nif sys.version_info: conf.mark()\n", LOOKS),
    "names of another that hide a function": (
        "import conf\ndef change(): pass\nfrom hides import *\nchange()\n", LOOKS),
    "a function that is another by then": (
        "import conf\ndef f(): pass\ndef main():\n    global f\n    f = conf.mark\n"
        "main()\nf()\n", LOOKS),
    "a function that a class hides": (
        "import conf\ndef f(): pass\nclass f:\n    def __init__(self): conf.mark()\nf()\n", LOOKS),
    "a function that a value hides": ("import conf\ndef f(): pass\nf = conf.mark\nf()\n", LOOKS),
    "a function that a module hides": (
        "import conf\ndef f(): pass\nfrom conf import mark as f\nf()\n", LOOKS),
    "a module that took another's place": ("import conf, takes\nimport other\nA = other.anything\n",
                                           LOOKS),
}
HIDES = "import conf\nchange = conf.mark\nclass sys:\n    version_info = True\n"
TAKES = "import conf, sys\nsys.modules['other'] = conf.reads\n"
# What ends before a module is imported that would be seen at the end.
FAILS = {
    "a name that is not there": "nothing",
    "a name that is not there, kept": "A = nothing",
    "a name of a class that is not there": "class K(nothing): pass",
    "a sum that is none": "A = 1 / 0",
    "a sign that is none": "A = -'x'",
    "an argument too many": "def f(): pass\nf(1)",
    "an argument too few": "def f(a): pass\nf()",
    "a class that cannot be": "class K(int, str): pass",
    "a default that is not there": "def f(a=nothing): pass",
    "a key that cannot be": "A = {1: nothing}",
    "a name that is bound later": "def f():\n    A = conf\n    conf = 1\nf()",
    "a path that is none": "import sys\nsys.path.insert('x', 'y')",
    "a variable that is none": "import os\nos.environ['A'] = 1",
}
# These are found when all of it is compiled.
NO_CODE = "return", "break", "await x", "def f(a, a): pass", "def f():\n    nonlocal x", "*a"


class WhatComesBeforeAllElse(Warmed):
    def test_harmless_statements_are_passed_over(self):
        for what, text in shared(HARMLESS.items()):
            with self.subTest(what):
                self.check("import conf\n%s\nimport reader\nprint(reader.VALUE)\n" % text,
                           ["conf", "reader"], reader=LOOKS)

    def test_the_rest_ends_it(self):
        for what, text in shared(ENDS.items()):
            with self.subTest(what):
                self.check("import conf\n%s\nimport reader\nprint(reader.VALUE)\n" % text,
                           ["conf"], ["reader"], reader=LOOKS)

    def test_what_only_looks_harmless_changes_no_result(self):
        for what, (text, reads) in shared(TRAPS.items()):
            with self.subTest(what):
                self.check(text + "import reader\nprint(reader.VALUE)\n", reader=reads, hides=HIDES,
                           takes=TAKES, other="")

    def test_what_fails_before_an_import_ends_as_cold(self):
        seen = "import atexit\natexit.register(print, 'it was imported')\n"
        for what, text in shared(FAILS.items()):
            with self.subTest(what):
                self.furnish({"seen.py": seen, "s.py": text + "\nimport seen\n"})
                zygote = self.started("s.py", ["seen"], {})
                cold = self.same(self.run_of("s.py"), zygote)
                self.assertEqual((cold.code, cold.out), (1, b""), cold)
                zygote.close()

    def test_a_script_that_is_no_code_imports_nothing(self):
        seen = "import atexit\natexit.register(print, 'it was imported')\n"
        for text in shared(NO_CODE):
            with self.subTest(text):
                self.furnish({"seen.py": seen, "s.py": "import seen\n" + text + "\n"})
                zygote = self.started("s.py", ["seen"], {})
                cold = self.same(self.run_of("s.py"), zygote)
                self.assertEqual((cold.code, cold.out), (1, b""), cold)
                zygote.close()

    def test_kinds_may_be_for_later(self):
        self.check("'''text'''\nfrom __future__ import annotations, division\nimport conf\n"
                   "A: conf.mark() = 1\ndef f(a: conf.mark()) -> conf.mark(): pass\n"
                   "import reader\nprint(reader.VALUE)\n", ["conf", "reader"], reader=LOOKS)

    def test_what_is_imported_by_its_parts(self):
        files = {"pk_": "A = 1\n", "pk_sub": "B = 2\n", "pk_deep_": "",
                 "pk_deep_down": "C = 3\n"}
        shows = "\nimport sys, last\nprint(sorted(n for n in sys.modules if n[:2] == 'pk'))\n"
        pk = "pk", "pk.sub", "pk.deep", "pk.deep.down", "last"
        for text, ahead in (
            ("import pk", "pk last"),
            ("import pk.sub", "pk pk.sub last"),
            ("import pk.sub as sub\nprint(sub.B)", "pk pk.sub"),
            ("import pk.deep.down, pk.sub", "pk pk.sub pk.deep pk.deep.down last"),
            ("from pk import A", "pk last"),
            ("from pk import sub as other, A, deep", "pk pk.sub pk.deep last"),
            ("from pk.deep import down\nfrom pk.deep.down import C", "pk pk.deep pk.deep.down last"),
            ("from pk import *", "pk last"),
            ("from pk import nothing", "pk"),
            ("import pk.nothing", "pk"),
            ("import pk.A", "pk"),
        ):
            with self.subTest(text):
                ahead = set(ahead.split())
                self.check(text + shows, ahead, set(pk) - ahead, last="", **files)

    def test_a_star_takes_what_the_package_names(self):
        files = {"pk_": "__all__ = ['A', 'sub']\nA = 1\n", "pk_sub": "B = 2\n"}
        self.check("from pk import *\nimport last\nprint(A, sub.B)\n", ["pk", "pk.sub", "last"],
                   last="", **files)

    def test_names_that_a_module_makes_when_it_is_asked(self):
        lazy = "def __getattr__(name):\n    if name != 'sub': raise AttributeError(name)\n" \
               "    import %s\n    return 7\n"
        for text, loads, ahead in (
            ("from pk import sub\nprint(sub)", "lazy", "pk lazy last"),
            ("from pk import sub\nprint(sub)", "conf; conf.mark()", "pk conf last"),
            ("from pk import nothing", "lazy", ""),
        ):
            with self.subTest(text, loads=loads):
                text = text.replace("\n", "\nimport last, conf\n") + "\nprint(conf.debug)\n"
                self.check(text, ahead.split(), pk_=lazy % loads, lazy="", last="")

    def test_a_module_that_was_taken_away_again(self):
        drops = "import sys\ndel sys.modules['kept']\n"
        for text in ("import kept, drops, last\nfrom kept import VALUE\n",
                     "import kept, drops, last\nimport kept\n",
                     "import kept, drops\nimport kept.sub\n"):
            with self.subTest(text):
                self.check(text + "print('done')\n", ["drops"], kept="print(end='')\nVALUE = 1\n",
                           drops=drops, last="")


class WhatIsExecutedByItsName(Warmed):
    FILES = {
        "pk/__init__.py": "import first\n", "first.py": "", "pk/near.py": "", "pk/sub/__init__.py": "",
        "pk/__main__.py": "import conf\nfrom . import near\nfrom .sub import far\nimport last\n"
                          "print(__package__, __name__, near, far, conf.debug)\n",
        "pk/sub/far.py": "", "pk/sub/tool.py": "from .. import near\nfrom . import far\nimport last\n"
                                               "print(__package__, near, far)\n",
        "last.py": "",
        "alone.py": "import first, conf\nconf.debug = True\nimport last\nprint(conf.debug)\n",
    }

    def test_its_package_and_what_it_imports_come_first(self):
        for name, ahead, later in (
            ("pk", "pk first pk.near pk.sub pk.sub.far last", "pk.__main__"),
            ("pk.sub.tool", "pk first pk.sub pk.near pk.sub.far last", "pk.sub.tool"),
            ("alone", "first conf", "alone last"),
        ):
            with self.subTest(name):
                run, zygote, _ = self.warmed(self.FILES, target=name, kind=1)
                self.assertLessEqual(set(ahead.split()), loaded_by(zygote))
                self.assertFalse(set(later.split()) & loaded_by(zygote))
                self.assertEqual(self.same_and_warm(run, zygote).err, b"")

    def test_one_that_its_package_imports_is_warned_of_as_cold(self):
        files = {"pk/__init__.py": "from . import tool\n", "pk/tool.py": "import last\nprint('done')\n",
                 "last.py": ""}
        run, zygote, _ = self.warmed(files, target="pk.tool", kind=1)
        self.assertIn(b"prior to execution", self.same_and_warm(run, zygote).err)
        files["pk/__init__.py"] = ""
        run, zygote, _ = self.warmed(files, target="pk.tool", kind=1)
        self.assertEqual(self.same_and_warm(run, zygote).err, b"")
        self.assertIn("last", loaded_by(zygote))

    def test_a_folder_that_is_executed(self):
        files = {"app/__main__.py": "import near, conf\nconf.debug = True\nimport reader\n"
                                    "print(reader.VALUE)\n", "app/near.py": ""}
        files.update({"app/conf.py": CONF, "app/reader.py": LOOKS})
        self.furnish(files)
        names = ["contextlib", "contextvars", "near", "conf", "reader"]
        zygote = self.started("app", names, {})
        self.assertLessEqual({"near", "conf"}, loaded_by(zygote))
        self.assertNotIn("reader", loaded_by(zygote))
        self.same_and_warm(self.run_of("app"), zygote)


MAIN = "import sys\nfrom tool.cli import main\nif __name__ == '__main__':\n    "
# As installers write a command.
LAUNCHERS = {
    "by itself": "sys.exit(main())",
    "without more": "main()",
    "by `raise`": "raise SystemExit(main())",
    "with the arguments": "sys.exit(main(sys.argv[1:]))",
    "of pip": "sys.argv[0] = sys.argv[0].removesuffix('.exe')\n    sys.exit(main())",
    "of pip before": "import re\n    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', "
                     "sys.argv[0])\n    sys.exit(main())",
    "of pip long before": "import re\n    sys.argv[0] = re.sub(r'(-script\\.pyw?|\\.exe)?$', '', "
                          "sys.argv[0])\n    sys.exit(main())",
    "of uv": "if sys.argv[0].endswith('-script.pyw'):\n        sys.argv[0] = sys.argv[0][:-11]\n"
             "    elif sys.argv[0].endswith('.exe'):\n        sys.argv[0] = sys.argv[0][:-4]\n"
             "    sys.exit(main())",
}


class InstalledCommands(Warmed):
    CLI = "import conf\ndef main(argv=None):\n    'text'\n    import lazily\n" \
          "    from tool import sub\n    conf.debug = True\n    import reader\n" \
          "    print(reader.VALUE, __import__('sys').argv)\n    return 3\n"

    def test_what_their_function_imports_comes_first_too(self):
        for what, text in shared(LAUNCHERS.items()):
            with self.subTest(what):
                ahead = ["tool", "tool.cli", "conf", "lazily", "tool.sub"]
                cold = self.check(MAIN + text + "\n", ahead, ["reader"], tool_="",
                                  tool_cli=self.CLI, lazily="", tool_sub="", reader=LOOKS)
                self.assertEqual(cold.code, 0 if what == "without more" else 3)

    def test_a_function_that_is_wrapped_is_called_by_the_calls(self):
        wraps = "import conf\n@conf.mark\ndef main():\n    import lazily\n    return conf.debug\n"
        self.check(MAIN + "sys.exit(main())\n", ["tool", "tool.cli", "conf"], ["lazily"],
                   tool_="", tool_cli=wraps, lazily="")

    def test_functions_that_call_functions(self):
        cli = "import other\ndef main():\n    parse()\n    other.load()\n    import last\n" \
              "    conf = other.conf\n    conf.mark()\n    import reader\n    print(reader.VALUE)\n" \
              "def parse():\n    import lazily\n    return 1\n"
        other = "import conf\ndef load(a=None):\n    from tool import sub\n    return sub\n"
        self.check(MAIN + "sys.exit(main())\n", ["lazily", "tool.sub", "last"], ["reader"], other=other,
                   tool_="", tool_cli=cli, tool_sub="", lazily="", last="", reader=LOOKS)

    def test_one_that_calls_itself_ends_somewhere(self):
        cli = "import conf\ndef main(n=0):\n    import lazily\n    if n: return n\n    return main(1)\n"
        self.check(MAIN + "sys.exit(main())\n", ["lazily"], tool_="", tool_cli=cli, lazily="")


if __name__ == "__main__":
    unittest.main()
