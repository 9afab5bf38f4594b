package hob;

import static hob.Kernel.MEMORY;

import java.util.Arrays;

/**
 * The caller's world: how a standby takes on what came with {@code give}: descriptors, directory,
 * umask, limits, environment.
 *
 * <p>Invariant: what cannot be taken on exactly is not approximated; the cold command is executed in
 * this process's place, before the program has begun.
 */
final class World {
    // wire:begin jvm-world (`cargo xtask wire` writes these lines)
        static final int LIMITS = 16;
        static final int AT_UMASK = 12;
        static final int AT_LIMITS = 32;
        static final int AT_PRIORITY = 288;
        static final int AT_ARGV = 312;
        static final int OF_SIGNALS = 1;
        static final int OF_LIMITS = 2;
        static final int OF_PRIORITY = 3;
        static final int OF_PROCESSORS = 4;
        static final int OF_ENCODINGS = 5;
        static final int OF_DIRECTORY = 6;
        static final int OF_ENVIRONMENT = 7;
        static final int OF_DESCRIPTORS = 8;
    // wire:end
    private static final int STDIO = 3;
    private static final int DIRECTORY = 3;
    private static final int REPLY = 4;
    /** Where the channel and the reply descriptor go: far above what a program opens. */
    static final int HIGH = 500;
    private static final int NOFILE = 7;
    /** Limits that a JVM has looked at when it started: of the data, the stack, memory, addresses. */
    private static final int[] AT_START = {2, 3, 5, 9};
    private static final int TERMIOS_BYTES = 256;
    private static final int SIGNALS = 64;
    private static final int SIGACTION_BYTES = 32;
    private static final int SIG_IGN = 1;
    /** Hang-up, interrupt, quit, termination. */
    private static final long ENDING = 1 | 1 << 1 | 1 << 2 | 1 << 14;
    private static final int VERSION = Runtime.version().feature();

    private final Directory directory;
    private final byte[] priority;
    private final long[] limits;
    private final byte[] processors;
    private final boolean hasUsualEncodings;
    private final long title;
    private final long titleEnd;

    long call;
    int reply = -1;
    /** The call's arguments, behind the name of the program. */
    byte[][] arguments;
    /** The name of the program as its caller gives it. */
    byte[] name;

    private long[] environment;
    /** What could not be taken on; -1: nothing. */
    private int unfit = -1;
    /** What is open, and may be at its end. */
    final Descriptors descriptors = new Descriptors();

    /** Looks at what this process has by itself. */
    World(Directory directory, byte[][] prefix) throws ReflectiveOperationException {
        this.directory = directory;
        boolean usual = true;
        for (byte[] word : prefix) {
            String option = new String(word, java.nio.charset.StandardCharsets.ISO_8859_1);
            usual &= !option.startsWith("-D") || !option.contains("encoding");
        }
        hasUsualEncodings = usual;
        priority = ownPriority();
        limits = ownLimits();
        processors = ownProcessors();
        // Behind the name of the command, which may have spaces, from the third field on.
        String stat = new String(Kernel.file("/proc/self/stat"), java.nio.charset.StandardCharsets.ISO_8859_1);
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        title = Long.parseLong(fields[45]);
        titleEnd = Long.parseLong(fields[46]);
    }

    /** Whether Java has read the environment: not before something asks for it. */
    static boolean hasReadEnvironment() throws ClassNotFoundException {
        return !MEMORY.shouldBeInitialized(Class.forName("java.lang.ProcessEnvironment", false, null));
    }

