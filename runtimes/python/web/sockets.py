"""ASGI's WebSockets: one holds its process for as long as it is open.

The front speaks the protocol. Here are whole messages, on a stream that goes both ways, and nothing is
read or written ahead: while the app receives nothing the front reads nothing of the client, and while
the client takes nothing the app's `send` waits.
"""

CONNECTING, OPEN, OVER = range(3)
REFUSAL = "websocket."
IN_REFUSALS = ("websocket.http.response.start", "websocket.http.response.body")
# What a frame holds beside the byte that says whether there is more.
PART_MAX = worker.FRAME_BYTES_MAX - 1
# What an end may say, as RFC 6455 has it: these, and 3000 to 4999.
CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014)
REASON_MAX = 123
NORMAL, GONE, FAULT = 1000, 1006, 1011


class WebSocket:
    """One WebSocket, from the app's decision to take it to its end."""

    def __init__(self, loop, response):
        self.loop, self.response = loop, response
        self.state = CONNECTING
        # Whether the app knows that a client is there.
        self.is_told = False
        # What the app learns of the end, and whether that was the client's.
        self.code, self.reason, self.left = GONE, "", False
        # An exchange, if the app refuses in its own words.
        self.refusal = None
        self.socket = None
        # What has come and is no whole frame; then the parts of a message that has more.
        self.buffer, self.parts = bytearray(), []
        # What of a message has not gone out: of a `send` that was cancelled, too.
        self.out, self.rest = [], None
        self.error = None
        self.scope = None
        # Whoever asked waits no more, and the app was told to end.
        self.given_up = False
        self.decided = self.receiving = self.sending = None

    def end(self):
        self.response.close()

    def answer(self):
        if self.error is not None:
            raise self.error
        return self.response.encode()

    async def run(self, asyncio, application, scope):
        # Before 3.10 these belong to the loop in which they are made.
        self.decided = asyncio.Event()
        self.receiving, self.sending = asyncio.Lock(), asyncio.Lock()
        self.refusal = Exchange(self.loop, (_io.BytesIO(), 0), self.response)
        self.refusal.ended = asyncio.Event()
        try:
            await application(scope, self.receive, self.send)
            if self.state == OPEN:
                await self.close(NORMAL)
            elif self.refusal.left and not self.refusal.complete:
                self.error = message.Left()
            elif self.response.status is None or self.state == CONNECTING:
                self.error = RuntimeError("the app has neither accepted the websocket nor refused it")
        except BaseException as error:
            if self.given_up:
                self.error = message.Left()
            elif self.refusal.complete:
                # The response is what it was.
                message.show(error)
            elif self.left and isinstance(error, OSError):
                # It says that its client has left.
                self.error = message.Left()
            else:
                self.error = error
                await self.fail()
        finally:
            if self.rest is not None:
                self.rest.cancel()
            self.refusal.unlisten()
            if self.refusal.timer is not None:
                self.refusal.timer.cancel()

    async def fail(self):
        """Ends it behind an error of the app's."""
        if self.state != OPEN:
            return
        try:
            await self.close(FAULT)
        except message.Left:
            pass

    async def receive(self):
        if not self.is_told:
            self.is_told = True
            return {"type": "websocket.connect"}
        await self.decided.wait()
        async with self.receiving:
            while self.state == OPEN:
                event = self.taken()
                if event is not None:
                    return event
                await self.read()
        return {"type": "websocket.disconnect", "code": self.code, "reason": self.reason}

    def taken(self):
        """The next message of what has come, if it is whole."""
        while len(self.buffer) >= message.HEADER:
            kind, size = self.buffer[4], from_bytes(self.buffer[8 : message.HEADER], "little")
            end = message.HEADER + size
            if len(self.buffer) < end:
                break
            frame = bytes(self.buffer[message.HEADER : end])
            del self.buffer[:end]
            if kind == message.SOCKET_CLOSE:
                code = from_bytes(frame[:4], "little")
                self.leave(code, frame[4:].decode("utf-8", "replace"))
                break
            self.parts.append(frame[1:])
            if not frame[0]:
                data, self.parts = b"".join(self.parts), []
                if kind == message.SOCKET_TEXT:
                    return {"type": "websocket.receive", "text": data.decode()}
                return {"type": "websocket.receive", "bytes": data}
        return None

    async def read(self):
        """Takes what has come, or waits for more. Cancelled, it has taken nothing."""
        if self.state != OPEN:
            return
        try:
            data = self.socket.recv(PIECE)
        except (BlockingIOError, InterruptedError):
            await self.ready(self.loop.add_reader, self.loop.remove_reader)
        except ConnectionError:
            self.leave(GONE, "")
        else:
            self.buffer += data
            if not data:
                self.leave(GONE, "")

    async def ready(self, add, remove):
        future = self.loop.create_future()
        number = self.socket.fileno()
        add(number, lambda: future.done() or future.set_result(None))
        try:
            await future
        finally:
            remove(number)

    def leave(self, code, reason):
        """The client has left, or the front has ended it."""
        self.state, self.left = OVER, True
        self.code, self.reason = code, reason

    async def send(self, event):
        kind = event["type"]
        if self.state == CONNECTING and kind == "websocket.accept" and self.response.status is None:
            self.accept(event)
        elif self.state == CONNECTING and kind == "websocket.close" and self.response.status is None:
            self.response.begin(403, ())
            self.refuse()
        elif self.state == CONNECTING and kind in IN_REFUSALS:
            await self.refusal.send(dict(event, type=kind[len(REFUSAL) :]))
            if self.refusal.complete:
                self.refuse()
        elif self.state == OPEN and kind == "websocket.send":
            await self.say(event)
        elif self.state == OPEN and kind == "websocket.close":
            code = event.get("code", NORMAL)
            await self.close(NORMAL if code is None else code, event.get("reason") or "")
        elif self.left and kind == "websocket.send":
            raise message.Left("the client has left")
        elif not (self.left and kind == "websocket.close"):
            raise RuntimeError("%r cannot come here in a websocket" % kind)

    def accept(self, event):
        headers = byte_pairs(event.get("headers") or ())
        protocol = event.get("subprotocol")
        if protocol is not None:
            headers.append((b"sec-websocket-protocol", protocol.encode("latin-1")))
        self.response.begin(101, headers)
        self.response.open(message.SOCKET)
        # As asyncio knows sockets.
        socket = __import__("socket")
        self.socket = self.response.stream = socket.socket(fileno=self.response.stream.detach())
        self.socket.setblocking(False)
        self.state = OPEN
        self.decided.set()

    def refuse(self):
        self.state = OVER
        self.decided.set()

    async def say(self, event):
        data = event.get("bytes")
        if data is not None:
            kind, data = message.SOCKET_BINARY, bytes_of(data)
        else:
            kind, data = message.SOCKET_TEXT, text_of(event.get("text")).encode()
        await self.put(part_frames(kind, data))

    async def close(self, code, reason=""):
        """Ends it from this side; what the app receives from then on is that."""
        if code not in CODES and not 3000 <= code <= 4999:
            raise ValueError("%r is no code that a websocket ends with" % code)
        said = text_of(reason).encode()
        if len(said) > REASON_MAX:
            raise ValueError("a reason has %d bytes at most" % REASON_MAX)
        size = 4 + len(said)
        frame = message.CLOSED.pack(message.MAGIC, message.SOCKET_CLOSE, 0, 0, size, code) + said
        await self.put([frame])
        if self.state == OPEN:
            self.state, self.code, self.reason = OVER, code, reason

    async def put(self, frames):
        """Sends frames, and waits for whoever reads them."""
        async with self.sending:
            try:
                await self.flush()
                self.out = [memoryview(frame) for frame in frames]
                await self.flush()
            except BaseException:
                if self.out and not self.left:
                    # Whoever gives it up does not leave the client with half a message.
                    self.rest = self.loop.create_task(self.put_rest())
                raise

    async def put_rest(self):
        try:
            await self.put(())
        except message.Left:
            pass

    async def flush(self):
        while self.out:
            try:
                sent = self.socket.send(self.out[0], message._socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                await self.ready(self.loop.add_writer, self.loop.remove_writer)
            except ConnectionError:
                # It has said why, if it could; an app that receives is told.
                self.left = True
                raise message.Left("the client has left") from None
            else:
                self.out[0] = self.out[0][sent:]
                if not self.out[0]:
                    del self.out[0]


def part_frames(kind, data):
    """A message as frames."""
    frames = []
    for at in range(0, max(len(data), 1), PART_MAX):
        part = data[at : at + PART_MAX]
        head = message.MAGIC, kind, 0, 0, 1 + len(part), at + PART_MAX < len(data)
        frames.append(message.PARTED.pack(*head) + part)
    return frames


def text_of(text):
    if not isinstance(text, str):
        raise TypeError("%r is %s where ASGI has text" % (text, type(text).__name__))
    return text


INTERFACES = {"wsgi": Wsgi, "asgi": Asgi}
