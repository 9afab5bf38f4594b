//! Old and foreign platforms: where the C library or the kernel lacks what newer ones have, a call
//! ends as it does without hob, and is warm.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hob_tests::{Run, World};

/// What the function of a C library comes to that closes no range of descriptors: one before glibc
/// 2.34, or musl's.
const LIBRARY: &str = "#include <errno.h>
int close_range(unsigned first, unsigned last, int flags)
{
    (void)first, (void)last, (void)flags;
    errno = ENOSYS;
    return -1;
}
";

/// `refuses.py` says what it does.
const REFUSES: &str = include_str!("refuses.py");

/// `close_range`, on every architecture.
const CLOSE_RANGE: &str = "436";

/// The newest 60 system calls of x86-64, without the two that a zygote cannot be without: `refused.rs`
/// tells of each alone.
fn newest() -> String {
    const NEEDED: [u32; 2] = [319, 434];
    let numbers = (319..335).chain(424..468).filter(|number| !NEEDED.contains(number));
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

/// Says what this interpreter is answered that would close a range.
const ASKS: &str = "import ctypes; print(ctypes.CDLL(None).close_range(900, 901, 0))";

/// Each Python that is on the path.
fn pythons(world: &World) -> BTreeSet<String> {
    let found = world.run(&["which", "-a", "python3"]).go().text();
    let whole = |path: &str| std::fs::canonicalize(path).expect("it was found");
    found.lines().map(|path| whole(path).to_string_lossy().into_owned()).collect()
}

/// By `begins`, a caller that holds a lock calls a program in each Python, until it is warm and then
/// again: each call ends, and the lock is free by then.
fn each_ends_and_is_warm(world: &World, begins: impl Fn(&[&str]) -> Run) {
    world.file("hello.py", "print('hello')\n");
    for python in pythons(world) {
        assert_eq!(begins(&[&python, "-c", ASKS]).go().text(), "-1\n", "{python}");
        let run = begins(&[&python, "hello.py"]);
        for _ in 0..3 {
            world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n", "{python}"));
        }
        let free = world.run(&["flock", "-n", "lock", "echo", "free"]).go();
        assert_eq!(free.text(), "free\n", "{python}");
    }
}

#[test]
fn where_the_c_library_closes_no_ranges_a_call_with_a_lock_ends_and_is_warm() {
    let world = World::new();
    let source = world.file("without.c", LIBRARY);
    let library: PathBuf = world.path("work/without.so");
    world.run(&["cc", "-shared", "-fPIC", "-o"]).args(&[&library, &source]).go().succeeded();
    each_ends_and_is_warm(&world, |words| {
        let run = world.hob(&["run"]).args(words).env("LD_PRELOAD", &library);
        run.after("exec 9>lock; flock 9")
    });
}

/// The program's words, with the client and a daemon that it starts under the filter.
fn under(world: &World, numbers: &str, words: &[&str]) -> Run {
    let refuses = world.file("refuses.py", REFUSES);
    let hob = world.binary().to_string_lossy().into_owned();
    let run = world.run(&["python3"]).args(&[&refuses]).args(&[numbers, hob.as_str(), "run"]);
    run.args(words).after("exec 9>lock; flock 9")
}

#[test]
fn where_the_kernel_closes_no_ranges_a_call_with_a_lock_ends_and_is_warm() {
    let world = World::new();
    each_ends_and_is_warm(&world, |words| under(&world, CLOSE_RANGE, words));
}

#[test]
fn where_the_newest_system_calls_are_not_there_calls_end_and_are_warm() {
    if !cfg!(target_arch = "x86_64") {
        return hob_tests::skipped("the filter names the system calls of x86-64");
    }
    let world = World::new();
    each_ends_and_is_warm(&world, |words| under(&world, &newest(), words));
}
