# probe: options=-I
import os
import sys

print(sys.path, os.path.dirname(os.path.abspath(__file__)) in sys.path, sys.flags)
