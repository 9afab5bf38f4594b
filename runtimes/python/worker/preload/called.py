"""Functions that a program calls first: what these begin with is what it does next."""

# What a function's statements end with: it has returned.
RETURNS = "returns"


class Called:
    """The part of `Leading` that follows calls. Of a function the text is found by where its code says
    that it is from; what it is given may only be named, or be given by such a function."""

    # So many within one another are followed.
    MOST = 8

    def expression(self, node, place):
        return (yield from self.evaluate(node.value, place))

    def evaluate(self, node, place):
        if node is None or is_plain(node, place):
            return THROUGH
        if type(node).__name__ == "Call":
            return (yield from self.call(node, place))
        return UNKNOWN

    def assign(self, node, place):
        if is_own_name(node, place):
            return THROUGH
        targets = getattr(node, "targets", None) or [node.target]
        if any(type(each).__name__ != "Name" for each in targets):
            return UNKNOWN
        if hasattr(node, "annotation") and not is_annotation(node.annotation, place):
            return UNKNOWN
        end = yield from self.evaluate(node.value, place)
        bind_anew(place, targets)
        return end

    def return_(self, node, place):
        end = yield from self.evaluate(node.value, place)
        return RETURNS if end is THROUGH else end

    def raise_(self, node, place):
        yield from self.evaluate(node.exc, place)
        return UNKNOWN

    def call(self, node, place):
        for each in node.args + [each.value for each in node.keywords]:
            end = yield from self.evaluate(each, place)
            if end is not THROUGH:
                return end
        within = self.function_of(node.func, place)
        if within is None or place.depth >= self.MOST or not takes(within[2], node):
            return UNKNOWN
        body, inner, _ = within
        inner.depth = place.depth + 1
        end = yield from self.body(body, inner)
        return THROUGH if end is RETURNS else end

    def function_of(self, node, place):
        """The statements of what is called, and the place where they stand; None if that is unknown."""
        if type(node).__name__ == "Name" and node.id in place.functions:
            return self.body_of(place.functions[node.id], place, place.whole())
        function = stands_for(node, place)
        if type(function) is not FUNCTION or function.__closure__:
            return None
        names, code = function.__globals__, function.__code__
        module = sys.modules.get(names.get("__name__"))
        if module is None or names_of(module) is not names or names.get("__file__") != code.co_filename:
            return None
        if code.co_filename not in self.trees:
            try:
                self.trees[code.co_filename] = tree_of(read_file(code.co_filename), code.co_filename)
            except OSError:
                return None
        for each in self.trees[code.co_filename]:
            if getattr(each, "name", None) == code.co_name and each.lineno == code.co_firstlineno:
                package = names.get("__package__") or ""
                outer = Place(code.co_filename, names["__name__"], package)
                outer.names = names
                return self.body_of(each, place, outer)
        return None

    def body_of(self, node, place, outer):
        if type(node).__name__ != "FunctionDef" or node.decorator_list:
            return None
        outer.function = node.name
        given = node.args
        arguments = getattr(given, "posonlyargs", []) + given.args + given.kwonlyargs
        for each in arguments + [each for each in (given.vararg, given.kwarg) if each is not None]:
            outer.bind(each.arg, None)
        if is_generator(node):
            return None
        return node.body, outer, given


def takes(given, call):
    """Whether a function can be called so: with positions and names that it has, and none left out."""
    if any(type(each).__name__ == "Starred" for each in call.args):
        return False
    named = [each.arg for each in call.keywords]
    positions = [each.arg for each in getattr(given, "posonlyargs", []) + given.args]
    left = positions[len(call.args) :]
    if None in named or given.vararg or given.kwarg or len(call.args) > len(positions):
        return False
    only = [each.arg for each in getattr(given, "posonlyargs", [])]
    more = [each.arg for each in given.kwonlyargs]
    if not set(named) <= set(left + more) - set(only):
        return False
    needed = positions[: len(positions) - len(given.defaults)]
    needed += [name for name, value in zip(more, given.kw_defaults) if value is None]
    return not set(needed) - set(named) - set(positions[: len(call.args)])


def is_generator(node):
    return any(type(each).__name__ in ("Yield", "YieldFrom", "Await") for each in nodes_of(node))


# How installers have a command take an ending off its own name, which it has on another system.
OWN_NAME = [
    "sys.argv[0] = re.sub('(-script\\\\.pyw|\\\\.exe)?$', '', sys.argv[0])",
    "sys.argv[0] = re.sub('(-script\\\\.pyw?|\\\\.exe)?$', '', sys.argv[0])",
    "sys.argv[0] = sys.argv[0].removesuffix('.exe')",
    "if sys.argv[0].endswith('-script.pyw'):\n    sys.argv[0] = sys.argv[0][:-11]\n"
    "elif sys.argv[0].endswith('.exe'):\n    sys.argv[0] = sys.argv[0][:-4]",
]


def is_own_name(node, place):
    """Whether a statement is one of these, and finds nothing to take off."""
    if place.file.endswith((".exe", ".pyw")) or place.name != "__main__":
        return False
    if not OWN_NAMES:
        OWN_NAMES.extend(shape(tree_of(text, "<known>")[0]) for text in OWN_NAME)
    return shape(node) in OWN_NAMES


OWN_NAMES = []


def shape(node):
    """A tree without where it stands."""
    if type(node) is list:
        return [shape(each) for each in node]
    if not hasattr(node, "_fields"):
        return node
    return [type(node).__name__, [shape(getattr(node, name, None)) for name in node._fields]]
