"""Web apps in real processes: how they are found and imported."""

import os
import subprocess
import sys
import textwrap
import unittest

from .apps import HELLO, Apps


class FoundAndLoaded(Apps):
    def test_as_a_module_of_its_directory(self):
        self.write("beside.py", "name = 'beside'")
        process = self.start("wsgi:sub/wsgi.py:application", """
            import http, sys
            import json

            def application(environ, start_response):
                start_response("200 OK", [])
                found = [__name__, __spec__.name, sys.modules["wsgi"] is sys.modules[__name__],
                         sys.path[0], http.HTTPStatus.OK]
                for name in ("web", "message", "worker", "beside"):
                    try:
                        found.append(__import__(name).__name__)
                    except ImportError:
                        found.append(None)
                return [json.dumps(found).encode()]
        """)
        found = process.json()
        nothing = [None] * 4
        self.assertEqual(found, ["wsgi", "wsgi", True, self.place + "/sub", 200, *nothing])

    def test_in_packages_as_a_module_of_these(self):
        self.write("proj/__init__.py", "imports = []")
        self.write("proj/settings.py", "from . import imports\nNAME = 'of settings'")
        self.write("proj/deep/__init__.py", "")
        text = """
            import sys
            from {} import imports
            from {}.settings import NAME
            imports.append(__name__)

            class Holder:
                def app(environ, start_response):
                    start_response("200 OK", [])
                    held = sys.modules[__name__.rpartition(".")[0]]
                    same = getattr(held, "wsgi") is sys.modules[__name__]
                    return [repr([imports, NAME, sys.path[0], same]).encode()]
        """
        for name, dots in (("proj/wsgi.py", "."), ("proj/deep/wsgi.py", "..")):
            text_of_it = text.format(dots, dots[1:])
            process = self.start("wsgi:%s:Holder.app" % name, text_of_it)
            module = name[:-3].replace("/", ".")
            want = repr([[module], "of settings", self.place, True]).encode()
            self.assertEqual(process.ask()[2], want)

    def test_a_package_may_be_the_app_or_import_it(self):
        app = """
            def application(environ, start_response):
                start_response("200 OK", [])
                return [__name__.encode()]
        """
        process = self.start("wsgi:proj/deep/__init__.py:application", app)
        self.assertEqual(process.ask()[2], b"deep")
        self.write("proj/__init__.py", "count = 0")
        process = self.start("wsgi:proj/deep/__init__.py:application")
        self.assertEqual(process.ask()[2], b"proj.deep")
        self.write("proj/__init__.py", "count = 0\nfrom . import wsgi")
        process = self.start("wsgi:proj/wsgi.py:application", """
            import proj
            proj.count += 1

            def application(environ, start_response):
                start_response("200 OK", [])
                return [b"%d" % proj.count]
        """)
        self.assertEqual(process.ask()[2], b"1")

    def test_the_mounts_own_directory_is_no_package_of_it(self):
        self.write("__init__.py", "raise SystemError")
        process = self.start("wsgi:wsgi.py:application", HELLO)
        self.assertEqual(process.ask()[2], b"hello")

    def test_what_cannot_be_loaded_is_told_in_one_line(self):
        self.write("site/__init__.py", "")
        for name, text, told in (
            ("wsgi:a.py:nothing", HELLO, r"a\.py has nothing to call that is named `nothing`"),
            ("wsgi:a.py:__name__", HELLO, r"a\.py has nothing to call that is named `__name__`"),
            ("cgi:a.py:application", HELLO, r"a\.py: Python has no interface `cgi`"),
            ("wsgi:b.py:application", "\n1 +", r"b\.py:2: SyntaxError"),
            ("wsgi:c.py:application", "\n\n1 / 0", r"c\.py:3: ZeroDivisionError"),
            ("wsgi:d.txt:application", HELLO, r"ImportError: .*d\.txt is no file of Python's"),
            ("wsgi:site/w.py:application", HELLO, r"ImportError: .*cannot be `site`"),
        ):
            with self.assertRaisesRegex(AssertionError, "failed: .*" + told):
                self.start(name, text)

    def test_an_edit_is_seen_whatever_bytecode_lies_there(self):
        path = self.write("wsgi.py", HELLO)
        before = os.stat(path)
        subprocess.run([sys.executable, "-m", "compileall", "-q", self.place], check=True)
        kept = os.listdir(self.place + "/__pycache__")
        self.write("wsgi.py", HELLO.replace("hello", "hallo"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(os.stat(path).st_size, before.st_size)
        process = self.start("wsgi:wsgi.py:application")
        self.assertEqual(process.ask()[2], b"hallo")
        self.assertEqual(os.listdir(self.place + "/__pycache__"), kept)

    def test_nothing_is_written_beside_it(self):
        self.write("helper.py", "")
        self.start("wsgi:wsgi.py:application", "import helper\n" + textwrap.dedent(HELLO))
        self.assertEqual(sorted(os.listdir(self.place)), ["helper.py", "wsgi.py"])

    def test_copies_have_nothing_in_common(self):
        self.write("wsgi.py", """
            seen = []

            def application(environ, start_response):
                seen.append(1)
                start_response("200 OK", [])
                return [b"%d" % len(seen)]
        """)
        zygote = self.zygote("wsgi:wsgi.py:application")
        one, other = self.copy(*zygote), self.copy(*zygote)
        self.assertEqual([one.ask()[2], one.ask()[2], other.ask()[2]], [b"1", b"2", b"1"])


if __name__ == "__main__":
    unittest.main()
