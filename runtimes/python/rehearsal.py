"""What calls run of the standard library and of `worker.py`, run ahead (docs/why/client-path.md).

`worker.py` loads this file where modules are preloaded, and puts itself in as `worker`.

Owns: dummy calls of those modules of the standard library that are loaded. From 3.11 on the
interpreter adapts code to what it has met there, and a fresh process has met nothing; copies
inherit what their zygote has met, and the regular expressions that it has compiled. And dummy
calls of the whole runtime: some in each zygote (`practise`), one in each copy that is paid for.

Invariants
- Only code of the standard library and of hob runs, and none of the program's: where anybody has
  replaced something (`as_made`), or watches what runs, nothing of the library is rehearsed.
- Nothing is kept that depends on a file, a variable or the moment, and no module is loaded by it.
"""

import sys

worker = globals()["worker"]
os = worker.os
posix, time = worker.posix, worker.time
names_of = worker.names_of

LIBRARY = os.path.dirname(os.__file__) + "/"
# What pip puts in lies below it.
NOT_LIBRARY = (LIBRARY + "site-packages/", LIBRARY + "dist-packages/")
# None before 3.10, where nothing is rehearsed.
NAMES = getattr(sys, "stdlib_module_names", ())
METHOD = type(worker.Kernel.symbol.__get__(worker))
ROUNDS = 3


def rehearse(program):
    """Calls what is loaded of `PARTS`, and lets go of it all."""
    if worker.watched():
        return
    if STARTER in getattr(program.code, "co_consts", ()):
        PARTS[starter] = "re", "builtins"
    before = set(sys.modules)
    for part, needed in PARTS.items():
        attempt(part, [sys.modules.get(name) for name in needed])
    for new in set(sys.modules) - before:
        package, _, name = new.rpartition(".")
        names_of(sys.modules.get(package)).pop(name, None)
        del sys.modules[new]


def attempt(part, modules):
    try:
        if None not in modules and all(map(as_made, modules)):
            for _ in range(ROUNDS):
                part(*modules)
    except BaseException:
        # A parser that does not like its arguments ends the program; and what others have put
        # into a module may be anything.
        pass


def as_made(module):
    """Whether the module is the library's own, with all that it came with: a program may have
    brought another of that name, or have put functions of its own into it."""
    names = names_of(module)
    own = names.get("__name__")
    file = names.get("__file__")
    if file is not None and not of_library(file):
        return False
    values = list(names.values())
    for value in names.values():
        if isinstance(value, type) and value.__module__ == own:
            values += value.__dict__.values()
    return all(map(is_library, values))


def is_library(value):
    """Whether calling it, or something of it, runs the library's code."""
    if type(value) in (staticmethod, classmethod, METHOD):
        value = value.__func__
    elif type(value) is property:
        return all(is_library(each) for each in (value.fget, value.fset, value.fdel))
    if type(value) is worker.FUNCTION:
        return of_library(value.__code__.co_filename)
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__ == "functools" and kind is not value:
        return is_library(getattr(value, "__wrapped__", getattr(value, "func", None)))
    return kind.__module__.partition(".")[0] in NAMES


def of_library(file):
    # What has no file is frozen, or made by the library itself.
    return file[:1] == "<" or file.startswith(LIBRARY) and not file.startswith(NOT_LIBRARY)


def arguments(argparse, gettext, *_):
    """A parser of every kind of argument, with groups and commands, and what it parses. A
    catalogue of messages that is found meanwhile is a file, and not kept."""
    kept = dict(gettext._translations)
    try:
        parser = argparse.ArgumentParser(prog="x", usage="%(prog)s [x]", description="x")
        commands = parser.add_subparsers(dest="command", metavar="x")
        for name in ("one", "two", "more"):
            command = commands.add_parser(name, help="x", description="x")
            group = command.add_argument_group(title="x", description="x")
            either = command.add_mutually_exclusive_group(required=False)
            for number, to in enumerate((command, group, either)):
                options(to, "--%s" % "abc"[number])
            command.add_argument("p", nargs="?", help="x")
            command.add_argument("q", nargs="*", default=[])
        parser.add_argument("-V", "--version", action="version", version="x")
        parser.add_argument("-q", "--quiet", action="store_true")
        parser.parse_args(["-q", "one"])
        parser.parse_known_args(["two", "x", "--at-1", "1", "--no-such"])
    finally:
        gettext._translations.clear()
        gettext._translations.update(kept)


def options(to, prefix):
    for n in "123":
        name = prefix + "%s-" + n
        to.add_argument(name % "s", action="store_true", help="x")
        to.add_argument(name % "f", action="store_false", dest="f", help="x")
        to.add_argument(name % "t", default=1, type=int, metavar="X", help="x %(default)s")
        to.add_argument(name % "u", choices=["a", "b"], default="a", help="x")
        to.add_argument(name % "v", action="append", nargs="*", default=[])
        to.add_argument(name % "w", action="store_const", const=1)
        to.add_argument(name % "x", action="count", default=0)


def starter(re, *_):
    re.sub(STARTER, "", "x")


# What pip puts into each command that it makes: it is compiled before anything else happens.
STARTER = r"(-script\.pyw|\.exe)?$"


