import atexit
import sys

atexit.register(lambda: print(sys.last_type, sys.exc_info()))
raise LookupError("gone")
