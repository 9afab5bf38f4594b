"""Plays the daemon and the caller over real sockets, with real processes of `worker.py`.

Owns: starting a worker as this runtime is started, and running one script cold or through a
zygote, a standby or a learning run. The frames of docs/wire.md, and what both ends of a channel
are made of, come from `driver.py` of the conformance tests. Does not compare: the tests do.
"""

import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RUNTIMES = os.path.dirname(os.path.dirname(HERE))

sys.path[:0] = [os.path.join(RUNTIMES, "python"), os.path.join(RUNTIMES, "conformance")]

import join

# The files of the runtime as an interpreter loads them: joined of their parts.
SOURCES = join.write()
KEPT = join.kept()
WORKER = os.path.join(SOURCES, "worker.py")
# The command line between the interpreter's options and the mode's own words.
START = os.path.join(SOURCES, "start.py")
PROBES = os.path.join(HERE, "probes")

from driver import (  # noqa: F401
    APP,
    ENDED,
    EXECUTES,
    FAILED,
    FINISHED,
    FORK,
    FORKED,
    GIVE,
    GOLDEN,
    GONE,
    NOTES,
    PRELOAD,
    READY,
    WAIT_S,
    Outcome,
    Peer,
    Priority,
    _content,
    _state,
    blob,
    shared,
    split_uncaught,
    strings,
    take_strings,
    world,
)


class Worker:
    """A zygote or standby process with its channel."""

    def __init__(self, role, kind, target, **options):
        near, far = socket.socketpair()
        command = [sys.executable, *options.get("options", ()), "-S", START, "serve", SOURCES, KEPT]
        self.process = subprocess.Popen(
            command,
            stdin=far,
            stdout=subprocess.DEVNULL,
            stderr=options.get("stderr"),
            cwd=options.get("cwd"),
            env=options.get("env"),
            start_new_session=True,
        )
        far.close()
        self.channel = Peer(near)
        prefix = [sys.executable, *options.get("options", ())]
        payload = bytes((role, kind)) + blob(os.fsencode(target))
        payload += strings(prefix) + strings(options.get("modules", ()))
        payload += strings(options.get("argv", [target]))
        payload += strings(options.get("volatile", ()))
        self.channel.send(PRELOAD, payload)
        try:
            _, payload, _ = self.channel.expect(READY)
        except AssertionError:
            self.close()
            raise
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


class Run:
    """How one program is called."""

    def __init__(self, argv, **how):
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
        signal.pthread_sigmask(
            signal.SIG_SETMASK, [n for n in range(1, 65) if blocked >> (n - 1) & 1]
        )
        for which, pair in self.world.get("limits", {}).items():
            resource.setrlimit(which, pair)
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
        head = ["-m", self.argv[0]] if self.kind else [self.argv[0]]
        return self._spawn([sys.executable, *self.options, *head, *self.argv[1:]])

    def learn(self, notes):
        kind = "module" if self.kind else "script"
        target = self.target or os.path.join(self.cwd, self.argv[0])
        prefix = [sys.executable, *self.options]
        command = [sys.executable, *self.options, "-S", START, "learn", SOURCES, KEPT]
        command += [notes, kind, target]
        return self._spawn([*command, str(len(prefix)), *prefix, *self.argv])

    def give(self, channel, pidfd, number=7):
        """Gives this call to a copy or standby: (outcome without code, fate or None)."""
        stdin, out, err = self.files()
        target = open(self.stdout, "wb") if self.stdout else out
        near, far = socket.socketpair()
        cwd = os.open(self.cwd, os.O_RDONLY | os.O_DIRECTORY)
        payload = struct.pack("<QI", number, 0) + world(**self.world) + strings(self.argv)
        payload += strings(os.fsencode(k) + b"=" + os.fsencode(v) for k, v in self.env.items())
        payload += bytes(9)
        fds = [stdin.fileno(), target.fileno(), err.fileno(), cwd, far.fileno()]
        channel.send(GIVE, payload, fds)
        far.close()
        os.close(cwd)
        self._signal_when_asked(pidfd, out)
        caller, fate = Peer(near), None
        frame = caller.receive()
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
        worker = Worker(1, self.kind, target, **options)
        pidfd = os.pidfd_open(worker.pid)
        outcome, _ = self.give(worker.channel, pidfd)
        outcome.code = worker.process.wait(WAIT_S)
        worker.channel.close()
        os.close(pidfd)
        return outcome
