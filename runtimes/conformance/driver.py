"""Plays the daemon and the caller over real sockets, with real processes of any runtime.

Owns: the frames of docs/wire.md as the daemon writes and reads them, and running one script cold
or through a zygote, a standby or a learning run. `runtimes.py` says how each runtime is started.
Does not compare: the tests do.
"""

import array
import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(os.path.dirname(HERE), "golden")
WAIT_S = 30

# Who runs the tests may have these ignored, and so would be whatever the tests start.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# A terminal or a build may hand on descriptors of its own, and so would this process.
for number in map(int, os.listdir("/proc/self/fd")):
    if number > 2:
        # That of the list itself is gone by now.
        with contextlib.suppress(OSError):
            os.set_inheritable(number, False)

# wire:begin conformance-driver (`cargo xtask wire` writes these lines)
PRELOAD, READY, FORK, FORKED, GONE = 32, 33, 34, 35, 36
GIVE, FINISHED, NOTES, SPANS, FAILED, ENDED, EXECUTES = 37, 38, 39, 45, 40, 18, 44
MESSAGE, ANSWER, FAILURE, LEND, HANDLED = 8, 23, 24, 42, 43
REQUEST, RESPOND, CHUNK, END, STREAM, FILE = 64, 65, 66, 67, 0, 1
# Roles of a worker, and the kind of a target that answers messages.
ZYGOTE, STANDBY, COPY = 0, 1, 2
HANDLER, APP = 2, 3
# wire:end


def shared(cases):
    """Those of a table of cases that are run here: all of them, or by `HOB_SHARE=K/N` each Nth from
    the Kth on. `.ci/runtimes` has several interpreters of a kind share them."""
    share, parts = map(int, (os.environ.get("HOB_SHARE") or "0/1").split("/"))
    return list(cases)[share::parts]


def blob(data):
    return struct.pack("<I", len(data)) + data


def strings(items):
    items = [os.fsencode(item) for item in items]
    return struct.pack("<I", len(items)) + blob(b"".join(item + b"\0" for item in items))


def take_strings(payload, at=0):
    count, size = struct.unpack_from("<II", payload, at)
    items = payload[at + 8 : at + 8 + size].split(b"\0")[:-1]
    assert len(items) == count, "a list of strings with a wrong count"
    return items


IOPRIO_SET, IOPRIO_GET = (30, 31) if os.uname().machine == "aarch64" else (251, 252)


def syscall(*numbers):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(*map(ctypes.c_long, numbers))


def contents(path):
    with open(path) as file:
        return file.read()


def split_uncaught(frames):
    """Whether a worker has told that an error ends its program which nobody caught, before all
    other frames; and these."""
    told = bool(frames) and frames[0][0] == NOTES and frames[0][1][8:] == UNCAUGHT
    return told, frames[1:] if told else frames


# One note.
UNCAUGHT = b"\1\0\0\0\2\0\0\0U\0"


class Priority:
    """Nice value and its like: those of this process, but for what a probe asks for."""

    def __init__(self, asked):
        self.asked = asked

    def encode(self):
        """As a `world` holds it."""
        values = {
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            "io": syscall(IOPRIO_GET, 1, 0),
            "policy": os.sched_getscheduler(0),
            "oom": int(contents("/proc/self/oom_score_adj")),
            "slack": int(contents("/proc/self/timerslack_ns")),
        }
        return struct.pack("<iIIiQ", *dict(values, **self.asked).values())

    def take(self):
        """In a cold child."""
        for name, value in self.asked.items():
            if name == "nice":
                os.setpriority(os.PRIO_PROCESS, 0, value)
            elif name == "io":
                syscall(IOPRIO_SET, 1, 0, value)
            elif name == "policy":
                os.sched_setscheduler(0, value, os.sched_param(0))
            else:
                path = {"oom": "oom_score_adj", "slack": "timerslack_ns"}[name]
                with open("/proc/self/" + path, "w") as file:
                    file.write(str(value))


def world(umask=0o022, ignored=0, blocked=0, limits=None, priority=None):
    """A `world`, by default with this process's own limits and priority."""
    limits = limits or {}
    data = struct.pack("<IQQ", umask, ignored, blocked)
    for which in range(16):
        pair = limits.get(which) or resource.getrlimit(which)
        data += struct.pack("<QQ", *(value & (1 << 64) - 1 for value in pair))
    return data + Priority(priority or {}).encode()


# Of an answer that goes on after so many bytes nobody reads the rest.
PATIENCE = 4_000_000


