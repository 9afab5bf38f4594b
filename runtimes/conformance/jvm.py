"""How a JVM is started, one row for each JDK here, and the programs of the dialogue as classes.

A JVM waits for one call and is never forked; a program is a class on the class path, not a file.
"""

import os
import shutil
import sys
import tempfile
import textwrap

RUNTIMES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

sys.path.insert(0, os.path.join(RUNTIMES, "jvm"))
import build

# As the schema of the wire has it (docs/wire.md, kinds of a target).
CLASS = 6


class Jvm:
    """How a standby and a cold run are started."""

    name = "jvm"

    def __init__(self, interpreter, classes, gate, version=""):
        self.interpreter, self.classes, self.gate = interpreter, classes, gate
        self.version = version

    def serve(self, options, script, kind):
        gate = ["-Xbootclasspath/a:" + self.classes, "hob.Gate", self.gate]
        return [self.interpreter, *options, *gate]

    def cold(self, options, argv, kind):
        return [self.interpreter, *options, *argv]


def made():
    """The gate's classes and its shared object, and the JDKs; none where there is no compiler."""
    if not shutil.which("javac") or not shutil.which("rustc"):
        return "", "", {}
    return (*build.make(), build.homes())


def rows(base):
    """The rows of the dialogue, each of which is also one of these."""
    classes, gate, homes = made()
    if not homes:
        return []
    compiled = tempfile.mkdtemp(prefix="hob-dialogue-", dir=os.path.dirname(gate))
    for name, text in PROGRAMS.items():
        with open(os.path.join(compiled, name + ".java"), "w") as file:
            file.write(HEAD % name + textwrap.indent(textwrap.dedent(text), "        ") + "    }\n}\n")
    build.program(compiled, *(os.path.join(compiled, name + ".java") for name in PROGRAMS))

    class Of(Jvm, base):
        forks = False
        # It has no zygote, is given no call with a closed stream, learns nothing, and has no handlers.
        lacks = ("Closed", "Forks", "Learns", "Handlers")
        ends_by_itself = True
        # Above them it has files of its own.
        many = range(9, 64)
        # What the daemon holds for it, as `held_below` of its row has it.
        held = range(3, 64)

        def write(self, place):
            for name in PROGRAMS:
                shutil.copy(os.path.join(compiled, name + ".class"), place)

        def named(self, name):
            return name

        def elsewhere(self, place, name):
            return name

        def how(self, place, name):
            return {"options": ["-cp", place], "kind": CLASS, "target": name}

    java = os.path.join("bin", "java")
    return [Of(os.path.join(home, java), classes, gate, str(of)) for home, of in homes.items()]


HEAD = """import java.io.*;
import java.nio.file.*;
import java.util.*;
public class %s {
    public static void main(String[] words) throws Exception {
"""

PROGRAMS = {
    "hello": 'System.out.println("hello");',
    "echo": """
        System.out.println(Arrays.toString(words) + System.getenv("HOB_TEST"));
        System.out.println(Path.of("").toAbsolutePath());
        System.in.transferTo(System.out);
        System.out.flush();
        System.err.println("error");
    """,
    "exit": "System.exit(Integer.parseInt(words[0]));",
    "raise": 'throw new IllegalStateException("boo");',
    "crash": """
        String own = Long.toString(ProcessHandle.current().pid());
        new ProcessBuilder("kill", "-ABRT", own).inheritIO().start().waitFor();
        Thread.sleep(30_000);
    """,
    "sleep": """
        System.out.print("ready\\n");
        System.out.flush();
        Thread.sleep(30_000);
    """,
    "descriptors": """
        for (String number : words) {
            for (String line : Files.readAllLines(Path.of("/proc/self/fdinfo/" + number))) {
                if (line.matches("(pos|flags):.*")) System.out.println(number + " " + line);
            }
            try (var more = new FileInputStream("/dev/fd/" + number)) {
                System.out.println(more.read());
            }
        }
    """,
}
