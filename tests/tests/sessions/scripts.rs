//! `hob run -S`: scripts in a session.

use hob_tests::{End, World};

use super::hob;

const SCRIPT: &str = "#!/usr/bin/env clojure\n\
    (ns report (:require [clojure.string :as string]))\n\
    (defn line [] (string/join \",\" *command-line-args*))\n\
    (println (line) (str *ns*) (read-line))\n";

#[test]
fn a_script_has_its_arguments_and_its_input_and_is_forgotten_unless_it_is_to_be_kept() {
    let world = World::new();
    world.file("report.clj", SCRIPT);
    let run = |words: &[&str]| hob(&world, words).stdin("typed\n").go_long();
    let first = run(&["run", "-S", "work", "report.clj", "a", "--b"]);
    assert_eq!(first.text(), "a,--b report typed\n", "{}", first.complaint());
    let known =
        || hob(&world, &["session", "eval", "-S", "work", "(some? (find-ns 'report))"]).go().text();
    assert_eq!(known(), "false\n");
    run(&["run", "-S", "work", "--keep", "report.clj"]).succeeded();
    assert_eq!(known(), "true\n");
    let records = world.records(4);
    assert!(records.iter().all(|one| one["isolation"] == "session"), "{records:?}");
}

#[test]
fn the_shim_for_scripts_with_a_main_is_as_the_page_says() {
    let page = include_str!("../../../docs/clojure.md");
    let shim = page.split("```clojure\n").nth(1).unwrap().split("```").next().unwrap();
    let world = World::new();
    world.file("genie.clj", shim);
    world.file(
        "old.clj",
        "(ns old.script)\n(defn main [ctx args] (println (sort (keys ctx)) args))",
    );
    let run = hob(&world, &["run", "-S", "work", "genie.clj", "old.clj", "a", "b"]);
    let out = run.go_long();
    assert_eq!(out.text(), "(:cwd :script) (a b)\n", "{}", out.complaint());
    // The last namespace counts, or none; and a script may load another from beside it.
    world.file("lib.clj", "(ns lib)\n(def x 7)");
    world.file(
        "two.clj",
        "(genied.client/load-relative-file \"lib.clj\")\n(ns one)\n(defn main [& _] :wrong)\n\
         (ns two)\n(defn main [_ args] (println lib/x args))",
    );
    world.file("none.clj", "(defn main [_ args] (println :none args))");
    let run = |script: &str| hob(&world, &["run", "-S", "work", "genie.clj", script, "a"]).go();
    assert_eq!(run("two.clj").text(), "7 (a)\n", "{}", run("two.clj").complaint());
    assert_eq!(run("none.clj").text(), ":none (a)\n");
}

#[test]
fn a_new_project_runs_and_tests_itself_and_what_is_there_is_left() {
    let world = World::new();
    let made = world.hob(&["new", "clj", "hello"]).go();
    assert!(made.text().contains("hob run main.clj"), "{} {}", made.text(), made.complaint());
    let within = |words: &[&str]| hob(&world, words).within(world.path("work/hello")).go_long();
    assert_eq!(within(&["run", "main.clj", "Ada", "Bob"]).text(), "Hello, Ada and Bob!\n");
    assert_eq!(within(&["run", "-S", "work", "main.clj"]).text(), "Hello, world!\n");
    let tested = within(&["run", "test.clj"]);
    assert_eq!(tested.end, End::Code(0), "{}", tested.complaint());
    assert!(tested.text().contains("0 failures, 0 errors"), "{}", tested.text());
    let core = std::fs::read_to_string(world.path("work/hello/core.clj")).unwrap();
    world.file("hello/core.clj", core.replace("Hello", "Good-bye"));
    assert_eq!(within(&["run", "test.clj"]).end, End::Code(1));
    let again = world.hob(&["new", "clj", "hello"]).go();
    assert!(again.end == End::Code(1) && again.complaint().contains("is there already"));
    assert_eq!(within(&["run", "main.clj"]).text(), "Good-bye, world!\n");
    for name in ["Hello", "a/b", "", "-x", "1a"] {
        let bad = world.hob(&["new", "clj", "--", name]).go();
        assert_eq!(bad.end, End::Code(2), "{name}: {}", bad.complaint());
    }
}

#[test]
fn two_scripts_of_one_name_do_not_see_each_other() {
    let world = World::new();
    world.file("one.clj", "(def x 1) (defn f [] x) (println (f))");
    world.file("two.clj", "(println (resolve 'x) (resolve 'f))");
    assert_eq!(hob(&world, &["run", "-S", "work", "one.clj"]).go_long().text(), "1\n");
    assert_eq!(hob(&world, &["run", "-S", "work", "two.clj"]).go().text(), "nil nil\n");
}

#[test]
fn a_script_that_throws_or_is_not_there_fails_by_name() {
    let world = World::new();
    world.file("bad.clj", "(println :before)\n(/ 1 0)");
    let bad = hob(&world, &["run", "-S", "work", "bad.clj"]).go_long();
    assert_eq!((bad.end, bad.text().as_str()), (End::Code(1), ":before\n"));
    assert!(bad.complaint().contains("bad.clj:2"), "{}", bad.complaint());
    let none = hob(&world, &["run", "-S", "work", "none.clj"]).go();
    assert_eq!(none.end, End::Code(127));
    assert!(none.complaint().contains("no such script"), "{}", none.complaint());
    world.file("a.txt", "");
    let other = hob(&world, &["run", "-S", "work", "a.txt"]).go();
    assert_eq!(other.end, End::Code(2));
    let cold = hob(&world, &["run", "-S", "work", "--cold", "bad.clj"]).go();
    assert_eq!(cold.end, End::Code(2), "{}", cold.complaint());
}

#[test]
fn many_scripts_leave_the_memory_of_classes_flat() {
    let world = World::new();
    world.file("many.clj", "(ns many)\n(defn f [x] (map inc x))\n(defn g [] (f [1 2]))\n(g)");
    let path = world.path("work/many.clj").display().to_string();
    hob(&world, &["run", "-S", "work", "many.clj"]).go_long().succeeded();
    // The session's own op, from within: a process for each would take minutes.
    let round = format!(
        "(do (dotimes [_ 300] (#'hob.session/run-script {{\"file\" {path:?}}})) (System/gc) \
         (.getLoadedClassCount (java.lang.management.ManagementFactory/getClassLoadingMXBean)))"
    );
    let count = || {
        let out = hob(&world, &["session", "eval", "-S", "work", &round]).go_long();
        out.text().trim().parse::<u64>().unwrap_or_else(|_| panic!("{}", out.complaint()))
    };
    count();
    let (second, third) = (count(), count());
    assert!(third < second + 300, "900 scripts of 3 classes each: {second}, then {third}");
}
