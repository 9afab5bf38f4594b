"""Where the interpreter's collector runs in a learning run: where it would in a cold one."""

# What the interpreter itself makes between start-up code and the program.
MADE_COLD = 16


class Collector:
    """Has the collector run where it would in a cold run: objects of a program that lie in a cycle
    end in an order that depends on how often it ran before, and on what it found then.

    Our own objects are made while it is off. It counts objects that are made, less those that
    ended; so as many are made, or kept for ending, as it takes. They are sets, of which no version
    keeps one that has ended for later, which would not be counted.
    """

    # So many of ours are there at most when a program begins.
    MOST = 512

    def __init__(self, began):
        self.sets = None
        self.began = began
        self.count = began[0]

    def run(self, step, *arguments):
        """Does what the interpreter does in a cold run, too."""
        if self.sets is None:
            self.begin()
        self.count_as_cold()
        gc.enable()
        try:
            return step(*arguments)
        finally:
            gc.disable()
            self.count = gc.get_count()[0]

    def begin(self):
        """Counts from zero again, up to where the interpreter was when we began."""
        self.sets = [set() for _ in range(self.MOST)]
        for generation, times in ((2, 1), (1, self.began[2]), (0, self.began[1])):
            for _ in range(times):
                gc.collect(generation)

    def count_as_cold(self):
        more = gc.get_count()[0] - self.count
        del self.sets[:max(more, 0)]
        self.sets.extend([set() for _ in range(-more)])

    def settle(self):
        """As the last thing before the program begins."""
        if self.sets is not None:
            self.count += MADE_COLD
            self.count_as_cold()
        gc.enable()


Collector.run = hide(Collector.run)


def uncollected(step, *arguments):
    """Does a step of our own near a program: its objects are not to have the collector run there."""
    collects = gc.isenabled()
    gc.disable()
    step(*arguments)
    if collects:
        gc.enable()
