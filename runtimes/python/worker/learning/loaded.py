"""What a call has loaded by itself, as the daemon is told of it."""


def send_loaded(call):
    """Says what the call has loaded."""
    if PROFILE is not None:
        PROFILE.send(call)
    elif len(sys.modules) != len(KNOWN):
        # What is imported at its moment in each call is known.
        new = {n: m for n, m in sys.modules.items() if n not in KNOWN and n not in LATER}
        if new:
            notes = notes_of_modules(imported_as_ever(new), KNOWN)
            send_all(COPY_FD, encode_notes(call.number, notes))


def send_untold(call):
    """Says what is known of a call before its end, where only the process's end tells that."""
    if posix.getpid() == OWNER and is_ours(COPY_FD):
        send_all(COPY_FD, own_spans(call, time.monotonic_ns()))
        send_loaded(call)
