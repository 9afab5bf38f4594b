//! What start-up code and modules read while they are loaded is each call's own.

use hob_tests::World;

/// Start-up code of an interpreter, on `PYTHONPATH`, and the call of a script that shows it.
fn with_startup(world: &World, startup: &str, shows: &str) -> hob_tests::Run {
    world.file("lib/sitecustomize.py", startup);
    world.file("main.py", shows);
    let library = world.path("work/lib").display().to_string();
    world.hob(&["run", "main.py"]).env("PYTHONPATH", &library)
}

#[test]
fn standard_input_that_a_module_reads_is_the_calls() {
    for read in ["sys.stdin.read().split()", "os.read(0, 99).split()", "open(0).read().split()"] {
        let world = World::started();
        world.file("part.py", format!("import os, sys\nWORDS = {read}\n"));
        world.file("main.py", "import part\nprint(len(part.WORDS))\n");
        for (input, count) in [("a b c", "3\n"), ("a", "1\n"), ("", "0\n")] {
            let run = world.hob(&["run", "main.py"]).stdin(input);
            world.warm(&run, |outcome| assert_eq!(outcome.text(), count, "{read} of {input:?}"));
        }
    }
}

#[test]
fn start_up_code_sees_each_callers_environment() {
    let world = World::started();
    let startup = "import builtins, os\nbuiltins.MODE = os.environ.get('APP_MODE')\n";
    let run = with_startup(&world, startup, "print(MODE)\n");
    for mode in ["prod", "test", "prod"] {
        world.warm(&run.clone().env("APP_MODE", mode), |outcome| {
            assert_eq!(outcome.text(), format!("{mode}\n"));
        });
    }
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "None\n"));
}

#[test]
fn start_up_code_that_does_something_does_so_in_each_call_and_in_nothing_else() {
    let world = World::started();
    let startup = "import os\nopen(os.environ['HOME'] + '/starts', 'a').write('x')\n";
    let run = with_startup(&world, startup, "print('run')\n");
    let starts = || std::fs::read_to_string(world.path("home/starts")).unwrap_or_default().len();
    // Some calls are needed until a zygote was tried; then it is said why there is none.
    const CALLS_MAX: usize = 60;
    let told = (1..=CALLS_MAX).any(|call| {
        let outcome = run.go();
        assert_eq!(outcome.text(), "run\n");
        assert_eq!(starts(), call);
        world.hob(&["status"]).go().text().contains("start-up code")
    });
    assert!(told, "nobody said why no call was warm");
}

#[test]
fn start_up_code_that_looks_at_the_call_sees_it_whole() {
    let world = World::started();
    let startup = "import builtins, sys\nbuiltins.SEEN = list(sys.argv), sys.flags.no_site, \
        list(sys.orig_argv[1:]), hasattr(sys.modules['__main__'], '__file__')\n";
    let run = with_startup(&world, startup, "print(SEEN)\n");
    world.file("again.py", "");
    for _ in 0..4 {
        // The first is profiled, and none becomes warm.
        assert_eq!(run.go().text(), "(['main.py'], 0, ['main.py'], False)\n");
    }
}

#[test]
fn a_users_own_packages_are_those_of_the_callers_home() {
    let world = World::started();
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    let site = world.run(&["python3", "-c", "import site; print(site.getusersitepackages())"]);
    let run = world.hob(&["run", "main.py"]);
    for (home, value) in [("one", "1"), ("two", "2"), ("one", "1")] {
        let home = world.path("work").join(home).display().to_string();
        let folder = site.clone().env("HOME", &home).go().text().trim().to_owned();
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        std::fs::write(format!("{folder}/part.py"), format!("VALUE = {value}\n")).expect("written");
        world.warm(&run.clone().env("HOME", &home), |outcome| {
            assert_eq!(outcome.text(), format!("{value}\n"));
        });
    }
}

#[test]
fn a_program_that_takes_functions_of_the_interpreter_away_is_profiled_all_the_same() {
    let world = World::started();
    let text = "import os, sys\ndel sys._getframe\nos.environ.get('HOME')\nimport json\nprint(1)\n";
    world.file("main.py", text);
    for _ in 0..3 {
        assert_eq!(world.in_time(&world.hob(&["run", "main.py"])).text(), "1\n");
    }
}

