"""What PROJECT says: to a command line, and to `hob ask`."""


def greeting(names):
    return "Hello, " + (" and ".join(names) or "world") + "!"


def handle(payload, message):
    """`hob ask PROJECT NAMES` calls this: a payload is bytes, and so is the answer."""
    return greeting(payload.decode().split()).encode()
