"""The environment and the standard streams, which tell who reads them."""


class Variables(dict):
    """The environment while modules are imported: whoever reads a variable is heard, by whatever
    way it was reached (`os.environ`, `os.environ._data`, `posix.environ`)."""

    __slots__ = ("one", "all")

    def __getitem__(self, name):
        self.one(name)
        return dict.__getitem__(self, name)

    def get(self, name, default=None):
        self.one(name)
        return dict.get(self, name, default)

    def __contains__(self, name):
        self.one(name)
        return dict.__contains__(self, name)

    def pop(self, name, *default):
        self.one(name)
        return dict.pop(self, name, *default)

    def setdefault(self, name, value=None):
        self.one(name)
        return dict.setdefault(self, name, value)


def whole(name):
    function = getattr(dict, name)

    def through_all(self, *arguments):
        self.all()
        return function(self, *arguments)

    return through_all


for _name in ("__iter__", "__len__", "__eq__", "__ne__", "__repr__", "__reversed__", "__or__",
              "__ror__", "keys", "values", "items", "copy", "popitem"):
    if hasattr(dict, _name):
        setattr(Variables, _name, whole(_name))


class Raw(worker._io.FileIO):
    """Below a standard stream while modules are imported: what is read, and what depends on the
    kind of its file, is each call's own."""

    def __init__(self, fd, mode, told):
        super().__init__(fd, mode, False)
        self.told = told

    def told_of(name, what):
        function = getattr(worker._io.FileIO, name)

        def method(self, *arguments):
            told = self.__dict__.get("told")
            if told is not None:
                told(what)
            return function(self, *arguments)

        return hide(method)

    for _name in ("read", "readinto", "readall", "seek", "tell", "seekable", "truncate"):
        locals()[_name] = told_of(_name, "stream")
    isatty = told_of("isatty", "terminal")
    del told_of, _name

    # Who keeps what it is called, or asks for its class, is told what it is without us.
    __class__ = property(lambda self: worker._io.FileIO)

    def __repr__(self):
        # From 3.13 on the interpreter asks for the name of the type, without its module.
        return super().__repr__().replace("<FileIO", "<_io.FileIO", 1)


for _name in ("__module__", "__qualname__", "__name__", "__doc__"):
    setattr(Raw, _name, getattr(worker._io.FileIO, _name))
