//! Jars and modules, and what is left to a JVM of the call's own.

use std::path::Path;
use std::process::Command;

use hob_tests::{Outcome, Run, World, wait};

use super::{brief, compiled, javas, run, warm_as_cold};

const PRINTS: &str = r#"
import java.io.InputStream;

public class Prints {
    public static void main(String[] words) throws Exception {
        System.out.println(String.join(",", words) + " " + Prints.class.getModule().getName());
        System.out.println(System.getProperty("java.class.path") + " " + System.getProperty("sun.java.command"));
        System.out.println(System.getProperty("jdk.module.main") + " " + System.getProperty("jdk.module.path"));
        System.out.println(ModuleLayer.boot().modules().size());
        InputStream text = Prints.class.getResourceAsStream("/text");
        System.out.print(text == null ? "" : new String(text.readAllBytes()));
    }
}
"#;

/// A tool beside `javac`.
fn tool(name: &str, words: &[&str], directory: &Path) {
    let made = Command::new(name).args(words).current_dir(directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn a_jar_is_warm_and_fresh() {
    let world = World::started();
    compiled(&world, "classes", "Prints", PRINTS);
    world.file("manifest", "Main-Class: Prints\n");
    world.file("text", "one\n");
    let pack = |name: &str| {
        tool(
            "jar",
            &[
                "--create",
                "--file",
                name,
                "--manifest",
                "manifest",
                "-C",
                "../classes",
                ".",
                "text",
            ],
            &world.path("work"),
        );
    };
    pack("app.jar");
    let absolute = world.path("work/app.jar");
    for java in javas() {
        for jar in ["app.jar", absolute.to_str().unwrap()] {
            warm_as_cold(&world, &run(&world, &java, &["-Dx=y", "-jar", jar, "a", "b"]));
        }
        world.file("text", "another\n");
        pack("new.jar");
        std::fs::rename(world.path("work/new.jar"), &absolute).unwrap();
        let call = run(&world, &java, &["-jar", "app.jar"]);
        let fresh = warm_as_cold(&world, &call);
        assert!(fresh.text().ends_with("another\n"), "{fresh:?}");
        world.file("text", "one\n");
        pack("app.jar");
    }
}

#[test]
fn a_module_is_warm() {
    let world = World::started();
    world.file("source/module-info.java", "module one { }\n");
    world.file("source/one/Prints.java", format!("package one;{PRINTS}"));
    let words =
        ["--release", "17", "-d", "mods/one", "source/module-info.java", "source/one/Prints.java"];
    tool("javac", &words, &world.path("work"));
    for java in javas() {
        for words in [
            &["-p", "mods", "-m", "one/one.Prints", "a"][..],
            &["--module-path=mods", "--module=one/one.Prints"],
        ] {
            warm_as_cold(&world, &run(&world, &java, words));
        }
    }
}

#[test]
fn an_edited_class_is_the_one_that_runs() {
    let world = World::started();
    let java = &javas()[0];
    for text in ["one", "two", "three"] {
        let source = format!(
            "public class Main {{ public static void main(String[] a) {{ System.out.println(\"{text}\"); }} }}"
        );
        let classes = compiled(&world, "classes", "Main", &source);
        let warm =
            warm_as_cold(&world, &run(&world, java, &["-cp", classes.to_str().unwrap(), "Main"]));
        assert_eq!(warm.text(), format!("{text}\n"));
    }
    // One that would be found first.
    compiled(
        &world,
        "before",
        "Main",
        "public class Main { public static void main(String[] a) { System.out.println(4); } }",
    );
    std::fs::rename(world.path("before"), world.path("kept")).unwrap();
    let path = format!("{}:{}", world.path("before").display(), world.path("classes").display());
    let call = run(&world, java, &["-cp", &path, "Main"]);
    assert_eq!(warm_as_cold(&world, &call).text(), "three\n");
    std::fs::rename(world.path("kept"), world.path("before")).unwrap();
    assert_eq!(warm_as_cold(&world, &call).text(), "4\n");
}

#[test]
fn what_a_standby_would_not_repeat_runs_cold_with_its_reason() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Prints", PRINTS);
    let classes = classes.to_str().unwrap();
    for java in javas() {
        for (words, reason) in [
            (&["-version"][..], "not-a-program"),
            (&["-Xlog:gc", "-cp", classes, "Prints"], "not-a-program"),
            (&["-cp", classes, "-XX:+PrintFlagsFinal", "-version"], "not-a-program"),
            (&["source/Prints.java"], "not-a-program"),
        ] {
            let outcome = world.in_time(&run(&world, &java, words));
            assert_eq!(world.reason(outcome.pid), reason, "{words:?}");
        }
        let call =
            run(&world, &java, &["-cp", classes, "Prints"]).env("JAVA_TOOL_OPTIONS", "-Dx=y");
        let outcome = world.in_time(&call);
        assert!(outcome.complaint().contains("Picked up JAVA_TOOL_OPTIONS"), "{outcome:?}");
        assert_eq!(world.reason(outcome.pid), "not-a-program");
        // What a launcher reads of its variable it says.
        world.file("nested", "@words");
        world.file("open", format!("-cp {classes} Prints \"a"));
        for call in [
            run(&world, &java, &["@nested", "b"]),
            run(&world, &java, &["@open", "b"]),
            run(&world, &java, &["-cp", classes, "@nothing", "Prints"]),
            run(&world, &java, &["-cp", classes, "Prints"]).env("JDK_JAVA_OPTIONS", "-Dx=y"),
        ] {
            let cold = call.clone().env("HOB", "0").go();
            let outcome = world.in_time(&call);
            assert_eq!(outcome, cold);
            assert_eq!(world.reason(outcome.pid), "not-a-program");
        }
    }
}

#[test]
fn a_jdk_that_is_replaced_under_jvms_that_wait_is_the_one_that_runs() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Prints", PRINTS);
    let classes = classes.to_str().unwrap();
    for (name, modules) in
        [("one", "java.base"), ("two", "java.base,java.logging"), ("three", "java.base,java.xml")]
    {
        tool("jlink", &["--add-modules", modules, "--output", name], &world.path("work"));
    }
    let at = |name: &str| world.path("work").join(name);
    std::fs::rename(at("one"), at("jdk")).unwrap();
    let call = run(&world, &at("jdk/bin/java"), &["-cp", classes, "Prints"]);
    let count = || {
        let text = warm_as_cold(&world, &call).text();
        text.lines().last().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(count(), 1);
    // As one installs another: all of it at once.
    std::fs::rename(at("jdk"), at("old")).unwrap();
    std::fs::rename(at("two"), at("jdk")).unwrap();
    assert_eq!(count(), 2);
    // And one of its files alone.
    std::fs::rename(at("old/lib/modules"), at("jdk/lib/modules")).unwrap();
    assert_eq!(count(), 1);
    // A link that leads to another one.
    std::fs::rename(at("jdk"), at("first")).unwrap();
    std::os::unix::fs::symlink(at("first"), at("jdk")).unwrap();
    assert_eq!(count(), 1);
    std::fs::remove_file(at("jdk")).unwrap();
    std::os::unix::fs::symlink(at("three"), at("jdk")).unwrap();
    assert_eq!(count(), 2);
}

#[test]
fn a_wrapper_that_finds_java_on_path_is_warm_by_its_shim() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Prints", PRINTS);
    let wrapper = format!("#!/bin/sh\nexec java -cp {} Prints \"$@\"\n", classes.display());
    let wrapper = world.executable("wrapper", wrapper);
    let java = &javas()[0];
    let shims = world.path("shims");
    let path = [shims.as_path(), java.parent().unwrap(), Path::new("/usr/bin"), Path::new("/bin")];
    let path = std::env::join_paths(path).unwrap();
    let added = world.hob(&["shim", "add", "java"]).env("HOB_SHIM_DIR", &shims).env("PATH", &path);
    assert_eq!(added.go().text(), format!("java: hob runs {}\n", java.display()));
    as_cold_until_warm(
        &world,
        &world.run(&[wrapper.to_str().unwrap(), "a", "b"]).env("PATH", &path),
    );
}

