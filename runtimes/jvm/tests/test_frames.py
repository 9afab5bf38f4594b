"""The frames that the gate says and hears are, byte by byte, those of `runtimes/golden/`."""

import os
import subprocess
import tempfile
import unittest

from harness import GOLDEN, ROWS, build

SAYS = """
    package hob;

    import java.nio.file.Files;
    import java.nio.file.Path;
    import java.util.ArrayList;
    import java.util.List;

    public final class Says {
        public static void main(String[] words) throws Throwable {
            Gate.open(words[0]);
            if (words[1].equals("preload")) {
                hears(Files.readAllBytes(Path.of(words[2])));
                return;
            }
            List<byte[]> notes = new ArrayList<>();
            for (String note : List.of("Mjson", "F/usr/lib/python3.11/json/__init__.py", "EHOME")) {
                notes.add(note.getBytes());
            }
            (switch (words[1]) {
                case "ready" -> Frames.ready(43, 1, notes);
                case "ended" -> Frames.ended(7, 3);
                case "finished" -> Frames.finished(7, 3, 1_000_400_000, 1_000_500_000);
                case "joined" -> Frames.joined(7, 1_000_350_000);
                case "executes" -> Frames.executes(7, 1_000_400_000, World.OF_SIGNALS);
                case "failed" -> Frames.failed("no module");
                default -> throw new IllegalArgumentException(words[1]);
            }).send(1);
        }

        private static void hears(byte[] bytes) {
            long at = Kernel.MEMORY.allocateMemory(bytes.length);
            Kernel.put(at, bytes);
            int head = Frames.HEADER_BYTES;
            Frames.In in = new Frames.In(at + head, bytes.length - head);
            System.out.println(in.u8() + " " + in.u8() + " " + new String(in.blob()));
            for (int list = 0; list < 3; list++) {
                for (byte[] one : in.strings()) System.out.print(new String(one) + "|");
                System.out.println();
            }
        }
    }
"""
HEARD = """0 0 /srv/app/script.py
/usr/bin/python3|-u|
json|os.path|
script.py||
"""
ROLE = 12


def golden(name):
    with open(os.path.join(GOLDEN, name + ".bin"), "rb") as file:
        return file.read()


@unittest.skipUnless(ROWS, "no JDK here")
class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.row = ROWS[0]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        source = os.path.join(folder.name, "Says.java")
        with open(source, "w") as file:
            file.write(SAYS)
        cls.classes = os.path.join(folder.name, "classes")
        build.program(cls.classes, "-cp", cls.row.classes, source)

    def said(self, *words):
        path = "-Xbootclasspath/a:%s:%s" % (self.row.classes, self.classes)
        command = [self.row.interpreter, path, "hob.Says", self.row.gate, *words]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

    def test_what_it_says(self):
        for name in ("ready", "ended", "finished", "joined", "executes", "failed"):
            with self.subTest(name=name):
                want = bytearray(golden(name))
                if name == "ready":
                    # A zygote's there, and a JVM is none.
                    want[ROLE] = 1
                self.assertEqual(self.said(name), want)

    def test_what_it_hears(self):
        path = os.path.join(GOLDEN, "preload.bin")
        self.assertEqual(self.said("preload", path).decode(), HEARD)


if __name__ == "__main__":
    unittest.main()
