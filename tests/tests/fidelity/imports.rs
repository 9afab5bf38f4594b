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
