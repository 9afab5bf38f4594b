package hob;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import sun.launcher.LauncherHelper;

/**
 * A standby: a JVM that has loaded a program's main class, and waits for the one call that it is
 * given. Nothing of the program is initialised before that.
 */
final class Standby {
    private Standby() {}

    private static final MethodType MAIN = MethodType.methodType(void.class, String[].class);
    private static final int LAUNCH_CLASS = 1;
    private static final int LAUNCH_JAR = 2;
    private static final int LAUNCH_MODULE = 3;
    private static final int KILL = 9;
    /** How often the gate does what it does in a call, so that it is compiled by then. */
    private static final int PRACTICE = 300;

    private static MethodHandle main;
    private static String[] arguments;

    /** Where the daemon is told why there is no standby; -1: not any more. */
    private static volatile int failing = -1;

    /**
     * Gets ready, waits, and takes the call on: {@link #run} is all that is left.
     *
     * @param more how many of this process's last words are not the gate's: how many of a call's words
     *     its caller's own say that follow, which name argument files
     */
    @SuppressWarnings("restricted")
    static void serve(int more) throws Throwable {
        Channel channel = new Channel(Kernel.move(0, World.HIGH));
        nothingAsInput();
        Kernel.call(Kernel.PRCTL, Kernel.PR_SET_PDEATHSIG, KILL, 0);
        Frames.In preload = channel.next();
        if (preload == null) {
            Kernel.call(Kernel.EXIT_GROUP, 0, 0, 0);
            return;
        }
        int role = preload.u8();
        int kind = preload.u8();
        byte[] target = preload.blob();
        byte[][] prefix = preload.strings().toArray(new byte[0][]);
        preload.strings();
        String[] words = words(preload.strings().toArray(new byte[0][]));
        byte[] file = Files.readSymbolicLink(Path.of("/proc/self/exe")).toString().getBytes(charset());
        failing = channel.fd;
        if (role != Frames.STANDBY || !End.prepare()) {
            fail("this JVM cannot wait for calls: " + System.getProperty("java.vm.version"));
        }
        Directory directory = new Directory();
        World world = new World(directory, prefix);
        byte[][] written = prefix;
        int says = 0;
        if (more > 0) {
            byte[][] own = world.lastWords(more);
            written = Arrays.copyOfRange(own, 1, more);
            says = Integer.parseInt(new String(own[0], StandardCharsets.US_ASCII));
        }
        practise();
        Class<?> program = load(kind, target, prefix);
        if (program.getName().equals(Clojure.MAIN)) {
            Clojure.prepare(program, List.of(words).subList(Math.min(1, words.length), words.length));
        }
        main = mainOf(program);
        failing = -1;
        world.descriptors.look();
        Notes notes = new Notes(directory, prefix);
        Frames.ready((int) ProcessHandle.current().pid(), notes.threads(), notes.all()).send(channel.fd);
        if (!isTaken(world, channel)) {
            world.execute(file, written, says, channel.fd);
        }
        world.writeTitle(written, says);
        arguments = words(world.arguments);
        System.setProperty("sun.java.command", command(world.name, arguments));
        End.begin(world, channel.fd);
    }

    /** Waits for the call. {@code false}: the cold command has to be executed. */
    private static boolean isTaken(World world, Channel channel) throws ClassNotFoundException {
        try {
            Frames.In give = channel.next();
            if (give != null && channel.kind != Frames.GIVE) {
                throw new IllegalStateException("a frame that is not expected");
            }
            if (give != null) {
                return world.take(give, channel);
            }
            Kernel.call(Kernel.EXIT_GROUP, 0, 0, 0);
        } catch (IllegalStateException error) {
            // Nothing of the program has begun.
            failing = channel.fd;
            fail("what it was told is no call: " + error.getMessage());
        }
        return false;
    }

    /** The program itself. The launcher does with what it throws what it does without the gate. */
    @jdk.internal.vm.annotation.Hidden
    static void run() throws Throwable {
        try {
            main.invokeExact(arguments);
        } catch (Throwable error) {
            End.thrown();
            throw error;
        }
    }

    private static void nothingAsInput() {
        long path = Kernel.text("/dev/null".getBytes(StandardCharsets.US_ASCII));
        long fd = Kernel.call(Kernel.OPENAT, Kernel.AT_FDCWD, path, Kernel.O_RDWR, 0, 0);
        if (fd > 0) {
            Kernel.call(Kernel.DUP3, fd, 0, 0);
            Kernel.close((int) fd);
        }
    }

    private static Charset charset() {
        return Charset.forName(System.getProperty("sun.jnu.encoding"));
    }

    /** Arguments as the launcher makes them. */
    private static String[] words(byte[][] bytes) {
        Charset charset = charset();
        String[] words = new String[bytes.length];
        for (int index = 0; index < bytes.length; index++) {
            words[index] = new String(bytes[index], charset);
        }
        return words;
    }

