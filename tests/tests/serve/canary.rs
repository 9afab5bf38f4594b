//! What one request brings and what its app keeps of it is found in no later one, where the
//! isolation of their mount says so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;

use hob_tests::bytes::in_memory;
use hob_tests::site::Site;
use hob_tests::{World, wait};

const WSGI: &str = r#"
import os, random, secrets, time, uuid
KEPT = []

def application(environ, start):
    start("200 OK", [])
    path = environ["PATH_INFO"]
    if path == "/keep":
        KEPT.append(environ["wsgi.input"].read())
        os.environ["KEPT"] = environ["HTTP_X_KEPT"]
    if path == "/hold":
        with open("holds.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("holds.new", "holds")
        while not os.path.exists("go"):
            time.sleep(0.01)
    if path == "/draw":
        drawn = (random.random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(16))
        return [" ".join(map(str, drawn)).encode()]
    return [repr((len(KEPT), "KEPT" in os.environ)).encode()]
"#;
const RACK: &str = r#"
require "securerandom"
require "openssl"
$kept = []

run(lambda do |env|
  case env["PATH_INFO"]
  when "/keep"
    $kept << env["rack.input"].read
    ENV["KEPT"] = env["HTTP_X_KEPT"]
  when "/hold"
    File.write("holds.new", Process.pid.to_s)
    File.rename("holds.new", "holds")
    sleep 0.01 until File.exist?("go")
  when "/draw"
    drawn = [rand, Random.new_seed, SecureRandom.uuid, OpenSSL::Random.random_bytes(16).unpack1("H*")]
    next [200, {}, [drawn.join(" ")]]
  end
  [200, {}, ["(#{$kept.size}, #{ENV.key?("KEPT").to_s.capitalize})"]]
end)
"#;

fn site(world: &World, isolation: &str) -> Site {
    world.file("wsgi.py", WSGI);
    world.file("config.ru", RACK);
    let mount = |kind: &str, file: &str| {
        format!("[mount.\"/{kind}\"]\n{kind} = \"{file}\"\nisolation = \"{isolation}\"\n")
    };
    world.file("hob.toml", mount("wsgi", "wsgi.py") + &mount("rack", "config.ru"));
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// The answer to a request whose body and header are the canary's; then, of the worker of the next
/// request, whether its memory holds it.
fn kept(world: &World, site: &Site, mount: &str, canary: &str) -> (String, Option<String>) {
    let headers = format!("X-Kept: {canary}\r\n");
    assert_eq!(site.ask("POST", &format!("{mount}/keep"), &headers, canary.as_bytes()).status, 200);
    let mut held = TcpStream::connect(site.address()).unwrap();
    let request = format!("GET {mount}/hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    held.write_all(request.as_bytes()).unwrap();
    let pid = wait::until("a worker holds", || {
        std::fs::read_to_string(world.path("work/holds")).ok()?.parse::<u32>().ok()
    });
    assert!(File::open(format!("/proc/{pid}/mem")).is_ok(), "its memory can be read");
    let found = in_memory(pid, canary.as_bytes());
    world.file("go", "");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut held, &mut answer).unwrap();
    for name in ["go", "holds"] {
        std::fs::remove_file(world.path("work").join(name)).unwrap();
    }
    (answer.split_once("\r\n\r\n").unwrap().1.to_owned(), found)
}

#[test]
fn nothing_of_a_request_is_in_the_memory_of_the_next() {
    for isolation in ["spawn", "standby", "fork"] {
        let world = World::new();
        let site = site(&world, isolation);
        for mount in ["/wsgi", "/rack"] {
            let canary =
                format!("canary-{isolation}{}-{:08x}-sings", &mount[1..], std::process::id());
            let found = kept(&world, &site, mount, &canary);
            assert_eq!(found, ("(0, False)".to_owned(), None), "{isolation} {mount}");
        }
        site.stop();
    }
}

#[test]
fn the_search_finds_what_a_worker_that_goes_on_has_kept() {
    let world = World::new();
    let site = site(&world, "prefork\"\nworkers = 1\nidle = \"10m");
    for mount in ["/wsgi", "/rack"] {
        let canary = format!("canary-prefork{}-{:08x}-sings", &mount[1..], std::process::id());
        let (answer, found) = kept(&world, &site, mount, &canary);
        assert_eq!(answer, "(1, True)", "{mount}");
        assert!(found.is_some(), "{mount}");
    }
    site.stop();
}

#[test]
fn no_random_value_comes_twice_from_copies_of_one_app() {
    let world = World::new();
    let site = site(&world, "fork");
    for mount in ["/wsgi", "/rack"] {
        let mut seen = BTreeSet::new();
        for _ in 0..150 {
            let drawn = site.get(&format!("{mount}/draw")).text();
            for value in drawn.split(' ') {
                assert!(seen.insert(value.to_owned()), "{mount}: {value} twice");
            }
        }
        assert_eq!(seen.len(), 600);
    }
    site.stop();
}
