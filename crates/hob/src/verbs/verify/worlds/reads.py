"""Notes which variables a Python program asks for by name, for `hob verify`.

Owns: the file `names` beside this one, a name a line, in the order in which they were first asked
for. It is found by `PYTHONPATH` in one cold run, before any line of the program. It takes itself out of
`sys.path`, `PYTHONPATH` and `sys.modules`, and makes way for the `sitecustomize` that would have
been found without it.

Deliberately not here: values; and what C code asks for by itself.
"""

import os
import sys


def watch(folder):
    """Note each name that is encoded: every look at a variable by its name does that first."""
    encode, known, limit = os.environ.encodekey, set(), 256

    def noted(name):
        if isinstance(name, str) and name not in known and len(known) < limit:
            known.add(name)
            try:
                file = os.open(folder + "/names", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    os.write(file, os.fsencode(name.replace("\n", " ")) + b"\n")
                finally:
                    os.close(file)
            except (OSError, UnicodeError):
                pass
        return encode(name)

    os.environ.encodekey = noted


def leave(folder):
    """Take every trace of this file's being found out of the program's sight."""
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
leave(folder)
watch(folder)
# If there is none, this fails as it would have without this file, and `site` goes on.
import sitecustomize  # noqa: E402, F401
