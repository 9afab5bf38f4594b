"""The Python runtime: lives inside an interpreter and performs calls (docs/worker.md, wire.md).

Owns: the zygote, the standby, the copy, and the learning run. A program that a copy performs
must be indistinguishable from `INTERPRETER OPTIONS script args`.

Invariants
- A process with more than one thread is never forked.
- What a program can look at (`sys.modules`, `__main__`, frames, descriptors, environment) holds
  nothing of ours: modules that only we need are taken out of `sys.modules`, and the frames below
  the program are hidden (`hide`).
- `ended` is sent once, after everything that the program can still do, and before teardown.
- What cannot be reproduced here is executed anew in this very process (`run_anew`) or finalised
  by the interpreter itself; the zygote's `gone` then tells how it ended.

Does not: decide anything about keys, staleness or isolation; survive its parent.
"""

import sys

# `start.py` leaves these: what the interpreter itself puts into `__main__`, our files as code, and
# what the collector counted when it began.
NATURAL, BYTECODE, BEGAN = map(globals().get, ("NATURAL", "BYTECODE", "BEGAN"))
BASELINE = dict.fromkeys(sys.modules)
FINDERS, IMPORT = list(sys.meta_path), __import__


def borrow(name):
    """Imports a module for our own use and leaves no trace of it in `sys.modules`."""
    before, finders = set(sys.modules), sys.meta_path
    # A program's own finders are not asked for what it does not import.
    sys.meta_path = FINDERS
    try:
        module = IMPORT(name)
    finally:
        sys.meta_path = finders
    for new in set(sys.modules) - before:
        del sys.modules[new]
    return module


def own(name):
    """The same with names of our own: where others find stand-ins (`watch.py`), we find what the
    interpreter has."""
    module = type(sys)(name)
    module.__dict__.update(borrow(name).__dict__)
    return module


posix = own("posix")
time = own("time")
_io = own("_io")
_imp = own("_imp")
_signal = own("_signal")
_thread = own("_thread")
gc = own("gc")
# Where the interpreter's start-up code has yet to run, this is not the program's `os`.
os = borrow("os")
getframe = sys._getframe

# wire:begin python-worker (`cargo xtask wire` writes these lines)
ZYGOTE, STANDBY, COPY = 0, 1, 2
UNPAID, PAID, PLAIN = 0, 1, 2
SCRIPT, MODULE, HANDLER, APP, BARE, INSTALLED = 0, 1, 2, 3, 4, 5
PRELOAD, READY, FORK, FORKED, GONE = 32, 33, 34, 35, 36
OF_PROGRAM, OF_DESCRIPTORS, OF_EDITED = 0, 8, 9
GIVE, FINISHED, NOTES, SPANS, FAILED, JOINED, ENDED, EXECUTES = 37, 38, 39, 45, 40, 41, 18, 44
FRAME_BYTES_MAX = 1048576
HEADER_BYTES = 12
MAGIC = b"hob\x01"
FRAME_FDS_MAX = 69
# Offsets within a whole `give` frame, see docs/wire.md.
AT_CALL, AT_GROUP, AT_UMASK, AT_IGNORED, AT_BLOCKED = 12, 20, 24, 28, 36
AT_LIMITS, AT_PRIORITY, AT_ARGV = 44, 300, 324
# wire:end
LIMITS = 16
INFINITY = (1 << 64) - 1
MSG_CMSG_CLOEXEC = 0x40000000
PR_SET_PDEATHSIG, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 1, 29, 30
IOPRIO_WHO_PROCESS = 1
CLONE_VM, CLONE_VFORK = 0x100, 0x4000
MADV_POPULATE_READ, MADV_POPULATE_WRITE = 22, 23

FS = sys.getfilesystemencoding()
FS_ERRORS = sys.getfilesystemencodeerrors()
from_bytes = int.from_bytes
