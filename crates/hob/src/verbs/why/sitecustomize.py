"""Stamps a Python program's imports, for `hob why`.

Owns: the time of each import of the main thread, and of the beginning of the interpreter's
finalisation, by `CLOCK_MONOTONIC`, written to the file `stamps` beside this one.

It is found by `PYTHONPATH` in one measured run, before any line of the program. It takes itself
out of `sys.path`, `PYTHONPATH` and `sys.modules`, and makes way for the `sitecustomize` that
would have been found without it.

Deliberately not here: what the stamps mean, and imports of other threads, which overlap.
"""

import sys


def watch(folder):
    """Puts the stamping import in the interpreter's own one's place."""
    import _thread
    import atexit
    import os
    from time import monotonic_ns

    bootstrap = sys.modules["_frozen_importlib"]
    load, modules = bootstrap._find_and_load, sys.modules
    thread, main = _thread.get_ident, _thread.get_ident()
    depth, lines = 0, []
    file = os.open(folder + "/stamps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        # A program's own first descriptors have the numbers that they would have.
        high = os.dup2(file, 200, False)
        os.close(file)
        file = high
    except OSError:
        pass

    def write():
        nonlocal file
        try:
            if file >= 0:
                os.write(file, "".join(lines).encode("utf-8", "replace"))
        except OSError:
            file = -1
        lines.clear()

    def find_and_load(name, import_):
        nonlocal depth
        if name in modules or thread() != main:
            return load(name, import_)
        depth += 1
        begin = monotonic_ns()
        try:
            return load(name, import_)
        finally:
            end = monotonic_ns()
            depth -= 1
            lines.append("I %d %d %d %s\n" % (depth, begin, end, name))
            if not depth:
                write()

    def in_child():
        nonlocal file
        file = -1

    def finalising():
        lines.append("F %d\n" % monotonic_ns())
        write()

    def installed():
        version = sys.version_info
        lines.append("V %d %d %d\n" % (monotonic_ns(), version[0], version[1]))
        write()

    os.register_at_fork(after_in_child=in_child)
    # Registered first, called last: what follows is the interpreter's own.
    atexit.register(finalising)
    bootstrap._find_and_load = find_and_load
    return installed


def leave(folder):
    """Takes every trace of this file's being found out of the program's sight."""
    import os

    while folder in sys.path:
        sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    before = os.environ.get("PYTHONPATH", "").partition(":")[2]
    if before:
        os.environ["PYTHONPATH"] = before
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.modules.pop("sitecustomize", None)


folder = __file__.rpartition("/")[0]
# Older ones have no such clock; then nothing is stamped, and that tells.
done = watch(folder) if sys.version_info >= (3, 7) else None
leave(folder)
if done:
    done()
# If there is none, this fails as it would have without this file, and `site` goes on.
import sitecustomize  # noqa: E402, F401
