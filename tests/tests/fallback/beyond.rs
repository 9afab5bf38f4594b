//! A caller with more descriptors open than 0 to 2: they are the program's, as in a cold run, and
//! nobody holds them when the call has ended.

use hob_tests::{Outcome, Run, World, is_warm, wait};

/// Shows what it has inherited, with kind and flags, and which number it is given next. Hob's own are
/// close-on-exec.
const SHOWS: &str = "import fcntl, os, stat
for n in range(3, 300):
    try:
        kind = stat.S_IFMT(os.fstat(n).st_mode)
    except OSError:
        continue
    if os.get_inheritable(n):
        print(n, oct(kind), fcntl.fcntl(n, fcntl.F_GETFL) & 3)
print(os.open('/', os.O_RDONLY))
";

/// A program without output of its own.
const QUIET: &str = "import sys\nsys.exit(0)\n";

/// Runs a line of shell, in which `$RUN` runs a program.
fn shell(world: &World, run: &str, line: &str) -> Run {
    world.run(&["bash", "-c", line]).env("RUN", run)
}

/// By hob, and without it.
fn both(world: &World, line: &str) -> (Run, Run) {
    let hob = format!("{} run", world.binary().display());
    (shell(world, &hob, line), shell(world, "python3", line))
}

/// The line, by hob until its call is warm, does what it does without; it makes one call.
fn same(world: &World, file: &str, text: &str, line: &str) -> Outcome {
    same_until(world, (file, text, line), is_warm)
}

/// The same, until the record of its call is such a one.
fn same_until(
    world: &World,
    (file, text, line): (&str, &str, &str),
    is_one: impl Fn(&serde_json::Value) -> bool,
) -> Outcome {
    world.file(file, text);
    world.warmed(&["run", file]);
    let count = || world.records(400).iter().filter(|record| is_one(record)).count();
    let (hob, plain) = both(world, line);
    let (want, before) = (plain.go(), count());
    wait::until("a call that was wanted", || {
        let outcome = hob.go();
        assert_eq!((outcome.text(), outcome.end), (want.text(), want.end), "{outcome:?}");
        (count() > before).then_some(outcome)
    })
}

#[test]
fn each_has_its_number_its_flags_and_its_place_in_the_list() {
    let world = World::started();
    world.file("data", "x");
    let line = "exec 3>&1 7<data 9<>data; $RUN shows.py";
    let outcome = same(&world, "shows.py", SHOWS, line);
    assert!(outcome.text().contains("\n7 0o100000 0\n"), "{outcome:?}");
    // Those that the kernel gives a worker first, and hob's own.
    let many = "for n in {3..10} {60..66} 250 251 252 253 254; do eval \"exec $n<data\"; done
        $RUN shows.py";
    same(&world, "shows.py", SHOWS, many);
}

#[test]
fn a_position_is_shared_and_so_is_the_end_of_a_file_that_is_appended_to() {
    let world = World::started();
    world.file("data", "one\ntwo\nthree\n");
    let reads = "import os\nos.write(4, os.read(3, 4))\nos.lseek(3, 0, os.SEEK_CUR)\n";
    let line = "rm -f log; exec 3<data 4>>log; read -u 3 first; $RUN reads.py
        echo last >&4; read -u 3 third; echo $first $third; cat log";
    assert_eq!(same(&world, "reads.py", reads, line).text(), "one three\ntwo\nlast\n");
}

#[test]
fn a_loop_reads_its_lines_through_another_descriptor() {
    let world = World::started();
    world.file("data", "a\nb\nc\n");
    let line = "while read -u 3 word; do $RUN says.py $word; done 3<data";
    let outcome = same(&world, "says.py", "import sys\nprint(sys.argv[1:])\n", line);
    assert_eq!(outcome.text(), "['a']\n['b']\n['c']\n");
}

#[test]
fn a_substituted_process_is_read() {
    let world = World::started();
    let reads = "import sys\nprint(open(sys.argv[1]).read() if sys.argv[1:] else '')\n";
    let line = "{ $RUN reads.py <(echo inner); } 2>&1";
    assert_eq!(same(&world, "reads.py", reads, line).text(), "inner\n\n");
    let hob = world.binary().display();
    let cold = world.run(&["bash", "-c", &format!("{hob} run cat <(echo inner)")]).go();
    assert_eq!(cold.text(), "inner\n");
}

