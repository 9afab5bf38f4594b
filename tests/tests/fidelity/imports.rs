//! What a module does while it is imported, each call does, and no zygote; what it looks at is the
//! caller's.

use std::collections::HashSet;
use std::fs;

use hob_tests::World;

/// Calls that are compared.
const CALLS: usize = 6;

#[test]
fn a_module_that_goes_through_all_variables_sees_them_in_each_callers_order() {
    let world = World::started();
    world.file("part.py", "import os\nKEPT = [n for n in os.environ if n.startswith('OF_')]\n");
    world.file("main.py", "import part\nprint(part.KEPT)\n");
    let run = world.hob(&["run", "main.py"]);
    for (first, second) in [("OF_A", "OF_B"), ("OF_B", "OF_A")] {
        // A map of variables, as callers have one, has an order of its own.
        let run =
            run.clone().under(&["env".to_owned(), format!("{first}=1"), format!("{second}=1")]);
        let want = format!("['{first}', '{second}']\n");
        world.warm(&run, |outcome| assert_eq!(outcome.text(), want));
    }
}

#[test]
fn a_thread_that_a_module_starts_does_its_work_in_the_call() {
    let world = World::started();
    let text = "import threading\nthreading.Timer(0.05, print, ['from the thread']).start()\n";
    world.file("part.py", text);
    world.file("main.py", "import part\nprint('main', flush=True)\n");
    let warm = world.warm_as_cold(&world.hob(&["run", "main.py"]));
    assert_eq!(warm.text(), "main\nfrom the thread\n");
}

#[test]
fn a_module_that_replaces_a_file_while_it_is_imported_does_so_once_a_call() {
    let world = World::started();
    let part = "import os\nHERE = os.path.dirname(os.path.abspath(__file__))\n\
        try: count = int(open(HERE + '/count').read())\nexcept OSError: count = 0\n\
        with open(HERE + f'/count.{os.getpid()}', 'w') as new: new.write(str(count + 1))\n\
        os.replace(new.name, HERE + '/count')\n";
    world.file("part.py", part);
    world.file("over.py", "import part\n");
    world.file("main.py", "import over\nprint(over.part.count)\n");
    let count = || fs::read_to_string(world.path("work/count")).expect("it was counted");
    world.warmed(&["run", "main.py"]);
    let before: usize = count().parse().expect("a number");
    for call in 0..CALLS {
        let warm = world.warmed(&["run", "main.py"]);
        // Calls that had to wait for a new copy count too, each of them once.
        let seen: usize = warm.text().trim().parse().expect("a number");
        assert_eq!(seen + 1, count().parse::<usize>().expect("a number"), "call {call}");
        assert!(seen >= before + call, "call {call}: {before}, {seen}");
    }
    let records = world.records(1000);
    // A call that is late has two: its caller's, and its daemon's.
    let calls: HashSet<_> = records.iter().map(|record| record["caller_pid"].as_u64()).collect();
    assert_eq!(calls.len(), count().parse::<usize>().expect("a number"), "one count a call");
}

#[test]
fn a_module_that_goes_through_all_variables_sees_one_that_is_new() {
    let world = World::started();
    world.file("part.py", "import os\nFOUND = sorted(n for n in os.environ if n.startswith('MINE_'))\nKEPT = os.environ.copy()\n");
    world.file(
        "main.py",
        "import os, part\nprint(part.FOUND, part.KEPT == dict(os.environ), os.environ['PWD'])\n",
    );
    let run = world.hob(&["run", "main.py"]).env("MINE_A", "1");
    let pwd = world.path("work").display().to_string();
    let run = run.env("PWD", &pwd);
    let warm = world.warm_as_cold(&run);
    assert_eq!(warm.text(), format!("['MINE_A'] True {pwd}\n"));
    let more = run.clone().env("MINE_B", "2").env("PWD", "/elsewhere");
    let warm = world.warm_as_cold(&more);
    assert_eq!(warm.text(), "['MINE_A', 'MINE_B'] True /elsewhere\n");
}

