"""ASGI 3: requests on an event loop that lives as long as the process does; as many at one time as
the daemon gives, and one where they come on a lane.

A response in pieces goes out piece by piece. One that is whole at once goes out when the app has
returned, or before that if it goes on behind it. Tasks that it leaves on the loop go on in the next
request.
"""

VERSION, SPEC, LIFESPAN_SPEC = "3.0", "2.4", "2.0"
# The schemes of what asks for a WebSocket.
WEBSOCKETS = b"ws", b"wss"
# An app that has not returned so long after its response goes on behind it.
RETURN_S = 0.001
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
        self.contextvars = __import__("contextvars")

    def __call__(self, payload, given):
        self.begin()
        exchange = self.exchange(payload, given)
        self.loop.run_until_complete(self.perform(exchange))
        return exchange.answer()

    def begin(self):
        if self.loop is None:
            self.loop = self.asyncio.new_event_loop()
        if self.lifespan is None:
            # One that fails is begun again by the next request: what it lacked may be there.
            lifespan = Lifespan(self.asyncio, self.application)
            self.loop.run_until_complete(lifespan.begin())
            self.lifespan = lifespan

    def exchange(self, payload, given):
        words, rest = take_apart(payload)
        if message.FILES:
            # What is read of it nobody else finds there.
            message.HELD.take()
        scope = scope_of(words)
        if self.lifespan.up:
            scope["state"] = self.lifespan.state.copy()
        body, response = body_of(rest), Response(given, words[0])
        if scope["type"] == "websocket":
            body.close()
            exchange = WebSocket(self.loop, response)
        else:
            exchange = Exchange(self.loop, (body, len(rest)), response)
        exchange.scope = scope
        return exchange

    async def perform(self, exchange):
        message.HELD.take()
        try:
            await exchange.run(self.asyncio, self.application, exchange.scope)
        finally:
            exchange.end()

    def attend(self, channel, fields, frame):
        """Performs this message, and those that come meanwhile: the daemon knows how many may."""
        try:
            self.begin()
        except BaseException as error:
            refused = error
            answer, _ = message.perform(lambda *_: raises(refused), fields, frame, 0)
            close_files()
            channel.sendall(answer)
            return
        turns = Turns(self, channel)
        self.loop.add_reader(channel.fileno(), turns.hear)
        try:
            turns.take(fields, frame)
            self.loop.run_until_complete(turns.idle)
        finally:
            self.loop.remove_reader(channel.fileno())

    def end(self):
        """Tells an app that has begun of the end."""
        if self.lifespan is not None and self.lifespan.up:
            self.loop.run_until_complete(self.lifespan.finish())


def scope_of(words):
    raw_path = words[2] + words[3]
    headers = list(zip(words[FIRST_HEADER::2], words[FIRST_HEADER + 1 :: 2]))
    if words[6] in WEBSOCKETS:
        offered = [value for name, value in headers if name == b"sec-websocket-protocol"]
        protocols = b",".join(offered).decode("latin-1").split(",")
        scope = {
            "type": "websocket",
            "subprotocols": [name.strip() for name in protocols if name.strip()],
            "extensions": {"websocket.http.response": {}},
        }
    else:
        scope = {
            "type": "http",
            "method": words[0].decode("latin-1"),
            "extensions": {"http.response.pathsend": {}},
        }
        if words[5] == b"HTTP/1.1":
            scope["extensions"]["http.response.early_hint"] = {}
    return {
        **scope,
        "asgi": {"version": VERSION, "spec_version": SPEC},
        "http_version": words[5].partition(b"/")[2].decode("latin-1"),
        "scheme": words[6].decode("latin-1"),
        "path": unquote(raw_path).decode("utf-8", "replace"),
        "raw_path": raw_path,
        "query_string": words[4],
        "root_path": unquote(words[2]).decode("utf-8", "replace"),
        "headers": headers,
        "server": address(words[7], words[8]),
        "client": address(words[9], words[10]),
    }


