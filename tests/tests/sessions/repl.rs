//! `hob session repl`: what an editor finds, and what hob says to bytes that no editor sends.

use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use hob_tests::{End, Running, World, wait};
use rustix::process::Signal;

use super::editor::Editor;
use super::{hob, libraries};

/// A REPL that listens on a port.
struct Repl {
    running: Running,
    port: u16,
}

impl Repl {
    fn serve(world: &World, words: &[&str]) -> Repl {
        let all = [&["session", "repl", "-S", "work", "--port", "0"], words].concat();
        Repl::of(world, hob(world, &all).start())
    }

    fn of(world: &World, running: Running) -> Repl {
        let file = port_file(world);
        // One that was killed has left its file, where nothing listens.
        let port = wait::look(Duration::from_secs(60), || {
            let port = std::fs::read_to_string(&file).ok()?.trim().parse().ok()?;
            TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(port)
        });
        let port = port.unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(&running.err())));
        Repl { running, port }
    }

    fn editor(&self) -> Editor {
        Editor::tcp(self.port).cloned()
    }
}

fn port_file(world: &World) -> PathBuf {
    world.path("work/.nrepl-port")
}

#[test]
fn an_editor_finds_what_nrepl_has_and_names_go_with_the_server() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let mut editor = repl.editor();
    assert_eq!(editor.eval("(def x 41) (inc x)").text("value"), "#'user/x42");
    let said = editor.eval("(println 1) (/ 1 0)");
    assert_eq!(said.text("out"), "1\n");
    assert!(said.says("eval-error") && said.text("err").contains("Divide by zero"));
    let described = editor.ask("describe", &[]).all();
    for part in ["7:clojure", "4:java", "3:hob", "9:load-file", "11:completions"] {
        assert!(described.contains(part), "{part}: {described}");
    }
    let names = editor.ask("completions", &[("prefix", "clojure.string/jo")]).all();
    assert!(names.contains("clojure.string/join"), "{names}");
    let names = editor.ask("completions", &[("prefix", "ma"), ("ns", "user")]).all();
    assert!(names.contains("mapcat") && names.contains("macro"), "{names}");
    let known = editor.ask("lookup", &[("sym", "map"), ("ns", "user")]).all();
    assert!(known.contains("arglists-str") && known.contains("[f coll]"), "{known}");
    assert!(editor.ask("lookup", &[("sym", "nothing-of-it")]).says("lookup-error"));
    let file = "(ns app) (defn f [] 7)\n(f)";
    let loaded = editor.ask("load-file", &[("file", file), ("file-path", "src/app.clj")]);
    assert_eq!(loaded.text("value"), "7");
    assert_eq!(
        editor.eval("[(app/f) (ns-name *ns*) (:line (meta #'app/f))]").text("value"),
        "[7 user 1]"
    );
    editor.send("eval", "ask", &[("code", "(read-line)")]);
    let asked = editor.next().unwrap();
    assert!(String::from_utf8_lossy(&asked).contains("need-input"));
    editor.send("stdin", "give", &[("stdin", "typed\n")]);
    assert_eq!(editor.until_done("ask").text("value"), "\"typed\"");
    assert!(editor.ask("no-such-op", &[]).says("unknown-op"));
    let mut other = repl.editor();
    assert!(other.ask("ls-sessions", &[]).all().contains(&editor.session));
    assert!(editor.ask("close", &[]).says("session-closed"));
    assert!(!other.ask("ls-sessions", &[]).all().contains(&editor.session));
    // A Unix socket is there, too, port or not.
    let socket = world.hob_dir().join("work.repl");
    assert_eq!(Editor::unix(&socket).cloned().eval("x").text("value"), "41");
    repl.running.signal(Signal::TERM);
    assert_eq!(repl.running.finish().end, End::Code(0));
    assert!(!port_file(&world).exists() && !socket.exists());
    assert_eq!(
        hob(&world, &["session", "eval", "-S", "work", "x"]).go().text(),
        "41\n",
        "the session stays"
    );
}

#[test]
fn a_client_that_connects_by_a_socket_of_ipv6_is_served() {
    // Every client of a JVM does, to an address of IPv4 too.
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let mapped = std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    let mut editor = Editor::of(TcpStream::connect((mapped, repl.port)).unwrap()).cloned();
    assert_eq!(editor.eval("(+ 1 2)").text("value"), "3");
}

