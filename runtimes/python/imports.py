"""What modules do and look at while they are imported ahead of calls (docs/worker.md, notes).

`worker.py` loads this file where modules are preloaded, and puts itself in as `worker`.

Owns: what of the outside an import depends on (`Opened`), and which modules each call must import
itself, because they change something or keep something of the very moment (`Opened`, `Looks`).
Temporary directories, which each call can make by itself, are in `promises.py` beside this file.

Invariants
- Nothing outside the process is changed by a preload: who is about to is stopped before (`Stop`).
- Afterwards no module holds anything of ours, and the interpreter does not know that we listened.
"""

import sys

worker = globals()["worker"]
posix, os, gc = worker.posix, worker.os, worker.gc
is_temporary, names_of, hide = worker.is_temporary, worker.names_of, worker.hide


class Stop(BaseException):
    """Ends an import that is about to change something outside. In the call it may."""


class Opened:
    """Notes what the imports open, list, start and change, by way of audit events.

    A hook cannot be removed by what the interpreter documents, and even an idle one makes
    `copy.deepcopy` take twice as long. So the hook takes itself out of the interpreter's list, and
    the list out of the interpreter: programs run as if there had never been one.
    """

    def __init__(self):
        # Each with whether it was there when it was first opened.
        self.read = {}
        self.asked = {}
        self.listed = set()
        self.lookers = []
        # Modules that were being imported when something happened that forbids to keep them.
        self.blamed = {}
        self.known = {}
        # Modules that were searched for times that they keep.
        self.searched = set(sys.modules)
        self.since = worker.time.time()
        self.drifts = False
        # What the machine is called, if somebody asked.
        self.machine = None
        # Whether somebody asked if a standard stream's file waits: a zygote's do.
        self.asked_blocking = False
        # Whether somebody goes through the whole environment.
        self.whole_environment = False
        # Who drew something by chance, with the code that did; and what runs in each copy.
        self.drawn = []
        # Variables that are set past `os.environ`, with who did so.
        self.put = {}
        self.forked = set()
        self.promises = worker.load_beside("promises").Promises(self, importing)
        self.step = self.note
        # Where the caller's directory is known to decide something, the zygote is in it.
        try:
            self.adrift = posix.getcwd() == "/"
        except OSError:
            # It was removed meanwhile.
            self.adrift = False

    def start(self):
        sys.addaudithook(self)
        # No event tells of these.
        for name in ("getcwd", "getcwdb"):
            self.looker(os, name, self.cwd)
        for name in ("stat", "lstat", "access", "readlink"):
            self.looker(os, name, self.look)
        self.looker(os, "uname", self.ask_machine)
        self.looker(os, "get_blocking", self.ask_blocking)
        for name in MOMENTS:
            self.looker(os, name, self.moment)
        self.looker(os, "getpid", self.number)
        for name in CHANGES_UNTOLD:
            self.looker(os, name, self.change)
        for environ in (os.environ, os.environb):
            self.looker(environ, "decodekey", self.all_variables)
        self.looker(os, "register_at_fork", self.at_fork)
        # How many arguments such a function has when it tells of now.
        for name, most in CLOCK.items():
            self.looker(sys.modules.get("time"), name, self.clock(most))
        self.hand_out()

    def hand_out(self):
        """What was imported before (by `site`, for one) has bound the real functions by name."""
        lookers = {id(looker.function): looker for looker in self.lookers
                   if looker.name in CLOCK or looker.name in HANDED_OUT}
        for name, module in list(sys.modules.items()):
            if name in NOT_TO or name.startswith(("_", "importlib", "encodings", "zipimport")):
                continue
            for key, value in list(names_of(module).items()):
                looker = lookers.get(id(value))
                if looker is not None and looker.function is value:
                    names_of(module)[key] = looker

    def looker(self, owner, name, tell, instead=None):
        if hasattr(owner, name):
            self.lookers.append(Looker(owner, name, tell, instead))

    def cwd(self, arguments, options):
        self.drifts |= self.adrift

    def look(self, arguments, options):
        path = arguments[0] if arguments else options.get("path")
        self.stop_promised(path)
        path = self.whole(path) if options.get("dir_fd") is None else None
        if path is not None and path not in self.asked:
            self.asked[path] = is_there(path)

    def all_variables(self, arguments, options):
        self.whole_environment = True

    def at_fork(self, arguments, options):
        self.forked.add(getattr(options.get("after_in_child"), "__code__", None))

    def moment(self, arguments=(), options=None):
        """What was asked for is another in each call."""
        self.blame("moment")

    def number(self, arguments, options):
        if not self.promises.number(self.who()):
            self.blame("moment")

    def stop_promised(self, *arguments):
        """Whoever uses a directory that is only promised is to do so in the call."""
        if self.promises.concerns(arguments):
            self.blame("state")
            raise Stop

    def clock(self, most):
        return lambda arguments, options: len(arguments) < most and self.moment()

    def change(self, arguments, options):
        self.blame("state")
        raise Stop

    def ask_machine(self, arguments, options):
        self.machine = posix.uname()

    def ask_blocking(self, arguments, options):
        self.asked_blocking |= (arguments or list(options.values()))[0] < 3

    def __call__(self, event, arguments):
        try:
            self.step(event, arguments)
        except Exception:
            # An exception would forbid the program what it is about to do.
            pass

    def note(self, event, arguments):
        if event not in TELLING:
            # Most of them, and `sys._getframe` is itself an event.
            return None
        frame = sys._getframe(2)
        if frame.f_globals is worker.__dict__:
            return None
        self.stop_promised(*arguments)
        if event == "open":
            reason = self.opens(arguments[0], arguments[2])
        elif event in LISTINGS:
            reason = self.lists(arguments[0], frame)
        elif event in ("os.mkdir", "os.remove"):
            reason = self.would(event, arguments[0], arguments[-1])
        elif event in ("os.putenv", "os.unsetenv"):
            return self.puts(arguments)
        elif event == "sqlite3.connect":
            reason = None if arguments[0] in (":memory:", b":memory:", "") else "state"
        elif event == "mmap.__new__":
            reason = "state" if arguments[0] == -1 else None
        elif event == "fcntl.ioctl":
            return self.blame("terminal")
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
            return "moment" if path.startswith(OF_THE_MOMENT) and path not in CONSTANT else None
        if path is not None and path not in self.read:
            self.read[path] = is_there(path)
        return None

    def lists(self, path, frame):
        path = self.whole("." if path is None else path, pseudo=True)
        if path is not None and path.startswith(NOT_FILES):
            return "moment" if path.startswith("/proc") else None
        if path is not None and not searches(frame):
            self.listed.add(path)
        return None

    def would(self, event, path, folder):
        """A directory that is there is not made, and a file that is not is not removed: whether
        they are there is all that counts."""
        path = self.whole(path) if folder == -1 else None
        there = path is not None and is_there(path)
        if path is None or there != (event == "os.mkdir"):
            return "state"
        self.asked.setdefault(path, there)
        return None

    def blame(self, reason):
        """Notes who imports right now: all of them, since each would do so again. False if it is
        done by somebody of whom it is known that it does no harm."""
        chain, codes, names = self.who()
        if reason == "process" and not names.isdisjoint(ASKS_OF_THE_SYSTEM):
            return False
        if reason == "moment":
            if worker.RENEWED.get(chain and chain[0]) or worker.DRAWS.draws_anew(chain):
                return False
            if self.promises.draws(chain):
                return False
            self.drawn.append((chain, codes))
            return True
        # A thread of its own: whoever is imported now has started it.
        self.blamed.update(dict.fromkeys(chain or [None], reason))
        return True

    @staticmethod
    def who():
        """Who imports right now, the innermost first, what runs within that, and all names."""
        frame, chain, codes, names = sys._getframe(1), [], set(), set()
        while frame is not None:
            name = frame.f_globals.get("__name__")
            names.add(name)
            if frame.f_code.co_name == "<module>" and name != "__main__":
                chain.append(name)
            elif not chain:
                codes.add(frame.f_code)
            frame = frame.f_back
        return chain, codes, names

    def hazards(self, name):
        """What importing this module showed, as names and reasons. Who was to blame is imported
        anew by whoever needs it next, so that all of them are found in one preload."""
        new = {each: sys.modules[each] for each in set(sys.modules) - self.searched}
        self.blamed.update((each, "moment") for each in kept_moments(new, self.since))
        for chain, codes, *_ in self.drawn + self.promises.unresolved():
            # Unless the same function runs in each copy anyway.
            if not codes & self.forked:
                self.blamed.update(dict.fromkeys(chain or [None], "moment"))
        self.drawn.clear()
        for chain in self.put.values():
            self.blamed.update(dict.fromkeys(chain or [None], "state"))
        self.put.clear()
        self.searched.update(new)
        blamed, self.blamed = self.blamed, {}
        self.promises.dropped(blamed)
        for each in blamed:
            sys.modules.pop(each, None)
            self.searched.discard(each)
        for reason in set(blamed.values()):
            blamed.setdefault(name, reason)
        blamed.pop(None, None)
        self.known.update(blamed)
        return list(blamed.items())

    def holders(self, code):
        """Who holds something of those that were to blame: the same is so of them. Found one by
        one they would cost a zygote each."""
        unkept = dict.fromkeys(self.promises.settle(code), "state")
        self.known.update(unkept)
        yield from unkept.items()
        for reason in set(self.known.values()):
            names = {name: None for name, why in self.known.items() if why == reason}
            Looks.spread(names)
            yield from ((name, reason) for name in names if name not in self.known)

    def whole(self, path, pseudo=False):
        """The absolute path of an event's argument; None for a descriptor, and what is no file."""
        if isinstance(path, int):
            return None
        path = os.fsdecode(path)
        if path.startswith("<"):
            # Code that came from no file (`<string>`), which `linecache` and the like ask for.
            return None
        if self.adrift and not path.startswith("/"):
            self.drifts = True
            return None
        path = os.path.abspath(path)
        return None if path.startswith(NOT_FILES) and not pseudo else path

    def stop(self):
        stop_lookers(self.lookers)
        self.step = self.leave
        self.hooks = None
        id(self)
        self.step = ignore
        hooks, self.hooks = self.hooks, None
        if hooks is None:
            return
        del hooks[[hook is self for hook in hooks].index(True)]
        if not hooks:
            # From here on only the interpreter itself knows the list.
            address, hooks = id(hooks), None
            forget_hooks(address)

    def leave(self, event, arguments):
        """In the midst of an event: the interpreter goes through its list of hooks right now."""
        self.step = ignore
        iterator = type(iter([]))
        for young in (gc.get_objects(generation=0), gc.get_objects()):
            for each in young:
                if type(each) is iterator:
                    hooks = each.__reduce__()[1][0]
                    if type(hooks) is list and any(hook is self for hook in hooks):
                        self.hooks = hooks
                        return

    def notes(self, files):
        """`C`, `A`, `L` and `W` notes, and an `F` for what was read and is gone; without those in
        `files`."""
        notes = [b"C" + path for path in SYSTEM_FILES] + [b"W"] * self.drifts
        notes += [b"E*"] * self.whole_environment
        for path, was_there in self.read.items():
            if path in files or path.endswith(".pyc"):
                continue
            try:
                regular = posix.stat(path).st_mode & 0o170000 == 0o100000
            except (OSError, ValueError):
                if was_there and not is_temporary(path):
                    notes.append(b"F" + os.fsencode(path))
                elif not was_there:
                    notes.append(b"C" + os.fsencode(path))
                continue
            if regular:
                notes.append(b"C" + os.fsencode(path))
        for path, was_there in self.asked.items():
            if path not in self.read and path not in files and not path.endswith(".pyc"):
                notes.append((b"A+" if was_there else b"A-") + os.fsencode(path))
        listed = [path for path in self.listed if os.path.isdir(path)]
        return notes + [b"L" + os.fsencode(path) for path in listed]


