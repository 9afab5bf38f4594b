//! Requests that go to lent workers without the loop between: given once, never to old code, counted,
//! and bounded as all others are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use hob_tests::site::{Response, Site};
use hob_tests::{World, wait};
use rustix::process::{Pid, Signal, kill_process};

// What apps write lies in a folder of its own: beside what they have loaded it would look like an
// edit, after which a request goes by the loop.
const WSGI: &str = r#"
import os, time
import part

def endless():
    try:
        while True:
            yield b"more;"
            time.sleep(0.002)
    finally:
        open("seen/closed", "w").close()

def application(environ, start):
    path = environ["PATH_INFO"]
    with open("seen/ran", "a") as ran:
        ran.write(path + "\n")
    if path == "/raise":
        raise RuntimeError("as asked")
    if path == "/end":
        os._exit(3)
    if path.startswith("/hold"):
        open("seen/held" + path[5:], "w").close()
        while not os.path.exists("seen/go" + path[5:]):
            time.sleep(0.002)
    if path == "/slow":
        time.sleep(60)
    start("200 OK", [])
    if path == "/endless":
        return endless()
    return [b"%s pid=%d" % (part.TEXT, os.getpid())]
"#;

const RACK: &str = r##"
require_relative "part"

class Endless
  def each
    loop do
      yield "more;"
      sleep 0.002
    end
  end

  def close = File.write("seen/closed", "")
end

run lambda { |env|
  path = env["PATH_INFO"]
  File.open("seen/ran", "a") { |ran| ran.write("#{path}\n") }
  raise "as asked" if path == "/raise"
  exit!(3) if path == "/end"
  if path.start_with?("/hold")
    File.write("seen/held#{path[5..]}", "")
    sleep 0.002 until File.exist?("seen/go#{path[5..]}")
  end
  sleep 60 if path == "/slow"
  [200, {}, path == "/endless" ? Endless.new : ["#{TEXT} pid=#{Process.pid}"]]
}
"##;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wsgi,
    Rack,
}

const KINDS: [Kind; 2] = [Kind::Wsgi, Kind::Rack];

impl Kind {
    fn serve(self, world: &World, terms: &str) -> Site {
        let (interface, file, text) = match self {
            Kind::Wsgi => ("wsgi", "wsgi.py", WSGI),
            Kind::Rack => ("rack", "config.ru", RACK),
        };
        world.file(file, text);
        self.edit(world, "first");
        world.file("seen/none", "");
        world.file("hob.toml", format!("[mount.\"/\"]\n{interface} = \"{file}\"\n{terms}\n"));
        world.hob(&["trust"]).go().succeeded();
        Site::serve(world, &[])
    }

    fn edit(self, world: &World, text: &str) {
        match self {
            Kind::Wsgi => world.file("part.py", format!("TEXT = b\"{text}\"\n")),
            Kind::Rack => world.file("part.rb", format!("TEXT = \"{text}\"\n")),
        };
    }
}

/// Asks twice: behind the first answer the worker is lent. On a busy machine a start may take longer
/// than a mount's time.
fn warm(site: &Site) {
    wait::until("an answer", || (site.get("/").status == 200).then_some(()));
    assert_eq!(site.get("/").status, 200);
}

/// How many requests receipts tell of, by reason and outcome, when the site has ended.
fn told(world: &World) -> BTreeMap<(String, String), u64> {
    let mut told = BTreeMap::new();
    for record in world.records(10_000) {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let stands_for = record["message"]["stands_for"].as_u64().unwrap();
        *told.entry((text(&record["reason"]), text(&record["outcome"]["kind"]))).or_default() +=
            stands_for;
    }
    told
}

fn count(told: &BTreeMap<(String, String), u64>, outcome: &str) -> u64 {
    told.iter().filter(|((_, kind), _)| kind == outcome).map(|(_, count)| count).sum()
}

fn pid(answer: &Response) -> Pid {
    let text = answer.text();
    let number = text.split_once("pid=").and_then(|(_, pid)| pid.parse().ok());
    Pid::from_raw(number.unwrap_or_else(|| panic!("{text}"))).unwrap()
}

fn is_there(world: &World, name: &str) {
    let path = world.path("work/seen").join(name);
    wait::until(name, || path.exists().then_some(()));
}

