//! What a warm call costs its client before anything is measured in time: page faults. They are
//! counted, not timed, so that a busy machine changes nothing.

use hob_tests::World;

/// Calls a command some times, and prints the fewest faults of any of its processes, and of a plain
/// process of the same world.
const COUNT: &str = "\
import os, sys
def faults(argv):
    null = os.open('/dev/null', os.O_RDWR)
    streams = [(os.POSIX_SPAWN_DUP2, null, at) for at in range(3)]
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[*streams, (os.POSIX_SPAWN_CLOSE, null)])
    os.close(null)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (argv, status)
    return usage.ru_minflt
print(min(faults(sys.argv[1:]) for _ in range(20)), min(faults(['/bin/true']) for _ in range(5)))
";

/// Faults of the client of the release build on a warm call. 15 were counted in November 2026: four
/// of its stack, one of its thread's storage, four of data, the others of code and constants. These lie
/// as the linker puts them beside all else that the binary has, which moves one in or out of a page.
const RELEASE_MAX: u32 = 16;

#[test]
fn a_warm_calls_client_touches_few_pages() {
    let world = World::started();
    world.file("hello.py", "print(1)\n");
    world.file("count.py", COUNT);
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "1\n"));
    let binary = world.binary();
    // A build with a loader has pages of its own, in no order: `make system-release` calls this one.
    if std::fs::read(binary).unwrap()[..4096].windows(3).any(|at| at == b"ld-") {
        return hob_tests::skipped("the binary is no release build");
    }
    let hob = binary.to_str().unwrap();
    let text = world.run(&["python3", "count.py", hob, "run", "hello.py"]).go().text();
    let (client, plain) = text.trim().split_once(' ').unwrap();
    let (client, plain): (u32, u32) = (client.parse().unwrap(), plain.parse().unwrap());
    assert!(client <= RELEASE_MAX, "{client} page faults; a plain process has {plain}");
}
