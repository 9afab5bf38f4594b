"""What can hold a promised name, and what of it can be given another."""


class Unclear(Exception):
    """Somebody keeps something of a promise in a way that is not known."""


def renew_argument(registered, at, new):
    arguments = list(registered[1])
    arguments[at] = new
    registered[1] = tuple(arguments)


def likeness(text):
    """A function that makes of another text what this one is, without its content."""
    kind = type(text)
    if kind is str:
        # An object of its own, as this one is.
        return lambda new: "".join((new[:1], new[1:]))
    if borrow("_weakref").getweakrefcount(text):
        raise Unclear
    names = getattr(text, "__dict__", None)
    slots = []
    for base in kind.__mro__:
        for name, member in base.__dict__.items():
            if type(member) is MEMBER and name not in ("__dict__", "__weakref__"):
                try:
                    slots.append((member, member.__get__(text)))
                except AttributeError:
                    continue

    def like(new):
        made = str.__new__(kind, new)
        for member, value in slots:
            member.__set__(made, value)
        if names:
            made.__dict__.update(names)
        return made

    return like


def is_standard(name, module):
    """Whether it is the interpreter's own, and as it was."""
    if name == "atexit":
        return type(module.register) is type(posix.getpid)
    code = getattr(module.mkdtemp, "__code__", None)
    return code is not None and os.path.dirname(code.co_filename) == os.path.dirname(os.__file__)


def token():
    return "".join([CHARACTERS[each % len(CHARACTERS)] for each in posix.urandom(TOKEN_CHARACTERS)])


def outside():
    """The innermost frame that is not ours."""
    frame = sys._getframe()
    while frame is not None and is_our_frame(frame):
        frame = frame.f_back
    return frame


def is_our_frame(thing):
    if type(thing) is not FRAME:
        return False
    names = thing.f_globals
    return names is worker.__dict__ or names.get("__name__") in OURS


def imported_first(code):
    """What a script imports before it can do anything else; nothing of one that is unknown."""
    names = set()
    raw = code.co_code if code is not None else b""
    for at in range(0, len(raw), 2):
        if raw[at] not in ONLY_IMPORT:
            break
        if raw[at] == OPCODES["IMPORT_NAME"]:
            name = code.co_names[raw[at + 1]]
            if at >= 2 and raw[at - 2] == OPCODES["EXTENDED_ARG"] or name not in sys.modules:
                # It is one that each call imports, which may end there.
                break
            while name:
                names.add(name)
                name = name.rpartition(".")[0]
    return names


def is_formatted(frame):
    """Whether what the call of this moment gives goes into a text, and nowhere else."""
    code, at = frame.f_code.co_code, frame.f_lasti
    after = at + 2
    while code[after] == CACHE:
        after += 2
    if code[after] in FORMATS:
        return True
    # `'...%s' % number()`: before the function stands a text, and nothing between.
    if (code[after], code[after + 1]) != REMAINDER:
        return False
    left = [LOADS_NAME, LOADS_ATTRIBUTE]
    while at > 0:
        at -= 2
        if code[at] == OPCODES["LOAD_CONST"]:
            number, base = code[at + 1], at - 2
            if base >= 0 and code[base] == OPCODES["EXTENDED_ARG"]:
                number |= code[base + 1] << 8
            return type(frame.f_code.co_consts[number]) is str
        kinds = [each for each in left if code[at] in each]
        if kinds:
            left.remove(kinds[0])
        elif code[at] not in BETWEEN:
            break
    return False


def ignore(arguments, options):
    pass


# Modules that draw by chance while they are imported, and keep it as a text among their names.
DRAWN = worker.known("drawn")
OPCODES = borrow("opcode").opmap


def opcodes(*names):
    return [OPCODES[name] for name in names if name in OPCODES]


# Before 3.11 no instruction has this number.
CACHE = 0
FORMATS = opcodes("FORMAT_VALUE", "FORMAT_SIMPLE")
REMAINDER = OPCODES.get("BINARY_OP"), 6
if sys.version_info < (3, 11):
    REMAINDER = OPCODES["BINARY_MODULO"], 0
LOADS_NAME = opcodes("LOAD_GLOBAL", "LOAD_NAME")
LOADS_ATTRIBUTE = opcodes("LOAD_ATTR", "LOAD_METHOD")
BETWEEN = opcodes("PUSH_NULL", "PRECALL", "EXTENDED_ARG") + [CACHE]
ONLY_IMPORT = BETWEEN + opcodes("RESUME", "NOP", "LOAD_CONST", "LOAD_SMALL_INT", "IMPORT_NAME",
                                "IMPORT_FROM", "STORE_NAME", "POP_TOP")
CODE, FRAME, MEMBER = type(token.__code__), type(sys._getframe()), type(worker.Call.number)
IN_MEMORY = worker._io.StringIO, worker._io.BytesIO
LEAVES = frozenset((int, float, bool, complex, type(None), type(...)))
