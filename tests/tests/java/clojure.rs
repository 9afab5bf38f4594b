//! Scripts and namespaces of Clojure by its own main: as cold in a JVM that has started Clojure ahead,
//! and nothing of the program's has run in that before.

use std::path::Path;
use std::process::Command;

use hob_tests::{End, Run, World};

use super::{brief, javas, warm_as_cold};
use crate::sessions::libraries;

/// A call of Clojure's main with more in front of its class path.
fn clojure(world: &World, java: &Path, path: &str, words: &[&str]) -> Run {
    let path = if path.is_empty() { libraries() } else { format!("{path}:{}", libraries()) };
    // The report of what was thrown would be in a file whose name is chance.
    let head = ["-Dclojure.main.report=stderr", "-cp", &path, "clojure.main"];
    brief(world, java, &[&head[..], words].concat())
}

/// A jar with these texts as files.
fn jar(world: &World, name: &str, files: &[(&str, &str)]) -> String {
    for (file, text) in files {
        world.file(&format!("{name}/{file}"), text);
    }
    let jar = world.path(format!("{name}.jar"));
    let folder = world.path("work").join(name);
    let made = Command::new("jar").arg("cf").arg(&jar).arg("-C").arg(&folder).arg(".").output();
    assert!(made.unwrap().status.success(), "{}", jar.display());
    jar.to_str().unwrap().to_owned()
}

