"""Runs programs where the kernel refuses system calls, without hob and through it.

Owns: the filters, the runs under them, and the comparison. A program is run plainly under a filter;
where it then still does what it does otherwise, it is run through hob in each of these ways, and
must do the same:

    none        no daemon can be started
    elsewhere   a daemon answers that is not under the filter
    own         the first call starts a daemon under the filter; Python, whose caller has another
                descriptor open, is called until a call is warm

Most system calls are made by nobody here. A filter kills whoever makes one of a whole group: where
all is as without it, and warm, nobody makes any of them, so that neither error of any of them can
be seen. Else the group is halved, until single ones are left. Those that are made, and those that
hob makes of its own, are refused one by one, with each of two errors: a group of them would hide
what is called only after another one of it.

Deliberately not here: what is expected of the counts, and where no call is warm, which `refused.rs`
knows. One JSON line is written for each run that was worse, one for each pair of a system call and
an error under which no call was warm, with the reason, and one at the end with the counts.

Arguments: hob, a folder for what the daemons leave, the first system call and the step (so that
several of these share the work), and `some` or `all`: whether of the system calls that are made,
only those that hob makes of its own, and the newest, are refused to daemons and to Python too, or
all of them.
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
import time

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
# The newest 60: an older kernel does not know them.
NEWEST = {*range(319, 335), *range(424, 468)}
# What any of the Pythons, a daemon or a warm copy makes as well, as a tracer shows it. A search finds
# each of them too, in a dozen runs.
MADE = {0, 1, 2, 3, 5, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 21, 24, 25, 28, 32, 33, 38, 44, 45, 48}
MADE |= {49, 50, 51, 59, 63, 72, 79, 80, 81, 82, 83, 84, 87, 88, 89, 91, 95, 98, 99, 102, 104, 107}
MADE |= {108, 128, 131, 135, 137, 140, 145, 158, 186, 193, 217, 218, 228, 230, 231, 252, 257, 258}
MADE |= {262, 263, 264, 267, 268, 270, 271, 273, 285, 302, 309, 318, 332, 334, 439}
# Answers of a filter: an error, or the end of who asks.
REFUSE, KILL = 0x50000, 0x80000000
# How long one run may take.
RUN_S = 30
# In so many calls a program is warm, if it ever is; and a daemon has started, if one can.
CALLS_MAX, ALONE_MAX = 60, 6
# Reasons of a cold call after which another one may be warm.
PASSING = {"learning", "being-learned", "warming", "stale", "busy", "no-daemon", "no-answer"}
PASSING |= {"connect-timeout", "caller-left", "bare-interpreter", "installed-packages", "variables"}
# Those of a warm call that is given a layer's copy, and none of the program's own.
LAYERS = {"bare-interpreter", "installed-packages"}
# A daemon that says nothing for so long has none of its calls: each counts as two without one.
SILENT_S = 4
# How long a record may take, a program between two looks for it, and one between two calls.
RECORD_S, LOOK_S, PAUSE_S = 5, 0.02, 0.1

ECHO = (b"/bin/echo", b"hello")
# The number of a descriptor that each caller has open beside 0 to 2.
BEYOND = 9
PR_SET_CHILD_SUBREAPER = 36
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
LIBC = ctypes.CDLL(None, use_errno=True)


def filter_of(numbers, answer):
    """A filter that gives these system calls this answer; its address is in what is returned."""
    steps = [(0x20, 0, 0, 0)]  # The number.
    for number in numbers:
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, answer)]
    steps.append((0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    return code, ctypes.create_string_buffer(program)


def filtered(program):
    if LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0) != 0:
        # Who is not root may not without this.
        LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0)


def run(argv, environment, program=None):
    """Runs it with the filter; what it was, its raw status and what it wrote, or `None` if it did
    not end."""
    out = os.memfd_create("out")
    null = os.open("/dev/null", os.O_RDWR)
    pid = os.fork()
    if pid == 0:
        for source, target in ((null, 0), (out, 1), (null, 2)):
            os.dup2(source, target)
        os.closerange(3, 1 << 16)
        # A caller's lock, say.
        os.dup2(2, BEYOND)
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
    written = os.pread(out, 1 << 20, 0)
    for fd in (out, null, pidfd):
        os.close(fd)
    return pid, (status, written) if in_time else None


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


def ways(folder, argv, daemons):
    """Each way by hob: its name, its environment, and in how many calls it is to be warm (0: it is
    called twice, and never is). What the client does is the same for every program."""
    base = dict(os.environb)
    nowhere = {**base, b"HOB_DIR": b"/dev/null/hob"}
    if argv == ECHO:
        yield "none", nowhere, 0
        yield "elsewhere", base, 0
    if daemons:
        yield "own", own_of(folder), 0 if argv == ECHO else CALLS_MAX


def own_of(folder):
    """The environment of a daemon of one's own."""
    return {
        **os.environb,
        b"HOB_DIR": folder + b"/own",
        b"XDG_STATE_HOME": folder + b"/state",
    }


