import sys


def hook(*_):
    raise RuntimeError("the hook itself")


sys.excepthook = hook
raise ValueError("the original")
