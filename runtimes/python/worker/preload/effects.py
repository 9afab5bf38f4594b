"""What importing a module does to its process: threads, descriptors, children, output."""


def aside(fd, place):
    """The same file at a number that is out of the way: an import that opens one is to be given the
    number that it is given in a cold run."""
    return posix.dup2(fd, CHANNEL_FD - 1 - place, False)


class Captured:
    """Descriptors 1 and 2 lead into memory while modules are loaded."""

    def __init__(self):
        self.kept = [aside(1, 0), aside(2, 1)]
        memory = nameless_file()
        self.memory = aside(memory, 2)
        posix.close(memory)
        self.size = 0
        posix.dup2(self.memory, 1)
        posix.dup2(self.memory, 2)

    def grown(self):
        """Whether anything was written since the last time."""
        flush_quietly()
        size, before = posix.fstat(self.memory).st_size, self.size
        self.size = size
        return size != before

    def stop(self):
        flush_quietly()
        for at, fd in enumerate(self.kept, 1):
            posix.dup2(fd, at)
            posix.close(fd)
        posix.close(self.memory)


def suspicious_descriptors():
    """Open descriptors that a fork must not share: all but harmless devices. Copies would even
    share how far a file has been read."""
    found = set()
    for name in posix.listdir("/proc/self/fd"):
        try:
            link = posix.readlink("/proc/self/fd/" + name)
        except OSError:
            continue
        if link.startswith(("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/memfd:hob")):
            continue
        if int(name) > 2 or not link.startswith("/") or link.startswith("/dev/"):
            found.add(name + link)
    return found


def children():
    try:
        return read_file("/proc/thread-self/children")
    except OSError:
        return b""


def surroundings():
    """What importing a module must leave as it is, if the process is to be forked."""
    return count_threads(), suspicious_descriptors(), children()


def run_import(code, names):
    """Imports a module as a main script would. Hidden."""
    exec(code, names)


def preload_one(statement, place, line, opened, effects):
    """Imports one module, as the program's line does; the hazards it showed. Hidden."""
    hazards = []
    if type(statement) is list:
        names = opened.names_of_statements(place)
        text = compile("", place.file, "exec", ONLY_A_TREE)
        text.body = statement
    else:
        names = opened.names_of_main(place)
        text = "\n" * (line - 1) + statement
    code = compile(text, place.file, "exec", dont_inherit=True)
    if place.function is not None:
        code = code.replace(co_name=place.function)
    try:
        opened.listen(run_import, code, names)
    except BaseException:
        hazards.append("failed")
    return hazards + effects.effects()


class Effects:
    """What running somebody's code has done to this process that a copy must not share."""

    def __init__(self):
        self.captured = Captured()
        self.streams = [(aside(fd, 3 + fd), identity_of(fd)) for fd in (0, 1, 2)]
        self.before = surroundings()
        self.callbacks = list(gc.callbacks)

    def effects(self):
        """Since the last time, as reasons."""
        hazards = []
        for fd, (kept, known) in enumerate(self.streams):
            # Somebody has closed it, or has put something else in its place.
            if not is_same(fd, known):
                posix.dup2(kept, fd)
                hazards.append("state")
        KERNEL.flush()
        if self.captured.grown():
            hazards.append("output")
        threads, descriptors, offspring = now = surroundings()
        if descriptors - self.before[1]:
            hazards.append("descriptor")
        if threads > self.before[0]:
            hazards.append("thread")
        if offspring != self.before[2]:
            hazards.append("process")
        # They would be told of the zygote's collections.
        if gc.callbacks != self.callbacks:
            hazards.append("state")
            gc.callbacks[:] = self.callbacks
        # A copy is told of nothing that was to be told in the zygote.
        if watched():
            hazards.append("state")
            unwatched()
        # No copy would have them.
        for timer in _signal.ITIMER_REAL, _signal.ITIMER_VIRTUAL, _signal.ITIMER_PROF:
            if _signal.setitimer(timer, 0)[0]:
                hazards.append("state")
        self.before = now
        return hazards

    def grown(self):
        return self.captured.grown()

    def stop(self):
        for kept, _ in self.streams:
            posix.close(kept)
        self.captured.stop()
