"""ASGI 3: requests one at a time, on an event loop that lives as long as the process does.

A response goes out when the app has returned, and so after what it does in the background. Tasks
that it leaves on the loop go on in the next request.
"""

VERSION, SPEC, LIFESPAN_SPEC = "3.0", "2.3", "2.0"
# A worker that is to leave waits this long for the app's own end.
END_S = 5
# A body that came in a file is received in such pieces.
PIECE = 65536


class Asgi:
    """Performs requests by an ASGI app."""

    def __init__(self, application):
        self.application = application
        # Of this process alone: a copy's loop is none that its zygote has begun.
        self.loop = self.lifespan = None
        # The app's own.
        self.asyncio = __import__("asyncio")

    def __call__(self, payload, _):
        words, rest = take_apart(payload)
        if self.loop is None:
            self.loop = self.asyncio.new_event_loop()
        if self.lifespan is None:
            # One that fails is begun again by the next request: what it lacked may be there.
            lifespan = Lifespan(self.asyncio, self.application)
            self.loop.run_until_complete(lifespan.begin())
            self.lifespan = lifespan
        scope = scope_of(words)
        if self.lifespan.up:
            scope["state"] = self.lifespan.state.copy()
        with body_of(rest) as body:
            exchange = Exchange(body, len(rest))
            self.loop.run_until_complete(exchange.run(self.asyncio, self.application, scope))
        if exchange.error is not None:
            # Raised here, it has no frame of the loop.
            raise exchange.error
        return exchange.response.encode()

    def end(self):
        """Tells an app that has begun of the end."""
        if self.lifespan is not None and self.lifespan.up:
            self.loop.run_until_complete(self.lifespan.finish())


def scope_of(words):
    raw_path = words[2] + words[3]
    return {
        "type": "http",
        "asgi": {"version": VERSION, "spec_version": SPEC},
        "http_version": words[5].partition(b"/")[2].decode("latin-1"),
        "method": words[0].decode("latin-1"),
        "scheme": words[6].decode("latin-1"),
        "path": unquote(raw_path).decode("utf-8", "replace"),
        "raw_path": raw_path,
        "query_string": words[4],
        "root_path": unquote(words[2]).decode("utf-8", "replace"),
        "headers": list(zip(words[FIRST_HEADER::2], words[FIRST_HEADER + 1 :: 2])),
        "server": address(words[7], words[8]),
        "client": address(words[9], words[10]),
    }


def address(host, port):
    """None for a peer that has none, as on a unix socket."""
    return (host.decode("latin-1"), int(port)) if host and port else None


class Exchange:
    """One request and its response."""

    def __init__(self, body, inline):
        self.body = body
        # What was read ahead: the whole body, if it did not come in a file.
        self.ahead = body.read(inline or PIECE)
        self.is_read = False
        self.response = Response()
        self.complete = False
        # What the app raised before its response was complete.
        self.error = None
        self.ended = None

    async def run(self, asyncio, application, scope):
        # Before 3.10 an event belongs to the loop in which it is made.
        self.ended = asyncio.Event()
        try:
            await application(scope, self.receive, self.send)
            if not self.complete:
                self.error = RuntimeError("the app has returned without a complete response")
        except BaseException as error:
            if self.complete:
                # What it did in the background failed: the response is what it was.
                message.show(error)
            else:
                self.error = error
        finally:
            self.ended.set()

    async def receive(self):
        if not self.is_read:
            data, self.ahead = self.ahead, self.body.read(PIECE)
            self.is_read = not self.ahead
            return {"type": "http.request", "body": data, "more_body": not self.is_read}
        # Apps stop what they are at when the client leaves: told so too early, they would stop
        # a response that is awaited.
        await self.ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, event):
        kind = event["type"]
        if self.complete:
            raise RuntimeError("%r came after the end of the response" % kind)
        if kind == "http.response.start" and self.response.status is None:
            self.response.begin(event["status"], byte_pairs(event.get("headers", ())))
        elif kind == "http.response.body" and self.response.status is not None:
            self.response.add(bytes_of(event.get("body", b"")))
            if not event.get("more_body", False):
                self.complete = True
                self.ended.set()
        else:
            raise RuntimeError("%r cannot come here in a response" % kind)


def byte_pairs(headers):
    return [(bytes_of(name), bytes_of(value)) for name, value in headers]


def bytes_of(data):
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("%r is %s where ASGI has bytes" % (data, type(data).__name__))
    return bytes(data)


class Lifespan:
    """The app's beginning and end, if it has a mind for these."""

    def __init__(self, asyncio, application):
        self.asyncio, self.application = asyncio, application
        self.state = {}
        self.up = False
        # What it said of a failure, or what it raised.
        self.failed = self.error = None
        self.events = self.said = self.task = None

    async def begin(self):
        """Returns when the app has begun, or has shown that it knows nothing of this."""
        self.events, self.said = self.asyncio.Queue(), self.asyncio.Event()
        self.events.put_nowait({"type": "lifespan.startup"})
        self.task = self.asyncio.ensure_future(self.run())
        await self.said.wait()
        if self.failed is not None:
            self.task.cancel()
            await self.asyncio.wait([self.task], timeout=END_S)
            raise RuntimeError("the app's startup has failed: %s" % self.failed)
        if self.error is not None and not isinstance(self.error, Exception):
            raise self.error

    async def run(self):
        versions = {"version": VERSION, "spec_version": LIFESPAN_SPEC}
        scope = {"type": "lifespan", "asgi": versions, "state": self.state}
        try:
            await self.application(scope, self.events.get, self.send)
        except BaseException as error:
            self.error = error
            if self.up:
                message.show(error)
        finally:
            self.said.set()

    async def send(self, event):
        kind = event["type"]
        if kind == "lifespan.startup.complete":
            self.up = True
        elif kind == "lifespan.startup.failed":
            self.failed = event.get("message") or "it says no more"
        elif kind == "lifespan.shutdown.failed":
            sys.stderr.write("the app's shutdown has failed: %s\n" % event.get("message", ""))
        elif kind != "lifespan.shutdown.complete":
            raise RuntimeError("%r is nothing of a lifespan" % kind)
        self.said.set()

    async def finish(self):
        self.events.put_nowait({"type": "lifespan.shutdown"})
        await self.asyncio.wait([self.task], timeout=END_S)


INTERFACES = {"wsgi": Wsgi, "asgi": Asgi}
