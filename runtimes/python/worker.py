"""The Python runtime: lives inside an interpreter and performs calls (docs/worker.md, wire.md).

Owns: the zygote, the standby, the copy, and the learning run. A program that a copy performs
must be indistinguishable from `INTERPRETER OPTIONS script args`.

Invariants
- A process with more than one thread is never forked.
- What a program can look at (`sys.modules`, `__main__`, frames, descriptors, environment) holds
  nothing of ours: modules that only we need are taken out of `sys.modules`, and the frames below
  the program are hidden (`hide`).
- `ended` is sent once, after everything that the program can still do, and before teardown.
- What cannot be reproduced here is executed anew in this very process (`run_anew`) or finalised
  by the interpreter itself; the zygote's `gone` then tells how it ended.

Does not: decide anything about keys, staleness or isolation; survive its parent.
"""

import sys

# `start.py` leaves these: what the interpreter itself puts into `__main__`, and our files as code.
NATURAL, BYTECODE = map(globals().get, ("NATURAL", "BYTECODE"))
BASELINE = dict.fromkeys(sys.modules)


def borrow(name):
    """Imports a module for our own use and leaves no trace of it in `sys.modules`."""
    before = set(sys.modules)
    module = __import__(name)
    for new in set(sys.modules) - before:
        del sys.modules[new]
    return module


def own(name):
    """The same with names of our own: where others find stand-ins (`watch.py`), we find what the
    interpreter has."""
    module = type(sys)(name)
    module.__dict__.update(borrow(name).__dict__)
    return module


posix = own("posix")
time = own("time")
_io = own("_io")
_imp = own("_imp")
_signal = own("_signal")
_thread = own("_thread")
gc = own("gc")
# Where the interpreter's start-up code has yet to run, this is not the program's `os`.
os = borrow("os")
getframe = sys._getframe

ZYGOTE, STANDBY, COPY = 0, 1, 2
UNPAID, PAID, PLAIN = 0, 1, 2
SCRIPT, MODULE, HANDLER = 0, 1, 2
PRELOAD, READY, FORK, FORKED, GONE = 32, 33, 34, 35, 36
GIVE, FINISHED, NOTES, FAILED, JOINED, ENDED = 37, 38, 39, 40, 41, 18

FRAME_BYTES_MAX = 1 << 20
HEADER_BYTES = 12
MAGIC = b"hob\x01"
FRAME_FDS_MAX = 8
# Offsets within a whole `give` frame, see docs/wire.md.
AT_CALL, AT_GROUP, AT_UMASK, AT_IGNORED, AT_BLOCKED = 12, 20, 24, 28, 36
AT_LIMITS, AT_PRIORITY, AT_ARGV = 44, 300, 324
LIMITS = 16
INFINITY = (1 << 64) - 1
MSG_CMSG_CLOEXEC = 0x40000000
PR_SET_PDEATHSIG, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 1, 29, 30
IOPRIO_WHO_PROCESS = 1
CLONE_VM, CLONE_VFORK = 0x100, 0x4000
MADV_POPULATE_READ, MADV_POPULATE_WRITE = 22, 23

FS = sys.getfilesystemencoding()
FS_ERRORS = sys.getfilesystemencodeerrors()
from_bytes = int.from_bytes


# --- Frames of the wire -------------------------------------------------------------------------


def u32(number):
    return number.to_bytes(4, "little")


def u64(number):
    return number.to_bytes(8, "little")


def encode_blob(data):
    return u32(len(data)) + data


def encode_strings(strings):
    data = b"".join([s + b"\0" for s in strings])
    return u32(len(strings)) + u32(len(data)) + data


def encode_frame(kind, payload, fds=0):
    if len(payload) > FRAME_BYTES_MAX:
        raise WireError("a frame of %d bytes is beyond the cap" % len(payload))
    return MAGIC + bytes((kind, fds, 0, 0)) + u32(len(payload)) + payload


def encode_ready(role, pid, threads, notes):
    return encode_frame(READY, bytes((role,)) + u32(pid) + u32(threads) + encode_strings(notes))


def encode_forked(worker, pid, error):
    payload = u64(worker) + u32(pid) + encode_blob(error)
    return encode_frame(FORKED, payload, 1 if pid else 0)


def encode_gone(worker, exit_pair, usage):
    user_us, system_us, peak_kib = usage
    payload = u64(worker) + bytes(exit_pair) + u64(user_us) + u64(system_us) + u64(peak_kib)
    return encode_frame(GONE, payload)


# The number of a call is kept as the eight bytes that it came in.
NO_TEXT = bytes(4)


def encode_ended(call, exit_pair):
    return ENDED_HEAD + call + bytes(exit_pair) + NO_TEXT


ENDED_HEAD = MAGIC + bytes((ENDED, 0, 0, 0)) + u32(14)


def encode_finished(call, exit_pair, main_ns, finished_ns):
    return encode_frame(FINISHED, call + bytes(exit_pair) + u64(main_ns) + u64(finished_ns))


def encode_joined(call, at_ns):
    return encode_frame(JOINED, call + u64(at_ns))


def encode_notes(call, notes):
    return encode_frame(NOTES, call + encode_strings(notes))


def encode_failed(text):
    return encode_frame(FAILED, encode_blob(text.encode("utf-8", "backslashreplace")))


class WireError(Exception):
    """A frame that breaks a rule; it ends the connection."""


def decode_header(head):
    """The kind, the number of descriptors and the payload's length of a frame."""
    length = from_bytes(head[8:12], "little")
    if head[:4] != MAGIC or head[6:8] != b"\0\0" or length > FRAME_BYTES_MAX:
        raise WireError("not a frame of version 1")
    return head[4], head[5], length


def decode_blob(data, at):
    end = at + 4 + from_bytes(data[at : at + 4], "little")
    if end > len(data):
        raise WireError("a blob beyond its frame")
    return bytes(data[at + 4 : end]), end


def decode_strings(data, at):
    count = from_bytes(data[at : at + 4], "little")
    blob, end = decode_blob(data, at + 4)
    strings = blob.split(b"\0")
    if strings.pop() or len(strings) != count:
        raise WireError("a list of strings with a wrong count")
    return strings, end


def decode_preload(payload):
    role, kind = payload[0], payload[1]
    target, at = decode_blob(payload, 2)
    prefix, at = decode_strings(payload, at)
    modules, at = decode_strings(payload, at)
    argv, _ = decode_strings(payload, at)
    return role, kind, target, prefix, modules, argv


def decode_fork(payload):
    return from_bytes(payload[:8], "little"), payload[8]


def decode_fds(ancillary):
    """The descriptors that came with a frame."""
    fds = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [from_bytes(data[i : i + 4], "little") for i in range(0, len(data) - 3, 4)]
    return fds


def receive(channel):
    """One whole frame as (kind, payload, descriptors), or None at the end of the channel."""
    room = _socket.CMSG_SPACE(4 * FRAME_FDS_MAX)
    head, ancillary, _, _ = channel.recvmsg(HEADER_BYTES, room, MSG_CMSG_CLOEXEC)
    if not head:
        return None
    fds = decode_fds(ancillary)
    while len(head) < HEADER_BYTES:
        head += channel.recv(HEADER_BYTES - len(head)) or _cut_off()
    kind, _, length = decode_header(head)
    payload = b""
    while len(payload) < length:
        payload += channel.recv(length - len(payload)) or _cut_off()
    return kind, payload, fds


def _cut_off():
    raise WireError("the channel ended inside a frame")


def send_all(fd, data):
    sent = posix.write(fd, data)
    while sent < len(data):
        sent += posix.write(fd, memoryview(data)[sent:])


# --- The kernel, as far as the standard library does not reach it -------------------------------


# The numbers of `ioprio_set` and `ioprio_get`, which no C library wraps.
IOPRIO_CALLS = {"x86_64": (251, 252), "aarch64": (30, 31), "riscv64": (30, 31)}


