"""Handlers: the part of the Python runtime that answers messages (docs/worker.md, messages.md).

`worker.py` loads this file in the processes of a handler, and puts itself in as `worker`.

A handler is a function of two arguments, `handle(payload, message)`. It gets bytes and returns
bytes, text, None (nothing), or what `json` can write. What it raises is told to the asker and ends
nothing; `sys.exit` counts as raising; `os._exit` or a crash ends this process, and the daemon
tells the asker. Standard output and error lead to the daemon's log: a handler's answer is what it
returns.

The way of a message is kept short: one read, one look at the doorbell, one write. Whoever changes
it runs `make bench-messages`.
"""

import sys

worker = worker  # noqa: F821, PLW0127  Put here by whoever loaded this file.

posix, time, gc, os = worker.posix, worker.time, worker.gc, worker.os
_socket = worker._socket
struct = worker.borrow("_struct")
select = worker.borrow("select")
try:
    mmap = worker.borrow("mmap")
except ImportError:
    mmap = None

MESSAGE, ANSWER, FAILURE, LEND, HANDLED = 8, 23, 24, 42, 43
ASK, TELL, TELL_ONCE = 0, 1, 2
RAISED, AGAIN, MALFORMED = 1, 11, 12

HEADER = worker.HEADER_BYTES
WORD_MAX = 1024
BODY_MAX = worker.FRAME_BYTES_MAX - 8 * WORD_MAX
# A whole message but for its words and payload: the header, then id, manner, remaining, lengths.
# The first four fields of the header, which are the same in every message, are one number.
FIXED = struct.Struct("<QIQBQIIII")
# An answer: the header, id, the content type's length. A failure: the header, id, reason.
ANSWERED = struct.Struct("<4sBBHIQI")
FAILED = struct.Struct("<4sBBHIQB")
REPORT = struct.Struct("<QIIBQQB")
# What a lane's worker counts in, shared with the daemon (docs/worker.md): messages begun, when the
# newest was, when its sender no longer waits; then messages ended, when, how many of them raised.
TALLY, AT_BEGUN, AT_ENDED, TALLY_BYTES = struct.Struct("=QQQ"), 0, 24, 4096
MAGIC = worker.MAGIC
A_MESSAGE = int.from_bytes(MAGIC + bytes((MESSAGE, 0, 0, 0)), "little")
FIRST_READ = 65536
NS_MAX = (1 << 64) - 1
# A report of what a lane has done goes out this often while it is busy.
REPORT_NS = 10_000_000
MSG_PEEK = _socket.MSG_PEEK
POLLIN, POLLPRI, POLLERR, POLLRDHUP = select.POLLIN, select.POLLPRI, select.POLLERR, 0x2000

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
KINDS = {ASK: "ask", TELL: "tell", TELL_ONCE: "tell"}


class Message:
    """What a handler may know of its message besides the payload."""

    __slots__ = ("_fields", "_words", "received_ns")

    def __init__(self, fields, words, received_ns):
        self._fields = fields
        self._words = words
        self.received_ns = received_ns

    def _word(self, which):
        """Of the three words its key (0), its content type (1), or its id (2)."""
        if not self._words:
            return b""
        lengths = self._fields[6:9]
        start = sum(lengths[:which])
        return self._words[start : start + lengths[which]]

    @property
    def id(self):
        """What a redelivery repeats; of an ask, its number."""
        name = self._word(2)
        return name.decode("utf-8", "replace") if name else str(self._fields[2])

    @property
    def kind(self):
        """`ask` or `tell`."""
        return KINDS[self._fields[3]]

    @property
    def key(self):
        """The session that it belongs to, or None."""
        key = self._word(0)
        return key.decode("utf-8", "surrogateescape") if key else None

    @property
    def content_type(self):
        """What the payload is, as MIME names it; None: bytes."""
        kind = self._word(1)
        return kind.decode("utf-8", "replace") if kind else None

    @property
    def deadline(self):
        """When its asker no longer waits, on the clock of `time.monotonic`; None: it waits."""
        remaining = self._fields[4]
        return self.received_ns / 1e9 + remaining / 1e6 if remaining else None

    @property
    def remaining(self):
        """Seconds until then, 0 if it has passed; None: it waits."""
        return None if not self._fields[4] else max(0.0, self.deadline - time.monotonic())

    def __repr__(self):
        return "<hob.Message %s %s>" % (self.kind, self.id)