const SEES: &str = r##"#!/usr/bin/env clojure
(ns sees (:require [clojure.set :as set] [clojure.string :refer [join]]))
(defrecord Point [x y])
(println *command-line-args* (str *ns*) *file* (System/getenv "ONE") (System/getenv "NONE"))
(println (System/getProperty "user.dir") (.getCanonicalPath (java.io.File. ".")))
(println (sort (map ns-name (all-ns))))
(println (sort (loaded-libs)) *warn-on-reflection* *clojure-version* (ns-name (find-ns 'user)))
(println (class (fn [])) (gensym) (->Point 1 2) (eval '(class (fn []))) (set/union #{1} #{2}))
(println (read-line) (join "," (line-seq (java.io.BufferedReader. *in*))))
(println (alength (.getStackTrace (Thread/currentThread))) (str (Thread/currentThread)))
(println (System/getProperty "sun.java.command") (class (.getContextClassLoader (Thread/currentThread))))
(.println System/err "to stderr")
(.addShutdownHook (Runtime/getRuntime) (Thread. (fn [] (println "hook"))))
(case (first *command-line-args*)
  "exit" (System/exit 3)
  "throw" (throw (ex-info "no" {:a 1} (java.io.IOException. "below")))
  "agent" (do (await (send-off (agent 1) inc)) (shutdown-agents))
  "future" (do (println @(future (Thread/sleep 20) "later")) (shutdown-agents))
  nil)
"##;

#[test]
fn a_script_sees_its_callers_world_and_ends_as_it_does_cold() {
    let world = World::started();
    world.file("sees.clj", SEES);
    for java in javas() {
        let all = [&["a", "", "b c"][..], &["exit"], &["throw"], &["agent"], &["future"]];
        // How a call ends is not the JDK's.
        let those = if java == javas()[0] { &all[..] } else { &all[..1] };
        for words in those {
            let words = [&["sees.clj"], *words].concat();
            let run = clojure(&world, &java, "", &words).env("ONE", "1").stdin("one\ntwo\nthree\n");
            let warm = warm_as_cold(&world, &run);
            let record = world.record(warm.pid);
            let phases = record["phases"].as_array().unwrap();
            assert!(phases.iter().any(|phase| phase["name"] == "main"), "{record}");
        }
    }
}

#[test]
fn what_does_not_compile_or_is_not_there_fails_as_cold() {
    let world = World::started();
    world.file("open.clj", "(println 1)\n(println (+ 1 2)");
    world.file("lib.clj", "(ns lib (:require [no.such.lib :as no]))");
    let java = javas().pop().unwrap();
    for script in ["open.clj", "lib.clj", "none.clj"] {
        let warm = warm_as_cold(&world, &clojure(&world, &java, "", &[script, "a"]));
        assert_eq!(warm.end, End::Code(1), "{script}");
    }
}

#[test]
fn no_namespace_of_a_directory_and_no_script_is_evaluated_ahead() {
    let world = World::started();
    let leaves = "(spit \"ran\" (str (ns-name *ns*) \"\\n\") :append true)";
    world.file(
        "src/app/main.clj",
        format!(
            "(ns app.main (:require [app.part :as part] [clojure.walk]))\n{leaves}\n\
         (defn -main [& words] (println (part/of words)))"
        ),
    );
    world.file(
        "src/app/part.clj",
        format!("(ns app.part)\n{leaves}\n(defn of [words] (count words))"),
    );
    world.file(
        "script.clj",
        format!("(ns script (:require [app.part :as part]))\n{leaves}\n(println (part/of [1]))"),
    );
    let java = javas().remove(0);
    for words in [&["-m", "app.main", "a", "b"][..], &["script.clj"]] {
        let run = clojure(&world, &java, "src", words);
        let _ = std::fs::remove_file(world.path("work/ran"));
        warm_as_cold(&world, &run);
        let before = std::fs::read_to_string(world.path("work/ran")).unwrap();
        let once = before.lines().count();
        // What waits has been started by now or will be: nothing more is there after one more call.
        let _ = std::fs::remove_file(world.path("work/ran"));
        warm_as_cold(&world, &run);
        let after = std::fs::read_to_string(world.path("work/ran")).unwrap();
        assert_eq!(after.lines().count() % 2, 0, "each call loads two: {after}");
        assert!(once >= 2, "{before}");
    }
}

#[test]
fn a_user_namespace_is_evaluated_in_each_call_and_never_before() {
    let world = World::started();
    world
        .file("src/user.clj", "(ns user)\n(println \"user in\" (System/getProperty \"user.dir\"))");
    world.file("one.clj", "(println 1)");
    let warm = warm_as_cold(&world, &clojure(&world, &javas()[0], "src", &["one.clj"]));
    assert!(warm.text().starts_with("user in"), "{}", warm.text());
}

#[test]
fn a_lib_that_looks_at_the_call_while_it_is_loaded_sees_the_callers() {
    let world = World::started();
    let lib = jar(
        &world,
        "libs",
        &[
            ("looks/env.clj", "(ns looks.env)\n(def one (System/getenv \"ONE\"))"),
            (
                "looks/here.clj",
                "(ns looks.here)\n(def here (.getCanonicalPath (java.io.File. \".\")))",
            ),
        ],
    );
    world.file("looks.clj", "(ns looks (:require [looks.env :as env] [looks.here :as here]))\n(println env/one here/here)");
    world.file(
        "other/looks.clj",
        "(ns looks (:require [looks.here :as here]))\n(println here/here)",
    );
    let java = javas().remove(0);
    for value in ["1", "2"] {
        let run = clojure(&world, &java, &lib, &["looks.clj"]).env("ONE", value);
        let warm = warm_as_cold(&world, &run);
        assert!(warm.text().starts_with(value), "{}", warm.text());
    }
    let other = clojure(&world, &java, &lib, &["looks.clj"]).within(world.path("work/other"));
    assert!(warm_as_cold(&world, &other).text().ends_with("/other\n"));
}

#[test]
fn an_edit_of_the_script_takes_effect_in_the_next_call() {
    let world = World::started();
    world.file("script.clj", "(println 1)");
    let run = clojure(&world, &javas()[0], "", &["script.clj"]);
    assert_eq!(warm_as_cold(&world, &run).text(), "1\n");
    world.file(
        "script.clj",
        "(ns script (:require [clojure.set :as set]))\n(println (set/union #{2}))",
    );
    assert_eq!(run.go_long().text(), "#{2}\n");
    // A file that hides a lib of a jar counts from the next call on, too.
    let run = clojure(&world, &javas()[0], "src", &["script.clj"]);
    assert_eq!(warm_as_cold(&world, &run).text(), "#{2}\n");
    world.file("src/clojure/set.clj", "(ns clojure.set)\n(defn union [x] [:mine x])");
    assert_eq!(run.go_long().text(), "[:mine #{2}]\n");
}
