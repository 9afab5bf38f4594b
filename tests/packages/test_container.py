"""The images of docs/install.md: hob alone, and hob beside an interpreter.

buildah makes them in storage of the test's own and runs them in a changed root: their files, their
environment and their entry point are what a container has. Namespaces are not tried, and port 8000
of the machine is not taken.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import unittest
import urllib.request

from place import DIST, ROOT, Place

RECIPE = os.path.join(ROOT, "packaging/Containerfile")
PAGE = os.path.join(ROOT, "docs/install.md")
APP = "def application(environ, start):\n    start('200 OK', [])\n    return [b'from an app']\n"


def why_not():
    """Why no image can be made here; None if it can."""
    if not shutil.which("buildah"):
        return "no buildah here"
    place = Place()
    try:
        place.run(*Images.words(place), "from", "--name", "try", "scratch")
        place.run(*Images.words(place), "rm", "try")
    except AssertionError as refused:
        return f"buildah makes no container here: {refused}"
    finally:
        place.remove()
    return None


class Images(unittest.TestCase):
    def setUp(self):
        reason = why_not()
        if reason:
            self.skipTest(reason)
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.build("hob", RECIPE, DIST)

    @staticmethod
    def words(place):
        own = ["--root", place.path("images"), "--runroot", place.path("images-run")]
        return ["buildah", *own, "--storage-driver", "vfs"]

    def buildah(self, *words, **how):
        return self.place.run(*self.words(self.place), *words, **how)

    def build(self, name, recipe, context):
        made = ["--isolation", "chroot", "--layers=false", "--quiet", "--tag", name]
        self.buildah("build", *made, "--file", recipe, context)

    def container(self, image, *files):
        """A container of it, with these files put in: pairs of a path there and a text."""
        name = self.buildah("from", "--pull-never", f"localhost/{image}").split()[-1]
        for at, text in files:
            path = self.place.path("put")
            with open(path, "w") as file:
                file.write(text)
            self.buildah("copy", "--quiet", name, path, at)
        return name

    def entry(self, container):
        """What the image runs, and the words that it has by itself."""
        config = json.loads(self.buildah("inspect", container))["OCIv1"]["config"]
        return config["Entrypoint"], config.get("Cmd") or []

    def inside(self, container, *words, **how):
        return self.buildah("run", "--isolation", "chroot", container, "--", *words, **how)

    def served(self, container, words, path):
        """What a site of the container answers to a request, at a port that is free."""
        words = [*self.words(self.place), "run", "--isolation", "chroot", container, "--", *words]
        site = subprocess.Popen(
            words,
            env=self.place.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        try:
            line = site.stdout.readline()
            found = re.search(r"serving (http://\S+:\d+)/", line)
            self.assertTrue(found, line)
            with urllib.request.urlopen(found[1] + path) as answer:
                return answer.read()
        finally:
            # buildah hands it on to what it runs, which ends what it has begun.
            site.send_signal(signal.SIGTERM)
            site.communicate()

    def test_hob_alone(self):
        container = self.container("hob", ("/srv/public/index.html", "from a file"))
        entry, words = self.entry(container)
        with open(os.environ["HOB_BIN"], "rb") as binary:
            wanted = binary.read()
        at = self.buildah("mount", container).strip()
        with open(os.path.join(at, "usr/bin/hob"), "rb") as binary:
            self.assertEqual(binary.read(), wanted)
        self.assertTrue(os.path.exists(os.path.join(at, "usr/share/doc/hob/THIRD-PARTY.txt")))
        self.assertFalse(os.path.exists(os.path.join(at, "usr/bin/sh")))
        self.assertIn("Usage: hob", self.inside(container, *entry, *words))
        # A call runs there, and has a receipt.
        self.assertRegex(self.inside(container, *entry, "run", "hob", "--version"), r"^hob \d")
        receipt = json.loads(self.inside(container, *entry, "last", "--json"))
        self.assertIn(receipt["reason"], ("no-daemon", "not-hosted"))
        self.inside(container, *entry, "stop")
        site = [*entry, "serve", "/srv", "--listen", "127.0.0.1:0"]
        self.assertEqual(self.served(container, site, "/index.html"), b"from a file")

    def test_beside_an_interpreter(self):
        """The recipe of docs/install.md, which begins with this machine's interpreter here."""
        self.interpreter()
        with open(PAGE) as page:
            [recipe] = re.findall(r"```dockerfile\n(.*?)```", page.read(), re.DOTALL)
        place = self.place
        with open(place.path("Recipe"), "w") as file:
            file.write(re.sub(r"^FROM python\S*", "FROM localhost/interpreter", recipe))
        self.build("app", place.path("Recipe"), place.folder)
        container = self.container("app", ("/srv/app.py", APP))
        entry, words = self.entry(container)
        self.assertEqual([*entry, *words][-2:], ["--listen", "0.0.0.0:8000"])
        site = [*entry, *words][:-1] + ["127.0.0.1:0"]
        self.assertEqual(self.served(container, site, "/"), b"from an app")

    def interpreter(self):
        """An image with the interpreter of these tests, its modules, and the libraries of both."""
        place = self.place
        top = place.path("interpreter")
        python = os.path.realpath(sys.executable)
        modules = sysconfig.get_paths()["stdlib"]
        without = shutil.ignore_patterns("test", "*-packages", "__pycache__", "config-*")
        shutil.copytree(modules, top + modules, ignore=without)
        loaded = [python]
        for folder, _, names in os.walk(os.path.join(modules, "lib-dynload")):
            loaded += [os.path.join(folder, name) for name in names]
        libraries = set()
        for path in loaded:
            # The loader's own line has no arrow; what is linked statically has no line at all.
            said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, encoding="utf-8").stdout
            libraries.update(re.findall(r"(/\S+) \(0x", said))
        for path in [python, *libraries]:
            os.makedirs(os.path.dirname(top + path), exist_ok=True)
            shutil.copy(path, top + path)
        os.makedirs(top + "/usr/bin", exist_ok=True)
        if not os.path.exists(top + "/usr/bin/python3"):
            os.symlink(python, top + "/usr/bin/python3")
        with open(place.path("Interpreter"), "w") as file:
            file.write("FROM scratch\nCOPY . /\nENV PATH=/usr/bin HOME=/root\n")
        self.build("interpreter", place.path("Interpreter"), top)
