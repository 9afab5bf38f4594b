"""Lanes: how messages come to a handler that is lent, and how its work is counted."""


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

    def held(self):
        """The same of a message that is whole in one read, and lies in the connection until it is
        taken; None: it is to be read as others are."""
        have = self.connection.recv_into(self.view, 0, MSG_PEEK)
        if have < FIXED.size:
            return None
        fields = FIXED.unpack_from(self.buffer)
        if fields[0] != A_MESSAGE or HEADER + fields[1] != have:
            return None
        HELD.hold(self.connection, have)
        return fields, self.view[:have]

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

    def serve(self, handler, takes):
        """Answers until the sender leaves, the daemon recalls, or the uses are up. What `takes` its
        messages finds them in the lane."""
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
                message = wire.held() if takes and not wire.have else None
                if message is None:
                    write(tally, AT_BEGUN, begun + 1, main_ns, 0)
                    message = next_message()
                    if message is None:
                        write(tally, AT_BEGUN, begun, main_ns, 0)
                        return
                fields, view = message
                # Shut by us, it is shut for what came after the last use too.
                if recalled or left <= 0:
                    HELD.take()
                    write(tally, AT_BEGUN, begun, main_ns, 0)
                    send(failure(fields[2], AGAIN, ""))
                    continue
                begun += 1
                until_ns = min(main_ns + fields[4] * 1000, NS_MAX) if fields[4] else 0
                if HELD.size:
                    HELD.begins = tally, begun, main_ns, until_ns
                elif until_ns:
                    write(tally, AT_BEGUN, begun, main_ns, until_ns)
                answer, raised = perform(handler, fields, view, main_ns)
                if IS_CHILD:
                    # The handler forked it and let it return: the answer is its parent's to give.
                    posix._exit(0)
                HELD.take()
                if raised == LEFT:
                    # Not ended: that the lane ends in it says what became of it.
                    send(answer)
                    return
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

    def begins(self):
        """The answer begins: from now on its sender watches the time."""
        DEADLINE.pack_into(self.tally, AT_DEADLINE, 0)

    def report(self, over):
        main_ns, finished_ns, raised = self.newest
        counts = self.number, self.count, self.raised, raised
        self.count = self.raised = 0
        self.reported_ns = finished_ns
        body = REPORT.pack(*counts, main_ns, finished_ns, over)
        worker.send_all(worker.COPY_FD, worker.encode_frame(HANDLED, body))


# The lane that a message is handled on.
LENT_ON = None
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


def lend(loaded, payload, fds):
    global IS_CHILD, CONNECTION, LENT_ON
    if IS_CHILD is None:
        IS_CHILD = False
        posix.register_at_fork(after_in_child=is_child)
    number, uses = LENT.unpack(payload)
    lane_fd, doorbell, tally = fds
    tally = open_tally(tally)
    mounts = posix.open("/proc/self/mountinfo", posix.O_RDONLY | posix.O_CLOEXEC)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, lane_fd)
    lane = Lane(number, uses, connection, doorbell, mounts, tally)
    mine = posix.getpid()
    before, CONNECTION = CONNECTION, connection
    LENT_ON = lane
    try:
        lane.serve(loaded.call, loaded.takes)
    finally:
        CONNECTION = before
        LENT_ON = None
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


def end(loaded):
    """What is done before the process leaves; it leaves whatever that comes to."""
    try:
        loaded.end()
    except BaseException as error:
        show(error)
    worker.flush_quietly()


def serve(loaded, channel, role, collects):
    """The life of a worker: messages and lanes, one after the other, until the channel ends."""
    global CONNECTION
    CONNECTION = channel
    worker.KERNEL.set_title(b"hob: " + os.fsencode(loaded.name) + b"\0")
    if collects:
        gc.enable()
    handler, pid = loaded.call, posix.getpid()
    posix.dup2(2, 1)
    if role == worker.ZYGOTE:
        ready = worker.encode_ready(worker.COPY, pid, worker.count_threads(), [])
        worker.send_all(worker.COPY_FD, ready)
    while True:
        head = worker.receive_head(channel)
        if head is None:
            end(loaded)
            posix._exit(0)
        kind, length, fds = head
        if kind == LEND and len(fds) == 3:
            lend(loaded, worker.receive_bytes(channel, length), fds)
            continue
        if kind == CANCEL:
            # What it names was answered in this moment.
            worker.receive_bytes(channel, length)
            continue
        if kind != MESSAGE and (kind != REQUEST or len(fds) != 1):
            raise worker.WireError("a message was expected")
        whole = bytes(HEADER) + HELD.look(channel, length)
        fields = FIXED.unpack_from(whole)
        FILES[:] = fds
        if loaded.attend is not None:
            loaded.attend(channel, fields, whole)
            HELD.take()
            continue
        spans = worker.begin_spans()
        if not loaded.takes:
            HELD.take()
        answer, _ = perform(handler, fields, whole, time.monotonic_ns())
        while FILES:
            posix.close(FILES.pop())
        if posix.getpid() != pid:
            # A child that the handler forked and let return: the answer is its parent's to give.
            posix._exit(0)
        HELD.take()
        worker.flush_quietly()
        if spans is not None:
            answer = worker.end_spans(worker.u64(fields[2]), spans, time.monotonic_ns()) + answer
        channel.sendall(answer)
