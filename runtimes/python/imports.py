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
promises = worker.load_beside("promises")
outside = promises.outside


class Stop(BaseException):
    """Ends an import that is about to change something outside. In the call it may."""


class Opened:
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
        self.promises = promises.Promises(self, importing)
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

    # --- What is told of a function of each class -------------------------------------------------

    def asks_again(self, module, name):
        function = getattr(sys.modules[module], name)

        def tell(arguments, options):
            if module == "posix" and arguments and type(arguments[0]) in (str, bytes):
                self.whole(arguments[0])
            chain = self.who()[0]
            if worker.RENEWED.get(chain and chain[0]):
                return None
            key = name, repr(arguments), repr(options)
            return lambda answer: self.asks.__setitem__(key, (function, arguments, options, answer))

        return self.heard(tell)

    def looks_by(self, module, name):
        return self.heard(lambda arguments, options: self.look(name, arguments, options))

    def by_fd(self, module, name):
        def tell(arguments, options):
            given = [*arguments[:2], *options.values()] if name in OF_TWO else arguments[:1]
            if any(is_standard_stream(each) for each in given or list(options.values())[:1]):
                self.moment()

        return self.heard(tell)

    def by_terminal(self, module, name):
        def tell(arguments, options):
            if not arguments or is_standard_stream(arguments[0]):
                self.looks.note("terminal")

        return self.heard(tell)

    def by_moment(self, module, name):
        return self.heard(self.moment)

    def by_change(self, module, name):
        return self.heard(self.change)

    def by_name(self, module, name):
        """What no class says: of some an audit event tells."""
        if name in CLOCK:
            return self.heard(self.clock(CLOCK[name]))
        if name in ("getpwuid", "getpwnam", "getpwall", "getspnam", "getspall", "getgrgid",
                    "getgrnam", "getgrall"):
            return self.heard(self.files(*USER_FILES))
        if name.startswith(("getserv", "getproto")):
            return self.heard(self.files(*SERVICE_FILES))
        tells = {
            "getcwd": self.cwd, "getcwdb": self.cwd, "uname": self.ask_machine,
            "get_blocking": self.ask_blocking, "getpid": self.number, "open": self.opens_at,
            "getsignal": self.disposition, "signal": self.disposition,
            "generate_time_safe": self.by_machine,
            "poll": self.poll, "epoll": self.poll, "register_at_fork": self.at_fork,
        }
        return self.heard(tells[name]) if name in tells else None

    def loaded(self, name, module):
        """A module in C was made, of which nobody has bound anything yet."""
        if name == "_datetime":
            for kind, names in ((module.datetime, ("now", "utcnow")), (module.date, ("today",))):
                for each in names:
                    self.watch.method(kind, each, self.of_now)
        elif name == "_ssl":
            for each in ("set_default_verify_paths", "load_verify_locations", "load_cert_chain"):
                self.watch.method(module._SSLContext, each, self.certificates(each))
        elif name == "_random":
            for each in ("random", "getrandbits", "getstate"):
                self.watch.method(module.Random, each, self.of_chance(module.Random))

    def of_now(self, original):
        def now(kind, *arguments, **options):
            if self.listening:
                self.moment()
            return original.__get__(None, kind)(*arguments, **options)

        return classmethod(hide(now))

    def of_chance(self, kind):
        """A generator that is not of `random` is seeded by chance, and by nobody else."""

        def wrap(original):
            def draw(generator, *arguments):
                if self.listening and type(generator) is kind:
                    self.moment()
                return original(generator, *arguments)

            return hide(draw)

        return wrap

    def certificates(self, name):
        def wrap(original):
            def load(context, *arguments, **options):
                if self.listening and name == "set_default_verify_paths":
                    self.usual_certificates()
                elif self.listening:
                    for path in (*arguments, *options.values()):
                        if isinstance(path, (str, bytes)) and is_there(path):
                            self.look("stat", (path,), {})
                return original(context, *arguments, **options)

            return hide(load)

        return wrap

    def usual_certificates(self):
        """The library reads the file by itself, and looks into the directory at each handshake."""
        of_file, file, of_directory, _ = sys.modules["_ssl"].get_default_verify_paths()
        for name in (of_file, of_directory):
            self.variable_read(os.fsencode(name))
        path = os.path.abspath(posix.environ.get(os.fsencode(of_file), os.fsencode(file)))
        self.read.setdefault(os.fsdecode(path), is_there(path))

    def one_variable(self, name):
        if self.listening:
            self.variable_read(name)

    def all_variables(self):
        self.whole_environment |= self.listening

    def take_variables(self, data):
        """Where `os` keeps them."""
        names = names_of(sys.modules.get("os"))
        for environ in (names.get("environ"), names.get("environb")):
            if "_data" in names_of(environ):
                environ._data = data

    def cwd(self, arguments, options):
        self.drifts |= self.adrift

    def look(self, name, arguments, options):
        path = arguments[0] if arguments else options.get("path")
        self.stop_promised(path)
        if options.get("dir_fd") is not None or is_standard_stream(path):
            self.moment()
            return
        if isinstance(path, int):
            return
        path = self.whole(path, pseudo=True)
        if path is None:
            return
        if path.startswith(NOT_FILES):
            if is_of_the_moment(path):
                self.moment()
            return
        if options.get("follow_symlinks") is False:
            name = "lstat"
        purpose = purpose_of(outside(), name)
        there = kind_of(path)
        if purpose == "link":
            self.links.setdefault(path, link_of(path) if there != "-" or is_link(path) else "")
            if there == "-":
                self.asked.setdefault(path, there)
        elif purpose == "presence":
            self.asked.setdefault(path, there)
        elif there in "-f":
            self.read.setdefault(path, there == "f")
            if name != "stat":
                self.links.setdefault(path, link_of(path))
        else:
            # Whose times change with each entry.
            self.moment()

    def opens_at(self, arguments, options):
        if options.get("dir_fd") is not None:
            self.moment()

    def files(self, *paths):
        return lambda arguments, options: self.read.update((path, is_there(path)) for path in paths)

    def main_looked_at(self):
        """Of the program's own module a zygote has none."""
        if self.listening:
            self.moment()

    def disposition(self, arguments, options):
        number = int(arguments[0])
        self.signals |= 1 << (number - 1)

    def poll(self, arguments, options):
        if self.who()[0][:1] != ["selectors"]:
            self.moment()

    def by_machine(self, arguments, options):
        """A number of this moment, and of the machine: `uuid` asks for the machine's alone. One
        without an address draws that by chance."""
        asked = {code.co_name for code in self.who()[1]}
        node = names_of(sys.modules.get("uuid")).get("_node")
        if "_unix_getnode" not in asked or node is not None and node >> 40 & 1:
            self.moment()

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
        def tell(arguments, options):
            if sum(each is not None for each in arguments) < most:
                self.moment()

        return tell

    def change(self, arguments, options):
        self.blame("state")
        raise Stop

    def ask_machine(self, arguments, options):
        self.machine = posix.uname()

    def ask_blocking(self, arguments, options):
        self.asked_blocking |= (arguments or list(options.values()))[0] < 3

    # --- What audit events tell ----------------------------------------------------------------

    def __call__(self, event, arguments):
        try:
            self.step(event, arguments)
        except Exception:
            # An exception would forbid the program what it is about to do.
            pass

    def note(self, event, arguments):
        if event not in TELLING or not self.listening:
            # Most of them, and `sys._getframe` is itself an event.
            return None
        frame = sys._getframe(2)
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
            # In memory it tells of now, and draws by chance.
            reason = "moment" if arguments[0] in (":memory:", b":memory:", "") else "state"
        elif event == "mmap.__new__":
            reason = "state" if arguments[0] == -1 else None
        elif event == "fcntl.ioctl":
            reason = None
            self.looks.note("terminal")
        elif event == "ctypes.dlsym":
            reason = None if str(arguments[1]).lstrip("_").startswith("Py") else "moment"
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
            return "moment" if is_of_the_moment(path) else None
        if path is not None and path not in self.read:
            self.read[path] = is_there(path)
        return None

    def lists(self, path, frame):
        path = self.whole("." if path is None else path, pseudo=True)
        if path is not None and path.startswith(NOT_FILES):
            return "moment" if path.startswith("/proc") or is_of_the_moment(path) else None
        if path is not None and not searches(frame):
            there = kind_of(path)
            if there == "d":
                self.listed.add(path)
            else:
                # That it is not there, or is no directory, is what counts.
                self.asked.setdefault(path, there)
        return None

    def would(self, event, path, folder):
        """A directory that is there is not made, and a file that is not is not removed: whether
        they are there is all that counts."""
        path = self.whole(path) if folder == -1 else None
        there = "-" if path is None else kind_of(path)
        if path is None or (there != "-") != (event == "os.mkdir"):
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

    def of_startup(self):
        """What start-up code did that forbids to run it once for many calls, as one line; None."""
        kept_moments(self.blamed, self.new_modules(), self.since)
        reasons = dict(self.blamed)
        for chain, *_ in self.drawn + self.promises.unresolved():
            reasons.update(dict.fromkeys(chain or [None], "moment"))
        for chain in self.put.values():
            reasons.update(dict.fromkeys(chain or [None], "state"))
        reasons.update((name, what) for name, what in self.looks.seen)
        self.blamed, self.drawn, self.put = {}, [], {}
        self.looks.seen.clear()
        for name, reason in reasons.items():
            return "%s: %s" % (name or "start-up code", reason)
        return None

    def new_modules(self):
        new = {each: sys.modules[each] for each in set(sys.modules) - self.searched}
        self.searched.update(new)
        return new

    def hazards(self, name):
        """What importing this module showed, as names and reasons. Who was to blame is imported
        anew by whoever needs it next, so that all of them are found in one preload."""
        kept_moments(self.blamed, self.new_modules(), self.since)
        for chain, codes, *_ in self.drawn + self.promises.unresolved():
            # Unless the same function runs in each copy anyway.
            if not codes & self.forked:
                self.blamed.update(dict.fromkeys(chain or [None], "moment"))
        self.drawn.clear()
        for chain in self.put.values():
            self.blamed.update(dict.fromkeys(chain or [None], "state"))
        self.put.clear()
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
        """`C`, `A`, `L` and `W` notes, and an `F` for what was read and is gone; without those in
        `files`."""
        notes = [b"C" + path for path in SYSTEM_FILES] + [b"W"] * self.drifts
        notes += [b"E*"] * self.whole_environment
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


