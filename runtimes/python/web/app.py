"""Web apps: the part of the Python runtime that answers HTTP requests (docs/worker.md, "Web apps").

`worker.py` loads this file in the processes of an app, beside `message.py`. An app stands where a
handler's function stands: the payload of its message is a request, its answer a response.

Owns: how an app is found, and what WSGI (PEP 3333) and ASGI (3.0) make of a request and of what
the app says. A request is whole here; what is streamed of an answer, `exchange.py` sends.

Does not: parse HTTP, or decide what a client may send. The front has done both.
"""

import sys

worker = worker  # noqa: F821, PLW0127  Put here by whoever loaded this file.

posix, os, _io = worker.posix, worker.os, worker._io
message = worker.HANDLERS
struct = message.struct


class App(message.Loaded):
    """An app, as a target names it: `INTERFACE:FILE:CALLABLE`."""

    def __init__(self, target):
        super().__init__(target.partition(":")[2])
        self.interface = target.partition(":")[0]
        self.directory, self.name = place_of(self.file, posix.getcwd())
        self.performer = None
        self.takes = True

    def find(self):
        """Imports the app's module, as a server would that was told its name."""
        make = INTERFACES.get(self.interface)
        if make is None:
            self.error = "%s: Python has no interface `%s`" % (self.file, self.interface)
            return
        found = self.module()
        for name in self.function.split("."):
            found = getattr(found, name, None)
        if not callable(found):
            self.error = "%s has nothing to call that is named `%s`" % (self.file, self.function)
            return
        self.call = self.performer = make(found)
        self.attend = getattr(self.performer, "attend", None)

    def module(self):
        """The module; in a package it is imported after that, which may have imported it."""
        parent, _, last = self.name.rpartition(".")
        if not parent:
            return self.execute()
        __import__(parent)
        package = sys.modules[parent]
        place = self.directory + "/" + parent.replace(".", "/")
        if place not in getattr(package, "__path__", ()):
            raise ImportError("%s cannot be `%s`, which is another module" % (place, parent))
        module = sys.modules.get(self.name)
        if getattr(module, "__file__", None) != self.file:
            module = self.execute()
            setattr(package, last, module)
        return module

    def end(self):
        if self.performer is not None:
            self.performer.end()


def place_of(file, top):
    """The directory in which an import of the file begins, and its module's name: that of a file in
    packages begins outside of them, but not above the directory `top`."""
    directory, base = os.path.split(file)
    stem = base.rpartition(".")[0] or base
    names = [] if stem == "__init__" else [stem]
    while directory != top and os.path.isfile(directory + "/__init__.py"):
        above, name = os.path.split(directory)
        if not name.isidentifier():
            break
        directory, names = above, [name, *names]
    return directory, ".".join(names) or stem
