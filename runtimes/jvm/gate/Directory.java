package hob;

import static hob.Kernel.MEMORY;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.charset.Charset;
import java.nio.file.FileSystems;
import java.nio.file.Path;

/**
 * The working directory, which a JVM asks for once, when it starts, and keeps in several places. They
 * have other names in other JDKs: so what {@link #prove} does not find right is not relied on.
 */
final class Directory {
    private static final int PATH_MAX = 4096;
    /** How this JDK calls the file system of {@link File}. */
    private static final String[] NAMES = {"FS", "fs"};

    private final long room = MEMORY.allocateMemory(PATH_MAX);
    private final Charset charset = Charset.forName(System.getProperty("sun.jnu.encoding"));
    private final Object statics;
    private final long staticsAt;
    private final Object files;
    private final long filesAt;
    private final Object paths = FileSystems.getDefault();
    private final long pathsAt;
    private final boolean proved;

    /** The directory as the JVM knows it. */
    private String known = System.getProperty("user.dir");

    /** Finds the places, and tries them. */
    Directory() throws ReflectiveOperationException {
        Field kept = Class.forName("jdk.internal.util.StaticProperty").getDeclaredField("USER_DIR");
        statics = MEMORY.staticFieldBase(kept);
        staticsAt = MEMORY.staticFieldOffset(kept);
        Field system = fileSystem();
        files = MEMORY.getReference(MEMORY.staticFieldBase(system), MEMORY.staticFieldOffset(system));
        filesAt = offset(files, "userDir");
        pathsAt = offset(paths, "defaultDirectory");
        proved = prove();
    }

    /** Where a field of an object lies; some class above its own declares it. */
    private static long offset(Object of, String name) throws NoSuchFieldException {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    return MEMORY.objectFieldOffset(type, name);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    private static Field fileSystem() throws NoSuchFieldException {
        for (Field field : File.class.getDeclaredFields()) {
            for (String name : NAMES) {
                if (field.getName().equals(name)) {
                    return field;
                }
            }
        }
        throw new NoSuchFieldException("the file system of java.io.File");
    }

    /** Whether another directory is taken on in every place that a program asks. */
    boolean isProved() {
        return proved;
    }

    /** Takes on the directory that this process is in. {@code false}: as the JVM cannot. */
    boolean take() {
        String now = current();
        if (now == null || !now.equals(known) && !proved) {
            return false;
        }
        if (!now.equals(known)) {
            put(now);
        }
        return true;
    }

    /** The kernel's name of the directory; {@code null}: it has none, or none that is text. */
    private String current() {
        int length = (int) Kernel.call(Kernel.GETCWD, room, PATH_MAX, 0) - 1;
        if (length <= 0 || MEMORY.getByte(room) != '/') {
            return null;
        }
        byte[] bytes = Kernel.get(room, length);
        String text = new String(bytes, charset);
        return java.util.Arrays.equals(text.getBytes(charset), bytes) ? text : null;
    }

    private void put(String now) {
        known = now;
        System.setProperty("user.dir", now);
        MEMORY.putReference(statics, staticsAt, now);
        MEMORY.putReference(files, filesAt, now);
        MEMORY.putReference(paths, pathsAt, now.getBytes(charset));
    }

    private boolean prove() {
        String home = known;
        boolean is = "/".equals(home) ? is("/proc") && is("/") : is("/") && is(home);
        if (!home.equals(known)) {
            put(home);
        }
        return is;
    }

    private boolean is(String place) {
        long path = Kernel.text(place.getBytes(charset));
        long fd = Kernel.call(Kernel.OPENAT, Kernel.AT_FDCWD, path, Kernel.O_CLOEXEC | Kernel.O_PATH, 0, 0);
        Kernel.call(Kernel.FCHDIR, fd, 0, 0);
        Kernel.close((int) fd);
        MEMORY.freeMemory(path);
        String name = current();
        if (!place.equals(name)) {
            return false;
        }
        put(place);
        String wanted = (place.equals("/") ? "" : place) + "/x";
        try {
            return new File("x").getAbsolutePath().equals(wanted)
                    && Path.of("x").toAbsolutePath().toString().equals(wanted)
                    && new File("").getCanonicalPath().equals(place)
                    && System.getProperty("user.dir").equals(place)
                    && MEMORY.getReference(statics, staticsAt).equals(place);
        } catch (IOException error) {
            return false;
        }
    }
}
