# probe: signal=INT
import atexit
import time


@atexit.register
def wait():
    print("ready", flush=True)
    time.sleep(20)