#[test]
fn requests_go_past_the_loop_and_each_is_counted_as_what_became_of_it() {
    for kind in KINDS {
        let world = World::new();
        let site = kind.serve(&world, "workers = 1");
        warm(&site);
        for _ in 0..60 {
            assert_eq!(site.get("/").status, 200);
        }
        assert_eq!(site.get("/raise").status, 500);
        assert_eq!(site.get("/").status, 200);
        assert_eq!(site.get("/end").status, 502);
        warm(&site);
        let _ = site.stop();
        let told = told(&world);
        let counts = ["answered", "raised", "lost"].map(|outcome| count(&told, outcome));
        assert_eq!(counts, [65, 1, 1], "{kind:?}: {told:?}");
        let lane = |outcome: &str| told.get(&("lane".to_owned(), outcome.to_owned()));
        // On a busy machine a lane is lent some requests later.
        assert!(lane("answered") >= Some(&40), "{told:?}");
        assert_eq!((lane("raised"), lane("lost")), (Some(&1), Some(&1)), "{told:?}");
    }
}

#[test]
fn a_client_that_leaves_a_long_answer_is_told_as_cancelled_and_its_worker_goes_on() {
    for kind in KINDS {
        let world = World::new();
        let site = kind.serve(&world, "workers = 1\ntimeout = \"2s\"");
        warm(&site);
        let worker = pid(&site.get("/"));
        let mut client = std::net::TcpStream::connect(site.address()).unwrap();
        std::io::Write::write_all(&mut client, b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let mut piece = [0; 4096];
        assert!(std::io::Read::read(&mut client, &mut piece).unwrap() > 0);
        drop(client);
        is_there(&world, "closed");
        assert_eq!(pid(&site.get("/")), worker, "{kind:?}");
        let _ = site.stop();
        let told = told(&world);
        let counts = ["answered", "cancelled"].map(|outcome| count(&told, outcome));
        assert_eq!(counts, [4, 1], "{kind:?}: {told:?}");
    }
}

#[test]
fn no_request_is_given_twice_while_workers_are_killed() {
    for kind in KINDS {
        let world = World::new();
        let site = kind.serve(&world, "workers = 3");
        let next = AtomicUsize::new(0);
        let lost: usize = std::thread::scope(|scope| {
            let ask = || {
                let mut lost = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 300 {
                        return lost;
                    }
                    let answer = site.get(&format!("/{number}"));
                    assert!(answer.status == 200 || answer.status == 502, "{answer:?}");
                    if answer.status == 502 {
                        lost += 1;
                    } else if number % 40 == 7 {
                        // One that has ended already was killed by another.
                        let _ = kill_process(pid(&answer), Signal::KILL);
                    }
                }
            };
            let askers: Vec<ScopedJoinHandle<'_, usize>> =
                (0..6).map(|_| scope.spawn(ask)).collect();
            askers.into_iter().map(|asker| asker.join().unwrap()).sum()
        });
        assert!(lost <= 24, "{kind:?}: {lost} were lost with eight workers");
        assert_eq!(site.get("/").status, 200);
        let _ = site.stop();
        let ran = std::fs::read_to_string(world.path("work/seen/ran")).unwrap();
        let mut lines: Vec<&str> = ran.lines().collect();
        let all = lines.len();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(all, lines.len(), "{kind:?}: {ran}");
        assert!(all + lost >= 301, "{kind:?}: {all} ran, {lost} were lost");
    }
}

#[test]
fn what_was_edited_answers_the_next_request() {
    for kind in KINDS {
        let world = World::new();
        let site = kind.serve(&world, "workers = 2");
        for number in 0..12 {
            warm(&site);
            let text = "x".repeat(number + 1);
            kind.edit(&world, &text);
            for _ in 0..3 {
                let answer = site.get("/").text();
                assert!(answer.starts_with(&format!("{text} ")), "{kind:?}: {text}: {answer}");
            }
        }
        let _ = site.stop();
        let told = told(&world);
        assert!(told.contains_key(&("lane".to_owned(), "answered".to_owned())), "{told:?}");
    }
}

