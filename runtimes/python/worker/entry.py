"""The way in: what the interpreter calls, and what is hidden of that."""


def attempt(step):
    """Does a step of serving; what goes wrong before a program runs is told and ends us."""
    try:
        return step()
    except KeyboardInterrupt:
        die_interrupted()
    except BaseException as error:
        # The first line is what people are shown.
        text, frame = "%s: %s" % (type(error).__name__, error), error.__traceback__
        while frame is not None:
            text += "\n  at %s:%d" % (frame.tb_frame.f_code.co_name, frame.tb_lineno)
            frame = frame.tb_next
        try:
            send_all(CHANNEL_FD if OWNER == 0 else COPY_FD, encode_failed(text))
        finally:
            posix._exit(1)


# --- The way in ----------------------------------------------------------------------------------


def enter(kind, error, traceback):
    """Called by the interpreter as `sys.excepthook`, when no frame of ours is left: does what this
    process is for. Hidden; each frame here is one that the program cannot recurse into."""
    sys.excepthook = sys.__excepthook__
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    del kind, error, traceback
    learning = MODE == "learn"
    program, call = learn(ARGUMENTS) if learning else attempt(serve)
    function, arguments = body(program, call)
    call.error = None
    try:
        # `traced` takes of the depth of recursion too.
        if QUIET:
            traced(function, arguments)
        else:
            function(*arguments)
    except BaseException as error:
        call.error = error
    function = arguments = None
    call.watchers = unwatched()
    status = (end_learning if learning else end_warm)(call)
    if QUIET:
        KERNEL.quieten(False)
    raise SystemExit(status)


OWNER = 0
OURS = sys.modules["__main__"]
if __name__ == "__main__":
    MODE, ARGUMENTS = sys.argv[1], sys.argv[2:]
    watch, watched, unwatched = hide(watch), hide(watched), hide(unwatched)
    same_machinery = hide(same_machinery)
    run_import, run_site = hide(run_import), hide(run_site)
    learn, run_site_cold = hide(learn), hide(run_site_cold)
    attempt, serve, make_ready = map(hide, (attempt, serve, make_ready))
    set_up, start_up = hide(set_up), hide(start_up)
    preload, preload_one = hide(preload), hide(preload_one)
    import_all, import_one, do_ahead = map(hide, (import_all, import_one, do_ahead))
    as_program, enter = hide(as_program), hide(enter)
    if MODE == "serve":
        _socket, resource = borrow("_socket"), borrow("resource")
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        CHANNEL_FD = 250 if descriptors < 0 else min(250, descriptors - 6)
        COPY_FD, REPLY_FD, PAGES_FD = CHANNEL_FD + 1, CHANNEL_FD + 2, CHANNEL_FD + 3
        GIVE_BUFFER = bytearray(1 << 16)
        GIVE_BUFFERS = [GIVE_BUFFER]
        GIVE_ROOM = _socket.CMSG_SPACE(4 * FRAME_FDS_MAX)
    # Among all objects there is one module of that name: the program's.
    __name__ = "runtime"
    sys.excepthook = enter
    raise SystemError("the runtime hands over to its own hook")
