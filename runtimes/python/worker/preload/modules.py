"""Notes of modules: which files the warm state was made from."""

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
