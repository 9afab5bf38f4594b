package hob;

import static hob.Kernel.MEMORY;

/**
 * A caller's descriptors beyond 0 to 2, each at its own number. A standby is started with {@code
 * /dev/null} at the low ones, so that what the JVM opens for itself lies above.
 */
final class Descriptors {
    private static final int FIRST = 3;
    private static final int STAT_BYTES = 144;
    /** Where a {@code struct stat} has the device that a file is. */
    private static final int AT_DEVICE = System.getProperty("os.arch").equals("aarch64") ? 32 : 40;
    /** The device number of {@code /dev/null}. */
    private static final long NULL = 1 << 8 | 3;

    /** The first number from 3 on that is not held. */
    private final int heldEnd;
    private int[] numbers = {};
    /** The descriptors for them, above all numbers and closed on exec; none any more once settled. */
    private int[] kept = {};

    /** Looks at what is held. */
    Descriptors() {
        long stat = MEMORY.allocateMemory(STAT_BYTES);
        int end = FIRST;
        while (Kernel.call(Kernel.FSTAT, end, stat, 0) >= 0 && MEMORY.getLong(stat + AT_DEVICE) == NULL) {
            end++;
        }
        MEMORY.freeMemory(stat);
        heldEnd = end;
    }

    /** What the JVM has open for itself before there is a call. */
    private int[] own = {};

    /** Looks at what the JVM has open for itself. */
    void look() {
        own = listed(heldEnd);
    }

    /** What is open from a number on; none where it cannot be listed. */
    private static int[] listed(int from) {
        String[] names = new java.io.File("/proc/self/fd").list();
        int[] found = new int[names == null ? 0 : names.length];
        int count = 0;
        for (int index = 0; index < found.length; index++) {
            int number = Integer.parseInt(names[index]);
            if (number >= from && Kernel.isOpen(number)) {
                found[count++] = number;
            }
        }
        return java.util.Arrays.copyOf(found, count);
    }

    /**
     * Closes all but these two and the JVM's own: a thread that loads a class of the JDK's with those
     * closed takes the JVM down, and no caller misses them.
     */
    void closeAllBut(int one, int other) {
        int[] kept = java.util.Arrays.copyOf(own, own.length + 2);
        kept[own.length] = one;
        kept[own.length + 1] = other;
        java.util.Arrays.sort(kept);
        int from = 0;
        boolean inRanges = true;
        for (int number : kept) {
            if (number > from) {
                inRanges &= closeRange(from, number - 1);
            }
            from = number + 1;
        }
        if (inRanges & closeRange(from, 0xffffffffL)) {
            return;
        }
        // Each number could be tried, but there may be very many: what is listed is closed.
        for (int number : listed(0)) {
            if (java.util.Arrays.binarySearch(kept, number) < 0) {
                Kernel.close(number);
            }
        }
    }

    /** {@code false}: the kernel closes none in one call (Linux before 5.9, or a filter). */
    private static boolean closeRange(int from, long last) {
        return Kernel.call(Kernel.CLOSE_RANGE, from, last, 0) >= 0;
    }

    /** Gives up what is held: a call has come. */
    void free() {
        if (heldEnd > FIRST && !closeRange(FIRST, heldEnd - 1)) {
            for (int number = FIRST; number < heldEnd; number++) {
                Kernel.close(number);
            }
        }
    }

    /** Takes the descriptors that have come, from this place of the list on; returns a number above all. */
    int take(int[] fds, int from, int[] numbers) {
        if (fds.length - from != numbers.length) {
            throw new IllegalStateException("a frame with other descriptors than it names");
        }
        int above = numbers[numbers.length - 1] + 1;
        int[] moved = new int[numbers.length];
        for (int index = 0; index < moved.length; index++) {
            moved[index] = Kernel.move(fds[from + index], above);
        }
        this.numbers = numbers;
        kept = moved;
        return above;
    }

    /** Where a descriptor of hob's own is from now on: elsewhere, if the caller has one of its number. */
    int makeWay(int fd, int above) {
        for (int number : numbers) {
            if (number == fd) {
                return Kernel.move(fd, above);
            }
        }
        return fd;
    }

    /** Puts each at its number. {@code false}: the JVM has one of its own there. */
    boolean place() {
        for (int number : numbers) {
            if (Kernel.isOpen(number)) {
                return false;
            }
        }
        force();
        return true;
    }

    /** Puts each at its number, whatever is there. */
    void force() {
        for (int index = 0; index < kept.length; index++) {
            Kernel.call(Kernel.DUP3, kept[index], numbers[index], 0);
        }
    }

    /** They stay where they are. */
    void settle() {
        for (int fd : kept) {
            Kernel.close(fd);
        }
        kept = new int[0];
    }

    /** Whether there are any. */
    boolean hasMore() {
        return numbers.length > 0;
    }
}
