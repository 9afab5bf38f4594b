# probe: stdin="\u00e9\u00ff\n"
import os
import sys

print(sys.stdin.buffer.read(1))
print(sys.stdin.buffer.read())
print(os.lseek(0, 0, os.SEEK_CUR))
