"""Hooks of the program's own forks run, in their order, in parent and child."""
import os

done = []
os.register_at_fork(before=lambda: print("before", flush=True))
os.register_at_fork(
    before=lambda: print("before that", flush=True),
    after_in_parent=lambda: done.append("in the parent"),
    after_in_child=lambda: print("in the child", flush=True),
)
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(write, b"x")
    os._exit(3)
os.read(read, 1)
print(done, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
