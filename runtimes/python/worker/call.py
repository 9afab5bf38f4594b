"""A call: how it is received, takes on its world, and is answered."""


class Call:
    """One call in this process, from its `give` on."""

    __slots__ = "number argv env ignored names code main_ns error watchers beyond".split()


# The descriptors that are ours, and what they are: a program may close one and reuse the number.
KEPT = {}


def identity_of(fd):
    stat = posix.fstat(fd)
    return stat.st_dev, stat.st_ino


def is_ours(fd):
    return is_same(fd, KEPT.get(fd))


def is_same(fd, known):
    """Whether a descriptor is still what it was."""
    try:
        return identity_of(fd) == known
    except OSError:
        return False


def is_given(channel):
    """Whether a `give`, or the end of the channel, is there already."""
    try:
        channel.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        return True
    except BlockingIOError:
        return False


def await_give(channel):
    """Waits for a `give`; the whole frame and its descriptors. Ends the process at the end."""
    # With 0 to 2 closed the kernel puts the caller's descriptors just where they belong.
    posix.close(0)
    posix.close(1)
    posix.close(2)
    have, ancillary, _, _ = channel.recvmsg_into(GIVE_BUFFERS, GIVE_ROOM)
    if not have:
        posix._exit(0)
    fds = EXPECTED[1] if ancillary == EXPECTED[0] else decode_fds(ancillary)
    frame = GIVE_BUFFER
    while have < HEADER_BYTES:
        have += channel.recv_into(memoryview(frame)[have:]) or _cut_off()
    length = from_bytes(frame[8:HEADER_BYTES], "little")
    if bytes(frame[:8]) not in GIVE_HEADS or length > FRAME_BYTES_MAX or len(fds) != frame[5]:
        raise WireError("a give was expected")
    if HEADER_BYTES + length > len(frame):
        frame = frame + bytes(HEADER_BYTES + length - len(frame))
    while have < HEADER_BYTES + length:
        have += channel.recv_into(memoryview(frame)[have : HEADER_BYTES + length]) or _cut_off()
    return frame, fds


def take_world(program, frame, fds):
    """Takes on the caller's world; the call, ready to run."""
    call = Call()
    call.number, call.ignored, call.beyond = frame[AT_CALL:AT_GROUP], 0, ()
    take_descriptors(fds[:5])
    KEPT[REPLY_FD] = identity_of(REPLY_FD)
    if frame[AT_GROUP:AT_IGNORED] != OWN_GROUP_AND_UMASK:
        if frame[AT_GROUP:AT_UMASK] != NO_GROUP:
            join(call.number, from_bytes(frame[AT_GROUP:AT_UMASK], "little"))
        posix.umask(from_bytes(frame[AT_UMASK:AT_IGNORED], "little"))
    if frame[AT_IGNORED:AT_LIMITS] != NO_SIGNALS:
        call.ignored = from_bytes(frame[AT_IGNORED:AT_BLOCKED], "little")
        take_signals(call.ignored, from_bytes(frame[AT_BLOCKED:AT_LIMITS], "little"))
    argv, at = decode_blob(frame, AT_ARGV + 4)
    call.env, at = decode_blob(frame, at + 4)
    processors, at = decode_blob(frame, at)
    if processors:
        take_processors(processors)
    if frame[at : at + 5] != NO_DESCRIPTORS:
        if len(fds) > 5:
            call.beyond = take_beyond(decode_numbers(frame, at + 1), fds[5:])
        if frame[at] and not STREAMS.close(frame[at]):
            call.beyond = None
    if call.env != ENVIRONMENT.blob:
        ENVIRONMENT.take(call.env)
    called, words = program.called
    if argv != called:
        KERNEL.set_title(program.title(argv))
        words = argv.decode(FS, FS_ERRORS).split("\0")
        words.pop()
        if ORIG_ARGV is not None:
            ORIG_ARGV[:] = program.cold_argv(words)
    call.argv = words
    sys.argv[:] = words
    STREAMS.renew()
    if frame[AT_LIMITS:AT_ARGV] != OWN_LIMITS_AND_PRIORITY:
        limits, priority = frame[AT_LIMITS:AT_PRIORITY], frame[AT_PRIORITY:AT_ARGV]
        if limits != OWN_LIMITS:
            take_limits(limits, OWN_LIMITS)
        if priority != OWN_PRIORITY:
            take_priority(priority, OWN_PRIORITY)
    return call


GIVE_HEADS = {MAGIC + bytes((GIVE, n, 0, 0)) for n in range(5, FRAME_FDS_MAX + 1)}
EXPECTED = None, ()


def expect():
    """Notes how the next `give`'s descriptors will come: with 0 to 2 closed as those, and as the
    two lowest numbers that are free."""
    global EXPECTED
    fds = [0, 1, 2, posix.dup(0), posix.dup(0)]
    posix.close(fds[3])
    posix.close(fds[4])
    EXPECTED = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, b"".join(map(u32, fds)))], fds


NO_GROUP = bytes(4)
# None of 0 to 2 is closed, and there are none beyond.
NO_DESCRIPTORS = bytes(5)
NO_SIGNALS = bytes(16)
# The C library's own two, as those find them that were started by glibc's `posix_spawn`.
INTERNAL_SIGNALS = u64(3 << 31) + bytes(8)


