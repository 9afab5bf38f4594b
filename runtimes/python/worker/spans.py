"""Spans that a program makes itself: by `hob.span` of the client, which is another module.

The client gathers nothing unless its list of this call is there. So a program that was started
otherwise, or has not imported the client, pays nothing.
"""

count = borrow("itertools").count

# What the client has for it, and the bounds, which the daemon keeps too.
HELD_BY_CLIENT = "_SPANS_OF_THIS_CALL"
HELD_BY_TASK = "_SPANS_OF_THIS_TASK"
SPANS_MAX = 256
SPAN_NAME_MAX = 48


def begin_spans():
    """From now on spans are gathered, in what is returned; None: there is nothing that would."""
    client = sys.modules.get("hob")
    if client is None:
        return None
    held = names_of(client).get(HELD_BY_CLIENT)
    if type(held) is not list:
        # Another module has that name.
        return None
    held[:] = [], count()
    return held


def begin_spans_of_task(kind):
    """The same for the task that this is called in; `kind` is the class of what the client has."""
    client = sys.modules.get("hob")
    held_by_task = None if client is None else names_of(client).get(HELD_BY_TASK)
    if type(held_by_task) is not kind:
        return None
    held = [[], count()]
    held_by_task.set(held)
    return held


def own_spans(call, now_ns):
    """The frame of what this process's call has gathered; nothing if that is nothing."""
    global HELD_SPANS
    held, HELD_SPANS = HELD_SPANS, None
    return b"" if held is None else end_spans(call.number, held, now_ns)


def end_spans(call, held, now_ns):
    """The frame that says them; nothing if there are none. `call` is the eight bytes of its number."""
    try:
        (spans, numbers), held[:] = held, ()
        more = max(0, next(numbers) - SPANS_MAX)
        # Threads may have begun two in another order than they put them there.
        spans = sorted(spans, key=lambda span: span[0])[:SPANS_MAX]
        places = {span[0]: place for place, span in enumerate(spans, 1)}
        said = [said_span(places, span, now_ns) for span in spans]
    except BaseException:
        # The program has put something else there.
        return b""
    if not said:
        return b""
    more = u32(min(more, (1 << 32) - 1))
    return encode_frame(SPANS, call + more + encode_strings(said))


def said_span(places, span, now_ns):
    _, name, began_ns, ended_ns, parent = span
    name = bytes(name) if isinstance(name, bytes) else str.encode(name, "utf-8", "backslashreplace")
    if len(name) > SPAN_NAME_MAX:
        name = name[:SPAN_NAME_MAX].decode("utf-8", "ignore").encode()
    is_open = not ended_ns
    ns = max(0, (ended_ns or now_ns) - began_ns)
    parent = places.get(parent, 0)
    return b"%d %d %d %d %s" % (began_ns, ns, parent, is_open, name.replace(b"\0", b" "))
