"""A layer: the installed modules of a script, loaded below it, and out of its sight until it imports
them itself."""


class Layer:
    """What a zygote has loaded for a program that was edited.

    In a copy the program finds none of these modules in `sys.modules`. Where it imports one that one
    is put back, and with it all that it needed: as if it had been loaded then. So the program may
    import by now what it likes, and a profile of it is not misled.
    """

    def __init__(self, before, loads, steps):
        # What each has the interpreter do at its end.
        self.before, self.steps, self.exits = before, steps, loads.exits
        # Whether its program is now known to begin otherwise.
        self.edited = False
        self.modules = {name: sys.modules[name] for name in sys.modules if name not in before}
        self.needs = {name: self.needs_of(name, loads.loads) for name in self.modules}
        # What decides where modules are found, as it was while these were loaded.
        self.path, self.machinery = list(sys.path), machinery()
        self.bound = {}

    def needs_of(self, name, loads):
        """What a module has loaded, and what it has of others that were there."""
        needs = dict.fromkeys(loads.get(name, ()))
        for value in list(names_of(self.modules[name]).values()):
            kind = type(value)
            if issubclass(kind, type(sys)):
                needs[names_of(value).get("__name__")] = None
            elif kind is FUNCTION:
                needs[value.__module__] = None
            elif issubclass(kind, type):
                needs[type.__getattribute__(value, "__dict__").get("__module__")] = None
        known = self.modules
        return [each for each in needs if type(each) is str and each in known and each != name]

    def fits(self, program):
        """Whether the program, as it is now, imports first what was loaded: what it imports at another
        moment may be another."""
        self.edited = agreed_steps(program, self.steps, self.before) < len(self.steps)
        return not self.edited

    def hide(self, recorder):
        """Takes them out of sight, and listens for who imports them."""
        for name, module in self.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
            parent, _, child = name.rpartition(".")
            if parent and parent not in self.modules:
                names = names_of(sys.modules.get(parent))
                if names.get(child) is module:
                    del names[child]
                    self.bound[name] = child
        self.listen(recorder)

    def listen(self, recorder):
        original, hush, is_traced = BOOTSTRAP._find_and_load, recorder.hush, recorder.is_traced
        modules, searched, gives = self.modules, recorder.searched, self.gives

        def _find_and_load(name, import_):
            silence = hush()
            if name in modules and gives(name):
                searched.setdefault(name, False)
                return sys.modules[name]
            if is_traced:
                return traced(original, (name, import_))
            silence = None
            try:
                return original(name, import_)
            finally:
                silence = hush()  # noqa: F841

        recorder.kept.append((BOOTSTRAP, "_find_and_load", original))
        BOOTSTRAP._find_and_load = in_place_of(original, hide(_find_and_load))

    def gives(self, name):
        """Puts a module back, if the program would find the same one; else it finds all others itself,
        too: no two are to be there of one module."""
        if watched() or sys.path != self.path or not same_machinery(self.machinery):
            self.modules.clear()
            return False
        waiting = [(name, None)]
        while waiting:
            name, module = waiting.pop()
            parent = name.rpartition(".")[0]
            if module is not None:
                # In the order in which imports end.
                sys.modules.setdefault(name, module)
                for register, function, arguments, options in self.exits.get(name, ()):
                    register(function, *arguments, **options)
                if name in self.bound:
                    names_of(sys.modules[parent])[self.bound[name]] = module
            elif parent in self.modules:
                # An import begins with it.
                waiting += [(name, None), (parent, None)]
            elif name in self.modules:
                waiting.append((name, self.modules.pop(name)))
                waiting += [(each, None) for each in reversed(self.needs[name])]
        return True


LAYER = None
FUNCTION = type(names_of)


class Loads:
    """Which modules each module was the first to import, and what it registered for the end: that is
    put off until a program imports it."""

    def __init__(self):
        self.loads, self.exits, self.stack = {}, {}, []
        self.original, self.registers = BOOTSTRAP._find_and_load, []

    def start(self):
        original, loads, stack, heard = self.original, self.loads, self.stack, self.hear_exits

        def _find_and_load(name, import_):
            if stack:
                loads.setdefault(stack[-1], {})[name] = None
            stack.append(name)
            try:
                return original(name, import_)
            finally:
                stack.pop()
                if name == "atexit":
                    heard()

        BOOTSTRAP._find_and_load = in_place_of(original, hide(_find_and_load))
        heard()

    def hear_exits(self):
        module = sys.modules.get("atexit")
        if module is None or any(module is known for known, _ in self.registers):
            return
        original, stack, exits = module.register, self.stack, self.exits

        def register(function, *arguments, **options):
            if not stack:
                return original(function, *arguments, **options)
            exits.setdefault(stack[-1], []).append((original, function, arguments, options))
            return function

        self.registers.append((module, original))
        module.register = in_place_of(original, hide(register))

    def stop(self):
        BOOTSTRAP._find_and_load = self.original
        for module, register in self.registers:
            module.register = register


def is_installed(name):
    """Whether it is a module of the interpreter's or of an installed package, and not the program's
    own: those are not loaded below it."""
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or top in BASELINE:
        return True
    try:
        spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec(top)
    except Exception:
        return False
    if spec is None:
        return _imp.is_frozen(top)
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [""])
    roots = [os.path.dirname(os.__file__) + "/"]
    roots += [path + "/" for path in sys.path if path.endswith(INSTALLED_IN)]
    return all(place.startswith(tuple(roots)) for place in places)


# Where installers put packages.
INSTALLED_IN = "/site-packages", "/dist-packages"
