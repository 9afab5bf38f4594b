"""What `make demo` shows: three real commands, cold and warm in the same rounds, and a receipt.

Argument: the binary. It needs nothing but the standard library, so that nothing is built for it.
The environment of the commands lies in target/bench, and is made once; all else is removed.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What is typed, the file that it reads or changes, and that file among the inputs.
COMMANDS = (
    (("black", "--quiet", "input.py"), "input.py", "input.py.txt"),
    (("yamllint", "input.yaml"), "input.yaml", "input.yaml"),
    (("http", "--version"), None, None),
)
ROUNDS = 9
# After a call, so that a copy is ready again, as it is between the calls of a person.
GAP_S = 0.06
# So many calls may pass until one is warm, and so many more warm ones go before the first that counts.
TEACH_MAX, SETTLE = 60, 10


def main(binary):
    hob = os.path.realpath(binary)
    if not os.access(hob, os.X_OK):
        sys.exit("demo: %s: no such program; `make build` builds it" % binary)
    # Who ends it leaves no daemon behind: what follows `try` is done then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    venv = environment()
    place = tempfile.mkdtemp(prefix="hob-demo-")
    world = {name: value for name, value in os.environ.items() if name[:4] != "HOB_"}
    world.update(HOB_DIR=place + "/run", XDG_STATE_HOME=place + "/state", HOME=place,
                 PATH=venv + "/bin:" + os.environ["PATH"], NO_COLOR="1", COLUMNS="80")
    try:
        show(Demo(hob, venv, place, world))
    finally:
        subprocess.run([hob, "stop"], env=world, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(place, ignore_errors=True)
    print("\nThe daemon has left, and nothing stays behind. Yours: %s run PROGRAM" % shown_path(binary))


def show(demo):
    print("\nThree commands from PyPI, each run %d times without hob and through `hob run`,\n"
          "in turns. Every run gave the same output both ways. Medians of the whole process:\n\n"
          "%-24s %12s %12s %10s" % (ROUNDS, "", "without hob", "hob run", "faster"), flush=True)
    for words, name, source in COMMANDS:
        cold, warm = demo.measure(words, name, source)
        shown = "%s %s" % (words[0], "FILE" if name else words[1])
        print("%-24s %9.1f ms %9.2f ms %8.1f x" % (shown, cold, warm, cold / warm), flush=True)
    if os.path.basename(os.path.dirname(demo.hob)) == "quick":
        print("\nThis hob was built quickly, with its checks on: what ships (`make build`) takes less.")
    print("\nThe receipt of the last call (`hob last`):\n\n" + demo.said("last"), end="")


class Demo:
    """A private daemon, and the commands in folders of their own."""

    def __init__(self, hob, venv, place, world):
        self.hob, self.venv, self.place, self.world = hob, venv, place, world

    def said(self, *words):
        """What hob prints."""
        told = subprocess.run([self.hob, *words], env=self.world, check=True, stdout=subprocess.PIPE)
        return told.stdout.decode()

    def measure(self, words, name, source):
        """The medians of the runs without hob, and of those through it, in ms."""
        folder = os.path.join(self.place, words[0])
        os.mkdir(folder)
        content = None
        if name:
            with open(os.path.join(ROOT, "bench/inputs", source), "rb") as file:
                content = file.read()

        def run(argv):
            """How long it took, and what it gave: each run finds the same file."""
            path = os.path.join(folder, name or "none")
            if name:
                with open(path, "wb") as file:
                    file.write(content)
            begin = time.perf_counter()
            ended = subprocess.run(argv, env=self.world, cwd=folder, stdin=subprocess.DEVNULL,
                                   capture_output=True)
            took = (time.perf_counter() - begin) * 1e3
            time.sleep(GAP_S)
            left = None
            if name:
                with open(path, "rb") as file:
                    left = file.read()
            return took, (ended.returncode, ended.stdout, ended.stderr, left)

        cold = [os.path.join(self.venv, "bin", words[0]), *words[1:]]
        warm = [self.hob, "run", *words]
        expected = run(cold)[1]

        def checked(argv):
            took, gave = run(argv)
            if gave != expected:
                sys.exit("demo: %s: %r, and without hob %r" % (" ".join(argv), gave, expected))
            return took

        for _ in range(TEACH_MAX):
            checked(warm)
            if json.loads(self.said("last", "--json"))["warm"]:
                break
        else:
            sys.exit("demo: %s: none of %d calls was warm; %s" % (
                words[0], TEACH_MAX, self.said("last").splitlines()[0]))
        for _ in range(SETTLE):
            checked(warm)
        times = [(checked(cold), checked(warm)) for _ in range(ROUNDS)]
        return [statistics.median(side) for side in zip(*times)]


def environment():
    """The virtual environment with exactly the packages that are pinned."""
    folder = os.path.join(ROOT, "target/bench/venv-demo")
    pins = os.path.join(ROOT, "bench/requirements-demo.txt")
    # `python3` may be a version manager's shim, whose cost is not Python's.
    python = os.path.realpath(sys.executable)
    with open(pins) as file:
        want = python + "\n" + file.read()
    stamp = os.path.join(folder, "made-from.txt")
    try:
        with open(stamp) as file:
            if file.read() == want:
                return folder
    except OSError:
        pass
    print("installing black, yamllint and httpie in target/bench (once) ...", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    pip = [folder + "/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--no-deps", "--requirement", pins]
    for step in ([python, "-m", "venv", folder], pip):
        if subprocess.run(step, stdin=subprocess.DEVNULL).returncode:
            sys.exit("demo: %s failed" % " ".join(step[:4]))
    with open(stamp, "w") as file:
        file.write(want)
    return folder


def shown_path(binary):
    """A path as a person types it here."""
    near = os.path.relpath(binary, ROOT)
    return binary if near.startswith("..") else near


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py HOB")
    main(sys.argv[1])
