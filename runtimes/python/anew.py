"""What each copy of a zygote has anew, or ready before its call: its pages, OpenBLAS's threads, and
the generators of random numbers.

`worker.py` loads this file where modules are preloaded, and puts itself in as `worker`.

Owns: which pages a call touches (`Pages`), how many threads a library starts (`Threads`), and which
generators were made by imports, with their seeds (`Draws`).
"""

import sys

worker = globals()["worker"]
posix, gc, os, _io, hide = worker.posix, worker.gc, worker.os, worker._io, worker.hide


class Pages:
    """Which pages a call touches: learned from the first calls of a zygote, paid for by copies.

    A page that a fork shares costs a fault at its first touch, and on a virtual machine faults are
    most of a small call. Copies share the zygote's addresses, so what one call has touched, the
    next one's copy populates before it waits. Paying for every page instead costs ten times the
    memory and processor time. Copies write to the zygote's memory file, by way of /proc: they do
    not keep a descriptor of it.
    """

    LEARNED_MAX = 4
    FAULTS_MIN = 8
    GAP_PAGES = 2

    def __init__(self):
        fd = worker.nameless_file()
        posix.dup2(fd, worker.PAGES_FD, False)
        posix.close(fd)
        self.path = "/proc/%d/fd/%d" % (posix.getpid(), worker.PAGES_FD)
        self.madvise = worker.KERNEL.ctypes and worker.KERNEL.symbol(worker.KERNEL.libc, "madvise")
        self.learned = 0
        self.calls = []
        # What the program maps on its own cannot be paid for, and may be large.
        self.maps = private_maps()

    def refresh(self):
        """In the zygote: takes up what has been learned since."""
        head = posix.pread(worker.PAGES_FD, 16, 0)
        if len(head) < 16 or not self.madvise or head[0] == self.learned:
            return
        count = worker.from_bytes(head[8:], "little")
        data = posix.pread(worker.PAGES_FD, 16 * count, 16)
        self.learned, self.calls = head[0], []
        for at in range(0, len(data), 16):
            start = worker.from_bytes(data[at : at + 8], "little")
            size = worker.from_bytes(data[at + 8 : at + 16], "little")
            advice = worker.MADV_POPULATE_WRITE if start & 1 else worker.MADV_POPULATE_READ
            self.calls.append((worker.KERNEL.pointer(start & ~1), worker.KERNEL.word(size), advice))
        # Young, they would be reason enough for every copy to collect in the midst of its call.
        gc.collect()
        gc.freeze()

    def pay(self):
        call, madvise = worker.KERNEL.ctypes and worker.KERNEL.ctypes.call_function, self.madvise
        for arguments in self.calls:
            call(madvise, arguments)

    def start(self):
        """Before the wait for the call: faults count from here."""
        self.faults = worker.resource.getrusage(worker.resource.RUSAGE_SELF).ru_minflt

    def learn(self):
        """After a call: notes its pages if the copies do not yet pay for what it needed."""
        faults = worker.resource.getrusage(worker.resource.RUSAGE_SELF).ru_minflt - self.faults
        if self.learned >= self.LEARNED_MAX or faults < self.FAULTS_MIN or not self.madvise:
            return
        ranges = []
        with _io.FileIO("/proc/self/pagemap") as pagemap:
            for start, end, written in self.maps:
                size = (end - start) >> 12 << 3
                words = memoryview(posix.pread(pagemap.fileno(), size, start >> 12 << 3))
                ranges += self.touched(start, words.cast("Q"), written)
        data = bytes((self.learned + 1,)).ljust(8, b"\0") + worker.u64(len(ranges))
        u64 = worker.u64
        data += b"".join([u64(start | written) + u64(size) for start, size, written in ranges])
        fd = posix.open(self.path, posix.O_WRONLY | posix.O_CLOEXEC)
        posix.pwrite(fd, data, 0)
        posix.close(fd)

    def touched(self, start, words, written):
        """The (start, size, written) of the touched ranges in one mapping."""
        # Present, of no file and mapped by nobody else: written since the fork.
        mask, want = (0xA1 << 56, 0x81 << 56) if written else (1 << 63, 1 << 63)
        ranges, first, last = [], None, None
        for at, word in enumerate(words):
            if word & mask == want:
                if first is None or at - last > self.GAP_PAGES:
                    if first is not None:
                        ranges.append((start + (first << 12), last - first + 1 << 12, written))
                    first = at
                last = at
        if first is not None:
            ranges.append((start + (first << 12), last - first + 1 << 12, written))
        return ranges


def private_maps():
    """The (start, end, writable) of every private mapping of this process."""
    maps = []
    for line in worker.read_file("/proc/self/maps").split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) > 1 and fields[1] in (b"rw-p", b"r--p", b"r-xp"):
            start, end = fields[0].split(b"-")
            if not line.endswith((b"[vvar]", b"[vdso]")):
                maps.append((int(start, 16), int(end, 16), fields[1] == b"rw-p"))
    return maps


(LIBRARY, THREAD_VARIABLE, SPIN_VARIABLE, SETTERS), = worker.known("threads").values()


