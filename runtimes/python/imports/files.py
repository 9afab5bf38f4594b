"""Files that are looked at: for what, what is there, and which of them tell of the moment."""


def purpose_of(frame, name):
    """Of a file that is looked at by this code, what matters: `presence`, `link` or `exact`."""
    module, function = frame.f_globals.get("__name__") or "", frame.f_code.co_name
    if module.startswith("pathlib"):
        while (frame.f_back.f_globals.get("__name__") or "").startswith("pathlib"):
            frame = frame.f_back
            function = frame.f_code.co_name
    if (module, function) in (("posixpath", "realpath"), ("posixpath", "_joinrealpath")):
        return "link"
    if module in ("genericpath", "posixpath") or module.startswith("pathlib"):
        return PURPOSES.get(function, "exact")
    if searches(frame):
        return "presence"
    return "link" if name == "readlink" else "exact"


# Functions of the library that look at files, and what they tell of them.
PURPOSES = dict.fromkeys(("exists", "isfile", "isdir", "is_file", "is_dir"), "presence")
PURPOSES.update(dict.fromkeys(("lexists", "islink", "isjunction", "is_symlink", "is_junction",
                               "readlink", "resolve", "_resolve"), "link"))


def outside():
    """The innermost frame that is not ours."""
    frame = sys._getframe()
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def is_ours(frame):
    names = frame.f_globals
    return names is worker.__dict__ or names.get("__name__") in OURS


OURS = "runtime imports", "runtime watch"


def is_standard_stream(fd):
    return isinstance(fd, int) and 0 <= fd < 3


def is_of_the_moment(path):
    return path.startswith(OF_THE_MOMENT) and path not in CONSTANT


def steps(program):
    """Every name on the way to a script: what it leads to decides which directory is its own."""
    path = program.target if program.kind == worker.SCRIPT else "/"
    while path.strip("/"):
        yield path
        path = os.path.dirname(path)


def kind_of(path):
    """What is there, links followed."""
    try:
        mode = posix.stat(path).st_mode & 0o170000
    except (OSError, ValueError):
        return "-"
    return {0o100000: "f", 0o040000: "d"}.get(mode, "o")


def is_link(path):
    try:
        return posix.lstat(path).st_mode & 0o170000 == 0o120000
    except (OSError, ValueError):
        return False


def link_of(path):
    """Where a link leads; nothing if it is none."""
    try:
        return posix.readlink(path)
    except (OSError, ValueError):
        return ""


SYSTEM_FILES = (b"/etc/localtime", b"/etc/ld.so.cache", b"/etc/ld.so.preload")
NOT_FILES = ("/proc/", "/sys/", "/dev/")
OF_THE_MOMENT = ("/proc/", "/dev/tty", "/dev/pts", "/dev/random", "/dev/urandom", "/dev/shm",
                 "/dev/std", "/dev/fd")
# Where anybody makes files at any time: what it lists is old when it has been listed.
FOR_ALL = "/tmp", "/var/tmp", "/usr/tmp"
CONSTANT = ("/proc/cpuinfo", "/proc/version", "/proc/filesystems", "/proc/self/exe")


def is_there(path):
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True
