"""The one who listens while modules are imported, from its start to its notes."""


class Opened(Hearing, Events, Blame):
    """Notes what the imports open, list, start, ask and change: by audit events, and by stand-ins
    for the functions that no event tells of (`watch.py`).

    A hook cannot be removed by what the interpreter documents, and even an idle one makes
    `copy.deepcopy` take twice as long. So the hook takes itself out of the interpreter's list, and
    the list out of the interpreter: programs run as if there had never been one.
    """

    def __init__(self, watching, looks, read):
        # Whether it is a module's code that runs, and not the runtime's own.
        self.listening = False
        # Each with whether it was there when it was first opened.
        self.read = {}
        # Each with what was there: `-` nothing, `f` a file, `d` a directory, `o` something else.
        self.asked = {}
        # Each with where it leads, as a link; nothing: it is none.
        self.links = {}
        self.listed = set()
        # Functions with their arguments and answers, which each call asks again.
        self.asks = {}
        # Signals whose disposition was asked for, as a mask: a zygote ignores none.
        self.signals = 0
        # Modules that were being imported when something happened that forbids to keep them.
        self.blamed = {}
        self.known = {}
        # Where each of them did so, as a file and a line of its own.
        self.places = {}
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
        # Variables that differ in each call: who reads one is imported there.
        self.volatile = set()
        # Who drew something by chance, with the code that did; and what runs in each copy.
        self.drawn = []
        # Variables that are set past `os.environ`, with who did so.
        self.put = {}
        self.forked = set()
        self.step = self.note
        self.looks, self.variables = looks, None
        self.watching = watching
        self.watch = watching.Watch({
            watching.ASK: self.asks_again, watching.LOOK: self.looks_by, watching.FD: self.by_fd,
            watching.TERM: self.by_terminal, watching.NOW: self.by_moment,
            watching.STATE: self.by_change, watching.AUDIT: self.by_name, "loaded": self.loaded,
        })
        self.variable_read = read
        # Where the caller's directory is known to decide something, the zygote is in it.
        try:
            self.adrift = posix.getcwd() == "/"
        except OSError:
            # It was removed meanwhile.
            self.adrift = False

    def start(self):
        """Before the interpreter's start-up code runs, or any module is imported."""
        sys.addaudithook(self)
        self.variables = self.watching.Variables(posix.environ)
        self.variables.one, self.variables.all = self.one_variable, self.all_variables
        self.watch.replace(sys.modules["posix"], "environ", self.variables)
        self.watch.start()
        if "os" in sys.modules:
            # It was imported before: the interpreter was told to run no start-up code.
            self.take_variables(self.variables)
        worker.STREAMS.renew(self.raw)
        archives = getattr(sys.modules.get("zipimport"), "zipimporter", None)
        if archives is not None:
            self.watch.replace(archives, "__init__", self.archive(archives.__init__))
        for kind in (worker._io.TextIOWrapper,):
            self.watch.method(kind, "line_buffering", self.buffering)

    def listen(self, run, *arguments):
        """Runs somebody else's code, which is heard."""
        self.listening = True
        try:
            return run(*arguments)
        finally:
            self.listening = False

    listen = hide(listen)

    def raw(self, fd, mode):
        made = self.watching.Raw(fd, mode, None)
        made.told = self.stream
        return made

    def stream(self, what):
        if self.listening:
            if what == "terminal":
                self.looks.note(what)
            else:
                self.moment()

    def archive(self, original):
        """Whether there is an archive the import system asks by itself, of which nobody hears. What
        its own search finds is noted elsewhere."""

        def __init__(importer, path):
            if self.listening and isinstance(path, (str, bytes)) and not searches(outside()):
                self.archived(path)
            original(importer, path)

        return hide(__init__)

    def archived(self, path):
        there = self.whole(path)
        if there is None or kind_of(there) != "d":
            self.look("stat", (path,), {})
        else:
            # It is none, whatever lies in it.
            self.asked.setdefault(there, "d")

    def buffering(self, original):
        """Whether a stream is flushed by lines depends on whether it is a terminal."""

        def line_buffering(stream):
            if any(stream is each for each in (sys.__stdin__, sys.__stdout__, sys.__stderr__)):
                self.stream("terminal")
            return original.__get__(stream)

        return property(hide(line_buffering))

    def looker(self, owner, name, tell, instead=None):
        self.watch.looker(owner, name, self.heard(tell), instead)

    def heard(self, tell):
        return lambda arguments, options: tell(arguments, options) if self.listening else None

    def one_variable(self, name):
        if self.listening and not self.is_left_out(name):
            self.variable_read(name)

    def all_variables(self):
        if self.listening and not (self.volatile and self.leaves_out()):
            self.whole_environment = True

    def is_left_out(self, name):
        """Whether the call itself has this variable read: by one that is imported there anyway, or
        because each call has another value."""
        if not self.volatile:
            return False
        if name in self.volatile:
            return self.leaves_out()
        return any(self.blamed.get(each) == "variable" for each in self.who()[0])

    def leaves_out(self):
        """Leaves who imports right now to the call; False for code that is run ahead in any case."""
        return bool(self.who()[0]) and self.blame("variable")

    def take_variables(self, data):
        """Where `os` keeps them."""
        names = names_of(sys.modules.get("os"))
        for environ in (names.get("environ"), names.get("environb")):
            if "_data" in names_of(environ):
                environ._data = data

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
        self.stop_variables()
        self.watch.stop()
        worker.STREAMS.renew()
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

    def stop_variables(self):
        """The environment is the interpreter's own dictionary again, wherever ours is kept."""
        data, variables = posix.environ, self.variables
        variables.one = variables.all = self.watching.ignore
        kept = dict(dict.items(variables))
        data.clear()
        data.update(kept)
        self.take_variables(data)
        self.variables = None
        self.watching.put_back({id(variables): (variables, data)})

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
        """`C`, `A`, `L`, `S` and `W` notes, and an `F` for what was read and is gone; without those in
        `files`."""
        notes = [b"C" + path for path in SYSTEM_FILES] + [b"W"] * self.drifts
        notes += [b"E*"] * self.whole_environment
        places = [pair for pair in self.places.items() if pair[0] in self.known]
        notes += [os.fsencode("S%s:%s" % pair) for pair in places]
        for path, was_there in self.read.items():
            # Compiled code that was not there is written meanwhile.
            if path in files or path.endswith(".pyc") and not was_there:
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
        for path, kind in self.asked.items():
            if path not in self.read and path not in files and not path.endswith(".pyc"):
                notes.append(b"A" + kind.encode() + os.fsencode(path))
        for path in steps(self.looks.program):
            self.links.setdefault(path, link_of(path))
        for path, target in self.links.items():
            path, target = os.fsencode(path), os.fsencode(target)
            notes.append(b"R%d:" % len(path) + path + target)
        listed = [path for path in self.listed if os.path.isdir(path)]
        return notes + [b"L" + os.fsencode(path) for path in listed]
