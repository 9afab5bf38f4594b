"""What `-m probe_package` runs."""
import os
import sys

import probe_package

print(probe_package.seen, [os.path.basename(sys.argv[0]), *sys.argv[1:]])
print(__name__, __package__, __spec__.name, os.path.basename(__file__), type(__loader__).__name__)
print(getattr(sys, "orig_argv", ["", "-m", "probe_package", "q"])[1:])
print(os.path.basename(sys.path[0]), [n for n in globals() if n.startswith("__")])
sys.exit(21)
