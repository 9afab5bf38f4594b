"""A tracer sees the program's own files, its exit hooks too, and none of ours."""
import atexit
import os
import sys

seen = set()


def tracer(frame, event, arg):
    seen.add((frame.f_code.co_filename, frame.f_code.co_name))


def at_end():
    library = os.path.dirname(os.__file__)
    own = [each for each in seen if not each[0].startswith((library, "<frozen"))]
    # Generators may be functions of their own.
    print(sorted(each for each in own if each[1][0] != "<" or each[1] == "<module>"))


atexit.register(at_end)
sys.settrace(tracer)
import neighbour  # noqa: E402

neighbour.where()
os.environ.get("SOMETHING")
try:
    import not_to_be_found  # noqa: F401
except ImportError:
    pass
