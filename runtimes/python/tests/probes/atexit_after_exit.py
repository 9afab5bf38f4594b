import atexit
import sys

atexit.register(lambda: print("__file__" in globals()))
atexit.register(lambda: sys.exit(8))
sys.exit(6)
