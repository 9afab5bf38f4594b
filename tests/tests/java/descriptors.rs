//! A caller with more descriptors open than 0 to 2, as a job of `make -j` and what reads `<(...)`
//! has: a JVM that waits takes them on, each at its own number.

use hob_tests::{Run, World, is_warm, wait};

use super::{compiled, javas, run, warm_as_cold};

const READS: &str = r#"
    import java.io.*;
    import java.nio.file.*;

    public class Reads {
        public static void main(String[] words) throws Exception {
            for (String word : words) {
                switch (word) {
                    case "token" -> token();
                    case "exit" -> System.exit(3);
                    default -> {
                        if (word.startsWith("list:")) {
                            list(word.substring(5).split(","));
                            continue;
                        }
                        // Of a pipe the name is the pipe.
                        try (var lines = new BufferedReader(new FileReader(word))) {
                            System.out.println(word.startsWith("/dev/fd/") + " " + lines.readLine());
                        }
                    }
                }
            }
        }

        /** How each is open, and whether a file that this executes would have it. */
        static void list(String[] numbers) throws Exception {
            for (String number : numbers) {
                String text = Files.readString(Path.of("/proc/self/fdinfo", number));
                System.out.println(number + " " + text.split("flags:\\s*")[1].split("\n")[0]);
            }
        }

        static void token() throws Exception {
            String flags = String.valueOf(System.getenv("MAKEFLAGS"));
            var found = java.util.regex.Pattern.compile("--jobserver-auth=(\\d+),(\\d+)").matcher(flags);
            if (!found.find()) return;
            try (var in = new FileInputStream("/dev/fd/" + found.group(1));
                    var out = new FileOutputStream("/dev/fd/" + found.group(2))) {
                int token = in.read();
                out.write(token);
                System.out.println("token " + (char) token);
            }
        }
    }
"#;

/// A call of that program, after these commands of a shell.
fn after(call: &Run, commands: &str, words: &[&str]) -> Run {
    call.clone().args(words).after(commands)
}

#[test]
fn more_descriptors_are_the_callers_each_at_its_number() {
    let world = World::started();
    world.file("data", "one\ntwo\n");
    let classes = compiled(&world, "classes", "Reads", READS);
    for java in javas() {
        let call = run(&world, &java, &["-cp", classes.to_str().unwrap(), "Reads"]);
        for (commands, words) in [
            ("exec 3< <(echo three) 9< <(echo nine)", &["/dev/fd/3", "/dev/fd/9", "list:3,9"][..]),
            (
                "exec 3<data 4>>log 63<data 70<>data 500<data 501<data",
                &["list:0,1,2,3,4,63,70,500,501", "exit"],
            ),
            ("exec 3<&-", &["list:0,1,2"]),
        ] {
            warm_as_cold(&world, &after(&call, commands, words));
        }
    }
}

#[test]
fn a_job_of_make_and_a_substituted_process_are_warm() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Reads", READS);
    let classes = classes.to_str().unwrap();
    for java in javas() {
        let java = java.to_str().unwrap();
        // From version 4.4 on `make` would rather have a named pipe.
        world.file("Makefile", "all:\n\t+@$(RUN) -cp $(CLASSES) Reads token list:3,4\n");
        for line in [
            "make --no-print-directory -j2",
            "$RUN -cp $CLASSES Reads <(echo inner) list:63",
            "$RUN -cp $CLASSES Reads list:5 /dev/fd/5 5< <(echo five) | cat",
        ] {
            let by = |run: String| {
                let shell = world.run(&["bash", "-c", line]);
                shell.env("RUN", run).env("CLASSES", classes)
            };
            let plain = by(java.to_owned()).go();
            assert!(plain.text().lines().count() >= 2, "{plain:?}");
            let hob = by(format!("{} run {java}", world.binary().display()));
            let count = || world.records(400).iter().filter(|record| is_warm(record)).count();
            let before = count();
            wait::until("a warm call", || {
                let outcome = hob.go();
                assert_eq!((outcome.text(), outcome.end), (plain.text(), plain.end), "{outcome:?}");
                (count() > before).then_some(())
            });
        }
    }
}

#[test]
fn a_lock_that_a_program_was_given_is_free_when_its_call_has_ended() {
    let world = World::started();
    let text = r#"
        public class Waits {
            public static void main(String[] words) throws Exception {
                var in = new java.io.FileInputStream("/dev/fd/8");
                var waits = new Thread(() -> {
                    try { in.read(); } catch (java.io.IOException error) { }
                });
                waits.setDaemon(true);
                waits.start();
                while (waits.getState() == Thread.State.NEW) Thread.onSpinWait();
            }
        }
    "#;
    let classes = compiled(&world, "classes", "Waits", text);
    let java = &javas()[0];
    let call = run(&world, java, &["-cp", classes.to_str().unwrap(), "Waits"]);
    let by = |run: &str| {
        let line = format!(
            "mkfifo p; (exec 8<>p 9>lock; flock -n 9 || echo held; exec {run} -cp {} Waits)
             flock -n lock echo free || echo taken; rm p",
            classes.display()
        );
        world.run(&["bash", "-c", &line])
    };
    warm_as_cold(&world, &call.after("exec 8</dev/null"));
    let hob = by(&format!("{} run {}", world.binary().display(), java.display()));
    let count = || world.records(400).iter().filter(|record| is_warm(record)).count();
    let before = count();
    wait::until("some warm calls", || {
        assert_eq!(hob.go().text(), "free\n");
        (count() > before + 4).then_some(())
    });
}

#[test]
fn a_call_with_a_closed_stream_is_cold() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Reads", READS);
    let call = run(&world, &javas()[0], &["-cp", classes.to_str().unwrap(), "Reads", "list:1,2"]);
    warm_as_cold(&world, &call);
    let outcome = world.in_time(&call.clone().after("exec 0<&-"));
    assert_eq!(world.reason(outcome.pid), "descriptors");
    assert_eq!(outcome, call.after("exec 0<&-").env("HOB", "0").go());
}
