"""How a program ends: its exit status, what is told of its error, its hooks and streams."""

INTERRUPTED = -2  # Ended by an uncaught KeyboardInterrupt: dies by SIGINT.
SUBCLASSES_INTERRUPT = sys.version_info >= (3, 14)


def flush_quietly():
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except BaseException:
            pass


def write_error(text):
    try:
        sys.stderr.write(text)
    except BaseException:
        pass


def status_of_exit(error):
    """The exit status of a SystemExit; prints its message if it is one."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return (code if -(1 << 63) <= code < (1 << 63) else -1) & 0xFF
    try:
        sys.stderr.write(str(code))
    except BaseException:
        pass
    write_error("\n")
    return 1


def as_program(call, function, *arguments):
    """Calls what is the program's, which its tracer and profiler see; the exception that ended it,
    or None. Hidden."""
    if call.watchers is not None:
        watch(call.watchers)
    try:
        traced(function, arguments)
    except BaseException as error:
        return error
    finally:
        call.watchers = unwatched()


def report(call, error):
    """Prints an uncaught exception as the interpreter does; the exit status."""
    error.__traceback__ = strip(error.__traceback__)
    kind, traceback = type(error), error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, traceback
    hook = getattr(sys, "excepthook", None)
    sys.audit("sys.excepthook", hook, kind, error, traceback)
    if hook is None:
        write_error("sys.excepthook is missing\n")
        as_program(call, sys.__excepthook__, kind, error, traceback)
        return 1
    another = as_program(call, hook, kind, error, traceback)
    if isinstance(another, SystemExit):
        return status_of_exit(another)
    if another is not None:
        another.__traceback__ = strip(another.__traceback__)
        flush_quietly()
        write_error("Error in sys.excepthook:\n")
        as_program(call, sys.__excepthook__, type(another), another, another.__traceback__)
        write_error("\nOriginal exception was:\n")
        as_program(call, sys.__excepthook__, kind, error, traceback)
    return 1


def tell_uncaught(call, error):
    """Tells the daemon that nobody caught what ends the program. What came from outside is none of
    its faults."""
    outside = issubclass(type(error), (KeyboardInterrupt, ConnectionError, TimeoutError))
    if not outside and posix.getpid() == OWNER and is_ours(COPY_FD):
        try:
            send_all(COPY_FD, encode_notes(call.number, [b"U"]))
        except OSError:
            pass


def settle_error(call, then=None):
    """What an ended main body comes to: prints what is to be printed; the exit status. `then` is
    done when what the program has printed is out."""
    error, names = call.error, call.names
    # Whoever still held the exception would keep the program's frames alive.
    call.error = None
    exits = isinstance(error, SystemExit)
    if not exits:
        flush_quietly()
    if then is not None:
        then()
    if exits:
        return status_of_exit(error)
    status = 0
    if error is not None:
        tell_uncaught(call, error)
        status = report(call, error)
        # Since 3.14 what is derived from it counts too.
        kind = type(error)
        if kind is KeyboardInterrupt or SUBCLASSES_INTERRUPT and issubclass(kind, KeyboardInterrupt):
            status = INTERRUPTED
    names.pop("__file__", None)
    names.pop("__cached__", None)
    return status


def run_exit_hooks(call):
    """Joins threads and runs exit hooks, as finalisation does first."""
    threading = sys.modules.get("threading")
    if threading is not None:
        error = as_program(call, threading._shutdown)
        if error is not None:
            write_error("Exception ignored in: %r\n" % (threading,))
            traceback = strip(error.__traceback__)
            as_program(call, sys.__excepthook__, type(error), error, traceback)
    atexit = sys.modules.get("atexit")
    if atexit is not None:
        as_program(call, atexit._run_exitfuncs)


def flush_streams():
    """Flushes the standard streams; whether it went well."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            return False
    return True


def release_main():
    """Drops what only the program holds, so that its finalisers run."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if name in sys.__dict__:
            sys.__dict__[name] = None
    sys.modules["__main__"] = None
    gc.collect()


FUNCTION = type(strip)


def die_interrupted():
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    posix.kill(posix.getpid(), _signal.SIGINT)
    posix._exit(130)
