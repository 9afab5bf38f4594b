# probe: stdout=/dev/null
import faulthandler
import os

# The traceback has addresses in it: what counts is that it is written, and the signal.
read, write = os.pipe()
faulthandler.enable(write)
pid = os.fork()
if pid == 0:
    faulthandler._sigsegv()
status = os.waitpid(pid, 0)[1]
text = os.read(read, 1 << 16).decode()
os.write(2, text.splitlines()[0].encode() + b" %d\n" % os.WTERMSIG(status))
faulthandler.disable()
faulthandler._sigsegv()
