"""hob run main.py NAME..."""

import sys

from core import greeting

print(greeting(sys.argv[1:]))