class Looker:
    """Stands for a function while modules are imported, and tells of each call. Where a module
    keeps it, it is replaced afterwards or, at worst, passes calls on."""

    def __init__(self, owner, name, tell, instead=None):
        self.owner, self.name, self.tell, self.instead = owner, name, tell, instead
        self.function = getattr(owner, name)
        names = ("dir_fd", "effective_ids", "fd", "follow_symlinks")
        self.sets = [getattr(os, "supports_" + each) for each in names]
        self.sets = [each for each in self.sets if self.function in each]
        for each in self.sets:
            each.add(self)
        setattr(owner, name, self)

    def __call__(self, *arguments, **options):
        try:
            self.tell(arguments, options)
        except Exception:
            # Let the function itself complain.
            pass
        if self.instead is not None:
            answer = self.instead(*arguments, **options)
            if answer is not None:
                return answer
        return self.function(*arguments, **options)


def stop_lookers(lookers):
    """Puts the real functions back, wherever modules have kept ours."""
    for looker in lookers:
        looker.tell, looker.instead = ignore, None
        if getattr(looker.owner, looker.name) is looker:
            setattr(looker.owner, looker.name, looker.function)
        for each in looker.sets:
            each.discard(looker)
    for holder in gc.get_referrers(*lookers):
        if type(holder) is tuple:
            put_back_defaults(holder)
            continue
        held = holder if type(holder) in (dict, list) else getattr(holder, "__dict__", None)
        if type(held) in (dict, list):
            for key, value in list(held.items() if type(held) is dict else enumerate(held)):
                if type(value) is Looker:
                    held[key] = value.function


