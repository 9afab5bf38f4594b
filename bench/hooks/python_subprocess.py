"""A peer of `bench-hooks`: every hook of every target by `subprocess.run`, one after another.

Arguments and results are those of the C programs, see plan.h.
"""

import json
import os
import subprocess
import sys
import time


def main():
    targets, work, said_path, times_path, *hooks = sys.argv[1:]
    with open(targets, encoding="ascii") as file:
        uuids = file.read().split()
    said, took = [], []
    begin = time.monotonic_ns()
    for uuid in uuids:
        variables = {**os.environ, "WORK": work, "UUID": uuid}
        for hook in hooks:
            before = time.monotonic_ns()
            ran = subprocess.run(
                [hook],
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
            )
            took.append(time.monotonic_ns() - before)
            if ran.stderr:
                sys.exit(f"{hook} wrote to stderr: {ran.stderr!r}")
            said.append(ran.stdout)
    elapsed = time.monotonic_ns() - begin
    with open(said_path, "wb") as file:
        file.write(b"".join(said))
    with open(times_path, "w", encoding="ascii") as file:
        file.writelines(f"{one}\n" for one in took)
    print(json.dumps({"hooks": len(took), "elapsed_ns": elapsed}))


main()