def responded(payload, fds):
    """An answer that has begun, to the end of its body; one that breaks off to its last byte, one
    without end as long as somebody has patience."""
    _, source, offset, length = struct.unpack_from("<QBQQ", payload)
    head, (fd,) = payload[25:], fds
    if source == FILE:
        with open(fd, "rb") as file:
            return head + os.pread(file.fileno(), length, offset)
    stream = Peer(socket.socket(fileno=fd))
    with stream.sock:
        while len(head) < PATIENCE:
            frame = stream.receive()
            if frame is None or frame[0] == END:
                break
            assert frame[0] == CHUNK, frame
            head += frame[1]
    return head


class Peer:
    """The daemon's end of a channel, or the caller's end of a connection."""

    def __init__(self, sock):
        self.sock = sock
        # Whether the newest answer came in pieces.
        self.begun = False
        sock.settimeout(WAIT_S)

    def send(self, kind, payload, fds=()):
        head = b"hob\x01" + bytes((kind, len(fds), 0, 0)) + struct.pack("<I", len(payload))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.sock.sendmsg([head + payload], rights)
        if sent < len(head) + len(payload):
            self.sock.sendall((head + payload)[sent:])

    def receive(self):
        """(kind, payload, descriptors), or None at the end."""
        head, ancillary, _, _ = self.sock.recvmsg(12, socket.CMSG_SPACE(64))
        if not head:
            return None
        assert head[:4] == b"hob\x01" and head[6:8] == b"\0\0", head
        fds = array.array("i")
        for _, _, data in ancillary:
            fds.frombytes(data)
        assert head[5] == len(fds)
        for fd in fds:
            os.set_inheritable(fd, False)
        left, payload = struct.unpack_from("<I", head, 8)[0], b""
        while len(payload) < left:
            data = self.sock.recv(left - len(payload))
            assert data, "the channel ended inside a frame"
            payload += data
        return head[4], payload, list(fds)

    def expect(self, kind):
        frame = self.receive()
        if frame is not None and frame[0] == NOTES != kind and not any(frame[1][:8]):
            # What it had read; why it fails comes next.
            frame = self.receive()
            assert frame[0] == FAILED, "notes of no call, and then %r" % (frame,)
        if frame is not None and frame[0] == FAILED:
            raise AssertionError("failed: " + frame[1][4:].decode())
        assert frame is not None and frame[0] == kind, "expected %d, got %r" % (kind, frame)
        return frame

    def ask(self, number, payload, file=None):
        """One message: its answer's content type and bytes, or a failure's reason and text. Of an
        answer in pieces, these together."""
        fields = struct.pack("<QBQ", number, 0, 0) + bytes(16)
        if file is None:
            self.send(MESSAGE, fields + payload)
        else:
            self.send(REQUEST, fields + payload, [file])
        begun, frame = b"", self.receive()
        self.begun = frame is not None and frame[0] == RESPOND
        if self.begun:
            begun = responded(*frame[1:])
            frame = self.receive()
        if frame is None:
            raise EOFError("the worker has ended")
        kind, body, _ = frame
        assert struct.unpack_from("<Q", body) == (number,), body
        if kind == FAILURE:
            return body[8], body[9:]
        assert kind == ANSWER, frame
        size = struct.unpack_from("<I", body, 8)[0]
        assert not begun or not body[12 + size :], body
        return body[12 : 12 + size], begun or body[12 + size :]

    def lend(self, number, uses):
        """Lends a lane: the sender's end, the daemon's end of the doorbell, the tally."""
        near, far = socket.socketpair()
        rings, bell = socket.socketpair()
        tally = Tally()
        fds = [far.fileno(), bell.fileno(), tally.file.fileno()]
        self.send(LEND, struct.pack("<QI", number, uses), fds)
        far.close()
        bell.close()
        return Peer(near), rings, tally

    def handled(self):
        """How many messages were handled until the lane was over, and how many of them raised."""
        count = raised = 0
        while True:
            _, payload, _ = self.expect(HANDLED)
            _, some, bad, _, _, _, over = struct.unpack("<QIIBQQB", payload)
            count, raised = count + some, raised + bad
            if over:
                return count, raised

    def close(self):
        self.sock.close()

    __del__ = close


class Tally:
    """The memory in which a lane's worker counts."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()
        self.file.truncate(4096)

    def counts(self):
        """Messages begun, ended, raised."""
        fields = struct.unpack("=6Q", os.pread(self.file.fileno(), 48, 0))
        return fields[0], fields[3], fields[5]


def hold(numbers):
    """In a child: `/dev/null` at each of these."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        if number == null:
            os.set_inheritable(number, True)
        else:
            os.dup2(null, number)


