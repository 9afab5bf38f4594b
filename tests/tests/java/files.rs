//! Argument files: `java @FILE` is the same warm as cold, and what the files say now counts.

use hob_tests::World;

use super::{compiled, javas, run, warm_as_cold};

const TELLS: &str = r#"
import java.nio.file.*;
import java.util.*;

public class Tells {
    public static void main(String[] words) throws Exception {
        System.out.println(Arrays.toString(words) + System.getProperty("x") + System.getProperty("y"));
        System.out.println(System.getProperty("sun.java.command"));
        System.out.println(System.getProperty("java.class.path"));
        System.out.println(ProcessHandle.current().info().commandLine().get());
        String line = Files.readString(Path.of("/proc/self/cmdline"));
        System.out.println(line.replaceAll("\\x00+$", "").replace('\0', '|'));
        System.out.println(Path.of("").toAbsolutePath());
    }
}
"#;

#[test]
fn words_of_files_are_as_cold_wherever_they_stand() {
    let world = World::started();
    let classes = compiled(&world, "with space", "Tells", TELLS);
    let classes = classes.to_str().unwrap();
    world.file("options", format!("# of a build\n-Dx=1\n-cp \"{classes}\"\n"));
    world.file("path", format!("'{classes}'"));
    world.file("all", format!("-Dx=1 -cp \"{classes}\" Tells 'of the \\\n   file' \"a\\tb\"\n"));
    let absolute = world.path("work/options");
    let absolute = format!("@{}", absolute.display());
    for java in javas() {
        for words in [
            &["@options", "Tells", "a", "", "@all"][..],
            &["-Dy=2", &absolute, "Tells"],
            &["-cp", "@path", "Tells", "b"],
            &["-Dy=2", "@all", "c", "d e", "@options"],
            &["@all"],
        ] {
            let warm = warm_as_cold(&world, &run(&world, &java, words));
            assert!(warm.text().contains(&format!("java|{}", words.join("|"))), "{warm:?}");
        }
    }
}

#[test]
fn an_edited_file_takes_effect_in_the_next_call() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Tells", TELLS);
    let java = &javas()[0];
    let call = run(&world, java, &["@all", "b"]);
    for (line, wanted) in [
        ("-Dx=1 Tells a", "[a, b]1null"),
        ("-Dx=2 Tells a", "[a, b]2null"),
        ("-Dx=2 Tells c", "[c, b]2null"),
        ("-Dx=2 -Dy=3 Tells c d", "[c, d, b]23"),
        ("-Dx=2 -Dy=3 Tells", "[b]23"),
    ] {
        world.file("all", format!("-cp {} {line}", classes.display()));
        let next = call.go();
        assert!(next.text().starts_with(wanted), "{line}: {next:?}");
        let warm = warm_as_cold(&world, &call);
        assert!(warm.text().starts_with(wanted), "{line}: {warm:?}");
    }
}

#[test]
fn a_call_that_does_not_fit_is_executed_as_its_caller_wrote_it() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Tells", TELLS);
    world.file("all", format!("-cp {} Tells a b", classes.display()));
    for java in javas() {
        let call = run(&world, &java, &["@all", "c"]);
        warm_as_cold(&world, &call);
        // A limit that a JVM looks at when it starts.
        let call = call.clone().after("ulimit -Ss 4096");
        let mut outcomes = (0..20).map(|_| world.in_time(&call));
        let outcome = outcomes.find(|outcome| world.reason(outcome.pid) != "warming").unwrap();
        assert_eq!(world.reason(outcome.pid), "limits", "{outcome:?}");
        assert!(outcome.text().contains("java|@all|c"), "{outcome:?}");
    }
}
