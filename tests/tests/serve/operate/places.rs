//! Where a site listens: several addresses, and unix sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use hob_tests::{Running, World};
use rustix::process::Signal;

const APP: &str = r#"
NAMES = ("REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT", "HTTP_HOST", "HTTP_X_FORWARDED_FOR")

def application(environ, start):
    start("200 OK", [])
    return [" ".join(str(environ.get(name)) for name in NAMES).encode()]
"#;

fn site(world: &World, serve: &str) {
    world.file("wsgi.py", APP);
    world.file("hob.toml", format!("[serve]\n{serve}\n[mount.\"/\"]\nwsgi = \"wsgi.py\"\n"));
    world.hob(&["trust"]).go().succeeded();
}

fn ask(mut stream: impl Read + Write, headers: &str) -> String {
    let request = format!("GET / HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").expect("an answer").1.to_owned()
}

fn unix(world: &World, name: &str) -> UnixStream {
    UnixStream::connect(world.path("work").join(name)).expect("it listens")
}

fn serve(world: &World, words: &[&str]) -> Running {
    let running = world.hob(&[&["serve"], words].concat()).start();
    running.expect("  /  ");
    running
}

fn stop(world: &World, running: Running, named: &str) {
    world.hob(&["serve", "stop", named]).go().succeeded();
    running.finish().succeeded();
}

#[test]
fn a_site_at_a_unix_socket_alone_is_found_by_its_path() {
    let world = World::new();
    let more = "socket_mode = \"660\"\ntrusted_proxies = [\"127.0.0.1\"]";
    site(&world, &format!("listen = \"unix:app.sock\"\n{more}"));
    let running = serve(&world, &[]);
    let path = world.path("work/app.sock");
    let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    // Who reaches it is on this machine; a proxy there is believed if this machine is.
    let told = ask(unix(&world, "app.sock"), "Host: shop.test\r\n");
    assert_eq!(told, "127.0.0.1 shop.test 80 shop.test None");
    let told = ask(unix(&world, "app.sock"), "Host: a\r\nX-Forwarded-For: 203.0.113.9\r\n");
    assert_eq!(told, "203.0.113.9 a 80 a 203.0.113.9");
    let status = world.hob(&["serve", "status", "--json"]).go();
    let status: serde_json::Value = serde_json::from_str(&status.text()).unwrap();
    assert!(status["sites"][0]["port"].is_null(), "{status}");
    let place = format!("unix:{}", path.display());
    assert_eq!(status["sites"][0]["front"]["listens"][0], place.as_str());
    assert!(world.hob(&["serve", "status"]).go().text().starts_with(&place));
    // Nobody else takes its place, and it is still there.
    let said = world.hob(&["serve"]).go().complaint();
    assert!(said.contains("somebody listens there"), "{said}");
    assert!(path.exists());
    stop(&world, running, &path.display().to_string());
    assert!(!path.exists());
}

#[test]
fn several_places_are_served_alike() {
    let world = World::new();
    site(&world, "listen = [\"127.0.0.1:0\", \"unix:one.sock\"]");
    let running = serve(&world, &[]);
    let out = String::from_utf8(running.out()).unwrap();
    let (_, rest) = out.split_once("serving http://").unwrap();
    let (address, _) = rest.split_once('/').unwrap();
    let told = ask(TcpStream::connect(address).unwrap(), "Host: a\r\n");
    assert_eq!(told, "127.0.0.1 a 80 a None");
    assert_eq!(ask(unix(&world, "one.sock"), "Host: a\r\n"), told);
    let port = address.split_once(':').unwrap().1.to_owned();
    stop(&world, running, &port);
    let name = format!("@hob-test-{}", std::process::id());
    let words = ["--listen", "0", "--listen", &format!("unix:{name}"), "--listen", "unix:two.sock"];
    let running = serve(&world, &words);
    let address = SocketAddr::from_abstract_name(&name[1..]);
    let stream = UnixStream::connect_addr(&address.unwrap()).expect("it listens");
    assert_eq!(ask(stream, "Host: a\r\n"), told);
    assert_eq!(ask(unix(&world, "two.sock"), "Host: a\r\n"), told);
    stop(&world, running, &name);
}

#[test]
fn what_a_killed_site_leaves_is_taken_and_what_is_no_socket_is_not() {
    let world = World::new();
    site(&world, "listen = \"unix:app.sock\"");
    let running = serve(&world, &[]);
    running.signal(Signal::KILL);
    let _ = running.finish();
    assert!(world.path("work/app.sock").exists());
    let running = serve(&world, &[]);
    assert!(ask(unix(&world, "app.sock"), "Host: a\r\n").starts_with("127.0.0.1"));
    // Another one has the place by then: it is not taken from them.
    std::fs::remove_file(world.path("work/app.sock")).unwrap();
    let other = UnixListener::bind(world.path("work/app.sock")).unwrap();
    running.signal(Signal::TERM);
    running.finish().succeeded();
    assert!(world.path("work/app.sock").exists());
    drop(other);
    std::fs::remove_file(world.path("work/app.sock")).unwrap();
    world.file("app.sock", "a file of the user's");
    let said = world.hob(&["serve"]).go().complaint();
    assert!(said.contains("unix:app.sock: a file is there that is no socket"), "{said}");
    let kept = std::fs::read_to_string(world.path("work/app.sock")).unwrap();
    assert_eq!(kept, "a file of the user's");
    for (serve, want) in [
        ("listen = []", "it names no place"),
        ("listen = \"unix:a\"\nsocket_mode = \"rw\"", "it is rights such as"),
        ("listen = \"here\"", "or unix:PATH"),
    ] {
        world.file("hob.toml", format!("[serve]\n{serve}\n[mount.\"/\"]\nwsgi = \"wsgi.py\"\n"));
        let trusted = world.hob(&["trust"]).go();
        let told = [trusted.complaint(), world.hob(&["serve"]).go().complaint()];
        assert!(told.iter().any(|said| said.contains(want)), "{serve}: {told:?}");
    }
}
