"""What `-m probe_package.interrupted` runs."""
import atexit

atexit.register(print, "exit hook")
raise KeyboardInterrupt
