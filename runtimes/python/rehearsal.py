"""What programs run of the standard library when they start, run ahead (docs/why/client-path.md).

`worker.py` loads this file where modules are preloaded, and puts itself in as `worker`.

Owns: dummy calls of those modules of the standard library that are loaded. From 3.11 on the
interpreter adapts code to what it has met there, and a fresh process has met nothing; copies
inherit what their zygote has met, and the regular expressions that it has compiled.

Invariants
- Only code of the standard library runs, and none of the program's: where anybody has replaced
  something (`as_made`), or watches what runs, nothing is rehearsed.
- Nothing is kept that depends on a file, a variable or the moment, and no module is loaded by it.
"""

import sys

worker = globals()["worker"]
os = worker.os
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
