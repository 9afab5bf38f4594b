"""hob from Python: ask and tell handlers, and use the state that programs share.

    import hob

    answer = hob.ask("greeter", b'{"name": "x"}')
    hob.tell("mailer", {"to": "x@example.org"})
    hob.counter("hits").add(1)
    hob.cache.set("page", html, ttl=60)
    with hob.span("parse"):
        ...

One file with no dependency but the standard library, for Python 3.9 and newer; copy it, or install
it. In a handler that hob runs it is there already. It speaks the frames of docs/wire.md. Programs
are named in the `hob.toml` of the current directory or above; see docs/messages.md.

Threads and processes may use it freely: each thread has its own connection, and a child of a fork
makes its own. A daemon that stops, restarts or is replaced costs time, and no message: what was not
given is sent to the next one, for as long as `timeout` says.
"""

import contextvars as _contextvars
import functools as _functools
import json as _json
import os as _os
import socket as _socket
import stat as _stat
import struct as _struct
import subprocess as _subprocess
import threading as _threading
import time as _time

__all__ = [
    "Answer", "Error", "NoDaemon", "Failed", "Raised", "Lost", "TimedOut", "Busy", "NotGiven",
    "ask", "tell", "counter", "cache", "span",
]  # fmt: skip

# wire:begin python-client (`cargo xtask wire` writes these lines)
_MAGIC = b"hob\x01"
_HELLO, _MESSAGE, _ATTACH, _CANCEL, _WANT_LANE, _LEAVE_LANE, _STATE = 1, 8, 9, 10, 11, 12, 13
_ANSWER, _FAILURE, _LENT, _ACCEPTED, _STATE_REPLY = 23, 24, 25, 26, 27
_ASK, _TELL, _TELL_ONCE = 0, 1, 2
_ADD, _COUNT, _SET, _GET, _DELETE = 0, 1, 2, 3, 4
_THERE, _NO_ROOM = 1, 2
_PAYLOAD_MAX = 1048576
_BODY_MAX = 1040384
_WORD_MAX = 1024
# Offsets within a whole frame: of a field, or of what follows those in fixed places.
_AT_ID, _AT_LANE = 12, 20
_AT_TYPE, _AFTER_ANSWER = 20, 24
_AT_REASON, _AFTER_REASON = 20, 21
_AFTER_NAME = 24
_AT_HELD, _AFTER_HELD = 20, 29
_CODES = {
    1: "raised",
    2: "lost",
    3: "timed-out",
    4: "cancelled",
    5: "busy",
    6: "no-program",
    7: "untrusted",
    8: "config",
    9: "not-loaded",
    10: "stopping",
    12: "malformed",
    13: "not-kept",
    15: "no-host",
}
_AGAIN = 11
_HEADER = _struct.Struct("<4sBBHI")
_SENT = _struct.Struct("<4sBBHIQBQIIII")
_NUMBERED = _struct.Struct("<4sBBHIQ")
# An answer's header, the first four fields of which are one number; its id and its type's length.
_ANSWERED = _struct.Struct("<QIQI")
_STATED = _struct.Struct("<QBqQI")
# wire:end

# The number of no message: a failure with it is about all that are open.
_ALL_OPEN = (1 << 64) - 1
# How many bytes are drawn for a tell: by them one that is sent again is kept once.
_DRAWN = 8
# For so many seconds a daemon is looked for, for what has no `timeout` of its own.
_REACH = 30.0
# For so many none may be there, although none is in the way of one that starts.
_ABSENT = 3.0
_STAY = 1.0
_PAUSE, _PAUSE_MAX = 0.002, 0.1

_AN_ANSWER = int.from_bytes(_MAGIC + bytes((_ANSWER, 0, 0, 0)), "little")
_NO_TYPE = bytes(4)


class Error(Exception):
    """Anything that hob says."""


class NoDaemon(Error):
    """No daemon can be reached, and none could be started."""


class _Never(NoDaemon):
    """There is none that this process may talk to, now or later."""


class _Unsent(Error):
    """The daemon has left, and what was sent to it last was not given: the next one may have it."""


class Failed(Error):
    """A message has no answer; `reason` is the stable code."""

    reason = "failed"


