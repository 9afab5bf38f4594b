import os
import sys

print("lost")
os.close(1)
sys.exit(2)
