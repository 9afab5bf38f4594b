"""The caller's world: signals, resource limits, processors, priority."""


def signals_of(mask):
    mask &= INFINITY
    return [n for n in range(1, mask.bit_length() + 1) if mask >> (n - 1) & 1]


# Plain numbers lie side by side; an `enum`'s members do not.
ALL_SIGNALS = tuple(map(int, _signal.valid_signals()))
ALWAYS_IGNORED = 1 << (_signal.SIGPIPE - 1) | 1 << (_signal.SIGXFSZ - 1)
UNTOUCHABLE = 1 << (_signal.SIGKILL - 1) | 1 << (_signal.SIGSTOP - 1)
# Whoever was started by glibc's `posix_spawn` ignores the C library's own two as well, which no
# program can set.
SETTABLE = sum(1 << (each - 1) for each in ALL_SIGNALS) & ~(ALWAYS_IGNORED | UNTOUCHABLE)


def reset_signals():
    """The dispositions that the interpreter has when nobody ignores anything."""
    for number in signals_of(~(ALWAYS_IGNORED | UNTOUCHABLE)):
        try:
            if _signal.getsignal(number) == _signal.SIG_IGN:
                restored = _signal.SIG_DFL
                if number == _signal.SIGINT:
                    restored = _signal.default_int_handler
                _signal.signal(number, restored)
        except (OSError, ValueError):
            continue
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def take_signals(ignored, blocked):
    ignored &= SETTABLE
    if ignored:
        for number in signals_of(ignored):
            try:
                now = _signal.getsignal(number)
                if now == _signal.SIG_DFL or now is _signal.default_int_handler:
                    _signal.signal(number, _signal.SIG_IGN)
            except (OSError, ValueError):
                continue
    if blocked:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, signals_of(blocked))


def own_limits():
    """This process's limits as a `world` holds them."""
    limits = b""
    for which in range(LIMITS):
        for value in resource.getrlimit(which):
            limits += u64(value & INFINITY)
    return limits


def own_processors():
    """Where this process may run: as a `give` has it, and as a set."""
    allowed = posix.sched_getaffinity(0)
    mask = sum(1 << at for at in allowed)
    return mask.to_bytes(mask.bit_length() + 7 >> 3, "little"), allowed


def take_processors(mask):
    """The caller's processors; the daemon may have woken this process on one alone."""
    known, allowed = OWN_PROCESSORS
    if mask != known:
        bits = from_bytes(mask, "little")
        allowed = [at for at in range(bits.bit_length()) if bits >> at & 1]
    try:
        posix.sched_setaffinity(0, allowed)
    except OSError:
        # None of them is left: the kernel has decided.
        pass


def take_limits(limits, own):
    for which in range(LIMITS):
        at = which * 16
        if limits[at : at + 16] == own[at : at + 16]:
            continue
        pair = [from_bytes(limits[at + i : at + i + 8], "little") for i in (0, 8)]
        pair = tuple(-1 if value == INFINITY else value for value in pair)
        try:
            resource.setrlimit(which, pair)
        except (OSError, ValueError):
            continue


def own_priority():
    """This process's nice value and its like as a `world` holds them."""
    policy = posix.sched_getscheduler(0)
    if policy not in (posix.SCHED_OTHER, posix.SCHED_BATCH, posix.SCHED_IDLE):
        policy |= posix.sched_getparam(0).sched_priority << 16
    numbers = (
        posix.getpriority(posix.PRIO_PROCESS, 0),
        KERNEL.ioprio(),
        policy,
        int(read_file("/proc/self/oom_score_adj")),
    )
    return b"".join([u32(number & 0xFFFFFFFF) for number in numbers]) + u64(KERNEL.slack())


def take_priority(priority, own):
    """Takes on what differs; the daemon has seen that it is nowhere above its own."""
    nice, io, policy, oom = [from_bytes(priority[at : at + 4], "little") for at in (0, 4, 8, 12)]
    if priority[12:16] != own[12:16]:
        attempt_quietly(lambda: set_oom_score_adj(oom - (oom >> 31 << 32)))
    if priority[4:8] != own[4:8]:
        KERNEL.ioprio(io)
    if priority[16:] != own[16:]:
        KERNEL.slack(from_bytes(priority[16:], "little"))
    if priority[8:12] != own[8:12]:
        attempt_quietly(lambda: posix.sched_setscheduler(0, policy, posix.sched_param(0)))
    if priority[:4] != own[:4]:
        nice -= nice >> 31 << 32
        attempt_quietly(lambda: posix.setpriority(posix.PRIO_PROCESS, 0, nice))


def set_oom_score_adj(value):
    fd = posix.open("/proc/self/oom_score_adj", posix.O_WRONLY | posix.O_CLOEXEC)
    posix.write(fd, b"%d" % value)
    posix.close(fd)
