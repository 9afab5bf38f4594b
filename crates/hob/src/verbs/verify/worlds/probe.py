"""What a program sees of its world: printed as JSON, for `hob verify` to compare cold and warm.

It is run by the interpreter of the program that is verified, through hob like any other program.
It must look at everything when it is called, and at nothing when its modules are imported.
"""

import json
import os
import resource
import signal
import sys


def environment():
    """Return every variable, as text that no byte is lost in."""
    return {
        os.fsdecode(name): os.fsdecode(value).encode("utf-8", "backslashreplace").decode()
        for name, value in os.environb.items()
    }


def descriptors():
    """Return the open descriptors: what each leads to, and whether a new program would have it."""
    seen = {}
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
            inherited = os.get_inheritable(int(name))
        except OSError:
            continue  # the descriptor of the listing itself
        # The number of a pipe or socket is another in each run.
        kind = target.partition(":[")[0]
        seen[name] = kind if inherited else kind + " (close-on-exec)"
    return seen


def status():
    """Return the lines of /proc/self/status that a caller hands on."""
    wanted = (
        "Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff",
        "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed_list",
    )
    seen = {}
    with open("/proc/self/status", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name in wanted:
                seen[name] = " ".join(value.split())
    return seen


def process():
    """Return what else a caller hands on, and what the interpreter makes of it."""
    seen = {
        "argv": repr(sys.argv),
        "executable": sys.executable,
        "path": repr(sys.path),
        "prefix": sys.prefix,
        "flags": repr(sys.flags),
        "name": __name__,
        "file": __file__,
        "directory": os.getcwd(),
        "nice": str(os.getpriority(os.PRIO_PROCESS, 0)),
        "stdout": f"{sys.stdout.encoding} {sys.stdout.errors}",
        "filesystem": f"{sys.getfilesystemencoding()} {sys.getfilesystemencodeerrors()}",
    }
    for name in sorted(dir(resource)):
        if name.startswith("RLIMIT_"):
            seen[name] = repr(resource.getrlimit(getattr(resource, name)))
    for number in sorted(signal.valid_signals()):
        seen[f"signal {int(number)}"] = repr(signal.getsignal(number))
    for name in sorted(os.listdir("/proc/self/ns")):
        seen[f"namespace {name}"] = os.readlink(f"/proc/self/ns/{name}")
    try:
        with open("/proc/self/oom_score_adj", encoding="ascii") as file:
            seen["oom_score_adj"] = file.read().strip()
    except OSError:
        pass
    seen.update(status())
    return seen


def main():
    """Print it all."""
    seen = {"environment": environment(), "process": process()}
    # Last: the two above have closed what they opened.
    seen["descriptors"] = descriptors()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
