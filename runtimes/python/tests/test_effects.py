"""What a module does or looks at while it is imported happens in each call, as it does cold.

Each case is a module and what a program shows of it. It is warmed as the daemon does: a zygote
that names hazards is replaced by one without them. No zygote may have changed anything outside.
"""

import os
import select
import shutil
import sys
import unittest

from harness import Run, shared
from test_worker import InAFolder

# Each leaves the folder otherwise than it was. `HERE` is the folder.
EFFECTS = {
    "a file that takes another's place": "open(HERE + '/new', 'a').write('x')\n"
                                         "os.replace(HERE + '/new', HERE + '/count')",
    "a file that takes another's place, by its name": "os.rename(HERE + '/a', HERE + '/b')",
    "a file that is written": "open(HERE + '/count', 'a').write('x')",
    "a file that is written by its number": "fd = os.open(HERE + '/count', os.O_RDWR | os.O_APPEND"
                                            " | os.O_CREAT)\nos.write(fd, b'x')\nos.close(fd)",
    "a file that is removed": "os.remove(HERE + '/a')",
    "a directory that is made": "os.mkdir(HERE + '/made')",
    "directories that are made": "os.makedirs(HERE + '/made/more', exist_ok=True)",
    "a directory that is removed": "os.rmdir(HERE + '/d')",
    "a link": "os.link(HERE + '/a', HERE + '/linked')",
    "a symbolic link": "os.symlink(HERE + '/a', HERE + '/linked')",
    "a file that is cut short": "os.truncate(HERE + '/a', 1)",
    "a mode": "os.chmod(HERE + '/a', 0o700)",
    "times": "os.utime(HERE + '/a', (1, 1))",
    "a copy": "import shutil; shutil.copy(HERE + '/a', HERE + '/copied')",
    "a tree that is removed": "import shutil; shutil.rmtree(HERE + '/t')",
    "a pipe with a name": "os.mkfifo(HERE + '/made')",
    "a temporary directory": "import tempfile; tempfile.mkdtemp(dir=HERE)",
    "a process": "import subprocess; subprocess.run(['touch', HERE + '/made'])",
    "a shell": "os.system('touch ' + HERE + '/made')",
    "a process that is spawned": "pid = os.posix_spawn('/usr/bin/touch', ['touch', HERE + '/made'],"
                                 " {})\nos.waitpid(pid, 0)",
    "a fork": "pid = os.fork()\nif not pid:\n    open(HERE + '/made', 'w').close()\n    os._exit(0)\n"
              "os.waitpid(pid, 0)",
    "a database": "import sqlite3; sqlite3.connect(HERE + '/made').execute('create table t (a)')",
    "an effect that is caught": "try:\n    os.remove(HERE + '/a')\nexcept BaseException:\n    pass",
    "one inside another import": "import inner",
}
# What the module is to find, or to have made of its process, is as in a cold run.
SAME = {
    "signal handlers": "import signal\ndef told(*_): print('told')\n"
                       "signal.signal(signal.SIGUSR1, told); signal.signal(signal.SIGINT, "
                       "signal.SIG_IGN)\n"
                       "VALUE = [signal.getsignal(n) is f for n, f in ((signal.SIGUSR1, told), "
                       "(signal.SIGINT, signal.SIG_IGN))]\nasked = 1\nSHOW = "
                       "lambda: (signal.raise_signal(signal.SIGUSR1), "
                       "signal.getsignal(signal.SIGINT))",
    "the umask": "os.umask(0o77)\nSHOW = lambda: oct(os.umask(0))",
    "the umask that is looked at": "MASK = os.umask(0)\nos.umask(MASK)\nSHOW = lambda: oct(MASK)",
    "a directory": "os.chdir('/usr')\nSHOW = os.getcwd",
    "an exit hook": "import atexit\natexit.register(print, 'at exit')\nSHOW = lambda: None",
    "the environment": "os.environ['SET'] = 'by import'\nos.environ.pop('HOME', None)\n"
                       "os.putenv('PUT', 'by import')\nos.unsetenv('LANG')\n"
                       "SHOW = lambda: (os.environ.get('SET'), os.environ.get('HOME'), "
                       "os.environ.get('LANG'), os.system('echo $SET $PUT $HOME $LANG'))",
    "a copy of the environment": "KEPT = os.environ.copy()\nSHOW = lambda: (KEPT == dict(os.environ),"
                                 " KEPT.get('PWD'), KEPT.get('MINE'))",
    "the process number": "KEPT = os.getpid()\nSHOW = lambda: KEPT == os.getpid()",
    "the parent's number": "KEPT = os.getppid()\nSHOW = lambda: KEPT == os.getppid()",
    "the clock": "import time\nfrom time import perf_counter as now\nKEPT = time.time()\n"
                 "ALSO = now()\nSHOW = lambda: (time.time() - KEPT < AGE, now() - ALSO < AGE)",
    "the date": "import datetime, time\nclass K:\n    KEPT = datetime.datetime.now()\n"
                "SHOW = lambda: time.time() - K.KEPT.timestamp() < AGE",
    "the date, with a zone": "import datetime, time\nKEPT = datetime.datetime.now(datetime.timezone."
                             "utc)\nSHOW = lambda: time.time() - KEPT.timestamp() < AGE",
    "when logging was loaded": "import logging, time\nSTART = logging._startTime\n"
                               "SHOW = lambda: [time.time() - each / "
                               "(1e9 if type(each) is int else 1) < AGE "
                               "for each in (START, logging._startTime)]",
    "the number of the main thread": "import threading\nKEPT = threading.main_thread().native_id\n"
                                     "SHOW = lambda: KEPT == threading.main_thread().native_id",
    "the key of children": "import multiprocessing\nKEPT = multiprocessing.current_process().authkey"
                           "\nSHOW = lambda: KEPT == multiprocessing.current_process().authkey",
    "the processors": "KEPT = os.sched_getaffinity(0)\nSHOW = lambda: KEPT == os.sched_getaffinity(0)",
    "the collector": "import gc\ngc.disable()\nSHOW = gc.isenabled",
    "a timer": "import signal\nsignal.signal(signal.SIGALRM, lambda *_: print('rung'))\n"
               "signal.setitimer(signal.ITIMER_REAL, 0.05)\nSHOW = lambda: signal.pause()",
    "streams": "import sys\nsys.stdout.reconfigure(encoding='latin-1', line_buffering=True)\n"
               "SHOW = lambda: (sys.stdout.encoding, sys.stdout.line_buffering, '\\xe9')",
    "a stream of its own": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, "
                           "encoding='utf-16', line_buffering=True)\n"
                           "SHOW = lambda: sys.stdout.encoding",
    "a file of the same descriptor": "OUT = open(1, 'w', closefd=False)\n"
                                     "SHOW = lambda: (OUT.isatty(), OUT.seekable(), OUT.write('1'),"
                                     " OUT.flush())",
    "streams that are kept": "import logging, sys\nOUT, ERR = sys.stdout, sys.stderr\n"
                             "logging.basicConfig(stream=sys.stderr)\n"
                             "SHOW = lambda: (OUT.write('kept '), ERR.write('too '), "
                             "logging.warning('and logged'), OUT is sys.stdout)",
    "arguments that are taken away": "import sys\ndel sys.argv[1:]\nsys.argv.append('more')\n"
                                     "SHOW = lambda: sys.argv[1:]",
    "arguments of its own": "import sys\nsys.argv = ['own', 'list']\nSHOW = lambda: sys.argv",
    "a file that stays open": "OPEN = open(HERE + '/a')\nSHOW = OPEN.read",
    "shared memory": "import mmap\nOPEN = mmap.mmap(-1, 8)\n"
                     "SHOW = lambda: (OPEN.read_byte(), OPEN.seek(0), OPEN.write_byte(7))",
    "a lock between processes": "import multiprocessing\nLOCK = multiprocessing.Lock()\n"
                                "SHOW = lambda: LOCK.acquire(False)",
    "what the kernel tells of the process": "KEPT = open('/proc/self/stat').read().split()[0]\n"
                                            "SHOW = lambda: KEPT == str(os.getpid())",
    "a folder for temporary files": "import tempfile\nKEPT = tempfile.gettempdir()\n"
                                    "SHOW = lambda: KEPT",
    "the name of the machine": "import socket\nKEPT = socket.gethostname(), os.uname()\n"
                               "SHOW = lambda: KEPT == (socket.gethostname(), os.uname())",
    "functions that are kept": "import time\ndef f(clock=time.monotonic, pid=os.getpid): return "
                               "clock, pid\nKEPT = [time.time, os.getcwd]\n"
                               "SHOW = lambda: (*f(), *KEPT, KEPT[0] is time.time)",
}
# Must not be the same in two calls.
DIFFERENT = {
    "random bytes": "VALUE = os.urandom(8)",
    "a name by chance": "import uuid\nVALUE = uuid.uuid4()",
    "a secret": "import secrets\nVALUE = secrets.token_hex()",
    "a number by chance": "import random\nVALUE = random.random()",
    "a choice": "from random import getrandbits, choice\n"
                "VALUE = choice(range(1 << 60)), getrandbits(9)",
    "a key between processes": "import multiprocessing\nclass Key:\n    def __repr__(self): return "
                               "repr(bytes(multiprocessing.current_process().authkey))\n"
                               "VALUE = Key()",
    "a database in memory": "import sqlite3\nVALUE = sqlite3.connect(':memory:').execute("
                            "'select hex(randomblob(8))').fetchone()",
    "a generator of C": "import _random\nVALUE = _random.Random().random()",
    "the state of a generator": "import random\nVALUE = random.getstate()[1][:9]",
    "the date as a text": "import datetime\nVALUE = datetime.datetime.now().strftime('%f')",
    "a number of this moment": "import uuid\nVALUE = uuid.uuid1()",
    "bytes of OpenSSL": "import ssl\nVALUE = ssl.RAND_bytes(8)",
    "the thread's number": "import threading\nVALUE = threading.get_native_id()",
    "the library's number": "import ctypes\nVALUE = ctypes.CDLL(None).getpid()",
    "a number from the kernel": "import posix\nVALUE = posix.getpid()",
    "where the process is": "import os\nVALUE = os.readlink('/proc/self')",
    "a generator's number": "import random\nVALUE = random.Random().randint(0, 1 << 60)",
}
if sys.version_info < (3, 10):
    # Not seen there beside others, see docs/fidelity.md.
    del DIFFERENT["a generator of C"]
