//! `hob run SCRIPT.clj`, and `clojure` itself: the call is the one that the caller's own launcher would
//! end in, and is asked for once.

use std::path::PathBuf;

use hob_tests::{End, Run, World};

use super::{ONE_WAITS, javas, warm_as_cold};
use crate::sessions::libraries;

/// What the official launcher does, in short: it runs a JVM of its own, then executes what it has found
/// with JAVA_CMD. `launched` has a line for each time that it was run.
const LAUNCHER: &str = r#"#!/bin/bash
JAVA_CMD=${JAVA_CMD:-$(type -p java)}
main=()
while [[ $1 == -* ]]; do
  case $1 in
    -Sdeps) shift 2 ;;
    -M:app) main=(-m app.main); shift; break ;;
    -M*) shift; break ;;
    *) echo "not known: $1" >&2; exit 1 ;;
  esac
done
grep -q broken deps.edn 2>/dev/null && { echo "deps.edn: broken" >&2; exit 1; }
echo x >> "$LAUNCHED"
"$JAVA_CMD" -XX:TieredStopAtLevel=1 -cp "$LIBRARIES" clojure.main -e "(do 'clojure.tools.deps (println :inner))" >/dev/null || exit 3
exec "$JAVA_CMD" -XX:TieredStopAtLevel=1 -Dfrom=launcher -classpath "src:$LIBRARIES" clojure.main "${main[@]}" "$@"
"#;

fn call(world: &World, words: &[&str]) -> Run {
    verb(world, &[&["run"], &ONE_WAITS[..], words].concat())
}

fn verb(world: &World, words: &[&str]) -> Run {
    let java = javas().remove(0);
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        world.path("work/bin").display(),
        java.parent().unwrap().display()
    );
    let run = world.hob(words);
    run.env("LIBRARIES", libraries()).env("LAUNCHED", world.path("launched")).env("PATH", path)
}

fn with_launcher() -> World {
    let world = World::started();
    let file = world.file("bin/clojure", LAUNCHER);
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world
}

fn launched(world: &World) -> usize {
    std::fs::read_to_string(world.path("launched")).unwrap_or_default().lines().count()
}

