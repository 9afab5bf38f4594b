"""ASGI's lifespan: an app's beginning and end, in each process of it."""

# A worker that is to leave waits this long for the app's own end.
END_S = 5


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