class Raised(Failed):
    """The handler raised; the text is the last line of its traceback. It ran."""

    reason = "raised"


class Lost(Failed):
    """Its worker, or the daemon, ended before it answered. It may have run."""

    reason = "lost"


class TimedOut(Failed, TimeoutError):
    """The time passed. It may have run."""

    reason = "timed-out"


class NotGiven(Failed):
    """It never ran: there is no such program, or it cannot be used as it is."""

    reason = "not-given"


class Busy(NotGiven):
    """It never ran: too many messages wait."""

    reason = "busy"


# What is raised by the code of its reason; the other reasons say that it was not given.
_RAISED = {
    "raised": Raised, "lost": Lost, "timed-out": TimedOut, "cancelled": Lost, "busy": Busy,
}  # fmt: skip


class Answer(bytes):
    """The bytes of an answer; `content_type` says what they are, if the handler did."""

    content_type = None

    def json(self):
        """The answer, read as JSON."""
        return _json.loads(self)


def _answer(frame):
    if frame[_AT_TYPE:_AFTER_ANSWER] == _NO_TYPE:
        return Answer(frame[_AFTER_ANSWER:])
    end = _AFTER_ANSWER + int.from_bytes(frame[_AT_TYPE:_AFTER_ANSWER], "little")
    answer = Answer(frame[end:])
    answer.content_type = str(frame[_AFTER_ANSWER:end], "utf-8", "replace")
    return answer


def _failure(frame):
    code = _CODES.get(frame[_AT_REASON], Failed.reason)
    kind = _RAISED.get(code, Failed if code == Failed.reason else NotGiven)
    error = kind(str(frame[_AFTER_REASON:], "utf-8", "replace") or code)
    error.reason = code
    return error


def _directory():
    """Where the daemon's socket is, by the same rules as the command."""
    directory = _os.environ.get("HOB_DIR")
    if directory:
        return directory
    uid = _os.getuid()

    def ours(path):
        try:
            status = _os.stat(path)
        except OSError:
            return False
        return _stat.S_ISDIR(status.st_mode) and status.st_uid == uid

    runtime = _os.environ.get("XDG_RUNTIME_DIR")
    if runtime and runtime.startswith("/") and ours(runtime):
        return runtime + "/hob"
    if ours("/run/user/%d" % uid):
        return "/run/user/%d/hob" % uid
    return "/tmp/hob-%d" % uid


def _open():
    """A connection to the daemon of this user, and to nobody else's."""
    directory = _directory()
    if not directory.startswith("/"):
        raise _Never("HOB_DIR=%s is not an absolute path" % directory)
    try:
        status = _os.lstat(directory)
    except OSError as error:
        raise NoDaemon("no daemon: %s" % error) from None
    if not _stat.S_ISDIR(status.st_mode) or status.st_uid != _os.getuid() or status.st_mode & 0o77:
        raise _Never("%s is not a private directory of this user" % directory)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(directory + "/socket")
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    except OSError as error:
        connection.close()
        raise NoDaemon("no daemon at %s/socket: %s" % (directory, error)) from None
    if _struct.unpack("3i", credentials)[1] != _os.getuid():
        connection.close()
        raise _Never("%s/socket belongs to somebody else" % directory)
    return connection


def _connect():
    try:
        return _open()
    except _Never:
        raise
    except NoDaemon as first:
        try:
            _subprocess.run(["hob", "start"], stdin=_subprocess.DEVNULL, capture_output=True)
        except OSError:
            raise first from None
        return _open()


def _frame(kind, payload):
    return _HEADER.pack(_MAGIC, kind, 0, 0, len(payload)) + payload


def _bytes(word, what):
    if word is None:
        return b""
    word = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape")
    if len(word) > _WORD_MAX:
        raise ValueError("%s: at most %d bytes" % (what, _WORD_MAX))
    return word


