//! What stays different in a warm call: each test shows exactly the difference that
//! `docs/fidelity.md` tells of, and that there is no other beside it.

use std::fs;

use hob_tests::World;

/// What a cold run of this script says, and what a warm one says.
fn both(text: &str) -> (World, String, String) {
    let world = World::started();
    world.file("shows.py", text);
    let cold = world.run(&["python3", "shows.py"]).go();
    cold.succeeded();
    let warm = world.warmed(&["run", "shows.py"]);
    warm.succeeded();
    (world, cold.text(), warm.text())
}

#[test]
fn the_parent_of_a_warm_program_is_its_zygote() {
    let text = "import os\nparent = os.getppid()\nprint('start.py' in open(f'/proc/{parent}/cmdline').read())\nprint(open(f'/proc/{parent}/stat').read().rpartition(')')[2].split()[1])\n";
    let (world, cold, warm) = both(text);
    assert!(cold.starts_with("False"), "{cold}");
    let lines: Vec<&str> = warm.lines().collect();
    assert_eq!(lines, ["True", &world.daemon().to_string()]);
}

#[test]
fn the_collector_has_run_over_what_is_loaded_ahead() {
    let text = "import gc, json\nprint(gc.get_stats()[2]['collections'])\n";
    let (_, cold, warm) = both(text);
    let times = |text: String| text.trim().parse::<u32>().expect("a number");
    assert!(times(cold) < times(warm));
}

#[test]
fn the_kernel_shows_the_environment_that_the_zygote_was_started_with() {
    let text = "import os\n\
        block = open('/proc/self/environ', 'rb').read()\n\
        print(b'ONLY_THE_CALLERS=1' in block, os.environ.get('ONLY_THE_CALLERS'), os.environb == dict(e.split(b'=', 1) for e in block.split(b'\\0') if e))\n";
    let world = World::started();
    world.file("shows.py", text);
    let cold = world.run(&["python3", "shows.py"]).env("ONLY_THE_CALLERS", "1").go();
    assert_eq!(cold.text(), "True 1 True\n");
    world.warmed(&["run", "shows.py"]).succeeded();
    let warm = world.hob(&["run", "shows.py"]).env("ONLY_THE_CALLERS", "1").go();
    assert_eq!(warm.text(), "False 1 False\n");
}

#[test]
fn a_module_sees_the_line_of_the_script_that_imports_it() {
    let world = World::started();
    world.file("asks.py", "import sys\nframe = sys._getframe()\nwhile frame.f_back: frame = frame.f_back\nSEEN = frame.f_code.co_filename[-8:], frame.f_code.co_name, frame.f_lineno\n");
    world.file("shows.py", "\n\nimport asks\nprint(asks.SEEN)\n");
    let cold = world.run(&["python3", "shows.py"]).go();
    assert_eq!(cold.text(), "('shows.py', '<module>', 3)\n");
    let warm = world.warmed(&["run", "shows.py"]);
    assert_eq!(warm.text(), cold.text());
}

#[test]
fn the_arguments_list_has_another_type_while_a_module_is_imported() {
    let text = "import sys\nSEEN = type(sys.argv) is list, type(sys.argv).__name__, \
        isinstance(sys.argv, list), list.__len__(sys.argv)\n";
    let world = World::started();
    world.file("asks.py", text);
    world.file("shows.py", "import asks, sys\nprint(asks.SEEN, type(sys.argv) is list)\n");
    let cold = world.run(&["python3", "shows.py", "a"]).go();
    assert_eq!(cold.text(), "(True, 'list', True, 2) True\n");
    let warm = world.warmed(&["run", "shows.py", "a"]);
    assert_eq!(warm.text(), "(False, 'list', True, 1) True\n");
}

