import sys

print("kept")
sys.stdout.close()
sys.stderr.write("still here\n")
