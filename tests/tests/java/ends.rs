//! How programs end: codes, what they print last, and what their caller finds then.

use hob_tests::{End, World, wait};

use super::{compiled, javas, run, warm_as_cold};

/// Ends in the way that its argument names.
const ENDS: &str = r#"
import java.io.*;

public class Ends {
    static class Fails {
        static int value = 1 / Integer.parseInt("0");
    }

    static void later(boolean daemon, Runnable what) {
        Thread thread = new Thread(what, "later");
        thread.setDaemon(daemon);
        thread.start();
    }

    static void pause() {
        try {
            Thread.sleep(200);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static void deep() {
        deep();
    }

    public static void main(String[] words) throws Exception {
        // Hooks run beside each other: which one is the first is chance.
        if (!words[0].equals("hook-halts")) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        }
        switch (words[0]) {
            case "halt" -> Runtime.getRuntime().halt(5);
            case "exit" -> System.exit(Integer.parseInt(words[1]));
            case "hook-halts" -> Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(9)));
            case "static" -> System.out.println(Fails.value);
            case "throws" -> throw new IOException("a", new Error("b"));
            case "deep" -> deep();
            case "thread" -> later(false, () -> { pause(); System.out.println("later"); });
            case "thread-exits" -> later(false, () -> { pause(); System.exit(7); });
            case "thread-throws" -> later(false, () -> { throw new IllegalStateException("in a thread"); });
            case "daemon" -> later(true, () -> { while (true) { pause(); } });
            case "throws-and-goes-on" -> {
                later(false, () -> { pause(); System.out.println("later"); });
                throw new IllegalStateException("main is over");
            }
            case "named" -> later(false, () -> { Thread.currentThread().setName("DestroyJavaVM"); System.exit(6); });
            case "file" -> {
                File file = File.createTempFile("hob", ".txt", new File("."));
                file.deleteOnExit();
                System.out.println(file.exists());
            }
            case "handler" -> {
                Thread.setDefaultUncaughtExceptionHandler((thread, error) -> System.out.println(thread + " " + error));
                throw new IllegalStateException("handled");
            }
            case "closed" -> {
                System.out.close();
                System.err.println(System.out.checkError());
            }
            default -> System.out.println("main");
        }
    }
}
"#;

#[test]
fn each_way_to_end_is_as_cold() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Ends", ENDS);
    let classes = classes.to_str().unwrap();
    for java in javas() {
        for words in [
            &["halt"][..],
            &["exit", "0"],
            &["exit", "3"],
            &["exit", "-1"],
            &["exit", "256"],
            &["hook-halts"],
            &["static"],
            &["throws"],
            &["deep"],
            &["thread"],
            &["thread-exits"],
            &["thread-throws"],
            &["daemon"],
            &["throws-and-goes-on"],
            &["named"],
            &["file"],
            &["handler"],
            &["closed"],
            &["main"],
        ] {
            warm_as_cold(&world, &run(&world, &java, &[&["-cp", classes, "Ends"], words].concat()));
        }
    }
}

#[test]
fn an_exit_before_the_main_is_as_cold() {
    let world = World::started();
    let text = r#"
        public class Early {
            // Of a class of its own: a hook waits for no class whose start waits for it.
            static class Hook extends Thread {
                @Override public void run() {
                    System.out.println("hook");
                }
            }

            static {
                Runtime.getRuntime().addShutdownHook(new Hook());
                System.out.println("static");
                if (System.getenv("ENDS") != null) System.exit(4);
            }

            public static void main(String[] words) {
                System.out.println("main");
            }
        }
    "#;
    let classes = compiled(&world, "classes", "Early", text);
    for java in javas() {
        let call = run(&world, &java, &["-cp", classes.to_str().unwrap(), "Early"]);
        assert_eq!(warm_as_cold(&world, &call).text(), "static\nmain\nhook\n");
        let ends = warm_as_cold(&world, &call.env("ENDS", "1"));
        assert_eq!((ends.end, ends.text().as_str()), (End::Code(4), "static\nhook\n"));
    }
}

#[test]
fn a_hook_that_hangs_is_ended_by_the_callers_timeout() {
    let world = World::started();
    let text = r#"
        public class Hangs {
            public static void main(String[] words) {
                Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                    System.out.println("hangs");
                    while (words.length > 0) Thread.onSpinWait();
                }));
            }
        }
    "#;
    let classes = compiled(&world, "classes", "Hangs", text);
    let (java, classes) = (javas().remove(0), classes.to_str().unwrap());
    let words = [java.to_str().unwrap(), "-cp", classes, "Hangs"];
    let hob = |more: &[&str]| world.hob(&[&["run", "--timeout", "2s"], &words[..], more].concat());
    let ends = warm_as_cold(&world, &hob(&[]));
    assert_eq!((ends.end, ends.text().as_str()), (End::Code(0), "hangs\n"));
    let hangs = world.warm(&hob(&["x"]), |outcome| {
        assert_eq!((outcome.end, outcome.text().as_str()), (End::Code(124), "hangs\n"));
    });
    assert_eq!(world.record(hangs.pid)["outcome"]["kind"], "timed-out");
}

