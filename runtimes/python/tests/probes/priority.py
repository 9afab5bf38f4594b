# probe: nice=7 io=16390 policy=3 oom=300 slack=70000
import ctypes
import os
import threading

IOPRIO_GET = 31 if os.uname().machine == "aarch64" else 252


def show():
    print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
    print(ctypes.CDLL(None).syscall(*map(ctypes.c_long, (IOPRIO_GET, 1, 0))))


show()
thread = threading.Thread(target=show)
thread.start()
thread.join()
for name in ("oom_score_adj", "timerslack_ns"):
    with open("/proc/self/" + name) as file:
        print(file.read())
