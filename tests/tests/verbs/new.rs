//! `hob new`: each project does at once what it says, and what is there is left.

use hob_tests::site::Site;
use hob_tests::{End, Run, World};

/// Makes a project, of which each step is told, and returns how `hob` is called in it.
fn made<'a>(world: &'a World, kind: &str, steps: &[&str]) -> impl Fn(&[&str]) -> Run + use<'a> {
    let made = world.hob(&["new", kind, "hello"]).go();
    made.succeeded();
    for step in steps {
        assert!(made.text().contains(step), "{step}: {}", made.text());
    }
    let within = world.path("work/hello");
    move |words| world.hob(words).within(within.clone())
}

/// What a project of a script and a function does, by the ends of its files.
fn answers(kind: &str, test: &[&str]) {
    let world = World::started();
    let step = format!("hob run main.{kind} Ada");
    let hob = made(&world, kind, &[&step, "hob ask hello Ada", &format!("hob {}", test.join(" "))]);
    let main = format!("main.{kind}");
    let run = hob(&["run", &main, "Ada", "Bob"]);
    assert_eq!(world.warm_as_cold(&run).text(), "Hello, Ada and Bob!\n");
    hob(&["trust"]).go().succeeded();
    assert_eq!(hob(&["ask", "hello", "Ada Bob"]).go().text(), "Hello, Ada and Bob!");
    hob(test).go().succeeded();
    let core = world.path(format!("work/hello/core.{kind}"));
    let text = std::fs::read_to_string(&core).unwrap();
    assert!(text.contains("What hello says"), "{text}");
    std::fs::write(&core, text.replace("Hello", "Good-bye")).unwrap();
    assert_eq!(hob(test).go().end, End::Code(1), "its test can fail");

    let again = world.hob(&["new", kind, "hello"]).go();
    assert_eq!(again.end, End::Code(1));
    assert!(again.complaint().contains("is there already"), "{}", again.complaint());
    assert_eq!(hob(&["run", &main]).go().text(), "Good-bye, world!\n");
}

#[test]
fn a_project_of_python_runs_answers_and_tests_itself() {
    answers("py", &["run", "-m", "unittest"]);
}

#[test]
fn a_project_of_ruby_runs_answers_and_tests_itself() {
    answers("rb", &["run", "test.rb"]);
}

#[test]
fn a_project_of_hooks_runs_for_one_and_for_each_target() {
    let world = World::started();
    let hob = made(&world, "hooks", &["--for-each targets.csv"]);
    let once = hob(&["hooks", "run", "hooks", "--set", "NAME=Ada"]).go();
    assert!(once.end == End::Code(0) && once.text().contains("Hello, Ada!"), "{once:?}");
    assert_eq!(hob(&["hooks", "run", "hooks", "--set", "NAME="]).go().end, End::Code(1));
    let each = hob(&["hooks", "run", "hooks", "--for-each", "targets.csv", "--tag"]).go();
    assert!(each.text().contains("Bob\tHello, Bob!"), "{each:?}");
}

#[test]
fn a_project_of_an_app_is_served() {
    let world = World::new();
    let hob = made(&world, "app", &["hob serve", "/hello?name=Ada"]);
    hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &["hello"]);
    assert!(site.get("/").text().contains("<h1>hello</h1>"));
    let answer = site.get("/hello?name=A%3Cb").text();
    assert!(answer.contains("Hello, A&lt;b!"), "{answer}");
    site.stop().succeeded();
}

#[test]
fn a_project_of_an_actor_is_what_the_workspace_builds_and_tests() {
    let world = World::new();
    let _hob = made(&world, "actor", &["cargo run"]);
    let run = world.run(&[env!("CARGO_BIN_EXE_new-actor"), "Ada", "Bob"]).go();
    assert_eq!(run.text(), "Hello, Ada! You are number 1.\nHello, Bob! You are number 2.\n");
    let manifest = std::fs::read_to_string(world.path("work/hello/Cargo.toml")).unwrap();
    assert!(
        manifest.contains("name = \"hello\"\n") && manifest.contains("hob-actor"),
        "{manifest}"
    );
    assert!(world.path("work/hello/src/main.rs").exists());
}
