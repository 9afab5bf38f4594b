"""The stand-ins that tell of each use, and how they are put in and taken out."""


class Looker:
    """Stands for a function while modules are imported, and tells of each use. `tell` gets the
    arguments; what it gives back, if anything, gets the answer."""

    def __init__(self, owner, name, tell, instead=None):
        self.owner, self.name, self.tell, self.instead = owner, name, tell, instead
        self.function = getattr(owner, name)
        self.__doc__, self.__module__ = self.function.__doc__, self.function.__module__
        setattr(owner, name, self)

    @property
    def __class__(self):
        # So it says itself; `type` is not deceived.
        return FUNCTION

    def __getattr__(self, name):
        # Who asks what kind of function this is gets the answer of the function.
        return getattr(self.function, name)

    def __repr__(self):
        return repr(self.function)

    def __call__(self, *arguments, **options):
        heard = None
        try:
            heard = self.tell(arguments, options)
        except Exception:
            # Let the function itself complain.
            pass
        if self.instead is not None:
            answer = self.instead(*arguments, **options)
            if answer is not None:
                return answer
        if heard is None:
            return self.function(*arguments, **options)
        try:
            answer = self.function(*arguments, **options)
        except BaseException as error:
            heard(type(error))
            raise
        heard(answer)
        return answer


Looker.__call__ = hide(Looker.__call__)
# Who keeps what kind of function it was is told what the function itself would say.
Looker.__name__ = Looker.__qualname__ = FUNCTION.__name__
Looker.__module__ = "builtins"


def ignore(arguments=(), options=None):
    return None


class Watch:
    """All stand-ins of one preload. `told` has a function for each class: of the module's and the
    function's name it makes what is told of each use."""

    def __init__(self, told):
        self.told = told
        self.lookers = []
        self.kept = []
        self.types = []
        self.covered = set()

    def start(self):
        """Before anybody but the interpreter itself has bound one of the functions."""
        for name in MODULES:
            if name in sys.modules:
                self.cover(name, sys.modules[name])
        # The import system looks at files all the time: its own notes say what counts there. But
        # they do not say that a relative name was searched, which its directory decides.
        external, files = sys.modules["_frozen_importlib_external"], type(sys)("posix")
        files.__dict__.update(posix.__dict__)
        self.replace(external, "_os", files)
        Looker(files, "getcwd", self.told[AUDIT]("posix", "getcwd"))
        machinery = sys.modules["_imp"]
        for name in ("exec_builtin", "exec_dynamic"):
            self.replace(machinery, name, self.covering(getattr(machinery, name)))

    def replace(self, owner, name, value):
        self.kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def covering(self, execute):
        """A module in C has just been made: nobody has bound anything of it yet."""

        def loaded(module):
            result = execute(module)
            name = names_of(module).get("__name__")
            if name in MODULES:
                self.cover(name, module)
            self.told["loaded"](name, module)
            return result

        return hide(loaded)

    def cover(self, name, module):
        if name in self.covered:
            return
        self.covered.add(name)
        classes, otherwise = MODULES[name]
        for each, value in list(names_of(module).items()):
            if type(value) is FUNCTION and not each.startswith("__"):
                kind = classes.get(each, otherwise)
                tell = self.told[kind](name, each) if kind != PURE else None
                if tell is not None:
                    self.lookers.append(Looker(module, each, tell))

    def looker(self, owner, name, tell, instead=None):
        if hasattr(owner, name):
            self.lookers.append(Looker(owner, name, tell, instead))

    def method(self, kind, name, wrap):
        """Puts a function in the place of a method of a type in C, where that can be done."""
        held = gc.get_referents(kind.__dict__)
        original = kind.__dict__.get(name)
        if original is None or len(held) != 1 or type(held[0]) is not dict or not modified(kind):
            return
        held[0][name] = made = wrap(original)
        ours = getattr(made, "__func__", made)
        self.types.append((kind, held[0], name, original, ours))
        modified(kind)

    def stop(self):
        """Puts the real functions back, wherever somebody has kept ours."""
        real = {}
        for kind, names, name, original, ours in self.types:
            names[name] = original
            modified(kind)
            # Who has kept a method of a class has one that is bound to it.
            for each in gc.get_referrers(ours):
                if type(each) is METHOD:
                    bound = (None, each.__self__) if type(ours_in(kind, name)) is OF_CLASS else (
                        each.__self__,)
                    real[id(each)] = each, original.__get__(*bound)
        for owner, name, value in reversed(self.kept):
            setattr(owner, name, value)
        for looker in self.lookers:
            looker.tell, looker.instead = ignore, None
            real[id(looker)] = looker, looker.function
            if getattr(looker.owner, looker.name, None) is looker:
                setattr(looker.owner, looker.name, looker.function)
        self.lookers, self.kept, self.types = [], [], []
        for module in list(sys.modules.values()):
            put_back_in(names_of(module), real)
        for kinds in vars(sys.modules.get("os", sys)).values():
            if type(kinds) is set:
                put_back_in(kinds, real)
        put_back(still_kept(real))