class Loaded:
    """A function in a file, as `hob.toml` names it."""

    def __init__(self, target):
        self.file, _, self.function = target.rpartition(":")
        self.name = os.path.basename(self.file).rpartition(".")[0] or "handler"
        self.call = None
        self.error = None

    def load(self):
        """Imports the file; what goes wrong is told when the preload has ended."""
        directory = os.path.abspath(worker.BYTECODE.sources)
        # Last: a user's own module of this name is found before it.
        sys.path.append(directory + "/python")
        # Bytecode is kept under its source's size and second: an edit within that second would
        # not be seen. What lies there already was written by others.
        sys.dont_write_bytecode = True
        try:
            util = __import__("importlib.util", fromlist=["util"])
            spec = util.spec_from_file_location(self.name, self.file)
            module = util.module_from_spec(spec)
            sys.modules[self.name] = module
            # As a script is: always from its source.
            exec(worker.compile_script(self.file), module.__dict__)
            self.call = getattr(module, self.function, None)
            if not callable(self.call):
                self.error = "%s has no function `%s`" % (self.file, self.function)
        except BaseException as error:
            self.error = where(error, self.file) + describe(error)

    def check(self):
        if self.error is not None:
            raise LoadError(self.error)


class LoadError(Exception):
    """The handler cannot be loaded."""


def describe(error):
    """The last line of a traceback, on one line."""
    try:
        text = str(error)
    except BaseException:
        text = "<no text>"
    name = type(error).__name__
    return " ".join(("%s: %s" % (name, text) if text else name).split())


def where(error, file):
    """The line of the handler's own file that an error came through last."""
    if isinstance(error, SyntaxError) and error.filename:
        return "%s:%s: " % (error.filename, error.lineno)
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    return "" if line is None else "%s:%d: " % (file, line)


def encode(answer):
    """What a handler returned, as a content type and bytes."""
    if type(answer) is bytes:
        return b"", answer
    if answer is None:
        return b"", b""
    if isinstance(answer, str):
        return TEXT.encode(), answer.encode("utf-8", "surrogateescape")
    if isinstance(answer, (bytes, bytearray, memoryview)):
        return b"", bytes(answer)
    json = __import__("json")
    return JSON.encode(), json.dumps(answer, separators=(",", ":")).encode()


def failure(number, reason, text):
    text = text.encode("utf-8", "replace")[:4096]
    return FAILED.pack(MAGIC, FAILURE, 0, 0, 9 + len(text), number, reason) + text


def show(error):
    """The whole traceback, to the log: the asker gets its last line."""
    try:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.__excepthook__(type(error), error, error.__traceback__)
        worker.flush_quietly()
    except BaseException:
        pass


def perform(handler, fields, frame, received_ns):
    """Handles the message in `frame`; the frame to answer with, and whether it raised."""
    _, _, number, _, _, program, key, kind, name = fields
    at = FIXED.size + program
    words = None
    if key or kind or name:
        words = bytes(frame[at : at + key + kind + name])
        at += key + kind + name
    try:
        answer = handler(bytes(frame[at:]), Message(fields, words, received_ns))
        if type(answer) is bytes and len(answer) <= BODY_MAX:
            size = 12 + len(answer)
            return ANSWERED.pack(MAGIC, ANSWER, 0, 0, size, number, 0) + answer, 0
        kind, answer = encode(answer)
        if len(answer) > BODY_MAX:
            text = "ValueError: an answer of %d bytes is over the cap of %d"
            return failure(number, RAISED, text % (len(answer), BODY_MAX)), 1
        size = 12 + len(kind) + len(answer)
        return ANSWERED.pack(MAGIC, ANSWER, 0, 0, size, number, len(kind)) + kind + answer, 0
    except BaseException as error:
        show(error)
        return failure(number, RAISED, describe(error)), 1