    /** Takes on all of it. {@code false}: the cold command has to be executed. */
    boolean take(Frames.In give, Channel channel) throws ClassNotFoundException {
        int[] fds = channel.fds;
        if (fds.length <= REPLY) {
            throw new IllegalStateException("a call without its descriptors");
        }
        descriptors.free();
        call = give.u64();
        reply = Kernel.move(fds[REPLY], HIGH);
        for (int number = 0; number < STDIO; number++) {
            Kernel.call(Kernel.DUP3, fds[number], number, 0);
            Kernel.close(fds[number]);
        }
        Kernel.call(Kernel.FCHDIR, fds[DIRECTORY], 0, 0);
        Kernel.close(fds[DIRECTORY]);
        int group = give.u32();
        if (group != 0 && Kernel.call(Kernel.SETPGID, 0, group, 0) >= 0) {
            Frames.joined(call, System.nanoTime()).send(channel.fd);
        }
        Kernel.call(Kernel.UMASK, give.u32(), 0, 0);
        takeSignals(give.u64(), give.u64());
        int atLimits = give.at;
        give.at += 2 * Long.BYTES * LIMITS;
        takePriority(give.bytes(AT_ARGV - AT_PRIORITY));
        takeArguments(give.places());
        environment = give.places();
        takeProcessors(give.blob());
        // With a closed one of 0 to 2 no standby is given a call: the row says so.
        need(give.u8() == 0, OF_DESCRIPTORS);
        int[] numbers = give.numbers();
        if (numbers.length > 0) {
            int above = descriptors.take(fds, REPLY + 1, numbers);
            reply = descriptors.makeWay(reply, above);
            channel.fd = descriptors.makeWay(channel.fd, above);
            need(descriptors.place(), OF_DESCRIPTORS);
        }
        // Not before them: a limit may be below a number.
        give.at = atLimits;
        takeLimits(give);
        need(!hasReadEnvironment(), OF_ENVIRONMENT);
        takeTerminal();
        need(directory.take(), OF_DIRECTORY);
        takeEnvironment();
        if (unfit >= 0) {
            return false;
        }
        descriptors.settle();
        return true;
    }

    /** Without this the call cannot be performed here; the first that is missing is told. */
    private void need(boolean is, int why) {
        if (!is && unfit < 0) {
            unfit = why;
        }
    }

    /** Executes the cold command in this process's place, and says so on the channel first. */
    void execute(byte[] file, byte[][] written, int says, int channel) {
        Frames.executes(call, System.nanoTime(), unfit).send(channel);
        Kernel.call(Kernel.CLOSE_RANGE, STDIO, 0xffffffffL, 4);
        descriptors.force();
        for (int number = 1; number <= SIGNALS; number++) {
            if ((ignored >> (number - 1) & 1) != 0) {
                ignore(number);
            }
        }
        long set = MEMORY.allocateMemory(8);
        MEMORY.putLong(set, blocked);
        Kernel.call(Kernel.SIGMASK, 2, set, 0, 8, 0);
        byte[][] line = line(written, says);
        long words = MEMORY.allocateMemory(8L * (line.length + 1));
        int at = 0;
        for (byte[] word : line) {
            MEMORY.putLong(words + 8L * at++, Kernel.text(word));
        }
        MEMORY.putLong(words + 8L * at, 0);
        Kernel.call(Kernel.EXECVE, Kernel.text(file), words, array());
        Kernel.call(Kernel.EXIT_GROUP, 126, 0, 0);
    }

    /** The last words of this process's own command line. */
    byte[][] lastWords(int count) {
        byte[][] words = new byte[count][];
        long end = titleEnd;
        while (count > 0) {
            long at = end - 1;
            while (at > title && MEMORY.getByte(at - 1) != 0) {
                at--;
            }
            words[--count] = Frames.string(at);
            end = at;
        }
        return words;
    }

    /** The cold command line: what the caller wrote, and of this call's words those behind it. */
    private byte[][] line(byte[][] written, int says) {
        byte[][] line = Arrays.copyOf(written, written.length + arguments.length + 1 - says);
        for (int index = says; index <= arguments.length; index++) {
            line[written.length + index - says] = index == 0 ? name : arguments[index - 1];
        }
        return line;
    }

    /** Where the kernel reads the command line from: the cold one's, as far as there is room. */
    void writeTitle(byte[][] written, int says) {
        long at = title;
        for (byte[] word : line(written, says)) {
            for (int byteAt = 0; byteAt <= word.length && at < titleEnd; byteAt++) {
                MEMORY.putByte(at++, byteAt < word.length ? word[byteAt] : 0);
            }
        }
        while (at < titleEnd) {
            MEMORY.putByte(at++, (byte) 0);
        }
    }

