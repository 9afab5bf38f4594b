"""Owns: objects of Python's own that do something when they end."""


def finalizer():
    class Kind:
        def __del__(self):
            print("del")

    return Kind()


def finalizer_that_needs_globals():
    class Kind:
        def __del__(self):
            print("del", "len" in dir(__builtins__) or "len" in __builtins__, print is not None)

    return Kind()


def finalizer_that_imports():
    class Kind:
        def __del__(self):
            import colorsys

            print("del", colorsys.__name__)

    return Kind()


def finalizer_that_writes():
    class Kind:
        def __del__(self):
            with open("out.txt", "w") as file:
                file.write("del")

    return Kind()


def finalizer_that_fails():
    class Kind:
        def __del__(self):
            raise ValueError("in del")

    return Kind()


def finalizer_that_exits():
    class Kind:
        def __del__(self):
            raise SystemExit(7)

    return Kind()


def finalizer_with_slots():
    class Kind:
        __slots__ = ("word",)

        def __del__(self):
            print("del", self.word)

    made = Kind()
    made.word = "slot"
    return made


def finalizer_of_list():
    class Kind(list):
        def __del__(self):
            print("del", list(self))

    return Kind([1, 2])


def finalizer_of_dict():
    class Kind(dict):
        def __del__(self):
            print("del", dict(self))

    return Kind(a=1)


def finalizer_of_number():
    class Kind(int):
        def __del__(self):
            print("del", int(self))

    return Kind(3)


def finalizer_of_error():
    class Kind(Exception):
        def __del__(self):
            print("del", self.args)

    return Kind("a")


def finalizer_of_class():
    class Meta(type):
        def __del__(cls):
            print("del class", cls.__name__)

    class Kind(metaclass=Meta):
        pass

    return Kind


def finalizer_of_module():
    import types

    class Kind(types.ModuleType):
        def __del__(self):
            print("del", self.__name__)

    return Kind("invented")


def finalizer_of_thread():
    import threading

    class Kind(threading.Thread):
        def __del__(self):
            print("del thread")

    made = Kind()
    made.start()
    made.join()
    return made


def many_finalizers_in_order():
    class Kind:
        def __init__(self, word):
            self.word = word

        def __del__(self):
            print("del", self.word)

    return [Kind(word) for word in "abc"]


def chain_of_finalizers():
    class Kind:
        def __init__(self, word, after):
            self.word, self.after = word, after

        def __del__(self):
            print("del", self.word)

    return Kind("first", Kind("second", Kind("third", None)))


def resurrected_object():
    kept = []

    class Kind:
        def __del__(self):
            kept.append(self)
            print("del", len(kept))

    return Kind(), kept


def resurrected_in_builtins():
    import builtins

    class Kind:
        def __del__(self):
            builtins.again = self
            print("del")

    return Kind()


def weak_finalize():
    import weakref

    class Kind:
        pass

    made = Kind()
    weakref.finalize(made, print, "finalized")
    return made


def weak_finalize_not_at_exit():
    import weakref

    class Kind:
        pass

    made = Kind()
    weakref.finalize(made, print, "finalized").atexit = False
    return made


def weak_callback():
    import weakref

    class Kind:
        pass

    made = Kind()
    return made, weakref.ref(made, lambda _: print("gone"))


def weak_callback_elsewhere():
    import sys
    import weakref

    class Kind:
        pass

    made = Kind()
    sys.watching = weakref.ref(made, lambda _: print("gone"))
    return made


def weak_dictionary():
    import weakref

    class Kind:
        def __del__(self):
            print("del", len(watching))

    watching = weakref.WeakValueDictionary()
    made = watching["a"] = Kind()
    return made


def thread_local_value():
    import threading

    class Kind:
        def __del__(self):
            print("del")

    local = threading.local()
    local.value = Kind()
    return local


def cached_object():
    import functools

    class Kind:
        def __del__(self):
            print("del")

    @functools.lru_cache(None)
    def made():
        return Kind()

    made()
    return made


def bound_method():
    class Kind:
        def method(self):
            pass

        def __del__(self):
            print("del")

    return Kind().method


def default_argument():
    class Kind:
        def __del__(self):
            print("del")

    made = Kind()
    return lambda kept=made: kept


def traceback_that_holds():
    class Kind:
        def __del__(self):
            print("del")

    def fail():
        kept = Kind()
        raise ValueError(kept)

    try:
        fail()
    except ValueError as error:
        return error


def exit_hook_and_finalizer():
    import atexit

    class Kind:
        def __del__(self):
            print("del")

    atexit.register(print, "exit hook")
    return Kind()


def exit_hook_that_holds():
    import atexit

    class Kind:
        def told(self):
            print("exit hook")

        def __del__(self):
            print("del")

    made = Kind()
    atexit.register(made.told)
    return made


def exit_hook_that_makes_one():
    import atexit

    class Kind:
        def __del__(self):
            print("del")

    def hook():
        atexit.kept = Kind()

    atexit.register(hook)
    return hook


def unraisable_hook():
    import sys

    class Kind:
        def __del__(self):
            raise ValueError("in del")

    sys.unraisablehook = lambda told: print("told", told.exc_value)
    return Kind()


def garbage_callback():
    import gc

    gc.callbacks.append(lambda phase, _: print(phase))
    return gc.callbacks


def garbage_shown():
    import gc

    class Kind:
        pass

    gc.set_debug(gc.DEBUG_STATS)
    made = Kind()
    made.self = made
    return made


def profiler_left_on():
    import sys

    class Kind:
        def __del__(self):
            print("del")

    sys.setprofile(None)
    return Kind()


def ctypes_callback():
    import ctypes

    class Kind:
        def __del__(self):
            print("del")

    kept = Kind()
    return ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0 if kept else 1)


def capsule_like_memory():
    class Kind(bytearray):
        def __del__(self):
            print("del", bytes(self))

    return memoryview(Kind(b"abc"))


def element_tree():
    import xml.etree.ElementTree

    class Kind(str):
        def __del__(self):
            print("del")

    made = xml.etree.ElementTree.Element("a")
    made.text = Kind("b")
    return made


def pattern_function():
    import re

    class Kind:
        def __call__(self, match):
            return ""

        def __del__(self):
            print("del")

    return re.compile("a").scanner("aaa"), Kind()


def named_tuple():
    import collections

    class Kind:
        def __del__(self):
            print("del")

    return collections.namedtuple("Pair", "a b")(Kind(), 2)


def data_class():
    import dataclasses

    @dataclasses.dataclass
    class Kind:
        a: int = 1

        def __del__(self):
            print("del", self.a)

    return Kind()


def warning_when_ending():
    class Kind:
        def __del__(self):
            import warnings

            warnings.warn("left open", ResourceWarning, 1, self)

    return Kind()