def join_group(leader, pid=0):
    """Takes a copy out of its zygote's process group: what a program sends to its own group is
    not to reach the zygote and other callers' programs. The group's leader has ended, since a
    leader could not begin a session of its own (`setsid`)."""
    try:
        posix.setpgid(pid, leader)
    except OSError:
        # It has ended, or joined its caller's group meanwhile.
        pass


def join(number, group):
    """Joins the caller's process group: the terminal's signals then come from the kernel."""
    try:
        posix.setpgid(0, group)
        send_all(COPY_FD, encode_joined(number, time.monotonic_ns()))
    except OSError:
        # The caller has gone, and the call with it.
        pass


def make_main(program, call):
    """Puts the program's `__main__` in place; False if only a new process can run it."""
    if program.kind in TOLD_LATER:
        # A dummy call in a layer.
        module = sys.modules["__main__"] = new_main(None)
        call.code, call.names = None, module.__dict__
        return True
    try:
        if program.kind == MODULE:
            sys.argv[0] = "-m"
            fits = program.directory is None or same_place(program, posix.getcwd())
        elif program.container:
            # An archive's directory has been read: it is the same one, or all is done anew.
            fits = absolute(call.argv[0]) == program.target and not program.changed()
        else:
            file = absolute(call.argv[0])
            call.code = program.code_of(file)
            fits = file == program.target or same_directory(program, file)
    except BaseException:
        # A script that does not compile, or a directory that is gone: cold says it best.
        return False
    if program.kind == MODULE or program.container:
        module = new_main(None, program.begun)
    elif file == program.target and program.main is not None:
        module = program.main
    else:
        module = new_main(file, program.begun)
        sys.path_importer_cache.pop(program.target, None)
        sys.path_importer_cache[file] = None
    program.main = program.begun = None
    call.names = module.__dict__
    sys.modules["__main__"] = module
    return fits


def same_directory(program, file):
    directory = os.path.dirname(os.path.realpath(file))
    return not program.is_named and program.directory in (None, directory)


def same_place(program, cwd):
    """Whether `-m` finds in `cwd` the same modules as were preloaded; then it stands first."""
    if cwd == program.directory or program.directory not in sys.path:
        return True
    own = program.directory + "/"
    loaded = set()
    for name, module in sys.modules.items():
        file = names_of(module).get("__file__")
        if isinstance(file, str) and file.startswith(own) and program.directory not in SEARCHED:
            return False
        if name not in BASELINE:
            loaded.add(name.partition(".")[0])
    try:
        for entry in posix.listdir(cwd):
            if entry.partition(".")[0] in loaded:
                return False
    except OSError:
        pass
    # A preloaded module may have put something before it.
    sys.path[sys.path.index(program.directory)] = cwd
    return True


def run_anew(program, call):
    """Executes the interpreter in this process's place: a cold run, told by `gone`."""
    for number in signals_of(ALWAYS_IGNORED & ~call.ignored):
        _signal.signal(number, _signal.SIG_DFL)
    argv = program.cold_argv(call.argv)
    env = {name: value for name, value in as_mapping(call.env.split(b"\0")).items() if name}
    try:
        posix.execve(sys.executable, argv, env)
    finally:
        posix._exit(126)


def send_end(call, status, finished_ns):
    """Reports the call's end, to the caller first."""
    if posix.getpid() != OWNER:
        return
    # From here on no handler of the program's runs, and SIGPIPE ends nothing.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, ALL_SIGNALS)
    pair = (0, status)
    try:
        if call.beyond and not let_go():
            # The end of this process tells the rest.
            send_untold(call)
            return
        if is_ours(REPLY_FD):
            send_all(REPLY_FD, encode_ended(call.number, pair))
            # The caller goes first: clearing up takes a millisecond. A yield may come back at once;
            # but in a pause other threads of the program's would run, where there are any.
            if _thread._count():
                posix.sched_yield()
            else:
                if call.number != NO_CALL:
                    # Whoever reads to the end what was written need not wait until this process
                    # has been taken down. Other descriptors a library's threads may wait on. (And
                    # after a dummy call the process goes on.)
                    posix.closerange(0, 3)
                _signal.sigtimedwait((), 0.0005)
            posix.close(REPLY_FD)
        if is_ours(COPY_FD):
            finished = encode_finished(call.number, pair, call.main_ns, finished_ns)
            send_all(COPY_FD, own_spans(call, finished_ns) + finished)
            posix.sched_yield()
            send_loaded(call)
    except OSError:
        pass


def clear_up(call):
    """What finalisation does that others can see; False if only the real one will do."""
    call.code = call.names = None
    # Our own look is at the objects of the call.
    ENDS.watches = False
    if ENDS.always or ENDS.is_seen(gc.get_objects()):
        return False
    flush_quietly()
    KERNEL.flush()
    return True


def conclude(call):
    """Ends a call whose main body has ended; returns only to let the interpreter finalise."""
    status = settle_error(call, PROFILE and PROFILE.stop)
    run_exit_hooks(call)
    if not flush_streams():
        return status
    try:
        cleared = clear_up(call)
    except BaseException:
        cleared = False
    if status == INTERRUPTED or not cleared:
        return status
    try:
        send_end(call, status, time.monotonic_ns())
        if LEARNS and posix.getpid() == OWNER:
            PAGES.learn()
    finally:
        posix._exit(status)
