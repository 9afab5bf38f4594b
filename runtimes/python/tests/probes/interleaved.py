import os
import subprocess
import sys

print("first", flush=True)
subprocess.run([sys.executable, "-c", "print('second')"])
print("third", flush=True)
os.system("echo fourth")
print("fifth")
