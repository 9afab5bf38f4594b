# probe: options="-O -B"
import sys

print(sys.flags, sys.dont_write_bytecode, __debug__)
print(sys.warnoptions, sys._xoptions, sys.executable, sys.prefix, sys.base_prefix)
print(sys.excepthook is sys.__excepthook__, sys.getrecursionlimit(), sys.getswitchinterval())
print(hasattr(sys, "last_type"), hasattr(sys, "last_value"), hasattr(sys, "last_traceback"))
print(sys.meta_path, len(sys.path_hooks))