def installed(metadata, *_):
    """The entry points of what is installed, as they are looked for. Afterwards it is not known
    any more what lies in which directory."""
    finders = [getattr(finder, "find_distributions", None) for finder in sys.meta_path]
    if not all(finder is None or is_library(finder) for finder in finders):
        return
    try:
        some = list(metadata.MetadataPathFinder.find_distributions())
        if len(some) <= INSTALLED_MAX:
            metadata.entry_points(group="x")
    finally:
        metadata.FastPath.__new__.cache_clear()


# Each takes a tenth of a millisecond, and a zygote is waited for.
INSTALLED_MAX = 200
# Each with the modules that it is given, all of which must be as they were made.
PARTS = {
    arguments: ("argparse", "gettext", "shutil", "re", "os", "locale", "posixpath", "genericpath",
                "builtins"),
    installed: ("importlib.metadata", "pathlib", "re", "os", "io", "itertools", "functools",
                "operator", "collections", "posixpath", "genericpath", "builtins"),
}


# --- The runtime's own way ----------------------------------------------------------------------

# 3.11 adapts what has been called eight times, 3.12 and later what runs for the second time.
CALLS = 0 if sys.version_info < (3, 11) else 12
NOTHING = compile("", "<dummy>", "exec")


def practise(program):
    """Dummy calls in a zygote: its copies find the runtime's code adapted, and look up far less,
    in memory that is in no cache."""
    kept = [posix.dup(fd) for fd in (0, 1, 2)]
    for _ in range(CALLS):
        call_nothing(program)
    for fd, number in enumerate(kept):
        posix.dup2(number, fd)
        posix.close(number)
    worker.KEPT.clear()
    worker.KERNEL.reset_title()
    program.called = None, None


def pay(program):
    """A dummy call in a copy, for its pages."""
    call_nothing(program)
    worker.gc.collect()
    worker.gc.freeze()
    # After the freeze: frozen, its names would never be collected.
    if program.kind != worker.BARE:
        program.main = worker.new_main(program.target)


def call_nothing(program):
    """A call from its `give` to its `ended`, of a program that does nothing; all is put back but
    the descriptors 0 to 2 and the title."""
    near, far = worker._socket.socketpair(worker._socket.AF_UNIX, worker._socket.SOCK_STREAM)
    argv = os.fsencode(program.target) + b"\0"
    send_give(near, argv)
    main, path, argv0 = sys.modules["__main__"], list(sys.path), list(sys.argv)
    worker.expect()
    # Both ways: for callers whose streams cannot seek, and for those whose can.
    worker.STREAMS.made.clear()
    call = worker.take_world(program, *worker.await_give(far))
    worker.STREAMS.renew()
    program.called = argv, call.argv
    if worker.make_main(program, call) and worker.ASKED.hold(call):
        worker.renew_moments()
        call.main_ns = time.monotonic_ns()
        call.error = None
        worker.traced(exec, (NOTHING, call.names))
        call.watchers = worker.unwatched()
        worker.as_program(call, worker.gc.isenabled)
        worker.settle_error(call)
        worker.flush_streams()
        worker.clear_up(call)
        end_nothing(call)
    else:
        posix.close(worker.REPLY_FD)
    sys.modules["__main__"] = main
    sys.path[:], sys.argv[:] = path, argv0
    near.close()
    far.close()
    # The next caller's environment often differs in a value or two (the directory that it came
    # from): that way is gone too, there and back.
    environment = worker.ENVIRONMENT
    environment.take(b"HOB_PAID=1\0" + environment.blob)
    environment.take(environment.blob)


def send_give(near, argv):
    """A `give` of these arguments and of this process's own world, with nothing to read or write."""
    blob = worker.ENVIRONMENT.blob
    payload = worker.NO_CALL + worker.OWN_GROUP_AND_UMASK
    payload += worker.INTERNAL_SIGNALS + worker.OWN_LIMITS_AND_PRIORITY
    payload += worker.u32(1) + worker.encode_blob(argv)
    payload += worker.u32(blob.count(b"\0")) + worker.encode_blob(blob)
    payload += worker.encode_blob(worker.OWN_PROCESSORS[0]) + worker.NO_DESCRIPTORS
    null = posix.open("/dev/null", posix.O_RDWR)
    cwd = posix.open(".", posix.O_RDONLY | posix.O_DIRECTORY)
    reply = posix.dup(null)
    rights = b"".join(map(worker.u32, (null, null, null, cwd, reply)))
    frame = worker.encode_frame(worker.GIVE, payload, 5)
    near.sendmsg([frame], [(worker._socket.SOL_SOCKET, worker._socket.SCM_RIGHTS, rights)])
    for fd in (null, cwd, reply):
        posix.close(fd)


def end_nothing(call):
    """Answers to nobody, which closes the answer's descriptor; the daemon is not told."""
    signals, owner = worker._signal, worker.OWNER
    copy = worker.KEPT.pop(worker.COPY_FD, None)
    mask = signals.pthread_sigmask(signals.SIG_BLOCK, ())
    try:
        worker.OWNER = posix.getpid()
        worker.send_end(call, 0, time.monotonic_ns())
    finally:
        worker.OWNER = owner
        signals.pthread_sigmask(signals.SIG_SETMASK, mask)
    if copy is not None:
        worker.KEPT[worker.COPY_FD] = copy
