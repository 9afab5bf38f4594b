"""What `.ci/release` makes of the packages of several machines, by made-up folders of them."""

import hashlib
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def digests(folder):
    """The lines that sha256sum would write of a folder's files."""
    lines = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            lines.append(f"{hashlib.sha256(file.read()).hexdigest()}  {name}\n")
    return "".join(lines)


class Release(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="hob-release-")
        self.addCleanup(place.cleanup)
        self.place = place.name

    def dist(self, machine, **others):
        """A folder as `make dist` leaves it."""
        folder = os.path.join(self.place, machine)
        os.mkdir(folder)
        files = {f"hob-1.0-{machine}-linux.tar.gz": machine, "install.sh": "the same"}
        files["THIRD-PARTY.txt"] = f"of {machine}"
        for name, text in {**files, **others}.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        sums = digests(folder)
        with open(os.path.join(folder, "SHA256SUMS"), "w") as file:
            file.write(sums)
        return folder

    def release(self, *folders):
        out = os.path.join(self.place, "out")
        words = ["bash", os.path.join(ROOT, ".ci/release"), out, *folders]
        return out, subprocess.run(words, stderr=subprocess.PIPE, encoding="utf-8")

    def test_one_list_of_digests_names_all_files(self):
        out, ended = self.release(self.dist("x86_64"), self.dist("aarch64"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        with open(os.path.join(out, "SHA256SUMS")) as file:
            sums = file.read()
        os.remove(os.path.join(out, "SHA256SUMS"))
        self.assertEqual(sums, digests(out))
        self.assertEqual(
            sorted(os.listdir(out)),
            [
                "THIRD-PARTY-aarch64.txt",
                "THIRD-PARTY.txt",
                "hob-1.0-aarch64-linux.tar.gz",
                "hob-1.0-x86_64-linux.tar.gz",
                "install.sh",
            ],
        )

    def test_what_should_be_the_same_and_is_not_is_refused(self):
        other = self.dist("aarch64", **{"install.sh": "another one"})
        _, ended = self.release(self.dist("x86_64"), other)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("install.sh differs between machines", ended.stderr)

    def test_a_file_that_is_not_what_its_digest_says_is_refused(self):
        folder = self.dist("x86_64")
        with open(os.path.join(folder, "install.sh"), "w") as file:
            file.write("changed since")
        _, ended = self.release(folder)
        self.assertNotEqual(ended.returncode, 0)


if __name__ == "__main__":
    unittest.main()
