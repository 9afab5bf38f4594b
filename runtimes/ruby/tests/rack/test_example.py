"""The example `foolsgold`, as its two mounts run it: what a copy counts alone, and what all count."""

import html
import os
import re
import shutil

from racks import HERE, ZYGOTE, Rack, with_each_rack

EXAMPLE = os.path.join(HERE, "..", "..", "..", "..", "examples", "foolsgold")


class Foolsgold(Rack):
    def setUp(self):
        super().setUp()
        # What it counts here is not the example's own total.
        file = os.path.join(self.place, "foolsgold", "config.ru")
        os.makedirs(os.path.join(self.place, "foolsgold", "state"))
        shutil.copy(os.path.join(EXAMPLE, "config.ru"), file)
        self.zygote = self.start(role=ZYGOTE, file=file)

    def visit(self, channel, prefix):
        """The numbers of a page: of the worker, of all."""
        status, headers, body = self.ask(channel, path="", prefix=prefix)
        self.assertEqual((status, dict(headers)["content-type"]), (200, "text/html; charset=utf-8"))
        page = html.unescape(body.decode())
        self.assertIn("<dt>mount</dt><dd>%s</dd>" % prefix, page)
        counts = r"worker</dt><dd>(\d+)</dd>.*total requests</dt><dd>(\d+)</dd>"
        return tuple(map(int, re.search(counts, page, re.DOTALL).groups()))

    def test_both_mounts_share_the_total_only(self):
        going_on, pidfd, _ = self.zygote.copy(1)
        seen = []
        for _ in range(3):
            fresh, other, _ = self.zygote.copy(1)
            seen.append(self.visit(fresh, "/fools-gold/shared-nothing"))
            self.close(self.zygote, fresh, other)
            seen.append(self.visit(going_on, "/fools-gold/prefork"))
        self.assertEqual(seen, [(1, 1), (1, 2), (1, 3), (2, 4), (1, 5), (3, 6)])
        self.assertEqual(self.ask(going_on, path="/total")[2], b"6\n")
        self.assertEqual(self.ask(going_on, path="/other")[0], 404)
        self.close(self.zygote, going_on, pidfd)

    def test_its_pages_link_to_files_that_are_there(self):
        channel, pidfd, _ = self.zygote.copy(1)
        page = self.ask(channel, path="/")[2].decode()
        self.close(self.zygote, channel, pidfd)
        public = os.path.join(EXAMPLE, "public")
        with open(os.path.join(public, "index.html"), encoding="utf-8") as file:
            links = re.findall(r'(?:src|href)="(/[^"]+)"', page + file.read())
        files = {link for link in links if not link.startswith("/fools-gold/")}
        self.assertEqual({os.path.exists(public + file) for file in files}, {True})
        self.assertEqual(files, {"/gold.css", "/gold.svg"})


with_each_rack(globals())