class Kernel:
    """A few C functions by way of `_ctypes`; without it everything else still works."""

    def __init__(self):
        self.title = self.fflush = self.leaver = None
        try:
            self.ctypes = borrow("_ctypes")
            self.libc = self.ctypes.dlopen(None, os.RTLD_NOW)
            self.pointer = type("pointer", (self.ctypes._SimpleCData,), {"_type_": "P"})
            self.word = type("word", (self.ctypes._SimpleCData,), {"_type_": "L"})
            self.text = type("text", (self.ctypes._SimpleCData,), {"_type_": "z"})
            self.fflush = self.symbol(self.libc, "fflush")
        except Exception:
            self.ctypes = None

    def symbol(self, library, name):
        """The address of a C function, or None."""
        try:
            return self.ctypes.dlsym(library, name)
        except OSError:
            return None

    def type_of(self, thing):
        """The word that holds an object's type, or None: CPython keeps it last in its head."""
        size = self.ctypes.sizeof(self.pointer)
        word = self.pointer.from_address(id(thing) + object.__basicsize__ - size)
        return word if word.value == id(type(thing)) else None

    def environ(self, start):
        """The word that holds the C library's `environ`, or None if it is not found."""
        address = self.ctypes and self.symbol(self.libc, "environ")
        if not address or not start:
            return None
        word = self.pointer.from_address(address)
        # What has this name may be something else, in a program that embeds the interpreter.
        first = self.text.from_address(word.value).value if word.value else None
        return self.memory(address, 8).cast("Q") if first == start.partition(b"\0")[0] else None

    def address_of(self, room):
        """Where a `bytearray` lies, and what keeps it there."""
        kept = self.pointer.from_buffer(room)
        return self.ctypes.addressof(kept), kept

    def call(self, address, *args):
        return self.ctypes.call_function(address, args)

    def of_thread(self, name):
        """A function of the interpreter's that takes or gives the state of a thread."""
        kept = {"_flags_": self.ctypes.FUNCFLAG_CDECL | self.ctypes.FUNCFLAG_PYTHONAPI}
        # A class that is derived once more is what a call returns, and not a number.
        kept["_restype_"] = type("state", (self.pointer,), {})
        kind = type("function", (self.ctypes.CFuncPtr,), kept)
        return kind(self.ctypes.dlsym(self.libc, name))

    def quieten(self, quiet):
        """Whether tracers and profilers are told of nothing from now on, but in `traced`; or are
        told again. (`PyThreadState_EnterTracing`, which `sys.call_tracing` takes back.)"""
        try:
            state = self.of_thread("PyThreadState_Get")()
            self.of_thread("PyThreadState_%sTracing" % ("Enter" if quiet else "Leave"))(state)
        except Exception:
            return False
        return True

    def silence(self):
        """A function after which they are told of nothing until what it returns is gone: a frame
        that holds it ends unheard, too. None where that cannot be done."""
        try:
            thread = self.of_thread("PyThreadState_Get")
            enter = self.of_thread("PyThreadState_EnterTracing")
            leave = self.of_thread("PyThreadState_LeaveTracing")
        except Exception:
            return None
        kind = type("silence", (), {"__slots__": ("__weakref__", "end")})
        # What a function in C calls with itself when its object goes, as the thread's state.
        end = type("end", (borrow("_weakref").ref,), {"__slots__": ("_as_parameter_",)})

        def hush():
            # In this order each is taken back, wherever a signal's handler raises.
            silence, state = kind(), thread()
            gone = end(silence, leave)
            gone._as_parameter_ = state
            silence.end = gone
            enter(state)
            return silence

        return hide(hush)

    def flush(self):
        """Flushes the C library's own streams: extensions may have written there."""
        if self.fflush:
            self.ctypes.call_function(self.fflush, (None,))

    def die_with_parent(self, parent):
        """Asks to be killed when the parent ends, and ends now if it has already."""
        if self.ctypes is not None:
            prctl = self.symbol(self.libc, "prctl")
            if prctl:
                self.call(prctl, PR_SET_PDEATHSIG, int(_signal.SIGKILL), 0, 0, 0)
        if posix.getppid() != parent:
            posix._exit(0)

    def pidfd(self, pid):
        if hasattr(posix, "pidfd_open"):
            return posix.pidfd_open(pid, 0)
        fd = self.call(self.symbol(self.libc, "syscall"), self.word(434), self.word(pid), 0)
        if fd < 0:
            raise OSError("pidfd_open failed")
        return fd

    def dead_child(self):
        """A child that has ended and was not waited for, or 0. It shares this process's memory,
        and calls nothing but `_exit`: that is far cheaper than a fork."""
        if self.leaver is None:
            names = ("clone", "_exit") if self.ctypes is not None else ()
            clone, leave = [self.symbol(self.libc, name) for name in names] or (None, None)
            if not clone or not leave:
                return 0
            stack = bytearray(1 << 14)
            kept = self.pointer.from_buffer(stack)
            top = self.pointer(self.ctypes.addressof(kept) + len(stack) & -16)
            flags = CLONE_VM | CLONE_VFORK | int(_signal.SIGCHLD)
            self.leaver = clone, self.pointer(leave), top, flags, self.pointer(0), kept
        return max(self.call(*self.leaver[:-1]), 0)

    def trim(self):
        """Gives back what the C library keeps of freed memory: each fork would copy its page
        tables, and each copy's end take them down."""
        trim = self.ctypes and self.symbol(self.libc, "malloc_trim")
        if trim:
            self.call(trim, self.word(0))

    def ioprio(self, value=None):
        """The I/O priority of this process (0 if that cannot be told), or sets it."""
        syscall = self.ctypes and self.symbol(self.libc, "syscall")
        numbers = IOPRIO_CALLS.get(posix.uname().machine)
        if not syscall or not numbers:
            return 0
        arguments = [numbers[value is None], IOPRIO_WHO_PROCESS, 0, value or 0]
        return max(self.call(syscall, *map(self.word, arguments)), 0)

    def slack(self, value=None):
        """The timer slack of this thread in nanoseconds (0 if that cannot be told), or sets it."""
        prctl = self.ctypes and self.symbol(self.libc, "prctl")
        if not prctl:
            return 0
        if value is not None:
            return self.call(prctl, PR_SET_TIMERSLACK, self.word(value), 0, 0, 0)
        return self.call(prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0)

    def find_title(self):
        """Finds the kernel's view of our argv, to write the program's own there."""
        area = title_area()
        if area and self.ctypes is not None:
            self.title = self.memory(*area)
            self.own = bytes(self.title)

    def set_title(self, title):
        """Writes what a cold run's command line would be over this process's own."""
        if self.title is not None:
            self.title[:] = title.ljust(len(self.title), b"\0")[: len(self.title)]

    def reset_title(self):
        if self.title is not None:
            self.title[:] = self.own

    def memory(self, address, size):
        """A view of this process's own memory, so that a call needs no C function to write."""
        byte = type("byte", (self.ctypes._SimpleCData,), {"_type_": "B"})
        array = type("array", (self.ctypes.Array,), {"_type_": byte, "_length_": size})
        return memoryview(array.from_address(address)).cast("B")


def title_area():
    """The (start, size) of the kernel's view of our argv."""
    try:
        fields = read_file("/proc/self/stat").rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        return (start, end - start) if end > start else None
    except (OSError, IndexError, ValueError):
        return None


def read_file(path):
    with _io.FileIO(path) as file:
        return file.readall()


def count_threads():
    return posix.stat("/proc/self/task").st_nlink - 2


# --- Frames of the interpreter: a program sees none of ours ------------------------------------


