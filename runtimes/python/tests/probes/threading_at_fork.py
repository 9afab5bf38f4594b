"""What `threading` knows of the process and its threads, before and after a fork of the program."""
import os
import sys
import threading
import warnings


def state():
    main = threading.main_thread()
    return (
        main.native_id == os.getpid(),
        threading.current_thread() is main,
        sorted(thread.name for thread in threading.enumerate()),
        len(threading._dangling),
        len(getattr(threading, "_shutdown_locks", ())),
        threading._after_fork.__code__.co_name,
    )


# It says the number of the process.
warnings.simplefilter("ignore", DeprecationWarning)
print(state())
ready, wait = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (ready.set(), wait.wait()), name="other")
other.start()
ready.wait()
print(state())
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    # Only the thread that has forked is left, and another one can be started and joined.
    print(len(threading.enumerate()), other.is_alive(), threading._after_fork.__code__.co_name)
    again = threading.Thread(target=print, args=("again",))
    again.start()
    again.join()
    sys.stdout.flush()
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
wait.set()
other.join()
print(state())
