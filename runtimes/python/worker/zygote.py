"""The zygote, and how a worker of any role is made ready."""


class Zygote:
    """The loop of a process that is only forked."""

    def __init__(self, channel):
        self.channel = channel
        self.children = {}
        self.hook = ForkHook()
        self.poller = borrow("select").poll()
        self.poller.register(CHANNEL_FD, 1)

    def loop(self):
        """Forks and reaps; returns in a copy, with its channel and how it is paid for."""
        while True:
            for fd, _ in self.poller.poll():
                if fd != CHANNEL_FD:
                    self.reap(fd)
                    continue
                frame = receive(self.channel)
                if frame is None:
                    posix._exit(0)
                kind, payload, fds = frame
                if kind != FORK or len(fds) != 1:
                    raise WireError("a fork was expected")
                copy = self.fork(fds[0], *decode_fork(payload))
                if copy is not None:
                    return copy

    def fork(self, fd, worker, paid):
        pid, error = 0, b"threads"
        if count_threads() == 1:
            PAGES.refresh()
            leader = KERNEL.dead_child()
            try:
                if leader:
                    posix.setpgid(leader, leader)
                pid = posix.fork()
                if pid == 0:
                    self.hook.restore()
                    join_group(leader)
                    return fd, paid
            except OSError as failure:
                error = str(failure).encode()
            if pid:
                # As the copy does: nobody knows who of the two comes first.
                join_group(leader, pid)
            if leader:
                take_end(leader)
        posix.close(fd)
        if pid == 0:
            send_all(CHANNEL_FD, encode_forked(worker, 0, error))
            return None
        pidfd = KERNEL.pidfd(pid)
        self.children[pidfd] = pid, worker
        self.poller.register(pidfd, 1)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, u32(pidfd))
        self.channel.sendmsg([encode_forked(worker, pid, b"")], [rights])
        return None

    def reap(self, pidfd):
        pid, worker = self.children.pop(pidfd)
        self.poller.unregister(pidfd)
        # `wait4` imports `resource`: lend it ours.
        lent = "resource" not in sys.modules
        sys.modules.setdefault("resource", resource)
        status, usage = wait_for(pid)
        if lent:
            del sys.modules["resource"]
        posix.close(pidfd)
        if posix.WIFSIGNALED(status):
            pair = (1, posix.WTERMSIG(status))
        else:
            pair = (0, posix.WEXITSTATUS(status))
        used = 0, 0, 0
        if usage is not None:
            used = int(usage.ru_utime * 1e6), int(usage.ru_stime * 1e6), usage.ru_maxrss
        send_all(CHANNEL_FD, encode_gone(worker, pair, used))

    def leave(self):
        """What a copy does not keep of its zygote."""
        self.channel.detach()
        posix.close(CHANNEL_FD)
        posix.close(PAGES_FD)
        for pidfd in self.children:
            posix.close(pidfd)


def take_end(child):
    """Takes the end of a child that has ended. One that cannot be taken ends with the zygote."""
    try:
        posix.waitpid(child, 0)
    except OSError:
        pass


def wait_for(pid):
    """The status of a child that ends, and what it has used. Where the kernel refuses to say, it is
    as if it had been killed: a zygote that fails over that would take its other copies along."""
    try:
        _, status, usage = posix.wait4(pid, 0)
        return status, usage
    except OSError:
        return KILLED, None


# The status of a process that was ended by SIGKILL.
KILLED = 9


def attempt_quietly(step, *arguments):
    """What fails here leaves something as the zygote had it; the program runs all the same."""
    try:
        step(*arguments)
    except Exception:
        pass


def forget():
    """In a child that the program forks: our descriptors are not its own."""
    for fd in KEPT:
        if is_ours(fd):
            posix.close(fd)
    KEPT.clear()


