import os
import signal

print(signal.getsignal(signal.SIGPIPE))
r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError as error:
    print(error)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
print("dies now", flush=True)
os.write(w, b"x")
