"""Requests and responses as bytes: how the one is taken apart, and the other put together."""

# A count of words, then each as its length and its bytes; behind them the body. A response has its
# status before that.
U32 = struct.Struct("<I")
HEAD = struct.Struct("<HI")
# Method, target, prefix, path, query, protocol, scheme, host, port, peer, and the peer's port stand
# before the names and values of headers.
FIRST_HEADER = 11
from_bytes = int.from_bytes
DIGITS = "0123456789abcdefABCDEF"
ESCAPED = {(a + b).encode(): bytes((int(a + b, 16),)) for a in DIGITS for b in DIGITS}
# What the name of a header is made of, and what no value has: all control characters but the tab.
IN_NAMES = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CONTROLS = bytes(byte for byte in (*range(32), 127) if byte != 9)


def take_apart(payload):
    """A request's words, and its body."""
    count, at, words = U32.unpack_from(payload)[0], 4, []
    for _ in range(count):
        end = at + 4 + from_bytes(payload[at : at + 4], "little")
        words.append(payload[at + 4 : end])
        at = end
        if at > len(payload):
            break
    if at > len(payload) or count < FIRST_HEADER or not count & 1:
        raise ValueError("what came is no request")
    return words, payload[at:]


def body_of(rest):
    """The body of a request, to be read and closed: what its payload ends with, or the file that
    came with it."""
    return _io.open(message.FILES.pop(), "rb") if message.FILES else _io.BytesIO(rest)


def unquote(path):
    """A path with its percent signs decoded; one that begins nothing stays."""
    if b"%" not in path:
        return path
    first, *rest = path.split(b"%")
    parts = [first]
    for each in rest:
        byte = ESCAPED.get(each[:2])
        parts.append(b"%" + each if byte is None else byte + each[2:])
    return b"".join(parts)


class Response:
    """What an app has said so far."""

    def __init__(self):
        self.status = self.words = None
        self.chunks = []
        self.size = 0

    def begin(self, status, headers):
        """Takes its status and headers, which are pairs of bytes, in the place of earlier ones."""
        if not 100 <= status <= 599:
            raise ValueError("%d is no status of HTTP" % status)
        words = []
        for name, value in headers:
            if not name or name.translate(None, IN_NAMES):
                raise ValueError("a header cannot be named %r" % name)
            if len(value.translate(None, CONTROLS)) != len(value):
                raise ValueError("the value of %r has a control character: %r" % (name, value))
            words += U32.pack(len(name)), name, U32.pack(len(value)), value
        self.size += sum(map(len, words)) - sum(map(len, self.words or ()))
        self.status, self.words = status, words

    def add(self, chunk):
        """Takes more of its body. What is over the cap is not kept, so that an endless body ends."""
        self.size += len(chunk)
        self.check()
        self.chunks.append(chunk)

    def check(self):
        size = HEAD.size + self.size
        if size > message.BODY_MAX:
            self.chunks.clear()
            text = "response of %d bytes is over the cap of %d: not streamed yet"
            raise ValueError(text % (size, message.BODY_MAX))

    def encode(self):
        # An app may have gone on in spite of it.
        self.check()
        head = HEAD.pack(self.status, len(self.words) // 2)
        return b"".join([head, *self.words, *self.chunks])
