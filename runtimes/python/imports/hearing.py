"""What is told of each function of a class (`watch.py`), and what that means for who imports."""


class Hearing:
    """The part of `Opened` that is told by stand-ins."""

    def asks_again(self, module, name):
        function = getattr(sys.modules[module], name)

        def tell(arguments, options):
            if module == "posix" and arguments and type(arguments[0]) in (str, bytes):
                self.whole(arguments[0])
            if name in OF_ATTRIBUTES and is_standard_stream(arguments[0]):
                self.moment()
            chain = self.who()[0]
            if worker.RENEWED.get(chain[0] if chain else None):
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
            "get_blocking": self.ask_blocking, "getpid": self.moment, "open": self.opens_at,
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
            self.one_variable(os.fsencode(name))
        path = os.path.abspath(posix.environ.get(os.fsencode(of_file), os.fsencode(file)))
        self.read.setdefault(os.fsdecode(path), is_there(path))

    def cwd(self, arguments, options):
        self.drifts |= self.adrift

    def look(self, name, arguments, options):
        path = arguments[0] if arguments else options.get("path")
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
            if there == "-" or name == "readlink" and not self.links[path]:
                # What is no link is refused otherwise than what is not there.
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

    def main_looked_at(self, name=None):
        """Of the program's own module a zygote has none, and of its names some."""
        if name == "__file__":
            # A call by another name has another one.
            self.looks.program.is_named = True
        elif self.listening and name not in ("__name__", "__builtins__", "__import__"):
            self.moment()

    def names_of_main(self, place):
        """The names of the script, for who looks at the frames below; or of the module that imports."""
        names = self.watching.Variables(__name__=place.name, __builtins__=worker.BUILTINS)
        dict.__setitem__(names, "__file__", place.file)
        names.one = names.all = self.main_looked_at
        return names

    def names_of_statements(self, place):
        """The names of statements that are executed themselves."""
        names = place.given
        if place.name == "__main__":
            # Of that a directory is made.
            self.main_looked_at("__file__")
        names.update(__name__=place.name, __builtins__=worker.BUILTINS, __file__=place.file)
        names.update((name, value) for name, value in place.bound.items() if value is not None)
        return names

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
