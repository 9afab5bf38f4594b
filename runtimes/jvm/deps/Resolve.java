package hob.deps;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Says what Clojure's launcher would execute for words of its own in the working directory, where there is
 * no launcher: by the program that the launcher itself runs, tools.deps. Resolves nothing by itself.
 */
public final class Resolve {
    private Resolve() {}

    private static final int REFUSED = 1;

    /** {@code REPOSITORY CACHE NOTE BASIS OWN...}: the answer goes to NOTE, each word with a NUL behind it. */
    public static void main(String[] words) throws Exception {
        Path repository = Path.of(words[0]);
        Path cache = Path.of(words[1]);
        Path note = Path.of(words[2]);
        Path basis = Path.of(words[3]);
        Path place = note.getParent();
        List<String> ask = new ArrayList<>(List.of("-m", "clojure.tools.deps.script.make-classpath2"));
        for (String kind : new String[] {"cp", "jvm", "main", "manifest"}) {
            ask.addAll(List.of("--" + kind + "-file", place.resolve(kind).toString()));
        }
        ask.addAll(List.of("--basis-file", basis.toString()));
        Path user = userManifest();
        if (user != null && Files.isRegularFile(user)) {
            ask.addAll(List.of("--config-user", user.toString()));
        }
        ask.addAll(List.of("--config-project", "deps.edn"));
        List<String> options = new ArrayList<>();
        for (int at = 4; at < words.length; at++) {
            if (words[at].equals("-Sdeps")) {
                ask.addAll(List.of("--config-data", words[++at]));
            } else if (words[at].startsWith("-J")) {
                options.add(words[at].substring(2));
            } else if (words[at].startsWith("-M:")) {
                ask.add(words[at]);
            }
        }
        run(repository, cache, ask);
        List<String> line = new ArrayList<>();
        String more = System.getenv("JAVA_OPTS");
        line.addAll(more == null || more.isBlank() ? List.of() : List.of(more.trim().split("\\s+")));
        line.addAll(lines(place.resolve("jvm")));
        line.addAll(options);
        line.add("-Dclojure.basis=" + basis);
        line.addAll(List.of("-classpath", Files.readString(place.resolve("cp")).strip(), "clojure.main"));
        line.addAll(lines(place.resolve("main")));
        Files.writeString(note, String.join("\0", line) + "\0");
        // Threads of its transports may be left.
        System.exit(0);
    }

    /** Runs tools.deps: it says itself what is wrong with a manifest, and exits. */
    private static void run(Path repository, Path cache, List<String> ask) throws Exception {
        List<URL> jars = new ArrayList<>();
        try {
            for (Path jar : Libraries.all(repository, cache)) {
                jars.add(jar.toUri().toURL());
            }
        } catch (IOException error) {
            System.err.println("hob: tools.deps says what deps.edn means, and cannot be had: " + error.getMessage());
            System.exit(REFUSED);
        }
        ClassLoader loader = new URLClassLoader(jars.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
        Thread.currentThread().setContextClassLoader(loader);
        Class<?> main = Class.forName("clojure.main", true, loader);
        main.getMethod("main", String[].class).invoke(null, (Object) ask.toArray(new String[0]));
    }

    private static Path userManifest() {
        String[][] places = {{"CLJ_CONFIG", ""}, {"XDG_CONFIG_HOME", "clojure"}, {"HOME", ".clojure"}};
        for (String[] place : places) {
            String value = System.getenv(place[0]);
            if (value != null && !value.isEmpty()) {
                return Path.of(value, place[1], "deps.edn");
            }
        }
        return null;
    }

    private static List<String> lines(Path file) throws IOException {
        if (!Files.exists(file)) {
            return List.of();
        }
        return Arrays.asList(Files.readString(file, StandardCharsets.UTF_8).split("\n"));
    }

    /** What went wrong, in words. */
    static String cause(Throwable error) {
        String said = error.getMessage();
        return said == null ? error.getClass().getSimpleName() : error.getClass().getSimpleName() + ": " + said;
    }
}