def importing(frame):
    """Whose code this is, and who imports that right now."""
    chain = []
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if (frame.f_code.co_name == "<module>" or name == "os") and name != "__main__":
            chain.append(name)
        frame = frame.f_back
    return chain


def kept_moments(blamed, modules, since):
    """Blames modules that keep what they were given by something that tells nobody: a moment, or a
    copy of the environment, in which each call has something else."""
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
                blamed[name] = "moment"


def is_now(moment, after):
    days = abs(moment.replace(tzinfo=None) - after).total_seconds() / 86400
    return days < 1.1


def purpose_of(frame, name):
    """Of a file that is looked at by this code, what matters: `presence`, `link` or `exact`."""
    module, function = frame.f_globals.get("__name__") or "", frame.f_code.co_name
    if module.startswith("pathlib"):
        while (frame.f_back.f_globals.get("__name__") or "").startswith("pathlib"):
            frame = frame.f_back
            function = frame.f_code.co_name
    if (module, function) in (("posixpath", "realpath"), ("posixpath", "_joinrealpath")):
        return "link"
    if module in ("genericpath", "posixpath") or module.startswith("pathlib"):
        return PURPOSES.get(function, "exact")
    if searches(frame):
        return "presence"
    return "link" if name == "readlink" else "exact"


# Functions of the library that look at files, and what they tell of them.
PURPOSES = dict.fromkeys(("exists", "isfile", "isdir", "is_file", "is_dir"), "presence")
PURPOSES.update(dict.fromkeys(("lexists", "islink", "isjunction", "is_symlink", "is_junction",
                               "readlink", "resolve", "_resolve"), "link"))


