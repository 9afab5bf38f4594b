# probe: signal=TERM
import signal
import sys


def stop(number, frame):
    print("got", signal.Signals(number).name, frame.f_code.co_name)
    sys.exit(4)


signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
signal.pause()
