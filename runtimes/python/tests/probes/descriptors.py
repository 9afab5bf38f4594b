"""The first free descriptor is 3, and a child sees no more than in a cold run."""
import os
import subprocess

print(os.open("/dev/null", os.O_RDONLY))
os.set_inheritable(3, True)
subprocess.run(["ls", "/proc/self/fd"], close_fds=False)
pid = os.fork()
if pid == 0:
    print(sorted(os.listdir("/proc/self/fd"), key=int), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