#[test]
fn what_an_import_keeps_of_its_process_and_time_is_the_calls() {
    let world = World::started();
    world.file(
        "part.py",
        "import os, time, uuid\nkept = os.getpid(), os.getppid(), os.getcwd()\nstart = time.time()\nname = uuid.uuid4()\n",
    );
    world.file(
        "main.py",
        "import os, part, sys, time\nprint(part.kept == (os.getpid(), os.getppid(), os.getcwd()))\nprint(part.start > time.time() - float(sys.argv[1]))\nprint(part.name, file=sys.stderr)\n",
    );
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..CALLS {
        // Half a minute is more than any call takes, and the test is about the clock's being read.
        let warm = world.warmed(&["run", "main.py", "30"]);
        assert_eq!(warm.text(), "True\nTrue\n");
        names.insert(warm.complaint());
    }
    assert_eq!(names.len(), CALLS, "{names:?}");
}

/// A module that makes a directory for its process, as `ansible` does.
const MAKES: &str = "import atexit, os, shutil, stat, tempfile\n\
    def made():\n    prefix = 'local-%s' % os.getpid()\n    \
    made = tempfile.mkdtemp(prefix=prefix)\n    \
    atexit.register(shutil.rmtree, made)\n    return made\nTMP = made()\n";

#[test]
fn a_directory_that_an_import_makes_is_each_calls_own_and_goes_with_it() {
    let world = World::started();
    world.file("part.py", MAKES);
    world.file("over.py", "import part\n");
    let shows = "import over, os\nmade = os.lstat(over.part.TMP)\n\
        print(over.part.TMP, oct(made.st_mode), str(os.getpid()) in over.part.TMP, made.st_nlink)\n";
    world.file("main.py", shows);
    let mut seen = std::collections::BTreeSet::new();
    for place in ["work/here", "work/there"] {
        let folder = world.path(place);
        fs::create_dir(&folder).expect("a new folder");
        let left = || fs::read_dir(&folder).expect("it is a folder").count();
        let run = world.hob(&["run", "main.py"]).env("TMPDIR", &folder);
        for _ in 0..CALLS {
            let warm = world.warm(&run, |each| each.succeeded());
            let text = warm.text();
            let (path, rest) = text.trim().split_once(' ').expect("two words");
            assert!(path.starts_with(folder.to_str().expect("a text")), "{path}");
            assert_eq!(rest, "0o40700 True 2");
            assert!(seen.insert(path.to_owned()), "{path} was there before");
            assert!(!std::path::Path::new(path).exists(), "{path} is still there");
        }
        // Copies wait by now, and a zygote stands behind them.
        assert_eq!(left(), 0, "something was left in {place}");
    }
    let verified = world
        .hob(&["verify", "--worlds", "none", "main.py"])
        .env("TMPDIR", world.path("work/here"));
    world.file("main.py", "import over\nprint(len(over.part.TMP) > 9)\n");
    verified.go().succeeded();
}

#[test]
fn a_call_that_does_not_import_what_makes_a_directory_makes_none() {
    let world = World::started();
    world.file("part.py", MAKES);
    let script = "import os, sys\nif sys.argv[1:]:\n    import part\n\
        print(len(os.listdir(os.environ['TMPDIR'])))\n";
    world.file("main.py", script);
    let folder = world.path("work/here");
    fs::create_dir(&folder).expect("a new folder");
    for (words, want) in [(&["run", "main.py", "x"][..], "1\n"), (&["run", "main.py"], "0\n")] {
        for _ in 0..CALLS {
            let run = world.hob(words).env("TMPDIR", &folder);
            let warm = world.warm(&run, |each| assert_eq!(each.text(), want));
            assert_eq!(warm.text(), want);
        }
    }
}
