# probe: args="a 'b c' --flag '' é"
import sys

print(sys.argv)
print(getattr(sys, "orig_argv", ["python"])[1:])
import argparse

print(argparse.ArgumentParser().prog)
