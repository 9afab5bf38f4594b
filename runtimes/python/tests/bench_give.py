"""Prints how long a paid copy takes from `give` to `ended`, and the page faults in between.

    python3 bench_give.py [CALLS] [SCRIPT] [MODULE...]

For the runtime's own optimisation: nothing of the client or the daemon is measured. One call at a
time, a copy is paid before its call is timed.
"""

import os
import resource
import socket
import struct
import sys
import tempfile
import time

from harness import ENDED, GIVE, GONE, PROBES, Peer, Worker, strings, world


def faults(pid):
    """Minor faults of a process, or None once it has been reaped."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return int(file.read().rpartition(")")[2].split()[7])
    except (OSError, IndexError):
        return None


def one(zygote, script, paid):
    """(µs of the call, faults in it, the copy's private KiB before it, ms of the fork,
    ms of processor time in the copy's whole life)."""
    start = time.perf_counter()
    channel, pidfd, pid = zygote.copy(paid)
    forked = (time.perf_counter() - start) * 1e3
    near, far = socket.socketpair()
    null, cwd = os.open("/dev/null", os.O_RDWR), os.open(PROBES, os.O_RDONLY)
    payload = struct.pack("<QI", 1, 0) + world() + strings([script])
    payload += strings(k + b"=" + v for k, v in os.environb.items()) + bytes(9)
    fds = [null, null, null, cwd, far.fileno()]
    caller = Peer(near)
    with open("/proc/%d/smaps_rollup" % pid) as file:
        private = sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty"))
    before = faults(pid)
    start = time.perf_counter()
    channel.send(GIVE, payload, fds)
    assert near.recv(64)[4] == ENDED
    took = (time.perf_counter() - start) * 1e6
    after = faults(pid)
    for fd in (null, cwd, pidfd):
        os.close(fd)
    far.close()
    caller.close()
    _, payload, _ = zygote.channel.expect(GONE)
    cpu = sum(struct.unpack_from("<QQ", payload, 10)) / 1e3
    channel.close()
    return took, after and after - before, private, forked, cpu


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    script = sys.argv[2] if len(sys.argv) > 2 else None
    modules = sys.argv[3:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(7)[1]))
    with tempfile.TemporaryDirectory() as folder:
        if script is None:
            script = os.path.join(folder, "hello.py")
            with open(script, "w") as file:
                file.write('print("hello")\n')
        with Worker(0, 0, os.path.abspath(script), modules=modules, cwd=PROBES) as zygote:
            for paid, name in ((1, "paid"), (2, "plain"), (0, "unpaid")):
                rows = [one(zygote, os.path.abspath(script), paid) for _ in range(calls)]
                report(name, rows)


def report(name, rows):
    times = sorted(row[0] for row in rows)
    seen = sorted(row[1] for row in rows if row[1] is not None)
    private = sorted(row[2] for row in rows)
    forks = sorted(row[3] for row in rows)
    print(
        "%-6s  p50 %5.0f  p99 %5.0f  min %5.0f µs  faults p50 %s max %s  private %d KiB  "
        "fork %.1f ms  cpu %.2f ms"
        % (
            name,
            times[len(times) // 2],
            times[int(len(times) * 0.99)],
            times[0],
            seen[len(seen) // 2] if seen else "?",
            seen[-1] if seen else "?",
            private[len(private) // 2],
            forks[len(forks) // 2],
            sorted(row[4] for row in rows)[len(rows) // 2],
        )
    )


if __name__ == "__main__":
    main()
