//! A socket's directory that is not safe, cannot be made, or has the wrong things in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use hob_tests::{End, Run, World};

fn hello(world: &World) -> Run {
    world.file("hello.py", "print('hello')\n");
    world.hob(&["run", "hello.py"])
}

/// The call does what it does without hob, and says why hob was not used.
fn goes_cold(world: &World, run: &Run, reason: &str) -> String {
    let outcome = run.go();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()), "{outcome:?}");
    assert_eq!(world.reason(outcome.pid), reason);
    outcome.complaint()
}

#[test]
fn a_directory_that_others_may_enter_is_not_used() {
    let world = World::new();
    let run = hello(&world);
    let directory = world.hob_dir();
    fs::create_dir(&directory).unwrap();
    for mode in [0o777, 0o750, 0o701] {
        fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        let said = goes_cold(&world, &run, "socket-dir-unsafe");
        assert!(said.contains("not used") && said.lines().count() == 1, "{said}");
        let start = world.hob(&["start"]).go();
        assert_eq!(start.end, End::Code(1));
        assert!(start.complaint().contains("HOB_DIR"), "{start:?}");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "nothing is put there");
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    world.warmed(&["run", "hello.py"]);
}

#[test]
fn a_link_or_a_file_in_the_directorys_place_is_not_used() {
    let world = World::new();
    let run = hello(&world);
    let directory = world.hob_dir();
    fs::create_dir(world.path("elsewhere")).unwrap();
    fs::set_permissions(world.path("elsewhere"), Permissions::from_mode(0o700)).unwrap();
    symlink(world.path("elsewhere"), &directory).unwrap();
    goes_cold(&world, &run, "socket-dir-unsafe");
    assert_eq!(fs::read_dir(world.path("elsewhere")).unwrap().count(), 0, "nothing is put there");
    fs::remove_file(&directory).unwrap();
    fs::write(&directory, "").unwrap();
    goes_cold(&world, &run, "socket-dir-unsafe");
    fs::remove_file(&directory).unwrap();
}

#[test]
fn a_directory_of_somebody_else_is_not_used() {
    let world = World::new();
    let run = hello(&world);
    // Only root can make a directory that is somebody else's; others find one.
    let foreign = if rustix::process::getuid().is_root() {
        fs::create_dir(world.hob_dir()).unwrap();
        fs::set_permissions(world.hob_dir(), Permissions::from_mode(0o700)).unwrap();
        let nobody = rustix::fs::Uid::from_raw(65534);
        rustix::fs::chown(world.hob_dir(), Some(nobody), None).unwrap();
        world.hob_dir()
    } else {
        "/root".into()
    };
    goes_cold(&world, &run.env("HOB_DIR", foreign), "socket-dir-unsafe");
    let _ = fs::remove_dir(world.hob_dir());
}

#[test]
fn a_directory_that_cannot_be_made_costs_nothing() {
    let world = World::new();
    let run = hello(&world);
    for place in ["/proc/hob", "/dev/null/hob"] {
        let outcome = run.clone().env("HOB_DIR", place).go();
        assert_eq!(
            (outcome.end, outcome.text()),
            (End::Code(0), "hello\n".to_owned()),
            "{outcome:?}"
        );
        assert_eq!(world.record(outcome.pid)["warm"], false);
    }
}

#[test]
fn a_dead_socket_is_replaced() {
    let world = World::started();
    let run = hello(&world);
    world.warmed(&["run", "hello.py"]);
    let daemon = world.daemon();
    hob_tests::run::kill(daemon, rustix::process::Signal::KILL);
    assert!(hob_tests::wait::ended(daemon, hob_tests::wait::LONG));
    assert!(world.hob_dir().join("socket").exists(), "a killed daemon leaves its socket");
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_file_in_the_sockets_place_is_replaced() {
    let world = World::new();
    let run = hello(&world);
    fs::create_dir(world.hob_dir()).unwrap();
    fs::set_permissions(world.hob_dir(), Permissions::from_mode(0o700)).unwrap();
    fs::write(world.hob_dir().join("socket"), "not a socket").unwrap();
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn without_home_and_directories_of_its_own_hob_still_works() {
    let world = World::started();
    let run = hello(&world).without("HOME").without("XDG_STATE_HOME").without("PATH");
    world.warm(&run, |outcome| {
        assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()));
    });
    let last = world.hob(&["last"]).without("HOME").without("XDG_STATE_HOME").go();
    assert!(last.complaint().lines().count() <= 1, "{last:?}");
}

#[test]
fn a_directory_that_is_not_named_by_an_absolute_path_is_not_used() {
    let world = World::new();
    let script = world.path("work/hello.py");
    hello(&world);
    fs::create_dir(world.path("elsewhere")).unwrap();
    for directory in ["work", "elsewhere"] {
        let run = world.hob(&["run"]).args(&[&script]).env("HOB_DIR", "run");
        let run = run.within(world.path(directory));
        let said = goes_cold(&world, &run, "socket-dir-unsafe");
        assert!(said.contains("not an absolute path") && said.lines().count() == 1, "{said}");
        for verb in ["start", "status", "stop", "restart", "daemon"] {
            let outcome =
                world.hob(&[verb]).env("HOB_DIR", "run").within(world.path(directory)).go();
            assert_eq!(outcome.end, End::Code(1), "{verb}: {outcome:?}");
            let said = outcome.complaint();
            assert!(said.contains("run: not used: it is not an absolute path"), "{verb}: {said}");
            assert!(verb == "daemon" || said.contains("set HOB_DIR"), "{verb}: {said}");
        }
    }
    assert!(!world.path("work/run").exists() && !world.path("elsewhere/run").exists());
    assert!(!world.hob_dir().exists(), "nothing is made anywhere");
}
