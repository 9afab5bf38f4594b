"""The messages that a process of an ASGI app has at one time."""


def raises(error):
    raise error


def close_files():
    while message.FILES:
        posix.close(message.FILES.pop())


class Turns:
    """The messages that a process has at one time, until it has none."""

    def __init__(self, asgi, channel):
        self.asgi, self.channel = asgi, channel
        self.pid = posix.getpid()
        # By their numbers: what is said of them, and what performs them.
        self.open = {}
        self.idle = asgi.loop.create_future()

    def hear(self):
        try:
            self.heard()
        except BaseException as error:
            self.fail(error)

    def fail(self, error):
        """The daemon cannot be heard, or told: the process is of no use."""
        if not self.idle.done():
            self.idle.set_exception(error)

    def heard(self):
        """Takes what the daemon says."""
        frame = worker.receive(self.channel)
        if frame is None:
            # Whatever is open may end; its end is heard again behind that.
            self.asgi.loop.remove_reader(self.channel.fileno())
            return
        kind, payload, fds = frame
        if kind == message.CANCEL:
            self.cancel(from_bytes(payload[:8], "little"))
        elif kind == message.MESSAGE or kind == message.REQUEST and len(fds) == 1:
            whole = bytes(message.HEADER) + payload
            message.FILES[:] = fds
            self.take(message.FIXED.unpack_from(whole), whole)
        else:
            raise worker.WireError("a message was expected")

    def take(self, fields, frame):
        at = message.FIXED.size + sum(fields[5:9])
        given = message.Message(fields, None, 0)
        try:
            exchange = self.asgi.exchange(bytes(frame[at:]), given)
        except BaseException as error:
            wrong = error
            message.HELD.take()
            self.tell(fields, frame, lambda *_: raises(wrong))
            return
        finally:
            close_files()
        # Before the loop hears what lies in the channel.
        message.HELD.take()
        # Several are performed at one time: each has spans of its own, and so has what it begins.
        context = self.asgi.contextvars.copy_context()
        spans = context.run(worker.begin_spans_of_task, self.asgi.contextvars.ContextVar)
        task = context.run(self.asgi.loop.create_task, self.asgi.perform(exchange))
        self.open[fields[2]] = exchange, task
        task.add_done_callback(lambda _: self.done(fields, frame, exchange, spans))

    def cancel(self, number):
        """Whoever asked waits no more."""
        exchange, task = self.open.get(number, (None, None))
        if task is not None:
            exchange.given_up = True
            task.cancel()

    def done(self, fields, frame, exchange, spans):
        if posix.getpid() != self.pid:
            # A child that the app forked and let return: the answer is its parent's to give.
            posix._exit(0)
        del self.open[fields[2]]
        if exchange.given_up:
            # It may have been, before it began.
            exchange.error = message.Left()
            exchange.end()
        self.tell(fields, frame, lambda *_: exchange.answer(), spans)

    def tell(self, fields, frame, answer, spans=None):
        told, _ = message.perform(answer, fields, frame, 0)
        worker.flush_quietly()
        if spans is not None:
            number = worker.u64(fields[2])
            told = worker.end_spans(number, spans, worker.time.monotonic_ns()) + told
        try:
            self.channel.sendall(told)
        except BaseException as error:
            self.fail(error)
        if self.open:
            return
        # What the daemon says from now on may be no message: it is free to lend the process.
        self.asgi.loop.remove_reader(self.channel.fileno())
        if not self.idle.done():
            self.idle.set_result(None)
