//! Bad input: each gets one line with the cause, and a tip or next step that is right.

use hob_tests::{End, Outcome, World};

/// What is typed, the exit code, and what the line must hold.
type Case = (&'static [&'static str], i32, &'static str);

/// A mistyped verb, or a program in its place.
const VERBS: [Case; 14] = [
    (&["rnu", "hello.py"], 2, "did you mean `hob run hello.py`?"),
    (&["sh", "--version"], 2, "to run the program: `hob run sh --version`"),
    (&["hello.py", "a b"], 2, "to run the program: `hob run hello.py 'a b'`"),
    (&["./hello.py"], 2, "to run the program: `hob run ./hello.py`"),
    (&["no-such-word"], 2, "`hob help --all` lists the verbs"),
    (&["stauts", "--json"], 2, "did you mean `hob status --json`?"),
    (&["version"], 2, "did you mean `hob --version`?"),
    (&["help", "rnu"], 2, "did you mean `hob help run`?"),
    (&["help", "hooks", "nothing"], 2, "`hob help hooks` lists"),
    (&["hooks", "help", "run"], 2, "did you mean `hob help hooks run`?"),
    (&["hooks", "lsit", "hooks"], 2, "did you mean `hob hooks list hooks`?"),
    (&["trace", "exprt", "otlp"], 2, "did you mean `hob trace export otlp`?"),
    (&["serve", "relod", "/shop"], 2, "did you mean `hob serve reload /shop`?"),
    (&["shim", "install", "black"], 2, "there are add, remove, list"),
];

/// A mistyped option or value.
const OPTIONS: [Case; 23] = [
    (&["--jsn", "status"], 2, "did you mean `hob status --json`?"),
    (&["--json", "status"], 2, "did you mean `hob status --json`?"),
    (&["-n", "3", "log"], 2, "did you mean `hob log -n 3`?"),
    (&["--days=3", "--json", "gain"], 2, "did you mean `hob gain --days=3 --json`?"),
    (&["run", "--colld", "hello.py"], 2, "did you mean `hob run --cold hello.py`?"),
    (&["run", "--timeot=5s", "hello.py"], 2, "did you mean `hob run --timeout=5s hello.py`?"),
    (&["run", "--verbose", "hello.py"], 2, "`hob help run` lists them"),
    (&["run", "--timeout", "5x", "hello.py"], 2, "5s, 1m30s or 2h"),
    (&["run", "--timeout", "90", "hello.py"], 2, "a time needs a unit: 200ms, 5s, 1m30s or 2h"),
    (&["hooks", "run", "hooks", "--grace", "9"], 2, "a time needs a unit: 200ms, 5s"),
    (&["run", "--timeout"], 2, "`hob help run` shows which"),
    (&["run", "--isolation", "frok", "hello.py"], 2, "one of spawn, standby, fork"),
    (&["run", "--ahead", "65", "hello.py"], 2, "a number from 0 to 64"),
    (&["run", "--status-fd", "77", "hello.py"], 2, "`--status-fd 3 3>outcome`"),
    (&["--cold", "hello.py"], 2, "did you mean `hob run --cold hello.py`?"),
    (&["-m", "json.tool"], 2, "did you mean `hob run -m json.tool`?"),
    (&["--verison"], 2, "did you mean `hob --version`?"),
    (&["last", "--jsn"], 2, "did you mean `hob last --json`?"),
    (&["log", "-n", "many"], 2, "-n many: not a whole number"),
    (&["gain", "--days", "900"], 2, "not a number from 1 to 92"),
    (&["completions", "zhs"], 2, "did you mean `hob completions zsh`?"),
    (&["ask", "greet", "--count", "0"], 2, "not a number of at least 1"),
    (&["trust", "--list", "--remove"], 2, "--list does not go with --remove"),
];

/// What is left out, is too much, or is not there.
const WORDS: [Case; 19] = [
    (&["run"], 2, "as in `hob run black src`"),
    (&["run", "--"], 2, "as in `hob run -- black src`"),
    (&["run", "-m"], 2, "as in `hob run -m pytest -q`"),
    (&["run", "helo.py"], 127, "did you mean `hello.py`?"),
    (&["run", "hello"], 127, "did you mean `hello.py`?"),
    (&["run", "tool"], 127, "did you mean `./tool`?"),
    (&["run", "nothing.py"], 127, "there is no such file in this folder"),
    (&["run", "no/hello.py"], 127, "there is no folder no"),
    (&["run", "pythn3", "hello.py"], 127, "did you mean `python3`?"),
    (&["run", "no-such-program"], 127, "install it, or name it by its path"),
    (&["run", "status"], 127, "did you mean `hob status`?"),
    (&["run", "./script"], 126, "`chmod +x ./script` makes it a program"),
    (&["run", "./hooks"], 126, "name a program in it"),
    (&["doctor", "now"], 2, "now: one word too many; `hob help doctor`"),
    (&["hooks", "run"], 2, "as in `hob hooks run hooks`"),
    (&["dead", "drop"], 2, "as in `hob dead drop --all`"),
    (&["why"], 2, "as in `hob why "),
    (&["serve", "nowhere"], 1, "no such directory; name one"),
    (&["shim", "add", "no-such-program"], 1, "install it first"),
];

