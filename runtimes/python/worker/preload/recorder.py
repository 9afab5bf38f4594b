"""Notes of what was searched and read while modules are imported, and how they are imported."""


class Recorder:
    """Notes the names that are searched, found or not, and the environment variables read.

    Variables only while an import is in progress: what a program's own code reads is no part of
    the warm state. Works from inside the import system, where no program looks.

    Tracers and profilers do look: 3.11 tells them that hidden frames end, which `coverage` takes
    for the end of the frame below, and later versions of exceptions there. So `hush` quietens
    ours, and what we stand in for is `traced`; in 3.11 that would be quiet as well.
    """

    def __init__(self):
        self.searched = {}
        self.read = []
        self.kept = []
        self.started = []
        # A type says nothing when it is called, and nobody is told of it.
        self.hush, self.is_traced = bool, False

    def be_silent(self, hush):
        if hush is not None:
            self.hush, self.is_traced = hush, TOLD_OF_OURS

    def start(self):
        self.kept.append((BOOTSTRAP, "_find_spec", BOOTSTRAP._find_spec))
        BOOTSTRAP._find_spec = self.watch(BOOTSTRAP._find_spec)

    def hear_program(self):
        """Hears a program, whose start-up code has run."""
        self.start()
        self.settle()
        self.hear_variables(sys.modules.get("os"))

    def settle(self):
        """From here on it counts what decides how modules are imported."""
        self.started.extend(machinery())

    def hear_variables(self, os):
        """Where nobody stands in for the environment itself."""
        for environ in (os.environ, os.environb) if os is not None else ():
            self.kept.append((environ, "encodekey", environ.encodekey))
            environ.encodekey = self.wrap(environ.encodekey)

    def watch(self, find_spec):
        searched, started = self.searched, self.started
        hush, is_traced = self.hush, self.is_traced

        def _find_spec(name, path, target=None):
            silence = hush()
            if name not in searched:
                # A tracer sees what a module does while it is imported, in each run.
                searched[name] = watched() or bool(started) and not same_machinery(started)
            if is_traced:
                return traced(find_spec, (name, path, target))
            silence = None
            try:
                return find_spec(name, path, target)
            finally:
                silence = hush()  # noqa: F841

        return in_place_of(find_spec, hide(_find_spec))

    def wrap(self, encode):
        read, hush, is_traced = self.read, self.hush, self.is_traced

        def encodekey(key):
            if is_traced:
                silence = hush()
                encoded = traced(encode, (key,))
            else:
                try:
                    encoded = encode(key)
                finally:
                    silence = hush()  # noqa: F841
            # A program may have taken away what `sys` has.
            frame = getframe()
            while frame is not None:
                if frame.f_code.co_name == "_find_and_load":
                    read.append(encoded)
                    break
                frame = frame.f_back
            return encoded

        return in_place_of(encode, hide(encodekey))

    def stop(self):
        for owner, name, value in self.kept:
            setattr(owner, name, value)
        self.kept = []

    def profile(self, modules):
        """All notes of a program that has loaded these modules."""
        return notes_of_modules(modules, BASELINE) + self.notes() + self.hazards()

    def notes(self):
        missing = [n for n, own in self.searched.items() if not own and n not in sys.modules]
        return [b"X" + os.fsencode(name) for name in missing] + [b"E" + n for n in self.chosen()]

    def chosen(self):
        """The variables read, without those that change in every shell and were read only
        because a module went through the whole environment."""
        after = dict(zip(posix.environ, list(posix.environ)[1:]))
        chosen, run = {}, []
        for name in self.read + [None]:
            if run and name is not None and after.get(run[-1]) == name:
                run.append(name)
                continue
            whole = len(run) >= WHOLE_RUN_MIN
            chosen.update((each, None) for each in run if not (whole and each in VOLATILE))
            run = [name]
        return chosen

    def in_order(self):
        """`sys.modules` in the order in which the imports began: importers first. Without what
        the program imported in a way of its own: that is not to be had without the program."""
        searched = self.searched
        modules = {n: sys.modules[n] for n in searched if n in sys.modules and not searched[n]}
        for name, module in list(sys.modules.items()):
            if not searched.get(name):
                modules.setdefault(name, module)
        return modules

    def hazards(self):
        """What the program imported in a way of its own."""
        return [b"H%s:finder" % os.fsencode(name) for name, own in self.searched.items() if own]


def in_place_of(function, ours):
    """Ours, which says of itself what the other says."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(ours, name, getattr(function, name))
    return ours


def watched():
    """Whether somebody is told of what runs: a tracer, a profiler, a monitor."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        for tool in 0, 1, 2, 3, 4, 5:
            if monitoring.get_tool(tool) is not None:
                return True
    return sys.gettrace() is not None or sys.getprofile() is not None


def unwatched():
    """Has the program's tracer and profiler not see what we do at its end; what `watch` puts back."""
    tracer, profiler = sys.gettrace(), sys.getprofile()
    if tracer is None and profiler is None:
        return None
    sys.settrace(None)
    sys.setprofile(None)
    return tracer, profiler


def watch(watchers):
    """Puts back what `unwatched` has taken off. Hidden."""
    for watch, watcher in zip((sys.settrace, sys.setprofile), watchers):
        if watcher is not None:
            watch(watcher)


def machinery():
    """What decides how modules are imported."""
    return list(sys.meta_path), list(sys.path_hooks), BUILTINS.__import__


def same_machinery(started):
    """Whether modules are imported as `started` says. A finder that was added behind the others
    (as `six` does) is asked only for what they do not have."""
    finders, hooks, function = started
    return (
        sys.meta_path[: len(finders)] == finders
        and sys.path_hooks[: len(hooks)] == hooks
        and BUILTINS.__import__ is function
    )


def imported_as_ever(modules):
    """Of `modules`, in the order of their imports, those before the first one whose loader the
    program brought along: from there on a finder of its own may have had its say."""
    kept = {}
    for name, module in modules.items():
        loader = getattr(names_of(module).get("__spec__"), "loader", None)
        kind = loader if isinstance(loader, type) else type(loader)
        if kind.__module__ not in BASELINE and not kind.__module__.startswith("importlib."):
            break
        kept[name] = module
    return kept
