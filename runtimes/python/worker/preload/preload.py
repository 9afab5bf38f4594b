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


def import_all(program, names, hearing, role):
    """Imports modules one after the other; the hazards that they showed."""
    (opened, effects, looks), hazards, running = hearing, [], _thread._count()
    for name in names:
        if name in sys.modules or (program.kind == MODULE and is_main(name, program.target)):
            continue
        if program.kind == INSTALLED and not is_installed(name):
            continue
        reasons = preload_one(program, name, opened, effects)
        if _thread._count() > running:
            # A thread of the interpreter's goes on with what its module has begun: in the call.
            running = _thread._count()
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
        if name in DRAWS.MODULES:
            DRAWS.watch()
        if name in DRAWS.MODULES + PROMISES.MODULES and program.kind != HANDLER:
            PROMISES.watch()
    return hazards


def preload(program, modules, role, volatile):
    """Runs start-up code, imports the modules in order, and compiles the script; the notes."""
    global THREADS, DRAWS, PROMISES, ASKED, LAYER
    recorder, effects = Recorder(), Effects()
    watching, imports = load_beside("watch"), load_beside("imports")
    looks = imports.Looks(program)
    opened = imports.Opened(watching, looks, recorder.read.append)
    THREADS, DRAWS = ANEW.Threads(role), ANEW.Draws(opened.moment)
    PROMISES = opened.promises
    recorder.start()
    opened.start()
    start_up(program, opened, effects)
    # What start-up code has read cannot be read in a call.
    opened.volatile.update(volatile)
    BASELINE.update(dict.fromkeys(sys.modules))
    recorder.settle()
    program.locate()
    SEARCHED.update(sys.path[1:])
    first = DRAWS.MODULES
    if program.kind != HANDLER:
        # A handler's copy performs many calls.
        first += PROMISES.MODULES
        PROMISES.watch()
    STREAMS.watch()
    DRAWS.watch()
    sys.modules["__main__"] = main = imports.Main("__main__")
    main.__dict__.update(new_main(None).__dict__)
    main.__dict__[imports.TOLD] = opened.main_looked_at
    names = [os.fsdecode(name) for name in modules]
    before, loads = dict.fromkeys(sys.modules), Loads()
    if program.kind == INSTALLED:
        loads.start()
    hazards = import_all(program, sorted(names, key=lambda name: name not in first),
                         (opened, effects, looks), role)
    if program.kind == INSTALLED:
        loads.stop()
        LAYER = Layer(before, loads.loads, loads.exits)
    early = program.kind == SCRIPT and not program.container
    if early:
        program.load(effects)
    hazards += ["H%s:%s" % pair for pair in opened.holders(program.code)]
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
    # Named once: from then on those are left to the call who read it.
    own = may_set(program.code, recorder.read, opened.whole_environment)
    notes += [b"S" + name for name in own if name not in opened.volatile]
    return notes + [os.fsencode(hazard) for hazard in dict.fromkeys(hazards)]
