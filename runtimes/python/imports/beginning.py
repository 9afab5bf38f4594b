"""What modules do and look at while they are imported ahead of calls (docs/worker.md, notes).

`worker.py` loads this file where modules are preloaded, and puts itself in as `worker`.

Owns: what of the outside an import depends on (`Opened`), and which modules each call must import
itself, because they change something or keep something of the very moment (`Opened`, `Looks`).

Invariants
- Nothing outside the process is changed by a preload: who is about to is stopped before (`Stop`).
- Afterwards no module holds anything of ours, and the interpreter does not know that we listened.
"""

import sys

worker = globals()["worker"]
posix, os, gc = worker.posix, worker.os, worker.gc
is_temporary, names_of, hide = worker.is_temporary, worker.names_of, worker.hide


class Stop(BaseException):
    """Ends an import that is about to change something outside. In the call it may."""