class Threads:
    """OpenBLAS starts its threads when it is loaded: here none, in a copy as many as cold."""

    def __init__(self, role):
        self.avoided = role == worker.ZYGOTE and THREAD_VARIABLE not in os.environb
        self.setters = []
        self.count = 1
        if self.avoided:
            posix.putenv(THREAD_VARIABLE, b"1")
            # A copy's threads have nothing to do until it is given a call, perhaps for minutes.
            self.put = SPIN_VARIABLE not in os.environb
            if self.put:
                posix.putenv(SPIN_VARIABLE, b"22")

    def loaded(self):
        """After the preload: finds how to set the number; False if that cannot be done."""
        if not self.avoided:
            return True
        posix.unsetenv(THREAD_VARIABLE)
        if self.put:
            posix.unsetenv(SPIN_VARIABLE)
        paths = {line.split()[-1] for line in worker.read_file("/proc/self/maps").split(b"\n") if line}
        paths = [path for path in paths if LIBRARY in path.rpartition(b"/")[2]]
        if paths and worker.KERNEL.ctypes is None:
            return False
        for path in paths:
            library = worker.KERNEL.ctypes.dlopen(os.fsdecode(path), os.RTLD_NOW | os.RTLD_NOLOAD)
            found = [worker.KERNEL.symbol(library, name) for name in SETTERS]
            self.setters += [address for address in found if address][:1]
        return len(self.setters) == len(paths)

    def restore(self):
        """In a copy, when its program may run next."""
        if not self.setters:
            return
        given = [os.environb.get(name, b"") for name in (THREAD_VARIABLE, b"OMP_NUM_THREADS")]
        given = [int(each) for each in given if each.isdigit()]
        count = given[0] if given else len(posix.sched_getaffinity(0))
        for address in self.setters:
            if count != self.count:
                worker.KERNEL.call(address, count)
        self.count = count


(PACKAGE, HIDDEN), = worker.known("generators").items()


class Draws:
    """Generators of random numbers that preloaded modules have made: a cold run would make each of
    them anew, seeded as they seeded it. Seeding is watched from the moment on in which `random`, or its
    like of a package, is there."""

    MODULES = ("random", PACKAGE)

    def __init__(self, drawn):
        # By identity: the generator, and the seed that it was given.
        self.seeds = {}
        self.kept = []
        self.states = []
        # Told of what is drawn from a generator without a seed: a call would draw something else.
        self.drawn = drawn
        self.making_one = False

    def draws_anew(self, importing):
        """Whether what is made by chance right now is made anew in each copy."""
        return self.making_one or importing[:1] and importing[0].startswith(PACKAGE)

    def watch(self):
        """After one of the modules was loaded."""
        random, package = map(sys.modules.get, self.MODULES)
        if random is not None and not any(kept[0] is random.Random for kept in self.kept):
            self.replace(random.Random, "seed", self.seeding)
            # Its own functions are bound already.
            hidden = random._inst
            self.replace(random, "seed", lambda seed: self.calling(seed, hidden))
            for name in ("random", "getrandbits", "getstate"):
                self.replace(random.Random, name, self.drawing)
                self.replace(random, name, lambda draw: self.drawing(draw, hidden))
        if package is not None and not any(kept[0] is package for kept in self.kept):
            self.replace(package, "seed", lambda seed: self.calling(seed, package))
            self.replace(package, "default_rng", self.making)

    def replace(self, owner, name, wrap):
        original = getattr(owner, name, None)
        if original is not None:
            own, ours = name in owner.__dict__, wrap(original)
            self.kept.append((owner, name, original if own else None, ours))
            setattr(owner, name, ours)

    def is_patched(self):
        """Whether a module has put something in the place of what is watched. That stays."""
        gone = [kept for kept in self.kept if getattr(kept[0], kept[1], None) is not kept[3]]
        self.kept = [kept for kept in self.kept if kept not in gone]
        return bool(gone)

    def drawing(self, original, owner=None):
        seeds = self.seeds

        def draw(*arguments):
            if seeds.get(id(arguments[0] if owner is None else owner), (None, None))[1] is None:
                self.drawn()
            return original(*arguments)

        return hide(draw)

    def seeding(self, original):
        seeds = self.seeds

        def seed(self, a=None, version=2):
            seeds[id(self)] = self, a
            return original(self, a, version)

        return hide(seed)

    def calling(self, original, owner):
        seeds = self.seeds

        def seed(a=None, *more, **named):
            seeds[id(owner)] = owner, named.get("seed", a)
            return original(a, *more, **named)

        return hide(seed)

    def making(self, original):
        seeds = self.seeds

        def default_rng(seed=None):
            self.making_one = True
            try:
                generator = original(seed)
            finally:
                self.making_one = False
            seeds.setdefault(id(generator), (generator, seed))
            return generator

        return hide(default_rng)

    def stop(self):
        for owner, name, original, _ in self.kept:
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        # CPython seeds its own generator anew after a fork, also if a module has seeded it.
        hidden = getattr(sys.modules.get("random"), "_inst", None)
        if self.seeds.get(id(hidden), (None, None))[1] is not None:
            self.states.append((hidden, hidden.getstate()))

    def renew(self):
        """In a copy."""
        package = sys.modules.get(PACKAGE)
        hidden = sys.modules.get(HIDDEN)
        for generator, state in self.states:
            generator.setstate(state)
        if hidden is not None and self.seeds.get(id(package), (None, None))[1] is None:
            worker.attempt_quietly(hidden.seed)
        for generator, seed in self.seeds.values():
            if seed is not None or generator is package:
                continue
            if hasattr(generator, "bit_generator"):
                worker.attempt_quietly(lambda bits=generator.bit_generator: renew_bits(bits))
            else:
                worker.attempt_quietly(generator.seed)


def renew_bits(bits):
    bits.state = type(bits)().state