#[test]
fn a_wrapper_that_finds_java_by_its_home_is_warm_by_one_that_hob_makes() {
    let world = World::started();
    let classes = compiled(&world, "classes", "Prints", PRINTS);
    let text = format!(
        "#!/bin/sh\ngrep ^JAVA_VERSION= \"$JAVA_HOME/release\"\n\
         exec \"$JAVA_HOME/bin/java\" -cp {} Prints \"$@\"\n",
        classes.display()
    );
    let wrapper = world.executable("wrapper", text);
    let place = world.path("a home");
    for java in javas() {
        let home = java.parent().unwrap().parent().unwrap();
        let make = world.hob(&["shim", "add", "java", "--home"]).args(&[&place]);
        let made = make.clone().env("JAVA_HOME", home).go();
        let line = format!("  export JAVA_HOME='{}'\n", place.display());
        assert!(
            made.text().starts_with(&format!("java: hob runs {}\n", java.display())),
            "{made:?}"
        );
        assert!(made.text().ends_with(&line), "{made:?}");
        let again = make.env("JAVA_HOME", home).go();
        assert!(again.complaint().contains("there already"), "{again:?}");
        let call = world.run(&[wrapper.to_str().unwrap(), "a", "b c"]);
        let plain = call.clone().env("JAVA_HOME", home).go();
        let warm = as_cold_until_warm(&world, &call.env("JAVA_HOME", &place));
        assert_eq!(warm, plain);
        std::fs::remove_dir_all(&place).unwrap();
    }
    let other = world.hob(&["shim", "add", "python3", "--home", "x"]).go();
    assert!(other.complaint().contains("no command finds it by a variable"), "{other:?}");
}

