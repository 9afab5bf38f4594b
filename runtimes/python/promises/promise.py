"""Temporary directories, and names by chance, that modules make while they are imported ahead of
calls (docs/why/promises.md).

`imports.py` takes this file in, and puts the worker in as `worker`.

Owns: the promise. A module that asks `tempfile.mkdtemp` for a directory gets a name, and no
directory is made. Each call makes one of its own, before its program runs, and puts its name
wherever the promised one is kept.

Invariants
- A promise is kept only if every place that holds its name, or a part of it, is known and can be
  given another. Otherwise its modules are hazards like all others that change something outside.
- Neither a zygote nor a copy that waits makes a directory, nor a call that would make none cold:
  only what the script imports before it does anything else is promised.
- A directory that cannot be made sends the call into a new process, before the program runs.

Not seen: what somebody has made of a name that is no text any more, such as its length.
"""

import sys

worker = globals()["worker"]
posix, os, gc, borrow, names_of = (
    worker.posix, worker.os, worker.gc, worker.borrow, worker.names_of)

# What `tempfile` makes names of.
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"
TOKEN_CHARACTERS = 8
OURS = "runtime imports", "runtime promises", "runtime watch"


class Promise:
    """A text that was given to a module, and how a call makes its own."""

    def __init__(self, text, marks, chain, make=None):
        # Without one it is drawn, and how is found out later.
        self.is_folder = make is not None
        # Whoever keeps one of these in a text of any kind keeps something of the promise.
        self.marks, self.chain, self.make = marks, chain, make
        # Nothing else of ours holds it: who does is counted.
        self.text = [text]
