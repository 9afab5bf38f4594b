"""Which objects may die with their process, and which the interpreter must finalise
(docs/fidelity.md, *How a program ends*).

`worker.py` loads this file where modules are preloaded, and puts itself in as `worker`.

Owns: the list of kinds of objects whose end nobody can see, and the question whether a call leaves
any other. A call that does is finalised by the interpreter itself, before its end is told.

Invariants
- A kind that is not on the list is taken for one whose end can be seen.
- Asking changes nothing: no object is let go, no code of the program's runs.
"""

import sys

worker = globals()["worker"]
gc, _io = worker.gc, worker._io

FUNCTION = worker.FUNCTION
HEAP_TYPE, TRACKED = 1 << 9, 1 << 14
# Where a type keeps what is called when an object of it goes: behind its name, size and item size.
AT_DEALLOC = object.__basicsize__ + 8 + 8 + 16

# Modules of which no kind does anything at its end but give back memory, by their first name.
HARMLESS_MODULES = frozenset((
    "builtins", "collections", "itertools", "functools", "operator", "_operator", "re", "_sre",
    "types", "typing", "_typing", "decimal", "fractions", "datetime", "zoneinfo", "_zoneinfo",
    "_struct", "struct", "_json", "array", "_random", "_csv", "_bisect", "_heapq", "_hashlib",
    "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2", "_hmac", "unicodedata",
    "_elementtree", "xml", "pyexpat", "zlib", "_bz2", "_lzma", "_abc", "abc", "_codecs",
    "_multibytecodec", "contextvars", "_contextvars", "hamt", "time", "importlib", "_imp",
    "_frozen_importlib", "_frozen_importlib_external", "zipimport", "_ast", "ast", "_symtable",
    "string", "_string", "errno", "_locale", "_opcode", "_collections", "_functools", "enum",
    "pwd", "grp", "resource", "os", "sys", "dataclasses", "_pickle", "_statistics", "_queue",
    "_weakrefset", "_warnings", "warnings", "numbers", "ctypes", "_ctypes",
    "_tokenize", "symtable", "_suggestions", "_datetime", "_decimal", "inspect",
)).union(worker.known("harmless"))
# Kinds of other modules that are as harmless.
HARMLESS_KINDS = frozenset((
    "_thread.lock", "_thread.RLock", "_thread._local", "_thread._localdummy",
    "weakref.CallableProxyType", "weakref.ProxyType", "posix.stat_result", "posix.uname_result",
    "posix.DirEntry", "posix.sched_param", "select.poll", "_io.StringIO", "_io.BytesIO",
    "_io._BytesIOBuffer", "_io.IncrementalNewlineDecoder", "_ssl._SSLContext",
    "_ssl.Certificate", "ssl.SSLContext", "signal.struct_siginfo", "_thread._ExceptHookArgs",
    "_thread._excepthook_args", "_thread._localimpl", "mmap.mmap", "weakref.ReferenceType",
    "weakref.ProxyTypes", "weakproxy.weakproxy",
))
STREAM = _io._IOBase


class Ends:
    """What is known of kinds, and of what there was before any call."""

    def __init__(self):
        self.harmless = set()
        # Objects in C of kinds that nobody knows, from before any call: they have done nothing yet.
        self.before = set()
        self.dealloc = None
        if worker.KERNEL.ctypes is not None:
            self.dealloc = self.dealloc_of(Ends)
        self.mypyc = code_of("__mypyc.")
        tracked = gc.get_objects()
        held = gc.get_referents(*tracked)
        kinds = set(map(type, tracked)).union(map(type, held))
        unknown = {kind for kind in kinds if self.is_unknown(kind)}
        for each in self.of_kinds(unknown, tracked, held):
            self.before.add(id(each))
        # Whether a call runs in which somebody may ask for all objects.
        self.watches = False
        # What a module leaves at its import is finalised by a cold run as what a call leaves.
        self.always = self.are_seen(tracked, held)

    def hear(self, event, arguments):
        """Whoever asks for all objects sees those of the imports too; till then these are kept from
        the collector (`gc.freeze`), so that the end of a call need not look at them."""
        if self.watches and (event == "gc.get_objects" or event == "gc.get_referrers"):
            self.watches = False
            gc.unfreeze()

    @staticmethod
    def of_kinds(kinds, tracked, held):
        """Objects of these kinds; the collector tracks what can hold others, and those are not
        looked for among what is held."""
        found = [each for each in tracked if type(each) in kinds] if kinds else []
        if any(not kind.__flags__ & TRACKED for kind in kinds):
            found += [each for each in held if type(each) in kinds]
        return found

    def dealloc_of(self, kind):
        """The address of the function that ends an object of this type."""
        return worker.KERNEL.pointer.from_address(id(kind) + AT_DEALLOC).value

    def in_c(self, kind):
        """Whether it is none that a `class` statement made."""
        if not kind.__flags__ & HEAP_TYPE:
            return True
        # Compiled by mypyc: a class, or what a function keeps, as Python would have it.
        if "__mypyc_attrs__" in kind.__dict__ or self.is_of_mypyc(kind):
            return False
        return self.dealloc is None or self.dealloc_of(kind) != self.dealloc

    def is_of_mypyc(self, kind):
        """Whether the code that ends an object of this type is in a library that mypyc has made; its
        generators and closures run nothing of the program's then."""
        if self.dealloc is None or not self.mypyc:
            return False
        at = self.dealloc_of(kind)
        return any(first <= at < last for first, last in self.mypyc)

    def is_unknown(self, kind):
        return kind not in self.harmless and not is_asked(kind) and (
            self.in_c(kind) and not self.is_harmless(kind)
        )

    def is_harmless(self, kind):
        """Whether nobody sees how an object of this kind ends."""
        for base in kind.__mro__:
            if "__del__" in base.__dict__:
                return False
            if self.in_c(base):
                module = base.__module__ if type(base.__module__) is str else ""
                known = module.partition(".")[0] in HARMLESS_MODULES
                if not known and module + "." + base.__name__ not in HARMLESS_KINDS:
                    return False
        self.harmless.add(kind)
        return True

    def is_seen(self, alive):
        """Whether anybody could see how one of these ends, or of what they refer to."""
        if gc.callbacks:
            # They are told of the collections of the end.
            return True
        held = gc.get_referents(*alive)
        if sys.warnoptions:
            # Objects that warn at their end, and hold nothing, may lie in a module of before.
            for module in list(sys.modules.values()):
                held += worker.names_of(module).values()
        return self.are_seen(alive, held)

    def are_seen(self, tracked, held):
        kinds = set(map(type, tracked)).union(map(type, held)) - self.harmless
        asked = set()
        for kind in kinds:
            if is_asked(kind):
                asked.add(kind)
            elif not self.is_harmless(kind):
                if not self.in_c(kind):
                    return True
                asked.add(kind)
        found = self.of_kinds(asked, tracked, held)
        return any(id(each) not in self.before and ends_seen(each) for each in found)