def put_back_defaults(defaults):
    """`def f(clock=time.monotonic)`."""
    real = tuple([each.function if type(each) is Looker else each for each in defaults])
    for holder in gc.get_referrers(defaults):
        if type(holder) is worker.FUNCTION and holder.__defaults__ is defaults:
            holder.__defaults__ = real


def importing(frame):
    """Whose code this is, and who imports that right now."""
    chain = []
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if (frame.f_code.co_name == "<module>" or name == "os") and name != "__main__":
            chain.append(name)
        frame = frame.f_back
    return chain


def kept_moments(modules, since):
    """Modules that keep what they were given by something that tells nobody: `datetime.now()`, or
    a copy of the environment, in which each call has something else."""
    datetime = getattr(sys.modules.get("datetime"), "datetime", None)
    # Wherever on earth: the offset of a zone is less than a day.
    after = datetime and datetime.fromtimestamp(since)

    data = worker.ENVIRONMENT.data
    texts = {os.fsdecode(name): os.fsdecode(value) for name, value in data.items()}

    def keeps(value):
        if type(value) is dict:
            # Most of the variables, as they are: some may have been changed in the copy.
            same = len(value) * 2 > len(data) and sum(
                value.get(name) == text for kind in (data, texts) for name, text in kind.items()
            )
            return same * 2 > len(data)
        return datetime is not None and type(value) is datetime and is_now(value, after)

    for name, module in list(modules.items()):
        for value in list(names_of(module).values()):
            held = value.__dict__.values() if type(value) is type else (value,)
            if any(keeps(each) for each in list(held)):
                yield name


