import os
import signal

print("lost unless flushed")
os.kill(os.getpid(), signal.SIGTERM)