#[test]
fn what_others_than_the_script_hold_is_finalised() {
    let world = World::started();
    world.file("part.py", "HELD = []\n");
    let text = "import os, part, sqlite3, sys, warnings\n\
        def left():\n    try: yield\n    finally: print('left', flush=True)\n\
        async def never(): pass\n\
        warnings.simplefilter('always')\n\
        base = sqlite3.connect('app.db')\nbase.execute('pragma journal_mode=wal')\n\
        base.execute('create table if not exists t (a)')\nbase.commit()\n\
        part.HELD += [base, left(), never()]\nnext(part.HELD[1])\ndel base\n";
    world.file("main.py", text);
    let run = world.hob(&["run", "main.py"]);
    let cold = world.run(&["python3", "main.py"]).go();
    assert!(cold.text().contains("left") && cold.complaint().contains("never awaited"), "{cold:?}");
    world.warm(&run, |outcome| {
        assert_eq!(*outcome, cold);
        assert!(!world.path("work/app.db-wal").exists(), "the database was not closed");
    });
}

#[test]
fn what_modules_of_the_interpreter_hold_is_finalised() {
    let weak = "class Kind: pass\nbuiltins.held = Kind()\n\
        sys.watching = weakref.ref(builtins.held, lambda _: print('gone', flush=True))\n";
    let listing = "warnings.simplefilter('always')\nbuiltins.held = os.scandir('/usr')\n";
    let collected = "gc.callbacks.append(lambda phase, _: print(phase, flush=True))\n";
    for (options, text) in [(None, weak), (Some("-Walways"), listing), (None, collected)] {
        let world = World::started();
        world.file("main.py", format!("import builtins, gc, os, sys, warnings, weakref\n{text}"));
        let words: Vec<&str> = ["python3"].into_iter().chain(options).chain(["main.py"]).collect();
        let cold = world.run(&words).go();
        assert!(!cold.text().is_empty() || !cold.complaint().is_empty(), "{text}: nothing is seen");
        let run = world.hob(&[&["run"], words.as_slice()].concat());
        world.warm(&run, |outcome| assert_eq!(*outcome, cold, "{text}"));
    }
}

#[test]
fn a_callback_of_the_collector_that_a_module_adds_is_told_of_its_own_call_alone() {
    let world = World::started();
    world.file("part.py", "import gc\ngc.callbacks.append(lambda phase, _: print(phase))\n");
    world.file("main.py", "import part\nprint('main')\n");
    world.warm_as_cold(&world.hob(&["run", "main.py"]));
}

#[test]
fn what_was_loaded_ahead_is_among_all_objects() {
    let world = World::started();
    world.file("part.py", "class Kept: pass\nKEPT = Kept()\n");
    let text = "import gc, part\nprint(any(each is part.KEPT for each in gc.get_objects()), \
        gc.get_freeze_count(), len(gc.get_referrers(part.KEPT)))\n";
    world.file("main.py", text);
    world.warm_as_cold(&world.hob(&["run", "main.py"]));
}

#[test]
fn the_collector_counts_what_is_frozen_until_all_objects_are_asked_for() {
    let world = World::started();
    let text = "import gc\nprint(gc.get_freeze_count() > 0)\ngc.get_objects()\n\
        print(gc.get_freeze_count())\n";
    world.file("main.py", text);
    let run = world.hob(&["run", "main.py"]);
    assert_eq!(run.clone().env("HOB", "0").go().text(), "False\n0\n");
    let warm = world.warm(&run, |outcome| assert!(outcome.text().ends_with("\n0\n")));
    assert_eq!(warm.text(), "True\n0\n");
}

#[test]
fn a_signal_whose_disposition_a_module_keeps_is_the_callers() {
    let world = World::started();
    world.file("part.py", "import signal\nKEPT = signal.getsignal(signal.SIGHUP)\n");
    world.file("main.py", "import part\nprint(repr(part.KEPT))\n");
    let run = world.hob(&["run", "main.py"]);
    world.warm(&run, |outcome| assert!(outcome.text().contains("SIG_DFL"), "{outcome:?}"));
    let ignored = run.under(&["env".to_owned(), "--ignore-signal=HUP".to_owned()]);
    for _ in 0..3 {
        assert!(world.in_time(&ignored).text().contains("SIG_IGN"));
    }
}

