package hob;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * The way in, and the native code that a JVM lacks. A daemon starts {@code java OPTIONS
 * -Xbootclasspath/a:gate.jar hob.Gate GATE.SO [SAYS WORD...]}, so that this class is of the boot loader: its
 * frames can be hidden, and what the JDK does not export can be opened to it alone, which no program
 * notices.
 */
public final class Gate {
    private Gate() {}

    /** A raw system call: what the kernel returns, a negative number of an error among it. */
    static native long syscall(long number, long a, long b, long c, long d, long e, long f);

    /** The JDK's own lookup, which may do everything. */
    private static native MethodHandles.Lookup lookup();

    /** Puts another array in the place of the C library's {@code environ}. */
    static native void environ(long array);

    /** From now on {@link #halting} is called before the VM halts. */
    static native boolean hook();

    /** The JDK from which on it warns of what loads native code. */
    private static final int WARNS = 24;

    private static MethodHandles.Lookup lookup;

    /** The library that {@link #main} was told. */
    private static String library;

    /** What may do everything; only after {@link #open}. */
    static MethodHandles.Lookup all() {
        return lookup;
    }

    /** The library with the native code. */
    static String library() {
        return library;
    }

    @jdk.internal.vm.annotation.Hidden
    public static void main(String[] words) throws Throwable {
        try {
            open(words[0]);
        } catch (UnsatisfiedLinkError error) {
            unloaded(error);
            return;
        }
        Standby.serve(words.length - 1);
        Standby.run();
    }

    /** Tells the daemon, on the channel where it still is, why there can be no standby. */
    private static void unloaded(UnsatisfiedLinkError error) throws java.io.IOException {
        byte[] text = ("its native part cannot be loaded, as on a file system that is mounted noexec: "
                        + error.getMessage())
                .getBytes(java.nio.charset.StandardCharsets.UTF_8);
        java.nio.ByteBuffer frame = java.nio.ByteBuffer.allocate(Frames.HEADER_BYTES + Integer.BYTES + text.length);
        frame.order(java.nio.ByteOrder.LITTLE_ENDIAN).putInt(Frames.MAGIC).putInt(Frames.FAILED);
        frame.putInt(Integer.BYTES + text.length).putInt(text.length).put(text);
        try (var channel = new java.io.FileOutputStream(java.io.FileDescriptor.in)) {
            channel.write(frame.array());
        }
    }

    /**
     * Loads the native code, and opens what the gate uses of {@code java.base} to the module that this
     * class is in. Before it no class that links to any of that may be touched.
     */
    static void open(String path) throws Throwable {
        library = path;
        boolean natives = areNativesEnabled();
        System.load(path);
        lookup = lookup();
        MethodType type = MethodType.methodType(void.class, String.class, Module.class);
        MethodHandle export = lookup.findVirtual(Module.class, "implAddExports", type);
        Module base = Object.class.getModule();
        for (String name : new String[] {"jdk.internal.misc", "jdk.internal.access", "sun.launcher"}) {
            export.invokeExact(base, name, Gate.class.getModule());
        }
        if (!natives) {
            Kernel.forgetNatives();
        }
    }

    /**
     * Whether classes without a module may load native code without a word: else a JDK warns of the
     * first that does.
     */
    private static boolean areNativesEnabled() throws ReflectiveOperationException {
        return Runtime.version().feature() < WARNS
                || (boolean) Module.class.getMethod("isNativeAccessEnabled").invoke(Gate.class.getModule());
    }

    /** Called by the native code, by whichever way the VM halts. */
    static void halting(int code) {
        End.halting(code);
    }
}