    private void takeArguments(long[] places) {
        name = Frames.string(places[0]);
        arguments = new byte[places.length - 1][];
        for (int index = 1; index < places.length; index++) {
            arguments[index - 1] = Frames.string(places[index]);
        }
    }

    private long array() {
        long array = MEMORY.allocateMemory(8L * (environment.length + 1));
        for (int index = 0; index < environment.length; index++) {
            MEMORY.putLong(array + 8L * index, environment[index]);
        }
        MEMORY.putLong(array + 8L * environment.length, 0);
        return array;
    }

    /** The JVM reads its environment when a program first asks for it: so this is all that it takes. */
    private void takeEnvironment() {
        Gate.environ(array());
    }

    private long blocked;
    private long ignored;

    /**
     * A JVM looks when it starts whether those that end it are ignored, and has threads with a mask of
     * their own. Who is started by {@code posix_spawn} has the two of the C library ignored.
     */
    private void takeSignals(long ignored, long blocked) {
        this.blocked = blocked;
        this.ignored = ignored;
        need(blocked == 0, OF_SIGNALS);
        if (ignored == 0) {
            return;
        }
        long now = MEMORY.allocateMemory(SIGACTION_BYTES);
        for (int number = 1; number <= SIGNALS; number++) {
            if ((ignored >> (number - 1) & 1) == 0) {
                continue;
            }
            Kernel.call(Kernel.SIGACTION, number, 0, now, 8, 0);
            if (MEMORY.getLong(now) <= SIG_IGN) {
                ignore(number);
            } else {
                // A JVM handles the others whatever it has found.
                need((ENDING >> (number - 1) & 1) == 0, OF_SIGNALS);
            }
        }
        MEMORY.freeMemory(now);
    }

    private static void ignore(int number) {
        long ignore = MEMORY.allocateMemory(SIGACTION_BYTES);
        for (int at = 0; at < SIGACTION_BYTES; at += 8) {
            MEMORY.putLong(ignore + at, at == 0 ? SIG_IGN : 0);
        }
        Kernel.call(Kernel.SIGACTION, number, ignore, 0, 8, 0);
        MEMORY.freeMemory(ignore);
    }

    private static long[] ownLimits() {
        long pair = MEMORY.allocateMemory(16);
        long[] limits = new long[2 * LIMITS];
        for (int which = 0; which < LIMITS; which++) {
            Kernel.call(Kernel.PRLIMIT, 0, which, 0, pair, 0);
            limits[2 * which] = MEMORY.getLong(pair);
            limits[2 * which + 1] = MEMORY.getLong(pair + 8);
        }
        MEMORY.freeMemory(pair);
        return limits;
    }

    private void takeLimits(Frames.In give) {
        long pair = 0;
        long atStart = 0;
        for (int which = 0; which < LIMITS; which++) {
            long soft = give.u64();
            long hard = give.u64();
            // A JVM raises this one to the hard limit when it starts.
            long wanted = which == NOFILE ? hard : soft;
            if (wanted == limits[2 * which] && hard == limits[2 * which + 1]) {
                continue;
            }
            pair = pair != 0 ? pair : MEMORY.allocateMemory(16);
            MEMORY.putLong(pair, wanted);
            MEMORY.putLong(pair + 8, hard);
            need(Kernel.call(Kernel.PRLIMIT, 0, which, pair, 0, 0) >= 0, OF_LIMITS);
            for (int early : AT_START) {
                need(early != which, OF_LIMITS);
            }
        }
    }

