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

HEADER = worker.HEADER_BYTES
# wire:begin python-message (`cargo xtask wire` writes these lines)
MESSAGE, ANSWER, FAILURE, LEND, HANDLED = 8, 23, 24, 42, 43
REQUEST, RESPOND, CHUNK, END, STREAM, FILE = 64, 65, 66, 67, 0, 1
CANCEL, SOCKET_TEXT, SOCKET_BINARY, SOCKET_CLOSE, SOCKET = 10, 68, 69, 70, 2
ASK, TELL, TELL_ONCE = 0, 1, 2
RAISED, AGAIN, MALFORMED, CANCELLED = 1, 11, 12, 4
WORD_MAX = 1024
BODY_MAX = 1040384
# A whole message but for its words and payload: the header, then id, manner, remaining, lengths.
# The first four fields of the header, which are the same in every message, are one number.
FIXED = struct.Struct("<QIQBQIIII")
# An answer: the header, id, the content type's length. A failure: the header, id, reason.
ANSWERED = struct.Struct("<4sBBHIQI")
FAILED = struct.Struct("<4sBBHIQB")
RESPONDED = struct.Struct("<4sBBHIQBQQ")
HINT, HINTED = 71, struct.Struct("<4sBBHIQ")
PARTED = struct.Struct("<4sBBHIB")
CLOSED = struct.Struct("<4sBBHII")
FRAME = struct.Struct("<4sBBHI")
REPORT = struct.Struct("<QIIBQQB")
LENT = struct.Struct("<QI")
# wire:end
# What a lane's worker counts in, shared with the daemon (docs/worker.md): messages begun, when the
# newest was, when its sender no longer waits; then messages ended, when, how many of them raised.
TALLY, AT_BEGUN, AT_ENDED, TALLY_BYTES = struct.Struct("=QQQ"), 0, 24, 4096
DEADLINE, AT_DEADLINE = struct.Struct("=Q"), 16
MAGIC = worker.MAGIC
A_MESSAGE = int.from_bytes(MAGIC + bytes((MESSAGE, 0, 0, 0)), "little")
FIRST_READ = 65536
NS_MAX = (1 << 64) - 1
# A report of what a lane has done goes out this often while it is busy.
REPORT_NS = 10_000_000
MSG_PEEK = _socket.MSG_PEEK
POLLIN, POLLPRI, POLLERR, POLLRDHUP = select.POLLIN, select.POLLPRI, select.POLLERR, 0x2000

# What is answered to whoever has left.
LEFT = 2

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
        """Of the four words its traceparent (0), its key (1), its content type (2), or its id (3)."""
        if not self._words:
            return b""
        lengths = self._fields[5:9]
        start = sum(lengths[:which])
        return self._words[start : start + lengths[which]]

    @property
    def id(self):
        """What a redelivery repeats; of an ask, its number."""
        name = self._word(3)
        return name.decode("utf-8", "replace") if name else str(self._fields[2])

    @property
    def kind(self):
        """`ask` or `tell`."""
        return KINDS[self._fields[3]]

    @property
    def key(self):
        """The session that it belongs to, or None."""
        key = self._word(1)
        return key.decode("utf-8", "surrogateescape") if key else None

    @property
    def content_type(self):
        """What the payload is, as MIME names it; None: bytes."""
        kind = self._word(2)
        return kind.decode("utf-8", "replace") if kind else None

    @property
    def traceparent(self):
        """Its call in its sender's trace, as the W3C's Trace Context has it; None: it is in none."""
        own = self._word(0)
        return own.decode("ascii", "replace") if own else None

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
