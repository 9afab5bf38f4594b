import signal
import time

print(signal.getitimer(signal.ITIMER_REAL), signal.alarm(0))
signal.signal(signal.SIGALRM, lambda number, frame: print("alarm", number))
signal.setitimer(signal.ITIMER_REAL, 0.02)
signal.pause()
signal.signal(signal.SIGALRM, signal.SIG_DFL)
print(signal.alarm(60), signal.alarm(0), flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.02)
time.sleep(30)
