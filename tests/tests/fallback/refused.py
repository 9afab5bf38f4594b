"""Runs programs where the kernel refuses one system call, without hob and through it.

Owns: the filter, the runs under it, and the comparison. For each system call and each of two
errors a program is run plainly; where it then still does what it does otherwise, it is run through
hob in each of these ways, and must do the same:

    none        no daemon can be started
    elsewhere   a daemon answers that is not under the filter
    own         the first call starts a daemon under the filter, and the second may meet it

Deliberately not here: what is expected of the counts, which `refused.rs` knows. One JSON line is
written for each run that was worse, and one at the end with the counts.

Arguments: hob, a folder for what the daemons leave, the first pair and the step (so that several
of these share the work), and `some` or `all`: whether only the system calls that hob makes of its
own are refused to daemons and to Python too, or all of them.
"""

import ctypes
import errno
import functools
import json
import os
import select
import shutil
import signal
import struct
import sys

# Each number that x86-64 has; those between are reserved for other ABIs.
NUMBERS = [*range(335), *range(424, 468)]
ERRORS = [errno.EPERM, errno.ENOSYS]
# What a client, a daemon, or what is warm does of its own, beside what any program does.
OWN = {
    "poll": 7,
    "rt_sigprocmask": 14,
    "pipe": 22,
    "getpid": 39,
    "socket": 41,
    "connect": 42,
    "sendmsg": 46,
    "recvmsg": 47,
    "socketpair": 53,
    "setsockopt": 54,
    "getsockopt": 55,
    "clone": 56,
    "fork": 57,
    "vfork": 58,
    "wait4": 61,
    "kill": 62,
    "flock": 73,
    "setpgid": 109,
    "getppid": 110,
    "setsid": 112,
    "prctl": 157,
    "setrlimit": 160,
    "futex": 202,
    "sched_setaffinity": 203,
    "sched_getaffinity": 204,
    "epoll_wait": 232,
    "epoll_ctl": 233,
    "waitid": 247,
    "inotify_add_watch": 254,
    "epoll_pwait": 281,
    "accept4": 288,
    "signalfd4": 289,
    "eventfd2": 290,
    "epoll_create1": 291,
    "dup3": 292,
    "pipe2": 293,
    "inotify_init1": 294,
    "memfd_create": 319,
    "pidfd_send_signal": 424,
    "pidfd_open": 434,
    "clone3": 435,
    "close_range": 436,
}
# How long one run may take.
RUN_S = 30
# Calls until a program may be warm.
CALLS = 4

ECHO = (b"/bin/echo", b"hello")
PR_SET_CHILD_SUBREAPER = 36
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
LIBC = ctypes.CDLL(None, use_errno=True)


def filter_of(number, error):
    """A filter that answers one system call with an error; its address is in what is returned."""
    steps = [
        (0x20, 0, 0, 0),  # The number.
        (0x15, 0, 1, number),
        (0x06, 0, 0, 0x50000 | error),
        (0x06, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    return code, ctypes.create_string_buffer(program)


def filtered(program):
    if LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0) != 0:
        # Who is not root may not without this.
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0)


def run(argv, environment, program=None):
    """Runs it with the filter; its raw status and what it wrote, or `None` if it did not end."""
    out = os.memfd_create("out")
    null = os.open("/dev/null", os.O_RDWR)
    pid = os.fork()
    if pid == 0:
        for source, target in ((null, 0), (out, 1), (null, 2)):
            os.dup2(source, target)
        os.closerange(3, 1 << 16)
        if program is not None:
            filtered(program)
        try:
            os.execve(argv[0], argv, environment)
        finally:
            os._exit(127)
    pidfd = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    in_time = bool(poller.poll(RUN_S * 1000))
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    written = os.pread(out, 4096, 0)
    for fd in (out, null, pidfd):
        os.close(fd)
    return (status, written) if in_time else None


def end_all():
    """Ends what runs have left: orphans of this process's children are its own."""
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            return
        if not children:
            return
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def ways(hob, folder, argv, daemons):
    """Each way by hob: its name, argv, environment, and how many calls. What the client does is the
    same for every program."""
    base = dict(os.environb)
    nowhere = {**base, b"HOB_DIR": b"/dev/null/hob"}
    own = {**base, b"HOB_DIR": folder + b"/own", b"XDG_STATE_HOME": folder + b"/state"}
    through = (hob, b"run", *argv)
    if argv == ECHO:
        yield "none", through, nowhere, 1
        yield "elsewhere", through, base, 1
    if daemons:
        yield "own", through, own, 2 if argv == ECHO else CALLS


@functools.cache
def wanted(argv):
    """What it does where nothing is refused."""
    return run(argv, dict(os.environb))


def compare(hob, folder, argv, pair, daemons):
    """What is worse through hob for this pair; `None` if nothing is to be compared."""
    number, error = pair
    want = wanted(argv)
    _code, program = filter_of(number, error)
    if run(argv, dict(os.environb), program) != want:
        return None
    worse = []
    for way, through, environment, calls in ways(hob, folder, argv, daemons):
        for call in range(calls):
            got = run(through, environment, program)
            if got != want:
                told = {"number": number, "error": errno.errorcode[error], "way": way}
                told |= {"program": argv[0].decode(), "call": call, "got": repr(got)}
                worse.append(told)
                break
    end_all()
    for left in ("own", "state"):
        shutil.rmtree(os.path.join(folder, left.encode()), ignore_errors=True)
    return worse


def main():
    hob, folder, first, step, mode = sys.argv[1:]
    hob, folder = os.fsencode(hob), os.fsencode(folder)
    os.makedirs(folder)
    script = os.path.join(folder, b"prints.py")
    with open(script, "w") as file:
        file.write("import json\nprint(json.dumps({'hello': 1}))\n")
    interpreter = os.fsencode(shutil.which("python3"))
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pairs = [(number, error) for number in NUMBERS for error in ERRORS]
    counts = {"pairs": 0, "worse": 0}
    for pair in pairs[int(first) :: int(step)]:
        whole = mode == "all" or pair[0] in OWN.values()
        programs = [ECHO, (interpreter, script)] if whole else [ECHO]
        results = [compare(hob, folder, argv, pair, whole) for argv in programs]
        told = [one for worse in results for one in worse or ()]
        counts["pairs"] += any(worse is not None for worse in results)
        counts["worse"] += bool(told)
        for one in told:
            print(json.dumps(one), flush=True)
    print(json.dumps(counts), flush=True)


main()
