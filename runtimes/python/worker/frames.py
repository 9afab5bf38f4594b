"""Frames of the interpreter: a program sees none of ours."""


def hide(function):
    """The same function, whose frames the interpreter never shows.

    From 3.11 a frame counts as incomplete until it reaches RESUME, and incomplete frames are left
    out of tracebacks and `sys._getframe`: without a RESUME it always is. Before 3.11 tracebacks
    are stripped (`strip`), and the file name keeps `warnings` from showing us.
    """
    code = function.__code__
    changes = {"co_filename": "<frozen importlib._bootstrap>"}
    if RESUME is not None:
        raw = bytearray(code.co_code)
        for i in range(0, len(raw), 2):
            if raw[i] == RESUME:
                raw[i], raw[i + 1] = NOP, 0
        changes["co_code"] = bytes(raw)
    hidden = type(function)(
        code.replace(**changes),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    HIDDEN.add(hidden.__code__)
    return hidden


HIDDEN = set()
RESUME = NOP = None
if sys.version_info >= (3, 11):
    RESUME, NOP = map(borrow("opcode").opmap.get, ("RESUME", "NOP"))


# From 3.12 on the interpreter tells tracers and profilers of an exception in every frame that it
# leaves, in ours too; there it finds no frame to show, and its complaint takes the exception's place.
# So nobody is told of what is ours (`Kernel.quieten`). A monitor's callback would do as well, but
# then each function checks for monitors when it first runs.
TOLD_OF_OURS = sys.version_info >= (3, 12)
QUIET = False
# Calls what is the program's, where its tracer and its profiler are told.
traced = sys.call_tracing


def strip(traceback):
    """A traceback without our own frames at its outer end."""
    while traceback is not None and traceback.tb_frame.f_code in HIDDEN:
        traceback = traceback.tb_next
    return traceback
