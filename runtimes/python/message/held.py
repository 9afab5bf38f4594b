"""A message as long as it lies in its connection, or the end of it does. There it is unread for whoever
sent it, who gives it to another worker if this one is killed: what an app may have begun was taken."""


class Held:
    """The message at hand."""

    def __init__(self):
        self.connection, self.size = None, 0
        # What the tally of its lane is told when it is taken.
        self.begins = None

    def hold(self, connection, size):
        self.connection, self.size, self.begins = connection, size, None

    def look(self, channel, length):
        """The payload that comes next on the channel."""
        payload = channel.recv(length, MSG_PEEK)
        if len(payload) < length:
            # It comes in several pieces, which can be seen together only where they are read.
            payload = worker.receive_bytes(channel, length - 1)
            payload += channel.recv(1, MSG_PEEK) or worker._cut_off()
            length = 1
        self.hold(channel, length)
        return payload

    def take(self):
        """It begins, or will not."""
        if not self.size:
            return
        if self.begins is not None:
            tally, *numbers = self.begins
            TALLY.pack_into(tally, AT_BEGUN, *numbers)
        size, self.size = self.size, 0
        worker.receive_bytes(self.connection, size)


HELD = Held()