/// Calls until a call is warm, each as cold.
fn as_cold_until_warm(world: &World, call: &Run) -> Outcome {
    let cold = call.clone().env("HOB", "0").go();
    wait::until("a warm call by the shim", || {
        let outcome = call.go();
        assert_eq!(outcome, cold);
        world.records(1).last().is_some_and(hob_tests::is_warm).then_some(outcome)
    })
}

#[test]
fn a_main_that_cannot_be_found_is_told_by_the_jvm_itself() {
    let world = World::started();
    let text = "public class Bare { void main(int a) { } }";
    let classes = compiled(&world, "classes", "Bare", text);
    world.file("broken.jar", "no archive");
    let classes = classes.to_str().unwrap();
    for java in javas() {
        for words in [
            &["-cp", classes, "Missing"][..],
            &["-cp", classes, "Bare"],
            &["-jar", "broken.jar"],
            &["-jar", "none.jar"],
        ] {
            let call = run(&world, &java, words);
            let cold = call.clone().env("HOB", "0").go();
            for _ in 0..3 {
                assert_eq!(call.go(), cold, "{words:?}");
            }
        }
    }
}

#[test]
fn a_script_of_clojure_is_as_cold() {
    let jars = crate::sessions::libraries();
    let world = World::started();
    world.file(
        "main.clj",
        "(ns main (:require [clojure.string :as s]))\n\
         (println (s/join \",\" *command-line-args*) (System/getenv \"ONE\") *file* (slurp *in*))\n\
         (throw (ex-info \"no\" {:a 1}))\n",
    );
    let words = ["-cp", &jars, "clojure.main", "--report", "none", "main.clj", "a", "b"];
    let call = brief(&world, &javas()[0], &words).env("ONE", "1").stdin("given\n");
    let warm = warm_as_cold(&world, &call);
    assert!(warm.text().starts_with("a,b 1 "), "{warm:?}");
}
