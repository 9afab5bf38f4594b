//! Another user at the socket, though permissions were forced open; and what listens in hob's
//! place.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use hob_tests::{End, Outcome, Run, World, wait};

/// A user that is not this one.
const NOBODY: u32 = 65534;
/// What the caller has in its environment and must not be sent.
const SECRET: &str = "secret-that-nobody-hears";

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn open_up(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn hello(world: &World) -> Run {
    world.file("hello.py", "print('hello')\n");
    world.hob(&["run", "hello.py"]).env("TOKEN", SECRET)
}

fn ran_cold(world: &World, outcome: &Outcome, reason: &str) {
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()), "{outcome:?}");
    assert_eq!(world.reason(outcome.pid), reason);
}

#[test]
fn another_user_is_dropped_though_every_permission_is_forced_open() {
    if !is_root() {
        return hob_tests::skipped("only root can become another user");
    }
    let world = World::started();
    let run = hello(&world);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
    open_up(&world.path(""), 0o755);
    open_up(&world.hob_dir(), 0o777);
    open_up(&world.hob_dir().join("socket"), 0o777);
    let before = world.status_if_any();
    // The directory is open, so that hob itself does not look at it any more.
    assert!(before.is_none(), "{before:?}");
    let talks = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(bytes.fromhex(sys.argv[2]))\ns.settimeout(20)\nprint(s.recv(100))\n";
    world.file("talks.py", talks);
    open_up(&world.path("work"), 0o755);
    let socket = world.hob_dir().join("socket");
    let asks = hello_and_status();
    let talk = |user: &[&str]| {
        let words = [&socket.to_string_lossy(), asks.as_str()].map(str::to_owned);
        world.run(&["python3", "talks.py"]).args(&words).under(user).go()
    };
    let id = NOBODY.to_string();
    let other = talk(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
    let silence = other.text() == "b''\n"
        || other.complaint().contains("Connection reset")
        || other.complaint().contains("Broken pipe");
    assert!(silence, "the daemon answered another user: {other:?}");
    let own = talk(&["env"]);
    assert!(own.text().contains("hob"), "the same bytes are answered to its owner: {own:?}");
    open_up(&world.hob_dir(), 0o700);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

/// A `hello` and a control request, in hexadecimal.
fn hello_and_status() -> String {
    use hob_wire::call::Hello;
    use hob_wire::frame::{self, Kind};
    let mut bytes = Vec::new();
    let hello = Hello { build: [0; 16], pid: 1 };
    frame::append(&mut bytes, Kind::Hello, 0, |out| hello.encode(out)).unwrap();
    let body = br#"{"verb":"status"}"#;
    frame::append(&mut bytes, Kind::Control, 0, |out| out.extend_from_slice(body)).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A listener in hob's place, which keeps what it is sent.
struct Listener(UnixListener);

impl Listener {
    fn at(directory: &Path) -> Listener {
        let listener = UnixListener::bind(directory.join("socket")).unwrap();
        listener.set_nonblocking(true).unwrap();
        Listener(listener)
    }

    /// All that anybody has sent, from connections that have ended.
    fn heard(&self) -> (usize, Vec<u8>) {
        let (mut connections, mut heard) = (0, Vec::new());
        while let Ok((mut stream, _)) = self.0.accept() {
            connections += 1;
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let _ = stream.read_to_end(&mut heard);
        }
        (connections, heard)
    }
}

#[test]
fn nothing_is_sent_to_a_listener_in_a_directory_that_is_not_safe() {
    let world = World::new();
    let run = hello(&world);
    let (directory, elsewhere) = (world.hob_dir(), world.path("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    open_up(&elsewhere, 0o700);
    let listener = Listener::at(&elsewhere);
    // Its own directory, open to all; and a link to a directory that would be safe.
    symlink(&elsewhere, &directory).unwrap();
    ran_cold(&world, &run.go(), "socket-dir-unsafe");
    fs::remove_file(&directory).unwrap();
    for mode in [0o777, 0o770, 0o711] {
        open_up(&elsewhere, mode);
        let outcome = run.clone().env("HOB_DIR", &elsewhere).go();
        ran_cold(&world, &outcome, "socket-dir-unsafe");
    }
    if is_root() {
        open_up(&elsewhere, 0o700);
        rustix::fs::chown(&elsewhere, Some(rustix::fs::Uid::from_raw(NOBODY)), None).unwrap();
        let outcome = run.clone().env("HOB_DIR", &elsewhere).go();
        ran_cold(&world, &outcome, "socket-dir-unsafe");
    }
    assert_eq!(listener.heard(), (0, Vec::new()), "nobody may even have connected");
}

#[test]
fn nothing_is_sent_to_another_users_listener_in_a_safe_directory() {
    if !is_root() {
        return hob_tests::skipped("only root can start another user's listener");
    }
    let world = World::new();
    let run = hello(&world);
    fs::create_dir(world.hob_dir()).unwrap();
    // Open while the other user binds, and safe afterwards: what a mistake of a minute leaves.
    open_up(&world.path(""), 0o755);
    open_up(&world.path("work"), 0o755);
    open_up(&world.hob_dir(), 0o777);
    let listens = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint('listens', flush=True)\nwhile True:\n    c, _ = s.accept()\n    c.settimeout(20)\n    got = b''\n    while True:\n        part = c.recv(65536)\n        if not part: break\n        got += part\n    print('heard', len(got), flush=True)\n";
    world.file("listens.py", listens);
    let socket = world.hob_dir().join("socket");
    let id = NOBODY.to_string();
    let listener = world
        .run(&["python3", "listens.py"])
        .args(&[&socket])
        .under(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
        .start();
    listener.expect("listens");
    open_up(&world.hob_dir(), 0o700);
    ran_cold(&world, &run.go(), "peer-uid");
    listener.expect("heard 0\n");
    let _ = UnixStream::connect(&socket).unwrap();
    drop(listener);
    fs::remove_file(&socket).unwrap();
    wait::until("nothing listens", || (!socket.exists()).then_some(()));
}