def code_of(part):
    """Where the code lies of libraries with this in their names."""
    found = []
    for line in worker.read_file("/proc/self/maps").split(b"\n"):
        if part.encode() in line and b" r-xp " in line:
            first, _, last = line.partition(b" ")[0].partition(b"-")
            found.append((int(first, 16), int(last, 16)))
    return found


REFERENCE = worker.borrow("_weakref").ref


def generator():
    yield


async def coroutine():
    pass


async def stream_of():
    yield


def kinds_in_frames():
    """Kinds of which each object has a frame that may have something left to do."""
    waiting = coroutine()
    kinds = type(generator()), type(waiting), type(stream_of())
    waiting.close()
    return kinds


EACH = kinds_in_frames()
GENERATOR = EACH[0]


def is_asked(kind):
    """Whether it depends on the object what is seen of its end."""
    return kind in EACH or issubclass(kind, (REFERENCE, STREAM))


def ends_seen(thing):
    """Of one object of a kind that may be harmless or not."""
    kind = type(thing)
    if kind is GENERATOR:
        # One that has not begun has nothing to end.
        return is_begun(thing) and has_blocks(thing.gi_code)
    if kind in EACH:
        return (thing.cr_frame if hasattr(thing, "cr_frame") else thing.ag_frame) is not None
    if isinstance(thing, REFERENCE):
        callback = REFERENCE.__callback__.__get__(thing)
        return callback is not None and not is_of_library(callback)
    return not isinstance(thing, STREAM) or is_open(thing)


def is_begun(generator):
    if hasattr(GENERATOR, "gi_suspended"):
        return generator.gi_suspended
    return generator.gi_frame is not None and generator.gi_frame.f_lasti >= 0


def has_blocks(code):
    """Whether a function has a `try` or a `with`."""
    if sys.version_info < (3, 11):
        return any(code.co_code[at] in BLOCKS for at in range(0, len(code.co_code), 2))
    entries = sum(byte >> 7 for byte in code.co_exceptiontable)
    # From 3.12 on each generator has one itself.
    return entries > (sys.version_info >= (3, 12))


BLOCKS = [number for name, number in worker.borrow("opcode").opmap.items() if name[:6] == "SETUP_"]


def is_of_library(callback):
    """Whether it is what the library itself puts at the end of a weak reference; of those that call
    others (`weakref.finalize`) all were called with the exit hooks."""
    function = getattr(callback, "__func__", callback)
    code = getattr(function, "__code__", None)
    if code is None:
        return type(function).__module__ in LIBRARY_CALLERS
    file = code.co_filename
    return file.startswith("<frozen ") or file.startswith(LIBRARY) and not file.startswith(OTHERS)


LIBRARY_CALLERS = "weakref", "builtins", "functools"
LIBRARY = worker.os.path.dirname(worker.os.__file__) + "/"
OTHERS = LIBRARY + "site-packages/", LIBRARY + "dist-packages/"
# By identity, for whoever holds a stream keeps it from being flushed at its end.
STANDARD = set()
for _text in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
    if _text is not None:
        STANDARD.update((id(_text), id(_text.buffer)))
    del _text


def is_open(stream):
    """Whether a stream would be closed, or flushed, at its end: not one in memory, nor one of the
    interpreter's own."""
    kind = type(stream)
    if kind in (_io.StringIO, _io.BytesIO) or id(stream) in STANDARD:
        return False
    try:
        if kind is _io.FileIO:
            return not stream.closed and stream.closefd
        return kind.__module__ != "_io" or not stream.closed
    except Exception:
        return True
