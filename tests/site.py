"""Follows each link of a site of HTML files: to a page that is there, and a place in it that is there.

Argument: the site's folder. Prints what leads nowhere, and fails if something does.
"""

import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The places of a page, and where it links to."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places.update(value for name, value in attrs.items() if name in ("id", "name"))
        link = attrs.get("src" if tag in ("img", "script") else "href")
        if link:
            self.links.append(link)


def main(site):
    pages = {}
    for folder, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    pages[os.path.realpath(path)] = Page(file.read())
    faults, links = [], 0
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            to = urllib.parse.unquote(parts.path)
            # A page for what is not found stands anywhere, and begins at the root.
            base = os.path.realpath(site) if to.startswith("/") else os.path.dirname(path)
            to = os.path.realpath(os.path.join(base, to.lstrip("/"))) if to else path
            if not os.path.exists(to):
                faults.append(f"{path}: {link}: no such file")
            elif parts.fragment and to in pages:
                place = urllib.parse.unquote(parts.fragment)
                if place not in pages[to].places:
                    faults.append(f"{path}: {link}: no such place")
    print(f"site: {len(pages)} pages, {links} links", *faults, sep="\n")
    return 1 if faults or len(pages) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
