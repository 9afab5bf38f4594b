"""Requests and responses as bytes: how the one is taken apart, and the other put together, whole or
piece by piece."""

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


def words_of(headers):
    """Headers, which are pairs of bytes, as a head has them."""
    words = []
    for name, value in headers:
        if not name or name.translate(None, IN_NAMES):
            raise ValueError("a header cannot be named %r" % name)
        if len(value.translate(None, CONTROLS)) != len(value):
            raise ValueError("the value of %r has a control character: %r" % (name, value))
        words += U32.pack(len(name)), name, U32.pack(len(value)), value
    return words


class Response:
    """What an app has said so far. As long as it may be whole in one frame it is kept; else it begins,
    and what comes from then on goes out on a stream."""

    def __init__(self, given, method):
        # The number of its message.
        self.number = given._fields[2]
        self.is_head = method == b"HEAD"
        self.status = self.words = None
        # What it says to have, if it does.
        self.length = None
        # Of its body: what has not gone out, and how much there has been.
        self.chunks = []
        self.size = 0
        self.stream = None
        self.has_begun = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Without its end, a body on a stream has broken off.
        self.close()

    def begin(self, status, headers):
        """Takes its status and headers, which are pairs of bytes, in the place of earlier ones."""
        if not 100 <= status <= 599:
            raise ValueError("%d is no status of HTTP" % status)
        self.length = None
        for name, value in headers:
            if value.isdigit() and name.lower() == b"content-length":
                self.length = int(value)
        self.status, self.words = status, words_of(headers)
        if self.head_size() > message.BODY_MAX:
            raise ValueError("headers of %d bytes do not fit" % self.head_size())

    def hint(self, links):
        """Has the client told what the response will link to, before that begins."""
        words = words_of([(b"link", link) for link in links])
        head = b"".join([HEAD.pack(103, len(words) // 2), *words])
        if len(head) > message.BODY_MAX:
            raise ValueError("links of %d bytes do not fit" % len(head))
        fields = message.HINT, 0, 0, 8 + len(head), self.number
        message.CONNECTION.sendall(message.HINTED.pack(message.MAGIC, *fields) + head)

    def has_no_body(self):
        return self.is_head or self.status in (204, 304)

    def head_size(self):
        return HEAD.size + sum(map(len, self.words))

    def keep(self, chunk):
        """Takes more of its body; of one that nobody is sent, no more than fits."""
        self.size += len(chunk)
        if not self.has_no_body() or self.fits():
            self.chunks.append(chunk)
        else:
            self.chunks.clear()

    def is_whole(self):
        """Whether it has all that it says to have."""
        return self.length == self.size

    def fits(self):
        return self.head_size() + self.size <= message.BODY_MAX

    def open(self, source=message.STREAM):
        """Begins it, with what is kept of its body if that is not much."""
        ours, theirs = message._socket.socketpair()
        try:
            first = self.chunks if self.size <= FIRST_MAX else []
            self.respond(source, 0, 0, theirs.fileno(), first)
        finally:
            theirs.close()
        self.stream = ours
        if first:
            self.chunks = []

    def respond(self, source, offset, length, fd, first=()):
        head = b"".join([HEAD.pack(self.status, len(self.words) // 2), *self.words, *first])
        fields = message.RESPOND, 1, 0, 25 + len(head), self.number, source, offset, length
        frame = message.RESPONDED.pack(message.MAGIC, *fields) + head
        rights = message._socket.SOL_SOCKET, message._socket.SCM_RIGHTS, U32.pack(fd)
        if message.LENT_ON is not None:
            message.LENT_ON.begins()
        sent = message.CONNECTION.sendmsg([frame], [rights])
        message.CONNECTION.sendall(frame[sent:])
        self.has_begun = True

    def send_file(self, file, offset, length):
        """The body is a part of a file, which the front reads by itself."""
        self.respond(message.FILE, offset, length, file.fileno())

    def framed(self):
        """What is kept of its body, as frames of its stream."""
        chunks, self.chunks = self.chunks, []
        for chunk in chunks:
            for at in range(0, len(chunk), worker.FRAME_BYTES_MAX):
                piece = chunk[at : at + worker.FRAME_BYTES_MAX]
                yield message.FRAME.pack(message.MAGIC, message.CHUNK, 0, 0, len(piece)) + piece

    def write(self, data):
        """Sends bytes on its stream, and waits for whoever reads them."""
        try:
            self.stream.sendall(data, message._socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionResetError):
            raise message.Left from None

    def flow(self):
        """Sends what is kept."""
        if self.stream is None:
            self.open()
        for data in self.framed():
            self.write(data)

    def end(self):
        """Its body is whole."""
        is_long = not self.has_begun and not self.fits() and not self.has_no_body()
        if self.stream is not None or is_long:
            self.flow()
            self.write(END_FRAME)
            self.close()

    def close(self):
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()

    def encode(self):
        """What answers its message: nothing more, if it has begun."""
        if self.has_begun:
            return b""
        head = HEAD.pack(self.status, len(self.words) // 2)
        return b"".join([head, *self.words, *self.chunks])


END_FRAME = message.FRAME.pack(message.MAGIC, message.END, 0, 0, 0)
# More than this of a body does not travel with its head.
FIRST_MAX = 65536
