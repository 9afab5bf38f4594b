import sys

print("threading" in sys.modules)
import threading

print(threading.current_thread() is threading.main_thread(), threading.active_count())
print(threading.main_thread().ident == threading.get_ident(), threading.main_thread().name)


def fail():
    raise ValueError("in a thread")


thread = threading.Thread(target=fail, name="failing")
thread.start()
thread.join()
threading.Thread(target=threading.Event().wait, daemon=True).start()
