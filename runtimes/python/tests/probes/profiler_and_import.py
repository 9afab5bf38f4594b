# probe: python=3.11
"""A profiler is told of as many returns as of calls, where modules and variables are looked up."""
import os
import sys

told, open_calls, unasked = [], [], []
LOOKS = ("_find_and_load", "_find_spec", "get", "__getitem__", "encode", "encodekey", "where")


def profiler(frame, event, arg):
    name = frame.f_code.co_name
    if event == "call":
        open_calls.append(frame)
        told.append(name)
    elif event == "return" and open_calls and open_calls[-1] is frame:
        open_calls.pop()
    elif event == "return":
        unasked.append(name)


sys.setprofile(profiler)
import neighbour  # noqa: E402

neighbour.where()
os.environ.get("SOMETHING")
try:
    import not_to_be_found  # noqa: F401
except ImportError:
    pass
sys.setprofile(None)
print([name for name in told if name in LOOKS], unasked)
sys.setprofile(None)
os.environ.get("SOMETHING")
