"""Which functions read the outside, and who stands in for them while modules are imported ahead of
calls (docs/fidelity.md, *What a module reads*).

`worker.py` loads this file before the interpreter's start-up code runs, and puts itself in as
`worker`.

Owns: the class of every function of the interpreter's low-level modules (`posix`, `time`, ...), the
stand-ins (`Looker`) that tell of each use, and how they are put in and taken out again. What a use
means is decided in `imports.py`.

Invariants
- A function of these modules that has no class counts as one whose answer is another in each call.
- Stand-ins are put into a module before anybody can bind its functions, and after `stop` no module,
  class, default, cell or list holds one.
"""

import sys

worker = globals()["worker"]
posix, gc, hide, names_of = worker.posix, worker.gc, worker.hide, worker.names_of

# --- The classes -------------------------------------------------------------------------------
#
# PURE  computes, or its answer is the same for all callers of one key.
# ASK   asked again in each call; where the answer is another one, the program is executed anew.
# LOOK  asks a path: what was found is part of the fingerprint.
# FD    asks a descriptor: one of the caller's three makes its reader run in the call.
# TERM  the same of a terminal.
# NOW   another answer in each call: its reader runs in the call.
# STATE changes something outside, or of the process that a copy does not inherit: stopped before.
# An audit event or another part of `imports.py` tells of the rest (AUDIT).
PURE, ASK, LOOK, FD, TERM, NOW, STATE, AUDIT = "pure ask look fd term now state audit".split()


def table(**classes):
    return {name: kind for kind, names in classes.items() for name in names.split()}


POSIX = table(
    pure="""fspath strerror error WCOREDUMP WIFCONTINUED WIFSTOPPED WIFSIGNALED WIFEXITED
        WEXITSTATUS WTERMSIG WSTOPSIG major minor makedev getuid geteuid getgid getegid getgroups
        getresuid getresgid sched_get_priority_max sched_get_priority_min sched_yield _exit abort
        ctermid waitstatus_to_exitcode getgrouplist getxattr listxattr
        get_inheritable set_inheritable _path_normpath _path_splitroot _path_splitroot_ex
        _inputhook _is_inputhook_installed _create_environ _supports_virtual_terminal close
        openpty pipe pipe2 memfd_create eventfd eventfd_read eventfd_write timerfd_create
        timerfd_gettime timerfd_settime timerfd_gettime_ns timerfd_settime_ns pidfd_open sync
        write pwrite writev pwritev _fcopyfile wait wait3 wait4 waitpid waitid""",
    ask="sysconf confstr cpu_count getlogin getpriority access pathconf",
    look="stat lstat readlink",
    fd="""fstat read pread readv preadv lseek dup dup2 set_blocking ftruncate
        fsync fdatasync sendfile splice tee copy_file_range
        posix_fadvise posix_fallocate fchmod fchown fpathconf fstatvfs device_encoding closerange
        grantpt unlockpt ptsname posix_openpt login_tty lockf posix_spawnp""",
    term="isatty ttyname tcgetpgrp get_terminal_size",
    now="""getppid getpgid getpgrp getsid urandom getrandom times getloadavg sched_getaffinity
        sched_getscheduler sched_getparam sched_rr_get_interval statvfs""",
    state="""umask nice setpriority sched_setaffinity sched_setscheduler sched_setparam setpgid
        setpgrp setsid tcsetpgrp chroot setuid seteuid setreuid setresuid setgid setegid setregid
        setresgid setgroups initgroups mkfifo mknod unshare setns killpg plock""",
    audit="""open listdir scandir mkdir rmdir remove unlink rename replace link symlink truncate
        chmod chown lchown lchmod chflags lchflags utime setxattr removexattr kill chdir fchdir
        putenv unsetenv system posix_spawn fork forkpty fork1 execv execve getcwd getcwdb uname
        get_blocking getpid register_at_fork""",
)
TIME = table(
    pure="sleep mktime strptime tzset get_clock_info clock_getres pthread_getcpuclockid",
    now="""time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time
        process_time_ns thread_time thread_time_ns clock_gettime clock_gettime_ns""",
    state="clock_settime clock_settime_ns",
    # What it is without a time to work on.
    audit="localtime gmtime ctime asctime strftime",
)
SIGNAL = table(
    pure="""default_int_handler strsignal valid_signals set_wakeup_fd siginterrupt setitimer alarm
        raise_signal pthread_kill pidfd_send_signal""",
    now="pthread_sigmask sigpending getitimer pause sigwait sigwaitinfo sigtimedwait",
    audit="getsignal signal",
)
SELECT = table(now="select", audit="poll epoll devpoll kqueue", pure="kevent")
RESOURCE = table(ask="getrlimit", now="getrusage", pure="getpagesize", audit="setrlimit prlimit")
SOCKET = table(
    pure="""CMSG_LEN CMSG_SPACE getdefaulttimeout setdefaulttimeout inet_aton inet_ntoa inet_ntop
        inet_pton htonl htons ntohl ntohs socketpair close""",
    fd="dup",
    now="if_nameindex if_nametoindex if_indextoname",
    state="sethostname",
    audit="""gethostname getaddrinfo gethostbyname gethostbyname_ex gethostbyaddr getnameinfo
        getservbyname getservbyport getprotobyname""",
)
FCNTL = table(fd="fcntl", audit="ioctl flock lockf")
TERMIOS = table(term="tcgetattr tcgetwinsize tcsetattr tcsendbreak tcdrain tcflush tcflow "
                     "tcsetwinsize")