#[test]
fn under_load_no_answer_is_older_than_the_edit_before_its_request() {
    let world = World::new();
    let kind = Kind::Wsgi;
    let site = kind.serve(&world, "workers = 3");
    kind.edit(&world, "x");
    let edited = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        let ask = || {
            while edited.load(Ordering::SeqCst) < 12 {
                let before = edited.load(Ordering::SeqCst);
                let answer = site.get("/");
                assert_eq!(answer.status, 200, "{answer:?}");
                let has = answer.text().find(' ').unwrap();
                assert!(has >= before, "{has} after edit {before}");
            }
        };
        let askers: Vec<ScopedJoinHandle<'_, ()>> = (0..5).map(|_| scope.spawn(ask)).collect();
        for number in 2..=12 {
            warm(&site);
            kind.edit(&world, &"x".repeat(number));
            edited.store(number, Ordering::SeqCst);
        }
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
    let _ = site.stop();
}

#[test]
fn workers_are_replaced_after_their_uses_and_nothing_is_lost() {
    for kind in KINDS {
        let world = World::new();
        let site = kind.serve(&world, "workers = 2\nrecycle = { requests = 5 }");
        let ask = || (0..20).map(|_| site.get("/")).collect::<Vec<_>>();
        let answers: Vec<Response> = std::thread::scope(|scope| {
            let askers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect()
        });
        let mut uses: BTreeMap<i32, usize> = BTreeMap::new();
        for answer in &answers {
            assert_eq!(answer.status, 200, "{kind:?}: {answer:?}");
            *uses.entry(pid(answer).as_raw_nonzero().get()).or_default() += 1;
        }
        assert!(uses.values().all(|uses| *uses <= 5), "{kind:?}: {uses:?}");
        let _ = site.stop();
        assert_eq!(count(&told(&world), "answered"), 80, "{kind:?}");
    }
}

#[test]
fn what_waits_is_bounded_and_a_site_that_stops_answers_what_it_has_begun() {
    for kind in KINDS {
        let world = World::new();
        let site = kind.serve(&world, "workers = 1\nqueue = 1");
        warm(&site);
        std::thread::scope(|scope| {
            let held = scope.spawn(|| site.get("/hold1"));
            is_there(&world, "held1");
            // One of two waits, the other is refused at once.
            let waits: Vec<_> = (0..2).map(|_| scope.spawn(|| site.get("/"))).collect();
            wait::until("one is refused", || {
                waits.iter().any(ScopedJoinHandle::is_finished).then_some(())
            });
            let metrics = site.control(&world, "/metrics").text();
            assert!(metrics.contains("hob_queued{mount=\"/\"} 1"), "{kind:?}: {metrics}");
            world.file("seen/go1", "");
            assert_eq!(held.join().unwrap().status, 200, "{kind:?}");
            let mut others: Vec<Response> =
                waits.into_iter().map(|one| one.join().unwrap()).collect();
            others.sort_by_key(|answer| answer.status);
            assert_eq!([others[0].status, others[1].status], [200, 503], "{kind:?}");
            assert_eq!(others[1].header("retry-after"), Some("1"));

            let held = scope.spawn(|| site.get("/hold2"));
            is_there(&world, "held2");
            kill_process(Pid::from_raw(site.pid().cast_signed()).unwrap(), Signal::TERM).unwrap();
            wait::until("it takes no more", || {
                std::net::TcpStream::connect(site.address()).is_err().then_some(())
            });
            world.file("seen/go2", "");
            assert_eq!(held.join().unwrap().status, 200, "{kind:?}");
        });
        let _ = site.stopped();
    }
}

#[test]
fn what_takes_too_long_is_taken_back_and_its_worker_ends() {
    for kind in KINDS {
        let by_lane = ("lane".to_owned(), "timed-out".to_owned());
        // On a busy machine a worker may not be lent again when the request comes.
        let has_held_one = (0..5).any(|_| takes_too_long(kind).get(&by_lane) == Some(&1));
        assert!(has_held_one, "{kind:?}: no lane had a request that took too long");
    }
}

/// A request that takes too long, and another that waits behind it; what receipts tell of them.
fn takes_too_long(kind: Kind) -> BTreeMap<(String, String), u64> {
    let world = World::new();
    let site = kind.serve(&world, "workers = 1\ntimeout = \"1s\"");
    // On a busy machine an interpreter may take longer to start than a request may.
    warm(&site);
    let worker = pid(&site.get("/"));
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..2).map(|_| scope.spawn(|| site.get("/slow"))).collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.status == 504), "{kind:?}: {answers:?}");
    let after = wait::until("another worker", || {
        let answer = site.get("/");
        (answer.status == 200).then_some(answer)
    });
    assert_ne!(pid(&after), worker, "{kind:?}");
    let _ = site.stop();
    told(&world)
}
