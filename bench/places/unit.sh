# The process of a systemd unit: variables that are new at each start, a socket for its output, and
# one that it is to listen on. systemd itself need not be there.
cat >start.py <<'P'
import os, socket, subprocess, sys, uuid
listens = socket.socket(socket.AF_UNIX)
listens.bind(b"\0" + uuid.uuid4().bytes)
listens.listen()
# Nothing else is open yet, so that it has the number that units give it.
assert listens.fileno() == 3, listens
journal, unit = socket.socketpair()
at = os.fstat(unit.fileno())
keep = ("HOME", "USER", "PATH", "LANG", "HOB_DIR", "XDG_STATE_HOME")
env = {name: os.environ[name] for name in keep if name in os.environ}
env |= {
    "INVOCATION_ID": uuid.uuid4().hex,
    "JOURNAL_STREAM": f"{at.st_dev}:{at.st_ino}",
    "SYSTEMD_EXEC_PID": str(os.getpid()),
    "LISTEN_PID": str(os.getpid()),
    "LISTEN_FDS": "1",
    "LISTEN_FDNAMES": "bench.socket",
}
code = subprocess.call(
    sys.argv[1:], env=env, stdin=subprocess.DEVNULL, stdout=unit, stderr=unit,
    pass_fds=(3,), start_new_session=True,
)
sys.stdout.buffer.write(journal.recv(4096))
sys.exit(code)
P
often python3 -I start.py "$HOB" run "$HELLO" >said
records
