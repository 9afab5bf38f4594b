package hob;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The frames of docs/wire.md that a standby says and hears. Owns: their bytes, little-endian as all
 * machines are that it runs on. Knows no descriptors.
 */
final class Frames {
    private Frames() {}

    // wire:begin jvm-frames (`cargo xtask wire` writes these lines)
        static final int HEADER_BYTES = 12;
        static final int BYTES_MAX = 1048576;
        static final int MAGIC = 0x1626f68;
        static final int STANDBY = 1;
        static final int EXITED = 0;
        static final int JAR = 0;
        static final int CLASS = 6;
        static final int ENDED = 18;
        static final int PRELOAD = 32;
        static final int READY = 33;
        static final int GIVE = 37;
        static final int FINISHED = 38;
        static final int FAILED = 40;
        static final int JOINED = 41;
        static final int EXECUTES = 44;
    // wire:end

    /** A frame that is being written, in memory of its own. */
    static final class Out {
        final long start;
        int length = HEADER_BYTES;
        private final int room;

        Out(int kind, int room) {
            this.room = HEADER_BYTES + room;
            start = Kernel.MEMORY.allocateMemory(this.room);
            Kernel.MEMORY.putInt(start, MAGIC);
            Kernel.MEMORY.putInt(start + 4, kind);
        }

        private long take(int bytes) {
            if (length + bytes > room) {
                throw new IllegalStateException("a frame beyond its room");
            }
            length += bytes;
            return start + length - bytes;
        }

        Out u8(int value) {
            Kernel.MEMORY.putByte(take(1), (byte) value);
            return this;
        }

        Out u32(int value) {
            Kernel.MEMORY.putInt(take(4), value);
            return this;
        }

        Out u64(long value) {
            Kernel.MEMORY.putLong(take(8), value);
            return this;
        }

        Out blob(byte[] bytes) {
            u32(bytes.length);
            Kernel.put(take(bytes.length), bytes);
            return this;
        }

        /** Sends it whole. */
        void send(int fd) {
            Kernel.MEMORY.putInt(start + 8, length - HEADER_BYTES);
            Kernel.write(fd, start, length);
        }
    }

    static Out ready(int pid, int threads, List<byte[]> notes) {
        int bytes = 0;
        for (byte[] note : notes) {
            bytes += note.length + 1;
        }
        Out out = new Out(READY, 17 + bytes).u8(STANDBY).u32(pid).u32(threads);
        out.u32(notes.size()).u32(bytes);
        for (byte[] note : notes) {
            Kernel.put(out.take(note.length), note);
            out.u8(0);
        }
        return out;
    }

    static Out failed(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return new Out(FAILED, 4 + bytes.length).blob(bytes);
    }

    static Out joined(long call, long at) {
        return new Out(JOINED, 16).u64(call).u64(at);
    }

    static Out executes(long call, long at, int why) {
        return new Out(EXECUTES, 17).u64(call).u64(at).u8(why);
    }

    static Out ended(long call, int code) {
        return new Out(ENDED, 18).u64(call).u8(EXITED).u8(code).u32(0).u32(0);
    }

    static Out finished(long call, int code, long main, long finished) {
        return new Out(FINISHED, 26).u64(call).u8(EXITED).u8(code).u64(main).u64(finished);
    }

    /** A payload that is being read, in memory that stays. */
    static final class In {
        private final long start;
        private final int length;
        int at;

        In(long start, int length) {
            this.start = start;
            this.length = length;
        }

        private long take(int bytes) {
            if (bytes < 0 || bytes > length - at) {
                throw new IllegalStateException("a frame that is cut");
            }
            at += bytes;
            return start + at - bytes;
        }

        int u8() {
            return Kernel.MEMORY.getByte(take(1)) & 0xff;
        }

        int u32() {
            return Kernel.MEMORY.getInt(take(4));
        }

        long u64() {
            return Kernel.MEMORY.getLong(take(8));
        }

        int[] numbers() {
            int count = u32();
            if (count < 0 || count > (length - at) / Integer.BYTES) {
                throw new IllegalStateException("a list with a wrong count");
            }
            int[] numbers = new int[count];
            for (int index = 0; index < numbers.length; index++) {
                numbers[index] = u32();
            }
            return numbers;
        }

        byte[] bytes(int count) {
            return Kernel.get(take(count), count);
        }

        byte[] blob() {
            return bytes(u32());
        }

        /** Where each string of a list begins; each ends with a zero. */
        long[] places() {
            int count = u32();
            int bytes = u32();
            long at = take(bytes);
            long end = at + bytes;
            if (count < 0 || count > bytes) {
                throw new IllegalStateException("a list with a wrong count");
            }
            long[] places = new long[count];
            for (int index = 0; index < count; index++) {
                places[index] = at;
                while (at < end && Kernel.MEMORY.getByte(at) != 0) {
                    at++;
                }
                if (at++ >= end) {
                    throw new IllegalStateException("a list with a wrong count");
                }
            }
            if (at != end) {
                throw new IllegalStateException("a list with a wrong count");
            }
            return places;
        }

        List<byte[]> strings() {
            List<byte[]> strings = new ArrayList<>();
            for (long place : places()) {
                strings.add(string(place));
            }
            return strings;
        }
    }

    /** The bytes from here on, up to a zero. */
    static byte[] string(long place) {
        int length = 0;
        while (Kernel.MEMORY.getByte(place + length) != 0) {
            length++;
        }
        return Kernel.get(place, length);
    }
}
