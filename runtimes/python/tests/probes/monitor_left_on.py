# probe: python=3.12
"""A monitor is told of the program's own exceptions, and of none of ours."""
import atexit
import sys
import threading  # noqa: F401

seen = []
monitoring = sys.monitoring
tool = monitoring.DEBUGGER_ID


def told(what):
    def callback(code, *_):
        if code.co_name not in ("callback", "told"):
            seen.append((what, code.co_name))
    return callback


def at_end():
    monitoring.set_events(tool, 0)
    print(seen)


def work():
    sys.exit(5)


atexit.register(at_end)
monitoring.use_tool_id(tool, "a monitor")
for name in ("RAISE", "RERAISE", "PY_UNWIND", "PY_START", "EXCEPTION_HANDLED"):
    monitoring.register_callback(tool, getattr(monitoring.events, name), told(name))
events = monitoring.events
monitoring.set_events(
    tool, events.RAISE | events.RERAISE | events.PY_UNWIND | events.PY_START | events.EXCEPTION_HANDLED
)
work()
