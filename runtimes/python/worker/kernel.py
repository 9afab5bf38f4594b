"""The kernel, as far as the standard library does not reach it."""

# The numbers of `ioprio_set` and `ioprio_get`, which no C library wraps.
IOPRIO_CALLS = {"x86_64": (251, 252), "aarch64": (30, 31), "riscv64": (30, 31)}


def nameless_file():
    """A file without a name: in memory, or in a folder where the system refuses that."""
    try:
        return posix.memfd_create("hob", 1)
    except (AttributeError, OSError):
        pass
    flags = posix.O_TMPFILE | posix.O_RDWR | posix.O_CLOEXEC
    try:
        return posix.open("/dev/shm", flags, 0o600)
    except OSError:
        return posix.open("/tmp", flags, 0o600)


def write_own(at, word):
    """Writes 8 bytes of this process's own memory. Its file may be for reading only, as the whole of
    `/proc` is in some containers."""
    try:
        memory = posix.open("/proc/self/mem", posix.O_RDWR | posix.O_CLOEXEC)
    except OSError:
        kernel = Kernel()
        if kernel.ctypes is None:
            raise
        kernel.pointer.from_address(at).value = from_bytes(word, sys.byteorder)
        return
    try:
        posix.pwrite(memory, word, at)
    finally:
        posix.close(memory)


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
            try:
                return posix.pidfd_open(pid, 0)
            except OSError as refused:
                raise OSError(refused.errno, "pidfd_open: " + refused.strerror) from None
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