    private static String command(byte[] name, String[] arguments) {
        StringBuilder text = new StringBuilder(new String(name, charset()));
        for (String word : arguments) {
            text.append(' ').append(word);
        }
        return text.toString();
    }

    /** The main class, found by the JDK's own launcher, which says itself what is wrong, and exits. */
    private static Class<?> load(int kind, byte[] target, byte[][] prefix) {
        String name = new String(target, charset());
        String last = new String(prefix[prefix.length - 1], StandardCharsets.ISO_8859_1);
        int mode = kind == Frames.JAR ? LAUNCH_JAR : LAUNCH_CLASS;
        if (kind == Frames.CLASS && (last.equals("-m") || last.equals("--module"))) {
            mode = LAUNCH_MODULE;
        }
        // It was started with an empty class path in the place of that variable's.
        String environment = "\0" + new String(Kernel.file("/proc/self/environ"), StandardCharsets.ISO_8859_1);
        if (mode == LAUNCH_MODULE && environment.contains("\0CLASSPATH=")) {
            fail("its main is a module, and there is a CLASSPATH beside it");
        }
        if (mode == LAUNCH_JAR && Notes.isAgent(name)) {
            fail("its jar starts an agent, or shows a picture, before its main");
        }
        if (mode == LAUNCH_MODULE && !hasClassPath(prefix)) {
            leaveClassPath();
        }
        return LauncherHelper.checkAndLoadMain(true, mode, name);
    }

    private static boolean hasClassPath(byte[][] prefix) {
        for (byte[] word : prefix) {
            String option = new String(word, StandardCharsets.ISO_8859_1);
            if (option.equals("-cp") || option.equals("-classpath") || option.startsWith("--class-path")) {
                return true;
            }
        }
        String variables = "\0" + new String(Kernel.file("/proc/self/environ"), StandardCharsets.ISO_8859_1);
        return variables.contains("\0CLASSPATH=");
    }

    /** A module has none unless it is named; the gate, which is a class for the launcher, got ".". */
    private static void leaveClassPath() {
        System.setProperty("java.class.path", "");
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        Class<?> type = loader.getClass();
        while (!type.getSimpleName().equals("BuiltinClassLoader")) {
            type = type.getSuperclass();
        }
        Kernel.MEMORY.putReference(loader, Kernel.MEMORY.objectFieldOffset(type, "ucp"), null);
    }

    /** The main of a class as the launcher calls it, from its arguments. */
    private static MethodHandle mainOf(Class<?> program) throws Throwable {
        MethodHandles.Lookup all = Gate.all();
        if (Runtime.version().feature() < 22) {
            return all.findStatic(program, "main", MAIN);
        }
        Class<?> finder = Class.forName("jdk.internal.misc.MethodFinder");
        MethodType type = MethodType.methodType(Method.class, Class.class);
        Method method = (Method) all.findStatic(finder, "findMainMethod", type).invoke(program);
        MethodHandle handle = all.unreflect(method);
        boolean isStatic = Modifier.isStatic(method.getModifiers());
        if (method.getParameterCount() == 0) {
            handle = MethodHandles.dropArguments(handle, isStatic ? 0 : 1, String[].class);
        }
        if (!isStatic) {
            MethodHandle made = all.findConstructor(program, MethodType.methodType(void.class));
            handle = handle.asType(handle.type().changeParameterType(0, program));
            handle = MethodHandles.foldArguments(handle, made);
        }
        return handle.asType(MAIN);
    }

    /** Tells the daemon why this program is not kept ready, and ends. */
    static void fail(String why) {
        int channel = failing;
        failing = -1;
        Frames.failed(why).send(channel);
        Kernel.call(Kernel.EXIT_GROUP, 1, 0, 0);
    }

    /** The VM halts before it is ready: the launcher has said why. */
    static void halted() {
        if (failing >= 0) {
            fail("its main class cannot be loaded: hob's log has the launcher's own words");
        }
    }

    /** Does what a call does, with nothing of the program: the VM links and compiles it. */
    private static void practise() throws Throwable {
        main = Gate.all().findStatic(Class.forName("hob.Practice", false, null), "main", MAIN);
        arguments = new String[] {"", "a"};
        for (int turn = 0; turn < 2; turn++) {
            run();
        }
        Frames.Out out = new Frames.Out(Frames.GIVE, 1 << 12);
        byte[] entry = "NAME=a value of some length".getBytes(StandardCharsets.US_ASCII);
        int count = 40;
        out.u32(count).u32(count * (entry.length + 1));
        for (int index = 0; index < count; index++) {
            for (byte one : entry) {
                out.u8(one);
            }
            out.u8(0);
        }
        for (int turn = 0; turn < PRACTICE / 10; turn++) {
            Frames.In in = new Frames.In(out.start + Frames.HEADER_BYTES, out.length - Frames.HEADER_BYTES);
            byte[][] words = in.strings().toArray(new byte[0][]);
            command(entry, words(words));
        }
        Frames.ended(0, 0);
        Frames.finished(0, 0, 0, 0);
        End.practise();
    }
}
