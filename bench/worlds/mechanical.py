"""Owns: the questions that are made by machine, from what the standard library says of itself.

Every public function of the modules below whose required parameters have names with a recipe is
asked, once for each recipe. Left out is what changes the outside or the process, what waits, and
what makes something by chance: those are no questions (`NOT`), or belong to the other suites.
"""

import inspect
import itertools

MODULES = (
    "os", "posix", "os.path", "sys", "time", "signal", "select", "socket", "locale", "platform",
    "shutil", "tempfile", "glob", "stat", "pwd", "grp", "getpass", "site", "sysconfig", "gc",
    "inspect", "traceback", "threading", "multiprocessing", "warnings", "logging", "io", "gettext",
    "mimetypes", "calendar", "linecache", "fileinput", "urllib.request", "ssl", "faulthandler",
    "resource", "importlib.metadata", "filecmp", "zipfile", "tarfile", "pkgutil",
)
METHODS = (("pathlib", "Path"),)
PATHS = ("LINK", "FILE", '"relative"')
RECIPES = {
    "path": PATHS, "filename": PATHS, "file": PATHS, "p": PATHS, "s": PATHS, "pathname": PATHS,
    "src": PATHS, "start": PATHS, "name": PATHS, "top": ("FOLDER",), "fn": PATHS,
    "fd": ("0", "1"), "fileno": ("0",), "stream": ("sys.stdin",),
    "key": ('"APP_MODE"',), "varname": ('"APP_MODE"',), "cmd": ('"ls"',),
    "pid": ("0",), "signalnum": ("signal.SIGINT", "signal.SIGHUP"), "which": ("0",),
    "clk_id": ("time.CLOCK_REALTIME",), "uid": ("os.getuid()",), "category": ("locale.LC_CTYPE",),
    "mode": ("os.R_OK",), "f1": ("FILE",), "f2": ('"relative"',), "url": ("FILE",),
    "distribution_name": ('"pip"',), "host": ('"localhost"',), "domain": ('"app"',),
}
NOT = frozenset((
    # What changes the outside or the process.
    "abort", "acquire_lock", "addsitedir", "addsitepackages", "addusersitepackages", "alarm",
    "add_type", "basicConfig", "breakpointhook", "captureWarnings", "chdir", "chflags", "chmod",
    "chown", "chroot", "clear", "clear_cache", "close", "closerange", "collect", "copy",
    "dup", "disable", "displayhook", "dump_traceback", "dump_traceback_later",
    "enable", "enablerlcompleter", "execsitecustomize", "execusercustomize", "exit", "fchdir",
    "fchmod", "fchown", "fdatasync", "fork", "forkpty", "freeze", "fsync", "ftruncate",
    "exitstatus", "freeze_support", "allow_connection_pickling", "hardlink_to", "init", "input",
    "interrupt_main", "kill", "killpg", "lchmod", "lchown", "link", "link_to", "lockf",
    "login_tty", "main", "make_archive", "makedirs", "makefifo", "mkdir", "mkfifo", "mknod",
    "mkdtemp", "mkstemp", "mktemp", "move", "nice", "openpty", "pidfd_open", "pipe", "popen",
    "posix_openpt", "print_stack", "print_exc", "print_last", "print_list", "print_tb",
    "putenv", "register_at_fork", "register", "remove", "removedirs", "rename", "replace",
    "resetwarnings", "rmdir", "rmtree", "run", "setDaemon", "setegid", "seteuid", "setgid",
    "setns", "setpgrp", "setregid", "setreuid", "setsid", "setuid", "shutdown", "sync",
    "symlink_to", "symlink", "sysctl", "system", "touch", "truncate", "unfreeze",
    "unlink", "unsetenv", "unshare", "umask", "unregister", "urlcleanup", "utime", "venv",
    "write_bytes", "write_text", "removeduppaths", "unblock_signals", "fileConfig", "purge",
    # What waits.
    "pause", "settimeout", "sigwait", "sigwaitinfo", "sleep", "wait", "wait3", "wait4", "waitid",
    "waitpid", "getpass", "select", "create_server", "urlopen", "urlretrieve", "run_forever",
    # What takes what others need, or leaves something open.
    "read", "readline", "open", "opener", "epoll", "kqueue", "devpoll", "fdopen", "filelineno",
    "socketpair", "eventfd", "memfd_create", "timerfd_create", "Pool", "Manager", "lstat_file",
    # What is another each time, and nothing but that.
    "urandom", "getrandom", "new_event_loop", "getswitchinterval",
    # How much room is left on a disk that others write to.
    "disk_usage", "fstatvfs", "statvfs",
    # What makes something, or whose value is no answer but an object that is used up.
    "BoundedSemaphore", "Condition", "Event", "JoinableQueue", "Lock", "NamedTemporaryFile", "Pipe",
    "Queue", "RLock", "Semaphore", "SimpleQueue", "TemporaryFile", "Catalog", "Barrier", "Array",
    "SpooledTemporaryFile", "clearcache", "demo", "eventfd_read", "fwalk", "get_objects", "iglob",
    "import_module", "log_to_stderr", "nextfile", "open_code", "resetlocale", "scandir", "walk",
    "unpack_archive", "fallback_getpass", "unix_getpass", "win_getpass", "build_opener", "rglob",
    "currentframe", "get_child_watcher", "textdomain", "ftperrors", "walk_packages", "get_importer",
    # What looks at nothing but the text that it is given.
    "basename", "confstr", "dirname", "escape", "fpathconf", "fsdecode", "fsencode", "fspath",
    "getmodulename", "has_magic", "isabs", "isreserved", "nl_langinfo", "normcase", "normpath",
    "parse_http_list", "pathconf", "pathname2url", "split", "splitdrive", "splitext", "splitroot",
    "sysconf", "unwrap", "url2pathname", "urlparse", "urlsplit", "unquote", "as_posix", "as_uri",
    "is_absolute", "is_reserved", "exc_clear", "win32_edition", "win32_is_iot", "win32_ver", "mac_ver",
    "java_ver", "python_branch", "python_build", "python_compiler", "python_revision", "ios_ver",
    "python_implementation", "python_version_tuple", "android_ver", "ignore_patterns", "get_path_names",
))
NOT_BEGIN = ("set", "exec", "spawn", "posix_spawn", "_", "unregister", "raise", "tc", "sched_yield",
             "sched_set", "add", "remove", "write", "send", "install", "call_", "fix")


