"""A tracer that is still on where an exception ends the program: it sees the hook that prints it."""
import atexit
import sys
import threading  # noqa: F401
import traceback  # noqa: F401

seen = []


def tracer(frame, event, arg):
    # Up to 3.11 it sees itself be taken off.
    if frame.f_code.co_name != "unwatched":
        seen.append((frame.f_code.co_name, event))
    return tracer


def at_end():
    sys.settrace(None)
    print(seen)


def hook(kind, error, where):
    sys.stderr.write("%s: %s\n" % (kind.__name__, error))
    raise KeyError("of the hook")


atexit.register(at_end)
sys.excepthook = hook
sys.settrace(tracer)
raise ValueError("of the program")
