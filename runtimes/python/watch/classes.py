"""Which functions read the outside, and who stands in for them while modules are imported ahead of
calls (docs/fidelity.md, *What a module reads*).

`worker.py` loads this file before the interpreter's start-up code runs, and puts itself in as
`worker`.

Owns: the class of every function of the interpreter's low-level modules (`posix`, `time`, ...), the
stand-ins (`Looker`) that tell of each use, and how they are put in and taken out again. What a use
means is decided in `imports.py`.

Invariants
- A function of these modules that has no class counts as one whose answer is another in each call.
- Stand-ins are put into a module before anybody can bind its functions, and after `stop` no module,
  class, default, cell or list holds one.
"""

import sys

worker = globals()["worker"]
posix, gc, hide, names_of = worker.posix, worker.gc, worker.hide, worker.names_of

# --- The classes -------------------------------------------------------------------------------
#
# PURE  computes, or its answer is the same for all callers of one key.
# ASK   asked again in each call; where the answer is another one, the program is executed anew.
# LOOK  asks a path: what was found is part of the fingerprint.
# FD    asks a descriptor: one of the caller's three makes its reader run in the call.
# TERM  the same of a terminal.
# NOW   another answer in each call: its reader runs in the call.
# STATE changes something outside, or of the process that a copy does not inherit: stopped before.
# An audit event or another part of `imports.py` tells of the rest (AUDIT).
PURE, ASK, LOOK, FD, TERM, NOW, STATE, AUDIT = "pure ask look fd term now state audit".split()


def table(**classes):
    return {name: kind for kind, names in classes.items() for name in names.split()}


POSIX = table(
    pure="""fspath strerror error WCOREDUMP WIFCONTINUED WIFSTOPPED WIFSIGNALED WIFEXITED
        WEXITSTATUS WTERMSIG WSTOPSIG major minor makedev getuid geteuid getgid getegid getgroups
        getresuid getresgid sched_get_priority_max sched_get_priority_min sched_yield _exit abort
        ctermid waitstatus_to_exitcode getgrouplist
        get_inheritable set_inheritable _path_normpath _path_splitroot _path_splitroot_ex
        _inputhook _is_inputhook_installed _create_environ _supports_virtual_terminal close
        openpty pipe pipe2 memfd_create eventfd eventfd_read eventfd_write timerfd_create
        timerfd_gettime timerfd_settime timerfd_gettime_ns timerfd_settime_ns pidfd_open sync
        write pwrite writev pwritev _fcopyfile wait wait3 wait4 waitpid waitid""",
    ask="""sysconf confstr cpu_count getlogin getpriority access pathconf getxattr
        listxattr""",
    look="stat lstat readlink",
    fd="""fstat read pread readv preadv lseek dup dup2 set_blocking ftruncate
        fsync fdatasync sendfile splice tee copy_file_range
        posix_fadvise posix_fallocate fchmod fchown fpathconf fstatvfs device_encoding closerange
        grantpt unlockpt ptsname posix_openpt login_tty lockf posix_spawnp""",
    term="isatty ttyname tcgetpgrp get_terminal_size",
    now="""getppid getpgid getpgrp getsid urandom getrandom times getloadavg sched_getaffinity
        sched_getscheduler sched_getparam sched_rr_get_interval statvfs""",
    state="""umask nice setpriority sched_setaffinity sched_setscheduler sched_setparam setpgid
        setpgrp setsid tcsetpgrp chroot setuid seteuid setreuid setresuid setgid setegid setregid
        setresgid setgroups initgroups mkfifo mknod unshare setns killpg plock""",
    audit="""open listdir scandir mkdir rmdir remove unlink rename replace link symlink truncate
        chmod chown lchown lchmod chflags lchflags utime setxattr removexattr kill chdir fchdir
        putenv unsetenv system posix_spawn fork forkpty fork1 execv execve getcwd getcwdb uname
        get_blocking getpid register_at_fork""",
)
TIME = table(
    pure="sleep mktime strptime tzset get_clock_info clock_getres pthread_getcpuclockid",
    now="""time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time
        process_time_ns thread_time thread_time_ns clock_gettime clock_gettime_ns""",
    state="clock_settime clock_settime_ns",
    # What it is without a time to work on.
    audit="localtime gmtime ctime asctime strftime",
)
SIGNAL = table(
    pure="""default_int_handler strsignal valid_signals set_wakeup_fd siginterrupt setitimer alarm
        raise_signal pthread_kill pidfd_send_signal""",
    now="pthread_sigmask sigpending getitimer pause sigwait sigwaitinfo sigtimedwait",
    audit="getsignal signal",
)
SELECT = table(now="select", audit="poll epoll devpoll kqueue", pure="kevent")
RESOURCE = table(ask="getrlimit", now="getrusage", pure="getpagesize", audit="setrlimit prlimit")
SOCKET = table(
    pure="""CMSG_LEN CMSG_SPACE getdefaulttimeout setdefaulttimeout inet_aton inet_ntoa inet_ntop
        inet_pton htonl htons ntohl ntohs socketpair close""",
    fd="dup",
    now="if_nameindex if_nametoindex if_indextoname",
    state="sethostname",
    audit="""gethostname getaddrinfo gethostbyname gethostbyname_ex gethostbyaddr getnameinfo
        getservbyname getservbyport getprotobyname""",
)
FCNTL = table(fd="fcntl", audit="ioctl flock lockf")
TERMIOS = table(term="tcgetattr tcgetwinsize tcsetattr tcsendbreak tcdrain tcflush tcflow "
                     "tcsetwinsize")
USERS = table(audit="getpwuid getpwnam getpwall getgrgid getgrnam getgrall getspnam getspall")
# What has no place here is the interpreter's own, and the same in each call.
SYS = table(now="""_current_frames _current_exceptions getallocatedblocks getunicodeinternedsize
    gettotalrefcount""")
GC = table(now="get_objects get_referrers get_count get_stats")
THREAD = table(now="get_native_id")
SSL = table(now="RAND_bytes RAND_pseudo_bytes")
UUID = table(audit="generate_time_safe", now="UuidCreate")
SHARED = table(state="shm_open shm_unlink")
# Each with its classes, and the class of what they do not name.
MODULES = {
    "posix": (POSIX, NOW), "time": (TIME, NOW), "_signal": (SIGNAL, NOW), "select": (SELECT, NOW),
    "resource": (RESOURCE, NOW), "_socket": (SOCKET, NOW), "fcntl": (FCNTL, NOW),
    "termios": (TERMIOS, TERM), "pwd": (USERS, NOW), "grp": (USERS, NOW), "spwd": (USERS, NOW),
    "sys": (SYS, PURE), "gc": (GC, PURE), "_thread": (THREAD, PURE), "_ssl": (SSL, PURE),
    "_uuid": (UUID, PURE), "_posixshmem": (SHARED, NOW),
}
FUNCTION, METHOD = type(posix.getpid), type(worker.Kernel.symbol.__get__(worker))