    private static byte[] ownPriority() {
        long at = MEMORY.allocateMemory(24);
        MEMORY.putInt(at, 20 - (int) Kernel.call(Kernel.GETPRIORITY, 0, 0, 0));
        MEMORY.putInt(at + 4, (int) Kernel.call(Kernel.IOPRIO_GET, 1, 0, 0));
        int policy = (int) Kernel.call(Kernel.GETSCHEDULER, 0, 0, 0);
        MEMORY.putInt(at + 16, 0);
        Kernel.call(Kernel.GETPARAM, 0, at + 16, 0);
        MEMORY.putInt(at + 8, policy | MEMORY.getInt(at + 16) << 16);
        String adjust = new String(Kernel.file("/proc/self/oom_score_adj")).trim();
        MEMORY.putInt(at + 12, adjust.isEmpty() ? 0 : Integer.parseInt(adjust));
        MEMORY.putLong(at + 16, Kernel.call(Kernel.PRCTL, Kernel.PR_GET_TIMERSLACK, 0, 0));
        byte[] bytes = Kernel.get(at, 24);
        MEMORY.freeMemory(at);
        return bytes;
    }

    /** Each thread has its own, and a JVM has many: only what is executed has it in all of them. */
    private void takePriority(byte[] theirs) {
        if (Arrays.equals(theirs, priority)) {
            return;
        }
        need(false, OF_PRIORITY);
        long at = MEMORY.allocateMemory(32);
        Kernel.put(at, theirs);
        Kernel.call(Kernel.SETPRIORITY, 0, 0, MEMORY.getInt(at));
        Kernel.call(Kernel.IOPRIO_SET, 1, 0, MEMORY.getInt(at + 4));
        MEMORY.putInt(at + 24, MEMORY.getInt(at + 8) >>> 16);
        Kernel.call(Kernel.SETSCHEDULER, 0, MEMORY.getInt(at + 8) & 0xffff, at + 24);
        Kernel.call(Kernel.PRCTL, Kernel.PR_SET_TIMERSLACK, MEMORY.getLong(at + 16), 0);
        byte[] path = "/proc/self/oom_score_adj".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        long fd = Kernel.call(Kernel.OPENAT, Kernel.AT_FDCWD, Kernel.text(path), 1, 0, 0);
        byte[] text = Integer.toString(MEMORY.getInt(at + 12)).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        if (fd >= 0) {
            Kernel.write((int) fd, Kernel.text(text), text.length);
            Kernel.close((int) fd);
        }
    }

    private static byte[] ownProcessors() {
        long at = MEMORY.allocateMemory(1024);
        int length = (int) Kernel.call(Kernel.GETAFFINITY, 0, 1024, at);
        byte[] bytes = Kernel.get(at, Math.max(length, 0));
        MEMORY.freeMemory(at);
        return bytes;
    }

    /** A JVM has made threads for as many processors as it found. */
    private void takeProcessors(byte[] theirs) {
        if (theirs.length == 0) {
            return;
        }
        int length = Math.max(theirs.length, processors.length);
        long at = MEMORY.allocateMemory((length + 7) & ~7);
        Kernel.put(at, Arrays.copyOf(theirs, (length + 7) & ~7));
        // The thread that a process is known by may have been placed elsewhere to wake it.
        Kernel.call(Kernel.SETAFFINITY, ProcessHandle.current().pid(), (length + 7) & ~7, at);
        if (!Arrays.equals(Arrays.copyOf(theirs, length), Arrays.copyOf(processors, length))) {
            Kernel.call(Kernel.SETAFFINITY, 0, (length + 7) & ~7, at);
            need(false, OF_PROCESSORS);
        }
        MEMORY.freeMemory(at);
    }

    /**
     * What a JVM says of its streams when it starts: one of 17 names the encoding of those that are
     * terminals, and one from 19 on that of each, whatever it is. Where options name others, or 18 has
     * started, only a JVM of the call's own knows.
     */
    private void takeTerminal() {
        long at = MEMORY.allocateMemory(TERMIOS_BYTES);
        for (int number = 0; number < STDIO; number++) {
            if (Kernel.call(Kernel.IOCTL, number, Kernel.TCGETS, at) != 0) {
                continue;
            }
            need(hasUsualEncodings && VERSION != 18, OF_ENCODINGS);
            if (VERSION == 17 && number > 0) {
                String name = number == 1 ? "sun.stdout.encoding" : "sun.stderr.encoding";
                System.setProperty(name, System.getProperty("native.encoding"));
            }
        }
        MEMORY.freeMemory(at);
    }
}