if os.getpid() < 257:
    # The interpreter has such numbers once for all, see docs/fidelity.md.
    del SAME["the number of the main thread"]
# Is loaded ahead all the same: nothing of it differs from one call to the next.
HARMLESS = {
    "a generator with a seed": "import random\nVALUE = random.Random(7).random()",
    "the machine": "import platform\nVALUE = platform.machine()",
    "a directory that is there": "os.makedirs(HERE + '/d', exist_ok=True)\nVALUE = 1",
    "a file that is not there": "try:\n    os.unlink(HERE + '/none')\n"
                                "except OSError:\n    pass\nVALUE = 1",
    "a time that is given": "import time\nVALUE = time.strftime('%Y', time.gmtime(0))",
    "the sink": "open('/dev/null', 'w').close()\nVALUE = 1",
    "a function that each copy calls again": "KEPT = []\ndef draw(): KEPT[:] = [os.urandom(8)]\n"
                                             "draw()\nos.register_at_fork(after_in_child=draw)",
    "all variables": "VALUE = sorted(os.environ)",
    "an address of this machine's own": "import socket\nwith socket.socket() as s:\n"
                                        "    s.bind(('127.0.0.1', 0))\n",
    "the certificates of the system": "import ssl\n"
                                      "VALUE = len(ssl.create_default_context().get_ciphers())",
    "a number that looks like a time": "import datetime\nVALUE = datetime.datetime(2001, 1, 1)",
}


