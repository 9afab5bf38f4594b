//! A user's outbox has one owner, the daemon, whatever sites run beside it.

use hob_tests::site::Site;
use hob_tests::teller::{Reply, Teller};
use hob_tests::{World, run, wait};
use rustix::process::Signal;

const HANDLERS: &str = r"
import hob, os

OUT = os.open(os.path.join(os.path.dirname(__file__), 'handled'), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(payload, message):
    os.write(OUT, payload + b'\n')

def application(environ, start_response):
    word = environ['PATH_INFO'].strip('/')
    hob.tell('note', word)
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [word.encode()]
";
const CONFIG: &str = "\
[program.note]
handler = \"handlers.py:note\"

[mount.\"/\"]
wsgi = \"handlers.py:application\"
";

/// A world with a tell that was handled, so that there is an outbox.
fn world() -> World {
    let world = World::new();
    world.file("handlers.py", HANDLERS);
    world.file("hob.toml", CONFIG);
    world.hob(&["trust"]).go().succeeded();
    world.hob(&["tell", "note", "first"]).go().succeeded();
    until_handled(&world, &["first"]);
    world
}

/// Its workers find `hob`, to start a daemon by.
fn site(world: &World) -> Site {
    let folder = world.binary().parent().expect("it lies in a folder").to_owned();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
    Site::start(&world.hob(&["serve", ".", "--listen", "0"]).env("PATH", path))
}

fn until_handled(world: &World, words: &[&str]) {
    let handled = || std::fs::read_to_string(world.path("work/handled")).unwrap_or_default();
    wait::until(&format!("{words:?} in the notes"), || {
        let mut notes: Vec<_> = handled().lines().map(str::to_owned).collect();
        notes.sort();
        let mut words = words.to_vec();
        words.sort_unstable();
        (notes == words).then_some(())
    });
    // What is finished is not given again, whatever is killed next.
    wait::until("an empty outbox", || {
        (world.status_if_any()?["messages"]["waiting"] == 0).then_some(())
    });
}

fn kill(pid: u32) {
    run::kill(pid, Signal::KILL);
    assert!(wait::ended(pid, wait::LONG), "{pid} was killed");
}

/// Tells, and looks at dead letters, as the user's shell does.
fn tells_and_looks(world: &World, word: &str) {
    let told = world.hob(&["tell", "note", word]).go();
    told.succeeded();
    let dead = world.hob(&["dead"]).go();
    dead.succeeded();
    assert_eq!(dead.text(), "there are no dead letters\n");
}

#[test]
fn a_site_leaves_the_outbox_to_the_daemon_that_comes_after_it() {
    let world = world();
    world.hob(&["stop"]).go().succeeded();
    let site = site(&world);
    tells_and_looks(&world, "beside");
    until_handled(&world, &["first", "beside"]);
    kill(world.daemon());
    tells_and_looks(&world, "killed");
    world.hob(&["restart"]).go().succeeded();
    tells_and_looks(&world, "restarted");
    until_handled(&world, &["first", "beside", "killed", "restarted"]);
    let daemon = world.daemon();
    let doctor = world.hob(&["doctor"]).go().text();
    assert!(doctor.contains(&format!("its owner is the daemon, process {daemon}")), "{doctor}");
    assert_eq!(world.status()["messages"]["outbox_owner"], daemon);
    let status = world.hob(&["status"]).go().text();
    assert!(status.contains(&format!("outbox    kept by pid {daemon}")), "{status}");
    let _ = site.stop();
}

#[test]
fn what_a_sites_workers_tell_is_handled_once_whatever_is_killed() {
    let world = world();
    let mut one = site(&world);
    let mut told = vec!["first".to_owned()];
    for round in 0..3 {
        for word in [format!("a{round}"), format!("b{round}")] {
            let answer = one.get(&format!("/{word}"));
            assert_eq!((answer.status, answer.text()), (200, word.clone()));
            told.push(word);
        }
        until_handled(&world, &told.iter().map(String::as_str).collect::<Vec<_>>());
        kill(world.daemon());
        if round == 1 {
            one.kill();
            // What a killed site leaves in its directory is the next one's of that port.
            std::fs::remove_dir_all(world.hob_dir().join("serve")).expect("it is there");
            one = site(&world);
        }
    }
    let answer = one.get("/last");
    assert_eq!((answer.status, answer.text()), (200, "last".to_owned()));
    told.push("last".to_owned());
    until_handled(&world, &told.iter().map(String::as_str).collect::<Vec<_>>());
    let _ = one.stop();
}

#[test]
fn a_site_says_who_keeps_what_it_is_told_itself() {
    let world = world();
    let site = site(&world);
    let directory = world.hob_dir().join("serve").join(site.address().port().to_string());
    let mut teller = Teller::connect(&directory, &world.path("work"), []).unwrap();
    teller.tell(1, "/", b"x").unwrap();
    teller.flush().unwrap();
    match teller.reply().unwrap() {
        Some(Reply::Failed(1, "not-kept", text)) => {
            assert!(text.starts_with("outbox-elsewhere: "), "{text}");
        }
        other => panic!("{other:?}"),
    }
    let _ = site.stop();
}

/// A process of another build, or of another socket directory, may have it.
#[test]
fn the_doctor_names_whoever_else_has_the_outbox() {
    let world = world();
    world.hob(&["stop"]).go().succeeded();
    let other = world.hob(&["daemon"]).env("HOB_DIR", world.path("other")).start();
    let holds = format!("its owner is process {} (", other.pid());
    wait::until("its outbox", || world.hob(&["doctor"]).go().text().contains(&holds).then_some(()));
    world.hob(&["start"]).go().succeeded();
    let doctor = world.hob(&["doctor"]).go();
    assert_eq!(doctor.end, run::End::Code(1), "{doctor:?}");
    assert!(doctor.text().contains(&holds), "{doctor:?}");
    // What is told waits until it is free.
    let waits = world.hob(&["tell", "note", "waited"]).start();
    wait::until("why it waits", || {
        let why = world.status()["messages"]["outbox_why"].clone();
        why.as_str().is_some_and(|why| why.starts_with("outbox-taken: ")).then_some(())
    });
    world.hob(&["stop"]).env("HOB_DIR", world.path("other")).go().succeeded();
    waits.finish().succeeded();
    until_handled(&world, &["first", "waited"]);
    let _ = other.finish();
}
