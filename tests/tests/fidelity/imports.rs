//! What a module does while it is imported, each call does, and no zygote; what it looks at is the
//! caller's. The file of a handler or of an app is executed whole, in its order: what it does before
//! an import is there at the import. (Scripts and commands are held to this by `bench/orders`.)

use std::collections::HashSet;
use std::fs;

use hob_tests::World;
use hob_tests::site::Site;

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

/// What a file does, and what a module that it then imports keeps.
const PYTHON: [(&str, &str); 13] = [
    ("conf.debug = True", "conf.debug"),
    ("conf.options['level'] = 7", "dict(conf.options)"),
    ("setattr(conf.Flags, 'size', 7)", "conf.Flags.size"),
    ("sys.path.insert(0, 'vendor')", "__import__('twin').VALUE"),
    ("sys.modules['twin'] = conf", "__import__('twin').__name__"),
    ("json.dumps = lambda *rest: 'patched'", "json.dumps(1)"),
    ("os.environ['MOMENT'] = 'own'", "os.environ.get('MOMENT')"),
    ("logging.basicConfig(level=logging.DEBUG)", "logging.getLogger('a').isEnabledFor(10)"),
    ("warnings.simplefilter('error')", "warnings.filters[0][0]"),
    ("decimal.getcontext().prec = 5", "str(decimal.Decimal(1) / 3)"),
    ("time.time = lambda: 1", "time.time() < 9"),
    ("sys.argv = ['own']", "sys.argv"),
    ("os.umask(0o77)", "(os.umask(0o77), os.umask(0o22))[0]"),
];

const RUBY: [(&str, &str); 5] = [
    ("$debug = true", "$debug.inspect"),
    ("Conf.level = 7", "Conf.level.inspect"),
    ("ENV['MOMENT'] = 'own'", "ENV['MOMENT'].inspect"),
    ("$LOAD_PATH.unshift(File.join(__dir__, 'vendor'))", "(require 'twin'; TWIN)"),
    ("module Louder; def to_s = 'louder'; end\nConf.singleton_class.prepend(Louder)", "Conf.to_s"),
];

const NAMES: &str = "import conf, decimal, json, logging, os, sys, time, warnings\n";

/// A project of such files, each with its module; the program and mounts of each.
fn project() -> World {
    let world = World::new();
    world.file("conf.py", "debug, options = False, {}\nclass Flags:\n    size = 1\n");
    world.file("twin.py", "VALUE = 'of the folder'\n");
    world.file("vendor/twin.py", "VALUE = 'vendored'\n");
    world.file("vendor/twin.rb", "TWIN = 'vendored'\n");
    world.file("conf.rb", "class Conf\n  class << self\n    attr_accessor :level\n  end\nend\n");
    let mut told = String::new();
    for (number, (sets, reads)) in PYTHON.iter().enumerate() {
        world.file(&format!("reader{number}.py"), format!("{NAMES}VALUE = repr({reads})\n"));
        let text = format!(
            "{NAMES}{sets}\nimport reader{number} as reader\n\n\
             def handle(payload, message):\n    return reader.VALUE\n\n\n\
             def application(environ, start_response):\n    \
             start_response('200 OK', [])\n    return [reader.VALUE.encode()]\n"
        );
        world.file(&format!("h{number}.py"), &text);
        for isolation in ["fork", "prefork"] {
            told += &format!(
                "[program.{isolation}{number}]\nhandler = \"h{number}.py:handle\"\n\
                 isolation = \"{isolation}\"\n"
            );
        }
        told += &format!("[mount.\"/{number}\"]\nwsgi = \"h{number}.py\"\n");
    }
    for (number, (sets, reads)) in RUBY.iter().enumerate() {
        world.file(&format!("reader{number}.rb"), format!("VALUE = ({reads}).to_s\n"));
        let text = format!(
            "require_relative 'conf'\n{sets}\nrequire_relative 'reader{number}'\n\
             def handle(payload)\n  VALUE\nend\n"
        );
        world.file(&format!("h{number}.rb"), &text);
        told += &format!("[program.ruby{number}]\nhandler = \"h{number}.rb:handle\"\n");
    }
    world.file("hob.toml", &told);
    world.hob(&["trust"]).go().succeeded();
    world
}

/// What a run of the file's own interpreter says.
fn cold(world: &World, words: &[&str]) -> String {
    let outcome = world.run(words).go();
    outcome.succeeded();
    outcome.text()
}

/// What Python itself says of a file of the project.
fn of_python(world: &World, number: usize) -> String {
    let line = format!("import h{number}; print(h{number}.handle(b'', None), end='')");
    cold(world, &["python3", "-c", &line])
}

#[test]
fn a_handler_is_loaded_in_its_files_own_order() {
    let world = project();
    let mut asked = Vec::new();
    for number in 0..PYTHON.len() {
        for isolation in ["fork", "prefork"] {
            asked.push((format!("{isolation}{number}"), of_python(&world, number)));
        }
    }
    for number in 0..RUBY.len() {
        let line = format!("require './h{number}'; print handle('')");
        asked.push((format!("ruby{number}"), cold(&world, &["ruby", "-e", &line])));
    }
    for (program, expected) in asked {
        for turn in 0..3 {
            let answer = world.hob(&["ask", &program]).go();
            answer.succeeded();
            assert_eq!(answer.text(), expected, "{program}, ask {turn}");
        }
    }
}

#[test]
fn an_app_is_loaded_in_its_files_own_order() {
    let world = project();
    let expected: Vec<String> = (0..PYTHON.len()).map(|number| of_python(&world, number)).collect();
    let site = Site::serve(&world, &[]);
    for (number, expected) in expected.iter().enumerate() {
        for turn in 0..2 {
            let answer = site.get(&format!("/{number}/"));
            assert_eq!(
                (answer.status, &answer.text()),
                (200, expected),
                "{number}, request {turn}"
            );
        }
    }
    site.stop();
}
