import sys

sys.exit("a message: é")