def questions():
    """The questions as text."""
    found = dict.fromkeys(itertools.chain(of_modules(), of_methods(), of_names()))
    return list(found)


def of_modules():
    for module in MODULES:
        try:
            names = vars(__import__(module, fromlist=["*"]))
        except ImportError:
            continue
        for name, value in sorted(names.items()):
            if not is_asked(name) or isinstance(value, type) or not callable(value):
                continue
            if getattr(value, "__module__", module) in ("typing", "collections", "enum"):
                continue
            for arguments in combinations(value):
                yield f"{module}.{name}({arguments})"


def of_methods():
    for module, name in METHODS:
        kind = getattr(__import__(module), name)
        for method in sorted(dir(kind)):
            if not is_asked(method) or not callable(getattr(kind, method)):
                continue
            if not inspect.isfunction(getattr(kind, method)):
                continue
            for path in PATHS + ("COMES",):
                for arguments in combinations(getattr(kind, method), skipped=1):
                    text = f"{module}.{name}({path}).{method}({arguments})"
                    yield f"sorted({text})" if method == "iterdir" else text


def of_names():
    """One question for each limit, signal, item of the locale."""
    import locale
    import os
    import resource
    import signal

    for name in sorted(vars(resource)):
        if name.startswith("RLIMIT_"):
            yield f"resource.getrlimit(resource.{name})"
    for name in sorted(vars(signal)):
        if name.startswith("SIG") and not name.startswith("SIG_") and name != "SIGRTMAX":
            yield f"signal.getsignal(signal.{name})"
    for name in ("CODESET", "RADIXCHAR", "THOUSEP", "D_T_FMT", "T_FMT", "MON_1", "YESEXPR"):
        if hasattr(locale, name):
            yield f"locale.nl_langinfo(locale.{name})"
    for name in ("SC_OPEN_MAX", "SC_ARG_MAX", "SC_CHILD_MAX", "SC_NPROCESSORS_ONLN"):
        if name in os.sysconf_names:
            yield f"os.sysconf({name!r})"


def is_asked(name):
    return name not in NOT and not name.startswith(NOT_BEGIN)


def combinations(function, skipped=0):
    """The arguments, as text, for each way to fill in what has to be given."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except (ValueError, TypeError):
        return
    wanted = [p for p in parameters if p.default is p.empty and p.kind in (0, 1)]
    if any(p.default is p.empty and p.kind == p.KEYWORD_ONLY for p in parameters):
        return
    ways = [RECIPES.get(p.name, ()) for p in wanted]
    for words in itertools.product(*ways):
        yield ", ".join(words)