HEAD = "import os\nHERE = os.path.dirname(os.path.abspath(__file__))\nAGE = 0.5\nVALUE = None\n"


class WhatAnImportDoes(InAFolder):
    def prepare(self, cases, script, first="os"):
        """Writes each as a module, with another that imports it, and a script over that; for each
        script its case and the names of the modules."""
        prepared = {}
        for number, (what, text) in enumerate(cases):
            self.write("part%d.py" % number, HEAD + text + "\n")
            self.write("over%d.py" % number, "import part%d as part\n" % number)
            name = "s%d.py" % number
            self.write(name, "import %s\nimport over%d\npart = over%d.part\n%s"
                       % (first, number, number, script))
            prepared[name] = what, ["over%d" % number, "part%d" % number]
            if "import inner" in text:
                prepared[name][1].append("inner")
        self.write("inner.py", HEAD + "open(HERE + '/inner', 'a').write('x')\n")
        self.furnish()
        return prepared

    def furnish(self):
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif not name.endswith(".py"):
                os.remove(path)
        os.mkdir(os.path.join(self.folder, "d"))
        for name in ("a", "t/x"):
            self.write(name, "text")

    def state(self):
        """Everything in the folder but compiled code."""
        found = []
        for folder, folders, files in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(folders + files):
                path = os.path.join(folder, name)
                stat = os.lstat(path)
                file = (stat.st_size, stat.st_mtime_ns) if name in files else ()
                found.append((path, stat.st_mode, *file))
        return found

    def test_what_changes_something_outside_is_done_by_calls_alone(self):
        prepared = self.prepare(shared(EFFECTS.items()), "print('done')\n")
        for number, (script, (what, modules)) in enumerate(prepared.items()):
            with self.subTest(what):
                self.furnish()
                before = self.state()
                zygote, hazards = self.settled(modules, script)
                self.assertEqual(self.state(), before, "a zygote did it")
                self.assertEqual(set(modules), set(hazards))
                outcome = self.run_of(script).warm(zygote, number % 2)
                self.assertEqual((outcome.out, outcome.code), (b"done\n", 0), outcome)
                self.assertNotEqual(self.state(), before, "no call did it")
                zygote.close()

    def test_what_is_found_and_made_of_the_process_is_as_cold(self):
        names = "json", "logging", "random", "tempfile"
        prepared = self.prepare(shared(SAME.items()), "print(part.SHOW())\n", ", ".join(names))
        zygotes = {script: self.settled([*names, *modules], script)[0]
                   for script, (_, modules) in prepared.items()}
        # It is some time since the zygotes were made.
        select.select([], [], [], 0.6)
        env = dict(os.environ, PWD="/elsewhere", MINE="only now")
        for number, (script, (what, _)) in enumerate(prepared.items()):
            with self.subTest(what):
                run = self.run_of(script, "x", env=env)
                self.assertEqual(repr(run.cold()), repr(run.warm(zygotes[script], number % 2)))

    def test_a_stream_that_does_not_wait_is_seen_by_the_import_that_asks(self):
        class Restless(Run):
            def files(self):
                files = super().files()
                os.set_blocking(files[0].fileno(), False)
                return files

        self.prepare([("", "KEPT = [os.get_blocking(fd) for fd in (0, 1, 2)]")],
                     "print(part.KEPT)\n")
        zygote, hazards = self.settled(["over0", "part0"], "s0.py")
        self.assertEqual(hazards, {})
        for run in (self.run_of("s0.py"), Restless(["s0.py"], cwd=self.folder)):
            self.same(run, zygote)
        self.assertIn(b"[False, True, True]", run.cold().out)

    def test_what_is_made_by_chance_is_made_in_each_call(self):
        names = "random", "secrets", "uuid"
        prepared = self.prepare(shared(DIFFERENT.items()), "print(part.VALUE)\n", ", ".join(names))
        for script, (what, modules) in prepared.items():
            with self.subTest(what):
                zygote, _ = self.settled([*names, *modules], script)
                run = self.run_of(script)
                seen = {run.warm(zygote, paid).out for paid in (False, True, True)}
                self.assertEqual(len(seen), 3, seen)
                zygote.close()

    def test_what_is_harmless_is_loaded_ahead(self):
        prepared = self.prepare(shared(HARMLESS.items()), "print(part.VALUE)\n", "random")
        for script, (what, modules) in prepared.items():
            with self.subTest(what):
                zygote, hazards = self.settled(["random", *modules], script)
                self.assertEqual(hazards, {})
                self.same(self.run_of(script), zygote)
                zygote.close()

    def test_compiled_code_that_is_missing_is_written_and_its_module_loaded_ahead(self):
        env = {name: value for name, value in os.environ.items()
               if name != "PYTHONDONTWRITEBYTECODE"}
        # Without `site` nothing has imported `importlib` yet, whose parts then have other names.
        for number, options in enumerate(([], ["-S"])):
            name = "part%d" % number
            self.write(name + ".py", "VALUE = 1\n")
            self.write("s.py", "import %s\n" % name)
            zygote, hazards = self.settled([name], env=env, options=options)
            self.assertEqual(hazards, {})
            written = os.listdir(os.path.join(self.folder, "__pycache__"))
            self.assertTrue(any(file.startswith(name) for file in written), written)
            zygote.close()

    def test_nobody_can_tell_afterwards(self):
        self.prepare([("", "import time")], "")
        self.write("s.py", "import json, os, random, sys, time, over0\n"
                   "print([os.getpid, os.urandom, time.time, "
                   "time.strftime, sys.stdout.reconfigure.__name__, vars(sys.stdout), "
                   "random.random.__name__, sorted(vars(random.Random)), os.environ.decodekey])\n")
        zygote, _ = self.settled(["over0", "part0", "random", "json"])
        cold = self.run_of("s.py").cold()
        warm = self.run_of("s.py").warm(zygote, True)
        without = [text.partition(b" at 0x")[0] for text in (cold.out, warm.out)]
        self.assertEqual(without[0], without[1])


if __name__ == "__main__":
    unittest.main()