#[test]
fn the_command_line_that_the_kernel_shows_has_nuls_behind_it() {
    let text = "import sys\n\
        shown = open('/proc/self/cmdline', 'rb').read()\n\
        own = b''.join(word.encode() + b'\\0' for word in sys.orig_argv)\n\
        print(shown == own, shown.rstrip(b'\\0') == own.rstrip(b'\\0'), sys.argv)\n";
    let world = World::started();
    world.file("shows.py", text);
    let cold = world.run(&["python3", "shows.py", "a"]).go();
    assert_eq!(cold.text(), "True True ['shows.py', 'a']\n");
    let profiled = world.hob(&["run", "shows.py", "a"]).go();
    assert_eq!(profiled.text(), "False False ['shows.py', 'a']\n");
    let warm = world.warmed(&["run", "shows.py", "a"]);
    assert_eq!(warm.text(), "False True ['shows.py', 'a']\n");
}

#[test]
fn a_copy_is_killed_when_its_zygote_ends() {
    let text = "import ctypes\nheld = ctypes.c_int()\nctypes.CDLL(None).prctl(2, ctypes.byref(held))\nprint(held.value)\n";
    let (_, cold, warm) = both(text);
    assert_eq!((cold.as_str(), warm.as_str()), ("0\n", "9\n"));
}

#[test]
fn two_sockets_with_high_numbers_are_open_and_no_child_has_them() {
    let text = "import fcntl, os, subprocess, sys\n\
        def shown(number):\n\
        \x20   try: return number, os.readlink(f'/proc/self/fd/{number}').partition(':')[0], fcntl.fcntl(number, fcntl.F_GETFD)\n\
        \x20   except OSError: return None\n\
        numbers = map(int, os.listdir('/proc/self/fd'))\n\
        print([each for each in map(shown, sorted(numbers)) if each and each[0] > 2])\n\
        print(subprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True).stdout.split())\n\
        sys.stdout.flush()\n\
        pid = os.fork()\n\
        if not pid:\n\
        \x20   print([n for n in os.listdir('/proc/self/fd') if int(n) > 3], flush=True)\n\
        \x20   os._exit(0)\n\
        os.waitpid(pid, 0)\n";
    let (_, cold, warm) = both(text);
    let (cold, warm): (Vec<_>, Vec<_>) = (cold.lines().collect(), warm.lines().collect());
    assert_eq!(cold[0], "[]");
    assert_eq!(warm[0], "[(251, 'socket', 1), (252, 'socket', 1)]");
    assert_eq!(cold[1..], warm[1..]);
}

#[test]
fn faulthandler_shows_our_frames_below_the_programs_own_and_nothing_else() {
    let text = "import faulthandler\ndef inner():\n    faulthandler.dump_traceback()\ninner()\n";
    let world = World::started();
    world.file("shows.py", text);
    let frames = |shown: String| {
        // The first line tells of the thread, by an address.
        shown.lines().skip(1).map(str::to_owned).collect::<Vec<String>>()
    };
    let cold = frames(world.run(&["python3", "shows.py"]).go().complaint());
    let warm = frames(world.warmed(&["run", "shows.py"]).complaint());
    assert_eq!(cold.len(), 2, "{cold:?}");
    assert_eq!(warm[..2], cold);
    let ours = |line: &String| line.contains("\"<frozen importlib._bootstrap>\"");
    assert!(warm.len() > 2 && warm[2..].iter().all(ours), "{warm:?}");
}

#[test]
fn a_program_can_recurse_one_or_two_frames_less_deep() {
    let text = "import sys\ndepth = 0\ndef down():\n    global depth\n    depth += 1\n    down()\n\
                try:\n    down()\nexcept RecursionError:\n    print(sys.getrecursionlimit(), depth)\n";
    let (_, cold, warm) = both(text);
    let numbers = |said: &str| {
        let numbers: Vec<u32> = said.split_whitespace().map(|n| n.parse().unwrap()).collect();
        (numbers[0], numbers[1])
    };
    let ((limit, cold), (same, warm)) = (numbers(&cold), numbers(&warm));
    assert_eq!(limit, same);
    assert!((1..=2).contains(&(cold - warm)), "{cold} and {warm}");
}

#[test]
fn the_control_group_of_a_warm_program_is_the_daemons() {
    let text = "print(open('/proc/self/cgroup').read(), end='')\n";
    let (world, _, warm) = both(text);
    let daemons = fs::read_to_string(format!("/proc/{}/cgroup", world.daemon()));
    assert_eq!(warm, daemons.expect("the daemon runs"));
}
