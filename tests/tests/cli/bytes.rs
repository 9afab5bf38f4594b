//! Whatever comes through the socket: a dropped connection, never a hang, never a dead daemon.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use hob_os::claim::Claim;
use hob_tests::socket::Client;
use hob_tests::{World, leftovers, wait};
use rustix::fd::{AsFd, OwnedFd};

/// A golden frame.
fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtimes/golden").join(name)).unwrap()
}

/// The golden hello with the build of the daemon that runs here.
fn hello(world: &World) -> Vec<u8> {
    let build = world.status()["build"].as_str().unwrap().to_owned();
    let digits: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&build[2 * at..2 * at + 2], 16).unwrap()).collect();
    let mut frame = golden("hello.bin");
    frame[12..28].copy_from_slice(&digits);
    frame
}

/// The descriptors of the golden call.
fn descriptors() -> Vec<OwnedFd> {
    let null = OwnedFd::from(File::options().read(true).write(true).open("/dev/null").unwrap());
    let directory = File::open("/").unwrap().into();
    let claim = Claim::offer(&[null.as_fd(); 4]).unwrap();
    let [offers, takes] = claim.ends().map(|end| end.try_clone_to_owned().unwrap());
    vec![directory, offers, takes]
}

/// The daemon is the same one, answers, serves a call, and holds no more than before.
fn unharmed(world: &World, daemon: u32, before: usize) {
    assert_eq!(world.daemon(), daemon, "the daemon died");
    let warm = world.hob(&["run", "true"]).go();
    warm.succeeded();
    let after = wait::look(Duration::from_secs(10), || {
        (leftovers::descriptors(daemon) <= before).then_some(())
    });
    assert!(
        after.is_some(),
        "{before} descriptors before, {} after",
        leftovers::descriptors(daemon)
    );
    assert_eq!(world.status()["calls"]["running"], 0);
}

#[test]
fn a_caller_may_leave_after_any_byte() {
    let world = World::started();
    let (daemon, hello, call) = (world.daemon(), hello(&world), golden("call.bin"));
    let both = [hello, call].concat();
    let before = leftovers::descriptors(daemon);
    for cut in 0..=both.len() {
        let client = Client::connect(&world.hob_dir());
        let fds = descriptors();
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        client.send(&both[..cut], &fds);
    }
    unharmed(&world, daemon, before);
}

#[test]
fn a_frame_may_come_byte_by_byte_and_without_its_descriptors() {
    let world = World::started();
    let (daemon, hello, call) = (world.daemon(), hello(&world), golden("call.bin"));
    let before = leftovers::descriptors(daemon);
    let client = Client::connect(&world.hob_dir());
    for byte in hello.iter().chain(&call) {
        client.send(&[*byte], &[]);
    }
    assert_eq!(client.rest(wait::LONG), Some(Vec::new()), "the connection is dropped");
    // Too many, and with the wrong frame.
    let fds = descriptors();
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    let client = Client::connect(&world.hob_dir());
    client.send(&hello, &fds);
    client.send(&call, &fds);
    let _ = client.rest(Duration::from_secs(1));
    drop(client);
    unharmed(&world, daemon, before);
}

#[test]
fn garbage_is_dropped() {
    let world = World::started();
    let (daemon, hello, call) = (world.daemon(), hello(&world), golden("call.bin"));
    let before = leftovers::descriptors(daemon);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let both = [hello.clone(), call].concat();
    for turn in 0..300 {
        let mut bytes = both.clone();
        if turn % 3 == 0 {
            bytes = (0..random() % 200).map(|_| random().to_le_bytes()[0]).collect();
        } else {
            for _ in 0..=random() % 4 {
                let at = usize::try_from(random() % bytes.len() as u64).unwrap();
                bytes[at] = random().to_le_bytes()[0];
            }
        }
        let client = Client::connect(&world.hob_dir());
        let fds = descriptors();
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        client.send(&bytes, &fds);
        // Every other one waits, so that the daemon reads it whole.
        if turn % 10 == 0 {
            let _ = client.rest(Duration::from_millis(50));
        }
    }
    let lengths: [[u8; 4]; 3] = [[0xff; 4], [0, 0, 0x10, 0], [1, 0, 0x10, 0]];
    for length in lengths {
        let client = Client::connect(&world.hob_dir());
        let head = [b"hob\x01\x02\x00\x00\x00".as_slice(), &length].concat();
        client.send(&[hello.clone(), head].concat(), &[]);
        drop(client);
    }
    unharmed(&world, daemon, before);
}

#[test]
fn a_flood_of_connections_is_bounded_and_passes() {
    let world = World::started();
    let daemon = world.daemon();
    let before = leftovers::descriptors(daemon);
    let clients: Vec<_> = (0..600).map(|_| Client::connect(&world.hob_dir())).collect();
    world.file("hello.py", "print('hello')\n");
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
    // Those that say nothing are dropped after a while.
    for client in &clients {
        assert_eq!(client.rest(wait::LONG), Some(Vec::new()));
    }
    drop(clients);
    unharmed(&world, daemon, before + 24);
}