def address(host, port):
    """None for a peer that has none, as on a unix socket."""
    return (host.decode("latin-1"), int(port)) if host and port else None


class Exchange:
    """One request and its response."""

    def __init__(self, loop, body, response):
        self.loop = loop
        self.body, inline = body
        # What was read ahead: the whole body, if it did not come in a file.
        self.ahead = self.body.read(inline or PIECE)
        self.is_read = False
        self.response = response
        self.complete = self.left = False
        # What the app raised before its response was complete.
        self.error = None
        self.ended = self.timer = self.scope = None
        # Whoever asked waits no more, and the app was told to end.
        self.given_up = False

    def end(self):
        self.body.close()
        self.response.close()

    def answer(self):
        if self.error is not None:
            # Raised here, it has no frame of the loop.
            raise self.error
        return self.response.encode()

    async def run(self, asyncio, application, scope):
        # Before 3.10 an event belongs to the loop in which it is made.
        self.ended = asyncio.Event()
        try:
            await application(scope, self.receive, self.send)
            if self.left and not self.complete:
                self.error = message.Left()
            elif not self.complete:
                self.error = RuntimeError("the app has returned without a complete response")
        except BaseException as error:
            if self.given_up:
                self.error = message.Left()
            elif self.complete:
                # What it did in the background failed: the response is what it was.
                message.show(error)
            else:
                self.error = error
        finally:
            self.ended.set()
            self.unlisten()
            if self.timer is not None:
                self.timer.cancel()

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
        response = self.response
        if kind == "http.response.start" and response.status is None:
            response.begin(event["status"], byte_pairs(event.get("headers", ())))
        elif kind == "http.response.body" and response.status is not None:
            response.keep(bytes_of(event.get("body", b"")))
            await self.put(event.get("more_body", False))
        elif kind == "http.response.early_hint" and response.status is None:
            response.hint([bytes_of(link) for link in event["links"]])
        elif kind == "http.response.pathsend" and response.status is not None and not response.size:
            with _io.open(event["path"], "rb") as file:
                response.send_file(file, 0, os.fstat(file.fileno()).st_size)
            self.finish()
        else:
            raise RuntimeError("%r cannot come here in a response" % kind)

    async def put(self, more):
        """Sends what has to go out now: all, if the app may take its time before it says more."""
        response = self.response
        is_long = not response.fits() and not response.has_no_body()
        if response.stream is None and (is_long or more and not response.is_whole()):
            response.open()
            # As asyncio knows sockets.
            socket = __import__("socket")
            response.stream = socket.socket(fileno=response.stream.detach())
            response.stream.setblocking(False)
            # Nothing ever comes on it: what is to be read is its end.
            self.loop.add_reader(response.stream.fileno(), self.leave)
        if response.stream is not None:
            frames = list(response.framed())
            try:
                for data in frames if more else [*frames, END_FRAME]:
                    await self.loop.sock_sendall(response.stream, data)
            except (BrokenPipeError, ConnectionResetError):
                self.leave()
                raise message.Left from None
        if not more:
            self.finish()

    def finish(self):
        self.complete = True
        self.ended.set()
        self.unlisten()
        self.response.close()
        if not self.response.has_begun and self.response.size <= FIRST_MAX:
            self.timer = self.loop.call_later(RETURN_S, self.go_ahead)

    def go_ahead(self):
        """Sends what is whole, for which its client is not to wait until the app has returned."""
        try:
            self.response.open()
            self.response.end()
        except message.Left:
            self.left = True

    def leave(self):
        """The client has left."""
        self.left = True
        self.ended.set()
        self.unlisten()

    def unlisten(self):
        if self.response.stream is not None:
            self.loop.remove_reader(self.response.stream.fileno())


def byte_pairs(headers):
    return [(bytes_of(name), bytes_of(value)) for name, value in headers]


def bytes_of(data):
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("%r is %s where ASGI has bytes" % (data, type(data).__name__))
    return bytes(data)