def hide(function):
    """The same function, whose frames the interpreter never shows.

    From 3.11 a frame counts as incomplete until it reaches RESUME, and incomplete frames are left
    out of tracebacks and `sys._getframe`: without a RESUME it always is. Before 3.11 tracebacks
    are stripped (`strip`), and the file name keeps `warnings` from showing us.
    """
    code = function.__code__
    changes = {"co_filename": "<frozen importlib._bootstrap>"}
    if RESUME is not None:
        raw = bytearray(code.co_code)
        for i in range(0, len(raw), 2):
            if raw[i] == RESUME:
                raw[i], raw[i + 1] = NOP, 0
        changes["co_code"] = bytes(raw)
    hidden = type(function)(
        code.replace(**changes),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    HIDDEN.add(hidden.__code__)
    return hidden


HIDDEN = set()
RESUME = NOP = None
if sys.version_info >= (3, 11):
    RESUME, NOP = map(borrow("opcode").opmap.get, ("RESUME", "NOP"))


# From 3.12 on the interpreter tells tracers and profilers of an exception in every frame that it
# leaves, in ours too; there it finds no frame to show, and its complaint takes the exception's place.
# So nobody is told of what is ours (`Kernel.quieten`). A monitor's callback would do as well, but
# then each function checks for monitors when it first runs.
TOLD_OF_OURS = sys.version_info >= (3, 12)
QUIET = False
# Calls what is the program's, where its tracer and its profiler are told.
traced = sys.call_tracing


def strip(traceback):
    """A traceback without our own frames at its outer end."""
    while traceback is not None and traceback.tb_frame.f_code in HIDDEN:
        traceback = traceback.tb_next
    return traceback


# --- The program ---------------------------------------------------------------------------------


class Program:
    """What is called: its name, how it was made, and its main code if that could be kept."""

    def __init__(self, kind, target, prefix):
        self.kind = kind
        self.target = target
        self.prefix = prefix
        self.head = prefix
        if kind == MODULE:
            if not (len(prefix) > 1 and prefix[-1][:1] == "-" and prefix[-1][-1:] == "m"):
                prefix = prefix + ["-m"]
            self.head = prefix + [target]
        self.head_bytes = b"".join([os.fsencode(arg) + b"\0" for arg in self.head])
        # The `__main__` for a script that is named as the target is.
        self.main = None
        self.code = None
        self.identity = None
        self.container = False
        # The arguments of its rehearsal: as they came, and as words.
        self.called = None, None
        # What stands first on sys.path; None if the interpreter was told to put nothing there.
        self.directory = None
        # A handler's file and function are split by its own runtime (`message.py`).
        self.handler = None

    def locate(self):
        """Puts the program's directory on `sys.path`."""
        own = has_own_directory()
        if self.kind == HANDLER:
            self.handler = HANDLERS.Loaded(self.target)
            self.directory = os.path.dirname(self.handler.file)
        elif self.kind == SCRIPT and self.importer():
            self.directory = self.target
        elif own and self.kind == SCRIPT:
            self.directory = os.path.dirname(os.path.realpath(self.target))
        elif own:
            self.directory = posix.getcwd()
        if self.directory is not None:
            sys.path.insert(0, self.directory)

    def importer(self):
        """Whether the target is a directory or an archive that is run by its `__main__`."""
        sys.path_importer_cache[self.target] = None
        for hook in sys.path_hooks:
            try:
                sys.path_importer_cache[self.target] = hook(self.target)
            except ImportError:
                continue
            self.container = True
            break
        return self.container

    def load(self, captured):
        """Compiles the script ahead of the calls, unless that says anything to the user."""
        if self.kind == HANDLER:
            self.handler.load()
            return
        if self.kind == MODULE or self.container:
            __import__("runpy")
        try:
            if self.kind == SCRIPT:
                self.identity = identify(self.target)
            if self.kind == SCRIPT and not self.container:
                code = compile_script(self.target)
                if not captured.grown():
                    self.code = code
        except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
            pass

    def changed(self):
        return identify(self.target) != self.identity

    def code_of(self, path):
        """The script's code at `path`: the kept one if the file is unchanged."""
        if self.code is not None and identify(path) == self.identity:
            if path != self.code.co_filename:
                _imp._fix_co_filename(self.code, path)
            return self.code
        return compile_script(path)

    def cold_argv(self, argv):
        """What `sys.orig_argv` holds."""
        return self.head + (argv[1:] if self.kind == MODULE else argv)

    def title(self, argv):
        """The same as the kernel holds it: each followed by a NUL, as `argv` is."""
        return self.head_bytes + (argv.partition(b"\0")[2] if self.kind == MODULE else argv)


def has_own_directory():
    """Whether the interpreter puts a script's directory on `sys.path`."""
    return not (sys.flags.isolated or getattr(sys.flags, "safe_path", False))


def leave_path():
    """Takes the runtime's own directory off `sys.path`."""
    if has_own_directory():
        del sys.path[0]
    sys.path_importer_cache.pop(NATURAL["__file__"], None)


def identify(path):
    stat = posix.stat(path)
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def compile_script(path):
    data = read_file(path)
    if path.endswith(".pyc"):
        return borrow("marshal").loads(data[16:])
    return compile(data, path, "exec", dont_inherit=True)


def absolute(name):
    """As the interpreter makes its script's name absolute: joined, not normalised."""
    return name if name.startswith("/") else posix.getcwd() + "/" + name


def new_main(file):
    """A `__main__` module as this version of the interpreter makes it."""
    module = type(sys)("__main__")
    names = module.__dict__
    names.clear()
    for name, value in NATURAL.items():
        if name in ("__file__", "__cached__") and file is None:
            continue
        names[name] = {} if name == "__annotations__" else value
    names["__doc__"] = None
    if file is None:
        names["__loader__"] = BOOTSTRAP.BuiltinImporter
    else:
        external = sys.modules["_frozen_importlib_external"]
        kind = "SourcelessFileLoader" if file.endswith(".pyc") else "SourceFileLoader"
        names["__loader__"] = getattr(external, kind)("__main__", file)
        names["__file__"] = file
    return module


def body(program, call):
    """What performs the program, and its arguments."""
    if program.kind == MODULE:
        return sys.modules["runpy"]._run_module_as_main, (program.target, True)
    if program.container:
        return sys.modules["runpy"]._run_module_as_main, ("__main__", False)
    return exec, (call.code, call.names)


# --- How a program ends --------------------------------------------------------------------------

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


def settle_error(call):
    """What an ended main body comes to: prints what is to be printed; the exit status."""
    error, names = call.error, call.names
    # Whoever still held the exception would keep the program's frames alive.
    call.error = None
    if isinstance(error, SystemExit):
        return status_of_exit(error)
    flush_quietly()
    status = 0
    if error is not None:
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


# --- The caller's world --------------------------------------------------------------------------


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


class Environment:
    """`os.environ` and the C library's environment, in place and in the caller's order."""

    def __init__(self):
        self.blob = read_file("/proc/self/environ")
        self.data = posix.environ  # It is `os.environ._data` too.
        given = as_mapping(self.blob.split(b"\0"))
        # The interpreter itself may have set LC_CTYPE (PEP 538).
        self.coerced = {k: v for k, v in self.data.items() if given.get(k) != v}
        self.changes = {}
        self.start = dict(self.data)
        self.word = KERNEL.environ(self.blob)
        if self.word is not None:
            self.make_room(1 << 16, 1 << 10)

    def make_room(self, size, count):
        """Memory for C's environment: its strings, and the pointers to them."""
        self.text, array = bytearray(size), bytearray(8 * count)
        self.text_at, kept = KERNEL.address_of(self.text)
        self.array_at, also_kept = KERNEL.address_of(array)
        self.array, self.kept = memoryview(array).cast("Q"), (kept, also_kept)

    def preloaded(self):
        """Remembers what the preloaded modules have changed; they would do so in a cold run."""
        now = self.data
        self.changes = dict(self.coerced)
        self.changes.update({k: v for k, v in now.items() if self.start.get(k) != v})
        self.changes.update({k: None for k in self.start if k not in now})

    def take(self, blob):
        entries = blob.split(b"\0")
        entries.pop()
        new = as_mapping(entries)
        old = self.data
        zone = old.get(b"TZ")
        if self.word is not None:
            # All of it, also what is there twice, or is no variable.
            if len(blob) > len(self.text) or len(entries) >= len(self.array):
                self.make_room(len(blob), len(entries) + 1)
            self.text[: len(blob)] = blob
            array, address = self.array, self.text_at
            for at, entry in enumerate(entries):
                array[at] = address
                address += len(entry) + 1
            array[len(entries)] = 0
            self.word[0] = self.array_at
        for name, value in self.changes.items():
            if value is None:
                new.pop(name, None)
            else:
                new[name] = value
            if self.word is not None:
                put(name, value)
        if self.word is None:
            # One by one, so that the order becomes the new one.
            for name, value in [(name, None) for name in old] + list(new.items()):
                put(name, value)
        old.clear()
        old.update(new)
        if zone != new.get(b"TZ"):
            time.tzset()


def as_mapping(entries):
    """The variables; of what is there twice the first one counts, as it does for C."""
    pairs = [entry.split(b"=", 1) for entry in entries if b"=" in entry]
    new = dict(pairs)
    if len(new) != len(pairs):
        new.update(reversed(pairs))
    return new


def put(name, value):
    if not name:
        return
    if value is None:
        posix.unsetenv(name)
    else:
        posix.putenv(name, value)


def signals_of(mask):
    mask &= INFINITY
    return [n for n in range(1, mask.bit_length() + 1) if mask >> (n - 1) & 1]


# Plain numbers lie side by side; an `enum`'s members do not.
ALL_SIGNALS = tuple(map(int, _signal.valid_signals()))
ALWAYS_IGNORED = 1 << (_signal.SIGPIPE - 1) | 1 << (_signal.SIGXFSZ - 1)
UNTOUCHABLE = 1 << (_signal.SIGKILL - 1) | 1 << (_signal.SIGSTOP - 1)
# Whoever was started by glibc's `posix_spawn` ignores the C library's own two as well, which no
# program can set.
SETTABLE = sum(1 << (each - 1) for each in ALL_SIGNALS) & ~(ALWAYS_IGNORED | UNTOUCHABLE)


def reset_signals():
    """The dispositions that the interpreter has when nobody ignores anything."""
    for number in signals_of(~(ALWAYS_IGNORED | UNTOUCHABLE)):
        try:
            if _signal.getsignal(number) == _signal.SIG_IGN:
                restored = _signal.SIG_DFL
                if number == _signal.SIGINT:
                    restored = _signal.default_int_handler
                _signal.signal(number, restored)
        except (OSError, ValueError):
            continue
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def take_signals(ignored, blocked):
    ignored &= SETTABLE
    if ignored:
        for number in signals_of(ignored):
            try:
                now = _signal.getsignal(number)
                if now == _signal.SIG_DFL or now is _signal.default_int_handler:
                    _signal.signal(number, _signal.SIG_IGN)
            except (OSError, ValueError):
                continue
    if blocked:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, signals_of(blocked))


