"""What the preload was told and what it leaves undone until a call: answers, and fork hooks."""


class Asked:
    """What imports asked of their process, with the answers: where a call would get others, they
    are imported anew."""

    def __init__(self, opened):
        self.machine, self.blocking = opened.machine, opened.asked_blocking
        self.signals = opened.signals & SETTABLE
        self.answers = list(opened.asks.values())

    def hold(self, call):
        """Whether a call would be answered likewise."""
        if self.machine is not None and self.machine != posix.uname():
            # It has been given another name since.
            return False
        if self.blocking and not all_blocking() or call.ignored & self.signals:
            return False
        for function, arguments, options, answer in self.answers:
            try:
                now = function(*arguments, **options)
            except Exception as error:
                now = type(error)
            if now != answer:
                return False
        return True


class ForkHook:
    """What `threading` does in the child of each fork: it forgets other threads, and makes the
    locks anew that they may have held.

    A zygote that has never had another thread has nothing to forget, and a cold run begins without
    a fork. So its copies go without, which spares them a hundred page faults. The interpreter
    holds on to the function, and the zygote takes only its code out; a copy puts it back, for the
    forks of its program.
    """

    def __init__(self):
        self.function = None
        try:
            self.take(names_of(sys.modules.get("threading")))
        except Exception:
            # Somebody has made it otherwise: then it runs as ever.
            pass

    def take(self, threading):
        function, main = threading.get("_after_fork"), threading.get("_main_thread")
        if (
            type(function) is FUNCTION
            and function.__globals__ is threading
            and type(main) is threading["_MainThread"]
            and threading["_active"] == {_thread.get_ident(): main}
            and list(threading["_dangling"]) == [main]
            and not threading["_limbo"]
        ):
            self.main, code = main, function.__code__
            function.__code__ = NOTHING
            self.function, self.code = function, code

    def restore(self):
        """In a copy, which has another number than its zygote."""
        if self.function is not None:
            self.function.__code__ = self.code
            if hasattr(self.main, "_set_native_id"):
                self.main._set_native_id()


NOTHING = compile("", "<nothing>", "exec")
