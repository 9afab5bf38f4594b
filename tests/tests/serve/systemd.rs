//! A site that systemd starts: its listener is passed, it tells when it is ready and that it is
//! alive, and no app sees anything of that.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use hob_tests::{Run, World, wait};
use rustix::process::Signal;

const APP: &str = r#"
import os

def application(environ, start):
    start("200 OK", [])
    names = [name for name in os.environ if name.startswith(("LISTEN_", "NOTIFY_", "WATCHDOG_"))]
    descriptors = [n for n in range(3, 20) if is_open(n) and os.get_inheritable(n)]
    return [repr((names, descriptors)).encode()]

def is_open(number):
    try:
        os.fstat(number)
        return True
    except OSError:
        return False
"#;

/// What systemd does before it executes a service: the sockets are there from 3 on, and are this
/// process's by its number.
const MANAGER: &str = "import os, socket, sys
kind, hob = sys.argv[1], sys.argv[2:]
if kind == 'unix':
    passed = socket.socket(socket.AF_UNIX)
    passed.bind('site.sock')
else:
    passed = socket.create_server(('127.0.0.1', 0))
    with open('port.new', 'w') as file:
        file.write(str(passed.getsockname()[1]))
    os.rename('port.new', 'port')
passed.listen()
high = os.dup(passed.fileno())
os.dup2(high, 3)
count = 2 if kind == 'two' else 1
os.dup2(high, 4) if count == 2 else None
os.environ.update(LISTEN_FDS=str(count), LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES='site')
os.execv(hob[0], hob)
";

fn managed(world: &World, kind: &str) -> Run {
    world.file("wsgi.py", APP);
    world.file("manager.py", MANAGER);
    let hob = world.binary().display().to_string();
    world.run(&["python3", "manager.py", kind, &hob, "serve", "."])
}

fn told(manager: &UnixDatagram, want: &str) {
    let mut room = [0; 256];
    wait::until(want, || {
        let count = manager.recv(&mut room).ok()?;
        String::from_utf8_lossy(&room[..count]).contains(want).then_some(())
    });
}

#[test]
fn it_listens_where_it_is_told_says_when_it_is_ready_and_that_it_is_alive() {
    let world = World::new();
    let path = world.path("work/notify");
    let run = managed(&world, "inet").env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
    let manager = UnixDatagram::bind(&path).expect("a socket can be bound");
    manager.set_read_timeout(Some(Duration::from_millis(50))).expect("a time can be set");
    let running = run.start();
    told(&manager, "READY=1\nSTATUS=serving http://127.0.0.1:");
    let port: u16 = std::fs::read_to_string(world.path("work/port")).unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\n([], [])"), "{answer}");
    told(&manager, "WATCHDOG=1");
    told(&manager, "WATCHDOG=1");
    running.signal(Signal::TERM);
    told(&manager, "STOPPING=1");
    let outcome = running.finish();
    assert!(outcome.text().contains(&format!("serving http://127.0.0.1:{port}/")), "{outcome:?}");
    outcome.succeeded();
}

#[test]
fn what_is_passed_and_is_no_listener_of_a_sites_is_named() {
    let world = World::new();
    let two = managed(&world, "two").go();
    assert!(two.complaint().contains("LISTEN_FDS=2: a site listens at one address"), "{two:?}");
    let unix = managed(&world, "unix").go();
    assert!(unix.complaint().contains("is no TCP socket that listens"), "{unix:?}");
    // Of somebody else: this process was not meant.
    let words = ["serve", ".", "--listen", "0"];
    let other = world.hob(&words).env("LISTEN_FDS", "2").env("LISTEN_PID", "1").start();
    other.expect("hob: serving http://");
    other.signal(Signal::TERM);
    other.finish().succeeded();
}