#[test]
fn a_call_that_its_standby_executes_cold_is_cold_and_says_why() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Ends", ENDS);
    let call = run(&world, &javas()[0], &["-cp", classes.to_str().unwrap(), "Ends", "exit", "4"]);
    for (commands, reason) in [
        ("trap '' HUP", "signals"),
        ("ulimit -Ss 4096", "limits"),
        ("renice -n 5 -p $$ >&2", "priority"),
        ("taskset -pc 0 $$ >&2", "processors"),
    ] {
        warm_as_cold(&world, &call);
        let call = call.clone().after(commands);
        let mut records = (0..20).map(|_| {
            let outcome = world.in_time(&call);
            assert_eq!(outcome.end, End::Code(4), "{outcome:?}");
            world.record(outcome.pid)
        });
        let record = records.find(|record| record["reason"] != "warming").unwrap();
        assert_eq!(
            (&record["warm"], &record["reason"]),
            (&false.into(), &reason.into()),
            "{record}"
        );
        assert_eq!(record["isolation"], "spawn", "{record}");
        assert!(
            record["phases"].as_array().unwrap().iter().any(|phase| phase["name"] == "main"),
            "{record}"
        );
    }
}

#[test]
fn what_a_program_holds_is_free_when_its_caller_hears_of_the_end() {
    let world = World::started();
    let text = r#"
        import java.nio.channels.*;
        import java.nio.file.*;

        public class Holds {
            static FileLock lock;

            public static void main(String[] words) throws Exception {
                Path path = Path.of("lock");
                lock = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE).tryLock();
                System.out.println(lock != null);
            }
        }
    "#;
    let classes = compiled(&world, "classes", "Holds", text);
    let java = &javas()[0];
    let call = run(&world, java, &["-cp", classes.to_str().unwrap(), "Holds"]);
    warm_as_cold(&world, &call);
    let twice = world.run(&["sh", "-c", "\"$@\" && \"$@\"", "sh"]).args(&call.command_line()).go();
    assert_eq!((twice.end, twice.text().as_str()), (End::Code(0), "true\ntrue\n"));
}

#[test]
fn a_signal_ends_a_program_as_cold() {
    use rustix::process::Signal;
    let world = World::started();
    let text = r#"
        public class Waits {
            public static void main(String[] words) throws Exception {
                Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
                System.out.println("ready");
                Thread.sleep(60_000);
            }
        }
    "#;
    let classes = compiled(&world, "classes", "Waits", text);
    let quick = compiled(
        &world,
        "classes",
        "Quick",
        "public class Quick { public static void main(String[] a) { } }",
    );
    assert_eq!(quick, classes);
    let call = run(&world, &javas()[0], &["-cp", classes.to_str().unwrap(), "Waits"]);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        let ends = |call: &hob_tests::Run| {
            let running = call.start();
            running.expect("ready\n");
            running.signal(signal);
            running.finish()
        };
        let cold = ends(&call.clone().env("HOB", "0"));
        let mut warm = ends(&call);
        for _ in 0..20 {
            assert_eq!(warm, cold, "{signal:?}");
            if hob_tests::is_warm(&world.record(warm.pid)) {
                break;
            }
            warm = ends(&call);
        }
        assert!(hob_tests::is_warm(&world.record(warm.pid)), "{signal:?}");
    }
}

/// Starts its arguments as most programs start others: by the C library's `posix_spawn`.
const SPAWNS: &str = "import os, signal, sys
own = [signal.SIGPIPE, signal.SIGXFSZ]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setsigdef=own)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

#[test]
fn a_caller_that_posix_spawn_has_started_is_given_the_jvm_that_waits() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Ends", ENDS);
    for java in javas() {
        let call = run(&world, &java, &["-cp", classes.to_str().unwrap(), "Ends", "main"]);
        warm_as_cold(&world, &call);
        let spawned = world.run(&["python3", "-c", SPAWNS]).args(&call.command_line());
        let record = wait::until("a warm call", || {
            let ran = spawned.go();
            assert_eq!((ran.end, ran.text().as_str()), (End::Code(0), "main\nhook\n"));
            world.records(1).pop().filter(|record| record["warm"] == true)
        });
        // A JVM that executed the cold command in its own place has told of no main.
        let phases = record["phases"].as_array().unwrap();
        assert!(phases.iter().any(|phase| phase["name"] == "main"), "{record}");
    }
}
