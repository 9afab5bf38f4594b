import os
import sys

sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", "import sys; print(sys.argv); sys.exit(12)", "x"])