class Wire:
    """Whole frames off a connection, read with as few system calls as there are frames."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = bytearray(FIRST_READ)
        self.view = memoryview(self.buffer)
        self.start = self.have = 0

    def fill(self, wanted):
        """Reads until `wanted` bytes are there; False at the end."""
        if self.start:
            self.buffer[: self.have] = self.buffer[self.start : self.start + self.have]
            self.start = 0
        if wanted > len(self.buffer):
            self.view.release()
            self.buffer = self.buffer + bytes(wanted - len(self.buffer))
            self.view = memoryview(self.buffer)
        while self.have < wanted:
            count = self.connection.recv_into(self.view[self.have :])
            if not count:
                return False
            self.have += count
        return True

    def waits(self):
        """Waits until something is there to be read, and reads nothing; False at the end."""
        return bool(self.connection.recv(1, MSG_PEEK))

    def message(self):
        """The fields of the next message and a view of its frame, valid until the next is asked
        for; None at the end of the connection, and for a frame that is no message."""
        if not self.have:
            # Nothing is left over, so that it goes to where the buffer begins.
            self.have = self.connection.recv_into(self.view)
        start, have = self.start, self.have
        if have < FIXED.size:
            # Too short for any message, but it may be an end that is still on its way.
            if not self.fill(HEADER) or not self.fill(self.frame_bytes()):
                return None
            start, have = self.start, self.have
            if have < FIXED.size:
                return None
        fields = FIXED.unpack_from(self.buffer, start)
        whole = HEADER + fields[1]
        if fields[0] != A_MESSAGE or whole != have:
            # Another frame, a part of one, or more than one.
            if self.frame_bytes() < FIXED.size or self.buffer[start + 4] != MESSAGE:
                return None
            if have < whole and not self.fill(whole):
                return None
            start = self.start
        self.have -= whole
        self.start = start + whole if self.have else 0
        return fields, self.view[start : start + whole]

    def frame_bytes(self):
        """How long the frame is that begins here; raises if none does."""
        _, _, length = worker.decode_header(self.buffer[self.start : self.start + HEADER])
        return HEADER + length


class Lane:
    """A connection to one sender, on which the daemon does not hear."""

    def __init__(self, number, uses, connection, doorbell, mounts, tally):
        self.number = number
        self.uses = uses
        self.connection = connection
        self.again = posix.dup(connection.fileno())
        self.doorbell = doorbell
        self.mounts = mounts
        self.tally = tally
        self.count = self.raised = 0
        self.reported_ns = 0
        self.newest = 0, 0, 0

    def poller(self):
        """Asked in this order: whatever is there to be read was sent before the bell is looked at,
        and who finds no bell rung, and the lane open after that, has a message that was sent
        before anything changed that the daemon knows of. Also, what it says of such a message.

        `select.poll` takes a descriptor once, so that the lane's end is asked of a second one."""
        poller = select.poll()
        poller.register(self.connection, POLLIN)
        poller.register(self.doorbell, POLLIN)
        poller.register(self.mounts, POLLPRI | POLLERR)
        poller.register(self.again, POLLRDHUP)
        return poller.poll, [(self.connection.fileno(), POLLIN)]

    def serve(self, handler):
        """Answers until the sender leaves, the daemon recalls, or the uses are up."""
        wire, left = Wire(self.connection), self.uses
        poll, quiet = self.poller()
        send, now, next_message = self.connection.sendall, time.monotonic_ns, wire.message
        write, tally, begun, raised_ever = TALLY.pack_into, self.tally, 0, 0
        try:
            while True:
                # What is read below had begun to come before this looked at the bell: an edit
                # before it was sent has rung it. A bell keeps ringing, so it is not waited on
                # for a second time.
                if wire.have:
                    said = poll(0)
                    recalled = said and said != quiet
                else:
                    recalled = poll() != quiet
                    if recalled and not wire.waits():
                        return
                # Noted before it is read: at each moment of a message that is not answered either
                # it lies in the lane or the tally has it, whenever this process is killed.
                main_ns = now()
                write(tally, AT_BEGUN, begun + 1, main_ns, 0)
                message = next_message()
                if message is None:
                    write(tally, AT_BEGUN, begun, main_ns, 0)
                    return
                fields, view = message
                # Shut by us, it is shut for what came after the last use too.
                if recalled or left <= 0:
                    write(tally, AT_BEGUN, begun, main_ns, 0)
                    send(failure(fields[2], AGAIN, ""))
                    continue
                begun += 1
                if fields[4]:
                    write(tally, AT_BEGUN, begun, main_ns, min(main_ns + fields[4] * 1000, NS_MAX))
                answer, raised = perform(handler, fields, view, main_ns)
                if IS_CHILD:
                    # The handler forked it and let it return: the answer is its parent's to give.
                    posix._exit(0)
                left -= 1
                self.count += 1
                if raised:
                    self.raised += 1
                    raised_ever += 1
                finished_ns = now()
                write(tally, AT_ENDED, begun, finished_ns, raised_ever)
                self.newest = main_ns, finished_ns, raised
                if left <= 0:
                    self.connection.shutdown(_socket.SHUT_RD)
                send(answer)
                if finished_ns - self.reported_ns > REPORT_NS or raised:
                    self.report(0)
        except (BrokenPipeError, ConnectionResetError):
            return

    def report(self, over):
        main_ns, finished_ns, raised = self.newest
        counts = self.number, self.count, self.raised, raised
        self.count = self.raised = 0
        self.reported_ns = finished_ns
        body = REPORT.pack(*counts, main_ns, finished_ns, over)
        worker.send_all(worker.COPY_FD, worker.encode_frame(HANDLED, body))


