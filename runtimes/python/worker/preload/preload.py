"""The preload: the interpreter's start-up code and the modules, imported and listened to."""


def says_no_site(prefix):
    """Whether an interpreter that was called so runs no start-up code."""
    words = iter(prefix[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        elif word[:1] == "-" and word[:2] != "--":
            for at, letter in enumerate(word[1:], 2):
                if letter == "S":
                    return True
                if letter in "WX" and at == len(word):
                    next(words, None)
                if letter in "WXm":
                    break
    return False


def run_site():
    """Runs the interpreter's start-up code, as it does itself unless it is told not to. Hidden."""
    __import__("site")


def take_back_no_site():
    """The daemon has told the interpreter to run no start-up code before us (`-S`); a program is
    not to see that."""
    at = id(sys.flags) + tuple.__basicsize__ + 8 * NO_SITE
    memory = posix.open("/proc/self/mem", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        known = posix.pread(memory, 8, at)
    finally:
        posix.close(memory)
    if sys.flags[NO_SITE] != 1 or known != u64(id(sys.flags[NO_SITE])):
        raise RuntimeError("the interpreter's flags are not where they are looked for")
    write_own(at, u64(id(0)))


# Where `sys.flags` has it.
NO_SITE = 6


def start_up(program, opened, effects):
    """Runs start-up code, heard as imports are. What of it each call would do anew cannot be done
    here once for all: then no copy can be made."""
    if not sys.flags.no_site or says_no_site(program.prefix):
        return
    take_back_no_site()
    stopped = None
    try:
        opened.listen(run_site)
    except BaseException as error:
        # It was about to do something that no zygote does, or failed as it does cold.
        stopped = type(error).__name__
    reasons = effects.effects()
    told = opened.of_startup() or ", ".join(reasons) or stopped
    if told:
        raise RuntimeError("start-up code cannot run once for all calls (%s)" % told)
    opened.take_variables(opened.variables)
    if watched():
        # Set where the interpreter starts (`coverage` does so): it would be told of us.
        raise RuntimeError("the interpreter starts with a tracer or profiler")


class Arrivals:
    """Tells when one of some modules has just been loaded, before anybody else uses it."""

    def __init__(self, names, told):
        self.names, self.told = names, told
        self.original = BOOTSTRAP._find_and_load

    def start(self):
        original, names, told = self.original, self.names, self.told

        def _find_and_load(name, import_):
            module = original(name, import_)
            if name in names:
                told()
            return module

        BOOTSTRAP._find_and_load = in_place_of(original, hide(_find_and_load))

    def stop(self):
        BOOTSTRAP._find_and_load = self.original


def import_all(program, leading, hearing, role):
    """Imports what the program imports before it does anything else; the steps, and the hazards that
    they showed. Hidden."""
    steps, hazards, walk, is_loaded = [], [], leading.program(program), None
    path = SearchPath()
    while True:
        try:
            step = walk.send(is_loaded)
        except StopIteration:
            if not path.take_off():
                # A module has put something between: it is for the call.
                hazards += ["H%s:state" % step.what[0] for step in steps if step.what[0]]
            return steps, hazards
        is_loaded, new = False, []
        if step[0] is None:
            # A layer's modules are found by the path that the program had when it began.
            may = program.kind != INSTALLED or only_names(step[3])
            is_loaded = may and do_ahead(step, hearing, path)
        elif program.kind != INSTALLED or is_installed(step[0]):
            new = import_one(program, step, hearing, role)
            is_loaded = not new and step[0] in sys.modules
        hazards += new
        steps.append(Step(*step))
        steps[-1].is_loaded = is_loaded
        steps[-1].new = [name for name in sys.modules if name not in leading.there]
        leading.there.update(dict.fromkeys(steps[-1].new))


def do_ahead(step, hearing, path):
    """Does a statement that each call does just so; False if it is one for the call alone. Hidden."""
    (opened, effects, _), (_, place, line, statements) = hearing, step
    before = list(sys.path)
    reasons = preload_one(statements, place, line, opened, effects)
    path.has_grown(before)
    reasons += [*opened.blamed, *opened.drawn, *opened.put]
    opened.hazards(None)
    return not reasons


def import_one(program, step, hearing, role):
    """Imports one module; the hazards that it showed. Hidden."""
    (opened, effects, looks), (name, place, line, statement) = hearing, step
    hazards, running = [], _thread._count()
    reasons = preload_one(statement or "__import__(%r)" % name, place, line, opened, effects)
    if DRAWS.is_patched():
        reasons.append("state")
    if _thread._count() > running:
        # A thread of the interpreter's goes on with what its module has begun: in the call.
        reasons.append("state")
    blamed = opened.hazards(name)
    hazards += ["H%s:%s" % pair for pair in blamed]
    if blamed and "failed" in reasons:
        # It was stopped.
        reasons.remove("failed")
    if sys.argv is not looks.argv:
        sys.argv = looks.argv
        reasons.append("argv")
    for reason in reasons:
        # A standby is not forked: it may have threads.
        if reason != "thread" or role == ZYGOTE:
            hazards.append("H%s:%s" % (name, reason))
    return hazards


def preload(program, modules, role, volatile):
    """Runs start-up code, imports what comes first, and compiles the script; the notes."""
    global THREADS, DRAWS, ASKED, LAYER, LATER
    recorder, effects = Recorder(), Effects()
    watching, imports = load_beside("watch"), load_beside("imports")
    looks = imports.Looks(program)
    opened = imports.Opened(watching, looks, recorder.read.append)
    THREADS, DRAWS = ANEW.Threads(role), ANEW.Draws(opened.moment)
    recorder.start()
    opened.start()
    start_up(program, opened, effects)
    # What start-up code has read cannot be read in a call.
    opened.volatile.update(volatile)
    BASELINE.update(dict.fromkeys(sys.modules))
    recorder.settle()
    program.locate()
    SEARCHED.update(sys.path[1:])
    STREAMS.watch()
    sys.modules["__main__"] = main = imports.Main("__main__")
    main.__dict__.update(new_main(None).__dict__)
    main.__dict__[imports.TOLD] = opened.main_looked_at
    names = [] if program.kind in (HANDLER, BARE) else [os.fsdecode(name) for name in modules]
    if program.kind == MODULE or program.container:
        __import__("runpy")
    before, loads = dict.fromkeys(sys.modules), Loads()
    DRAWS.watch()
    arrivals = Arrivals(DRAWS.MODULES, DRAWS.watch)
    arrivals.start()
    if program.kind == INSTALLED:
        loads.start()
    leading = Leading(dict.fromkeys(names), before.copy())
    program.steps, hazards = import_all(program, leading, (opened, effects, looks), role)
    if program.kind == INSTALLED:
        loads.stop()
        LAYER = Layer(before, loads, program.steps)
    arrivals.stop()
    program.before = before
    for file in leading.files:
        # What it begins with has been decided by it.
        opened.read.setdefault(file, True)
    early = program.kind == SCRIPT and not program.container
    if early:
        program.load(effects)
    hazards += ["H%s:%s" % pair for pair in opened.holders()]
    DRAWS.stop()
    STREAMS.unwatch()
    hazards += looks.stop()
    opened.stop()
    sys.modules["__main__"] = new_main(None)
    ASKED = Asked(opened)
    if not THREADS.loaded():
        hazards += ["H%s:thread" % name for name in known("threads")]
    if not early:
        program.load(effects)
    recorder.stop()
    effects.stop()
    notes = notes_of_modules(recorder.in_order(), BASELINE, opened.read) + recorder.notes()
    # What the interpreter has read of it (`time.tzname`) is kept.
    if os.path.exists("/etc/localtime"):
        notes.append(b"F/etc/localtime")
    files = {os.fsdecode(note[1:]) for note in notes if note[:1] == b"F"}
    notes += [b"F" + path for path in mapped_objects() if os.fsdecode(path) not in files]
    notes += opened.notes(files | {os.path.abspath(program.target)})
    LATER = frozenset(name for name in names if name not in sys.modules and leading.is_there(name))
    notes += [b"P" + os.fsencode(name) for name in sorted(LATER)]
    if leading.stopped is not None:
        notes.append(os.fsencode("B%s:%d" % leading.stopped))
    return notes + [os.fsencode(hazard) for hazard in dict.fromkeys(hazards)]