def record_of(hob, environment, pid):
    """The record of the call of this process, or an empty one. It is read without a filter."""
    until = time.monotonic() + RECORD_S
    while time.monotonic() < until:
        _, log = run((hob, b"log", b"-n", b"5", b"--json"), environment)
        for line in log[1].splitlines() if log else ():
            record = json.loads(line)
            if record.get("caller_pid") == pid:
                return record
        # sleeps: between two looks at a mark, within the bound.
        time.sleep(LOOK_S)
    return {}


def call_until_warm(hob, through, way, program, want):
    """Calls as often as this way says; what is worse, or why no call was warm; `None`: all is well."""
    _, environment, most = way
    reason, alone = "no call was made", 0
    for call in range(most or 2):
        pid, got = run(through, environment, program)
        if got != want:
            return {"call": call, "got": repr(got)}
        if not most:
            continue
        begun = time.monotonic()
        record = record_of(hob, environment, pid)
        reason = record.get("reason", "no record")
        if record.get("warm") and reason not in LAYERS:
            return None
        silent = time.monotonic() - begun > SILENT_S
        alone += 2 if silent else reason == "no-daemon"
        if reason not in PASSING or alone > ALONE_MAX:
            break
        # sleeps: between two calls, whose records are the mark.
        time.sleep(PAUSE_S)
    return {"cold": reason} if most else None


@functools.cache
def wanted(argv):
    """What it does where nothing is refused."""
    return run(argv, dict(os.environb))[1]


def same_plainly(argv, program):
    return run(argv, dict(os.environb), program)[1] == wanted(argv)


class Places:
    """Where hob is, what of it is run under filters, and what that has been."""

    def __init__(self, hob, folder, script):
        self.hob, self.folder, self.script = hob, folder, script
        self.counts = dict.fromkeys(("unmade", "unmade_warm", "pairs", "warm", "runs"), 0)
        self.bytecode = os.path.join(folder, b"bytecode")
        os.mkdir(self.bytecode, 0o700)

    def begin(self):
        """A state of its own, but for Python's runtime as bytecode: that is compiled once."""
        state = os.path.join(self.folder, b"state", b"hob")
        os.makedirs(state, 0o700, exist_ok=True)
        os.symlink(self.bytecode, os.path.join(state, b"bytecode"))

    def end(self):
        end_all()
        for left in (b"own", b"state"):
            shutil.rmtree(os.path.join(self.folder, left), ignore_errors=True)

    def worse(self, programs, program, daemons):
        """For each program that does under this filter what it does otherwise, what is worse
        through hob: the first of each way."""
        compared = {}
        self.begin()
        for argv in programs:
            self.counts["runs"] += 1
            if not same_plainly(argv, program):
                continue
            compared[argv] = []
            for way in ways(self.folder, argv, daemons):
                self.counts["runs"] += 1
                through = (self.hob, b"run", *argv)
                told = call_until_warm(self.hob, through, way, program, wanted(argv))
                if told is not None:
                    compared[argv].append({"way": way[0], "program": argv[0].decode(), **told})
        self.end()
        return compared

    def made(self, group, programs, daemons):
        """Those of the group that somebody makes."""
        _code, program = filter_of(group, KILL)
        if all(same_plainly(argv, program) for argv in programs):
            compared = self.worse(programs, program, daemons)
            if all(compared.get(argv) == [] for argv in programs):
                return []
        if len(group) <= 1:
            return group
        half = len(group) // 2
        halves = (group[:half], group[half:])
        return [one for part in halves for one in self.made(part, programs, daemons)]

    def judge(self, number, error, daemons):
        """One system call, refused by itself."""
        _code, program = filter_of([number], REFUSE | error)
        programs = [ECHO, self.script] if daemons else [ECHO]
        compared = self.worse(programs, program, daemons)
        self.counts["pairs"] += bool(compared)
        self.counts["warm"] += daemons and compared.get(self.script) == []
        for told in (one for worse in compared.values() for one in worse):
            told = {"number": number, "error": errno.errorcode[error], **told}
            print(json.dumps(told), flush=True)


def main():
    hob, folder, first, step, mode = sys.argv[1:]
    hob, folder = os.fsencode(hob), os.fsencode(folder)
    os.makedirs(folder)
    script = os.path.join(folder, b"prints.py")
    with open(script, "w") as file:
        file.write("import json\nprint(json.dumps({'hello': 1}))\n")
    interpreter = os.fsencode(shutil.which("python3"))
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    places = Places(hob, folder, (interpreter, script))
    numbers = NUMBERS[int(first) :: int(step)]
    made = places.made(numbers, [ECHO], False)
    known = {*OWN.values(), *MADE, *made}
    rest = [one for one in numbers if one not in known]
    by_python = places.made(rest, [ECHO, places.script], True)
    places.counts["unmade"] += len(numbers) - len(made)
    places.counts["unmade_warm"] += len(rest) - len(by_python)
    for number, error in ((number, error) for number in numbers for error in ERRORS):
        # A kernel that is older does not know them; one that forbids them is a filter's.
        is_newest = number in NEWEST and error == errno.ENOSYS
        whole = mode == "all" or number in OWN.values() or is_newest
        whole = whole and (number not in rest or number in by_python)
        if whole or number in made:
            places.judge(number, error, whole)
    print(json.dumps(places.counts), flush=True)


main()
