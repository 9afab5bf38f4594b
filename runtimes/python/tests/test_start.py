"""Kept bytecode: what is executed of it, and what never is."""

import ast
import os
import stat
import subprocess
import sys
import tempfile
import unittest

from harness import SOURCES, START, join


def loader():
    """The class in `start.py`, without its last lines, which begin the runtime."""
    with open(START) as file:
        text = file.read().partition("# `start.py MODE SOURCES")[0]
    names = {"__name__": "start"}
    exec(compile(text, START, "exec"), names)
    return names["Bytecode"]


class Kept(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sources, self.kept = folder.name + "/sources", folder.name + "/kept"
        os.mkdir(self.sources)
        os.mkdir(self.kept, 0o700)
        self.write("VALUE = 1\n")

    def write(self, text):
        with open(self.sources + "/part.py", "w") as file:
            file.write(text)

    def load(self, keeps=True, kind=None):
        names = {}
        exec((kind or loader())(self.sources, self.kept, keeps).load("part"), names)
        return names["VALUE"]

    def files(self):
        return [os.path.join(self.kept, name) for name in os.listdir(self.kept)]

    def forge(self, value):
        """Puts other code into the kept file, as whoever may write to it could; its path."""
        self.load()
        path, = self.files()
        kind = loader()
        made = kind(self.sources, self.kept, True)
        body = made.marshal.dumps(compile("VALUE = %r" % value, "part", "exec"))
        with open(path, "rb") as file:
            data = file.read()
        head = data[: data.index(b"\n", len(kind.HEAD)) + 1 + kind.DIGEST_BYTES]
        with open(path, "wb") as file:
            file.write(head + made.digest(body) + body)
        return path

    def test_what_is_kept_is_executed_and_not_compiled_again(self):
        path = self.forge("kept")
        self.assertEqual(self.load(), "kept")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_another_source_has_bytecode_of_its_own(self):
        self.forge("kept")
        self.write("VALUE = 2\n")
        self.assertEqual(self.load(), 2)
        self.assertEqual(len(self.files()), 2)

    def test_what_another_interpreter_has_made_is_not_executed(self):
        path = self.forge("theirs")

        class Other(loader()):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                self.maker += b" of another build"

        self.assertEqual(self.load(kind=Other), 1)
        # Not under the other's name either.
        theirs, = set(self.files()) - {path}
        os.rename(path, theirs)
        self.assertEqual(self.load(kind=Other), 1)

    def test_what_others_may_write_is_not_executed(self):
        path = self.forge("theirs")
        for mode in 0o620, 0o602, 0o666:
            os.chmod(path, mode)
            self.assertEqual(self.load(keeps=False), 1)
        os.chmod(path, 0o600)
        self.assertEqual(self.load(keeps=False), "theirs")

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a file another user's")
    def test_another_users_file_is_not_executed(self):
        path = self.forge("theirs")
        os.chown(path, 12345, 12345)
        self.assertEqual(self.load(keeps=False), 1)

    def test_a_link_is_not_followed(self):
        path = self.forge("theirs")
        os.rename(path, self.sources + "/elsewhere")
        os.symlink(self.sources + "/elsewhere", path)
        self.assertEqual(self.load(keeps=False), 1)

    def test_what_is_cut_short_or_changed_is_not_executed(self):
        path = self.forge("theirs")
        with open(path, "rb") as file:
            data = file.read()
        for length in range(0, len(data), 7):
            with open(path, "wb") as file:
                file.write(data[:length])
            self.assertEqual(self.load(keeps=False), 1, length)
        for at in range(0, len(data), 7):
            with open(path, "wb") as file:
                file.write(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
            self.assertEqual(self.load(keeps=False), 1, at)
        self.load()
        self.assertEqual(self.load(), 1)

    def test_without_a_place_nothing_is_kept_and_nothing_fails(self):
        os.rmdir(self.kept)
        self.assertEqual(self.load(), 1)
        self.assertFalse(os.path.exists(self.kept))
        with open(self.kept, "w"):
            pass
        self.assertEqual(self.load(), 1)

    def test_a_small_limit_of_file_sizes_leaves_nothing_behind(self):
        code = (
            "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
            "sys.path.insert(0, %r)\nimport test_start\n"
            "exec(test_start.loader()(%r, %r, True).load('part'))\nassert VALUE == 1\n"
        )
        here = os.path.dirname(os.path.abspath(__file__))
        code %= (here, self.sources, self.kept)
        subprocess.run([sys.executable, "-B", "-c", code], check=True)
        self.assertEqual(self.files(), [])


class ProfilingRun(unittest.TestCase):
    def test_without_the_runtime_the_program_is_executed(self):
        with tempfile.TemporaryDirectory() as folder:
            script = folder + "/shows.py"
            with open(script, "w") as file:
                file.write("import sys\nprint(sys.argv[1:], sys.orig_argv[1:] if hasattr(sys, "
                           "'orig_argv') else None, 'BYTECODE' in globals())\nsys.exit(3)\n")
            cold = subprocess.run([sys.executable, script, "a", ""], stdout=subprocess.PIPE)
            words = [sys.executable, "-S", START, "learn", folder, "", folder + "/notes", "script",
                     script, "1", sys.executable, script, "a", ""]
            run = subprocess.run(words, stdout=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stdout), (3, cold.stdout))

    def test_the_sources_beside_it_are_the_runtimes(self):
        self.assertTrue(os.path.exists(SOURCES + "/worker.py"))


class Parts(unittest.TestCase):
    def test_every_part_is_joined_once(self):
        listed = [name for names in join.parts().values() for name in names]
        folders = {name.partition("/")[0] for name in listed}
        found = [
            os.path.relpath(os.path.join(folder, name), join.HERE)
            for each in folders
            for folder, _, names in os.walk(os.path.join(join.HERE, each))
            for name in names
            if name.endswith(".py")
        ]
        self.assertEqual(sorted(listed), sorted(found))

    def test_other_peoples_packages_are_named_in_one_table(self):
        of_table, elsewhere = set(), {}
        for folder, _, names in os.walk(join.HERE):
            for path in (os.path.join(folder, name) for name in names if name.endswith(".py")):
                if os.path.relpath(path, join.HERE).startswith("tests"):
                    continue
                with open(path) as file:
                    nodes = ast.walk(ast.parse(file.read()))
                texts = {each.value for each in nodes if type(getattr(each, "value", None)) is str}
                if path.endswith("/packages.py"):
                    of_table = texts
                else:
                    elsewhere[path] = {text.partition(".")[0] for text in texts}
        packages = {"numpy", "pandas", "dateutil", "rich", "pip", "pkg_resources"}
        self.assertEqual(packages - {text.partition(".")[0] for text in of_table}, set())
        for path, texts in elsewhere.items():
            self.assertEqual(packages & texts, set(), path)


if __name__ == "__main__":
    unittest.main()
