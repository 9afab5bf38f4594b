"""The caller's world: its environment variables, in their order."""


class Environment:
    """`os.environ` and the C library's environment, in place and in the caller's order."""

    def __init__(self):
        self.blob = read_file("/proc/self/environ")
        self.data = posix.environ  # It is `os.environ._data` too.
        given = as_mapping(self.blob.split(b"\0"))
        # The interpreter itself may have set LC_CTYPE (PEP 538).
        self.coerced = {k: v for k, v in self.data.items() if given.get(k) != v}
        self.changes = {}
        self.start = dict(self.data)
        self.word = KERNEL.environ(self.blob)
        if self.word is not None:
            self.make_room(1 << 16, 1 << 10)

    def make_room(self, size, count):
        """Memory for C's environment: its strings, and the pointers to them."""
        self.text, array = bytearray(size), bytearray(8 * count)
        self.text_at, kept = KERNEL.address_of(self.text)
        self.array_at, also_kept = KERNEL.address_of(array)
        self.array, self.kept = memoryview(array).cast("Q"), (kept, also_kept)

    def preloaded(self):
        """Remembers what the preloaded modules have changed; they would do so in a cold run."""
        now = self.data
        self.changes = dict(self.coerced)
        self.changes.update({k: v for k, v in now.items() if self.start.get(k) != v})
        self.changes.update({k: None for k in self.start if k not in now})

    def take(self, blob):
        entries = blob.split(b"\0")
        entries.pop()
        new = as_mapping(entries)
        old = self.data
        zone = old.get(b"TZ")
        if self.word is not None:
            # All of it, also what is there twice, or is no variable.
            if len(blob) > len(self.text) or len(entries) >= len(self.array):
                self.make_room(len(blob), len(entries) + 1)
            self.text[: len(blob)] = blob
            array, address = self.array, self.text_at
            for at, entry in enumerate(entries):
                array[at] = address
                address += len(entry) + 1
            array[len(entries)] = 0
            self.word[0] = self.array_at
        for name, value in self.changes.items():
            if value is None:
                new.pop(name, None)
            else:
                new[name] = value
            if self.word is not None:
                put(name, value)
        if self.word is None:
            # One by one, so that the order becomes the new one.
            for name, value in [(name, None) for name in old] + list(new.items()):
                put(name, value)
        old.clear()
        old.update(new)
        if zone != new.get(b"TZ"):
            time.tzset()


def as_mapping(entries):
    """The variables; of what is there twice the first one counts, as it does for C."""
    pairs = [entry.split(b"=", 1) for entry in entries if b"=" in entry]
    new = dict(pairs)
    if len(new) != len(pairs):
        new.update(reversed(pairs))
    return new


def put(name, value):
    if not name:
        return
    if value is None:
        posix.unsetenv(name)
    else:
        posix.putenv(name, value)