def set_up(program, modules, role, volatile=()):
    """Everything before `ready`; the notes."""
    global KERNEL, STREAMS, ENVIRONMENT, OWN_LIMITS, OWN_PRIORITY, OWN_PROCESSORS
    global OWN_GROUP_AND_UMASK, OWN_LIMITS_AND_PRIORITY, MOMENTS, REHEARSAL
    global ORIG_ARGV, KNOWN, SEARCHED, ENDS, COLLECTS, QUIET, ANEW
    if "t" in sys.abiflags:
        # It may be named like any other, so only it can tell. There a copy's objects do not end
        # in the order in which they end in a fresh process.
        raise RuntimeError("a CPython without the global lock is not kept warm")
    if watched():
        # Set where the interpreter starts (`coverage` does so): it would be told of us.
        raise RuntimeError("the interpreter starts with a tracer or profiler")
    KERNEL = Kernel()
    QUIET = TOLD_OF_OURS and KERNEL.quieten(True)
    KERNEL.find_title()
    KERNEL.die_with_parent(posix.getppid())
    reset_signals()
    ENVIRONMENT = Environment()
    OWN_LIMITS, OWN_PRIORITY = own_limits(), own_priority()
    OWN_LIMITS_AND_PRIORITY = OWN_LIMITS + OWN_PRIORITY
    OWN_PROCESSORS = own_processors()
    ORIG_ARGV = getattr(sys, "orig_argv", None)
    if ORIG_ARGV is not None:
        ORIG_ARGV[:] = program.cold_argv(list(sys.argv))
    STREAMS, ANEW = Streams(), load_beside("anew")
    leave_path()
    SEARCHED = set()
    sys.modules["__main__"] = new_main(None)
    notes = preload(program, modules, role, volatile)
    # What the calls to come do not pay.
    notes.append(b"T%d" % (time.process_time_ns() // 1000))
    if program.kind == HANDLER:
        if program.handler.error is not None:
            # An edit of any of this is worth another try.
            notes += [os.fsencode(note) for note in program.handler.tried]
            send_all(CHANNEL_FD, encode_notes(bytes(8), notes))
        program.handler.check()
    # What most callers have; nothing is made before a call comes.
    posix.umask(0o22)
    OWN_GROUP_AND_UMASK = NO_GROUP + u32(0o22)
    MOMENTS = [(renew, sys.modules[name]) for name, renew in RENEWED.items() if name in sys.modules]
    REHEARSAL = load_beside("rehearsal")
    REHEARSAL.rehearse(program)
    ENVIRONMENT.preloaded()
    os.register_at_fork(after_in_child=forget)
    # What only the preload needed is no kind of object that a program would leave alive.
    gc.collect()
    KNOWN = dict.fromkeys(sys.modules)
    gc.collect()
    ENDS = load_beside("ends").Ends()
    if "gc" in KNOWN:
        sys.addaudithook(ENDS.hear)
    COLLECTS = gc.isenabled()
    gc.disable()
    gc.freeze()
    if role == ZYGOTE:
        if program.kind != HANDLER:
            REHEARSAL.practise(program)
            gc.collect()
            gc.freeze()
        # Refused, a copy would already have its call when that is found out.
        posix.close(KERNEL.pidfd(posix.getpid()))
        KERNEL.trim()
    return notes


def load_beside(name):
    """Takes in a file that lies beside this one, in those processes that need it."""
    module = type(sys)("runtime " + name)
    module.__dict__.update(worker=OURS, __file__="%s/%s.py" % (BYTECODE.sources, name))
    exec(BYTECODE.load(name), module.__dict__)
    return module


# All of them by now: a name that is new undoes what the interpreter has adapted to the others.
PAGES = LEARNS = HANDLERS = LEARNING = ANEW = HELD_SPANS = LATER = None


def take_channel():
    """The channel, in its place; there is nothing to be read where it came."""
    posix.dup2(0, CHANNEL_FD, False)
    null = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(null, 0)
    posix.close(null)
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, CHANNEL_FD)


def make_ready(channel):
    """Does what the daemon asks for, up to `ready`; the program and the role."""
    global HANDLERS, PAGES
    frame = receive(channel)
    if frame is None:
        posix._exit(0)
    if frame[0] != PRELOAD:
        raise WireError("a preload was expected")
    role, kind, target, prefix, modules, argv, volatile = decode_preload(frame[1])
    if kind in (HANDLER, APP):
        HANDLERS = load_beside("message")
    if kind == APP:
        # From here on it is a handler, which is found and performed otherwise.
        kind, HANDLERS.Loaded = HANDLER, load_beside("web").App
    program = Program(kind, os.fsdecode(target), [os.fsdecode(p) for p in prefix])
    sys.argv[:] = [os.fsdecode(word) for word in argv]
    notes = set_up(program, modules, role, volatile)
    PAGES = ANEW.Pages()
    send_all(CHANNEL_FD, encode_ready(role, posix.getpid(), count_threads(), notes))
    return program, role
