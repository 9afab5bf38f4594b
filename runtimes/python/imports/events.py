"""What audit events tell, and what that means for who imports."""


class Events:
    """The part of `Opened` that is told by audit events."""

    def __call__(self, event, arguments):
        try:
            self.step(event, arguments)
        except Exception:
            # An exception would forbid the program what it is about to do.
            pass

    def note(self, event, arguments):
        if event not in TELLING or not self.listening:
            # Most of them, and `sys._getframe` is itself an event.
            return None
        frame = sys._getframe(2)
        if event == "open":
            reason = self.opens(arguments[0], arguments[2])
        elif event in LISTINGS:
            reason = self.lists(arguments[0], frame)
        elif event in ("os.mkdir", "os.remove"):
            reason = self.would(event, arguments[0], arguments[-1])
        elif event in ("os.putenv", "os.unsetenv"):
            return self.puts(arguments)
        elif event == "sqlite3.connect":
            # In memory it tells of now, and draws by chance.
            reason = "moment" if arguments[0] in (":memory:", b":memory:", "") else "state"
        elif event == "mmap.__new__":
            reason = "state" if arguments[0] == -1 else None
            if is_standard_stream(arguments[0]):
                reason = "moment"
        elif event == "fcntl.ioctl":
            reason = None
            if is_standard_stream(arguments[0]) and arguments[1] not in OF_TERMINALS:
                # How much there is to read (`FIONREAD`), and the like: of pipes and sockets too.
                reason = "moment"
            else:
                self.looks.note("terminal")
        elif event == "ctypes.dlsym":
            reason = None if str(arguments[1]).lstrip("_").startswith("Py") else "moment"
        elif event == "socket.gethostname":
            self.machine = posix.uname()
            return None
        else:
            reason = self.depends(event, arguments)
        if reason is None or reason != "moment" and frame.f_globals["__name__"] in LOADER:
            # Compiled code that is missing is written as a cold run does: once.
            return None
        if self.blame(reason) and reason != "moment":
            raise Stop
        return None

    def puts(self, arguments):
        """Of what is in `os.environ` too `Environment` takes care. `numpy` puts something past it
        and takes it back."""
        name, chain = arguments[0], importing(sys._getframe(2))
        if chain[:1] == ["os"]:
            self.put.pop(name, None)
        elif len(arguments) == 1 and name in self.put:
            del self.put[name]
        else:
            self.put[name] = chain
        return

    def depends(self, event, arguments):
        if event == "socket.bind" and arguments[1][:2] in LOOPBACK:
            # `urllib3` asks so whether there is such an address, and lets it go.
            return None
        if event == "socket.getaddrinfo" and arguments[0] in NUMERIC:
            return None
        return DEPENDS[event]

    def opens(self, path, flags):
        """Notes a file that is opened; why that forbids to keep who does it."""
        if isinstance(path, int):
            return "moment" if path < 3 else None
        if flags & (posix.O_ACCMODE | posix.O_CREAT | posix.O_TRUNC):
            return None if path in SINKS else "state"
        path = self.whole(path, pseudo=True)
        if path is not None and path.startswith(NOT_FILES):
            return "moment" if is_of_the_moment(path) else None
        if path is not None and path not in self.read:
            self.read[path] = is_there(path)
        return None

    def lists(self, path, frame):
        path = self.whole("." if path is None else path, pseudo=True)
        if path is not None and path.startswith(NOT_FILES):
            return "moment" if path.startswith("/proc") or is_of_the_moment(path) else None
        if path is not None and not searches(frame):
            if path in FOR_ALL:
                return "moment"
            there = kind_of(path)
            if there == "d":
                self.listed.add(path)
            else:
                # That it is not there, or is no directory, is what counts.
                self.asked.setdefault(path, there)
        return None

    def would(self, event, path, folder):
        """A directory that is there is not made, and a file that is not is not removed: whether
        they are there is all that counts."""
        path = self.whole(path) if folder == -1 else None
        there = "-" if path is None else kind_of(path)
        if path is None or (there != "-") != (event == "os.mkdir"):
            return "state"
        self.asked.setdefault(path, there)
        return None


