"""The program's own module and its arguments, which tell who looks at them."""


class Main(type(sys)):
    """The `__main__` that imports see: what they would keep of it is another in each call, and what
    they put into it would not be in a call's."""

    def __getattribute__(self, name):
        tell_of(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name, value):
        tell_of(self)
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        tell_of(self)
        object.__delattr__(self, name)


def tell_of(main):
    """Tells that somebody looks at the main module, or changes it."""
    told = object.__getattribute__(main, "__dict__").get(TOLD)
    if told is not None:
        told()


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

        class Heard:
            """A method of lists; to ask for it is to look."""

            def __init__(self, original, note):
                self.original, self.note = original, note

            def __get__(self, words, kind=None):
                self.note("argv")
                return self.original.__get__(words, kind)

        for name in ("__iter__", "__contains__", "__eq__", "__add__", "__ne__", "__reversed__",
                     "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear",
                     "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
                     "sort", "__getitem__", "__len__", "__repr__", "__mul__", "__rmul__", "__lt__",
                     "__le__", "__gt__", "__ge__", "__sizeof__", "__reduce_ex__"):
            setattr(Watched, name, Heard(list.__dict__[name] if name in list.__dict__
                                         else object.__dict__[name], self.note))

        class Arguments(Watched):
            __slots__ = ()

        for kind in (Watched, Arguments):
            kind.__name__, kind.__qualname__, kind.__module__ = "list", "list", "builtins"

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