/// The commands of hob's in a line, as `hob help` takes their verbs.
fn verbs_in(line: &str) -> Vec<Vec<&str>> {
    let commands = line.split('`').filter_map(|part| part.strip_prefix("hob "));
    let is_verb = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase());
    // Only groups have verbs of their own.
    let groups = ["hooks", "shim", "dead"];
    let verbs = commands.map(|command| {
        let mut words: Vec<&str> = command.split(' ').take_while(is_verb).collect();
        let many = words.first().is_some_and(|first| groups.contains(first));
        words.truncate(if many { 2 } else { 1 });
        words
    });
    verbs.collect()
}

fn world() -> World {
    let world = World::new();
    world.file("hello.py", "print('hello')\n");
    world.executable("tool", "#!/bin/sh\n");
    world.file("script", "#!/bin/sh\n");
    world.executable("hooks/10-first", "#!/bin/sh\n");
    world
}

#[test]
fn each_bad_input_gets_one_line_with_a_tip_that_hits() {
    let world = world();
    for (words, code, tip) in VERBS.iter().chain(&OPTIONS).chain(&WORDS) {
        // No daemon is wanted to say that something is wrong.
        let outcome = world.hob(words).env("HOB", "0").go();
        let said = outcome.complaint();
        assert_eq!(outcome.end, End::Code(*code), "{words:?}: {said}");
        assert_eq!((outcome.text().as_str(), said.lines().count()), ("", 1), "{words:?}: {said}");
        assert!(said.starts_with("hob: ") && said.contains(tip), "{words:?}: {said}");
        for verbs in verbs_in(&said) {
            let help = world.hob(&["help"]).args(&verbs).go();
            assert_eq!(help.end, End::Code(0), "{words:?} offers {verbs:?}: {said}");
        }
    }
    assert!(!world.hob_dir().exists(), "a daemon was started");
}

#[test]
fn a_daemon_says_the_same_of_what_cannot_be_run() {
    let world = world();
    world.hob(&["start"]).go().succeeded();
    for (words, code, _) in WORDS.iter().filter(|(_, code, _)| *code > 125) {
        let (plain, through) = (world.hob(words).env("HOB", "0").go(), world.hob(words).go());
        assert_eq!(plain.end, End::Code(*code), "{words:?}");
        assert_eq!((through.end, through.complaint()), (plain.end, plain.complaint()), "{words:?}");
    }
}

#[test]
fn each_help_page_has_examples_and_is_had_by_both_ways() {
    let world = World::new();
    for words in [&["run"][..], &["hooks", "run"], &["trust"], &["dead", "retry"], &["help"]] {
        let asked: Vec<Outcome> = [
            world.hob(&["help"]).args(words).env("COLUMNS", "80").go(),
            world.hob(words).args(&["--help"]).env("COLUMNS", "80").go(),
        ]
        .into();
        asked.iter().for_each(Outcome::succeeded);
        assert_eq!(asked[0].text(), asked[1].text(), "{words:?}");
        let example = format!("\n  hob {}", words.join(" "));
        assert!(asked[0].text().contains("Examples:\n"), "{words:?}: {}", asked[0].text());
        assert!(asked[0].text().contains(&example), "{words:?}: {}", asked[0].text());
    }
}

#[test]
fn no_help_page_points_to_a_file_that_only_the_repository_has() {
    let world = World::new();
    for words in
        [&["--help"][..], &["help", "serve"], &["help", "trust"], &["help", "hooks", "run"]]
    {
        let help = world.hob(words).go();
        help.succeeded();
        assert!(!help.text().contains("docs/"), "{words:?}: {}", help.text());
    }
}

#[test]
fn a_directory_whose_path_is_too_long_is_named_by_every_verb() {
    let world = World::new();
    world.file("hello.py", "print('hello')\n");
    let long = world.path("l".repeat(120));
    let hob = |words: &[&str]| world.hob(words).env("HOB_DIR", &long).go();
    let run = hob(&["run", "hello.py"]);
    assert_eq!((run.end, run.text().as_str()), (End::Code(0), "hello\n"));
    assert!(run.complaint().contains("leave room for a socket; running without hob"), "{run:?}");
    for verb in ["status", "start", "stop", "top", "restart"] {
        let outcome = hob(&[verb]);
        let said = outcome.complaint();
        assert_eq!(outcome.end, End::Code(1), "{verb}: {said}");
        assert!(said.contains("set HOB_DIR to a shorter path"), "{verb}: {said}");
        assert!(!said.contains("`hob start`"), "{verb}: {said}");
    }
    assert!(!long.exists(), "something was made there");
}
