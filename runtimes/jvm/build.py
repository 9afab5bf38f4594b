"""Makes what a JVM waits with: the gate's classes and its shared object, in a folder that goes with
this process. `crates/hob-runtimes/build/jvm.rs` makes the same for the binary.
"""

import atexit
import glob
import os
import shutil
import subprocess
import tempfile

JVM = os.path.dirname(os.path.abspath(__file__))
GATE = os.path.join(os.path.dirname(os.path.dirname(JVM)), "crates", "hob-gate", "src", "lib.rs")
RUSTC = """
    --edition 2024 --crate-type cdylib --crate-name gate --cfg shared -C panic=abort -C opt-level=s
    -C link-arg=-nostdlib -C link-arg=-nostartfiles -C strip=symbols
""".split()


def make():
    """The folder of the classes, and the shared object."""
    folder = tempfile.mkdtemp(prefix="hob-gate-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    classes, gate = os.path.join(folder, "classes"), os.path.join(folder, "gate.so")
    sources = glob.glob(os.path.join(JVM, "gate", "*.java"))
    sources += glob.glob(os.path.join(JVM, "stubs", "*.java"))
    program(classes, *sources)
    subprocess.run(["rustc", *RUSTC, "-o", gate, GATE], check=True)
    return classes, gate


def program(folder, *sources):
    """Compiles a program into a folder. For a compiler that is started for so little, to translate
    itself well takes longer than to compile."""
    quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    command = ["javac", *quick, "--release", "17", "-proc:none", "-nowarn", "-d", folder, *sources]
    subprocess.run(command, check=True)


def homes():
    """The JDKs of this machine that are hosted, from 17 on, each once."""
    found = {}
    javac = shutil.which("javac")
    candidates = sorted(glob.glob("/usr/lib/jvm/*/release")) + sorted(glob.glob("/opt/*/release"))
    if javac:
        home = os.path.dirname(os.path.dirname(os.path.realpath(javac)))
        candidates.append(os.path.join(home, "release"))
    for release in candidates:
        home = os.path.dirname(os.path.realpath(release))
        if not os.path.exists(os.path.join(home, "bin", "java")):
            # A distribution may link the file to where its settings lie.
            home = os.path.realpath(os.path.dirname(release))
        with open(release) as file:
            lines = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
        major = int(lines.get("JAVA_VERSION", '"0"').strip('"').split(".")[0])
        if 17 <= major <= 25 and os.path.exists(os.path.join(home, "bin", "java")):
            found[home] = major
    return found
