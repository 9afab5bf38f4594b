package hob;

import static hob.Kernel.MEMORY;

/** The channel to the daemon: reads frames with the descriptors that come with them. */
final class Channel {
    private static final int ROOM = 1 << 16;
    /** A header of descriptors, and as many as a frame may have. */
    private static final int CONTROL = Kernel.SCM_RIGHTS_BYTES + 4 * 72;

    /** Its descriptor, which makes way for one of a caller's. */
    int fd;
    /** The descriptors of the frame that was read last. */
    int[] fds = {};
    /** Its kind. */
    int kind;

    private final long buffer = MEMORY.allocateMemory(ROOM);
    private final long control = MEMORY.allocateMemory(CONTROL);
    private final long vector = MEMORY.allocateMemory(16);
    private final long message = MEMORY.allocateMemory(56);

    Channel(int fd) {
        this.fd = fd;
    }

    /** The next frame's payload; {@code null}: the daemon has ended the channel, or left. */
    Frames.In next() {
        fds = new int[0];
        int got = receive(buffer, Frames.HEADER_BYTES);
        while (got > 0 && got < Frames.HEADER_BYTES) {
            int more = receive(buffer + got, Frames.HEADER_BYTES - got);
            got = more <= 0 ? -1 : got + more;
        }
        if (got <= 0) {
            return null;
        }
        int word = MEMORY.getInt(buffer + 4);
        int length = MEMORY.getInt(buffer + 8);
        kind = word & 0xff;
        boolean whole = fds.length == (word >> 8 & 0xff);
        if (MEMORY.getInt(buffer) != Frames.MAGIC || word >>> 16 != 0 || !whole) {
            throw new IllegalStateException("not a frame");
        }
        if (length < 0 || length > Frames.BYTES_MAX) {
            throw new IllegalStateException("a frame beyond the cap");
        }
        // It stays: the environment of the process lies in it.
        long payload = MEMORY.allocateMemory(Math.max(length, 1));
        for (int at = 0; at < length; ) {
            int more = receive(payload + at, length - at);
            if (more <= 0) {
                return null;
            }
            at += more;
        }
        return new Frames.In(payload, length);
    }

    private int receive(long at, int bytes) {
        MEMORY.putLong(vector, at);
        MEMORY.putLong(vector + 8, bytes);
        MEMORY.putLong(message, 0);
        MEMORY.putLong(message + 8, 0);
        MEMORY.putLong(message + 16, vector);
        MEMORY.putLong(message + 24, 1);
        MEMORY.putLong(message + 32, control);
        MEMORY.putLong(message + 40, CONTROL);
        MEMORY.putLong(message + 48, 0);
        long got;
        do {
            got = Kernel.call(Kernel.RECVMSG, fd, message, Kernel.MSG_CMSG_CLOEXEC);
        } while (got == Kernel.EINTR);
        if (got > 0 && MEMORY.getLong(message + 40) >= Kernel.SCM_RIGHTS_BYTES) {
            int count = (int) (MEMORY.getLong(control) - Kernel.SCM_RIGHTS_BYTES) / 4;
            int[] more = java.util.Arrays.copyOf(fds, fds.length + count);
            for (int index = 0; index < count; index++) {
                more[fds.length + index] = MEMORY.getInt(control + Kernel.SCM_RIGHTS_BYTES + 4L * index);
            }
            fds = more;
        }
        return (int) got;
    }
}
