"""How long a call of a hello takes in a copy that waits: from `give` sent to `ended` heard.

    python3 bench_give.py [ROUNDS]

Not a test. Prints medians in milliseconds: cold, ready, give to ended, and within the copy.
"""

import os
import statistics
import struct
import sys
import tempfile
import time

from harness import ROW, Run, Worker


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    place = tempfile.mkdtemp()
    with open(os.path.join(place, "hello.rb"), "w") as file:
        file.write('puts "hello"\n')
    run = Run(ROW, ["hello.rb"], cwd=place)
    cold, whole, inside = [], [], []
    for _ in range(5):
        begun = time.monotonic()
        run.cold()
        cold.append(time.monotonic() - begun)
    begun = time.monotonic()
    with Worker(ROW, 0, 0, os.path.join(place, "hello.rb"), argv=["hello.rb"], cwd=place) as zygote:
        ready = time.monotonic() - begun
        for _ in range(rounds):
            channel, pidfd, _ = zygote.copy(1)
            # sleeps: the copy is to wait for its call, as copies do.
            time.sleep(0.02)
            outcome, _ = run.give(channel, pidfd)
            assert outcome.out == b"hello\n", outcome
            zygote.gone()
            _, payload, _ = channel.receive()
            _, _, _, main_ns, finished_ns = struct.unpack("<QBBQQ", payload)
            whole.append(run.ended_s - run.given_s)
            inside.append((finished_ns - main_ns) / 1e9)
            channel.close()
            os.close(pidfd)
    rows = ("cold", cold), ("ready", [ready]), ("give to ended", whole), ("main to finished", inside)
    for name, values in rows:
        figures = statistics.median(values) * 1e3, min(values) * 1e3
        print("%-17s p50 %.2f ms, least %.2f" % (name, *figures))


main()
