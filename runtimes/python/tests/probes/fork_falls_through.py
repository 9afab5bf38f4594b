"""A child that the program forks ends as a child of a cold run does."""
import atexit
import os
import sys

atexit.register(lambda: print("exit hook", flush=True))
pid = os.fork()
if pid:
    print("child:", os.waitpid(pid, 0)[1], flush=True)
    sys.exit(1)
sys.stdout.write("in the child\n")
sys.exit(7)