def is_now(moment, after):
    days = abs(moment.replace(tzinfo=None) - after).total_seconds() / 86400
    return days < 1.1


Looker.__call__ = hide(Looker.__call__)
LISTINGS = frozenset(("os.listdir", "os.scandir"))
# Events of what changes something outside, or of the process that is not the copy's by itself.
DEPENDS = dict.fromkeys((
    "os.chmod", "os.chown", "os.chflags", "os.link", "os.lockf", "os.remove", "os.removexattr",
    "os.rename", "os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime", "os.kill",
    "os.killpg", "signal.pthread_kill", "fcntl.flock", "fcntl.lockf", "resource.setrlimit",
    "resource.prlimit", "socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg",
    "syslog.openlog", "syslog.syslog",
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
    "fcntl.ioctl", "socket.gethostname",
))
# Any free port of this machine's own.
NUMERIC = None, "", "127.0.0.1", "::1", "0.0.0.0", "::"
LOOPBACK = ("127.0.0.1", 0), ("::1", 0), ("localhost", 0)
# Functions of `os` whose answer is another in each call, and that no event tells of.
MOMENTS = ("getppid", "getpgid", "getpgrp", "getsid", "tcgetpgrp", "ttyname", "urandom",
           "getrandom", "times", "getloadavg", "sched_getaffinity", "getpriority",
           "sched_getscheduler", "sched_getparam", "statvfs", "fstatvfs")
