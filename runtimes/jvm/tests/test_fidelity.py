"""What a program of a JVM can see of its process is the same warm as cold."""

import os
import resource
import signal
import unittest

from harness import DESCRIPTORS, LIMITS, PRIORITY, SIGNALS, Case

SHELL = """
    import java.util.*;
    public class Main {
        public static void main(String[] words) throws Exception {
            System.exit(new ProcessBuilder("sh", "-c", words[0]).inheritIO().start().waitFor());
        }
    }
"""
TELLS = """
    import java.nio.file.*;
    public class Main {
        public static void main(String[] words) throws Exception {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.matches("(Umask|SigIgn|Cpus_allowed|Seccomp):.*")) System.out.println(line);
            }
            System.out.print(Files.readString(Path.of("/proc/self/limits")));
            System.out.print(Files.readString(Path.of("/proc/self/oom_score_adj")));
            System.out.println(Runtime.getRuntime().availableProcessors());
        }
    }
"""


class World(Case):
    def test_umask(self):
        for umask in (0o000, 0o022, 0o077):
            command = "umask; touch made; stat -c %a made; rm made"
            self.same(SHELL, command, world={"umask": umask}, expect=b"%04o" % umask)

    def test_descriptors_where_the_jvm_has_its_own(self):
        text = """
            import java.io.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    for (String word : words) {
                        try (var lines = new BufferedReader(new FileReader("/dev/fd/" + word))) {
                            System.out.println(word + " " + lines.readLine());
                        }
                    }
                }
            }
        """
        # This driver holds none of the low numbers, so that the JVM has some of them itself.
        for numbers, unfit in ((range(3, 20), DESCRIPTORS), ((40, 41, 300), None)):
            beyond, expect = {}, b"of %d\n" % numbers[-1]
            for number in numbers:
                path = os.path.join(self.place, str(number))
                with open(path, "w") as file:
                    file.write("of %d\n" % number)
                beyond[number] = os.open(path, os.O_RDONLY)
                self.addCleanup(os.close, beyond[number])
            self.same(text, *map(str, numbers), beyond=beyond, expect=expect, unfit=unfit)

    def test_a_thread_that_loads_classes_at_the_end(self):
        text = """
            import java.net.URI;
            import java.nio.file.*;
            import java.util.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    List<String> names = new ArrayList<>();
                    FileSystem all = FileSystems.getFileSystem(URI.create("jrt:/"));
                    Path base = all.getPath("/modules/java.base/java/util");
                    try (var found = Files.walk(base)) {
                        found.map(Path::toString).filter(name -> name.endsWith(".class"))
                            .forEach(name ->
                            names.add(name.substring(19, name.length() - 6).replace('/', '.')));
                    }
                    var begun = new java.util.concurrent.CountDownLatch(1);
                    Thread loader = new Thread(() -> {
                        for (String name : names) {
                            try { Class.forName(name, false, null); } catch (Throwable e) { }
                            begun.countDown();
                        }
                    });
                    loader.setDaemon(true);
                    loader.start();
                    begun.await();
                    System.out.println("ends");
                }
            }
        """
        self.same(text, expect=b"ends", calls=8)

    def test_limits(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limits = {resource.RLIMIT_NOFILE: (300, hard), resource.RLIMIT_CORE: (0, 0)}
        self.same(TELLS, world={"limits": limits}, expect=b"Max open files")
        limits = {resource.RLIMIT_STACK: (1 << 20, 1 << 22)}
        self.same(TELLS, world={"limits": limits}, expect=b"1048576", unfit=LIMITS)

    def test_signals_that_are_ignored(self):
        others = signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGCHLD, 40
        for number in (signal.SIGHUP, signal.SIGINT, *others):
            unfit = None if number in others else SIGNALS
            self.same(TELLS, world={"ignored": 1 << (number - 1)}, expect=b"SigIgn", unfit=unfit)

    def test_priority(self):
        for asked in ({"nice": 5}, {"oom": 500}, {"slack": 70_000}):
            command = "nice; cat /proc/self/oom_score_adj /proc/self/timerslack_ns"
            self.same(SHELL, command, world={"priority": asked}, expect=b"\n", unfit=PRIORITY)

    def test_environment(self):
        text = """
            import java.util.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    for (var entry : System.getenv().entrySet()) System.out.println(entry);
                    System.out.println(System.getenv("NONE") + System.getenv("EMPTY"));
                    new ProcessBuilder("env").inheritIO().start().waitFor();
                    ProcessBuilder other = new ProcessBuilder("env").inheritIO();
                    other.environment().put("MORE", "x");
                    other.start().waitFor();
                }
            }
        """
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "EMPTY": "", "Z": "1=2", "A": "\xe9"}
        env.update({"V%d" % number: "v" * number for number in range(60)})
        self.same(text, env=env, expect=b"MORE=x")

    def test_directory(self):
        text = """
            import java.io.*;
            import java.nio.file.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    System.out.println(System.getProperty("user.dir"));
                    System.out.println(new File("a").getAbsolutePath());
                    System.out.println(Path.of("").toAbsolutePath());
                    System.out.println(Path.of("a/..").toRealPath());
                    System.out.println(new File("../x").getCanonicalPath());
                    System.out.println(new File("a").toURI());
                    Files.writeString(Path.of("made"), "text");
                    System.out.println(new File("made").length() + Files.size(Path.of("made")));
                    try (var in = new FileInputStream("made")) { System.out.println(in.read()); }
                    System.out.println(new File(".").list().length);
                    System.out.println(new File("made").delete());
                    System.out.println(File.createTempFile("abc", "d", new File(".")).delete());
                    new ProcessBuilder("pwd").inheritIO().start().waitFor();
                    var below = new ProcessBuilder("pwd").directory(new File("below"));
                    below.inheritIO().start().waitFor();
                }
            }
        """
        for name in ("plain", "with space", "\xe9\xe4"):
            place = os.path.join(self.place, name)
            os.makedirs(os.path.join(place, "a"))
            os.makedirs(os.path.join(place, "below"))
            self.same(text, cwd=place, start="/", expect=b"below")


