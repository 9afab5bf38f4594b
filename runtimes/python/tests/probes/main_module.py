"""What `__main__` holds before its first line has run."""
names = [(n, v) for n, v in globals().items()]
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
for name, value in names:
    print(name, repr(value).split(" at 0x")[0].replace(here, "HERE"))
print(sys.modules["__main__"].__dict__ is globals())
print(__loader__.name, os.path.basename(__loader__.path), __loader__.get_filename() == __file__)
print(__file__ == os.path.abspath(__file__), os.path.relpath(__file__, here))
print([m for m in list(sys.modules)[:12]])
