"""Modules that only the runtime needs are as in a cold run, and work when imported."""
import sys

known = sorted(sys.modules)
print(known)
import ctypes
import gc
import resource
import select
import socket

print(ctypes.c_int(3), ctypes.CDLL(None).getpid() > 0, ctypes.sizeof(ctypes.c_void_p))
near, far = socket.socketpair()
near.send(b"x")
print(far.recv(1), select.select([far], [], [], 0), gc.isenabled(), gc.get_threshold())
print(resource.getrusage(resource.RUSAGE_SELF).ru_majflt >= 0, gc.callbacks, gc.garbage)