def _body(payload, content_type):
    """A payload as its content type and bytes."""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        kind, body = None, bytes(payload)
    elif isinstance(payload, str):
        kind, body = "text/plain; charset=utf-8", payload.encode("utf-8", "surrogateescape")
    else:
        kind, body = "application/json", _json.dumps(payload, separators=(",", ":")).encode()
    if len(body) > _BODY_MAX:
        raise ValueError("a payload of %d bytes is over the cap of %d" % (len(body), _BODY_MAX))
    return _bytes(content_type or kind, "content_type"), body


class _Stream:
    """Whole frames on a connection, the rest of which is one sender's business."""

    def __init__(self, connection):
        self.connection = connection
        self.rest = b""

    def read(self, deadline):
        """The next whole frame and the descriptors that came meanwhile."""
        data, fds = self.rest, []
        while True:
            if len(data) >= 12:
                magic, _, _, _, length = _HEADER.unpack_from(data)
                if magic != _MAGIC or length > _PAYLOAD_MAX:
                    raise Lost("the other end does not speak hob's wire")
                if len(data) >= 12 + length:
                    self.rest = data[12 + length :]
                    return data[: 12 + length], fds
            more = self.receive(deadline, fds)
            if not more:
                raise Lost("the connection has ended")
            data = data + more if data else more

    def receive(self, deadline, fds):
        self.wait(deadline)
        try:
            more, ancillary, _, _ = self.connection.recvmsg(65536, 64, _socket.MSG_CMSG_CLOEXEC)
        except (_socket.timeout, BlockingIOError):
            raise TimedOut("the time passed") from None
        except ConnectionResetError:
            # The other end had not read all that it was sent, so the last of it was not given.
            raise _Unsent("the daemon has left") from None
        except OSError as error:
            raise Lost("the connection has ended: %s" % error) from None
        for _, _, words in ancillary:
            fds += [x[0] for x in _struct.iter_unpack("i", words[: len(words) // 4 * 4])]
        return more

    def wait(self, deadline):
        left = None if deadline is None else deadline - _time.monotonic()
        if left is not None and left <= 0:
            raise TimedOut("the time passed")
        self.connection.settimeout(left)


class _Lane(_Stream):
    """A worker that is lent to this thread: messages go straight to it."""

    def __init__(self, number, connection):
        super().__init__(connection)
        self.number = number
        self.timed = False


# After so many messages by way of the daemon a lane is asked for again where there was none.
_LANE_EVERY = 64


class _Sender:
    """The connection of one thread."""

    def __init__(self):
        self.pid = _os.getpid()
        self.directory = _os.getcwd()
        self.connection = _connect()
        self.stream = _Stream(self.connection)
        self.number = 0
        self.lanes = {}
        # How many messages until a lane is asked for, by program: none for the first.
        self.patience = {}
        directory = _os.fsencode(self.directory)
        env = [k + b"=" + v for k, v in _os.environb.items()]
        env = b"".join([entry + b"\0" for entry in env])
        attach = _struct.pack("<I", len(directory)) + directory
        attach += _struct.pack("<II", env.count(b"\0"), len(env)) + env
        hello = bytes(16) + _struct.pack("<I", self.pid)
        try:
            self.connection.sendall(_frame(_HELLO, hello) + _frame(_ATTACH, attach))
        except OSError as error:
            self.connection.close()
            raise _Unsent("the daemon has left: %s" % error) from None

    def close(self):
        for lane in self.lanes.values():
            lane.connection.close()
        self.connection.close()

    def next(self):
        self.number += 1
        return self.number

    def ask(self, program, key, kind, body, deadline):
        lane = None if key else self.lanes.get(program) or self.lane(program, deadline)
        if lane is not None:
            answer = self.ask_lane(lane, program, kind, body, deadline)
            if answer is not None:
                return answer
        return self.ask_daemon(program, key, kind, body, deadline)

    def ask_lane(self, lane, program, kind, body, deadline):
        """The answer; None: it was not given, and the daemon is to be asked."""
        self.number = number = self.number + 1
        remaining = 0
        if deadline is not None:
            remaining = max(1, int((deadline - _time.monotonic()) * 1e6))
            lane.wait(deadline)
            lane.timed = True
        elif lane.timed:
            lane.connection.settimeout(None)
            lane.timed = False
        size = 33 + len(kind) + len(body)
        head = _SENT.pack(_MAGIC, _MESSAGE, 0, 0, size, number, _ASK, remaining, 0, 0, len(kind), 0)
        connection = lane.connection
        try:
            connection.sendall(head + kind + body if kind else head + body)
        except (BrokenPipeError, ConnectionResetError):
            # Nothing of it, or not the whole of it, was there to be read.
            self.leave(program)
            return None
        except _socket.timeout:
            self.leave(program)
            raise TimedOut("the time passed") from None
        except BaseException:
            self.leave(program)
            raise
        try:
            if deadline is None:
                frame = connection.recv(65536)
                # As it mostly is: the whole answer, of no type.
                if len(frame) > 23 and _ANSWERED.unpack_from(frame) == (
                    _AN_ANSWER, len(frame) - 12, number, 0
                ):  # fmt: skip
                    return Answer(frame[_AFTER_ANSWER:])
                if len(frame) < 12 or 12 + _HEADER.unpack_from(frame)[4] != len(frame):
                    lane.rest = frame
                    frame = lane.read(None)[0] if frame else b""
            else:
                frame = lane.read(deadline)[0]
        except TimedOut:
            self.leave(program)
            raise
        except (_Unsent, ConnectionResetError):
            self.leave(program)
            return None
        except OSError as error:
            self.leave(program)
            raise Lost("its worker ended before it answered: %s" % error) from None
        except BaseException:
            self.leave(program)
            raise
        if not frame:
            self.leave(program)
            raise Lost("%s: its worker ended before it answered" % program)
        _, code, _, _, _, back = _NUMBERED.unpack_from(frame)
        if back != number:
            self.leave(program)
            raise Lost("%s: an answer to something else" % program)
        if code == _ANSWER:
            return _answer(frame)
        if frame[_AT_REASON] == _AGAIN:
            self.leave(program)
            return None
        raise _failure(frame)

    def lane(self, program, deadline):
        """A lane to a program that has none yet, asked for from the second message on."""
        patience = self.patience.get(program, 1)
        self.patience[program] = patience - 1
        if patience > 0:
            return None
        self.patience[program] = _LANE_EVERY
        number, name = self.next(), _bytes(program, "program")
        wanted = _struct.pack("<QI", number, len(name)) + name
        self.send(_frame(_WANT_LANE, wanted))
        frame, fds = self.reply(number, deadline, _LENT)
        lane = _struct.unpack_from("<Q", frame, _AT_LANE)[0]
        if not lane or not fds:
            return None
        self.lanes[program] = _Lane(lane, _socket.socket(fileno=fds[0]))
        return self.lanes[program]

    def leave(self, program):
        """Gives a lane back, or up."""
        lane = self.lanes.pop(program)
        self.patience[program] = 0
        lane.connection.close()
        self.mention(_LEAVE_LANE, lane.number)

    def ask_daemon(self, program, key, kind, body, deadline, manner=_ASK, drawn=b""):
        number = self.next()
        remaining = 0
        if deadline is not None and manner == _ASK:
            remaining = max(1, int((deadline - _time.monotonic()) * 1e6))
        name = _bytes(program, "program")
        size = 33 + len(name) + len(key) + len(kind) + len(drawn) + len(body)
        lengths = len(name), len(key), len(kind), len(drawn)
        head = _SENT.pack(_MAGIC, _MESSAGE, 0, 0, size, number, manner, remaining, *lengths)
        self.send(b"".join((head, name, key, kind, drawn, body)))
        try:
            # The daemon keeps the time too; its word is waited for a little longer.
            patience = None if deadline is None else deadline + 0.25
            frame, _ = self.reply(number, patience, _ANSWER, _ACCEPTED)
        except TimedOut:
            self.mention(_CANCEL, number)
            raise
        if frame[4] == _ACCEPTED:
            return str(frame[_AFTER_NAME:], "utf-8", "replace")
        return _answer(frame)

    def state(self, verb, name, number=0, ttl=None, value=b""):
        name = _bytes(name, "name")
        if len(value) > _BODY_MAX:
            raise ValueError("a value of %d bytes is over the cap of %d" % (len(value), _BODY_MAX))
        ttl_us = 0 if ttl is None else max(1, int(ttl * 1e6))
        mine = self.next()
        body = _STATED.pack(mine, verb, number, ttl_us, len(name))
        self.send(_frame(_STATE, b"".join((body, name, value))))
        frame, _ = self.reply(mine, None, _STATE_REPLY)
        held, number = _struct.unpack_from("<Bq", frame, _AT_HELD)
        if held == _NO_ROOM:
            raise Error("there is no room for it in the shared state")
        return held == _THERE, number, frame[_AFTER_HELD:]

    def send(self, data):
        try:
            self.connection.settimeout(None)
            self.connection.sendall(data)
        except OSError as error:
            # What it did not have whole it has not given.
            raise _Unsent("the daemon has left: %s" % error) from None

    def mention(self, kind, number):
        """Says a number; a daemon that has left needs no telling."""
        try:
            self.send(_frame(kind, _struct.pack("<Q", number)))
        except _Unsent:
            pass

    def reply(self, number, deadline, *kinds):
        """The reply to a request; what belongs to requests that were given up is passed over."""
        while True:
            frame, fds = self.stream.read(deadline)
            of = _struct.unpack_from("<Q", frame, _AT_ID)[0]
            if of == _ALL_OPEN:
                raise _Unsent("the daemon stops")
            if of != number:
                for fd in fds:
                    _os.close(fd)
                continue
            if frame[4] == _FAILURE:
                failure = _failure(frame)
                raise _Unsent(str(failure)) if failure.reason == "stopping" else failure
            if frame[4] not in kinds:
                raise Lost("the daemon answers something else")
            return frame, fds


_local = _threading.local()


def _sender():
    sender = getattr(_local, "sender", None)
    if sender is not None:
        if sender.pid == _os.getpid() and sender.directory == _os.getcwd():
            return sender
        # A child's closing takes nothing from its parent: both have their own descriptors.
        sender.close()
    _local.sender = sender = _Sender()
    return sender


def _forget():
    sender = getattr(_local, "sender", None)
    if sender is not None:
        sender.close()
        _local.sender = None


def _try(step, deadline=None, again=(_Unsent,)):
    """Does a step on this thread's connection, and on the next daemon's where this one has left
    and `again` says that it was not done."""
    try:
        return step(_sender())
    except again as error:
        _forget()
        return _on_next(step, deadline, again, error)
    except _Never:
        raise
    except NoDaemon as error:
        return _on_next(step, deadline, again, error)
    except Lost:
        _forget()
        raise


def _on_next(step, deadline, again, error):
    """Looks for the next daemon, and does a step there."""
    pause, absent = _PAUSE, None
    until = _time.monotonic() + _REACH if deadline is None else deadline
    while True:
        if _time.monotonic() + pause >= until:
            kind = NoDaemon if deadline is None else TimedOut
            raise kind("no daemon takes it: %s" % error) from None
        _time.sleep(pause)
        pause = min(2 * pause, _PAUSE_MAX)
        since = _time.monotonic()
        try:
            return step(_sender())
        except again as left:
            _forget()
            error, absent = left, None
            # What has waited with one daemon has as long for the next as it had for it.
            if deadline is None and _time.monotonic() - since > _STAY:
                until = _time.monotonic() + _REACH
        except _Never:
            raise
        except NoDaemon as none:
            error, absent = none, absent or _time.monotonic()
            if _time.monotonic() - absent > _ABSENT:
                raise
        except Lost:
            _forget()
            raise


def ask(program, payload=b"", *, key=None, timeout=None, content_type=None):
    """Sends a message to a program and awaits its answer, as `Answer` (bytes).

    `payload` is bytes, text, or what JSON can carry. `key` names a session. `timeout` is in
    seconds; without it the answer is waited for as long as it takes, and a daemon that takes the
    message for 30 seconds.
    """
    kind, body = _body(payload, content_type)
    key = _bytes(key, "key")
    deadline = None if timeout is None else _time.monotonic() + timeout
    return _try(lambda sender: sender.ask(program, key, kind, body, deadline), deadline)


def tell(program, payload=b"", *, key=None, timeout=_REACH, content_type=None, at_most_once=False):
    """Sends a message and goes on; its id. It is kept on disk until it was handled, and may come
    again after a crash, with the same id; with `at_most_once` neither. For so many seconds, 30 if
    nothing is said, a daemon is waited for that takes it."""
    kind, body = _body(payload, content_type)
    key = _bytes(key, "key")
    deadline = _time.monotonic() + (_REACH if timeout is None else timeout)
    if at_most_once:
        manner, drawn, again = _TELL_ONCE, b"", (_Unsent,)
    else:
        # Nobody can say of one that is lost whether it is kept; the next daemon can.
        manner, drawn, again = _TELL, _os.urandom(_DRAWN), (_Unsent, Lost)
    return _try(
        lambda sender: sender.ask_daemon(program, key, kind, body, deadline, manner, drawn),
        deadline,
        again,
    )


class _Counter:
    """A number that all programs of this user share."""

    def __init__(self, name):
        self.name = name

    def add(self, number=1):
        """Adds, and returns what it is then."""
        return _try(lambda sender: sender.state(_ADD, self.name, number))[1]

    def get(self):
        """What it is; 0 before anything was added."""
        return _try(lambda sender: sender.state(_COUNT, self.name))[1]


def counter(name):
    """The counter of this name."""
    return _Counter(name)


class _Cache:
    """Bytes that all programs of this user share, in a bounded room: the least recently used go
    first."""

    def set(self, key, value, ttl=None):
        """Sets an entry, for `ttl` seconds if given. Text is kept as UTF-8."""
        value = value.encode() if isinstance(value, str) else bytes(value)
        _try(lambda sender: sender.state(_SET, key, ttl=ttl, value=value))

    def get(self, key, default=None):
        """The entry's bytes, or `default`."""
        there, _, value = _try(lambda sender: sender.state(_GET, key))
        return value if there else default

    def delete(self, key):
        """Removes an entry; whether there was one."""
        return _try(lambda sender: sender.state(_DELETE, key))[0]


cache = _Cache()


# Where hob runs the program warm, its runtime puts a list of spans here before each call, and what
# counts them; and takes both out behind it. Otherwise it is empty.
_SPANS_OF_THIS_CALL = []
# The same of each task, where a process performs several calls at one time.
_SPANS_OF_THIS_TASK = _contextvars.ContextVar("hob.spans", default=())
_SPANS_MAX = 256
# The flag of the code of an `async def`.
_COROUTINE = 0x80
# The span that a thread or task is in: the list that it is in, and its number there.
_within = _contextvars.ContextVar("hob.span", default=(None, None))


class span:  # noqa: N801  It is used as a function is.
    """A stretch of this call, which `hob trace` and exports show: `with hob.span("parse"):`, or
    `@hob.span("parse")` before a function. Outside of hob it does nothing. A call has 256 of them at
    most, in the order of their begins, and a name 48 bytes."""

    __slots__ = ("_name", "_open")

    def __init__(self, name):
        self._name = name if isinstance(name, (str, bytes)) else str(name)
        self._open = None

    def __enter__(self):
        one = before = None
        # A copy: the call may end meanwhile, in another thread.
        gathered = _SPANS_OF_THIS_CALL[:] or _SPANS_OF_THIS_TASK.get()[:]
        if gathered:
            spans, numbers = gathered
            number = next(numbers)
            if number < _SPANS_MAX:
                of, parent = _within.get()
                before = _within.set((spans, number))
                one = [number, self._name, 0, 0, parent if of is spans else None]
                one[2] = _time.monotonic_ns()
                spans.append(one)
        # The same one may be entered within itself.
        self._open = one, before, self._open
        return self

    def __exit__(self, *_):
        one, before, self._open = self._open
        if one is not None:
            one[3] = _time.monotonic_ns()
            try:
                _within.reset(before)
            except ValueError:
                # Ended in another thread or task than it was begun in.
                pass

    def __call__(self, function):
        name = self._name
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _COROUTINE:

            @_functools.wraps(function)
            async def spanned(*args, **named):
                with span(name):
                    return await function(*args, **named)
        else:

            @_functools.wraps(function)
            def spanned(*args, **named):
                with span(name):
                    return function(*args, **named)

        return spanned
