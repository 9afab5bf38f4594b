"""What `-m probe_package.tool` runs."""
import sys

print(sys.argv[1:], __name__, __spec__.parent)
raise RuntimeError("from a module")
