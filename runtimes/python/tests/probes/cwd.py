import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
print(os.getcwd() == here, os.path.exists("cwd.py"), sys.path[0] == here, len(sys.path))
print(sys.path[1:])