# Those of them that others bind by name, and whose modules are left alone.
HANDED_OUT = ("urandom", "getrandom", "getpid", "getppid", "umask")
NOT_TO = ("posix", "os", "time", "sys")
# Functions of `os` that change something and that no event tells of.
CHANGES_UNTOLD = ("umask", "nice", "setpriority", "sched_setaffinity", "sched_setscheduler",
                  "sched_setparam", "setpgid", "setpgrp", "setsid", "tcsetpgrp", "chroot",
                  "setuid", "seteuid", "setreuid", "setresuid", "setgid", "setegid", "setregid",
                  "setresgid", "setgroups", "initgroups", "mkfifo", "mknod", "unshare", "setns")
# The same of `time`, and how many arguments they have when they do not ask for now.
CLOCK = dict.fromkeys(("localtime", "gmtime", "ctime", "asctime"), 1)
CLOCK.update(dict.fromkeys(("time", "monotonic", "perf_counter", "process_time", "thread_time",
                            "clock_gettime"), 9))
CLOCK.update({name + "_ns": 9 for name, most in CLOCK.items() if most == 9})
CLOCK["strftime"] = 2
# Whose processes only tell of the system's libraries and of the machine.
ASKS_OF_THE_SYSTEM = ("ctypes.util", "platform", "uuid")
# Who writes compiled code, by its name once `importlib` was imported, and before.
LOADER = "importlib._bootstrap_external", "_frozen_importlib_external"
SINKS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# What the C library reads before anyone could note it.
SYSTEM_FILES = (b"/etc/localtime", b"/etc/ld.so.cache", b"/etc/ld.so.preload")
NOT_FILES = ("/proc/", "/sys/", "/dev/")
OF_THE_MOMENT = ("/proc/", "/dev/tty", "/dev/pts", "/dev/random", "/dev/urandom", "/dev/shm")
CONSTANT = ("/proc/cpuinfo", "/proc/version", "/proc/filesystems")


def ignore(event, arguments):
    pass


def is_there(path):
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True


def searches(frame):
    """Whether a directory is listed in search of modules or of installed packages: `D` notes and
    the daemon's knowledge of them say what matters there."""
    name = frame.f_globals.get("__name__") or ""
    return name.startswith(("importlib", "_frozen_importlib", "pkg_resources"))


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


