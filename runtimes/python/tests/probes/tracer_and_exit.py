"""A tracer that is still on where the program exits: it sees what comes after, and none of ours."""
import atexit
import sys
import threading  # noqa: F401

seen = []


def tracer(frame, event, arg):
    # Up to 3.11 it sees itself be taken off.
    if frame.f_code.co_name != "unwatched":
        seen.append((frame.f_code.co_name, event))
    return tracer


def at_end():
    sys.settrace(None)
    print(seen)


def work():
    sys.exit(7)


atexit.register(at_end)
sys.settrace(tracer)
work()
