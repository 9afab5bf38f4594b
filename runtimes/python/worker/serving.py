"""Serving: from the first frame to the program, and what a copy makes anew before it."""


def serve():
    """Becomes what the daemon asks for; returns in the process that performs, with its call."""
    global OWNER, LEARNS, PROFILE, HELD_SPANS
    channel = take_channel()
    try:
        program, role = make_ready(channel)
    except BaseException:
        # What went wrong is still to be told on it, and no traceback keeps a hidden frame.
        channel.detach()
        raise
    paid = LEARNS = UNPAID
    if role == ZYGOTE:
        parent = posix.getpid()
        zygote = Zygote(channel)
        fd, paid = zygote.loop()
        LEARNS = paid == PAID
        KERNEL.die_with_parent(parent)
        zygote.leave()
        zygote = None
        posix.dup2(fd, COPY_FD, False)
        posix.close(fd)
        DRAWS.renew()
    else:
        posix.dup2(CHANNEL_FD, COPY_FD, False)
        channel.detach()
        posix.close(CHANNEL_FD)
        posix.close(PAGES_FD)
    OWNER = posix.getpid()
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, COPY_FD)
    KEPT[COPY_FD] = identity_of(COPY_FD)
    if program.kind == HANDLER:
        THREADS.restore()
        traced(HANDLERS.serve, (program.handler, channel, role, COLLECTS))
    if paid == PAID:
        PAGES.pay()
        THREADS.restore()
        REHEARSAL.pay(program)
    ENDS.watches = True
    if paid == PAID:
        expect()
        PAGES.start()
    # A plain copy may have been given its call already. It has the one thread of any fork: to look
    # would have the kernel make its part of /proc, and take that down when it ends.
    if paid == PAID or paid == PLAIN and not is_given(channel):
        threads = count_threads() if paid == PAID else 1
        send_all(COPY_FD, encode_ready(COPY, OWNER, threads, []))
    # What was made since the zygote's last collection is no step towards a call's first: it was ours.
    # Here, where most copies wait, since it costs a tenth of a millisecond.
    gc.collect()
    layer = program if program.kind in TOLD_LATER else None
    if layer is not None:
        program = await_program(channel)
    call = take_world(program, *await_give(channel))
    # Also if it was paid for: the caller may have other processors than its zygote.
    THREADS.restore()
    if layer is not None and not above(layer, program):
        run_cold_here(program, call)
    if call.beyond is None or not make_main(program, call) or not ASKED.hold(call):
        run_cold_here(program, call)
    if layer is not None:
        PROFILE = begin_profile(program)
    if COLLECTS:
        gc.enable()
    renew_moments()
    channel.detach()
    HELD_SPANS = begin_spans()
    call.main_ns = time.monotonic_ns()
    return program, call


def begin_profile(program):
    """In a copy of a layer: records what the program loads."""
    if program.kind == MODULE or program.container:
        __import__("runpy")
    if "gc" not in KNOWN:
        # Whether the program will ask for all objects is not known, and it would not be heard.
        gc.unfreeze()
    return Profile()


def run_cold_here(program, call):
    """Executes the interpreter in a worker's place, and says so first: the receipt is a cold run's."""
    why = OF_PROGRAM
    if call.beyond is None:
        why = OF_DESCRIPTORS
    elif program.edited or LAYER is not None and LAYER.edited:
        why = OF_EDITED
    try:
        send_all(COPY_FD, encode_executes(call.number, time.monotonic_ns(), why))
    finally:
        run_anew(program, call)


def await_program(channel):
    """What a copy of a layer is to perform. If its call could not be given, it is told
    another one."""
    program = None
    while True:
        head = channel.recv(HEADER_BYTES, _socket.MSG_PEEK)
        if not head:
            posix._exit(0)
        if head[4:5] != bytes((PRELOAD,)):
            return program
        kind, target, prefix = decode_preload(receive(channel)[1])[1:4]
        program = Program(kind, os.fsdecode(target), [os.fsdecode(word) for word in prefix])


def above(layer, program):
    """Puts a program above its layer; whether that is its own."""
    if layer.kind == BARE:
        program.locate()
        SEARCHED.update(sys.path[1:])
        return True
    program.directory, program.container = layer.directory, layer.container
    return program.kind == SCRIPT and program.target == layer.target and LAYER.fits(program)


class Profile:
    """What a program loads in a copy of a layer: heard as in a learning run, and told
    when the call has ended."""

    def __init__(self):
        self.recorder = Recorder()
        self.modules = {}
        if RESUME is not None:
            self.recorder.be_silent(KERNEL.silence())
        if LAYER is not None:
            LAYER.hide(self.recorder)
        self.recorder.hear_program()

    def stop(self):
        """When the program's main body has ended; a child of the program's tells nothing."""
        if posix.getpid() == OWNER:
            uncollected(self.hold)

    def hold(self):
        """What exit hooks import is no part of it."""
        self.recorder.stop()
        self.modules = self.recorder.in_order()

    def send(self, call):
        """Tells the notes, once, and lets go of the modules: finalisation clears those that somebody
        holds in another order."""
        modules, self.modules = self.modules, {}
        send_all(COPY_FD, encode_notes(call.number, self.recorder.profile(modules)))


PROFILE = None


def all_blocking():
    """Whether reading and writing wait, as they do for a zygote's standard streams."""
    try:
        return all(map(posix.get_blocking, (0, 1, 2)))
    except OSError:
        return False


def renew_native(threading):
    main = threading._main_thread
    if hasattr(main, "_set_native_id"):
        main._set_native_id()


def renew_descriptors_max(util):
    util.MAXFD = posix.sysconf("SC_OPEN_MAX")


def renew_start(logging):
    now = time.time_ns() if type(logging._startTime) is int else time.time()
    logging._startTime = now


def renew_authkey(process):
    process.current_process().authkey = posix.urandom(32)


# What is known to keep something of the moment when it was imported, and how a copy makes it anew.
RENEWED = {
    "threading": renew_native,
    "multiprocessing.util": renew_descriptors_max,
    "logging": renew_start,
    "multiprocessing.process": renew_authkey,
    **known("renewed"),
}


def renew_moments():
    for renew, module in MOMENTS:
        attempt_quietly(renew, module)


def end_warm(call):
    """Ends a warm call; returns only to let the interpreter finalise, with the exit status."""
    status = conclude(call)
    uncollected(attempt_quietly, send_untold, call)
    # Finalisation flushes a stream when its last holder lets go, and what is frozen it would not
    # collect: modules would then be cleared in another order.
    STREAMS.streams.clear()
    gc.unfreeze()
    if status == INTERRUPTED:
        die_interrupted()
    return status
