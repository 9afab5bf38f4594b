//! Classes: what their programs see of the caller, and how they end.

use hob_tests::{End, Terminal, World};

use super::{compiled, javas, run, warm_as_cold};

/// Prints all that a program can ask of where it is and who called it.
const SEES: &str = r#"
import java.io.*;
import java.nio.file.*;
import java.util.*;

public class Main {
    public static void main(String[] words) throws Exception {
        System.out.println(Arrays.toString(words));
        Map<String, String> environment = new TreeMap<>(System.getenv());
        environment.remove("HOB");
        System.out.println(environment);
        System.out.println(System.getenv("ONE") + " " + System.getenv("NONE"));
        System.out.println(System.getProperty("user.dir") + " " + new File("x").getAbsolutePath());
        System.out.println(Path.of("x").toAbsolutePath() + " " + new File(".").getCanonicalPath());
        System.out.println(Files.exists(Path.of("here")) + " " + new File("here").exists());
        System.out.println(System.getProperty("sun.java.command"));
        System.out.println(System.getProperty("java.class.path"));
        System.out.println(Thread.currentThread() + " " + Thread.currentThread().getStackTrace().length);
        StackWalker.getInstance().forEach(System.out::println);
        System.out.println(Thread.currentThread().getContextClassLoader().getClass());
        Process child = new ProcessBuilder("sh", "-c", "pwd; echo $ONE; umask; echo to stderr >&2").inheritIO().start();
        System.out.println(child.waitFor());
        System.out.println(new String(System.in.readAllBytes()));
        System.err.println("to stderr");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        if (words.length > 0 && words[0].equals("throw")) {
            throw new IllegalStateException("no", new IOException("below"));
        }
        if (words.length > 0 && words[0].equals("exit")) {
            System.exit(3);
        }
    }
}
"#;

#[test]
fn a_class_sees_its_callers_world() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Main", SEES);
    world.file("here", "");
    let classes = classes.to_str().unwrap();
    for java in javas() {
        for words in [&["a", "", "b c"][..], &["throw"], &["exit"]] {
            let words = [&["-cp", classes, "Main"], words].concat();
            let run = run(&world, &java, &words);
            let run = run.env("ONE", "1").stdin("given\n").within(world.path("work"));
            warm_as_cold(&world, &run);
        }
    }
}

#[test]
fn a_class_path_that_is_relative_is_that_of_the_callers_directory() {
    let world = World::started();
    for folder in ["one", "two"] {
        let text = format!(
            "public class Main {{ public static void main(String[] a) \
             {{ System.out.println(\"{folder}\"); }} }}"
        );
        compiled(&world, &format!("{folder}/classes"), "Main", &text);
    }
    for java in javas() {
        for folder in ["one", "two"] {
            let run = run(&world, &java, &["-cp", "classes", "Main"]).within(world.path(folder));
            let warm = warm_as_cold(&world, &run);
            assert_eq!((warm.end, warm.text()), (End::Code(0), format!("{folder}\n")));
        }
    }
}

/// Calls in this terminal as without hob, and then until a call is warm.
const UNTIL_WARM: &str = r#"
hob=$1; i=0
HOB=0 "$@"
while [ $i -lt 40 ]; do
  echo CALL; "$@"; i=$((i + 1))
  "$hob" last --json | grep -q '"warm": *true' && exit 0
done
exit 1
"#;

#[test]
fn a_directory_that_executes_nothing_is_the_reason_for_cold_calls_and_doctor_says_so() {
    let world = World::new();
    let text =
        "public class One { public static void main(String[] a) { System.out.println(1); } }";
    let classes = compiled(&world, "classes", "One", text);
    let hob = world.binary().display().to_string();
    let call = format!("{hob} run {} -cp {} One", javas()[0].display(), classes.display());
    let script = format!(
        "mkdir -p -m 700 $HOB_DIR && mount -t tmpfs -o noexec,mode=700 none $HOB_DIR || exit 90
        {hob} start >&2
        for turn in {{1..100}}; do
            {call} || exit 91
            {hob} status | grep 'native part' && break
        done
        {call}; {hob} last | head -1; {hob} doctor | grep noexec; {hob} stop >&2"
    );
    let outcome = world.run(&["unshare", "--mount", "bash", "-c", &script]).go_long();
    if outcome.complaint().contains("unshare") || outcome.end == End::Code(90) {
        println!("skipped: {}", outcome.complaint());
        return;
    }
    let text = outcome.text();
    assert!(text.contains("its native part cannot be loaded"), "{outcome:?}");
    assert!(text.contains("cold: warm-failed"), "{outcome:?}");
    assert!(text.contains("Java 17 to 25 stay cold"), "{outcome:?}");
}

#[test]
fn a_terminal_is_the_callers() {
    let world = World::started();
    let text = r#"
        import java.util.*;

        public class Main {
            public static void main(String[] words) throws Exception {
                System.out.println(new TreeMap<>(System.getProperties()));
                System.out.println(System.console() != null);
                System.err.println("to stderr \u00e9");
                System.out.println("to stdout \u00e9");
                new ProcessBuilder("sh", "-c", "tty; ps -o tty= -o stat= -p $$ | tr -d ' '").inheritIO().start().waitFor();
            }
        }
    "#;
    let classes = compiled(&world, "classes", "Main", text);
    let hob = world.binary().to_str().unwrap();
    for java in javas() {
        let words = [hob, "run", java.to_str().unwrap(), "-cp", classes.to_str().unwrap(), "Main"];
        let run = world.run(&["sh", "-c", UNTIL_WARM, "sh"]).args(&words);
        let (end, shown) = Terminal::open(&run).finish();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert_eq!(end, End::Code(0), "{shown}");
        let (cold, calls) = shown.split_once("CALL\r\n").unwrap();
        assert!(cold.contains("/dev/pts/"), "{cold}");
        for call in calls.split("CALL\r\n") {
            assert_eq!(call, cold);
        }
    }
}