class Arguments(Case):
    TEXT = """
        import java.util.*;
        public class Main {
            public static void main(String[] words) throws Exception {
                System.out.println(words.length);
                for (String word : words) {
                    char[] some = word.substring(0, Math.min(9, word.length())).toCharArray();
                    System.out.println(word.length() + " " + Arrays.toString(some));
                }
                System.out.println(System.getProperty("sun.java.command").length());
            }
        }
    """

    def test_arguments_of_all_bytes(self):
        self.same(self.TEXT, "", "a b", "*", "@x", "\xe9", b"\xff\xfe", expect=b"6\n")

    def test_arguments_of_a_mebibyte(self):
        self.same(self.TEXT, *["x" * 100_000] * 9, expect=b"100000 ")

    def test_arguments_in_other_locales(self):
        for locale in ("C", "POSIX", "C.UTF-8"):
            env = {"PATH": os.environ["PATH"], "LC_ALL": locale}
            self.same(self.TEXT, "\xe9", "a", env=env, expect=b"2\n")

    def test_command_line(self):
        text = """
            import java.nio.file.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    String line = Files.readString(Path.of("/proc/self/cmdline"));
                    System.out.println(line.replaceAll("\\0+$", "").replace('\\0', '|'));
                    System.out.println(ProcessHandle.current().info().command());
                }
            }
        """
        self.same(text, "a", "b c", expect=b"|Main|a|b c")


class Properties(Case):
    def test_properties_are_those_of_a_cold_run(self):
        text = """
            import java.util.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    var properties = new TreeMap<>(System.getProperties());
                    for (var entry : properties.entrySet()) System.out.println(entry);
                    System.out.println(Locale.getDefault() + " " + TimeZone.getDefault().getID());
                    System.out.println(java.nio.charset.Charset.defaultCharset());
                    Thread main = Thread.currentThread();
                    System.out.println(main + " " + main.getId());
                    System.out.println(ModuleLayer.boot().modules().size());
                    Module base = Object.class.getModule();
                    System.out.println(base.isExported("jdk.internal.misc"));
                    System.out.println(base.isExported("jdk.internal.misc", Main.class.getModule()));
                    System.out.println(Thread.getAllStackTraces().keySet().size());
                    System.out.println(System.console());
                }
            }
        """
        self.same(text, expect=b"sun.java.command=Main")

    def test_what_a_jvm_says_of_native_code(self):
        # From 24 on it warns of the first that loads some, and the gate is none of the program's.
        text = """
            public class Main {
                public static void main(String[] words) throws Exception {
                    for (int turn = 0; turn < 2; turn++) {
                        try {
                            System.load("/nowhere/none.so");
                        } catch (UnsatisfiedLinkError error) {
                            System.out.println(error.getMessage());
                        }
                    }
                    if (Runtime.version().feature() >= 22) {
                        var asked = Module.class.getMethod("isNativeAccessEnabled");
                        System.out.println(asked.invoke(Main.class.getModule()));
                    }
                }
            }
        """
        self.same(text, expect=b"none.so")
        options = ["--enable-native-access=ALL-UNNAMED", "-cp", self.place]
        self.same(text, options=options, expect=b"none.so")

    def test_reading_lines_from_stdin(self):
        text = """
            import java.io.*;
            public class Main {
                public static void main(String[] words) throws Exception {
                    var lines = new BufferedReader(new InputStreamReader(System.in));
                    long sum = 0;
                    for (String line; (line = lines.readLine()) != null; ) sum += line.length();
                    System.out.println(sum);
                }
            }
        """
        for count in (0, 1, 1000, 100_000):
            self.same(text, stdin=b"line\n" * count, expect=b"%d" % (4 * count))


if __name__ == "__main__":
    unittest.main()