def own_limits():
    """This process's limits as a `world` holds them."""
    limits = b""
    for which in range(LIMITS):
        for value in resource.getrlimit(which):
            limits += u64(value & INFINITY)
    return limits


def own_processors():
    """Where this process may run: as a `give` has it, and as a set."""
    allowed = posix.sched_getaffinity(0)
    mask = sum(1 << at for at in allowed)
    return mask.to_bytes(mask.bit_length() + 7 >> 3, "little"), allowed


def take_processors(mask):
    """The caller's processors; the daemon may have woken this process on one alone."""
    known, allowed = OWN_PROCESSORS
    if mask != known:
        bits = from_bytes(mask, "little")
        allowed = [at for at in range(bits.bit_length()) if bits >> at & 1]
    try:
        posix.sched_setaffinity(0, allowed)
    except OSError:
        # None of them is left: the kernel has decided.
        pass


def take_limits(limits, own):
    for which in range(LIMITS):
        at = which * 16
        if limits[at : at + 16] == own[at : at + 16]:
            continue
        pair = [from_bytes(limits[at + i : at + i + 8], "little") for i in (0, 8)]
        pair = tuple(-1 if value == INFINITY else value for value in pair)
        try:
            resource.setrlimit(which, pair)
        except (OSError, ValueError):
            continue


def own_priority():
    """This process's nice value and its like as a `world` holds them."""
    policy = posix.sched_getscheduler(0)
    if policy not in (posix.SCHED_OTHER, posix.SCHED_BATCH, posix.SCHED_IDLE):
        policy |= posix.sched_getparam(0).sched_priority << 16
    numbers = (
        posix.getpriority(posix.PRIO_PROCESS, 0),
        KERNEL.ioprio(),
        policy,
        int(read_file("/proc/self/oom_score_adj")),
    )
    return b"".join([u32(number & 0xFFFFFFFF) for number in numbers]) + u64(KERNEL.slack())


def take_priority(priority, own):
    """Takes on what differs; the daemon has seen that it is nowhere above its own."""
    nice, io, policy, oom = [from_bytes(priority[at : at + 4], "little") for at in (0, 4, 8, 12)]
    if priority[12:16] != own[12:16]:
        attempt_quietly(lambda: set_oom_score_adj(oom - (oom >> 31 << 32)))
    if priority[4:8] != own[4:8]:
        KERNEL.ioprio(io)
    if priority[16:] != own[16:]:
        KERNEL.slack(from_bytes(priority[16:], "little"))
    if priority[8:12] != own[8:12]:
        attempt_quietly(lambda: posix.sched_setscheduler(0, policy, posix.sched_param(0)))
    if priority[:4] != own[:4]:
        nice -= nice >> 31 << 32
        attempt_quietly(lambda: posix.setpriority(posix.PRIO_PROCESS, 0, nice))


def set_oom_score_adj(value):
    fd = posix.open("/proc/self/oom_score_adj", posix.O_WRONLY | posix.O_CLOEXEC)
    posix.write(fd, b"%d" % value)
    posix.close(fd)


# --- Notes: what the warm state was made from ----------------------------------------------------


class Recorder:
    """Notes the names that are searched, found or not, and the environment variables read.

    Variables only while an import is in progress: what a program's own code reads is no part of
    the warm state. Works from inside the import system, where no program looks.

    Tracers and profilers do look: 3.11 tells them that hidden frames end, which `coverage` takes
    for the end of the frame below, and later versions of exceptions there. So `hush` quietens
    ours, and what we stand in for is `traced`; in 3.11 that would be quiet as well.
    """

    def __init__(self):
        self.searched = {}
        self.read = []
        self.kept = []
        self.started = []
        # A type says nothing when it is called, and nobody is told of it.
        self.hush, self.is_traced = bool, False

    def be_silent(self, hush):
        if hush is not None:
            self.hush, self.is_traced = hush, TOLD_OF_OURS

    def start(self):
        self.kept.append((BOOTSTRAP, "_find_spec", BOOTSTRAP._find_spec))
        BOOTSTRAP._find_spec = self.watch(BOOTSTRAP._find_spec)

    def settle(self):
        """From here on it counts what decides how modules are imported."""
        self.started.extend(machinery())

    def hear_variables(self, os):
        """Where nobody stands in for the environment itself."""
        for environ in (os.environ, os.environb) if os is not None else ():
            self.kept.append((environ, "encodekey", environ.encodekey))
            environ.encodekey = self.wrap(environ.encodekey)

    def watch(self, find_spec):
        searched, started = self.searched, self.started
        hush, is_traced = self.hush, self.is_traced

        def _find_spec(name, path, target=None):
            silence = hush()
            if name not in searched:
                # A tracer sees what a module does while it is imported, in each run.
                searched[name] = watched() or bool(started) and not same_machinery(started)
            if is_traced:
                return traced(find_spec, (name, path, target))
            silence = None
            try:
                return find_spec(name, path, target)
            finally:
                silence = hush()  # noqa: F841

        return in_place_of(find_spec, hide(_find_spec))

    def wrap(self, encode):
        read, hush, is_traced = self.read, self.hush, self.is_traced

        def encodekey(key):
            if is_traced:
                silence = hush()
                encoded = traced(encode, (key,))
            else:
                try:
                    encoded = encode(key)
                finally:
                    silence = hush()  # noqa: F841
            # A program may have taken away what `sys` has.
            frame = getframe()
            while frame is not None:
                if frame.f_code.co_name == "_find_and_load":
                    read.append(encoded)
                    break
                frame = frame.f_back
            return encoded

        return in_place_of(encode, hide(encodekey))

    def stop(self):
        for owner, name, value in self.kept:
            setattr(owner, name, value)
        self.kept = []

    def notes(self):
        missing = [n for n, own in self.searched.items() if not own and n not in sys.modules]
        return [b"X" + os.fsencode(name) for name in missing] + [b"E" + n for n in self.chosen()]

    def chosen(self):
        """The variables read, without those that change in every shell and were read only
        because a module went through the whole environment."""
        after = dict(zip(posix.environ, list(posix.environ)[1:]))
        chosen, run = {}, []
        for name in self.read + [None]:
            if run and name is not None and after.get(run[-1]) == name:
                run.append(name)
                continue
            whole = len(run) >= WHOLE_RUN_MIN
            chosen.update((each, None) for each in run if not (whole and each in VOLATILE))
            run = [name]
        return chosen

    def in_order(self):
        """`sys.modules` in the order in which the imports began: importers first. Without what
        the program imported in a way of its own: that is not to be had without the program."""
        searched = self.searched
        modules = {n: sys.modules[n] for n in searched if n in sys.modules and not searched[n]}
        for name, module in list(sys.modules.items()):
            if not searched.get(name):
                modules.setdefault(name, module)
        return modules

    def hazards(self):
        """What the program imported in a way of its own."""
        return [b"H%s:finder" % os.fsencode(name) for name, own in self.searched.items() if own]


