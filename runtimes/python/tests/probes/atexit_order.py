import atexit
import sys
import threading
import time


class Last:
    def __del__(self):
        print("del", flush=True)


keep = Last()
atexit.register(print, "first registered")
atexit.register(print, "second registered")


@atexit.register
def failing():
    print("__file__" in globals(), "__cached__" in globals(), sys.exc_info())
    raise ValueError("in an exit hook")


def slow():
    time.sleep(0.05)
    print("thread ends")


threading.Thread(target=slow).start()
print("main ends")