LISTINGS = frozenset(("os.listdir", "os.scandir"))
# Events of what changes something outside, or of the process that is not the copy's by itself.
DEPENDS = dict.fromkeys((
    "os.chmod", "os.chown", "os.chflags", "os.link", "os.lockf", "os.remove", "os.removexattr",
    "os.rename", "os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime", "os.kill",
    "os.killpg", "signal.pthread_kill", "fcntl.flock", "fcntl.lockf", "resource.setrlimit",
    "resource.prlimit", "socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg",
    "syslog.openlog", "syslog.syslog", "socket.sethostname",
), "state")
# Events after which no file tells what the import's result depends on.
DEPENDS.update(dict.fromkeys((
    "subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec",
    "os.spawn", "pty.spawn",
), "process"))
DEPENDS.update({"os.chdir": "directory", "os.fchdir": "directory"})
DEPENDS.update(dict.fromkeys((
    "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
), "moment"))
TELLING = LISTINGS.union(DEPENDS, (
    "open", "os.mkdir", "os.putenv", "os.unsetenv", "sqlite3.connect", "mmap.__new__",
    "fcntl.ioctl", "socket.gethostname", "ctypes.dlsym",
))
# Requests of `ioctl` that terminals alone answer: TCGETS, TCGETA, TIOCGPGRP, TIOCGWINSZ, TIOCGSID.
OF_TERMINALS = 0x5401, 0x5405, 0x540F, 0x5413, 0x5429
# Any free port of this machine's own.
NUMERIC = None, "", "127.0.0.1", "::1", "0.0.0.0", "::"
LOOPBACK = ("127.0.0.1", 0), ("::1", 0), ("localhost", 0)
# Functions that are asked again, of a file by its name or descriptor.
OF_ATTRIBUTES = "getxattr", "listxattr"
# Functions of descriptors that have two of them.
OF_TWO = ("dup2", "sendfile", "splice", "copy_file_range", "closerange", "tee")
# What the C library reads to tell of users, groups, services.
USER_FILES = "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/shadow"
SERVICE_FILES = "/etc/nsswitch.conf", "/etc/services", "/etc/protocols"
# Functions of `time`, and how many arguments they have when they do not ask for now.
CLOCK = dict.fromkeys(("localtime", "gmtime", "ctime", "asctime"), 1)
CLOCK["strftime"] = 2
# Whose processes only tell of the system's libraries and of the machine.
ASKS_OF_THE_SYSTEM = ("ctypes.util", "platform", "uuid")
# Who writes compiled code, by its name once `importlib` was imported, and before.
LOADER = "importlib._bootstrap_external", "_frozen_importlib_external"
SINKS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def ignore(event, arguments):
    pass


def searches(frame):
    """Whether a directory is listed in search of modules or of installed packages: `D` notes and
    the daemon's knowledge of them say what matters there."""
    name = frame.f_globals.get("__name__") or ""
    return name.startswith(SEARCHERS)


SEARCHERS = ("importlib", "_frozen_importlib", *worker.known("searches"))


def forget_hooks(address):
    """Takes the interpreter's list of audit hooks at `address` from it, so that events are not
    even made any more. The list is empty and nobody else refers to it: where it is found in the
    interpreter's state, that is its place there."""
    if worker.KERNEL.ctypes is None:
        return
    get = worker.KERNEL.symbol(worker.KERNEL.libc, "PyInterpreterState_Get")
    if not get:
        return
    flags = worker.KERNEL.ctypes.FUNCFLAG_CDECL | worker.KERNEL.ctypes.FUNCFLAG_PYTHONAPI
    members = {"_flags_": flags, "_restype_": worker.KERNEL.pointer}
    start = type("function", (worker.KERNEL.ctypes.CFuncPtr,), members)(get)()
    try:
        memory = posix.open("/proc/self/mem", posix.O_RDWR | posix.O_CLOEXEC)
    except OSError:
        return
    try:
        state, word = posix.pread(memory, INTERPRETER_BYTES, start), worker.u64(address)
        at = state.find(word)
        while at > 0 and at % 8:
            at = state.find(word, at + 1)
        if at > 0:
            posix.pwrite(memory, bytes(8), start + at)
    except OSError:
        pass
    finally:
        posix.close(memory)


INTERPRETER_BYTES = 1 << 20
