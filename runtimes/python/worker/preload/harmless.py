"""Statements that do nothing but bind names, and conditions that are the same in each call."""


def does_nothing(node, place):
    """Whether to execute this statement runs no code of anybody's, and changes nothing but names."""
    kind = type(node).__name__
    if kind == "Pass":
        return True
    if kind == "Expr":
        return type(node.value).__name__ == "Constant"
    if kind == "Assign":
        names = all(type(each).__name__ == "Name" for each in node.targets)
        return names and is_plain(node.value, place) and bind_anew(place, node.targets)
    if kind == "AnnAssign":
        names = type(node.target).__name__ == "Name" and bind_anew(place, [node.target])
        value = node.value is None or is_plain(node.value, place)
        return names and value and is_annotation(node.annotation, place)
    if kind == "ClassDef":
        return is_plain_class(node, place)
    return is_plain_function(node, place, ())


def bind_anew(place, targets):
    """Names that are bound anew stand for nothing that is known."""
    for each in targets:
        place.bind(each.id, None)
    return True


def is_plain_function(node, place, decorators):
    if type(node).__name__ not in ("FunctionDef", "AsyncFunctionDef"):
        return False
    if any(getattr(each, "id", None) not in decorators or each.id in place.bound
           for each in node.decorator_list):
        return False
    given = node.args
    defaults = [each for each in given.defaults + given.kw_defaults if each is not None]
    arguments = getattr(given, "posonlyargs", []) + given.args + given.kwonlyargs
    arguments += [each for each in (given.vararg, given.kwarg) if each is not None]
    annotations = [each.annotation for each in arguments] + [node.returns]
    plain = all(is_plain(each, place) for each in defaults)
    place.bind(node.name, None)
    return plain and not getattr(node, "type_params", None) and all(
        each is None or is_annotation(each, place) for each in annotations
    )


def is_plain_class(node, place):
    """Whether making it tells no other class of it, and runs nothing."""
    if node.decorator_list or node.keywords or getattr(node, "type_params", None):
        return False
    if len(node.bases) > 1 or not all(is_own(stands_for(each, place)) for each in node.bases):
        return False
    inner = Place(place.file, place.name, place.package)
    inner.bound, inner.annotates = dict(place.bound), place.annotates
    for each in node.body:
        kind = type(each).__name__
        if kind in ("FunctionDef", "AsyncFunctionDef"):
            if not is_plain_function(each, inner, ("property", "staticmethod", "classmethod")):
                return False
        elif kind in ("Assign", "AnnAssign") and not is_constant(each.value):
            # What it is given to may be told of it (`__set_name__`).
            return False
        elif kind not in ("Expr", "Pass", "Assign", "AnnAssign") or not does_nothing(each, inner):
            return False
    place.bind(node.name, None)
    return True


def is_own(base):
    """Whether it is the interpreter's own, and can be a class's base. Others are asked for the classes
    below them (`__subclasses__`)."""
    own = type(base) is type and base is names_of(BUILTINS).get(base.__name__)
    return own and (base is object or issubclass(base, BaseException))


def is_constant(node):
    kind = type(node).__name__
    if kind in ("Tuple", "List"):
        return all(is_constant(each) for each in node.elts)
    if kind == "Dict":
        return all(is_constant(each) for each in node.keys + node.values)
    return node is None or kind == "Constant" or kind == "UnaryOp" and is_number(node)


def is_number(node):
    """A number, or what is computed of two and cannot fail."""
    kind = type(node).__name__
    if kind == "UnaryOp":
        return type(node.op).__name__ in ("USub", "UAdd") and is_number(node.operand)
    if kind == "BinOp":
        known = type(node.op).__name__ in ("Add", "Sub", "Mult")
        return known and is_number(node.left) and is_number(node.right)
    return kind == "Constant" and type(node.value) in (int, float)


def stands_for(node, place):
    """What a name, or a name of a module, stands for; None if that is not certain."""
    kind = type(node).__name__
    if kind == "Name":
        if node.id in place.bound:
            return place.bound[node.id]
        if node.id in place.names:
            return place.names[node.id]
        return names_of(BUILTINS).get(node.id)
    if kind == "Attribute":
        owner = stands_for(node.value, place)
        if isinstance(owner, type(sys)):
            return names_of(owner).get(node.attr)
    return None


def is_plain(node, place):
    """Whether an expression only names things, and puts them together."""
    kind = type(node).__name__
    if kind == "Constant":
        return True
    if kind == "Name":
        own = node.id in place.bound or node.id in place.names
        return own or node.id in names_of(BUILTINS) or node.id in ("__name__", "__file__")
    if kind == "Attribute":
        return stands_for(node, place) is not None
    if kind in ("Tuple", "List"):
        return all(is_plain(each, place) for each in node.elts)
    if kind == "Dict":
        constant = all(type(each).__name__ == "Constant" for each in node.keys)
        return constant and all(is_plain(each, place) for each in node.values)
    if kind in ("UnaryOp", "BinOp"):
        return is_number(node)
    if kind == "Subscript":
        # The arguments: a list, and a part of it.
        return stands_for(node.value, place) is sys.argv and is_part(node.slice)
    return False


def is_part(node):
    parts = [getattr(node, name, None) for name in ("lower", "upper", "step")]
    return type(node).__name__ == "Slice" and all(
        each is None or type(each).__name__ == "Constant" for each in parts
    )


def is_annotation(node, place):
    """The same of what says of which kind something is."""
    kind = type(node).__name__
    if not place.annotates or is_plain(node, place):
        return True
    if kind == "Subscript":
        base = stands_for(node.value, place)
        module = getattr(base if type(base) is type else type(base), "__module__", None)
        known = base is not None and module in ("builtins", "typing", "collections.abc")
        return known and is_annotation(node.slice, place)
    return kind == "Tuple" and all(is_annotation(each, place) for each in node.elts)


def value_of(node, place):
    """The value of a condition that asks only for what is the same in all calls of a program."""
    for each in nodes_of(node):
        if type(each).__name__ not in CONDITIONS:
            raise ValueError
        if type(each).__name__ == "Name" and each.id != "__name__":
            bound = stands_for(each, place)
            is_module = type(bound) is type(sys) and bound.__name__ in ("sys", "os", "typing")
            if not is_module and not (each.id == "TYPE_CHECKING" and bound is False):
                raise ValueError
        if type(each).__name__ == "Attribute" and each.attr not in CONSTANT_NAMES:
            raise ValueError
    names = {"__name__": place.name, "__builtins__": {}, **place.bound}
    expression = type(compile("0", "", "eval", ONLY_A_TREE))(body=node)
    return eval(compile(expression, "<condition>", "eval", dont_inherit=True), names)


def nodes_of(node):
    yield node
    for field in node._fields:
        value = getattr(node, field, None)
        for each in value if type(value) is list else (value,):
            if hasattr(each, "_fields"):
                yield from nodes_of(each)


CONDITIONS = frozenset((
    "Constant", "Name", "Load", "Attribute", "Compare", "BoolOp", "And", "Or", "UnaryOp", "Not",
    "Tuple", "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "In", "NotIn", "Subscript", "Slice",
))
CONSTANT_NAMES = frozenset((
    "version_info", "platform", "name", "major", "minor", "byteorder", "maxsize", "TYPE_CHECKING",
    "implementation", "hexversion",
))
