"""A formatter and a linter that run on a JVM, compared with their cold runs by `hob verify`."""

import glob
import json
import os
import shutil
import subprocess
import unittest

from world import private

HOB = os.environ["HOB_BIN"]
JARS = os.environ.get("HOB_JAVA_TOOLS", "")
WAIT_S = 600

UNTIDY = """package a; import java.util.*;
public class A { public static void main(String[] x){
  List<String> l=new ArrayList<>(); for(String s:x){l.add(s);} System.out.println(l);} }
"""
# What the formatter's README says that it needs since JDK 16.
EXPORTED = ["api", "code", "file", "parser", "tree", "util"]


@unittest.skipUnless(JARS, "the tools are not there")
class Tools(unittest.TestCase):
    def setUp(self):
        self.place, self.world = private("java-tools")
        self.addCleanup(shutil.rmtree, self.place)
        self.addCleanup(self.hob, "stop")
        with open(os.path.join(self.place, "A.java"), "w") as source:
            source.write(UNTIDY)
        self.classes = ":".join(sorted(glob.glob(os.path.join(JARS, "*.jar"))))

    def hob(self, *words):
        return subprocess.run(
            [HOB, *words],
            cwd=self.place,
            env=self.world,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            text=True,
        )

    def same(self, worlds, *words):
        """Warm runs do as cold ones, and there were warm ones."""
        done = self.hob("verify", "--json", "-n", "2", "--worlds", worlds, *words)
        self.assertEqual(done.returncode, 0, done)
        found = json.loads(done.stdout)
        self.assertEqual((found["verdict"], found["runs"]["warm"]), ("same", 2), found)
        ends = [aspect for aspect in found["aspects"] if aspect["name"] == "exit"]
        self.assertEqual(ends[0]["note"], "exited 0", found)
        for world in found["worlds"]:
            self.assertIn(world["verdict"], ("same", "cold"), found)

    def test_google_java_format(self):
        packages = [f"jdk.compiler/com.sun.tools.javac.{name}" for name in EXPORTED]
        options = [word for name in packages for word in ("--add-exports", name + "=ALL-UNNAMED")]
        main = "com.google.googlejavaformat.java.Main"
        words = ["java", *options, "-cp", self.classes, main, "A.java"]
        formatted = self.hob("run", *words)
        self.assertIn("public class A {\n  public static void main(String[] x) {", formatted.stdout)
        self.same("directory,environment-order,umask", *words)

    def test_checkstyle(self):
        main = "com.puppycrawl.tools.checkstyle.Main"
        words = ["java", "-cp", self.classes, main, "-c", "/google_checks.xml", "A.java"]
        found = self.hob("run", *words)
        self.assertIn("[RightCurlyAlone]", found.stdout)
        self.same("none", *words)


if __name__ == "__main__":
    unittest.main()
