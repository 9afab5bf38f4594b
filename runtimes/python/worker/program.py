"""The program: what is called, how its code is had, and the `__main__` that it runs in."""


# What a zygote has loaded below programs: its copies are told theirs.
TOLD_LATER = BARE, INSTALLED


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
        # The `__main__` for a script that is named as the target is, and one that start-up code saw.
        self.main = self.begun = None
        self.code = None
        self.identity = None
        self.container = False
        # The arguments of its rehearsal: as they came, and as words.
        self.called = None, None
        # What stands first on sys.path; None if the interpreter was told to put nothing there.
        self.directory = None
        # A handler's target is split by its own runtime (`message.py`), an app's by `web.py`.
        self.handler = None
        # What it imports first and was loaded ahead, and what was there before that.
        self.steps, self.before = [], {}
        # Whether it is now known to begin otherwise, and whether what was loaded ahead knows its name.
        self.edited = self.is_named = False

    def locate(self):
        """Puts the program's directory on `sys.path`."""
        own = has_own_directory()
        if self.kind == BARE:
            return
        if self.kind == HANDLER:
            self.handler = HANDLERS.Loaded(self.target)
            self.directory = self.handler.directory
        elif self.kind in (SCRIPT, INSTALLED) and self.importer():
            self.directory = self.target
        elif own and self.kind in (SCRIPT, INSTALLED):
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
        if self.kind in TOLD_LATER:
            return
        if self.kind == HANDLER:
            self.handler.load()
            return
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
        data = read_file(path)
        if agreed_steps(self, self.steps, self.before, data) < len(self.steps):
            self.edited = True
            raise ValueError("it imports something else first")
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


def new_main(file, module=None):
    """A `__main__` module as this version of the interpreter makes it; or one that start-up code has
    seen, and now is the program's."""
    if module is None:
        module = type(sys)("__main__")
        module.__dict__.clear()
    names = module.__dict__
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
