"""Where statements of a program stand: the text, and what is known there by its names."""

# What the interpreter has `compile` do with it: make a tree.
ONLY_A_TREE = 0x400
# How a statement ends: it was harmless, it fails for want of a module, or what follows is unknown.
THROUGH, MISSING, UNKNOWN = "through", "missing", "ends"


def tree_of(data, file):
    """The statements of a text; none if it has none. Who compiles it for the program is warned."""
    filters = getattr(sys.modules.get("warnings"), "filters", borrow("_warnings").filters)
    filters.insert(0, ("ignore", None, Warning, None, 0))
    try:
        return compile(data, file, "exec", ONLY_A_TREE, dont_inherit=True).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    finally:
        del filters[0]


class Place:
    """Where statements stand: what they say of themselves, and what they have bound by now."""

    def __init__(self, file, name, package=""):
        self.file, self.name, self.package = file, name, package
        self.bound = {}
        self.annotates = sys.version_info < (3, 14)
        # The names of the module, if it is there; the function, if these are the statements of one.
        self.names, self.function, self.depth = {}, None, 0
        # Functions that are made here, as statements.
        self.functions = {}
        # Names of paths, the statements that give them and were not needed yet, and what they give.
        self.paths, self.pending, self.given = set(), [], {}

    def bind(self, name, value):
        self.bound[name] = value
        self.functions.pop(name, None)
        self.paths.discard(name)

    def may_fail(self):
        """Whether a statement that is not yet needed does more than to name a constant."""
        return any(not is_constant(each.value) for each in self.pending)

    def whole(self):
        """For a function that is made here."""
        place = Place(self.file, self.name, self.package)
        place.bound, place.names = dict(self.bound), self.names
        place.functions, place.annotates = dict(self.functions), self.annotates
        return place

    def absolute(self, module, level):
        """The name of a module that is named from here; None if there is none."""
        if not level:
            return module
        parts = self.package.split(".") if self.package else []
        if level > len(parts):
            return None
        parts = parts[: len(parts) - level + 1] + ([module] if module else [])
        return ".".join(parts)