#[test]
fn a_lock_is_the_programs_while_it_runs_and_free_when_the_call_has_ended() {
    let world = World::started();
    let looks = "import fcntl, os\nother = os.open('lock', os.O_RDWR)\ntry:\n    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    print('free')\nexcept BlockingIOError:\n    print('held')\nfcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)\nos.dup(9)\n";
    // The shell gives it up while the program runs: who else had it would be seen.
    let line = "exec 9>lock; flock 9; $RUN looks.py & exec 9>&-; wait $!
        flock -n lock echo free || echo held";
    assert_eq!(same(&world, "looks.py", looks, line).text(), "held\nfree\n");
    // Each time, and whoever was started meanwhile.
    let (hob, _) = both(
        &world,
        "for n in {1..40}; do
        exec 9>lock; flock -n 9 || echo held; $RUN looks.py >/dev/null & exec 9>&-; wait $!; done",
    );
    assert_eq!(hob.go().text(), "");
}

#[test]
fn a_lock_is_not_left_to_a_daemon_that_its_holder_starts() {
    let world = World::new();
    world.file("quiet.py", QUIET);
    let (hob, _) =
        both(&world, "exec 9>lock; flock 9; $RUN quiet.py; exec 9>&-; flock -n lock echo free");
    assert_eq!(hob.go().text(), "free\n");
    wait::until("a daemon", || world.daemon_if_any());
    let free = world.run(&["flock", "-n", "lock", "echo", "free"]).go();
    assert_eq!(free.text(), "free\n");
}

#[test]
fn a_pipe_ends_with_the_call() {
    let world = World::started();
    let writes = "import os, sys\nif sys.argv[1:]:\n    os.write(5, b'through five\\n')\n";
    // Standard output is no other way into it.
    let line = "{ exec 5>&1 >/dev/null; $RUN writes.py x & exec 5>&-; wait $!; } | cat; echo ended";
    let outcome = same(&world, "writes.py", writes, line);
    assert_eq!(outcome.text(), "through five\nended\n");
}

#[test]
fn a_job_server_is_one() {
    let world = World::started();
    let takes = "import os, re\nfound = re.search(r'--jobserver-auth=(\\d+),(\\d+)', os.environ.get('MAKEFLAGS', ''))\nif found:\n    r, w = map(int, found.groups())\n    token = os.read(r, 1)\n    os.write(w, token)\n    print('token', token)\n";
    // From version 4.4 on `make` would rather have a named pipe.
    world.file("Makefile", "all:\n\t+@$(RUN) takes.py\n");
    let outcome = same(&world, "takes.py", takes, "make --no-print-directory -j2");
    assert_eq!(outcome.text(), "token b'+'\n");
}

#[test]
fn sixteen_more_are_warm() {
    let world = World::started();
    let line = "for n in {10..25}; do eval \"exec $n</dev/null\"; done; $RUN shows.py";
    let outcome = same(&world, "shows.py", SHOWS, line);
    assert_eq!(outcome.text().lines().count(), 17);
}

#[test]
fn the_end_is_told_whatever_the_program_has_closed() {
    let world = World::started();
    let closes =
        "import os, sys\nos.closerange(3, 1024)\nprint('closed', flush=True)\nsys.exit(4)\n";
    let line = "exec 3</dev/null 251</dev/null; $RUN closes.py; echo $?";
    assert_eq!(same(&world, "closes.py", closes, line).text(), "closed\n4\n");
}

#[test]
fn who_forks_twice_keeps_them_and_hobs_end_is_told() {
    let world = World::started();
    let forks = "import os, sys\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.read(4, 1)\n        os.write(3, b'from the daemon\\n')\n    os._exit(0)\nos.wait()\nprint('parent', flush=True)\n";
    let line = "rm -f p out; mkfifo p; exec 4<>p 3>out; $RUN forks.py; cat out; echo go >&4
        while ! grep -q daemon out; do :; done; cat out";
    assert_eq!(same(&world, "forks.py", forks, line).text(), "parent\nfrom the daemon\n");
}

#[test]
fn threads_that_go_on_do_not_keep_them() {
    let world = World::started();
    let waits = "import os, threading\nr, w = os.pipe()\nthreading.Thread(target=os.read, args=(r, 1), daemon=True).start()\nos.dup(9)\n";
    let line = "exec 9>lock; flock 9; $RUN waits.py & exec 9>&-; wait $!; flock -n lock echo free";
    assert_eq!(same(&world, "waits.py", waits, line).text(), "free\n");
}