def is_standard_stream(fd):
    return isinstance(fd, int) and 0 <= fd < 3


def is_of_the_moment(path):
    return path.startswith(OF_THE_MOMENT) and path not in CONSTANT


def steps(program):
    """Every name on the way to a script: what it leads to decides which directory is its own."""
    path = program.target if program.kind == worker.SCRIPT else "/"
    while path.strip("/"):
        yield path
        path = os.path.dirname(path)


def kind_of(path):
    """What is there, links followed."""
    try:
        mode = posix.stat(path).st_mode & 0o170000
    except (OSError, ValueError):
        return "-"
    return {0o100000: "f", 0o040000: "d"}.get(mode, "o")


def is_link(path):
    try:
        return posix.lstat(path).st_mode & 0o170000 == 0o120000
    except (OSError, ValueError):
        return False


def link_of(path):
    """Where a link leads; nothing if it is none."""
    try:
        return posix.readlink(path)
    except (OSError, ValueError):
        return ""


LISTINGS = frozenset(("os.listdir", "os.scandir"))
# Events of what changes something outside, or of the process that is not the copy's by itself.
DEPENDS = dict.fromkeys((
    "os.chmod", "os.chown", "os.chflags", "os.link", "os.lockf", "os.remove", "os.removexattr",
    "os.rename", "os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime", "os.kill",
    "os.killpg", "signal.pthread_kill", "fcntl.flock", "fcntl.lockf", "resource.setrlimit",
    "resource.prlimit", "socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg",
    "syslog.openlog", "syslog.syslog", "socket.sethostname",
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
    "fcntl.ioctl", "socket.gethostname", "ctypes.dlsym",
))
# Any free port of this machine's own.
NUMERIC = None, "", "127.0.0.1", "::1", "0.0.0.0", "::"
LOOPBACK = ("127.0.0.1", 0), ("::1", 0), ("localhost", 0)
# Functions of descriptors that have two of them.
OF_TWO = ("dup2", "sendfile", "splice", "copy_file_range", "closerange", "tee")
# What the C library reads to tell of users, groups, services.
USER_FILES = "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/shadow"
SERVICE_FILES = "/etc/nsswitch.conf", "/etc/services", "/etc/protocols"
# Functions of `time`, and how many arguments they have when they do not ask for now.
CLOCK = dict.fromkeys(("localtime", "gmtime", "ctime", "asctime"), 1)
CLOCK["strftime"] = 2
# Whose processes only tell of the system's libraries and of the machine.
ASKS_OF_THE_SYSTEM = ("ctypes.util", "platform", "uuid")
# Who writes compiled code, by its name once `importlib` was imported, and before.
LOADER = "importlib._bootstrap_external", "_frozen_importlib_external"
SINKS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# What the C library reads before anyone could note it.
SYSTEM_FILES = (b"/etc/localtime", b"/etc/ld.so.cache", b"/etc/ld.so.preload")
NOT_FILES = ("/proc/", "/sys/", "/dev/")
OF_THE_MOMENT = ("/proc/", "/dev/tty", "/dev/pts", "/dev/random", "/dev/urandom", "/dev/shm",
                 "/dev/std", "/dev/fd")
