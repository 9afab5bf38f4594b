import sys

sys.stdout.write("abc")
sys.stdout.flush()
print(sys.stdout.tell(), sys.stdout.seekable())
sys.stdout.buffer.write(b"\x00\xff\n")
sys.stdout.buffer.flush()
sys.stderr.write("half a line")
