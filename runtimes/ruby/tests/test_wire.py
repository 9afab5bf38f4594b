"""The frames that the Ruby runtime says are, byte by byte, those of `runtimes/golden/`."""

import os
import subprocess
import unittest

from harness import GOLDEN, ROW, Case

NOTES = '["Mjson", "F/usr/lib/python3.11/json/__init__.py", "EHOME"]'
SAID = {
    "ready": "F.ready(0, 43, 1, %s)" % NOTES,
    "forked": "F.forked(9, 44, '')",
    "gone": "F.gone(9, [1, 11], [1500, 250, 9216])",
    "ended": "F.ended(7, [0, 3])",
    "finished": "F.finished(7, [0, 3], 1_000_400_000, 1_000_500_000)",
    "joined": "F.joined(7, 1_000_350_000)",
    "notes": "F.notes(7, %s)" % NOTES,
    "failed": "F.failed('no module')",
}
PRELOAD = b"""[32, 0, 112]
[0, 0, "/srv/app/script.py", ["/usr/bin/python3", "-u"], ["json", "os.path"], ["script.py", ""]]
"""
FRAMES = os.path.join(os.path.dirname(ROW.worker), "frames.rb")


class Golden(Case):
    def ruby(self, text):
        text = "hob = Module.new; hob.module_eval(File.read(%r))\nF = hob::Frames\n%s" % (FRAMES, text)
        done = subprocess.run([ROW.interpreter, "-e", text], stdout=subprocess.PIPE, check=True)
        return done.stdout

    def golden(self, name):
        with open(os.path.join(GOLDEN, name + ".bin"), "rb") as file:
            return file.read()

    def test_what_it_says(self):
        for name, text in SAID.items():
            with self.subTest(name=name):
                self.assertEqual(self.ruby("$stdout.binmode.write(%s)" % text), self.golden(name))

    def test_what_it_hears(self):
        path = os.path.join(GOLDEN, "preload.bin")
        text = "d = File.binread(%r); p F.header(d), F.take_preload(d.byteslice(12, 2000))"
        out = self.ruby(text % path)
        self.assertEqual(out, PRELOAD)

    def test_a_fork_and_a_give(self):
        text = "d = File.binread(%r); p F.take_fork(d.byteslice(12, 2000))"
        self.assertEqual(self.ruby(text % os.path.join(GOLDEN, "fork.bin")), b"[9, 1]\n")
        text = """
            hob.module_eval(File.read(%r)); W = hob::World
            d = File.binread(%r).byteslice(12, 2000)
            p d.unpack("Q<VVQ<"), d.byteslice(W::AT_LIMITS + 7 * 16, 16).unpack("Q<2")
            p d.byteslice(W::AT_PRIORITY, W::AT_ARGV - W::AT_PRIORITY).unpack("l<L<L<l<Q<")
            p W::LIMITS, F.take_strings(d, W::AT_ARGV)[0].map(&:bytesize)
        """
        text %= os.path.join(os.path.dirname(FRAMES), "world.rb"), os.path.join(GOLDEN, "give.bin")
        want = "[7, 41, 23, 4096]\n[1024, 4096]\n[-3, 16388, 3, 200, 50000]\n16\n[9, 0, 5, 2]\n"
        self.assertEqual(self.ruby(text), want.encode())

    def test_messages_and_lanes(self):
        text = """
            hob.module_eval(File.read(%r)); M = hob::Messages
            read = ->(name) { File.binread(File.join(%r, name + ".bin")).byteslice(12, 2000) }
            p M.fields(read.("message")), read.("message").byteslice(M::FIXED_BYTES, 7)
            p read.("lend").unpack(M::LENT)
            p M.failure(11, M::RAISED, "KeyError: 'name'").byteslice(12, 2000) == read.("failure")
            p [13, 100, 1, 0, 1_000_400_000, 1_000_410_000, 1].pack(M::REPORT) == read.("handled")
        """
        text %= os.path.join(os.path.dirname(FRAMES), "message.rb"), GOLDEN
        want = '[11, 0, 5000000, 7, 5, 16, 3]\n"greeter"\n[13, 256]\ntrue\ntrue\n'
        self.assertEqual(self.ruby(text), want.encode())

    def test_what_is_no_frame(self):
        for text in (
            "F.header('hob'.b + [2, 1, 0, 0, 0].pack('CCCvV'))",
            "F.header('hob'.b + [1, 1, 0, 1, 0].pack('CCCvV'))",
            "F.header('hob'.b + [1, 1, 0, 0, 1 << 21].pack('CCCvV'))",
            "F.take_blob([5].pack('V') + 'abc', 0)",
            "F.take_blob('ab', 0)",
            "F.take_strings([2, 2].pack('VV') + %(a\\0), 0)",
            "F.take_strings([1, 1].pack('VV') + 'a', 0)",
            "F.frame(1, 'x' * ((1 << 20) + 1))",
        ):
            with self.subTest(text=text):
                rescued = "begin; %s; puts 'none'; rescue F::WireError; puts 'refused'; end"
                out = self.ruby(rescued % text)
                self.assertEqual(out, b"refused\n")


if __name__ == "__main__":
    unittest.main()
