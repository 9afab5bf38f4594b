//! What a fork would repeat: numbers drawn at random in warm calls differ from call to call as
//! they do cold, and what was seeded on purpose is the same as cold.

use std::collections::BTreeSet;

use hob_tests::terminal::Called;
use hob_tests::{Terminal, World};

/// Warm calls that are compared.
const CALLS: usize = 8;

/// The interpreter that has numpy: `HOB_NUMPY_PYTHON`, or the one that everything else uses.
fn with_numpy() -> String {
    std::env::var("HOB_NUMPY_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Whether this interpreter can run this; if not, says so.
fn can(world: &World, python: &str, code: &str) -> bool {
    let can = world.run(&[python, "-c", code]).go().end == hob_tests::End::Code(0);
    if !can {
        hob_tests::skipped(&format!("this fails here: {python} -c '{code}'"));
    }
    can
}

/// Runs the script warm several times; each line of its output must differ between all of them.
fn never_repeats(world: &World, python: &str, script: &str) {
    world.file("draws.py", script);
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let outcome = world.warmed(&["run", python, "draws.py"]);
        outcome.succeeded();
        calls.push(outcome.text());
    }
    let lines = calls[0].lines().count();
    assert!(lines > 1, "{calls:?}");
    for number in 0..lines {
        let drawn: BTreeSet<_> = calls.iter().map(|call| call.lines().nth(number)).collect();
        assert_eq!(drawn.len(), CALLS, "line {number} of {script}: {drawn:?}");
    }
}

#[test]
fn random_numbers_and_names_do_not_repeat() {
    let world = World::started();
    let script = "import os, random, secrets, ssl, tempfile, uuid\n\
        print(random.random())\nprint(random.SystemRandom().random())\nprint(random.Random().random())\n\
        print(uuid.uuid1())\nprint(uuid.uuid4())\nprint(secrets.token_hex())\n\
        print(ssl.RAND_bytes(16))\nprint(os.urandom(16))\n\
        print(tempfile.mktemp())\nprint(tempfile.mkdtemp())\n";
    if can(&world, "python3", "import ssl") {
        never_repeats(&world, "python3", script);
    }
}

#[test]
fn generators_that_a_preloaded_module_made_do_not_repeat() {
    let world = World::started();
    world.file("makes.py", "import random\nown = random.Random()\nown.random()\nrandom.random()\n");
    let script = "import makes, random\nprint(makes.own.random())\nprint(random.random())\n";
    never_repeats(&world, "python3", script);
}

#[test]
fn numpys_generators_do_not_repeat() {
    let world = World::started();
    world.file("makes.py", "import numpy as np\nown = np.random.default_rng()\nnp.random.rand()\n");
    let script = "import makes, numpy as np\nprint(makes.own.random())\nprint(np.random.rand())\n\
        print(np.random.default_rng().random())\nprint(np.random.RandomState().rand())\n";
    if can(&world, &with_numpy(), "import numpy") {
        never_repeats(&world, &with_numpy(), script);
    }
}

#[test]
fn what_a_module_seeds_on_purpose_is_the_same_as_cold() {
    let world = World::started();
    let makes = "import random\nrandom.seed(5)\nrandom.random()\nown = random.Random(6)\n";
    world.file("makes.py", makes);
    world.file("draws.py", "import makes, random\nprint(random.random(), makes.own.random())\n");
    world.warm_as_cold(&world.hob(&["run", "draws.py"]));
}

#[test]
fn what_a_module_seeds_in_numpy_is_the_same_as_cold() {
    let world = World::started();
    let python = with_numpy();
    if !can(&world, &python, "import numpy") {
        return;
    }
    let makes = "import numpy as np\nnp.random.seed(5)\nown = np.random.default_rng(6)\n";
    world.file("makes.py", makes);
    world.file(
        "draws.py",
        "import makes, numpy as np\nprint(np.random.rand(), makes.own.random())\n",
    );
    world.warm_as_cold(&world.hob(&["run", "draws.py"]));
}

#[test]
fn hooks_of_preloaded_modules_run_in_each_copy() {
    let world = World::started();
    // As a module does that must not share a connection: cold no fork happens, so that the hook
    // is what makes the warm call right.
    let pool = "import os\nowner = os.getpid()\n\ndef renew():\n    global owner\n    owner = os.getpid()\n\n\nos.register_at_fork(after_in_child=renew)\n";
    world.file("pool.py", pool);
    world.file("uses.py", "import os, pool\nprint(pool.owner == os.getpid())\n");
    let outcome = world.warm_as_cold(&world.hob(&["run", "uses.py"]));
    assert_eq!(outcome.text(), "True\n");
}

#[test]
fn copies_of_one_zygote_hash_alike_and_a_seed_of_the_callers_is_its_own() {
    let world = World::started();
    world.file("hashes.py", "print(hash('text'))\n");
    let one = world.warmed(&["run", "hashes.py"]).text();
    assert_eq!(one, world.warmed(&["run", "hashes.py"]).text());
    let seeded = world.hob(&["run", "hashes.py"]).env("PYTHONHASHSEED", "3");
    let cold = world.run(&["python3", "hashes.py"]).env("PYTHONHASHSEED", "3").go();
    let warm = world.warm(&seeded, |outcome| assert_eq!(outcome, &cold));
    assert_ne!(warm.text(), one);
}

/// `def main(arguments=sys.argv)` is how many programs start: what is kept there must be the list
/// that the caller's arguments are put into.
#[test]
fn arguments_kept_where_a_module_was_loaded_are_the_callers() {
    let world = World::started();
    let text = "import functools, sys\ndef main(arguments=sys.argv, *, more=sys.argv):\n    return arguments, more\nclass Held:\n    kept = sys.argv\npartial = functools.partial(main, sys.argv)\npair = sys.argv, 1\ndef closure(held):\n    return lambda: held\ninner = closure(sys.argv)\n";
    world.file("keeps.py", text);
    world.file("shows.py", "import keeps, sys\nheld = *keeps.main(), keeps.Held.kept, keeps.partial()[0], keeps.pair[0], keeps.inner()\nprint(sys.argv, [each is sys.argv for each in held], type(sys.argv), sys.argv[1:])\n");
    for words in [&["one"][..], &["another", "two"]] {
        world.warm_as_cold(&world.hob(&["run", "shows.py"]).args(words));
    }
}

/// Who asks only how many arguments there are, or for the first, is loaded ahead, and hears what
/// is so in its call.
#[test]
fn a_module_that_counts_the_arguments_while_it_is_loaded_counts_the_callers() {
    let world = World::started();
    world.file("counts.py", "import sys\nseen = len(sys.argv), sys.argv[0]\n");
    world.file("shows.py", "import counts\nprint(counts.seen)\n");
    let link = world.path("work/other.py");
    std::os::unix::fs::symlink("shows.py", &link).expect("a link can be made");
    for (words, seen) in [
        (&["shows.py", "one"][..], "(2, 'shows.py')\n"),
        (&["shows.py"], "(1, 'shows.py')\n"),
        (&["./shows.py", "one", "two"], "(3, './shows.py')\n"),
        (&["other.py", "one"], "(2, 'other.py')\n"),
    ] {
        let mut run = vec!["run"];
        run.extend(words);
        let warm = world.warm(&world.hob(&run), |outcome| {
            let shown = String::from_utf8_lossy(&outcome.out).into_owned();
            assert!(shown.starts_with(seen), "{words:?}: {shown}");
        });
        assert_eq!(String::from_utf8_lossy(&warm.out), seen);
    }
}

/// What a terminal-less call would see is what a zygote sees: the module is loaded ahead for such
/// calls, and in the copy, where its caller's terminal is to be seen, for the others.
#[test]
fn a_module_that_looks_for_a_terminal_is_loaded_ahead_for_calls_without_one() {
    let world = World::started();
    world.file("looks.py", "import sys\nterminal = sys.stdout.isatty()\n");
    world.file("shows.py", "import looks\nprint(looks.terminal)\n");
    assert_eq!(world.warmed(&["run", "shows.py"]).out, b"False\n");
    let calls = "n=0; while [ $n -lt 400 ]; do n=$((n + 1)); \"$0\" run shows.py; \"$0\" last --json | grep -q '\"warm\": *true' && break; done";
    let run = world.run(&["sh", "-c", calls]).args(&[world.binary()]);
    let (_, shown) = Terminal::open(&run).finish();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert_eq!(world.records(1)[0]["warm"], true);
    assert!(shown.lines().all(|line| line == "True"), "{shown}");
    assert_eq!(world.warmed(&["run", "shows.py"]).out, b"False\n");
}

#[test]
fn a_module_that_looks_at_the_call_while_it_is_loaded_sees_the_callers() {
    let world = World::started();
    world.file("looks.py", "import os, sys\nfrom os import isatty\nfrom sys import argv\narguments = sys.argv[1:]\nterminal = sys.stdout.isatty(), os.isatty(2)\n");
    world.file("between.py", "import looks\n");
    world.file("holds.py", "from os import isatty\nfrom sys import argv\n");
    world.file("shows.py", "import between, holds, os, sys\nfrom looks import arguments, terminal\nprint(arguments, terminal, holds.argv is sys.argv, type(sys.argv), holds.isatty is os.isatty)\n");
    for words in ["one", "another two"] {
        let words: Vec<&str> = words.split(' ').collect();
        world.warm_as_cold(&world.hob(&["run", "shows.py"]).args(&words));
    }
    let text = std::fs::read_to_string(world.path("work/shows.py")).expect("it was written");
    let [cold, warm] = [Called::Cold, Called::Warm]
        .map(|how| Terminal::called(&world, "in-tty.py", &text, how).finish());
    assert!(String::from_utf8_lossy(&cold.1).contains("(True, True)"), "{cold:?}");
    assert_eq!(cold, warm);
    assert_eq!(world.records(1)[0]["warm"], true);
}
