//! `hob session eval`, `hob session list`, `hob session kill`.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use hob_tests::{End, World, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::editor::Editor;
use super::hob;

fn sessions(world: &World) -> Vec<Value> {
    let out = world.hob(&["session", "list", "--json"]).go();
    let all: Value = serde_json::from_str(&out.text()).unwrap();
    all["sessions"].as_array().unwrap().clone()
}

fn pid(world: &World, name: &str) -> u32 {
    let all = sessions(world);
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{all:?}"));
    u32::try_from(one["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_session_keeps_what_an_eval_defines_and_each_eval_leaves_a_receipt() {
    let world = World::new();
    let first = hob(&world, &["session", "eval", "-S", "work", "(def x 1)"]).go_long();
    first.succeeded();
    assert_eq!(first.text(), "#'user/x\n");
    let second = world.hob(&["session", "eval", "-S", "work", "x"]).go();
    second.succeeded();
    assert_eq!(second.text(), "1\n", "one that is there is joined without a look for libraries");
    assert_eq!(hob(&world, &["session", "eval", "-S", "work", "-q", "(+ x *1)"]).go().text(), "");
    assert_eq!(hob(&world, &["session", "eval", "-S", "work", "*1"]).go().text(), "2\n");
    let other = hob(&world, &["session", "eval", "-S", "other", "x"]).go_long();
    assert_eq!(other.end, End::Code(1), "{}", other.complaint());
    let records = world.records(10);
    let of = |name: &str| -> Vec<(Value, Value)> {
        let named = records.iter().filter(|one| one["program"]["name"] == name);
        named.map(|one| (one["reason"].clone(), one["outcome"]["code"].clone())).collect()
    };
    let told = |reason: &str, code: u8| (Value::from(reason), Value::from(code));
    let again = told("session", 0);
    assert_eq!(of("work"), [told("session-started", 0), again.clone(), again.clone(), again]);
    assert_eq!(of("other"), [told("session-started", 1)]);
    assert!(records.iter().all(|one| one["isolation"] == "session"), "{records:?}");
}

#[test]
fn output_errors_input_and_the_end_of_an_eval_are_the_callers() {
    let world = World::new();
    let code = "(println \"to out\") (binding [*out* *err*] (println \"to err\")) \
                (.println System/out \"by the system\") [(read-line) (read-line) (read-line)]";
    let run = hob(&world, &["session", "eval", "-q", code]).stdin("one\nzwölf\n");
    let out = run.go_long();
    out.succeeded();
    assert_eq!(out.text(), "to out\nby the system\n");
    assert_eq!(out.complaint(), "to err\n");
    let read = hob(&world, &["session", "eval", "*1"]).go();
    assert_eq!(read.text(), "[\"one\" \"zwölf\" nil]\n");
    let thrown = hob(&world, &["session", "eval", "1 (/ 1 0) 2"]).go();
    assert_eq!((thrown.end, thrown.text().as_str()), (End::Code(1), "1\n"));
    assert!(thrown.complaint().contains("Divide by zero"), "{}", thrown.complaint());
    let torn = hob(&world, &["session", "eval"]).stdin("(+ 1").go();
    assert_eq!(torn.end, End::Code(1));
    assert!(torn.complaint().contains("EOF while reading"), "{}", torn.complaint());
}

#[test]
fn a_command_reads_its_own_input_to_the_end_and_none_of_another() {
    let world = World::new();
    let eval =
        |code: &str, text: &str| hob(&world, &["session", "eval", code]).stdin(text).go_long();
    let first = eval("(read-line)", "first\nleft\n");
    assert_eq!(first.text(), "\"first\"\n", "{}", first.complaint());
    assert_eq!(eval("(read-line)", "second\n").text(), "\"second\"\n");
    let three = eval("[(read-line) (read-line) (read-line)]", "a\nb\n");
    assert_eq!(three.text(), "[\"a\" \"b\" nil]\n", "{}", three.complaint());
}

#[test]
fn an_interrupted_command_leaves_that_before_it_in_its_turn() {
    let world = World::new();
    hob(&world, &["session", "eval", "(def p (promise))"]).go_long().succeeded();
    let first = hob(&world, &["session", "eval", "(do (println :begun) @p)"]).start();
    wait::until("it evaluates", || (first.out() == b":begun\n").then_some(()));
    let second = hob(&world, &["session", "eval", "(println :never-first)"]).start();
    wait::until("it waits", || (sessions(&world)[0]["clients"] == 2).then_some(()));
    second.signal(Signal::INT);
    let _ = second.finish();
    let editor = hob(&world, &["session", "repl"]).start();
    let socket = world.hob_dir().join("main.repl");
    // It has its name before it listens.
    wait::until("it listens", || UnixStream::connect(&socket).ok());
    Editor::unix(&socket).cloned().eval("(deliver (deref (resolve 'p)) :given)");
    let first = first.finish();
    assert_eq!((first.end, first.text().as_str()), (End::Code(0), ":begun\n:given\n"));
    editor.signal(Signal::TERM);
    let _ = editor.finish();
}

/// What a project's nREPL is to hob, in short. As that does, it keeps of a dialogue the connection on
/// which it was cloned, and asks there for input.
const NREPL: [(&str, &str); 3] = [
    (
        "nrepl/transport.clj",
        r#"(ns nrepl.transport (:refer-clojure :exclude [send]) (:require [hob.wire :as wire]))
(defprotocol Transport (recv [this] [this timeout]) (send [this msg]))
(defn bencode [in ^java.io.OutputStream out]
  (let [say (wire/sender #(doto out (.write ^bytes %) (.flush)))]
    (reify Transport
      (recv [_] (into {} (map (fn [[k v]] [(keyword k) v])) (wire/read-value in)))
      (send [this msg] (say msg) this))))"#,
    ),
    (
        "nrepl/middleware/interruptible_eval.clj",
        "(ns nrepl.middleware.interruptible-eval)\n(def ^:dynamic *msg* nil)",
    ),
    (
        "nrepl/server.clj",
        r#"(ns nrepl.server
  (:require [nrepl.transport :as t] [nrepl.middleware.interruptible-eval :refer [*msg*]]))
(def ^:private dialogues (atom {}))
(defn- dialogue [transport name]
  (let [said (java.util.concurrent.LinkedBlockingQueue.)
        ask #(do (t/send transport {:id (:id *msg*) :session name :status ["need-input"]})
                 (.take said))]
    {:said said :ask ask}))
(defn default-handler [& _]
  (fn [{:keys [op transport session id] :as msg}]
    (let [say #(t/send transport (merge {:id id} (when session {:session session}) %))]
      (case op
        "clone" (let [name (str (java.util.UUID/randomUUID))]
                  (swap! dialogues assoc name (dialogue transport name))
                  (say {:new-session name :status ["done"]}))
        "eval" (future (binding [*msg* msg]
                         (say {:value (pr-str ((:ask (@dialogues session))))})
                         (say {:status ["done"]})))
        "stdin" (do (.put ^java.util.concurrent.LinkedBlockingQueue (:said (@dialogues session))
                          (:stdin msg))
                    (say {:status ["done"]}))
        (say {:status ["error" "unknown-op" "done"]})))))
(defn handle [handler transport]
  (loop [] (handler (assoc (t/recv transport) :transport transport)) (recur)))"#,
    ),
];

#[test]
fn a_projects_nrepl_asks_for_input_who_evaluates_and_not_who_has_cloned() {
    let world = World::new();
    for (name, text) in NREPL {
        world.file(&format!("project/{name}"), text);
    }
    let path = format!("{}:{}", super::libraries(), world.path("work/project").display());
    let eval = |text: &str| {
        world.hob(&["session", "eval", "(read)"]).env("HOB_CLOJURE", &path).stdin(text)
    };
    let first = eval("first\n").go_long();
    assert_eq!(first.text(), "\"first\\n\"\n", "{}", first.complaint());
    for text in ["second\n", "third\n"] {
        assert_eq!(eval(text).go().text(), format!("{text:?}\n"));
    }
    // A script's input goes to the script.
    let script = world.file("script.clj", "(prn (read-line) (read-line))");
    for text in ["fourth\n", "fifth\n"] {
        let run = world.hob(&["run", "-S", "main", &script.display().to_string()]).stdin(text);
        let out = run.env("HOB_CLOJURE", &path).go();
        assert_eq!(out.text(), format!("{:?} nil\n", text.trim()), "{}", out.complaint());
    }
}

#[test]
fn a_session_has_the_directory_and_the_environment_of_who_started_it() {
    let world = World::new();
    world.file("sub/here.txt", "found");
    let code = "[(slurp \"here.txt\") (System/getenv \"WHO\")]";
    let run =
        hob(&world, &["session", "eval", code]).within(world.path("work/sub")).env("WHO", "ada");
    let out = run.go_long();
    assert_eq!(out.text(), "[\"found\" \"ada\"]\n", "{}", out.complaint());
}

#[test]
fn two_clients_in_one_session_take_turns_and_both_are_answered() {
    let world = World::new();
    hob(&world, &["session", "eval", "(def turns (atom []))"]).go_long().succeeded();
    let code = |who: &str| {
        format!("(do (swap! turns conj :{who}) (Thread/sleep 20) (swap! turns conj :{who}) nil)")
    };
    let running: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|who| hob(&world, &["session", "eval", &code(who)]).start())
        .collect();
    for one in running {
        one.finish().succeeded();
    }
    let turns =
        hob(&world, &["session", "eval", "(map first (partition-by identity @turns))"]).go().text();
    assert_eq!(turns.matches(':').count(), 3, "none is between another's two: {turns}");
}

#[test]
fn kill_ends_one_by_name_and_who_was_in_it_is_told() {
    let world = World::new();
    hob(&world, &["session", "eval", "-S", "one", "1"]).go_long().succeeded();
    hob(&world, &["session", "eval", "-S", "two", "1"]).go_long().succeeded();
    let pids = [pid(&world, "one"), pid(&world, "two")];
    let looping =
        hob(&world, &["session", "eval", "-S", "one", "(println :begun) (while true)"]).start();
    looping.expect(":begun");
    world.hob(&["session", "kill", "one"]).go().succeeded();
    let told = looping.finish();
    assert_eq!(told.end, End::Code(125), "{}", told.complaint());
    assert!(
        told.complaint().contains("`hob session kill` ended the session"),
        "{}",
        told.complaint()
    );
    assert!(wait::ended(pids[0], Duration::from_secs(5)), "it is gone when kill returns");
    assert_eq!(sessions(&world).len(), 1);
    let missing = world.hob(&["session", "kill", "one"]).go();
    assert_eq!(missing.end, End::Code(1));
    assert!(missing.complaint().contains("there is no such session"), "{}", missing.complaint());
    world.hob(&["session", "kill", "all"]).go().succeeded();
    assert!(sessions(&world).is_empty());
    // What was killed can be started anew, and knows nothing.
    hob(&world, &["session", "eval", "-S", "one", "1"]).go_long().succeeded();
    assert_ne!(pid(&world, "one"), pids[0]);
}

#[test]
fn a_client_that_is_interrupted_ends_what_it_began_and_the_session_goes_on() {
    let world = World::new();
    hob(&world, &["session", "eval", "(def x 7)"]).go_long().succeeded();
    let sleeping =
        hob(&world, &["session", "eval", "(println :begun) (Thread/sleep 600000)"]).start();
    sleeping.expect(":begun");
    sleeping.signal(Signal::KILL);
    let _ = sleeping.finish();
    let after = hob(&world, &["session", "eval", "x"]).go();
    assert_eq!(after.text(), "7\n", "{}", after.complaint());
}

#[test]
fn what_cannot_be_started_says_why_and_what_to_do() {
    let world = World::new();
    let none = world.hob(&["session", "eval", "1"]).go();
    assert_eq!(none.end, End::Code(2));
    assert!(none.complaint().contains("HOB_CLOJURE"), "{}", none.complaint());
    let wrong = world.hob(&["session", "eval", "--cp", "/nowhere.jar", "1"]).go_long();
    assert_eq!(wrong.end, End::Code(126), "{}", wrong.complaint());
    assert!(wrong.complaint().contains("ClassNotFoundException"), "{}", wrong.complaint());
    let named = hob(&world, &["session", "eval", "-S", "a/b", "1"]).go();
    assert_eq!(named.end, End::Code(2));
    let home = hob(&world, &["session", "eval", "1"]).env("JAVA_HOME", "/nowhere").go();
    assert!(home.complaint().contains("JAVA_HOME names it"), "{}", home.complaint());
    hob(&world, &["session", "eval", "1"]).go_long().succeeded();
    let other = world.hob(&["session", "eval", "--cp", "/other.jar", "1"]).go();
    assert_eq!(other.end, End::Code(2));
    assert!(other.complaint().contains("has other libraries"), "{}", other.complaint());
}

#[test]
fn a_caller_of_another_priority_starts_none_and_joins_what_is_there() {
    let world = World::new();
    let lower =
        |code: &str| hob(&world, &["session", "eval", code]).under(&["nice", "-n", "5"]).go_long();
    let refused = lower("1");
    assert_eq!(refused.end, End::Code(126), "{}", refused.complaint());
    let told = refused.complaint();
    assert!(
        told.contains("another priority than the daemon") && told.contains("without `nice`"),
        "{told}"
    );
    hob(&world, &["session", "eval", "(def x 1)"]).go_long().succeeded();
    let joined = lower("(inc x)");
    assert_eq!((joined.end, joined.text().as_str()), (End::Code(0), "2\n"), "{joined:?}");
}

#[test]
fn a_session_that_exits_is_told_and_one_that_is_idle_or_too_large_is_ended() {
    let world = World::new();
    world.hob(&["start"]).env("HOB_SESSION_IDLE_S", "1").go().succeeded();
    let left = hob(&world, &["session", "eval", "(System/exit 3)"]).go_long();
    assert_eq!(left.end, End::Code(125));
    assert!(left.complaint().contains("ended with exit code 3"), "{}", left.complaint());
    hob(&world, &["session", "eval", "1"]).go_long().succeeded();
    wait::until("it ends, unused", || sessions(&world).is_empty().then_some(()));
    let world = World::new();
    world.hob(&["start"]).env("HOB_SESSION_MEMORY_MB", "1").go().succeeded();
    let large = hob(&world, &["session", "eval", "(Thread/sleep 600000)"]).go_long();
    assert!(large.complaint().contains("HOB_SESSION_MEMORY_MB"), "{}", large.complaint());
}

#[test]
fn stop_leaves_no_process_and_neither_does_a_daemon_that_is_killed() {
    let world = World::new();
    hob(&world, &["session", "eval", "-S", "one", "1"]).go_long().succeeded();
    let first = pid(&world, "one");
    world.stop();
    assert!(wait::ended(first, Duration::from_secs(1)));
    hob(&world, &["session", "eval", "-S", "one", "1"]).go_long().succeeded();
    let second = pid(&world, "one");
    hob_tests::run::kill(world.daemon(), Signal::KILL);
    assert!(wait::ended(second, Duration::from_secs(10)));
    // And the next daemon tidies up what that one left.
    hob(&world, &["session", "eval", "-S", "one", "1"]).go_long().succeeded();
}