def in_place_of(function, ours):
    """Ours, which says of itself what the other says."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(ours, name, getattr(function, name))
    return ours


def watched():
    """Whether somebody is told of what runs: a tracer, a profiler, a monitor."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        for tool in 0, 1, 2, 3, 4, 5:
            if monitoring.get_tool(tool) is not None:
                return True
    return sys.gettrace() is not None or sys.getprofile() is not None


def unwatched():
    """Has the program's tracer and profiler not see what we do at its end; what `watch` puts back."""
    tracer, profiler = sys.gettrace(), sys.getprofile()
    if tracer is None and profiler is None:
        return None
    sys.settrace(None)
    sys.setprofile(None)
    return tracer, profiler


def watch(watchers):
    """Puts back what `unwatched` has taken off. Hidden."""
    for watch, watcher in zip((sys.settrace, sys.setprofile), watchers):
        if watcher is not None:
            watch(watcher)


def machinery():
    """What decides how modules are imported."""
    return list(sys.meta_path), list(sys.path_hooks), BUILTINS.__import__


def same_machinery(started):
    """Whether modules are imported as `started` says. A finder that was added behind the others
    (as `six` does) is asked only for what they do not have."""
    finders, hooks, function = started
    return (
        sys.meta_path[: len(finders)] == finders
        and sys.path_hooks[: len(hooks)] == hooks
        and BUILTINS.__import__ is function
    )


def imported_as_ever(modules):
    """Of `modules`, in the order of their imports, those before the first one whose loader the
    program brought along: from there on a finder of its own may have had its say."""
    kept = {}
    for name, module in modules.items():
        loader = getattr(names_of(module).get("__spec__"), "loader", None)
        kind = loader if isinstance(loader, type) else type(loader)
        if kind.__module__ not in BASELINE and not kind.__module__.startswith("importlib."):
            break
        kept[name] = module
    return kept


WHOLE_RUN_MIN = 4
VOLATILE = {b"_", b"OLDPWD", b"PWD", b"SHLVL"}
BOOTSTRAP = sys.modules["_frozen_importlib"]
BUILTINS = sys.modules["builtins"]


def is_temporary(path):
    """Whether it lies where files are made that nobody counts on."""
    given = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    folders = [folder for folder in given if folder] + ["/tmp", "/var/tmp", "/usr/tmp"]
    return path.startswith(tuple([os.path.abspath(folder) + "/" for folder in folders]))


def mapped_objects():
    """The files whose code is mapped: the interpreter, extensions, libraries."""
    paths = {}
    for line in read_file("/proc/self/maps").split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) < 6 or b"x" not in fields[1] or not fields[5].startswith(b"/"):
            continue
        path = fields[5]
        if path.endswith(b" (deleted)"):
            # It was replaced meanwhile, unless it only lent us its memory.
            path = path[: -len(b" (deleted)")]
            if path.startswith(b"/memfd:") or is_temporary(os.fsdecode(path)):
                continue
        if not path.startswith((b"/dev/", b"/proc/", b"/SYSV")):
            paths[path] = None
    return list(paths)


def names_of(module):
    """A module's own names, without waking a lazy one."""
    try:
        return object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}


def preloadable(name, module):
    """Whether importing `name` anew would give this module: not injected, not the program."""
    spec = names_of(module).get("__spec__")
    return name not in ("__main__", "__mp_main__") and getattr(spec, "name", None) == name


def is_of_files(loader):
    kind = type(loader)
    return kind.__module__ in FILE_LOADERS and kind.__name__.endswith("FileLoader")


FILE_LOADERS = "_frozen_importlib_external", "importlib._bootstrap_external"


def leads_to_file(path):
    """Whether there is a file of this name, or an archive that it lies in."""
    while len(path) > 1:
        try:
            mode = posix.stat(path).st_mode & 0o170000
        except (OSError, ValueError):
            path = os.path.dirname(path)
            continue
        return mode == 0o100000
    return False


def notes_of_modules(modules, known, opened=None):
    """`M`, `F` and `D` notes of `modules`, without `M` for those in `known`. Where it is known what
    was opened, a file that is named but never was there (`__file__` may be anything) is one that
    must not appear."""
    notes, files, folders = [], {}, {}
    for name, module in modules.items():
        names = names_of(module)
        if name not in known and preloadable(name, module):
            notes.append(b"M" + os.fsencode(name))
        file = names.get("__file__")
        if isinstance(file, str) and name != "__main__":
            spec = names.get("__spec__")
            loaded = getattr(spec, "origin", None) == file and is_of_files(spec.loader)
            files[os.path.abspath(file)] = loaded
        try:
            for folder in names.get("__path__") or ():
                folders[os.path.abspath(folder)] = None
        except Exception:
            continue
    for folder in sys.path:
        if isinstance(folder, str):
            folders[os.path.abspath(folder)] = None
    for file, loaded in files.items():
        there = opened is None or loaded or file in opened or leads_to_file(file)
        notes.append((b"F" if there else b"C") + os.fsencode(file))
    return notes + [b"D" + os.fsencode(folder) for folder in folders]


class Captured:
    """Descriptors 1 and 2 lead into memory while modules are loaded."""

    def __init__(self):
        self.kept = [posix.dup(1), posix.dup(2)]
        self.memory = posix.memfd_create("hob", 1)
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


def preload_one(program, name, opened, effects):
    """Imports one module; the hazards it showed."""
    hazards = []
    names = {"__name__": "__main__", "__builtins__": BUILTINS}
    file = "<frozen runpy>" if program.kind == MODULE else program.target
    code = compile("__import__(%r)" % name, file, "exec", dont_inherit=True)
    try:
        opened.listen(run_import, code, names)
    except BaseException:
        hazards.append("failed")
    return hazards + effects.effects()


class Effects:
    """What running somebody's code has done to this process that a copy must not share."""

    def __init__(self):
        self.captured = Captured()
        self.streams = [(posix.dup(fd), identity_of(fd)) for fd in (0, 1, 2)]
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


