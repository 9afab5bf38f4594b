package hob;

import static hob.Kernel.MEMORY;

import java.nio.charset.Charset;
import java.util.Set;
import jdk.internal.access.SharedSecrets;

/**
 * The end of a call. The caller is told before the VM is torn down, and after the program's last
 * instruction: where the VM halts ({@code exit}, {@code halt}, a signal), or behind all shutdown hooks
 * where it ends because no thread of the program is left.
 */
final class End {
    private End() {}

    /** The last of the JDK's own shutdown hooks, which run one behind the other. */
    private static final int LAST_HOOK = 9;

    private static volatile World world;
    private static int channel;
    private static long main;
    /** What the launcher would return: 1 where the main has thrown. */
    private static volatile int code;
    /** What has been loaded of native code, by its file's name. */
    private static Set<?> libraries;
    private static String home;
    private static String statistics;

    /** Before there is a call: finds what its end needs. {@code false}: this JDK does not have it. */
    static boolean prepare() {
        try {
            var field = Class.forName("jdk.internal.loader.NativeLibraries").getDeclaredField("loadedLibraryNames");
            Object set = MEMORY.getReference(MEMORY.staticFieldBase(field), MEMORY.staticFieldOffset(field));
            libraries = (Set<?>) set;
            home = System.getProperty("java.home") + "/";
            statistics = "/tmp/hsperfdata_" + System.getProperty("user.name") + "/" + ProcessHandle.current().pid();
            SharedSecrets.getJavaLangAccess().registerShutdownHook(LAST_HOOK, false, End::behindHooks);
            return Gate.hook();
        } catch (ReflectiveOperationException | RuntimeException | InternalError error) {
            return false;
        }
    }

    /** Does what {@link #tell} does ahead of it, so that the VM has linked it. */
    static void practise() {
        hasLibraries();
        isExit();
    }

    /** A call begins. */
    static void begin(World taken, int fd) {
        channel = fd;
        main = System.nanoTime();
        world = taken;
    }

    /** The main has thrown: the launcher will return 1, unless something exits. */
    static void thrown() {
        code = 1;
    }

    /** The VM halts. */
    static void halting(int code) {
        Standby.halted();
        tell(code);
    }

    /** All shutdown hooks have run. Behind those of {@code exit} the VM halts, and that has the code. */
    private static void behindHooks() {
        if (Thread.currentThread().getName().equals("DestroyJavaVM") && !isExit()) {
            tell(code);
        }
    }

    private static boolean isExit() {
        for (StackTraceElement frame : new Throwable().getStackTrace()) {
            if (frame.getClassName().equals("java.lang.Shutdown") && frame.getMethodName().equals("exit")) {
                return true;
            }
        }
        return false;
    }

    /** Whether there is native code that is not the JDK's: it may do things at the process's end. */
    private static boolean hasLibraries() {
        for (Object name : libraries.toArray()) {
            String file = name.toString();
            if (file.startsWith("/") && !file.startsWith(home) && !file.equals(Gate.library())) {
                return true;
            }
        }
        return false;
    }

    /**
     * Lets go of all that the caller could find held, tells it, and leaves. With native code of the
     * program's own nothing is told, and the VM ends by itself; so it does with more descriptors than 0
     * to 2, of which a thread that waits in the kernel, or a file's mapped memory, may still hold one.
     */
    private static void tell(int code) {
        World ended = world;
        if (ended == null || ended.descriptors.hasMore() || hasLibraries()) {
            return;
        }
        long finished = System.nanoTime();
        Frames.Out toCaller = Frames.ended(ended.call, code & 0xff);
        Frames.Out toDaemon = Frames.finished(ended.call, code & 0xff, main, finished);
        Kernel.call(Kernel.UNLINKAT, Kernel.AT_FDCWD, Kernel.text(statistics.getBytes(Charset.defaultCharset())), 0);
        ended.descriptors.closeAllBut(ended.reply, channel);
        toCaller.send(ended.reply);
        toDaemon.send(channel);
        Kernel.call(Kernel.EXIT_GROUP, code & 0xff, 0, 0);
    }
}
