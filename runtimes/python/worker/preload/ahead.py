"""Statements between a program's imports that a zygote does as well, since each call does the same:
a variable that is set to what the text says, and a directory of the program's on the search path.

A variable stays set in the copies, as one that a module has set. A directory is taken off the path
again: the program puts it there.
"""

PATH_FUNCTIONS = "dirname", "abspath", "join", "realpath", "normpath", "split"
PATH_METHODS = "resolve", "absolute", "joinpath", "as_posix"


def names_a_path(node, place):
    """Whether it only gives a name to what a later one of these needs."""
    if type(node).__name__ != "Assign" or not is_path(node.value, place):
        return False
    if any(type(each).__name__ != "Name" for each in node.targets):
        return False
    for each in node.targets:
        place.bind(each.id, None)
        place.paths.add(each.id)
    place.pending.append(node)
    return True


def only_names(statements):
    """Whether these change nothing but names of the program."""
    targets = [each for node in statements for each in getattr(node, "targets", [None])]
    return all(type(each).__name__ == "Name" for each in targets)


def is_done_ahead(node, place):
    """Whether a zygote may do it: what it finds out by that is heard as of an import."""
    kind = type(node).__name__
    if kind == "Assign" and len(node.targets) == 1:
        target = node.targets[0]
        name = type(target).__name__ == "Subscript" and target.slice
        return is_environment(getattr(target, "value", None), place) and is_text(name) and (
            is_path(node.value, place))
    if kind != "Expr" or type(node.value).__name__ != "Call":
        return False
    return is_call_ahead(node.value, place)


def is_call_ahead(call, place):
    method, owner = getattr(call.func, "attr", None), getattr(call.func, "value", None)
    if method in ("insert", "append") and is_search_path(owner, place):
        count = {"insert": 2, "append": 1}[method]
        return len(call.args) == count and not call.keywords and all(
            is_path(each, place) for each in call.args
        )
    if method == "setdefault" and is_environment(owner, place):
        return len(call.args) == 2 and not call.keywords and is_text(call.args[0]) and (
            is_path(call.args[1], place))
    return False


def is_text(node):
    return type(node).__name__ == "Constant" and type(node.value) is str


def is_search_path(node, place):
    return type(node).__name__ == "Attribute" and node.attr == "path" and (
        stands_for(node.value, place) is sys)


def is_environment(node, place):
    return node is not None and stands_for(node, place) is names_of(sys.modules["os"])["environ"]


def is_path(node, place):
    """Whether an expression is made of constants, of the program's own file, and of what the library
    makes of these."""
    kind = type(node).__name__
    if kind == "Constant":
        return True
    if kind == "Name":
        return node.id in place.paths or node.id == "__file__" and node.id not in place.bound
    if kind == "Attribute":
        return node.attr in ("parent", "parents") and is_path(node.value, place)
    if kind == "Subscript":
        return type(node.slice).__name__ in ("Constant", "UnaryOp") and is_path(node.value, place)
    if kind == "BinOp":
        return type(node.op).__name__ in ("Div", "Add") and is_path(node.left, place) and (
            is_path(node.right, place))
    if kind != "Call" or node.keywords or not all(is_path(each, place) for each in node.args):
        return False
    if getattr(node.func, "attr", None) in PATH_METHODS and is_path(node.func.value, place):
        return True
    function = stands_for(node.func, place)
    if type(function) is FUNCTION:
        return function.__module__ in ("posixpath", "genericpath") and (
            function.__name__ in PATH_FUNCTIONS)
    module = getattr(function, "__module__", "") if type(function) is type else ""
    return function is str or module.partition(".")[0] == "pathlib" and function.__name__ == "Path"


class SearchPath:
    """The search path, on which statements put directories ahead."""

    def __init__(self):
        # Whether it was put last, where, and which one.
        self.done = []

    def has_grown(self, before):
        """Notes which directory a statement has put where."""
        if len(sys.path) == len(before) + 1:
            at = [now != then for now, then in zip(sys.path, before + [None])].index(True)
            self.done.append((at == len(before), at, sys.path[at]))

    def take_off(self):
        """Leaves the path as the program finds it when it begins; False if it would not have then
        what it has now."""
        now = list(sys.path)
        for _, _, directory in reversed(self.done):
            if directory in sys.path:
                sys.path.remove(directory)
        again = list(sys.path)
        for is_last, at, directory in self.done:
            again.insert(len(again) if is_last else at, directory)
        return again == now
