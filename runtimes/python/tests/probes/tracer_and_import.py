# probe: python=3.11
"""A tracer is told once in each frame of an exception that a search for a module ends by."""
import sys

told = []


class Refusing:
    @staticmethod
    def find_spec(name, path, target=None):
        raise ImportError("refused")


def tracer(frame, event, arg):
    if event in ("call", "exception", "return"):
        told.append((event, frame.f_code.co_name))
    return tracer


sys.meta_path.append(Refusing)
sys.settrace(tracer)
try:
    import not_to_be_found  # noqa: F401
except ImportError:
    pass
sys.settrace(None)
looks = ("_find_and_load", "_find_and_load_unlocked", "_find_spec", "find_spec", "<module>")
print([each for each in told if each[1] in looks])