def says_no_site(prefix):
    """Whether an interpreter that was called so runs no start-up code."""
    words = iter(prefix[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        elif word[:1] == "-" and word[:2] != "--":
            for at, letter in enumerate(word[1:], 2):
                if letter == "S":
                    return True
                if letter in "WX" and at == len(word):
                    next(words, None)
                if letter in "WXm":
                    break
    return False


def run_site():
    """Runs the interpreter's start-up code, as it does itself unless it is told not to. Hidden."""
    __import__("site")


def take_back_no_site():
    """The daemon has told the interpreter to run no start-up code before us (`-S`); a program is
    not to see that."""
    at = id(sys.flags) + tuple.__basicsize__ + 8 * NO_SITE
    with open_memory(posix.O_RDWR) as memory:
        known = posix.pread(memory.fileno(), 8, at)
        if sys.flags[NO_SITE] != 1 or known != u64(id(sys.flags[NO_SITE])):
            raise RuntimeError("the interpreter's flags are not where they are looked for")
        posix.pwrite(memory.fileno(), u64(id(0)), at)


def open_memory(flags):
    return _io.FileIO(posix.open("/proc/self/mem", flags | posix.O_CLOEXEC), "r+b")


# Where `sys.flags` has it.
NO_SITE = 6


def start_up(program, opened, effects):
    """Runs start-up code, heard as imports are. What of it each call would do anew cannot be done
    here once for all: then no copy can be made."""
    if not sys.flags.no_site or says_no_site(program.prefix):
        return
    take_back_no_site()
    stopped = None
    try:
        opened.listen(run_site)
    except BaseException as error:
        # It was about to do something that no zygote does, or failed as it does cold.
        stopped = type(error).__name__
    reasons = effects.effects()
    told = opened.of_startup() or ", ".join(reasons) or stopped
    if told:
        raise RuntimeError("start-up code cannot run once for all calls (%s)" % told)
    opened.take_variables(opened.variables)
    if watched():
        # Set where the interpreter starts (`coverage` does so): it would be told of us.
        raise RuntimeError("the interpreter starts with a tracer or profiler")


def import_all(program, names, hearing, role):
    """Imports modules one after the other; the hazards that they showed."""
    (opened, effects, looks), hazards, running = hearing, [], _thread._count()
    for name in names:
        if name in sys.modules or (program.kind == MODULE and is_main(name, program.target)):
            continue
        reasons = preload_one(program, name, opened, effects)
        if _thread._count() > running:
            # A thread of the interpreter's goes on with what its module has begun: in the call.
            running = _thread._count()
            reasons.append("state")
        blamed = opened.hazards(name)
        hazards += ["H%s:%s" % pair for pair in blamed]
        if blamed and "failed" in reasons:
            # It was stopped.
            reasons.remove("failed")
        if sys.argv is not looks.argv:
            sys.argv = looks.argv
            reasons.append("argv")
        for reason in reasons:
            # A standby is not forked: it may have threads.
            if reason != "thread" or role == ZYGOTE:
                hazards.append("H%s:%s" % (name, reason))
        if name in DRAWS.MODULES:
            DRAWS.watch()
        if name in DRAWS.MODULES + PROMISES.MODULES and program.kind != HANDLER:
            PROMISES.watch()
    return hazards


def preload(program, modules, role):
    """Runs start-up code, imports the modules in order, and compiles the script; the notes."""
    global THREADS, DRAWS, PROMISES, ASKED
    recorder, effects = Recorder(), Effects()
    watching, imports = load_beside("watch"), load_beside("imports")
    looks = imports.Looks(program)
    opened = imports.Opened(watching, looks, recorder.read.append)
    THREADS, DRAWS = ANEW.Threads(role), ANEW.Draws(opened.moment)
    PROMISES = opened.promises
    recorder.start()
    opened.start()
    start_up(program, opened, effects)
    BASELINE.update(dict.fromkeys(sys.modules))
    recorder.settle()
    program.locate()
    SEARCHED.update(sys.path[1:])
    first = DRAWS.MODULES
    if program.kind != HANDLER:
        # A handler's copy performs many calls.
        first += PROMISES.MODULES
        PROMISES.watch()
    STREAMS.watch()
    DRAWS.watch()
    sys.modules["__main__"] = main = imports.Main("__main__")
    main.__dict__.update(new_main(None).__dict__)
    main.__dict__[imports.TOLD] = opened.main_looked_at
    names = [os.fsdecode(name) for name in modules]
    hazards = import_all(program, sorted(names, key=lambda name: name not in first),
                         (opened, effects, looks), role)
    early = program.kind == SCRIPT and not program.container
    if early:
        program.load(effects)
    hazards += ["H%s:%s" % pair for pair in opened.holders(program.code)]
    DRAWS.stop()
    STREAMS.unwatch()
    hazards += looks.stop()
    opened.stop()
    sys.modules["__main__"] = new_main(None)
    ASKED = Asked(opened)
    if not THREADS.loaded():
        hazards.append("Hnumpy:thread")
    if not early:
        program.load(effects)
    recorder.stop()
    effects.stop()
    notes = notes_of_modules(recorder.in_order(), BASELINE, opened.read) + recorder.notes()
    # What the interpreter has read of it (`time.tzname`) is kept.
    if os.path.exists("/etc/localtime"):
        notes.append(b"F/etc/localtime")
    files = {os.fsdecode(note[1:]) for note in notes if note[:1] == b"F"}
    notes += [b"F" + path for path in mapped_objects() if os.fsdecode(path) not in files]
    notes += opened.notes(files | {os.path.abspath(program.target)})
    return notes + [os.fsencode(hazard) for hazard in dict.fromkeys(hazards)]


class Asked:
    """What imports asked of their process, with the answers: where a call would get others, they
    are imported anew."""

    def __init__(self, opened):
        self.machine, self.blocking = opened.machine, opened.asked_blocking
        self.signals = opened.signals & SETTABLE
        self.answers = list(opened.asks.values())

    def hold(self, call):
        """Whether a call would be answered likewise."""
        if self.machine is not None and self.machine != posix.uname():
            # It has been given another name since.
            return False
        if self.blocking and not all_blocking() or call.ignored & self.signals:
            return False
        for function, arguments, options, answer in self.answers:
            try:
                now = function(*arguments, **options)
            except Exception as error:
                now = type(error)
            if now != answer:
                return False
        return True


def is_main(name, target):
    """Whether `-m target` executes this module as `__main__`: then it is not imported before."""
    if name == target + ".__main__":
        return True
    if name != target:
        return False
    try:
        spec = borrow("importlib.util").util.find_spec(name)
        return spec is None or spec.submodule_search_locations is None
    except Exception:
        return True


class ForkHook:
    """What `threading` does in the child of each fork: it forgets other threads, and makes the
    locks anew that they may have held.

    A zygote that has never had another thread has nothing to forget, and a cold run begins without
    a fork. So its copies go without, which spares them a hundred page faults. The interpreter
    holds on to the function, and the zygote takes only its code out; a copy puts it back, for the
    forks of its program.
    """

    def __init__(self):
        self.function = None
        try:
            self.take(names_of(sys.modules.get("threading")))
        except Exception:
            # Somebody has made it otherwise: then it runs as ever.
            pass

    def take(self, threading):
        function, main = threading.get("_after_fork"), threading.get("_main_thread")
        if (
            type(function) is FUNCTION
            and function.__globals__ is threading
            and type(main) is threading["_MainThread"]
            and threading["_active"] == {_thread.get_ident(): main}
            and list(threading["_dangling"]) == [main]
            and not threading["_limbo"]
        ):
            self.main, code = main, function.__code__
            function.__code__ = NOTHING
            self.function, self.code = function, code

    def restore(self):
        """In a copy, which has another number than its zygote."""
        if self.function is not None:
            self.function.__code__ = self.code
            if hasattr(self.main, "_set_native_id"):
                self.main._set_native_id()


NOTHING = compile("", "<nothing>", "exec")


# --- A call --------------------------------------------------------------------------------------


class Call:
    """One call in this process, from its `give` on."""

    __slots__ = "number argv env ignored names code main_ns error watchers".split()


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
    if frame[:8] != GIVE_HEAD or length > FRAME_BYTES_MAX or len(fds) != 5:
        raise WireError("a give was expected")
    if HEADER_BYTES + length > len(frame):
        frame = frame + bytes(HEADER_BYTES + length - len(frame))
    while have < HEADER_BYTES + length:
        have += channel.recv_into(memoryview(frame)[have : HEADER_BYTES + length]) or _cut_off()
    return frame, fds


def take_world(program, frame, fds):
    """Takes on the caller's world; the call, ready to run."""
    call = Call()
    call.number, call.ignored = frame[AT_CALL:AT_GROUP], 0
    take_descriptors(fds)
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


GIVE_HEAD = MAGIC + bytes((GIVE, 5, 0, 0))
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
        module = new_main(None)
    elif file == program.target and program.main is not None:
        module = program.main
    else:
        module = new_main(file)
        sys.path_importer_cache.pop(program.target, None)
        sys.path_importer_cache[file] = None
    program.main = None
    call.names = module.__dict__
    sys.modules["__main__"] = module
    return fits


def same_directory(program, file):
    directory = os.path.dirname(os.path.realpath(file))
    return program.directory is None or program.directory == directory


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


# The number of a dummy call.
NO_CALL = u64(0)


def send_end(call, status, finished_ns):
    """Reports the call's end, to the caller first."""
    if posix.getpid() != OWNER:
        return
    # From here on no handler of the program's runs, and SIGPIPE ends nothing.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, ALL_SIGNALS)
    pair = (0, status)
    try:
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
            send_all(COPY_FD, encode_finished(call.number, pair, call.main_ns, finished_ns))
            posix.sched_yield()
            if len(sys.modules) != len(KNOWN):
                new = {n: m for n, m in sys.modules.items() if n not in KNOWN}
                notes = notes_of_modules(imported_as_ever(new), KNOWN)
                if notes:
                    send_all(COPY_FD, encode_notes(call.number, notes))
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
    status = settle_error(call)
    run_exit_hooks(call)
    if not flush_streams():
        return status
    try:
        cleared = clear_up(call)
    except BaseException:
        cleared = False
    if status == INTERRUPTED:
        die_interrupted()
    if not cleared:
        return status
    try:
        send_end(call, status, time.monotonic_ns())
        if LEARNS and posix.getpid() == OWNER:
            PAGES.learn()
    finally:
        posix._exit(status)


# --- Zygote, copy, standby -----------------------------------------------------------------------


class Zygote:
    """The loop of a process that is only forked."""

    def __init__(self, channel):
        self.channel = channel
        self.children = {}
        self.hook = ForkHook()
        self.poller = borrow("select").poll()
        self.poller.register(CHANNEL_FD, 1)

    def loop(self):
        """Forks and reaps; returns in a copy, with its channel and how it is paid for."""
        while True:
            for fd, _ in self.poller.poll():
                if fd != CHANNEL_FD:
                    self.reap(fd)
                    continue
                frame = receive(self.channel)
                if frame is None:
                    posix._exit(0)
                kind, payload, fds = frame
                if kind != FORK or len(fds) != 1:
                    raise WireError("a fork was expected")
                copy = self.fork(fds[0], *decode_fork(payload))
                if copy is not None:
                    return copy

    def fork(self, fd, worker, paid):
        pid, error = 0, b"threads"
        if count_threads() == 1:
            PAGES.refresh()
            leader = KERNEL.dead_child()
            try:
                if leader:
                    posix.setpgid(leader, leader)
                pid = posix.fork()
                if pid == 0:
                    self.hook.restore()
                    join_group(leader)
                    return fd, paid
            except OSError as failure:
                error = str(failure).encode()
            if pid:
                # As the copy does: nobody knows who of the two comes first.
                join_group(leader, pid)
            if leader:
                posix.waitpid(leader, 0)
        posix.close(fd)
        if pid == 0:
            send_all(CHANNEL_FD, encode_forked(worker, 0, error))
            return None
        pidfd = KERNEL.pidfd(pid)
        self.children[pidfd] = pid, worker
        self.poller.register(pidfd, 1)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, u32(pidfd))
        self.channel.sendmsg([encode_forked(worker, pid, b"")], [rights])
        return None

    def reap(self, pidfd):
        pid, worker = self.children.pop(pidfd)
        self.poller.unregister(pidfd)
        # `wait4` imports `resource`: lend it ours.
        lent = "resource" not in sys.modules
        sys.modules.setdefault("resource", resource)
        _, status, usage = posix.wait4(pid, 0)
        if lent:
            del sys.modules["resource"]
        posix.close(pidfd)
        if posix.WIFSIGNALED(status):
            pair = (1, posix.WTERMSIG(status))
        else:
            pair = (0, posix.WEXITSTATUS(status))
        used = int(usage.ru_utime * 1e6), int(usage.ru_stime * 1e6), usage.ru_maxrss
        send_all(CHANNEL_FD, encode_gone(worker, pair, used))

    def leave(self):
        """What a copy does not keep of its zygote."""
        self.channel.detach()
        posix.close(CHANNEL_FD)
        posix.close(PAGES_FD)
        for pidfd in self.children:
            posix.close(pidfd)


def attempt_quietly(step, *arguments):
    """What fails here leaves something as the zygote had it; the program runs all the same."""
    try:
        step(*arguments)
    except Exception:
        pass


def forget():
    """In a child that the program forks: our descriptors are not its own."""
    for fd in KEPT:
        if is_ours(fd):
            posix.close(fd)
    KEPT.clear()


def set_up(program, modules, role):
    """Everything before `ready`; the notes."""
    global KERNEL, STREAMS, ENVIRONMENT, OWN_LIMITS, OWN_PRIORITY, OWN_PROCESSORS
    global OWN_GROUP_AND_UMASK, OWN_LIMITS_AND_PRIORITY, PROMISES, MOMENTS, REHEARSAL
    global ORIG_ARGV, KNOWN, SEARCHED, ENDS, COLLECTS, QUIET, ANEW
    if "t" in sys.abiflags:
        # It may be named like any other, so only it can tell. There a copy's objects do not end
        # in the order in which they end in a fresh process.
        raise RuntimeError("a CPython without the global lock is not kept warm")
    if watched():
        # Set where the interpreter starts (`coverage` does so): it would be told of us.
        raise RuntimeError("the interpreter starts with a tracer or profiler")
    KERNEL = Kernel()
    QUIET = TOLD_OF_OURS and KERNEL.quieten(True)
    KERNEL.find_title()
    KERNEL.die_with_parent(posix.getppid())
    reset_signals()
    ENVIRONMENT = Environment()
    OWN_LIMITS, OWN_PRIORITY = own_limits(), own_priority()
    OWN_LIMITS_AND_PRIORITY = OWN_LIMITS + OWN_PRIORITY
    OWN_PROCESSORS = own_processors()
    ORIG_ARGV = getattr(sys, "orig_argv", None)
    if ORIG_ARGV is not None:
        ORIG_ARGV[:] = program.cold_argv(list(sys.argv))
    STREAMS, ANEW = Streams(), load_beside("anew")
    leave_path()
    SEARCHED = set()
    sys.modules["__main__"] = new_main(None)
    notes = preload(program, modules, role)
    if program.kind == HANDLER:
        program.handler.check()
    # What most callers have; nothing is made before a call comes.
    posix.umask(0o22)
    OWN_GROUP_AND_UMASK = NO_GROUP + u32(0o22)
    MOMENTS = [(renew, sys.modules[name]) for name, renew in RENEWED.items() if name in sys.modules]
    if not PROMISES.given():
        PROMISES = None
    REHEARSAL = load_beside("rehearsal")
    REHEARSAL.rehearse(program)
    ENVIRONMENT.preloaded()
    os.register_at_fork(after_in_child=forget)
    # What only the preload needed is no kind of object that a program would leave alive.
    gc.collect()
    KNOWN = dict.fromkeys(sys.modules)
    gc.collect()
    ENDS = load_beside("ends").Ends()
    if "gc" in KNOWN:
        sys.addaudithook(ENDS.hear)
    COLLECTS = gc.isenabled()
    gc.disable()
    gc.freeze()
    if role == ZYGOTE:
        if program.kind != HANDLER:
            REHEARSAL.practise(program)
            gc.collect()
            gc.freeze()
        # Refused, a copy would already have its call when that is found out.
        posix.close(KERNEL.pidfd(posix.getpid()))
        KERNEL.trim()
    return notes


def load_beside(name):
    """Takes in a file that lies beside this one, in those processes that need it."""
    module = type(sys)("hob " + name)
    module.__dict__.update(worker=OURS, __file__="%s/%s.py" % (BYTECODE.sources, name))
    exec(BYTECODE.load(name), module.__dict__)
    return module


# All of them by now: a name that is new undoes what the interpreter has adapted to the others.
PAGES = LEARNS = HANDLERS = PROMISES = LEARNING = ANEW = None


def take_channel():
    """The channel, in its place; there is nothing to be read where it came."""
    posix.dup2(0, CHANNEL_FD, False)
    null = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(null, 0)
    posix.close(null)
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, CHANNEL_FD)


