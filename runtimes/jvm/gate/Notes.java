package hob;

import static hob.Kernel.MEMORY;

import java.io.File;
import java.io.IOException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;

/**
 * What a standby was made from, as notes of docs/worker.md: the JDK's files that it has mapped, the
 * jars of its class path and of its module path, and where in their directories the classes lie, or
 * would lie, that it has loaded.
 */
final class Notes {
    private static final int CLOCK_GETTIME = System.getProperty("os.arch").equals("aarch64") ? 113 : 228;
    private static final int PROCESS_TIME = 2;
    private static final String[] CLASS_PATHS = {"-cp", "-classpath", "--class-path"};
    private static final String[] MODULE_PATHS = {"-p", "--module-path"};

    private final Set<String> notes = new LinkedHashSet<>();
    private final Charset charset = Charset.forName(System.getProperty("sun.jnu.encoding"));
    private final List<String> folders = new ArrayList<>();
    private final Set<String> jars = new LinkedHashSet<>();

    Notes(Directory directory, byte[][] prefix) throws ReflectiveOperationException {
        mapped();
        listed(prefix);
        String path = System.getProperty("java.class.path");
        boolean isModule = System.getProperty("jdk.module.main") != null;
        if (!path.isEmpty() || !isModule) {
            for (String entry : path.split(":", -1)) {
                place(entry.isEmpty() ? "." : entry);
            }
        }
        loaded();
        if (!directory.isProved()) {
            notes.add("W");
        }
        notes.add("T" + processTime());
    }

    List<byte[]> all() {
        List<byte[]> all = new ArrayList<>();
        for (String note : notes) {
            all.add(note.getBytes(charset));
        }
        return all;
    }

    int threads() {
        for (String line : lines("/proc/self/status")) {
            if (line.startsWith("Threads:")) {
                return Integer.parseInt(line.substring(8).trim());
            }
        }
        return 0;
    }

    private String[] lines(String name) {
        return new String(Kernel.file(name), charset).split("\n");
    }

    private static long processTime() {
        long at = MEMORY.allocateMemory(16);
        Kernel.call(CLOCK_GETTIME, PROCESS_TIME, at, 0);
        long us = MEMORY.getLong(at) * 1_000_000 + MEMORY.getLong(at + 8) / 1_000;
        MEMORY.freeMemory(at);
        return us;
    }

    /** The VM, its archive and its classes, and every library. */
    private void mapped() {
        String own = new File(Gate.library()).getParent();
        for (String line : lines("/proc/self/maps")) {
            int at = line.indexOf('/');
            String file = at < 0 ? "" : line.substring(at);
            boolean counts = !file.contains("/hsperfdata_") && !file.startsWith(own + "/");
            if (!file.isEmpty() && counts && !file.endsWith(" (deleted)")) {
                notes.add("F" + file);
            }
        }
        String home = System.getProperty("java.home");
        notes.add("C" + home + "/lib/jvm.cfg");
        notes.add("C" + home + "/release");
    }

    /** Directories of which every entry counts: those behind a star, and those of modules. */
    private void listed(byte[][] prefix) {
        List<String> classes = new ArrayList<>();
        for (int index = 0; index < prefix.length; index++) {
            String word = new String(prefix[index], charset);
            String next = index + 1 < prefix.length ? new String(prefix[index + 1], charset) : "";
            for (String option : CLASS_PATHS) {
                if (word.equals(option)) {
                    classes.add(next);
                } else if (word.startsWith(option + "=")) {
                    classes.add(word.substring(option.length() + 1));
                }
            }
            for (String option : MODULE_PATHS) {
                if (word.equals(option)) {
                    modules(next);
                } else if (word.startsWith(option + "=")) {
                    modules(word.substring(option.length() + 1));
                }
            }
        }
        for (String entry : new String(Kernel.file("/proc/self/environ"), charset).split("\0")) {
            if (entry.startsWith("CLASSPATH=")) {
                classes.add(entry.substring(10));
            }
        }
        for (String path : classes) {
            for (String entry : path.split(":")) {
                if (entry.equals("*") || entry.endsWith("/*")) {
                    notes.add("L" + new File(entry).getAbsoluteFile().getParent());
                }
            }
        }
    }

    private void modules(String path) {
        for (String entry : path.split(":")) {
            File file = new File(entry).getAbsoluteFile();
            if (!file.isDirectory()) {
                notes.add("C" + file);
                continue;
            }
            notes.add("L" + file);
            folders.add(file.toString());
            notes.add("C" + file + "/module-info.class");
            for (String name : file.list()) {
                File inside = new File(file, name);
                if (inside.isFile()) {
                    notes.add("C" + inside);
                } else {
                    notes.add("L" + inside);
                    notes.add("C" + inside + "/module-info.class");
                    folders.add(inside.toString());
                }
            }
        }
    }

    /** A place of the class path, and those that a jar's manifest adds to it. */
    private void place(String entry) {
        File file = new File(entry).getAbsoluteFile();
        if (file.isDirectory()) {
            folders.add(file.toString());
            return;
        }
        notes.add("C" + file);
        if (!file.isFile() || !jars.add(file.toString())) {
            return;
        }
        String more = attribute(file.toString(), Attributes.Name.CLASS_PATH);
        for (String url : more == null ? new String[0] : more.trim().split("\\s+")) {
            // What is no file beside it the loader would look for elsewhere.
            if (!url.isEmpty() && !url.contains(":")) {
                place(url.startsWith("/") ? url : file.getParent() + "/" + url);
            } else if (url.startsWith("file:")) {
                place(url.substring(5));
            }
        }
    }

    /** Where the classes that are loaded lie, or would be found first. */
    private void loaded() throws ReflectiveOperationException {
        Object loader = ClassLoader.getSystemClassLoader();
        long at = MEMORY.objectFieldOffset(ClassLoader.class, "classes");
        for (Object type : ((List<?>) MEMORY.getReference(loader, at)).toArray()) {
            String file = ((Class<?>) type).getName().replace('.', '/') + ".class";
            for (String folder : folders) {
                notes.add("C" + folder + "/" + file);
            }
        }
        for (String file : Clojure.files()) {
            for (String folder : folders) {
                notes.add("C" + folder + "/" + file);
            }
        }
    }

    private static String attribute(String jar, Attributes.Name name) {
        try (JarFile file = new JarFile(jar)) {
            Manifest manifest = file.getManifest();
            return manifest == null ? null : manifest.getMainAttributes().getValue(name);
        } catch (IOException error) {
            return null;
        }
    }

    /** Whether a jar does something before its main that a standby would do ahead. */
    static boolean isAgent(String jar) {
        return attribute(jar, new Attributes.Name("Launcher-Agent-Class")) != null
                || attribute(jar, new Attributes.Name("SplashScreen-Image")) != null;
    }
}