class Worker:
    """A zygote or standby process with its channel."""

    def __init__(self, runtime, role, kind, target, **options):
        near, far = socket.socketpair()
        command = runtime.serve(options.get("options", ()), options.get("argv", [target])[0], kind)
        held = getattr(runtime, "held", ())

        def prepare():
            options.get("before", int)()
            # Numbers that an interpreter's own files are kept from, as the daemon holds them.
            if held:
                hold(held)

        self.process = subprocess.Popen(
            command,
            stdin=far,
            stdout=subprocess.DEVNULL,
            stderr=options.get("stderr"),
            cwd=options.get("cwd"),
            env=options.get("env"),
            start_new_session=True,
            preexec_fn=prepare,
            close_fds=not held,
        )
        far.close()
        self.channel = Peer(near)
        prefix = [runtime.interpreter, *options.get("options", ())]
        payload = bytes((role, kind)) + blob(os.fsencode(target))
        payload += strings(prefix) + strings(options.get("modules", ()))
        payload += strings(options.get("argv", [target]))
        payload += strings(options.get("volatile", ()))
        self.channel.send(PRELOAD, payload)
        _, payload, _ = self.channel.expect(READY)
        self.role, self.pid, self.threads = struct.unpack_from("<BII", payload)
        self.notes = take_strings(payload, 9)
        self.number = 0

    def copy(self, paid):
        """Forks a copy: (its channel, its pidfd, its pid)."""
        self.number += 1
        near, far = socket.socketpair()
        self.channel.send(FORK, struct.pack("<QB", self.number, paid), [far.fileno()])
        far.close()
        _, payload, fds = self.channel.expect(FORKED)
        number, pid = struct.unpack_from("<QI", payload)
        assert number == self.number
        if pid == 0:
            near.close()
            return None, None, payload[16:]
        channel = Peer(near)
        if paid:
            _, payload, _ = channel.expect(READY)
            assert payload[0] == 2
        return channel, fds[0], pid

    def gone(self):
        """Waits for the next `gone`: (worker, exit pair)."""
        _, payload, _ = self.channel.expect(GONE)
        number, how, value = struct.unpack_from("<QBB", payload)
        return number, (how, value)

    def close(self):
        self.channel.close()
        self.process.wait(WAIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Outcome:
    """What a run did: its exit as `Popen.returncode` tells it, and its two outputs."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __eq__(self, other):
        return (self.code, self.out, self.err) == (other.code, other.out, other.err)

    def __repr__(self):
        return "exit %r\n--- stdout\n%s\n--- stderr\n%s" % (
            self.code,
            self.out.decode("utf-8", "backslashreplace"),
            self.err.decode("utf-8", "backslashreplace"),
        )


class Run:
    """How one program is called."""

    def __init__(self, runtime, argv, **how):
        self.runtime = runtime
        self.argv = argv
        self.kind = how.get("kind", 0)
        self.target = how.get("target")
        self.cwd = how.get("cwd", os.getcwd())
        self.env = how.get("env", dict(os.environ))
        self.stdin = how.get("stdin", b"")
        self.options = how.get("options", [])
        self.world = how.get("world", {})
        self.stdout = how.get("stdout")
        self.signal = how.get("signal")
        # Which of 0 to 2 are closed, and what descriptors beyond lead to, by their numbers.
        self.closed = how.get("closed", ())
        self.beyond = how.get("beyond", {})

    def files(self):
        stdin, out, err = (tempfile.TemporaryFile() for _ in range(3))
        stdin.write(self.stdin)
        stdin.seek(0)
        return stdin, out, err

    def prepare(self):
        """In a cold child: the same world as a give carries."""
        os.umask(self.world.get("umask", 0o022))
        for number in range(1, 65):
            if self.world.get("ignored", 0) >> (number - 1) & 1:
                signal.signal(number, signal.SIG_IGN)
        blocked = self.world.get("blocked", 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, [n for n in range(1, 65) if blocked >> (n - 1) & 1])
        for which, pair in self.world.get("limits", {}).items():
            resource.setrlimit(which, pair)
        # First out of each other's way.
        high = {n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 500) for n, fd in self.beyond.items()}
        for number, fd in high.items():
            os.dup2(fd, number)
        for number in self.closed:
            os.close(number)
        Priority(self.world.get("priority", {})).take()

    def _spawn(self, command, **more):
        stdin, out, err = self.files()
        target = open(self.stdout, "wb") if self.stdout else out
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=target,
            stderr=err,
            cwd=self.cwd,
            env=self.env,
            preexec_fn=self.prepare,
            # All of this process's own are closed by the execution.
            close_fds=not self.beyond,
            **more,
        )
        pidfd = os.pidfd_open(process.pid)
        self._signal_when_asked(pidfd, out)
        os.close(pidfd)
        code = process.wait(WAIT_S)
        outcome = Outcome(code, _content(out), _content(err))
        for file in (stdin, out, err, target):
            file.close()
        return outcome

    def cold(self):
        return self._spawn(self.runtime.cold(self.options, self.argv, self.kind))

    def learn(self, notes):
        target = self.target or os.path.join(self.cwd, self.argv[0])
        return self._spawn(self.runtime.learn(self.options, self.argv, self.kind, target, notes))

    def give(self, channel, pidfd, number=7):
        """Gives this call to a copy or standby: (outcome without code, fate or None)."""
        stdin, out, err = self.files()
        target = open(self.stdout, "wb") if self.stdout else out
        near, far = socket.socketpair()
        cwd = os.open(self.cwd, os.O_RDONLY | os.O_DIRECTORY)
        payload = struct.pack("<QI", number, 0) + world(**self.world) + strings(self.argv)
        payload += strings(os.fsencode(k) + b"=" + os.fsencode(v) for k, v in self.env.items())
        numbers = sorted(self.beyond)
        payload += bytes(4) + bytes((sum(1 << number for number in self.closed),))
        payload += struct.pack("<I%dI" % len(numbers), len(numbers), *numbers)
        fds = [stdin.fileno(), target.fileno(), err.fileno(), cwd, far.fileno()]
        fds += [self.beyond[number] for number in numbers]
        self.given_s = time.monotonic()
        channel.send(GIVE, payload, fds)
        far.close()
        os.close(cwd)
        self._signal_when_asked(pidfd, out)
        caller, fate = Peer(near), None
        frame = caller.receive()
        self.ended_s = time.monotonic()
        self.ended()
        if frame is not None:
            kind, payload, _ = frame
            assert kind == ENDED
            call, how, value = struct.unpack_from("<QBB", payload)
            assert call == number
            fate = (how, value)
        caller.close()
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        assert poll.poll(WAIT_S * 1000), "the worker did not end"
        outcome = Outcome(None, _content(out), _content(err))
        for file in (stdin, out, err, target):
            file.close()
        return outcome, fate

    def ended(self):
        """What a test does at the moment at which the caller hears of the end."""

    def _signal_when_asked(self, pidfd, out):
        """Sends the probe's signal once the program has said `ready` and then sleeps.

        Between the two it is still inside its `print`, where a signal would be seen elsewhere.
        """
        if self.signal is None:
            return
        poll = select.poll()
        for _ in range(WAIT_S * 100):
            if b"ready\n" in _content(out) and _state(pidfd) == "S":
                break
            poll.poll(10)
        signal.pidfd_send_signal(pidfd, self.signal)

    def warm(self, zygote, paid):
        """Through a copy of a zygote."""
        channel, pidfd, _ = zygote.copy(paid)
        outcome, fate = self.give(channel, pidfd)
        _, how = zygote.gone()
        frames = []
        while True:
            frame = channel.receive()
            if frame is None:
                break
            frames.append(frame)
        outcome.uncaught, frames = split_uncaught(frames)
        channel.close()
        os.close(pidfd)
        if fate is not None:
            assert fate == how, "ended %r, gone %r" % (fate, how)
            assert frames and frames[0][0] == FINISHED, frames
        outcome.code = -how[1] if how[0] else how[1]
        outcome.frames, outcome.fate = frames, fate
        return outcome

    def standby(self, **options):
        target = self.target or os.path.join(self.cwd, self.argv[0])
        options.setdefault("options", self.options)
        options.setdefault("argv", self.argv)
        options.setdefault("cwd", self.cwd)
        worker = Worker(self.runtime, 1, self.kind, target, **options)
        pidfd = os.pidfd_open(worker.pid)
        outcome, outcome.fate = self.give(worker.channel, pidfd)
        outcome.code = worker.process.wait(WAIT_S)
        # What did not fit, where it executed the cold command in its own place.
        outcome.unfit, outcome.frames = None, []
        while (frame := worker.channel.receive()) is not None:
            outcome.frames.append(frame)
            if frame[0] == EXECUTES:
                outcome.unfit = frame[1][16]
        outcome.uncaught, outcome.frames = split_uncaught(outcome.frames)
        worker.channel.close()
        os.close(pidfd)
        return outcome


def _state(pidfd):
    """The state letter of a process, `Z` when it has ended."""
    try:
        with open("/proc/self/fdinfo/%d" % pidfd) as info:
            pid = next(line.split()[1] for line in info if line.startswith("Pid:"))
        with open("/proc/%s/stat" % pid) as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _content(file):
    try:
        return os.pread(file.fileno(), 1 << 24, 0)
    except OSError:
        return b""  # A terminal: the test reads its other end.