#[test]
fn more_than_64_are_cold_and_the_reason_names_the_first_that_is_too_many() {
    let world = World::started();
    world.file("shows.py", SHOWS);
    world.warmed(&["run", "shows.py"]);
    let open = |last: u32| format!("for n in {{10..{last}}}; do eval \"exec $n</dev/null\"; done");
    let within = world.hob(&["run", "shows.py"]).after(&open(73));
    world.warm(&within, |outcome| assert_eq!(outcome.text().lines().count(), 65));
    let outcome = world.in_time(&world.hob(&["run", "shows.py"]).after(&open(74)));
    assert_eq!(outcome.text().lines().count(), 66);
    let record = world.record(outcome.pid);
    assert_eq!(record["reason"], "descriptors", "{record}");
    assert_eq!(record["descriptors"], "65 open: 74 (/dev/null)", "{record}");
    let shown = world.hob(&["last"]).go().text();
    assert!(shown.contains("74 (/dev/null)"), "{shown}");
}

/// Leaves in a file what it has of its streams, and which number it is given next.
const STREAMS: &str = "import sys
text = repr([each and each.name for each in (sys.stdin, sys.stdout, sys.stderr, sys.__stderr__)])
with open('seen', 'w') as seen:
    print(seen.fileno(), text, file=seen)
";

#[test]
fn a_closed_stream_is_closed_in_a_warm_call() {
    let world = World::started();
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-", "0<&- 5</dev/null 6</dev/null"] {
        let line = format!("rm -f seen; ( exec {closed}; $RUN streams.py ); cat seen");
        same(&world, "streams.py", STREAMS, &line);
    }
}

#[test]
fn who_holds_a_closed_stream_from_before_is_run_anew() {
    let world = World::started();
    world.file("holds.py", "import sys\nERROR = sys.stderr\n");
    let says = "import holds\nopen('seen', 'w').write(repr(holds.ERROR))\n";
    let line = "rm -f seen; ( exec 2>&-; $RUN says.py ); cat seen";
    // Its worker executes it cold.
    let anew = |record: &serde_json::Value| record["reason"] == "descriptors";
    assert_eq!(same_until(&world, ("says.py", says, line), anew).text(), "None");
}

#[test]
fn another_language_has_them_too_but_for_the_numbers_of_its_interpreter() {
    let world = World::started();
    world.file("data", "one\ntwo\n");
    world.file(
        "reads.rb",
        "puts ARGV.map { |fd| IO.for_fd(fd.to_i, autoclose: false).sysread(4) }\n",
    );
    world.warmed(&["run", "reads.rb"]);
    let run = |exec: &str, fd| world.hob(&["run", "reads.rb", fd]).after(exec);
    world.warm(&run("exec 9<data", "9"), |outcome| assert_eq!(outcome.text(), "one\n"));
    world.warm(&run("exec 9<data 0<&-", "9"), |outcome| assert_eq!(outcome.text(), "one\n"));
    let outcome = world.in_time(&run("exec 3<data", "3"));
    assert_eq!(outcome.text(), "one\n");
    assert_eq!(world.reason(outcome.pid), "descriptors");
}

#[test]
fn a_lock_that_another_language_has_is_free_when_its_call_has_ended() {
    let world = World::started();
    // One that is empty is executed cold.
    world.file("quiet.rb", "nil\n");
    world.warmed(&["run", "quiet.rb"]);
    let before = || world.records(400).iter().filter(|record| is_warm(record)).count();
    let warm = before();
    let line = "for n in {1..20}; do exec 9>lock; flock -n 9 || echo held
        $RUN quiet.rb & exec 9>&-; wait $!; done";
    let run = format!("{} run", world.binary().display());
    wait::until("a warm call", || {
        assert_eq!(shell(&world, &run, line).go().text(), "");
        (before() > warm).then_some(())
    });
}

#[test]
fn a_hook_has_them_cold_and_warm() {
    let world = World::started();
    let python = world.run(&["which", "python3"]).go().text();
    let text = format!("#!{}\nimport os\nprint(os.read(9, 4).decode(), end='')\n", python.trim());
    world.executable("hooks/first", &text);
    world.file("data", "one\ntwo\nsix\n");
    let line = "exec 9<data; $RUN hooks; $RUN hooks; $RUN hooks";
    let run = format!("{} hooks run", world.binary().display());
    let warm = || world.records(400).iter().filter(|record| is_warm(record)).count();
    wait::until("a warm hook", || {
        assert_eq!(shell(&world, &run, line).go().text(), "one\ntwo\nsix\n");
        (warm() > 0).then_some(())
    });
}