# Whether this process is a child that a handler has forked while it was lent.
IS_CHILD = None


def is_child():
    global IS_CHILD
    IS_CHILD = True


def open_tally(fd):
    """The memory behind it; where it cannot be had, some that nobody reads: then the reports
    count."""
    try:
        return mmap.mmap(fd, TALLY_BYTES)
    except (AttributeError, OSError, ValueError):
        return bytearray(TALLY_BYTES)
    finally:
        posix.close(fd)


def lend(handler, payload, fds):
    global IS_CHILD
    if IS_CHILD is None:
        IS_CHILD = False
        posix.register_at_fork(after_in_child=is_child)
    number, uses = struct.unpack("<QI", payload)
    lane_fd, doorbell, tally = fds
    tally = open_tally(tally)
    mounts = posix.open("/proc/self/mountinfo", posix.O_RDONLY | posix.O_CLOEXEC)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, lane_fd)
    lane = Lane(number, uses, connection, doorbell, mounts, tally)
    mine = posix.getpid()
    try:
        lane.serve(handler)
    finally:
        if posix.getpid() != mine:
            posix._exit(1)
        connection.close()
        posix.close(lane.again)
        posix.close(doorbell)
        posix.close(mounts)
    lane.report(1)
    # A handler's child may still have it: it is this process's view that ends.
    if mmap is not None and isinstance(tally, mmap.mmap):
        tally.close()


def serve(loaded, channel, role, collects):
    """The life of a worker: messages and lanes, one after the other, until the channel ends."""
    worker.KERNEL.set_title(b"hob: " + os.fsencode(loaded.name) + b"\0")
    if collects:
        gc.enable()
    handler, pid = loaded.call, posix.getpid()
    posix.dup2(2, 1)
    if role == worker.ZYGOTE:
        ready = worker.encode_ready(worker.COPY, pid, worker.count_threads(), [])
        worker.send_all(worker.COPY_FD, ready)
    while True:
        frame = worker.receive(channel)
        if frame is None:
            posix._exit(0)
        kind, payload, fds = frame
        if kind == LEND and len(fds) == 3:
            lend(handler, payload, fds)
            continue
        if kind != MESSAGE:
            raise worker.WireError("a message was expected")
        whole = bytes(HEADER) + payload
        fields = FIXED.unpack_from(whole)
        answer, _ = perform(handler, fields, whole, time.monotonic_ns())
        if posix.getpid() != pid:
            # A child that the handler forked and let return: the answer is its parent's to give.
            posix._exit(0)
        worker.flush_quietly()
        channel.sendall(answer)
