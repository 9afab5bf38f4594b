import atexit

atexit.register(print, "exit hook")
print("before")
raise KeyboardInterrupt
