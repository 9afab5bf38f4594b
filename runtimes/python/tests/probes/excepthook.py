import sys


def hook(kind, error, traceback):
    print("hook:", kind.__name__, error, traceback.tb_lineno, traceback.tb_next)
    print(sys.exc_info(), sys.last_value is error)


sys.excepthook = hook
raise ValueError("seen by the hook")
