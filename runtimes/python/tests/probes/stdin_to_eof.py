# probe: stdin="one\ntwo\r\nthree"
import sys

print(repr(sys.stdin.readline()))
print([line for line in sys.stdin])
print(repr(sys.stdin.read()))
