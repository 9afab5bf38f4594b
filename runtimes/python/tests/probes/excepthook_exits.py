import sys

sys.excepthook = lambda *_: sys.exit(11)
raise ValueError
