"""Starts the Python runtime, from bytecode that an earlier start has kept (docs/worker.md).

Owns: what of the kept bytecode is executed. Compiling the runtime takes as long as starting the
interpreter; reading it back takes a twentieth of that.

Invariants
- Kept bytecode is executed only if this very interpreter made it, from the very source that lies
  beside this file, and every byte of it is there; and if its file is this user's alone.
- What cannot be read or kept is compiled. A learning run, which is the caller's own process, keeps
  nothing. One that cannot have the runtime executes the program as without hob.
- It leaves no names of its own but `NATURAL`, `BYTECODE` and `BEGAN`.
"""

NATURAL = dict(globals())  # What the interpreter itself puts into `__main__`, first of all.

import sys  # noqa: E402

BEGAN = __import__("gc").get_count()  # What the collector has counted so far.
del sys.modules["gc"]

class Bytecode:
    """The runtime's files as code, compiled or kept."""

    posix, marshal, imp = (sys.modules[name] for name in ("posix", "marshal", "_imp"))
    HEAD = b"hob bytecode\n"
    DIGEST_BYTES = 8

    def __init__(self, sources, kept, keeps):
        self.sources, self.kept, self.keeps = sources, kept, keeps
        external = sys.modules["_frozen_importlib_external"]
        maker = "%s %s %d" % (external.MAGIC_NUMBER.hex(), sys.version, sys.flags.optimize)
        self.maker = maker.replace("\n", " ").encode()

    def load(self, name):
        """The code of one file; its name without the suffix."""
        path = "%s/%s.py" % (self.sources, name)
        source = self.read(path)
        wanted = self.HEAD + self.maker + b"\n" + self.digest(source)
        place = "%s/%s-%s" % (self.kept, name, self.digest(wanted).hex())
        data = self.known(place, wanted) if self.kept else None
        if data is not None:
            return self.marshal.loads(data)
        code = compile(source, path, "exec", dont_inherit=True)
        if self.kept and self.keeps:
            self.keep(place, wanted, self.marshal.dumps(code))
        return code

    def digest(self, data):
        return self.imp.source_hash(len(data), data)

    def read(self, path, check=None):
        posix = self.posix
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
        try:
            if check is not None and not check(posix.fstat(fd)):
                return b""
            parts = []
            while True:
                part = posix.read(fd, 1 << 20)
                if not part:
                    return b"".join(parts)
                parts.append(part)
        finally:
            posix.close(fd)

    def is_ours(self, stat):
        """A plain file of this user's that nobody else may write to."""
        return stat.st_mode & 0o170022 == 0o100000 and stat.st_uid == self.posix.geteuid()

    def known(self, place, wanted):
        """What is kept there, if it is whole and was made of this."""
        try:
            data = self.read(place, self.is_ours)
        except OSError:
            return None
        at = len(wanted) + self.DIGEST_BYTES
        body = data[at:]
        whole = body and data[:at] == wanted + self.digest(body)
        return body if whole else None

    def keep(self, place, wanted, body):
        """Puts it in its place, whole; a full disk or a small limit is nobody's trouble."""
        posix, new = self.posix, "%s.%d" % (place, self.posix.getpid())
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
        data = wanted + self.digest(body) + body
        try:
            fd = posix.open(new, flags, 0o600)
        except OSError:
            return
        try:
            if posix.write(fd, data) == len(data):
                posix.rename(new, place)
            else:
                posix.unlink(new)
        except OSError:
            posix.unlink(new)
        finally:
            posix.close(fd)

    def execute_cold(self, prefix, argv):
        """Executes what a learning run was to perform, in this process's place."""
        words = prefix + argv
        try:
            self.posix.execve(sys.executable, words, self.posix.environ)
        finally:
            self.posix._exit(126)

    def begin(self, mode, rest):
        """The worker's code, or the program itself."""
        try:
            return self.load("worker")
        except OSError:
            if mode == "serve":
                raise
            count = int(rest[3])
            self.execute_cold(rest[4 : 4 + count], rest[4 + count :])


# `start.py MODE SOURCES KEPT ...`; an empty KEPT: nowhere.
BYTECODE = Bytecode(sys.argv[2], sys.argv[3], sys.argv[1] == "serve")
del sys.argv[2:4], Bytecode
exec(BYTECODE.begin(sys.argv[1], sys.argv[2:]), globals())
