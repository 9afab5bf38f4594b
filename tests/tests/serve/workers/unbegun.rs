//! A worker that is killed between its request's arrival and the app's begin, at that very moment:
//! the request goes to another one. Behind the begin it does not.

use hob_tests::run::{kill, read};
use hob_tests::site::Site;
use hob_tests::{World, leftovers, wait};
use rustix::process::Signal;

/// The runtime makes what the app is called with right before that. There whoever finds the file
/// `dies` dies; in the app, who finds `falls`. What they write lies in a folder of its own:
/// beside what they have loaded it would look like an edit.
const WSGI: &str = r#"
import os, signal, sys

def die_at(name):
    try:
        os.unlink("seen/" + name)
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

def profile(frame, event, _):
    if event == "call" and frame.f_code.co_name in ("environ_of", "scope_of"):
        die_at("dies")

sys.setprofile(profile)

def note(path):
    with open("seen/began", "a") as began:
        began.write(path + "\n")
    die_at("falls")

def application(environ, start):
    note(environ["PATH_INFO"])
    start("200 OK", [])
    return [b"ok"]
"#;
const ASGI: &str = r#"
async def asgi(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError(scope["type"])
    note(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"#;
const RACK: &str = r##"
module Die
  def self.at(name)
    File.unlink("seen/#{name}")
    Process.kill(:KILL, Process.pid)
  rescue Errno::ENOENT
    nil
  end
end

StringIO.singleton_class.prepend(Module.new do
  def new(*)
    Die.at("dies")
    super
  end
end)

run(lambda do |env|
  File.write("seen/began", "#{env["PATH_INFO"]}\n", mode: "a")
  Die.at("falls")
  [200, {}, ["ok"]]
end)
"##;

fn site(world: &World, app: &str, isolation: &str) -> Site {
    std::fs::create_dir_all(world.path("work/seen")).unwrap();
    world.file("app.py", format!("{WSGI}{ASGI}"));
    world.file("config.ru", RACK);
    let config = format!("[mount.\"/\"]\n{app}\nisolation = \"{isolation}\"\nworkers = 2\n");
    world.file("hob.toml", config);
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// How often the app began a request.
fn begun(world: &World, path: &str) -> usize {
    let began = String::from_utf8(read(world.path("work/seen/began"))).unwrap();
    began.lines().filter(|line| *line == path).count()
}

fn goes_on(app: &str, isolation: &str) {
    let world = World::new();
    let site = site(&world, app, isolation);
    for round in 0..6 {
        // The first makes a lane, where there are lanes.
        for number in 0..3 {
            assert_eq!(site.get(&format!("/plain-{round}-{number}")).status, 200, "{}", site.err());
        }
        for (name, status) in [("dies", 200), ("falls", 502)] {
            let path = format!("/{name}-{round}");
            world.file(&format!("seen/{name}"), "");
            let answer = site.get(&path);
            let said = format!("{app}, {isolation}, {path}: {answer:?}\n{}", site.err());
            assert!(!world.path("work/seen").join(name).exists(), "nobody was killed: {said}");
            assert_eq!((answer.status, begun(&world, &path)), (status, 1), "{said}");
        }
    }
    site.stop();
}

#[test]
fn what_a_killed_worker_had_read_and_not_begun_goes_to_another_and_what_it_began_does_not() {
    for isolation in ["fork", "standby", "spawn", "prefork"] {
        goes_on("wsgi = \"app.py\"", isolation);
    }
}

#[test]
fn the_same_of_what_an_event_loop_had_read() {
    for isolation in ["fork", "prefork"] {
        goes_on("asgi = \"app.py:asgi\"", isolation);
    }
}

#[test]
fn the_same_of_a_rack_apps_workers() {
    for isolation in ["fork", "prefork"] {
        goes_on("rack = \"config.ru\"", isolation);
    }
}

/// Whether a process was stopped.
fn stands(pid: u32) -> bool {
    let stat = String::from_utf8(read(format!("/proc/{pid}/stat"))).unwrap();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// The site's daemon hears of the zygote's end before its copies have ended.
#[test]
fn what_the_copies_of_a_killed_zygote_had_not_read_goes_on() {
    let world = World::new();
    let site = site(&world, "wsgi = \"app.py\"", "fork");
    let children = |parent: u32| {
        let all = leftovers::all().into_iter();
        all.filter(move |pid| leftovers::parent(*pid) == Some(parent)).collect::<Vec<_>>()
    };
    for round in 0..5 {
        let path = format!("/{round}");
        assert_eq!(site.get("/plain").status, 200, "{}", site.err());
        let (zygote, _) = wait::until("copies that wait", || {
            let mut zygotes = children(site.pid()).into_iter().map(|pid| (pid, children(pid)));
            zygotes.find(|(_, copies)| !copies.is_empty())
        });
        // It makes no others, and none of them reads.
        kill(zygote, Signal::STOP);
        wait::until("the zygote stands", || stands(zygote).then_some(()));
        let copies = children(zygote);
        copies.iter().for_each(|copy| kill(*copy, Signal::STOP));
        assert!(!copies.is_empty());
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| site.get(&path));
            wait::until("it has come", || {
                let status = site.control(&world, "/metrics").text();
                status.contains("hob_http_active{mount=\"/\"} 1\n").then_some(())
            });
            kill(zygote, Signal::KILL);
            let answer = asking.join().unwrap();
            assert_eq!((answer.status, begun(&world, &path)), (200, 1), "{}", site.err());
        });
    }
    site.stop();
}
