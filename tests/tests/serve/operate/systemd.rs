//! A site that systemd starts: its listener is passed, it tells when it is ready and that it is
//! alive, and no app sees anything of that.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
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
elif kind == 'datagram':
    passed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    passed.bind('site.sock')
else:
    passed = socket.create_server(('127.0.0.1', 0))
    with open('port.new', 'w') as file:
        file.write(str(passed.getsockname()[1]))
    os.rename('port.new', 'port')
passed.listen() if kind != 'datagram' else None
high = os.dup(passed.fileno())
second = socket.socket(socket.AF_UNIX)
second.bind('second.sock')
second.listen()
second = os.dup(second.fileno())
os.dup2(high, 3)
count = 2 if kind == 'two' else 1
os.dup2(second, 4) if count == 2 else None
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
    let datagram = managed(&world, "datagram").go();
    assert!(datagram.complaint().contains("is no stream socket that listens"), "{datagram:?}");
    // Of somebody else: this process was not meant.
    let words = ["serve", ".", "--listen", "0"];
    let other = world.hob(&words).env("LISTEN_FDS", "2").env("LISTEN_PID", "1").start();
    other.expect("hob: serving http://");
    other.signal(Signal::TERM);
    other.finish().succeeded();
}

#[test]
fn several_listeners_are_taken_of_either_kind() {
    let world = World::new();
    let running = managed(&world, "two").start();
    running.expect("serving http://");
    running.expect("serving unix:");
    let port: u16 = std::fs::read_to_string(world.path("work/port")).unwrap().parse().unwrap();
    let request = b"GET / HTTP/1.0\r\n\r\n";
    let mut answers = [String::new(), String::new()];
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    tcp.write_all(request).unwrap();
    tcp.read_to_string(&mut answers[0]).unwrap();
    let mut unix = UnixStream::connect(world.path("work/second.sock")).expect("it listens");
    unix.write_all(request).unwrap();
    unix.read_to_string(&mut answers[1]).unwrap();
    for answer in answers {
        assert!(answer.ends_with("\r\n\r\n([], [])"), "{answer}");
    }
    running.signal(Signal::TERM);
    running.finish().succeeded();
    // The file is its manager's.
    assert!(world.path("work/second.sock").exists());
}
