//! A receipt for every message: those of lanes too, however a lane or its worker ends. The sum of
//! `stands_for` over all receipts is how many messages were given, no fewer and no more.

use std::collections::BTreeMap;

use hob_tests::{End, World, run, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::{program, project, python, trusted};

const HANDLERS: &str = r"
import helper, os, signal, time

def handle(payload, message):
    how, _, path = payload.decode().partition(' ')
    if how == 'pids':
        return '%d %d' % (os.getpid(), os.getppid())
    if how == 'exit':
        os._exit(4)
    if how == 'raise':
        raise ValueError(path)
    if how == 'fork' and os.fork() == 0:
        return b'from the child'
    if how == 'hang':
        with open(path + '.new', 'w') as file:
            file.write(str(os.getpid()))
        os.rename(path + '.new', path)
        while True:
            time.sleep(1)
    return helper.WORD
";

/// What all senders here begin with: asks that are answered, and how many there were.
const SENDER: &str = r"
import hob, os, subprocess, sys
def asks(count, want=None):
    for _ in range(count):
        answer = hob.ask('word').decode()
        assert want is None or answer == want, (want, answer)
def write(word):
    with open('helper.new', 'w') as file:
        file.write('WORD = %r\n' % word)
    os.rename('helper.new', 'helper.py')
def on_a_lane():
    # A sender that was lent no lane asks for one again after 64 messages.
    count = 0
    # After a loss it has no connection until it asks again.
    while not count or not hob._local.sender or 'word' not in hob._local.sender.lanes:
        asks(1)
        count += 1
    return count
";

fn world(more: &str) -> World {
    let world = project(HANDLERS, &program("word", "handle", more));
    world.file("helper.py", "WORD = 'first'\n");
    world
}

/// For how many messages the receipts stand, by reason and outcome.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<(String, String), u64>);

impl Counts {
    fn of(world: &World) -> Counts {
        let mut counts = Counts::default();
        for record in world.records(10_000) {
            let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
            let kind = (word(&record["reason"]), word(&record["outcome"]["kind"]));
            // A fallback of a command is no message.
            let stands_for = record["message"]["stands_for"].as_u64().unwrap_or(0);
            *counts.0.entry(kind).or_default() += stands_for;
        }
        counts
    }

    fn all(&self) -> u64 {
        self.0.values().sum()
    }

    pub(super) fn by_reason(&self, reason: &str) -> u64 {
        self.0.iter().filter(|((of, _), _)| of == reason).map(|(_, count)| count).sum()
    }

    fn by_outcome(&self, outcome: &str) -> u64 {
        self.0.iter().filter(|((_, of), _)| of == outcome).map(|(_, count)| count).sum()
    }
}

/// Waits until all of so many messages have a receipt, and that none has two.
pub(super) fn all_are_counted(world: &World, want: u64) -> Counts {
    let mut newest = Counts::default();
    let found = wait::look(wait::LONG, || {
        newest = Counts::of(world);
        (newest.all() >= want).then_some(())
    });
    assert!(found.is_some() && newest.all() == want, "{want} messages, and {newest:?}");
    newest
}

/// The same with the daemon stopped: what is not counted now never will be.
fn all_were_counted(world: &World, want: u64) {
    world.stop();
    let counts = Counts::of(world);
    assert_eq!(counts.all(), want, "{counts:?}");
}

/// Runs a sender to its end; how many messages it says it has sent.
fn sent(world: &World, script: &str, words: &[&str]) -> u64 {
    let outcome = python(world, &(SENDER.to_owned() + script)).args(words).go();
    outcome.succeeded();
    outcome.text().trim().parse().unwrap_or_else(|_| panic!("{outcome:?}"))
}

/// The line of this number that a sender has printed: how many messages it has sent by then.
fn line(sender: &run::Running, number: usize) -> u64 {
    wait::until("a sender's line", || {
        let out = String::from_utf8(sender.out()).ok()?;
        let whole = &out[..=out.rfind('\n')?];
        whole.lines().nth(number)?.parse().ok()
    })
}

fn mark(world: &World, name: &str) -> String {
    world.path(name).to_str().unwrap().to_owned()
}

/// The process of a handler that hangs, once it does.
fn hanging(path: &str) -> u32 {
    wait::until("the handler's pid", || std::fs::read_to_string(path).ok()?.parse().ok())
}

#[test]
fn of_a_lane_that_an_edit_ends() {
    let world = world("");
    let script = "for turn in range(12):\n    write('w%d' % turn)\n    asks(70, 'w%d' % turn)\nprint(12 * 70)\n";
    let count = sent(&world, script, &[]);
    all_are_counted(&world, count);
    all_were_counted(&world, count);
}

#[test]
fn of_a_lane_that_an_edited_configuration_ends() {
    let world = world("");
    let script = r#"
with open('hob.toml') as file:
    text = file.read()
for turn in range(8):
    # Another pool, or the same one.
    with open('hob.toml', 'w') as file:
        file.write(text + ('queue = %d\n' % (100 + turn) if turn % 2 else '# %d\n' % turn))
    subprocess.run([sys.argv[1], 'trust'], check=True, stdout=subprocess.DEVNULL)
    asks(70)
print(8 * 70)
"#;
    let binary = world.binary().to_str().unwrap().to_owned();
    let count = sent(&world, script, &[&binary]);
    all_are_counted(&world, count);
    all_were_counted(&world, count);
}

#[test]
fn of_lanes_whose_workers_have_few_uses() {
    let world = world("uses = 7\nworkers = 3");
    let count = sent(&world, "asks(300)\nprint(300)\n", &[]);
    let jobs = world.hob(&["ask", "word", "x", "--count", "300", "--jobs", "3"]).go();
    jobs.succeeded();
    all_are_counted(&world, count + 300);
    all_were_counted(&world, count + 300);
}

#[test]
fn of_many_lanes_at_once_whose_senders_leave() {
    let world = world("workers = 4");
    for turn in 1..=4 {
        let jobs = world.hob(&["ask", "word", "x", "--count", "500", "--jobs", "4"]).go();
        jobs.succeeded();
        all_are_counted(&world, turn * 500);
    }
    all_were_counted(&world, 4 * 500);
}

#[test]
fn of_a_lane_that_rests_and_goes_on() {
    let world = world("");
    let script = r"
count = on_a_lane()
for _ in range(5):
    sys.stdin.readline()
    asks(30)
    count += 30
    print(count, flush=True)
sys.stdin.readline()
";
    // Nothing ends the lane, and no message comes after: what `hob log` shows is whole at once.
    let script = SENDER.to_owned() + script;
    let mut sender = python(&world, &script).stdin_pipe().start();
    let mut input = sender.take_stdin();
    for turn in 0..5 {
        std::io::Write::write_all(&mut input, b"\n").unwrap();
        let count = line(&sender, turn);
        let counts = Counts::of(&world);
        assert_eq!(counts.all(), count, "{counts:?}");
    }
    run::kill(sender.pid(), Signal::KILL);
}

#[test]
fn of_a_lane_that_idles_out() {
    let world = world("idle = \"1s\"");
    let script =
        "count = on_a_lane()\nasks(30)\nprint(count + 30, flush=True)\nsys.stdin.readline()\n";
    let mut sender = python(&world, &(SENDER.to_owned() + script)).stdin_pipe().start();
    let _input = sender.take_stdin();
    let count: u64 = line(&sender, 0);
    wait::until("the pool's end", || {
        let pools = world.status()["pools"].clone();
        pools.as_array().unwrap().is_empty().then_some(())
    });
    assert_eq!(Counts::of(&world).all(), count);
    run::kill(sender.pid(), Signal::KILL);
}

#[test]
fn of_a_lane_that_ends_with_the_daemon() {
    for verb in ["stop", "restart"] {
        let world = world("");
        let script =
            "count = on_a_lane()\nasks(30)\nprint(count + 30, flush=True)\nsys.stdin.readline()\n";
        let mut sender = python(&world, &(SENDER.to_owned() + script)).stdin_pipe().start();
        let _input = sender.take_stdin();
        let count: u64 = line(&sender, 0);
        world.hob(&[verb]).go().succeeded();
        let counts = Counts::of(&world);
        assert_eq!(counts.all(), count, "{verb}: {counts:?}");
        run::kill(sender.pid(), Signal::KILL);
    }
}

#[test]
fn of_a_lane_whose_sender_is_killed_while_it_asks() {
    let world = world("");
    let script = "count = on_a_lane()\nasks(30)\nprint(count + 30, flush=True)\nhob.ask('word', 'hang ' + sys.argv[1])\n";
    let path = mark(&world, "hangs");
    let sender = python(&world, &(SENDER.to_owned() + script)).args(&[&path]).start();
    let count: u64 = line(&sender, 0);
    let worker = hanging(&path);
    run::kill(sender.pid(), Signal::KILL);
    assert!(wait::ended(worker, wait::LONG), "the asker has left, and it goes on");
    let counts = all_are_counted(&world, count + 1);
    assert_eq!(counts.by_outcome("cancelled"), 1, "{counts:?}");
    all_were_counted(&world, count + 1);
}

#[test]
fn of_a_lane_whose_ask_times_out() {
    let world = world("");
    let script = r"
count = on_a_lane()
asks(30)
try:
    hob.ask('word', 'hang ' + sys.argv[1], timeout=1)
except hob.TimedOut:
    asks(5)
    print(count + 36)
";
    let path = mark(&world, "hangs");
    let count = sent(&world, script, &[&path]);
    let counts = all_are_counted(&world, count);
    assert_eq!(counts.by_outcome("timed-out"), 1, "{counts:?}");
    all_were_counted(&world, count);
}

#[test]
fn of_a_lane_whose_worker_ends_in_a_message() {
    let world = world("");
    let script = r"
count = 0
for _ in range(4):
    count += on_a_lane()
    asks(30)
    try:
        hob.ask('word', b'exit')
    except hob.Lost:
        count += 31
print(count)
";
    let count = sent(&world, script, &[]);
    let counts = all_are_counted(&world, count);
    assert_eq!(counts.by_outcome("lost"), 4, "{counts:?}");
    all_were_counted(&world, count);
}

#[test]
fn of_a_lane_whose_worker_or_zygote_is_killed_while_it_waits() {
    let world = world("");
    let script = r"
import signal
count = 0
def ask(what):
    # Answered, or given to what was about to end: either way it has its receipt.
    global count
    count += 1
    try:
        return hob.ask('word', what).decode()
    except hob.Lost:
        return ''
def asks(times):
    for _ in range(times):
        ask(b'')
for turn in range(6):
    pids = []
    while not pids:
        on_a_lane()
        pids = ask(b'pids').split()
    asks(30)
    os.kill(int(pids[turn % 2]), signal.SIGKILL)
    asks(1)
print(count)
";
    let count = sent(&world, script, &[]);
    all_are_counted(&world, count);
    all_were_counted(&world, count);
}

#[test]
fn of_a_lane_whose_sender_and_worker_are_killed_at_once() {
    let world = world("");
    let script = "count = on_a_lane()\nasks(30)\nprint(count + 30, flush=True)\nhob.ask('word', 'hang ' + sys.argv[1])\n";
    let path = mark(&world, "hangs");
    let sender = python(&world, &(SENDER.to_owned() + script)).args(&[&path]).start();
    let count: u64 = line(&sender, 0);
    let worker = hanging(&path);
    run::kill(worker, Signal::KILL);
    run::kill(sender.pid(), Signal::KILL);
    assert_eq!(sender.finish().end, End::Signal(9));
    all_are_counted(&world, count + 1);
    all_were_counted(&world, count + 1);
}

#[test]
fn of_a_lane_whose_messages_raise_or_fork() {
    let world = world("");
    let script = r"
count = on_a_lane()
for _ in range(20):
    asks(3)
    assert hob.ask('word', b'fork') == b'first'
    try:
        hob.ask('word', b'raise it')
    except hob.Raised:
        count += 5
print(count)
";
    let count = sent(&world, script, &[]);
    let counts = all_are_counted(&world, count);
    assert_eq!(counts.by_outcome("raised"), 20, "{counts:?}");
    all_were_counted(&world, count);
}

/// The same of a program that is its own runtime.
fn native() -> World {
    let world = World::new();
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_native-worker")).unwrap();
    for name in ["word.1", "word.2", "word"] {
        world.executable(name, [bytes.as_slice(), name.as_bytes()].concat());
    }
    trusted(&world, "[program.word]\nruntime = \"native\"\nhandler = \"word\"\nworkers = 3\n");
    world
}

#[test]
fn of_a_native_programs_lane_however_it_ends() {
    let world = native();
    let script = r"
import shutil
sent = 0
def on_a_lane():
    global sent
    count = 0
    while not count or 'word' not in hob._local.sender.lanes:
        hob.ask('word', b'count')
        count += 1
    for _ in range(30):
        hob.ask('word', b'count')
    sent += count + 31
for turn in range(4):
    on_a_lane()
    # Another build, within moments of the last ask.
    shutil.copy('word.%d' % (1 + turn % 2), 'word.new')
    os.rename('word.new', 'word')
    hob.ask('word', b'count')
    for how, error in ((b'fail it', hob.Raised), (b'panic now', hob.Raised), (b'kill', hob.Lost)):
        on_a_lane()
        try:
            hob.ask('word', how)
        except error:
            pass
on_a_lane()
try:
    hob.ask('word', b'hang ' + sys.argv[1].encode(), timeout=1)
except hob.TimedOut:
    print(sent)
";
    let path = mark(&world, "hangs");
    let count = sent(&world, script, &[&path]);
    let jobs = world.hob(&["ask", "word", "count", "--count", "300", "--jobs", "3"]).go();
    jobs.succeeded();
    let counts = all_are_counted(&world, count + 300);
    let [raised, lost, late] = ["raised", "lost", "timed-out"].map(|of| counts.by_outcome(of));
    assert_eq!((raised, lost, late), (8, 4, 1), "{counts:?}");
    all_were_counted(&world, count + 300);
}
