"""Platforms that lack what others have: how a worker is started there.

Owns: what stands for a C library, and for a kernel, that closes no range of descriptors in one call.
An interpreter that was built with such a library, or runs on such a kernel, does something else
instead; what that costs is not to depend on how high numbers can be.
"""

import atexit
import ctypes
import errno
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import test_dialogue

# `close_range`, on every architecture.
CLOSE_RANGE = 436
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
LIBC = ctypes.CDLL(None, use_errno=True)

# What each C library without it comes to: an interpreter finds none.
LIBRARY = """
#include <errno.h>
int close_range(unsigned first, unsigned last, int flags)
{
    (void)first, (void)last, (void)flags;
    errno = ENOSYS;
    return -1;
}
"""


def library():
    """Compiles that library; None where there is no compiler."""
    if not shutil.which("cc"):
        return None
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place)
    path = os.path.join(place, "without-ranges.so")
    command = ["cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-"]
    subprocess.run(command, input=LIBRARY.encode(), check=True)
    return path


def refuse(number):
    """In a child: from now on the kernel does not know this system call."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno.ENOSYS)]
    steps.append((0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    if LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0) != 0:
        # Who is not root may not without this.
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no filter")


def platforms(row):
    """Each by its name: what a `Worker` of this row is started with beside the usual."""
    found = {"kernel": {"before": lambda: refuse(CLOSE_RANGE)}}
    path = library() if row.asks_c_library else None
    if path:
        found["library"] = {"env": dict(os.environ, LD_PRELOAD=path)}
    return found


# Asks the C library, whose own answer is the kernel's.
ASKS = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
assert libc.close_range(900, 901, 0) == -1
assert ctypes.get_errno() == errno.ENOSYS
"""


def is_in_force(started):
    """Whether what is started so is refused ranges."""
    asks = [sys.executable, "-c", ASKS]
    done = subprocess.run(asks, env=started.get("env"), preexec_fn=started.get("before"))
    return done.returncode == 0


class Platform(test_dialogue.Descriptors):
    """With a row, and how its workers are started."""

    def setUp(self):
        super().setUp()
        self.assertTrue(is_in_force(self.started))


def cases(rows):
    """A class of tests for each row and platform, by its name."""
    found = {}
    for row in rows:
        for platform, started in platforms(row).items():
            name = row.name.capitalize() + row.version + "Without" + platform.capitalize()
            fields = {"row": row, "started": started}
            found[name] = type(name, (Platform, unittest.TestCase), fields)
    return found
