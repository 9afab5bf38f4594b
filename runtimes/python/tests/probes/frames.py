# probe: python=3.11
"""No frame stands below the program's own."""
import inspect
import sys
import traceback
import warnings

print(sys._getframe().f_back)
print(len(inspect.stack()))
traceback.print_stack()
warnings.warn("too deep", stacklevel=2)
warnings.warn("far too deep", stacklevel=9)
try:
    sys._getframe(1)
except ValueError as error:
    print(error)