CONSTANT = ("/proc/cpuinfo", "/proc/version", "/proc/filesystems", "/proc/self/exe")


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


class Main(type(sys)):
    """The `__main__` that imports see: what they would keep of it is another in each call."""

    def __getattribute__(self, name):
        told = object.__getattribute__(self, "__dict__").get(TOLD)
        if told is not None:
            told()
        return object.__getattribute__(self, name)


TOLD = "hob told"


class Looks:
    """Which modules look at the call while they are imported: its arguments, or whether it has a
    terminal. A copy imports those itself, when the caller's are there to be seen; so must
    whoever imports them. The first argument and their number are in the zygote as in its calls,
    once it is known that somebody asks."""

    def __init__(self, program):
        self.program = program
        self.asked = set()
        self.seen = {}  # pairs of a module and what it looks at, in order
        self.argv = sys.argv

        class Watched(list):
            __slots__ = ()

        for name in ("__iter__", "__contains__", "__eq__", "__add__", "__ne__", "__reversed__",
                     "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear",
                     "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
                     "sort", "__getitem__", "__len__"):
            setattr(Watched, name, self.wrap(getattr(list, name), "argv"))

        class Arguments(Watched):
            __slots__ = ()

        Arguments.__getitem__, Arguments.__len__ = self.get, self.count
        self.lists = [(sys.argv, Arguments())]
        if hasattr(sys, "orig_argv"):
            self.lists.append((sys.orig_argv, Watched()))
        self.watched = self.exchange()

    @property
    def get(self):
        def get(words, at):
            # Of a module the first argument changes while it is found.
            if type(at) is int and at == 0 and self.program.kind == worker.SCRIPT:
                self.asked.add("first")
            else:
                self.note("argv")
            return list.__getitem__(words, at)

        return get

    @property
    def count(self):
        def count(words):
            self.asked.add("count")
            return list.__len__(words)

        return count

    def exchange(self):
        """The list of arguments and an empty watched one exchange their types. Whoever keeps the
        list while it is watched (`def main(arguments=sys.argv)`) keeps the one that each caller's
        arguments are put into. False if types are not where they are looked for."""
        if worker.KERNEL.ctypes is None:
            return False
        words = [[worker.KERNEL.type_of(each) for each in pair] for pair in self.lists]
        if any(None in pair for pair in words):
            return False
        for one, other in words:
            one.value, other.value = other.value, one.value
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
        """Gives everything back; the hazards."""
        if self.watched:
            self.exchange()
        else:
            # Nobody can tell who looked.
            self.seen.update(((name, "argv"), None) for name in set(sys.modules) - set(worker.BASELINE))
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
