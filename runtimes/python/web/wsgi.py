"""WSGI, as PEP 3333 has it. Texts in `environ` and in headers are bytes, read as Latin-1."""


class Wsgi:
    """Performs requests by a WSGI app."""

    def __init__(self, application):
        self.application = application

    def __call__(self, payload, given):
        words, rest = take_apart(payload)
        with body_of(rest) as body, Response(given, words[0]) as response:
            starting = Starting(response)
            environ = environ_of(words, body)
            message.HELD.take()
            result = self.application(environ, starting.start)
            try:
                starting.take_all(result)
            finally:
                close(result)
            return response.encode()

    def end(self):
        """Nothing is left of the requests."""


def environ_of(words, body):
    texts = [word.decode("latin-1") for word in words]
    environ = {
        "REQUEST_METHOD": texts[0],
        "REQUEST_URI": texts[1],
        "RAW_URI": texts[1],
        "SCRIPT_NAME": unquote(words[2]).decode("latin-1"),
        "PATH_INFO": unquote(words[3]).decode("latin-1"),
        "QUERY_STRING": texts[4],
        "SERVER_PROTOCOL": texts[5],
        "SERVER_NAME": texts[7],
        "SERVER_PORT": texts[8],
        "SERVER_SOFTWARE": "hob",
        "REMOTE_ADDR": texts[9],
        "REMOTE_PORT": texts[10],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": texts[6],
        "wsgi.input": body,
        # Its end is the body's end: who reads it all needs no length.
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.file_wrapper": FileWrapper,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for at in range(FIRST_HEADER, len(texts), 2):
        # As bytes: of others than ASCII's there may be no such letter in Latin-1.
        name = words[at].upper().replace(b"-", b"_").decode("latin-1")
        value = texts[at + 1]
        if name not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            name = "HTTP_" + name
        if name in environ:
            value = environ[name] + ("; " if name == "HTTP_COOKIE" else ",") + value
        environ[name] = value
    return environ


class FileWrapper:
    """A file as a body, which is closed with it."""

    def __init__(self, filelike, blksize=8192):
        self.filelike, self.blksize = filelike, blksize
        if hasattr(filelike, "close"):
            self.close = filelike.close

    def __iter__(self):
        return self

    def __next__(self):
        data = self.filelike.read(self.blksize)
        if not data:
            raise StopIteration
        return data


class Starting:
    """What a WSGI app says of one response, in which order."""

    def __init__(self, response):
        self.response = response
        # Whether some of the body has been taken, by which the headers count as sent.
        self.sent = False

    def start(self, status, headers, exc_info=None):
        """`start_response`."""
        try:
            if exc_info:
                if self.sent:
                    raise exc_info[1].with_traceback(exc_info[2])
            elif self.response.status is not None:
                raise RuntimeError("start_response was called before, and now without exc_info")
        finally:
            # It holds this very frame.
            exc_info = None
        self.response.begin(status_of(status), pairs_of(headers))
        return self.write

    def write(self, data):
        """What `start_response` returns: headers go before the first of it, even if it is empty."""
        self.take(data)
        self.sent = True

    def take_all(self, result):
        """The rest of the body. What an app yields goes out before it is asked for more; a list is
        whole already."""
        if not (type(result) is FileWrapper and self.take_file(result)):
            goes_on = type(result) not in (list, tuple)
            for chunk in result:
                self.take(chunk, goes_on)
                if goes_on and chunk and self.response.has_no_body():
                    break
        if self.response.status is None:
            raise RuntimeError("the app has ended without a call of start_response")
        self.response.end()

    def take_file(self, wrapper):
        """Has the front send a file from where it stands, if it is one and nothing was sent yet."""
        response, file = self.response, wrapper.filelike
        if response.status is None or response.size or response.has_no_body():
            return False
        try:
            status, offset = os.fstat(file.fileno()), file.tell()
        except (AttributeError, OSError, ValueError):
            return False
        length = status.st_size - offset
        if response.length is not None:
            length = min(length, response.length)
        if status.st_mode & 0o170000 != 0o100000 or length < 0:
            return False
        if length <= FIRST_MAX:
            self.take(file.read(length), False)
        else:
            response.send_file(file, offset, length)
        return True

    def take(self, chunk, goes_on=True):
        if not isinstance(chunk, bytes):
            raise TypeError("a body is made of bytes, not of %s" % type(chunk).__name__)
        if self.response.status is None:
            raise RuntimeError("a body came before the call of start_response")
        if chunk:
            self.sent = True
            response = self.response
            response.keep(chunk)
            if goes_on and not response.is_whole() and not response.has_no_body():
                response.flow()


def status_of(text):
    """The number of a status such as `200 OK`."""
    if not isinstance(text, str):
        raise TypeError("a status is a str, not %s" % type(text).__name__)
    number = text[:3]
    if len(number) != 3 or not (number.isascii() and number.isdigit()) or text[3:4].strip():
        raise ValueError("%r is no status: it begins with three digits and a space" % text)
    return int(number)


def pairs_of(headers):
    if not isinstance(headers, list):
        raise TypeError("headers are a list, not %s" % type(headers).__name__)
    pairs = []
    for name, value in headers:
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError("a header is two str, not %r and %r" % (name, value))
        pairs.append((name.encode("latin-1"), value.encode("latin-1")))
    return pairs


def close(result):
    """Tells a body that nobody reads it any more. If that fails, the response is what it was."""
    try:
        end = getattr(result, "close", None)
        if end is not None:
            end()
    except BaseException as error:
        message.show(error)
