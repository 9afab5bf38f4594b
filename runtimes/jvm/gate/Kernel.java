package hob;

import jdk.internal.misc.Unsafe;

/**
 * The kernel: system calls by name, and memory for what they are given. Owns: the numbers of each
 * architecture. Errors are negative results; who calls decides what they mean.
 */
final class Kernel {
    private Kernel() {}

    static final Unsafe MEMORY = Unsafe.getUnsafe();

    private static final boolean ARM = System.getProperty("os.arch").equals("aarch64");
    static final long READ = ARM ? 63 : 0;
    static final long WRITE = ARM ? 64 : 1;
    static final long CLOSE = ARM ? 57 : 3;
    static final long OPENAT = ARM ? 56 : 257;
    static final long UNLINKAT = ARM ? 35 : 263;
    static final long IOCTL = ARM ? 29 : 16;
    static final long FSTAT = ARM ? 80 : 5;
    static final long DUP3 = ARM ? 24 : 292;
    static final long FCNTL = ARM ? 25 : 72;
    static final long FCHDIR = ARM ? 50 : 81;
    static final long GETCWD = ARM ? 17 : 79;
    static final long UMASK = ARM ? 166 : 95;
    static final long RECVMSG = ARM ? 212 : 47;
    static final long EXECVE = ARM ? 221 : 59;
    static final long EXIT_GROUP = ARM ? 94 : 231;
    static final long PRCTL = ARM ? 167 : 157;
    static final long SIGACTION = ARM ? 134 : 13;
    static final long SIGMASK = ARM ? 135 : 14;
    static final long SETPGID = ARM ? 154 : 109;
    static final long GETPRIORITY = ARM ? 141 : 140;
    static final long SETPRIORITY = ARM ? 140 : 141;
    static final long IOPRIO_GET = ARM ? 31 : 252;
    static final long IOPRIO_SET = ARM ? 30 : 251;
    static final long GETSCHEDULER = ARM ? 120 : 145;
    static final long SETSCHEDULER = ARM ? 119 : 144;
    static final long GETPARAM = ARM ? 121 : 143;
    static final long GETAFFINITY = ARM ? 123 : 204;
    static final long SETAFFINITY = ARM ? 122 : 203;
    static final long PRLIMIT = ARM ? 261 : 302;
    static final long CLOSE_RANGE = 436;

    static final int AT_FDCWD = -100;
    static final int O_CLOEXEC = 0x80000;
    static final int O_PATH = 0x200000;
    static final int O_RDWR = 2;
    static final int F_GETFD = 1;
    static final int F_DUPFD_CLOEXEC = 1030;
    static final int PR_SET_PDEATHSIG = 1;
    static final int PR_GET_TIMERSLACK = 30;
    static final int PR_SET_TIMERSLACK = 29;
    static final int TCGETS = 0x5401;
    static final int MSG_CMSG_CLOEXEC = 0x40000000;
    static final int SCM_RIGHTS_BYTES = 16;
    static final int EINTR = -4;

    static long call(long number, long a, long b, long c) {
        return Gate.syscall(number, a, b, c, 0, 0, 0);
    }

    static long call(long number, long a, long b, long c, long d, long e) {
        return Gate.syscall(number, a, b, c, d, e, 0);
    }

    /** To the JDK no class without a module has loaded native code: the gate is none of the program's. */
    static void forgetNatives() throws ReflectiveOperationException {
        var all = Gate.all().findStaticGetter(Module.class, "ALL_UNNAMED_MODULE", Module.class);
        try {
            MEMORY.putBoolean((Module) all.invokeExact(), MEMORY.objectFieldOffset(Module.class, "enableNativeAccess"), false);
        } catch (Throwable error) {
            throw new ReflectiveOperationException(error);
        }
    }

    static void close(int fd) {
        call(CLOSE, fd, 0, 0);
    }

    /** Whether this number is open. */
    static boolean isOpen(int fd) {
        return call(FCNTL, fd, F_GETFD, 0) >= 0;
    }

    /** Moves a descriptor to the lowest free number from {@code from} on, closed on exec. */
    static int move(int fd, int from) {
        long moved = call(FCNTL, fd, F_DUPFD_CLOEXEC, from);
        if (moved < 0) {
            throw new Refused("fcntl", moved);
        }
        close(fd);
        return (int) moved;
    }

    /** The bytes and a zero behind them, in memory that is not given back. */
    static long text(byte[] bytes) {
        long at = MEMORY.allocateMemory(bytes.length + 1);
        put(at, bytes);
        MEMORY.putByte(at + bytes.length, (byte) 0);
        return at;
    }

    static void put(long at, byte[] bytes) {
        for (int index = 0; index < bytes.length; index++) {
            MEMORY.putByte(at + index, bytes[index]);
        }
    }

    static byte[] get(long at, int length) {
        byte[] bytes = new byte[length];
        for (int index = 0; index < length; index++) {
            bytes[index] = MEMORY.getByte(at + index);
        }
        return bytes;
    }

    /** Writes all of it; what cannot be written is left. */
    static void write(int fd, long at, int length) {
        for (int done = 0; done < length; ) {
            long wrote = call(WRITE, fd, at + done, length - done);
            if (wrote < 0 && wrote != EINTR) {
                return;
            }
            done += (int) Math.max(wrote, 0);
        }
    }

    /** A small file of {@code /proc}, as far as it fits; empty: it cannot be read. */
    static byte[] file(String name) {
        long path = text(name.getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        long room = MEMORY.allocateMemory(1 << 16);
        long fd = call(OPENAT, AT_FDCWD, path, O_CLOEXEC, 0, 0);
        int length = 0;
        if (fd >= 0) {
            for (long got = 1; got > 0 && length < 1 << 16; length += (int) Math.max(got, 0)) {
                got = call(READ, fd, room + length, (1 << 16) - length);
            }
            close((int) fd);
        }
        byte[] bytes = get(room, length);
        MEMORY.freeMemory(room);
        MEMORY.freeMemory(path);
        return bytes;
    }

    /** What the kernel would not do. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;

        Refused(String what, long error) {
            super(what + ": error " + -error);
        }
    }
}
