"""The caller's world: its standard streams and other descriptors."""


class Streams:
    """The three standard streams, made anew in place: whoever holds one, holds the new one."""

    def __init__(self):
        self.streams, self.changes = [], []
        # Of each stream that a rehearsal has made what lies below its buffer, if it can seek.
        self.made = {}
        for fd, name in enumerate(("stdin", "stdout", "stderr")):
            text = getattr(sys, "__" + name + "__")
            if text is not None:
                buffer = text.buffer
                if isinstance(buffer, _io.FileIO):
                    buffer = None
                self.streams.append(
                    (fd, "<" + name + ">", buffer, text, text.encoding, text.errors,
                     text.write_through)
                )

    def watch(self):
        """Modules that are preloaded may reconfigure a stream; a copy does so again."""
        for _, _, _, text, *_ in self.streams:
            text.reconfigure = self.noting(text, text.reconfigure)

    def noting(self, text, original):
        def reconfigure(**options):
            original(**options)
            self.changes.append((original, options))

        return hide(reconfigure)

    def unwatch(self):
        for _, _, _, text, *_ in self.streams:
            text.__dict__.pop("reconfigure", None)

    def close(self, closed):
        """Closes those of 0 to 2 that the caller has closed, bit by bit: an interpreter makes no
        stream of them. False if something that was loaded ahead holds such a stream."""
        free = True
        for stream in [each for each in self.streams if closed >> each[0] & 1]:
            fd, name, _, text, *_ = stream
            posix.close(fd)
            self.streams.remove(stream)
            for known in (name[1:-1], "__%s__" % name[1:-1]):
                if getattr(sys, known, None) is text:
                    setattr(sys, known, None)
            self.made.pop(fd, None)
            # Besides this function: of a stream its tuple, of a buffer that and its stream.
            buffer = stream[2]
            free = free and sys.getrefcount(text) <= 3
            free = free and (buffer is None or sys.getrefcount(buffer) <= 4)
        return free

    def renew(self, make=None):
        """As the interpreter's `create_stdio` makes them, for the descriptors 0 to 2 of now, above
        files that are opened by `make`."""
        made, self.made = self.made, {}
        for fd, name, buffer, text, encoding, errors, write_through in self.streams:
            # A `FileIO` remembers whether its file can seek, so that one is new.
            raw = (make or file_of)(fd, "wb" if fd else "rb")
            if fd in made and raw.seekable():
                # As in the rehearsal, and no terminal: all that the stream itself keeps is right.
                self.made[fd] = raw = made[fd]
                raw.__init__(fd, "wb" if fd else "rb", False)
                raw.name = name
                buffer.__init__(raw, buffer_size(raw))
                continue
            raw.name = name
            if buffer is None:
                below = raw
            else:
                buffer.__init__(raw, buffer_size(raw))
                below = buffer
            line_buffering = not write_through and (fd == 2 or raw.isatty())
            text.__init__(below, encoding, errors, "\n", line_buffering, write_through)
            text.mode = "w" if fd else "r"
            # Those of a rehearsal can be opened again; what listens for others is not kept.
            if make is not None or buffer is None or encoding != "utf-8" or self.changes:
                continue
            if raw.seekable():
                self.made[fd] = raw
        for reconfigure, options in self.changes:
            reconfigure(**options)


def file_of(fd, mode):
    return _io.FileIO(fd, mode, False)


def buffer_size(raw):
    size = raw._blksize
    if sys.version_info >= (3, 14):
        return max(min(size, 8 << 20), _io.DEFAULT_BUFFER_SIZE)
    return size if size > 1 else _io.DEFAULT_BUFFER_SIZE


def take_descriptors(fds):
    """Puts the caller's descriptors in their places. The first three are mostly there already."""
    stdin, stdout, stderr, cwd, reply = fds
    if (stdin, stdout, stderr) != (0, 1, 2):
        high = [posix.dup(fd) for fd in fds[:3]]
        for at, fd in enumerate(high):
            posix.dup2(fd, at)
            posix.close(fd)
        for fd in fds[:3]:
            if fd > 2:
                posix.close(fd)
    posix.dup2(reply, REPLY_FD, False)
    posix.close(reply)
    posix.fchdir(cwd)
    posix.close(cwd)


def take_beyond(numbers, fds):
    """Puts the caller's other descriptors at their own numbers, as any program inherits them. The
    numbers; None if something that was loaded ahead has one of them."""
    global COPY_FD, REPLY_FD
    if len(numbers) != len(fds):
        raise WireError("other descriptors than were named")
    for own in (COPY_FD, REPLY_FD):
        if own in numbers:
            # Above, so that what the program opens has the number that it has in a cold run.
            aside = own + 1
            while aside in numbers or not is_free(aside):
                aside += 1
            posix.dup2(own, aside, False)
            posix.close(own)
            KEPT[aside] = KEPT.pop(own)
            if own == COPY_FD:
                COPY_FD = aside
            else:
                REPLY_FD = aside
    left = dict(zip(numbers, fds))
    free = all(number in fds or is_free(number) for number in numbers)
    while left:
        taken = set(left.values())
        ready = [number for number, fd in left.items() if number == fd or number not in taken]
        if not ready:
            # Each stands where another belongs: one steps aside.
            number, fd = left.popitem()
            left[number] = posix.dup(fd)
            posix.close(fd)
        for number in ready:
            fd = left.pop(number)
            if fd == number:
                posix.set_inheritable(fd, True)
            else:
                posix.dup2(fd, number)
                posix.close(fd)
    return tuple(numbers) if free else None


def is_free(number):
    try:
        posix.fstat(number)
    except OSError:
        return True
    return False



def let_go():
    """Closes what the program has open, so that nobody finds a lock or a pipe held by a program that
    has ended. False if something here may still use it (a thread, or memory that a file lies in), or
    if what is open cannot be listed.

    What is closed is what is listed. A range of numbers (`closerange`) is one call to some kernels
    by some interpreters, and to others one for each number, of which there may be 2^31."""
    if _thread._count() or "mmap" in sys.modules or count_threads() > 1:
        return False
    try:
        listed = posix.listdir("/proc/self/fd")
    except Exception:
        # No descriptor is left for the look itself, say, or the program's own audit hook refuses it.
        return False
    for name in listed:
        fd = int(name)
        if not is_ours(fd):
            try:
                posix.close(fd)
            except OSError:
                # It was the look itself.
                pass
    return True