USERS = table(audit="getpwuid getpwnam getpwall getgrgid getgrnam getgrall getspnam getspall")
# What has no place here is the interpreter's own, and the same in each call.
SYS = table(now="""_current_frames _current_exceptions getallocatedblocks getunicodeinternedsize
    gettotalrefcount""")
GC = table(now="get_objects get_referrers get_count get_stats")
THREAD = table(now="get_native_id")
SSL = table(now="RAND_bytes RAND_pseudo_bytes")
UUID = table(audit="generate_time_safe", now="UuidCreate")
SHARED = table(state="shm_open shm_unlink")
# Each with its classes, and the class of what they do not name.
MODULES = {
    "posix": (POSIX, NOW), "time": (TIME, NOW), "_signal": (SIGNAL, NOW), "select": (SELECT, NOW),
    "resource": (RESOURCE, NOW), "_socket": (SOCKET, NOW), "fcntl": (FCNTL, NOW),
    "termios": (TERMIOS, TERM), "pwd": (USERS, NOW), "grp": (USERS, NOW), "spwd": (USERS, NOW),
    "sys": (SYS, PURE), "gc": (GC, PURE), "_thread": (THREAD, PURE), "_ssl": (SSL, PURE),
    "_uuid": (UUID, PURE), "_posixshmem": (SHARED, NOW),
}
FUNCTION, METHOD = type(posix.getpid), type(worker.Kernel.symbol.__get__(worker))


class Looker:
    """Stands for a function while modules are imported, and tells of each use. `tell` gets the
    arguments; what it gives back, if anything, gets the answer."""

    def __init__(self, owner, name, tell, instead=None):
        self.owner, self.name, self.tell, self.instead = owner, name, tell, instead
        self.function = getattr(owner, name)
        self.__doc__, self.__module__ = self.function.__doc__, self.function.__module__
        setattr(owner, name, self)

    @property
    def __class__(self):
        # So it says itself; `type` is not deceived.
        return FUNCTION

    def __getattr__(self, name):
        # Who asks what kind of function this is gets the answer of the function.
        return getattr(self.function, name)

    def __call__(self, *arguments, **options):
        heard = None
        try:
            heard = self.tell(arguments, options)
        except Exception:
            # Let the function itself complain.
            pass
        if self.instead is not None:
            answer = self.instead(*arguments, **options)
            if answer is not None:
                return answer
        if heard is None:
            return self.function(*arguments, **options)
        try:
            answer = self.function(*arguments, **options)
        except BaseException as error:
            heard(type(error))
            raise
        heard(answer)
        return answer


Looker.__call__ = hide(Looker.__call__)


def ignore(arguments=(), options=None):
    return None