#[test]
fn what_an_eval_has_not_read_is_there_for_the_next_of_its_dialogue() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let mut editor = repl.editor();
    editor.ask("stdin", &[("stdin", "a\nb\n")]);
    assert_eq!(editor.eval("(read-line)").text("value"), "\"a\"");
    assert_eq!(editor.eval("(read-line)").text("value"), "\"b\"");
    editor.ask("stdin", &[("stdin", ":form\nc\n")]);
    assert_eq!(editor.eval("(read)").text("value"), ":form");
    assert_eq!(editor.eval("(read-line)").text("value"), "\"c\"", "the end of the form's line");
    // Clients say the end as an empty text, or as an empty list.
    for end in ["0:", "le"] {
        editor.send("eval", "ask", &[("code", "(read-line)")]);
        // The answer to the end that was sent before may come first.
        while !String::from_utf8_lossy(&editor.next().unwrap()).contains("need-input") {}
        let session = &editor.session.clone();
        let size = session.len();
        editor.raw(format!("d2:id1:e2:op5:stdin7:session{size}:{session}5:stdin{end}e").as_bytes());
        assert_eq!(editor.until_done("ask").text("value"), "nil");
    }
}

#[test]
fn an_eval_is_answered_as_nrepls_own_tests_ask() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let mut editor = repl.editor();
    // After a form that throws the next one follows, but for one that cannot be read.
    let said = editor.eval("5 (/ 5 0) (+ 5 6 7)");
    assert_eq!(said.text("value"), "518");
    assert!(said.says("eval-error") && said.text("err").contains("Divide by zero"));
    let torn = editor.eval("1 ) 2");
    assert_eq!(torn.text("value"), "1");
    assert!(torn.text("err").contains("Unmatched delimiter"), "{}", torn.all());
    // What a lazy sequence prints is output.
    let said = editor.eval("(map #(do (println %) :v) [1 2])");
    assert_eq!((said.text("out"), said.text("value")), ("1\n2\n".into(), "(:v :v)".into()));
    editor.eval("(set! *warn-on-reflection* true)");
    assert_eq!(editor.eval("*warn-on-reflection*").text("value"), "true");
    // Much is sent without a flush.
    editor.send("eval", "much", &[("code", "(do (dotimes [_ 10000] (print \"x\")) @(promise))")]);
    assert!(String::from_utf8_lossy(&editor.next().unwrap()).contains("xxxx"));
    // Which of the two ends is told first is not said.
    editor.send("interrupt", "stop much", &[]);
    editor.until_done("much");
    // What heeds an interrupt and comes to its end was interrupted all the same.
    let code = "(try (println :begun) (Thread/sleep 600000) (catch InterruptedException _))";
    editor.send("eval", "heeds", &[("code", code)]);
    while !String::from_utf8_lossy(&editor.next().unwrap()).contains(":begun") {}
    editor.send("interrupt", "stop", &[]);
    assert!(editor.until_done("heeds").says("interrupted"));
    for (op, pairs, status) in [
        ("eval", &[][..], "no-code"),
        ("eval", &[("code", "1"), ("ns", "no.such")][..], "namespace-not-found"),
        ("completions", &[], "completions-error"),
        ("lookup", &[], "lookup-error"),
    ] {
        let said = editor.ask(op, pairs);
        assert!(said.says(status) && said.says("error"), "{status}: {}", said.all());
    }
    let place = [("code", "(def there 1)"), ("file", "a.clj")];
    editor.ask("eval", &place);
    assert_eq!(editor.eval("(:file (meta #'there))").text("value"), "\"a.clj\"");
    let kept = [("code", "#?(:clj 1)"), ("read-cond", "preserve")];
    assert_eq!(editor.ask("eval", &kept).text("value"), "#?(:clj 1)");
    let empty = editor.ask("load-file", &[("file", "; nothing")]);
    assert!(!empty.all().contains("5:value"), "{}", empty.all());
    let mut without = Editor::tcp(repl.port);
    assert!(without.ask("interrupt", &[]).says("session-ephemeral"));
    let strange = without.ask("eval", &[("code", "1"), ("session", "no-such")]);
    assert!(strange.says("unknown-session"), "{}", strange.all());
}

