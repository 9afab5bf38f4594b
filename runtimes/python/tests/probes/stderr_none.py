import sys

sys.stderr = None
print("out")
raise ValueError("nobody hears")