#[test]
fn a_link_that_is_moved_leads_a_module_to_where_it_leads_now() {
    let world = World::started();
    let text = "import os\nLINK = os.path.dirname(os.path.abspath(__file__)) + '/current'\n\
        KEPT = os.readlink(LINK), os.path.basename(os.path.realpath(LINK)), os.path.islink(LINK)\n";
    world.file("part.py", text);
    world.file("main.py", "import part\nprint(*part.KEPT)\n");
    let link = world.path("work/current");
    let run = world.hob(&["run", "main.py"]);
    for (release, next) in [("v1", "next1"), ("v2", "next2"), ("v1", "next3")] {
        std::fs::create_dir_all(world.path("work").join(release)).expect("a folder can be made");
        let made = world.path("work").join(next);
        std::os::unix::fs::symlink(release, &made).expect("a link can be made");
        std::fs::rename(&made, &link).expect("a link can be moved");
        assert_eq!(world.in_time(&run).text(), format!("{release} {release} True\n"));
        world.warm(&run, |outcome| {
            assert_eq!(outcome.text(), format!("{release} {release} True\n"));
        });
    }
}

#[test]
fn a_script_whose_link_is_moved_finds_what_lies_beside_it_now() {
    let world = World::started();
    for version in ["v1", "v2"] {
        world.file(&format!("{version}/main.py"), "import beside\nprint(beside.VALUE)\n");
        world.file(&format!("{version}/beside.py"), format!("VALUE = '{version}'\n"));
    }
    let link = world.path("work/main.py");
    let run = world.hob(&["run", "main.py"]);
    for (version, next) in [("v1", "next1"), ("v2", "next2")] {
        let made = world.path("work").join(next);
        std::os::unix::fs::symlink(format!("{version}/main.py"), &made).expect("a link");
        std::fs::rename(&made, &link).expect("a link can be moved");
        assert_eq!(world.in_time(&run).text(), format!("{version}\n"));
        world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("{version}\n")));
    }
}

#[test]
fn compiled_code_that_is_run_unchecked_is_run_as_it_is_now() {
    let world = World::started();
    world.file("part.py", "VALUE = 'source'\n");
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    let run = world.hob(&["run", "main.py"]).env("PYTHONDONTWRITEBYTECODE", "1");
    for value in ["one", "two"] {
        let text = format!(
            "import importlib.util, os, py_compile\nopen('made.py', 'w').write(\"VALUE = '{value}'\\n\")\n\
             py_compile.compile('made.py', 'new.pyc', 'part.py', True, \
             invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n\
             os.makedirs('__pycache__', exist_ok=True)\n\
             os.replace('new.pyc', importlib.util.cache_from_source('part.py'))\n"
        );
        world.file("make.py", &text);
        world.run(&["python3", "make.py"]).go().succeeded();
        assert_eq!(world.in_time(&run).text(), format!("{value}\n"));
        world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("{value}\n")));
    }
}

#[test]
fn a_module_whose_file_is_none_does_not_keep_its_program_cold() {
    let world = World::started();
    world.file("part.py", "__file__ = '/no/such/file.py'\nVALUE = 1\n");
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    world.warm(&world.hob(&["run", "main.py"]), |outcome| assert_eq!(outcome.text(), "1\n"));
}

#[test]
fn an_interpreter_that_is_to_tell_of_its_start_is_executed() {
    let world = World::started();
    world.file("main.py", "print(1)\n");
    for _ in 0..3 {
        let run = world.hob(&["run", "main.py"]).env("PYTHONPROFILEIMPORTTIME", "1");
        let outcome = world.in_time(&run);
        assert!(outcome.complaint().contains("import time:"), "{outcome:?}");
    }
}

#[test]
fn certificates_that_a_module_loads_are_those_of_each_call() {
    let world = World::started();
    let text = "import ssl\nLOADED = len(ssl.create_default_context().get_ca_certs())\n";
    world.file("part.py", text);
    world.file("main.py", "import part\nprint(part.LOADED)\n");
    let count = |file: &str| {
        let run =
            world.hob(&["run", "main.py"]).env("SSL_CERT_FILE", world.path("work").join(file));
        let cold = run.clone().env("HOB", "0").go();
        world.warm(&run.env("SSL_CERT_DIR", world.path("work/none")), |outcome| {
            assert_eq!(outcome.text(), cold.text(), "{file}");
        });
        cold.text()
    };
    let made =
        world.run(&["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9"]);
    made.args(&["-subj", "/CN=x", "-keyout", "key.pem", "-out", "one.pem"]).go().succeeded();
    world.file("two.pem", "");
    assert_eq!((count("one.pem").as_str(), count("two.pem").as_str()), ("1\n", "0\n"));
    std::fs::copy(world.path("work/one.pem"), world.path("work/two.pem")).unwrap();
    assert_eq!(count("two.pem"), "1\n");
}

