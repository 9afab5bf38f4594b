"""What a program imports before it does anything else, as its text says.

A zygote is for a module what a call would be only while nothing has happened but the imports before
it. So these are loaded ahead, in the program's order, up to its first statement that may do anything
else. That is known from its text: nothing of the program is executed for it. Where an import must be
left to the call, those that its module begins with are still the next ones; then all ends.
"""

class Leading(Called):
    """Goes through statements and yields each module that they import and that is not there yet, with
    its place and line; and, without a module, each statement that is done ahead. It is sent whether the
    module is there now, and left to no call."""

    def __init__(self, allowed, there, done=()):
        self.allowed, self.there = allowed, there
        # What was done ahead, where that is only gone through once more.
        self.done = [step.what for step in done]
        # How modules are found.
        self.machinery = machinery()
        # Modules that are left to calls, and the files that say what those begin with.
        self.within, self.files = set(), []
        # The file and the line of the first statement that may do anything else.
        self.stopped = None
        # The statements of the files whose functions are called.
        self.trees = {}

    def program(self, program, data=None):
        """All of a program; `data` is the text of its script, if that is known."""
        if program.kind == MODULE:
            yield from self.module_as_main(program.target)
        elif program.kind in (SCRIPT, INSTALLED) and program.container:
            yield from self.container(program.target)
        elif program.kind in (SCRIPT, INSTALLED) and not program.target.endswith(".pyc"):
            try:
                data = read_file(program.target) if data is None else data
            except OSError:
                return
            place = Place(program.target, "__main__")
            yield from self.body(tree_of(data, program.target), place)

    def container(self, target):
        """A directory or an archive that is run by its `__main__`."""
        try:
            spec = sys.path_importer_cache[target].find_spec("__main__")
            text = spec.loader.get_source("__main__")
        except Exception:
            return
        self.files.append(spec.origin)
        yield from self.body(tree_of(text, spec.origin), Place(spec.origin, "__main__"))

    def module_as_main(self, name):
        """What is run by `-m`: first comes its package."""
        runpy = Place("<frozen runpy>", "__main__")
        parent = name.rpartition(".")[0]
        if parent and (yield from self.module(parent, 1, runpy)) is not THROUGH:
            return
        spec = self.find(name)
        if spec is not None and spec.submodule_search_locations is not None:
            if (yield from self.module(name, 1, runpy)) is not THROUGH:
                return
            parent, name = name, name + ".__main__"
            spec = self.find(name)
        # It is executed, and not imported.
        self.within.add(name)
        yield from self.inside(spec, "__main__", parent)

    def inside(self, spec, name, package):
        """The statements of a module's file."""
        origin = getattr(spec, "origin", None)
        if origin is None or type(spec.loader) is not source_loader():
            return UNKNOWN
        try:
            data = read_file(origin)
        except OSError:
            return UNKNOWN
        self.files.append(origin)
        return (yield from self.body(tree_of(data, origin), Place(origin, name, package)))

    def find(self, name):
        """Where a module lies, by what finds modules in each program: a finder that somebody has put
        there is not asked for what the program may never import."""
        parent = name.rpartition(".")[0]
        path = names_of(sys.modules.get(parent)).get("__path__") if parent else None
        if parent and path is None:
            return None
        try:
            external = sys.modules["_frozen_importlib_external"]
            for finder in BOOTSTRAP.BuiltinImporter, BOOTSTRAP.FrozenImporter, external.PathFinder:
                spec = finder.find_spec(name, path)
                if spec is not None:
                    return spec
        except Exception:
            pass
        return None

    def is_there(self, name):
        """Whether a module, or the package that it is of, is found."""
        top = name.partition(".")[0]
        return top in sys.modules or self.find(top) is not None

    def is_missing(self, name):
        """Whether no finder would find it. Of one that came with an import that is not known."""
        if sys.meta_path != self.machinery[0] or not same_machinery(self.machinery):
            return False
        parent = name.rpartition(".")[0]
        path = names_of(sys.modules.get(parent)).get("__path__") if parent else None
        try:
            return (not parent or path is not None) and BOOTSTRAP._find_spec(name, path) is None
        except Exception:
            return False

    def body(self, nodes, place):
        for node in nodes:
            if names_a_path(node, place):
                continue
            is_ahead = is_done_ahead(node, place)
            if is_ahead:
                place.pending.append(node)
            # What fails ends the program, before it imports more.
            if is_ahead or place.may_fail() and "Import" in type(node).__name__:
                statements, place.pending = place.pending, []
                if not (yield None, place, node.lineno, statements):
                    return UNKNOWN
            if is_ahead:
                continue
            way = self.WAYS.get(type(node).__name__)
            end = UNKNOWN if way is None else (yield from way(self, node, place))
            if end is not THROUGH:
                self.stopped = self.stopped or (place.file, node.lineno)
                return end
        return THROUGH

    # --- Imports ------------------------------------------------------------------------------

    def module(self, name, line, place):
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            each = ".".join(parts[:count])
            if each in self.there:
                if each not in sys.modules:
                    # Somebody has taken it away.
                    return UNKNOWN
                continue
            if each in self.within:
                return UNKNOWN
            if each not in self.allowed:
                return (yield from self.left_to_calls(each))
            if not (yield each, place, line, None):
                return UNKNOWN
        return THROUGH

    def left_to_calls(self, name):
        """A module that is no more loaded ahead: what it imports first comes before all else."""
        if self.is_missing(name):
            return MISSING
        spec = self.find(name)
        if spec is None:
            return UNKNOWN
        self.within.add(name)
        package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
        yield from self.inside(spec, name, package)
        return UNKNOWN

    def import_(self, node, place):
        for alias in node.names:
            end = yield from self.module(alias.name, node.lineno, place)
            if end is not THROUGH:
                return end
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            place.bind(alias.asname or whole, sys.modules.get(whole))
        return THROUGH

    def import_from(self, node, place):
        base = place.absolute(node.module, node.level)
        if base is None:
            return UNKNOWN
        if base == "__future__":
            place.annotates &= all(alias.name != "annotations" for alias in node.names)
            return THROUGH
        end = yield from self.module(base, node.lineno, place)
        if end is not THROUGH:
            return end
        if base not in sys.modules:
            return UNKNOWN
        names = names_of(sys.modules[base])
        for alias in node.names:
            given = (alias.name,) if alias.name != "*" else all_of(names)
            for name in given:
                end = yield from self.attribute(base, name, node.lineno, place)
                if end is not THROUGH:
                    return end
                place.bind(alias.asname or name, names.get(name))
        return THROUGH

    def attribute(self, base, name, line, place):
        """A name of a module: it has it, or it is a module below, or it makes it now."""
        names, full = names_of(sys.modules[base]), "%s.%s" % (base, name)
        statement = "from %s import %s" % (base, name)
        makes, below = "__getattr__" in names, full in self.allowed
        step = (full if below else base), place.file, shape(statement if makes else None)
        is_repeated = (below or makes) and step in self.done
        if not is_repeated and (name in names or full in self.there):
            return THROUGH
        if full in self.within:
            return UNKNOWN
        if not below and "__path__" in names and not self.is_missing(full):
            return (yield from self.left_to_calls(full))
        if below and not makes:
            return (yield from self.module(full, line, place))
        if not makes:
            return UNKNOWN
        return THROUGH if (yield step[0], place, line, statement) else UNKNOWN

    # --- What else does nothing -----------------------------------------------------------------

    def harmless(self, node, place):
        return THROUGH if does_nothing(node, place) else UNKNOWN
        yield

    def function(self, node, place):
        if not does_nothing(node, place):
            return UNKNOWN
        place.functions[node.name] = node
        return THROUGH
        yield

    def if_(self, node, place):
        if is_own_name(node, place):
            return THROUGH
        try:
            holds = value_of(node.test, place)
        except Exception:
            return UNKNOWN
        return (yield from self.body(node.body if holds else node.orelse, place))

    def try_(self, node, place):
        if node.finalbody:
            return UNKNOWN
        end = yield from self.body(node.body, place)
        if end is THROUGH:
            return (yield from self.body(node.orelse, place))
        if end is MISSING and node.handlers and catches(node.handlers[0].type):
            return (yield from self.body(node.handlers[0].body, place))
        return UNKNOWN

    WAYS = {
        "Import": import_, "ImportFrom": import_from, "If": if_, "Try": try_,
        "FunctionDef": function, "AsyncFunctionDef": harmless, "ClassDef": harmless,
        "Pass": harmless, "Assign": Called.assign, "AnnAssign": Called.assign,
        "Expr": Called.expression, "Return": Called.return_, "Raise": Called.raise_,
    }


def all_of(names):
    """What `from ... import *` takes of a module."""
    given = names.get("__all__")
    return [name for name in names if name[:1] != "_"] if given is None else list(given)


def source_loader():
    return sys.modules["_frozen_importlib_external"].SourceFileLoader


def catches(kind):
    """Whether a handler is for a module that is not there."""
    kinds = getattr(kind, "elts", [kind])
    return any(each is None or getattr(each, "id", None) in MISSES for each in kinds)


MISSES = "ImportError", "ModuleNotFoundError", "Exception", "BaseException"