#[test]
fn two_editors_have_dialogues_of_their_own_in_one_session() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let (mut ada, mut bob) = (repl.editor(), repl.editor());
    assert_ne!(ada.session, bob.session);
    ada.eval("(def shared 1) :ada");
    assert_eq!(bob.eval("shared").text("value"), "1");
    assert_eq!(ada.eval("*2").text("value"), "#'user/shared");
    // While one evaluates the other is answered.
    ada.send("eval", "long", &[("code", "(do (def p (promise)) (deref p))")]);
    wait::until("it waits", || {
        (bob.eval("(bound? (resolve 'p))").text("value") == "true").then_some(())
    });
    bob.eval("(deliver (deref (resolve 'p)) :given)");
    assert_eq!(ada.until_done("long").text("value"), ":given");
}

#[test]
fn an_interrupt_ends_what_it_names_and_nothing_else() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let (mut ada, mut bob) = (repl.editor(), repl.editor());
    assert!(ada.ask("interrupt", &[]).says("session-idle"));
    ada.send("eval", "sleep", &[("code", "(do (println :begun) (Thread/sleep 600000))")]);
    assert!(String::from_utf8_lossy(&ada.next().unwrap()).contains(":begun"));
    assert!(bob.ask("interrupt", &[("interrupt-id", "sleep")]).says("session-idle"));
    assert!(ada.ask("interrupt", &[("interrupt-id", "other")]).says("interrupt-id-mismatch"));
    ada.send("interrupt", "stop", &[("interrupt-id", "sleep")]);
    assert!(ada.until_done("sleep").says("interrupted"));
    assert_eq!(ada.eval("(+ 1 2)").text("value"), "3");
}

#[test]
fn a_loop_that_heeds_no_interrupt_is_told_and_goes_on_until_kill() {
    // From this version on a thread cannot be stopped. Where there is none the rest is as before.
    let newer = |name: &str| name.contains("-25-") || name.contains("-21-");
    let homes = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let home = homes.map(|entry| entry.path()).find(|path| newer(&path.display().to_string()));
    let Some(home) = home else { return println!("no JDK that cannot stop a thread") };
    let world = World::new();
    let served = hob(&world, &["session", "repl", "-S", "work", "--port"]).env("JAVA_HOME", home);
    let repl = Repl::of(&world, served.start());
    let mut ada = repl.editor();
    ada.eval("(def turning (atom 0))");
    ada.send("eval", "loop", &[("code", "(while true (swap! turning inc))")]);
    ada.send("interrupt", "stop", &[("interrupt-id", "loop")]);
    let told = ada.until_done("loop");
    assert!(
        told.says("interrupted") && told.text("err").contains("hob session kill"),
        "{}",
        told.all()
    );
    let turns = |ada: &mut Editor| ada.eval("@turning").text("value").parse::<u64>().unwrap();
    let before = turns(&mut ada);
    wait::until("it goes on", || (turns(&mut ada) > before).then_some(()));
    world.hob(&["session", "kill", "work"]).go().succeeded();
    let last = String::from_utf8_lossy(&ada.next().unwrap()).into_owned();
    assert!(last.contains("`hob session kill` ended the session"), "{last}");
    let end = repl.running.finish();
    assert_eq!(end.end, End::Code(125));
    assert!(
        end.complaint().contains("`hob session kill` ended the session"),
        "{}",
        end.complaint()
    );
}

#[test]
fn bytes_that_no_editor_sends_are_refused_with_the_reason_and_others_go_on() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let mut other = repl.editor();
    let deep = [b"d1:a".to_vec(), vec![b'l'; 10_000]].concat();
    for (bytes, reason) in [
        (&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], "HTTP/1.1 400 Bad Request"),
        (b"hello", "begins with `d`"),
        (&deep, "at most 64 deep"),
        (b"d9223372036854775808:", "at most 16777216 bytes"),
        (b"d-1:a", "a length is negative"),
        (b"d1:ai1e1:ai2ee", "a key stands twice"),
        (b"d1:ae", "a key has no value"),
    ] {
        let mut bad = Editor::tcp(repl.port);
        bad.raw(bytes);
        let said = bad.rest();
        assert!(said.contains(reason), "{}: {said}", String::from_utf8_lossy(bytes));
    }
    // Torn, and left: nothing that anyone hears of.
    Editor::tcp(repl.port).raw(b"d2:op4:ev");
    // Keys that are not in order are sent by clients that people use.
    let mut unsorted = Editor::tcp(repl.port);
    unsorted.raw(b"d2:op4:eval2:id1:74:code7:(+ 1 2)e");
    assert_eq!(unsorted.until_done("7").text("value"), "3");
    assert_eq!(other.eval("(+ 2 2)").text("value"), "4");
}

