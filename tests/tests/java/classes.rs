//! Classes: what their programs see of the caller, and how they end.

use hob_tests::{End, World};

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