def make_ready(channel):
    """Does what the daemon asks for, up to `ready`; the program and the role."""
    global HANDLERS, PAGES
    frame = receive(channel)
    if frame is None:
        posix._exit(0)
    if frame[0] != PRELOAD:
        raise WireError("a preload was expected")
    role, kind, target, prefix, modules, argv = decode_preload(frame[1])
    if kind == HANDLER:
        HANDLERS = load_beside("message")
    program = Program(kind, os.fsdecode(target), [os.fsdecode(p) for p in prefix])
    sys.argv[:] = [os.fsdecode(word) for word in argv]
    notes = set_up(program, modules, role)
    PAGES = ANEW.Pages()
    send_all(CHANNEL_FD, encode_ready(role, posix.getpid(), count_threads(), notes))
    return program, role


def serve():
    """Becomes what the daemon asks for; returns in the process that performs, with its call."""
    global OWNER, LEARNS, PROMISES
    channel = take_channel()
    try:
        program, role = make_ready(channel)
    except BaseException:
        # What went wrong is still to be told on it, and no traceback keeps a hidden frame.
        channel.detach()
        raise
    paid = LEARNS = UNPAID
    if role == ZYGOTE:
        parent = posix.getpid()
        zygote = Zygote(channel)
        fd, paid = zygote.loop()
        LEARNS = paid == PAID
        KERNEL.die_with_parent(parent)
        zygote.leave()
        zygote = None
        posix.dup2(fd, COPY_FD, False)
        posix.close(fd)
        DRAWS.renew()
    else:
        posix.dup2(CHANNEL_FD, COPY_FD, False)
        channel.detach()
        posix.close(CHANNEL_FD)
        posix.close(PAGES_FD)
    OWNER = posix.getpid()
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, COPY_FD)
    KEPT[COPY_FD] = identity_of(COPY_FD)
    if program.kind == HANDLER:
        THREADS.restore()
        traced(HANDLERS.serve, (program.handler, channel, role, COLLECTS))
    if paid == PAID:
        PAGES.pay()
        THREADS.restore()
        REHEARSAL.pay(program)
    ENDS.watches = True
    if paid == PAID:
        expect()
        PAGES.start()
    # A plain copy may have been given its call already. It has the one thread of any fork: to look
    # would have the kernel make its part of /proc, and take that down when it ends.
    if paid == PAID or paid == PLAIN and not is_given(channel):
        threads = count_threads() if paid == PAID else 1
        send_all(COPY_FD, encode_ready(COPY, OWNER, threads, []))
    call = take_world(program, *await_give(channel))
    # Also if it was paid for: the caller may have other processors than its zygote.
    THREADS.restore()
    if not make_main(program, call) or not holds(call):
        run_anew(program, call)
    if PROMISES is not None:
        PROMISES = None
    if COLLECTS:
        gc.enable()
    renew_moments()
    channel.detach()
    call.main_ns = time.monotonic_ns()
    return program, call


