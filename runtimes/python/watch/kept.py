"""Where a stand-in is kept after all, and how what it stands for is put back there."""

OF_CLASS = type(dict.__dict__["fromkeys"])


def ours_in(kind, name):
    """What stands for a method's name in a type."""
    return kind.__dict__[name]


def modified(kind):
    """Has the interpreter forget what it remembers of a type's methods; False if it cannot."""
    kernel = worker.KERNEL
    if kernel.ctypes is None:
        return False
    function = kernel.symbol(kernel.libc, "PyType_Modified")
    if not function:
        return False
    members = {"_flags_": kernel.ctypes.FUNCFLAG_CDECL | kernel.ctypes.FUNCFLAG_PYTHONAPI}
    members["_restype_"] = None
    call = type("function", (kernel.ctypes.CFuncPtr,), members)(function)
    thing = type("thing", (kernel.ctypes._SimpleCData,), {"_type_": "O"})
    call(thing(kind))
    return True


def still_kept(real):
    """Of what stands in, that which somebody else than `real` holds: only those are looked for, since
    each look goes through all objects."""
    control = object()
    counts = {id(control): (control, None)}
    del control
    least = [sys.getrefcount(pair[0]) for pair in counts.values()][0]
    return {at: pair for at, pair in real.items() if sys.getrefcount(pair[0]) > least}


def put_back(real):
    """`real` has by identity what stands in, and what it stands for."""
    if not real:
        return
    stand_ins = [each for each, _ in real.values()]
    held = [each for each in gc.get_referrers(*stand_ins) if each is not stand_ins]
    dicts = [each for each in held if type(each) is dict]
    # A type remembers what its names stand for, so it must be told.
    for kind in gc.get_referrers(*dicts) if dicts else ():
        if isinstance(kind, type):
            for name, value in list(kind.__dict__.items()):
                if id(value) in real:
                    type.__setattr__(kind, name, real[id(value)][1])
                elif type(value) is staticmethod and id(value.__func__) in real:
                    type.__setattr__(kind, name, staticmethod(real[id(value.__func__)][1]))
    for holder in held:
        put_back_in(holder, real)


def put_back_in(holder, real):
    kind = type(holder)
    if kind is tuple:
        put_back_defaults(holder, real)
    elif kind is set:
        for each in [each for each in holder if id(each) in real]:
            holder.discard(each)
            holder.add(real[id(each)][1])
    elif kind is CELL:
        if id(holder.cell_contents) in real:
            holder.cell_contents = real[id(holder.cell_contents)][1]
    elif kind.__module__ == "functools" and id(getattr(holder, "func", None)) in real:
        # `partial`.
        function, *rest = holder.__reduce__()[2]
        holder.__setstate__((real[id(function)][1], *rest))
    else:
        names = holder if kind in (dict, list) else getattr(holder, "__dict__", None)
        if type(names) in (dict, list):
            for key, value in list(names.items() if type(names) is dict else enumerate(names)):
                if id(value) in real and real[id(value)][0] is value:
                    names[key] = real[id(value)][1]


def put_back_defaults(defaults, real):
    """`def f(clock=time.monotonic)`."""
    new = tuple([real[id(each)][1] if id(each) in real else each for each in defaults])
    for holder in gc.get_referrers(defaults):
        if type(holder) is worker.FUNCTION and holder.__defaults__ is defaults:
            holder.__defaults__ = new


CELL = type((lambda thing: lambda: thing)(0).__closure__[0])