class Watch:
    """All stand-ins of one preload. `told` has a function for each class: of the module's and the
    function's name it makes what is told of each use."""

    def __init__(self, told):
        self.told = told
        self.lookers = []
        self.kept = []
        self.types = []
        self.covered = set()

    def start(self):
        """Before anybody but the interpreter itself has bound one of the functions."""
        for name in MODULES:
            if name in sys.modules:
                self.cover(name, sys.modules[name])
        # The import system looks at files all the time: its own notes say what counts there.
        external = sys.modules["_frozen_importlib_external"]
        self.replace(external, "_os", posix)
        machinery = sys.modules["_imp"]
        for name in ("exec_builtin", "exec_dynamic"):
            self.replace(machinery, name, self.covering(getattr(machinery, name)))

    def replace(self, owner, name, value):
        self.kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def covering(self, execute):
        """A module in C has just been made: nobody has bound anything of it yet."""

        def loaded(module):
            result = execute(module)
            name = names_of(module).get("__name__")
            if name in MODULES:
                self.cover(name, module)
            self.told["loaded"](name, module)
            return result

        return hide(loaded)

    def cover(self, name, module):
        if name in self.covered:
            return
        self.covered.add(name)
        classes, otherwise = MODULES[name]
        for each, value in list(names_of(module).items()):
            if type(value) is FUNCTION and not each.startswith("__"):
                kind = classes.get(each, otherwise)
                tell = self.told[kind](name, each) if kind != PURE else None
                if tell is not None:
                    self.lookers.append(Looker(module, each, tell))

    def looker(self, owner, name, tell, instead=None):
        if hasattr(owner, name):
            self.lookers.append(Looker(owner, name, tell, instead))

    def method(self, kind, name, wrap):
        """Puts a function in the place of a method of a type in C, where that can be done."""
        held = gc.get_referents(kind.__dict__)
        original = kind.__dict__.get(name)
        if original is None or len(held) != 1 or type(held[0]) is not dict or not modified(kind):
            return
        held[0][name] = made = wrap(original)
        ours = getattr(made, "__func__", made)
        self.types.append((kind, held[0], name, original, ours))
        modified(kind)

    def stop(self):
        """Puts the real functions back, wherever somebody has kept ours."""
        real = {}
        for kind, names, name, original, ours in self.types:
            names[name] = original
            modified(kind)
            # Who has kept a method of a class has one that is bound to it.
            for each in gc.get_referrers(ours):
                if type(each) is METHOD:
                    bound = (None, each.__self__) if type(ours_in(kind, name)) is OF_CLASS else (
                        each.__self__,)
                    real[id(each)] = each, original.__get__(*bound)
        for owner, name, value in reversed(self.kept):
            setattr(owner, name, value)
        for looker in self.lookers:
            looker.tell, looker.instead = ignore, None
            real[id(looker)] = looker, looker.function
            if getattr(looker.owner, looker.name, None) is looker:
                setattr(looker.owner, looker.name, looker.function)
        self.lookers, self.kept, self.types = [], [], []
        for module in list(sys.modules.values()):
            put_back_in(names_of(module), real)
        for kinds in vars(sys.modules.get("os", sys)).values():
            if type(kinds) is set:
                put_back_in(kinds, real)
        put_back(still_kept(real))


OF_CLASS = type(dict.__dict__["fromkeys"])


def ours_in(kind, name):
    """What stands for a method's name in a type."""
    return kind.__dict__[name]


def modified(kind):
    """Has the interpreter forget what it remembers of a type's methods; False if it cannot."""
    kernel = worker.KERNEL
    if kernel.ctypes is None:
        return False
    function = kernel.symbol(kernel.libc, "PyType_Modified")
    if not function:
        return False
    members = {"_flags_": kernel.ctypes.FUNCFLAG_CDECL | kernel.ctypes.FUNCFLAG_PYTHONAPI}
    members["_restype_"] = None
    call = type("function", (kernel.ctypes.CFuncPtr,), members)(function)
    thing = type("thing", (kernel.ctypes._SimpleCData,), {"_type_": "O"})
    call(thing(kind))
    return True


