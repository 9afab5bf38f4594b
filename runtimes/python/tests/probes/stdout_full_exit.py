# probe: stdout=/dev/full
import sys

print("does not fit")
sys.exit(3)