class Looks:
    """Which modules look at the call while they are imported: its arguments, or whether it has a
    terminal. A copy imports those itself, when the caller's are there to be seen; so must
    whoever imports them. The first argument and their number are in the zygote as in its calls,
    once it is known that somebody asks."""

    def __init__(self, program):
        self.asked = set()
        self.seen = {}  # pairs of a module and what it looks at, in order
        self.argv = sys.argv

        class Watched(list):
            __slots__ = ()

        for name in ("__iter__", "__contains__", "__eq__", "__add__", "__ne__", "__reversed__",
                     "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear",
                     "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
                     "sort"):
            setattr(Watched, name, self.wrap(getattr(list, name), "argv"))

        def get(words, at):
            # Of a module the first argument changes while it is found.
            if type(at) is int and at == 0 and program.kind == worker.SCRIPT:
                self.asked.add("first")
            else:
                self.note("argv")
            return list.__getitem__(words, at)

        def count(words):
            self.asked.add("count")
            return list.__len__(words)

        Watched.__getitem__, Watched.__len__ = get, count
        self.other = Watched()
        self.watched = self.exchange()
        self.instead = {}
        for name in ("isatty", "get_terminal_size"):
            original = getattr(os, name)
            wrapped = self.wrap(original, "terminal")
            self.instead[id(wrapped)] = wrapped, original
            setattr(os, name, wrapped)
        self.streams = [s for s in (sys.stdin, sys.stdout, sys.stderr) if s is not None]
        for stream in self.streams:
            stream.isatty = self.wrap(stream.isatty, "terminal")

    def exchange(self):
        """The list of arguments and an empty watched one exchange their types. Whoever keeps the
        list while it is watched (`def main(arguments=sys.argv)`) keeps the one that each caller's
        arguments are put into. False if types are not where they are looked for."""
        if worker.KERNEL.ctypes is None:
            return False
        words = [worker.KERNEL.type_of(each) for each in (self.argv, self.other)]
        if None in words:
            return False
        words[0].value, words[1].value = words[1].value, words[0].value
        return True

    def note(self, what):
        """All modules that are being imported now."""
        frame = sys._getframe()
        while frame is not None:
            name = frame.f_globals.get("__name__")
            if frame.f_code.co_name == "<module>" and name != "__main__":
                self.seen[name, what] = None
            frame = frame.f_back

    def wrap(self, original, what):
        def watched(*arguments, **named):
            self.note(what)
            return original(*arguments, **named)

        return watched

    def stop(self):
        """Gives everything back, also to who has imported it by name; the hazards."""
        for stream in self.streams:
            del stream.isatty
        if self.watched:
            self.exchange()
        else:
            # Nobody can tell who looked.
            self.seen.update(((name, "argv"), None) for name in set(sys.modules) - set(worker.BASELINE))
        for module in list(sys.modules.values()):
            names = names_of(module)
            for name, value in list(names.items()):
                kept = self.instead.get(id(value))
                if kept is not None and kept[0] is value:
                    names[name] = kept[1]
        # Nobody else may hold a stream: finalisation flushes one when its last holder lets go.
        self.instead.clear()
        self.streams.clear()
        for what in sorted({what for _, what in self.seen}):
            names = dict.fromkeys(name for name, seen in self.seen if seen == what)
            self.spread(names)
            self.seen.update(((name, what), None) for name in names)
        return ["H%s:%s" % pair for pair in self.seen] + ["G" + what for what in self.asked]

    @staticmethod
    def spread(seen):
        """Whoever of its package holds something of such a module imports it, and who is below
        such a package too. Who is missed here is seen by the next zygote, one at a time."""
        holds, packages = {}, {name.partition(".")[0] for name in seen}
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in packages:
                continue
            held = holds[name] = {name.rpartition(".")[0]}
            for value in list(names_of(module).values()):
                if isinstance(value, type(sys)):
                    other = str(names_of(value).get("__name__"))
                    # A package has what is below it by whoever imported that.
                    if not other.startswith(name + "."):
                        held.add(other)
                elif isinstance(value, (type, worker.FUNCTION)):
                    held.add(value.__module__)
        grown = True
        while grown:
            grown = False
            for name in set(holds) - set(seen) - set(worker.BASELINE) - {"__main__"}:
                if seen.keys() & holds[name]:
                    seen[name] = None
                    grown = True
