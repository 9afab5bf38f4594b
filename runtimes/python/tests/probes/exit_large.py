import sys

sys.exit(257 + (1 << 40))