#[test]
fn the_rights_of_a_directory_that_a_module_keeps_are_those_of_now() {
    let world = World::started();
    world.file("folder/file", "");
    world.file("part.py", "import os\nKEPT = oct(os.stat('folder').st_mode)\n");
    world.file("main.py", "import part\nprint(part.KEPT)\n");
    let run = world.hob(&["run", "main.py"]);
    for mode in [0o755, 0o700, 0o777] {
        use std::os::unix::fs::PermissionsExt;
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(world.path("work/folder"), rights).unwrap();
        assert_eq!(run.go().text(), format!("0o40{mode:o}\n"));
        world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("0o40{mode:o}\n")));
    }
}

/// Calls with another value of a variable each time until one is warm; `shows` is what each prints.
fn warm_with_new_values(world: &World, run: &hob_tests::Run, from: u32) -> u32 {
    const CALLS_MAX: u32 = 200;
    for value in from..from + CALLS_MAX {
        let outcome = run.clone().env("MOMENT", value.to_string()).go();
        assert_eq!(outcome.text(), format!("{value}\n"), "{outcome:?}");
        if world.record(outcome.pid)["warm"] == true {
            return value + 1;
        }
    }
    panic!("no call was warm: {}", world.status());
}

#[test]
fn a_module_that_reads_a_variable_that_each_call_has_anew_reads_each_calls_own() {
    for reads in [
        "os.environ.get('MOMENT')",
        "dict(os.environ.items())['MOMENT']",
        "[v for n, v in os.environ.items() if n == 'MOMENT'][0]",
    ] {
        let world = World::started();
        world.file("moment.py", format!("import os\nVALUE = {reads}\n"));
        world.file("holds.py", "from moment import VALUE\n");
        world.file("main.py", "import json, holds, moment\nprint(holds.VALUE)\n");
        let run = world.hob(&["run", "main.py"]);
        let mut next = 1;
        for _ in 0..4 {
            next = warm_with_new_values(&world, &run, next);
        }
        // Those of the calls before it was known are bounded, and gone.
        let pools = world.pools().len();
        assert_eq!(pools, 1, "{reads}: {}", world.status());
    }
}

#[test]
fn start_up_code_that_reads_what_each_call_has_anew_makes_no_pool_for_each() {
    let world = World::started();
    let startup = "import builtins, os\nbuiltins.MOMENT = os.environ.get('TRACEPARENT')\n";
    let run = with_startup(&world, startup, "import json\nprint(MOMENT)\n");
    let call = |value: &str| run.clone().env("TRACEPARENT", value).go();
    let mut told = false;
    for value in 0..200 {
        let outcome = call(&format!("{value}"));
        assert_eq!(outcome.text(), format!("{value}\n"));
        told = world.reason(outcome.pid) == "variables";
        if told {
            break;
        }
    }
    assert!(told, "it was never said why no call is warm");
    let pools = || world.pools().len();
    let before = pools();
    for value in 1000..1005 {
        call(&format!("{value}"));
    }
    assert!(pools() <= before, "{}", world.status());
    // A value that stays is worth a pool.
    world.warm(&run.clone().env("TRACEPARENT", "stays"), |outcome| {
        assert_eq!(outcome.text(), "stays\n");
    });
}

#[test]
fn a_variable_that_the_program_sets_is_set_for_what_it_then_imports() {
    let world = World::started();
    world.file("part.py", "import os\nVALUE = os.environ.get('MOMENT')\n");
    world.file(
        "main.py",
        "import os\nos.environ['MOMENT'] = 'own'\nimport part\nprint(part.VALUE)\n",
    );
    let run = world.hob(&["run", "main.py"]);
    for value in ["a", "b"] {
        world
            .warm(&run.clone().env("MOMENT", value), |outcome| assert_eq!(outcome.text(), "own\n"));
    }
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "own\n"));
}

#[test]
fn a_variable_that_the_program_sets_in_some_calls_only_is_set_in_those() {
    let world = World::started();
    world.file("part.py", "import os\nVALUE = os.environ.get('MOMENT')\n");
    let text = "import os, sys\nif sys.argv[1:]:\n    os.environ['MOMENT'] = sys.argv[1]\n\
        import part\nprint(part.VALUE)\n";
    world.file("main.py", text);
    let run = world.hob(&["run", "main.py"]).env("MOMENT", "of the caller");
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "of the caller\n"));
    for own in ["a", "b"] {
        world.warm(&run.clone().args(&[own]), |outcome| {
            assert_eq!(outcome.text(), format!("{own}\n"));
        });
    }
}
