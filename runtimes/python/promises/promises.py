"""All promises of a preload: given, found again where they are kept, and kept in each call."""


class Promises:
    """All of a zygote, and what was to be done at the exit since the first of them."""

    # They are watched from the beginning, so they are loaded first.
    MODULES = "atexit", "tempfile"

    def __init__(self, opened, importing):
        self.opened, self.importing = opened, importing
        self.made = []
        self.watched = set()
        # Process numbers that were put into a text at once: the frame that did so, and who it is.
        self.numbers = []
        # The place where a module that is known draws by chance: a frame, and where in it.
        self.drawn_at = {}
        # Exit hooks, in order, as lists of a function and its arguments.
        self.exits = []
        self.register = self.unregister = self.mkdtemp = None
        # By identity: the text, who holds it, and what it stands for.
        self.found = {}
        self.places = []
        self.broken = False
        # The script's, of which it is known what it imports first.
        self.code = None

    def watch(self):
        """After one of the modules was loaded."""
        for name, functions in (("atexit", ("register", "unregister")), ("tempfile", ("mkdtemp",))):
            module = sys.modules.get(name)
            if module is None or name in self.watched or not is_standard(name, module):
                continue
            self.watched.add(name)
            for function in functions:
                setattr(self, function, getattr(module, function))
                self.opened.looker(module, function, ignore, getattr(self, "promise_" + function))

    # --- While modules are imported ------------------------------------------------------------

    def promise_register(self, function, *arguments, **options):
        """Whatever was to be done at the exit after a promise was made is promised too: their
        order is the one in which they are registered."""
        if not self.made or not callable(function):
            return None
        self.exits.append([function, arguments, options])
        return function

    def promise_unregister(self, function):
        # Those from before are the interpreter's to remove: it is called all the same.
        self.exits = [each for each in self.exits if not each[0] == function]

    def promise_mkdtemp(self, suffix=None, prefix=None, dir=None):
        given = [each for each in (suffix, prefix, dir) if each is not None]
        frame = outside()
        chain = self.importing(frame)
        if not chain or "atexit" not in self.watched or any(type(each) is not str for each in given):
            return None
        if dir is None:
            # Where it will be decides each call: no part of this is to be kept.
            folder, marks = "/" + token(), []
            if getattr(sys.modules["tempfile"], "tempdir", None) is not None:
                return None
            marks.append(folder[1:])
        elif dir.startswith("/") and not self.concerns(given):
            folder, marks = dir, []
        else:
            return None
        name = token()
        before = "tmp" if prefix is None else prefix
        text = os.path.join(folder, before + name + (suffix or ""))
        if sys.version_info >= (3, 12):
            text = os.path.abspath(text)
        marks.append(name)
        parts = self.parts(frame, prefix)
        if parts is None:
            return None
        if len(parts) == 2:
            marks.append(prefix)

        del prefix  # Nobody of ours is to hold it.

        def make():
            own = parts[0] if len(parts) < 2 else str(posix.getpid()).join(parts)
            return self.mkdtemp(suffix, own, dir)

        self.made.append(Promise(text, marks, chain, make))
        return self.made[-1].text[0]

    def parts(self, frame, prefix):
        """What stands before and after the process number in a prefix; None if that is unclear."""
        numbers = [each for each in self.numbers if each[0] is frame]
        if not numbers:
            return [prefix]
        parts = (prefix or "").split(numbers[0][1])
        if len(numbers) > 1 or len(parts) != 2:
            return None
        self.numbers.remove(numbers[0])
        return parts

    def number(self, blame):
        """Somebody asks for the process's number. If it goes nowhere but into a text, that may be
        a promise's prefix; until then, whoever imports it is to blame."""
        frame = outside()
        if "tempfile" in self.watched and is_formatted(frame):
            self.numbers.append((frame, str(posix.getpid()), blame))
            return True
        return False

    def unresolved(self):
        """What is to blame for numbers that became no part of a promise."""
        self.drawn_at = {name: (None, at) for name, (_, at) in self.drawn_at.items()}
        numbers, self.numbers = self.numbers, []
        return [blame for _, _, blame in numbers]

    def draws(self, chain):
        """Whether what is drawn by chance right now is all that this module draws, and renewed by
        each call."""
        name = chain[0] if chain else None
        if name not in DRAWN or "atexit" not in self.watched:
            return False
        frame = outside()
        while frame.f_globals.get("__name__") in ("random", "secrets"):
            frame = frame.f_back
        if frame.f_code.co_name != "<module>" or frame.f_globals["__name__"] != name:
            return False
        # Of numbers that are too large another one is drawn, in the same place.
        place = self.drawn_at.setdefault(name, (frame, frame.f_lasti))
        if place[0] is not frame or place[1] != frame.f_lasti:
            return False
        if name not in [each.chain[0] for each in self.made if not each.is_folder]:
            self.made.append(Promise(None, [], list(chain)))
        return True

    def concerns(self, arguments):
        """Whether one of these has to do with a promised directory, which is not there yet."""
        for each in arguments if self.made else ():
            if type(each) is bytes:
                each = os.fsdecode(each)
            if isinstance(each, str) and any(
                mark in each for promise in self.made for mark in promise.marks
            ):
                return True
        return False

    def dropped(self, blamed):
        """Modules that were to blame are gone, and another zygote will be without them."""
        self.broken |= any(set(promise.chain) & set(blamed) for promise in self.made)

    # --- After the last import -----------------------------------------------------------------

    def settle(self, code):
        """Finds every place of every promise, for a script of this code; the modules of those that
        cannot be kept."""
        self.code, certain = code, imported_first(code)
        for promise in self.made:
            kept = promise.chain[-1] in certain if promise.is_folder else self.settle_drawn(promise)
            self.broken |= not kept
        if not self.made or self.broken:
            return self.give_up()
        gc.collect()
        self.search()
        try:
            for entry in list(self.found.values()):
                self.understand(entry)
        except Unclear:
            return self.give_up()
        finally:
            self.found.clear()
        return []

    def settle_drawn(self, promise):
        """What a module that is known keeps of what it has drawn."""
        module = sys.modules.get(promise.chain[0])
        text, make = DRAWN[promise.chain[0]](names_of(module)) or (None, None)
        if make is None:
            return False
        promise.text[0], promise.marks, promise.make = text, promise.text, make
        return True

    def give_up(self):
        """What was promised is done by calls alone, as everything of its kind."""
        modules = [name for promise in self.made for name in promise.chain]
        self.broken = bool(self.made)
        self.places.clear()
        return modules

    def search(self):
        """Everything that refers to a text with one of the marks in it."""
        marks = [mark for promise in self.made for mark in promise.marks]
        marks += [mark.upper() for mark in marks if mark.upper() != mark]
        as_bytes = [os.fsencode(mark) for mark in marks]
        ours = {id(promise.text) for promise in self.made} | {id(marks), id(as_bytes)}
        ours |= {id(promise.marks) for promise in self.made}
        seen, todo = set(), gc.get_objects()
        ours |= {id(todo), id(seen), id(self.found)}
        tracked = set(map(id, todo))
        for holder in todo:
            if id(holder) in ours or is_our_frame(holder):
                continue
            for each in gc.get_referents(holder):
                kind = type(each)
                if kind in LEAVES:
                    continue
                if issubclass(kind, str):
                    if any(str.__contains__(each, mark) for mark in marks):
                        self.found.setdefault(id(each), (each, []))[1].append(holder)
                elif id(each) in seen or id(each) in tracked:
                    continue
                elif issubclass(kind, (bytes, bytearray)):
                    if any(mark in bytes(each) for mark in as_bytes):
                        self.found[id(each)] = each, []
                else:
                    # Such as a tuple of nothing but texts, which the collector does not know.
                    seen.add(id(each))
                    todo.append(each)
            if type(holder) is CODE:
                todo.append((*holder.co_consts, *holder.co_names, holder.co_filename))
            elif isinstance(holder, IN_MEMORY) and not holder.closed:
                todo.append((holder.getvalue(),))

    def understand(self, entry):
        """Notes how a text that was found, and all who hold it, are given another."""
        text, holders = entry
        if not isinstance(text, str):
            raise Unclear
        promise = [each for each in self.made if str.__eq__(each.text[0], text)]
        if len(promise) != 1:
            raise Unclear
        promise = promise[0]
        control = "".join(("con", "trol")), []
        known = len(holders) + (promise.text[0] is text)
        del text
        # Whoever else holds it could not be seen: a structure of C code, or the interpreter.
        if sys.getrefcount(entry[0]) - sys.getrefcount(control[0]) != known:
            raise Unclear
        text, ways = entry[0], []
        for holder in {id(each): each for each in holders}.values():
            new = self.ways(holder, text)
            if len(new) != sum(each is holder for each in holders):
                raise Unclear
            ways += new
        self.places.append((promise, likeness(text), ways))

    def ways(self, holder, text):
        """How the holder is given another text; as many as it holds this one."""
        if type(holder) is tuple:
            at = [each for each in self.exits if each[1] is holder]
            return [(renew_argument, at[0], n) for n, each in enumerate(holder)
                    if at and each is text]
        if type(holder) is list:
            return [(list.__setitem__, holder, n) for n, each in enumerate(holder) if each is text]
        if type(holder) is dict:
            if any(isinstance(each, type) for each in gc.get_referrers(holder)):
                # What a class holds is known elsewhere in the interpreter.
                return []
            return [(dict.__setitem__, holder, key) for key, each in holder.items()
                    if each is text and key is not text]
        return []

    def given(self):
        """Whether there is anything to keep."""
        return bool(self.broken or self.made or self.places or self.exits)

    # --- In a copy, when its call has come -----------------------------------------------------

    def holds_for(self, code):
        """Whether a script that was edited still imports first what makes directories."""
        if not self.made or code is self.code:
            return True
        certain = imported_first(code)
        return all(each.chain[-1] in certain for each in self.made if each.is_folder)

    def keep(self, code):
        """Makes what was promised; False if only a new process can tell what this script does."""
        if self.broken or not self.holds_for(code):
            return False
        made = []
        try:
            for promise in self.made:
                new = promise.make()
                if promise.is_folder:
                    made.append(new)
                promise.text[0] = new
            for promise, like, ways in self.places:
                new = like(promise.text[0])
                for put, holder, key in ways:
                    put(holder, key, new)
            for function, arguments, options in self.exits:
                self.register(function, *arguments, **options)
        except BaseException as error:
            for folder in made:
                posix.rmdir(folder)
            if not isinstance(error, Exception):
                raise
            return False
        # What programs hold, nobody else is to hold.
        for each in (self.made, self.places, self.exits):
            each.clear()
        return True
