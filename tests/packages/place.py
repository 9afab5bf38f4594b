"""A private root for one package: its folders, its hob, and what is left in it."""

import json
import os
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIST = os.path.abspath(os.environ["HOB_DIST"])
# A busy machine may make a call late; how many a hello needs to be warm is bounded all the same.
CALLS_MAX = 50


def package(ending):
    """The one file of the distribution that ends so."""
    found = [name for name in os.listdir(DIST) if name.endswith(ending)]
    assert len(found) == 1, (ending, found)
    return os.path.join(DIST, found[0])


class Place:
    """A folder with a HOME, in which packages are installed and hob is called."""

    def __init__(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="hob-packages-"))
        self.home = self.path("home")
        # Its name is short: a socket's path has 108 bytes.
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": self.home,
            "HOB_DIR": self.path("run"),
            "XDG_STATE_HOME": self.path("state"),
            "LANG": "C.UTF-8",
        }
        os.mkdir(self.home)
        with open(self.path("hello.py"), "w") as script:
            script.write("import sys\nprint('hello', *sys.argv[1:])\n")

    def path(self, *below):
        return os.path.join(self.folder, *below)

    def run(self, *words, fails=False, **env):
        """What a command prints on both streams; it must succeed, or fail if it is to."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert (done.returncode != 0) == fails, (words, done.returncode, done.stdout)
        return done.stdout

    def warm(self, hob):
        """Calls a script until a receipt says that it was warm."""
        said = []
        for _ in range(CALLS_MAX):
            assert self.run(hob, "run", self.path("hello.py"), "x") == "hello x\n"
            receipt = json.loads(self.run(hob, "last", "--json"))
            if receipt["warm"]:
                return
            said.append(receipt["reason"])
        raise AssertionError(f"no call of {CALLS_MAX} was warm: {said}")

    def files(self, *below):
        """Every file and link below a folder, from there."""
        top = self.path(*below)
        found = []
        for folder, folders, names in os.walk(top):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            found += [os.path.relpath(os.path.join(folder, name), top) for name in names + links]
        return sorted(found)

    def end(self, hob):
        """Stops the daemon, which leaves nothing in its directory."""
        self.run(hob, "stop")
        assert self.files("run") == [], self.files("run")

    def remove(self):
        # A test that failed may have left a daemon, and a package that is removed has no hob.
        self.run(os.path.abspath(os.environ["HOB_BIN"]), "stop")
        shutil.rmtree(self.folder)
