"""The function that answers: how it is loaded, and what becomes of what it returns or raises."""


class Loaded:
    """A function in a file, as `hob.toml` names it."""

    def __init__(self, target):
        self.file, _, self.function = target.rpartition(":")
        # What stands first on `sys.path`.
        self.directory = os.path.dirname(self.file)
        self.name = os.path.basename(self.file).rpartition(".")[0] or "handler"
        self.call = None
        # What performs several messages at one time, where that can be.
        self.attend = None
        # Whether what is called takes its message by itself, right before the user's code begins.
        self.takes = False
        self.error = None
        # Files that are not among what was loaded, and that what went wrong came from.
        self.tried = []

    def load(self):
        """Imports the file; what goes wrong is told when the preload has ended."""
        directory = os.path.abspath(worker.BYTECODE.sources)
        # Last: a user's own module of this name is found before it.
        sys.path.append(directory + "/python")
        # Bytecode is kept under its source's size and second: an edit within that second would
        # not be seen. What lies there already was written by others.
        sys.dont_write_bytecode = True
        try:
            self.find()
        except BaseException as error:
            self.error = where(error, self.file) + describe(error)
            self.tried = ["C" + file for file in sorted(files_of(error)) if file[:1] == "/"]

    def find(self):
        self.call = getattr(self.execute(), self.function, None)
        if not callable(self.call):
            self.error = "%s has no function `%s`" % (self.file, self.function)

    def execute(self):
        """The file as a module."""
        util = __import__("importlib.util", fromlist=["util"])
        spec = util.spec_from_file_location(self.name, self.file)
        if spec is None:
            raise ImportError("%s is no file of Python's" % self.file)
        module = util.module_from_spec(spec)
        sys.modules[self.name] = module
        # As a script is: always from its source.
        exec(worker.compile_script(self.file), module.__dict__)
        return module

    def check(self):
        if self.error is not None:
            raise LoadError(self.error)

    def end(self):
        """Called when the process is to leave: a function has nothing to end."""


class LoadError(Exception):
    """The handler cannot be loaded."""


def describe(error):
    """The last line of a traceback, on one line."""
    try:
        text = str(error)
    except BaseException:
        text = "<no text>"
    name = type(error).__name__
    return " ".join(("%s: %s" % (name, text) if text else name).split())


def where(error, file):
    """The line of the handler's own file that an error came through last."""
    if isinstance(error, SyntaxError) and error.filename:
        return "%s:%s: " % (error.filename, error.lineno)
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    return "" if line is None else "%s:%d: " % (file, line)


def files_of(error):
    """The files that an error, and what led to it, came through."""
    files, errors = set(), [error]
    for each in errors:
        if isinstance(each, SyntaxError) and each.filename:
            files.add(str(each.filename))
        step = each.__traceback__
        while step is not None:
            files.add(step.tb_frame.f_code.co_filename)
            step = step.tb_next
        errors += [more for more in (each.__cause__, each.__context__)
                   if more is not None and more not in errors]
    return files


def encode(answer):
    """What a handler returned, as a content type and bytes."""
    if type(answer) is bytes:
        return b"", answer
    if answer is None:
        return b"", b""
    if isinstance(answer, str):
        return TEXT.encode(), answer.encode("utf-8", "surrogateescape")
    if isinstance(answer, (bytes, bytearray, memoryview)):
        return b"", bytes(answer)
    json = __import__("json")
    return JSON.encode(), json.dumps(answer, separators=(",", ":")).encode()


def failure(number, reason, text):
    text = text.encode("utf-8", "replace")[:4096]
    return FAILED.pack(MAGIC, FAILURE, 0, 0, 9 + len(text), number, reason) + text


def show(error):
    """The whole traceback, to the log: the asker gets its last line. It begins where hob ends."""
    try:
        step = error.__traceback__
        while step is not None and is_own(step.tb_frame.f_code):
            step = step.tb_next
        error.__traceback__ = step
        sys.__excepthook__(type(error), error, error.__traceback__)
        worker.flush_quietly()
    except BaseException:
        pass


def is_own(code):
    """Whether it is the runtime's."""
    return os.path.dirname(code.co_filename) == os.path.dirname(__file__)


# The descriptors that came with the message at hand. Who takes one out closes it.
FILES = []
# Where its answer goes.
CONNECTION = None


class Left(BrokenPipeError):
    """Whoever was to have the rest of an answer has left."""


def perform(handler, fields, frame, received_ns):
    """Handles the message in `frame`; the frame to answer with, and whether it raised (1), or whoever
    was to have the rest has left."""
    _, _, number, _, _, program, key, kind, name = fields
    at = FIXED.size
    words = None
    if program or key or kind or name:
        words = bytes(frame[at : at + program + key + kind + name])
        at += program + key + kind + name
    try:
        answer = handler(bytes(frame[at:]), Message(fields, words, received_ns))
        if type(answer) is bytes and len(answer) <= BODY_MAX:
            size = 12 + len(answer)
            return ANSWERED.pack(MAGIC, ANSWER, 0, 0, size, number, 0) + answer, 0
        kind, answer = encode(answer)
        if len(answer) > BODY_MAX:
            text = "ValueError: an answer of %d bytes is over the cap of %d"
            return failure(number, RAISED, text % (len(answer), BODY_MAX)), 1
        size = 12 + len(kind) + len(answer)
        return ANSWERED.pack(MAGIC, ANSWER, 0, 0, size, number, len(kind)) + kind + answer, 0
    except Left:
        return failure(number, CANCELLED, ""), LEFT
    except BaseException as error:
        show(error)
        return failure(number, RAISED, describe(error)), 1