def still_kept(real):
    """Of what stands in, that which somebody else than `real` holds: only those are looked for, since
    each look goes through all objects."""
    control = object()
    counts = {id(control): (control, None)}
    del control
    least = [sys.getrefcount(pair[0]) for pair in counts.values()][0]
    return {at: pair for at, pair in real.items() if sys.getrefcount(pair[0]) > least}


def put_back(real):
    """`real` has by identity what stands in, and what it stands for."""
    if not real:
        return
    stand_ins = [each for each, _ in real.values()]
    held = [each for each in gc.get_referrers(*stand_ins) if each is not stand_ins]
    dicts = [each for each in held if type(each) is dict]
    # A type remembers what its names stand for, so it must be told.
    for kind in gc.get_referrers(*dicts) if dicts else ():
        if isinstance(kind, type):
            for name, value in list(kind.__dict__.items()):
                if id(value) in real:
                    type.__setattr__(kind, name, real[id(value)][1])
                elif type(value) is staticmethod and id(value.__func__) in real:
                    type.__setattr__(kind, name, staticmethod(real[id(value.__func__)][1]))
    for holder in held:
        put_back_in(holder, real)


def put_back_in(holder, real):
    kind = type(holder)
    if kind is tuple:
        put_back_defaults(holder, real)
    elif kind is set:
        for each in [each for each in holder if id(each) in real]:
            holder.discard(each)
            holder.add(real[id(each)][1])
    elif kind is CELL:
        if id(holder.cell_contents) in real:
            holder.cell_contents = real[id(holder.cell_contents)][1]
    elif kind.__module__ == "functools" and id(getattr(holder, "func", None)) in real:
        # `partial`.
        function, *rest = holder.__reduce__()[2]
        holder.__setstate__((real[id(function)][1], *rest))
    else:
        names = holder if kind in (dict, list) else getattr(holder, "__dict__", None)
        if type(names) in (dict, list):
            for key, value in list(names.items() if type(names) is dict else enumerate(names)):
                if id(value) in real and real[id(value)][0] is value:
                    names[key] = real[id(value)][1]


def put_back_defaults(defaults, real):
    """`def f(clock=time.monotonic)`."""
    new = tuple([real[id(each)][1] if id(each) in real else each for each in defaults])
    for holder in gc.get_referrers(defaults):
        if type(holder) is worker.FUNCTION and holder.__defaults__ is defaults:
            holder.__defaults__ = new


CELL = type((lambda thing: lambda: thing)(0).__closure__[0])


class Variables(dict):
    """The environment while modules are imported: whoever reads a variable is heard, by whatever
    way it was reached (`os.environ`, `os.environ._data`, `posix.environ`)."""

    __slots__ = ("one", "all")

    def __getitem__(self, name):
        self.one(name)
        return dict.__getitem__(self, name)

    def get(self, name, default=None):
        self.one(name)
        return dict.get(self, name, default)

    def __contains__(self, name):
        self.one(name)
        return dict.__contains__(self, name)

    def pop(self, name, *default):
        self.one(name)
        return dict.pop(self, name, *default)

    def setdefault(self, name, value=None):
        self.one(name)
        return dict.setdefault(self, name, value)


def whole(name):
    function = getattr(dict, name)

    def through_all(self, *arguments):
        self.all()
        return function(self, *arguments)

    return through_all


for _name in ("__iter__", "__len__", "__eq__", "__ne__", "__repr__", "__reversed__", "__or__",
              "__ror__", "keys", "values", "items", "copy", "popitem"):
    if hasattr(dict, _name):
        setattr(Variables, _name, whole(_name))


class Raw(worker._io.FileIO):
    """Below a standard stream while modules are imported: what is read, and what depends on the
    kind of its file, is each call's own."""

    def __init__(self, fd, mode, told):
        super().__init__(fd, mode, False)
        self.told = told

    def told_of(name, what):
        function = getattr(worker._io.FileIO, name)

        def method(self, *arguments):
            told = self.__dict__.get("told")
            if told is not None:
                told(what)
            return function(self, *arguments)

        return hide(method)

    for _name in ("read", "readinto", "readall", "seek", "tell", "seekable", "truncate"):
        locals()[_name] = told_of(_name, "stream")
    isatty = told_of("isatty", "terminal")
    del told_of, _name
