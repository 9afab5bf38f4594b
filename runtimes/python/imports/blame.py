"""Who is to blame for what cannot be kept: the modules that each call must import itself."""


class Blame:
    """The part of `Opened` that knows who imports right now, and why that is not kept."""

    def blame(self, reason):
        """Notes who imports right now: all of them, since each would do so again. False if it is
        done by somebody of whom it is known that it does no harm."""
        chain, codes, names, place = self.who()
        if reason == "process" and not names.isdisjoint(ASKS_OF_THE_SYSTEM):
            return False
        if chain:
            self.places.setdefault(chain[0], place)
        if reason == "moment":
            if worker.RENEWED.get(chain[0] if chain else None) or worker.DRAWS.draws_anew(chain):
                return False
            self.drawn.append((chain, codes))
            return True
        # A thread of its own: whoever is imported now has started it.
        self.blamed.update(dict.fromkeys(chain or [None], reason))
        return True

    @staticmethod
    def who():
        """Who imports right now, the innermost first, what runs within that, all names, and the
        file and line of the innermost."""
        frame, chain, codes, names, place = sys._getframe(1), [], set(), set(), None
        while frame is not None:
            name = frame.f_globals.get("__name__")
            names.add(name)
            if frame.f_code.co_name == "<module>" and name != "__main__":
                chain.append(name)
                place = place or "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
            elif not chain:
                codes.add(frame.f_code)
            frame = frame.f_back
        return chain, codes, names, place

    def of_startup(self):
        """What start-up code did that forbids to run it once for many calls, as one line; None."""
        kept_moments(self.blamed, self.new_modules(), self.since)
        reasons = dict(self.blamed)
        for chain, *_ in self.drawn:
            reasons.update(dict.fromkeys(chain or [None], "moment"))
        for chain in self.put.values():
            reasons.update(dict.fromkeys(chain or [None], "state"))
        reasons.update((name, what) for name, what in self.looks.seen)
        self.blamed, self.drawn, self.put = {}, [], {}
        self.looks.seen.clear()
        for name, reason in reasons.items():
            return "%s: %s" % (name or "start-up code", reason)
        return None

    def new_modules(self):
        new = {each: sys.modules[each] for each in set(sys.modules) - self.searched}
        self.searched.update(new)
        return new

    def hazards(self, name):
        """What importing this module showed, as names and reasons. Who was to blame is imported
        anew by whoever needs it next, so that all of them are found in one preload."""
        kept_moments(self.blamed, self.new_modules(), self.since)
        for chain, codes, *_ in self.drawn:
            # Unless the same function runs in each copy anyway.
            if not codes & self.forked:
                self.blamed.update(dict.fromkeys(chain or [None], "moment"))
        self.drawn.clear()
        for chain in self.put.values():
            self.blamed.update(dict.fromkeys(chain or [None], "state"))
        self.put.clear()
        blamed, self.blamed = self.blamed, {}
        for each in blamed:
            sys.modules.pop(each, None)
            self.searched.discard(each)
        for reason in set(blamed.values()):
            blamed.setdefault(name, reason)
        blamed.pop(None, None)
        self.known.update(blamed)
        return list(blamed.items())

    def holders(self):
        """Who holds something of those that were to blame: the same is so of them. Found one by
        one they would cost a zygote each."""
        for reason in set(self.known.values()):
            names = {name: None for name, why in self.known.items() if why == reason}
            Looks.spread(names)
            yield from ((name, reason) for name in names if name not in self.known)


def importing(frame):
    """Whose code this is, and who imports that right now."""
    chain = []
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if (frame.f_code.co_name == "<module>" or name == "os") and name != "__main__":
            chain.append(name)
        frame = frame.f_back
    return chain


def kept_moments(blamed, modules, since):
    """Blames modules that keep what they were given by something that tells nobody: a moment, or a
    copy of the environment, in which each call has something else."""
    datetime = getattr(sys.modules.get("datetime"), "datetime", None)
    # Wherever on earth: the offset of a zone is less than a day.
    after = datetime and datetime.fromtimestamp(since)

    data = worker.ENVIRONMENT.data
    texts = {os.fsdecode(name): os.fsdecode(value) for name, value in data.items()}

    given = set(map(id, given_anew()))

    def keeps(value):
        if type(value) is dict:
            # Most of the variables, as they are: some may have been changed in the copy.
            same = len(value) * 2 > len(data) and sum(
                value.get(name) == text for kind in (data, texts) for name, text in kind.items()
            )
            return same * 2 > len(data)
        return datetime is not None and type(value) is datetime and is_now(value, after)

    for name, module in list(modules.items()):
        taken = given if not worker.RENEWED.get(name) else ()
        for value in list(names_of(module).values()):
            held = value.__dict__.values() if type(value) is type else (value,)
            if any(id(each) in taken or keeps(each) for each in list(held)):
                blamed[name] = "moment"


def given_anew():
    """What a copy has anew, and others may have taken from where it is: each an object of its own,
    so that nothing else is taken for it."""
    threading, logging, process = [
        names_of(sys.modules.get(name))
        for name in ("threading", "logging", "multiprocessing.process")
    ]
    values = (
        logging.get("_startTime"),
        names_of(threading.get("_main_thread")).get("_native_id"),
        names_of(process.get("_current_process")).get("_config", {}).get("authkey"),
    )
    return [each for each in values if each is not None and not is_shared(each)]


def is_shared(value):
    """The interpreter has small numbers once for all."""
    return type(value) is int and value < 257


def is_now(moment, after):
    days = abs(moment.replace(tzinfo=None) - after).total_seconds() / 86400
    return days < 1.1
