"""Learning: a cold run that leaves notes of what it imported."""

OWN_FDS = "/proc/self/fd/"


def learn(arguments):
    """Takes the runtime out of a cold run's way; the program and its call."""
    global ORIG_ARGV, LEARNING, KERNEL, QUIET
    gc.disable()
    collector = Collector(BEGAN)
    path, kind, target, count = arguments[0], arguments[1], arguments[2], int(arguments[3])
    if sys.argv[0].startswith(OWN_FDS):
        # The client held this file open, so that nobody could take it away before it was read.
        posix.close(int(sys.argv[0][len(OWN_FDS) :]))
    prefix, argv = arguments[4 : 4 + count], arguments[4 + count :]
    program = Program(MODULE if kind == "module" else SCRIPT, target, prefix)
    call = Call()
    call.argv, call.ignored = argv, 0
    call.env = read_file("/proc/self/environ")
    sys.argv[:] = argv
    ORIG_ARGV = getattr(sys, "orig_argv", None)
    if ORIG_ARGV is not None:
        ORIG_ARGV[:] = program.cold_argv(argv)
    leave_path()
    recorder = Recorder()
    if sys.flags.no_site and not says_no_site(prefix):
        if not collector.run(run_site_cold, recorder, program):
            run_anew(program, call)
    program.locate()
    if watched() or not make_main(program, call):
        run_anew(program, call)
    if program.kind == MODULE or program.container:
        collector.run(__import__, "runpy")
    if RESUME is not None:
        KERNEL = Kernel()
        recorder.be_silent(KERNEL.silence())
        QUIET = TOLD_OF_OURS and KERNEL.quieten(True)
    LEARNING = path, posix.getpid(), recorder, collector
    recorder.hear_program()
    collector.settle()
    return program, call


class Heard(dict):
    """The environment while start-up code runs, which notes the variables that are read."""

    __slots__ = ("read",)

    def __getitem__(self, name):
        self.read.append(name)
        return dict.__getitem__(self, name)

    def __contains__(self, name):
        self.read.append(name)
        return dict.__contains__(self, name)


def run_site_cold(recorder, program):
    """Runs start-up code in a learning run, where it sees what it sees cold; notes the variables
    that it read. False if only a new process can."""
    try:
        take_back_no_site()
    except (OSError, RuntimeError):
        return False
    main, real = sys.modules["__main__"], posix.environ
    sys.modules["__main__"] = program.begun = new_main(None)
    heard = Heard(real)
    heard.read = recorder.read
    sys.modules["posix"].environ = heard
    run_site()
    sys.modules["posix"].environ = real
    real.clear()
    real.update(dict.items(heard))
    for environ in (sys.modules["os"].environ, sys.modules["os"].environb):
        environ._data = real
    sys.modules["__main__"] = main
    BASELINE.update(dict.fromkeys(sys.modules))
    return True


def leave_notes(path, owner, recorder, collector):
    """When the program's main body has ended; what it has printed is out. Our own objects are not to
    have the collector run there either; `collector` is only held, for what it keeps."""
    if posix.getpid() != owner:
        # A child of the program's.
        return
    uncollected(write_profile, path, recorder)


def write_profile(path, recorder):
    recorder.stop()
    write_notes(path, recorder.profile(recorder.in_order()))


def write_notes(path, notes):
    """Whole, or not at all."""
    temporary = "%s.%d" % (path, posix.getpid())
    try:
        fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
        send_all(fd, b"".join([note + b"\0" for note in notes]))
        posix.close(fd)
        posix.rename(temporary, path)
    except OSError:
        pass


def end_learning(call):
    """Leaves the notes of a cold run, which the interpreter finalises; its exit status."""
    status = settle_error(call, lambda: leave_notes(*LEARNING))
    call.code = call.names = None
    if status == INTERRUPTED:
        run_exit_hooks(call)
        flush_quietly()
        release_main()
        flush_quietly()
        die_interrupted()
    if call.watchers is not None or watched():
        # Where we leave by an exception they must be gone, and hooks come after that.
        run_exit_hooks(call)
    return status