const SCRIPT: &str = "(ns script (:require [app.part :as part]))
(println *command-line-args* part/name (System/getProperty \"from\") (System/getProperty \"user.dir\") (read-line))
(System/exit (count *command-line-args*))
";

#[test]
fn a_script_is_what_the_callers_launcher_makes_of_it_in_its_directory() {
    let world = with_launcher();
    world.file("project/deps.edn", "{:deps {}}");
    world.file("project/script.clj", SCRIPT);
    world.file("project/src/app/part.clj", "(ns app.part)\n(def name :one)");
    let run = call(&world, &["project/script.clj", "a", "b"]).stdin("typed\n");
    let warm = warm_as_cold(&world, &run);
    let here = world.path("work");
    let text = format!("(a b) :one launcher {} typed\n", here.canonicalize().unwrap().display());
    assert_eq!((warm.end, warm.text()), (End::Code(2), text));
    assert_eq!(launched(&world), 1, "one answer is kept");
    // Its own words are its own: the arguments are not among them.
    assert_eq!(call(&world, &["project/script.clj"]).stdin("").go_long().end, End::Code(0));
    assert_eq!(launched(&world), 1);
    world.file("project/deps.edn", "{:deps {} :paths [\"src\"]}");
    assert_eq!(run.go_long().end, End::Code(2));
    assert_eq!(launched(&world), 2, "another manifest is asked about");
    world.file("project/deps.edn", "{:deps {broken}}");
    let broken = run.go_long();
    assert!(broken.complaint().contains("deps.edn: broken"), "{}", broken.complaint());
}

#[test]
fn a_manifest_of_a_place_that_a_manifest_names_counts() {
    let world = with_launcher();
    world.file("deps.edn", "{:deps {a/a {:local/root \"a\"}}}");
    world.file("a/deps.edn", "{}");
    world.file("one.clj", "(println 1)");
    let run = call(&world, &["one.clj"]);
    assert_eq!((run.go_long().text().as_str(), run.go_long().text().as_str()), ("1\n", "1\n"));
    assert_eq!(launched(&world), 1);
    world.file("a/deps.edn", "{:paths [\"x\"]}");
    assert_eq!((run.go_long().text().as_str(), launched(&world)), ("1\n", 2));
}

#[test]
fn what_a_launcher_would_end_in_is_made_ready_before_its_first_call() {
    let world = with_launcher();
    world.file("src/app/main.clj", "(ns app.main)\n(defn -main [& words] (println words))");
    for words in [&["clojure", "-M:app", "a"][..], &["clojure", "-M", "-m", "app.main", "a"]] {
        let ready = verb(&world, &[&["warm"], words].concat()).go_long();
        ready.succeeded();
        assert!(ready.text().contains(&format!("{} is ready", words.join(" "))), "{ready:?}");
        let first = call(&world, words).go_long();
        assert_eq!((first.end, first.text().as_str()), (End::Code(0), "(a)\n"));
        assert_eq!(world.reason(first.pid), "standby-ready");
    }
}

#[test]
fn a_place_without_a_manifest_counts_by_its_pom_its_parents_and_its_jar() {
    let world = with_launcher();
    world.file("deps.edn", "{:deps {a/a {:local/root \"a\"} b/b {:local/root \"b.jar\"}}}");
    world.file("a/pom.xml", "<project><parent><artifactId>p</artifactId></parent></project>");
    world.file(
        "pom.xml",
        "<project><parent><relativePath> up/top.xml </relativePath></parent></project>",
    );
    world.file("up/top.xml", "<project></project>");
    world.file("b.jar", "a jar");
    world.file("one.clj", "(println 1)");
    let run = call(&world, &["one.clj"]);
    assert_eq!((run.go_long().text().as_str(), run.go_long().text().as_str()), ("1\n", "1\n"));
    assert_eq!(launched(&world), 1);
    let dependency = "<project><dependencies/></project>";
    for (asked, (file, text)) in
        [("up/top.xml", dependency), ("a/pom.xml", dependency), ("b.jar", "another jar")]
            .into_iter()
            .enumerate()
    {
        world.file(file, text);
        assert_eq!(run.go_long().text(), "1\n");
        assert_eq!(launched(&world), asked + 2, "{file}");
    }
}

#[test]
fn the_launcher_itself_is_warm_with_the_main_of_its_alias_or_of_its_line() {
    let world = with_launcher();
    world.file("src/app/main.clj", "(ns app.main)\n(defn -main [& words] (println words))");
    for words in [&["clojure", "-M:app", "a"][..], &["clojure", "-M", "-m", "app.main", "a"]] {
        let warm = warm_as_cold(&world, &call(&world, words));
        assert_eq!((warm.end, warm.text().as_str()), (End::Code(0), "(a)\n"));
    }
    assert_eq!(launched(&world), 2);
    // What is no program of its is the launcher's own business.
    let other = call(&world, &["clojure", "-Stree"]).go_long();
    assert_eq!((other.end, other.complaint().as_str()), (End::Code(1), "not known: -Stree\n"));
}

#[test]
fn without_a_launcher_libraries_that_are_named_do_and_else_the_next_step_is_told() {
    let world = World::started();
    world.file("one.clj", "#!/usr/bin/env -S clojure -M\n(println 1 *command-line-args*)");
    let named = call(&world, &["one.clj", "a"]).env("HOB_CLOJURE", libraries());
    assert_eq!(warm_as_cold(&world, &named).text(), "1 (a)\n");
    let none = call(&world, &["one.clj"]).go_long();
    assert_eq!(none.end, End::Code(126));
    assert!(none.complaint().contains("HOB_CLOJURE"), "{}", none.complaint());
    let missing = call(&world, &["none.clj"]).go_long();
    assert_eq!(missing.end, End::Code(127), "{}", missing.complaint());
}

/// A world without a launcher, whose user has the jars of tools.deps, and those that it needs itself.
fn with_repository() -> World {
    let world = World::started();
    let jars = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/deps");
    assert!(jars.join("ready").exists(), "{}: missing; run `.ci/deps`", jars.display());
    std::fs::create_dir_all(world.path("home/.m2")).unwrap();
    std::os::unix::fs::symlink(jars, world.path("home/.m2/repository")).unwrap();
    world
}

/// What comes with tools.deps: nothing is fetched for it.
const CLOJURE: &str = "org.clojure/clojure {:mvn/version \"1.12.6\"}";

fn asked(world: &World) -> usize {
    let kept = std::fs::read_dir(world.path("home/.cache/hob/launch"));
    let names = kept.into_iter().flatten().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_none()).count()
}

#[test]
fn where_no_launcher_is_installed_tools_deps_says_what_a_manifest_means() {
    let world = with_repository();
    world.file(
        "project/deps.edn",
        format!(
            "{{:paths [\"src\"] :deps {{{CLOJURE} own/lib {{:local/root \"../lib\"}}}}
               :aliases {{:dev {{:extra-paths [\"dev\"] :jvm-opts [\"-Dfrom=alias\"]
                                :extra-deps {{org.clojure/tools.cli {{:mvn/version \"1.4.256\"}}}}
                                :main-opts [\"-m\" \"app.main\"]}}}}}}"
        ),
    );
    world.file(
        "lib/deps.edn",
        "{:paths [\"code\"] :deps {org.clojure/tools.reader {:mvn/version \"1.5.0\"}}}",
    );
    world.file("lib/code/own/lib.clj", "(ns own.lib (:require [clojure.tools.reader :as reader]))\n(def name (reader/read-string \":lib\"))");
    world.file("project/src/app/part.clj", "(ns app.part)\n(def name :part)");
    world.file(
        "project/dev/app/main.clj",
        "(ns app.main (:require [clojure.tools.cli :as cli] [own.lib :as lib]))
         (defn -main [& words] (println (:arguments (cli/parse-opts words [])) lib/name (System/getProperty \"from\")))",
    );
    world.file(
        "project/script.clj",
        "(ns script (:require [app.part :as part] [own.lib :as lib]))
         (println *command-line-args* part/name lib/name (clojure-version)
                  (some? (slurp (System/getProperty \"clojure.basis\"))))",
    );
    let call_in = |words: &[&str]| call(&world, words).within(world.path("work/project"));
    let script = call_in(&["script.clj", "a"]);
    // The first asks tools.deps, which takes its time.
    assert_eq!(script.go_long().end, End::Code(0));
    let warm = warm_as_cold(&world, &script);
    assert_eq!(warm.text(), "(a) :part :lib 1.12.6 true\n", "{warm:?}");
    let elsewhere = call(&world, &["project/script.clj", "a"]);
    assert_eq!(elsewhere.go_long().text(), warm.text());
    assert_eq!(asked(&world), 1, "one answer is kept");
    let main = call_in(&["clojure", "-M:dev", "b"]);
    assert_eq!(main.go_long().end, End::Code(0));
    let warm = warm_as_cold(&world, &main);
    assert_eq!(warm.text(), "[b] :lib alias\n", "{warm:?}");
    let eval = verb(&world, &["session", "eval", "-S", "one", "(require 'own.lib) own.lib/name"]);
    let eval = eval.within(world.path("work/project"));
    assert_eq!(eval.go_long().text(), "nil\n:lib\n");
    // A library's own manifest counts.
    world.file("lib/deps.edn", "{:paths [\"other\"]}");
    world.file("lib/other/own/lib.clj", "(ns own.lib)\n(def name :other)");
    assert_eq!(script.go_long().text(), "(a) :part :other 1.12.6 true\n");
}

#[test]
fn what_tools_deps_cannot_resolve_is_told_with_its_cause_and_the_next_step() {
    let world = with_repository();
    world.file("script.clj", "(println 1)");
    let script = call(&world, &["script.clj"]);
    for (manifest, cause) in [
        (format!("{{:deps {{{CLOJURE} own/lib {{:local/root \"nowhere\"}}}}}}"), "own/lib"),
        (
            // Of two repositories one is enough to ask.
            "{:deps {org.clojure/clojure {:mvn/version \"0.0.0-none\"}} :mvn/repos {\"clojars\" nil}}"
                .to_owned(),
            "0.0.0-none",
        ),
        ("{:deps {".to_owned(), "unmatched"),
    ] {
        world.file("deps.edn", &manifest);
        let outcome = script.go_long();
        assert_eq!((outcome.end, outcome.text()), (End::Code(126), String::new()), "{outcome:?}");
        let said = outcome.complaint();
        assert!(said.contains(cause) && said.contains("`clojure`"), "{manifest}: {said}");
        assert_eq!(asked(&world), 0, "no error is kept");
    }
}

#[test]
fn a_resolver_that_cannot_be_had_is_told_and_no_class_path_is_guessed() {
    let world = World::started();
    world.file("script.clj", "(println 1)");
    world.file("deps.edn", "{}");
    let script = call(&world, &["script.clj"])
        .env("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1");
    let outcome = script.go_long();
    assert_eq!((outcome.end, outcome.text()), (End::Code(126), String::new()), "{outcome:?}");
    let said = outcome.complaint();
    assert!(said.contains("tools.deps") && said.contains("Connection refused"), "{said}");
    // Jars that are named do, as before.
    let named = script.env("HOB_CLOJURE", libraries());
    assert_eq!(named.go_long().text(), "1\n");
}