def holds(call):
    """Whether all that imports were told is so in this call; what they were promised is made."""
    if not ASKED.hold(call):
        return False
    return PROMISES is None or PROMISES.keep(getattr(call, "code", None))


def all_blocking():
    """Whether reading and writing wait, as they do for a zygote's standard streams."""
    try:
        return all(map(posix.get_blocking, (0, 1, 2)))
    except OSError:
        return False


def renew_native(threading):
    main = threading._main_thread
    if hasattr(main, "_set_native_id"):
        main._set_native_id()


def renew_descriptors_max(util):
    util.MAXFD = posix.sysconf("SC_OPEN_MAX")


def renew_start(logging):
    now = time.time_ns() if type(logging._startTime) is int else time.time()
    logging._startTime = now


def renew_authkey(process):
    process.current_process().authkey = posix.urandom(32)


def renew_numbers(style):
    style._id_generator = type(style._id_generator)(from_bytes(posix.urandom(3), "little"))


def renew_year(parser):
    year = time.localtime().tm_year
    parser.DEFAULTPARSER.info._year, parser.DEFAULTPARSER.info._century = year, year // 100 * 100


# What is known to keep something of the moment when it was imported, and how a copy makes it anew.
RENEWED = {
    "threading": renew_native,
    "multiprocessing.util": renew_descriptors_max,
    "logging": renew_start,
    "multiprocessing.process": renew_authkey,
    "dateutil.parser._parser": renew_year,
    "rich.style": renew_numbers,
    "pip._vendor.rich.style": renew_numbers,
}


def renew_moments():
    for renew, module in MOMENTS:
        attempt_quietly(renew, module)


def end_warm(call):
    """Ends a warm call; returns only to let the interpreter finalise, with the exit status."""
    status = conclude(call)
    # Finalisation flushes a stream when its last holder lets go, and what is frozen it would not
    # collect: modules would then be cleared in another order.
    STREAMS.streams.clear()
    gc.unfreeze()
    if status == INTERRUPTED:
        die_interrupted()
    return status


# --- Learning ------------------------------------------------------------------------------------


OWN_FDS = "/proc/self/fd/"


def learn(arguments):
    """Takes the runtime out of a cold run's way; the program and its call."""
    global ORIG_ARGV, LEARNING, KERNEL, QUIET
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
        if not run_site_cold(recorder):
            run_anew(program, call)
    program.locate()
    if watched() or not make_main(program, call):
        run_anew(program, call)
    if program.kind == MODULE or program.container:
        __import__("runpy")
    if RESUME is not None:
        KERNEL = Kernel()
        recorder.be_silent(KERNEL.silence())
        QUIET = TOLD_OF_OURS and KERNEL.quieten(True)
    LEARNING = path, posix.getpid(), recorder
    recorder.start()
    recorder.settle()
    recorder.hear_variables(sys.modules.get("os"))
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


def run_site_cold(recorder):
    """Runs start-up code in a profiling run, where it sees what it sees cold; notes the variables
    that it read. False if only a new process can."""
    try:
        take_back_no_site()
    except (OSError, RuntimeError):
        return False
    main, real = sys.modules["__main__"], posix.environ
    sys.modules["__main__"] = new_main(None)
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


def write_notes(path, owner, recorder):
    if posix.getpid() != owner:
        # A child of the program's.
        return
    recorder.stop()
    notes = notes_of_modules(recorder.in_order(), BASELINE) + recorder.notes() + recorder.hazards()
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
    write_notes(*LEARNING)
    status = settle_error(call)
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
    attempt, serve, make_ready = map(hide, (attempt, serve, make_ready))
    set_up, start_up = hide(set_up), hide(start_up)
    preload, preload_one, import_all = map(hide, (preload, preload_one, import_all))
    as_program, enter = hide(as_program), hide(enter)
    if MODE == "serve":
        _socket, resource = borrow("_socket"), borrow("resource")
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        CHANNEL_FD = 250 if descriptors < 0 else min(250, descriptors - 6)
        COPY_FD, REPLY_FD, PAGES_FD = CHANNEL_FD + 1, CHANNEL_FD + 2, CHANNEL_FD + 3
        GIVE_BUFFER = bytearray(1 << 16)
        GIVE_BUFFERS = [GIVE_BUFFER]
        GIVE_ROOM = _socket.CMSG_SPACE(4 * FRAME_FDS_MAX)
    sys.excepthook = enter
    raise SystemError("the runtime hands over to its own hook")