#[test]
fn a_client_that_leaves_amid_an_eval_leaves_it_to_its_session() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let mut ada = repl.editor();
    ada.send("eval", "1", &[("code", "(do (println :begun) (Thread/sleep 300) (def after 5))")]);
    assert!(String::from_utf8_lossy(&ada.next().unwrap()).contains(":begun"));
    drop(ada);
    let mut bob = repl.editor();
    wait::until("it is done", || {
        (bob.eval("(resolve 'after)").text("value") != "nil").then_some(())
    });
    // One that reads nothing holds up itself alone.
    let mut slow = repl.editor();
    slow.send(
        "eval",
        "1",
        &[("code", "(dotimes [_ 100000] (println (apply str (repeat 80 \"x\"))))")],
    );
    assert_eq!(bob.eval("after").text("value"), "5");
    world.hob(&["status"]).go().succeeded();
    assert_eq!(slow.until_done("1").text("out").len(), 8_100_000);
}

#[test]
fn a_token_is_asked_for_on_the_port_where_one_was_named() {
    let world = World::new();
    let repl = Repl::serve(&world, &["--token", "a-secret"]);
    for token in [&[][..], &[("token", "a-secreT")]] {
        let mut wrong = Editor::tcp(repl.port);
        wrong.send("clone", "1", token);
        let said = wrong.rest();
        assert!(said.contains("another `token`") && said.contains("4:done"), "{said}");
    }
    let mut right = Editor::tcp(repl.port);
    let told = right.ask("clone", &[("token", "a-secret")]);
    right.session = told.text("new-session");
    assert_eq!(right.eval("(+ 1 2)").text("value"), "3");
    // The socket is in a directory that only its user can enter.
    assert_eq!(
        Editor::unix(&world.hob_dir().join("work.repl")).cloned().eval("1").text("value"),
        "1"
    );
}

#[test]
fn another_users_process_is_refused_by_name() {
    if !rustix::process::getuid().is_root() {
        return println!("another user's process can only be started by root");
    }
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let code = format!(
        "import socket; s = socket.create_connection(('127.0.0.1', {})); \
         s.sendall(b'd2:id1:12:op5:clonee'); print(s.makefile('rb').read())",
        repl.port
    );
    let words = ["setpriv", "--reuid", "65534", "--clear-groups", "python3", "-c", &code];
    let run = world.run(&words);
    let out = run.go();
    assert!(out.text().contains("another user"), "{} {}", out.text(), out.complaint());
}

#[test]
fn a_client_that_others_wrote_is_served() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/nrepl-client");
    assert!(folder.join("ready").exists(), "{}: missing; run `.ci/deps`", folder.display());
    let python = folder.join("bin/python").display().to_string();
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let script = format!(
        "import nrepl\n\
         c = nrepl.connect('nrepl://localhost:{}')\n\
         c.write({{'op': 'eval', 'code': '(reduce + (range 20))', 'id': '1'}})\n\
         while True:\n    \
             r = c.read()\n    \
             if 'value' in r: print(r['value'])\n    \
             if 'done' in r.get('status', []): break\n\
         c.close()\n",
        repl.port
    );
    let script = world.file("client.py", script);
    let out = world.run(&[&python, &script.display().to_string()]).go();
    assert_eq!(out.text(), "190\n", "{}", out.complaint());
}

#[test]
fn a_repl_that_is_started_again_or_twice_says_so() {
    let world = World::new();
    let repl = Repl::serve(&world, &[]);
    let twice = hob(&world, &["session", "repl", "-S", "work"]).go();
    assert!(twice.complaint().contains("another `hob session repl`"), "{}", twice.complaint());
    repl.running.signal(Signal::KILL);
    let _ = repl.running.finish();
    // What the killed one left is taken over.
    let again = Repl::serve(&world, &[]);
    assert_eq!(again.editor().eval("1").text("value"), "1");
    again.running.signal(Signal::INT);
    assert_eq!(again.running.finish().end, End::Code(0));
    assert!(!libraries().is_empty());
}
