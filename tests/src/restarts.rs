//! Asks and tells, by the command and by the library, while their daemon is restarted again and again.
//! The tests drive it with a few hundred messages, `make bench-restarts` with ten thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{End, World, wait};

const HANDLERS: &str = r"
import os

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
OUT = os.open(os.path.join(os.path.dirname(__file__), 'handled'), FLAGS)

def note(payload, message):
    os.write(OUT, b'%s %s\n' % (payload, (message.id or 'ask').encode()))
    return payload
";
const CONFIG: &str = "[program.note]\nhandler = \"handlers.py:note\"\nworkers = 2\n";
/// Says each message that is refused, and goes on.
const SENDER: &str = r"
import hob, sys
name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(first, last):
    payload = ('%s-%d' % (name, number)).encode()
    try:
        if number % 2:
            hob.tell('note', payload)
        elif hob.ask('note', payload) != payload:
            print(name, number, 'another answer', flush=True)
    except hob.Error as error:
        print(name, number, repr(error), flush=True)
";
/// Senders by the command, and by the library.
const BY_COMMAND: [&str; 2] = ["a", "b"];
const BY_LIBRARY: [&str; 2] = ["c", "d"];
/// See [`until_more_is_handled`]: some time more than Python takes to start on a busy machine.
const MOMENT: Duration = Duration::from_secs(3);
/// How long the library's senders may take.
const SENDING_MAX: Duration = Duration::from_secs(3600);

/// What became of all messages.
#[derive(Debug, Default)]
pub struct Report {
    /// How many were sent.
    pub sent: usize,
    /// How often the daemon was restarted meanwhile.
    pub restarts: usize,
    /// Those that were refused, each with the reason.
    pub refused: Vec<String>,
    /// Those that were accepted and not handled.
    pub lost: Vec<String>,
    /// Those that were handled more than once.
    pub doubled: Vec<String>,
}

/// A world with a program that notes what it handles.
#[must_use]
pub fn world(binary: PathBuf) -> World {
    let world = World::of(binary);
    world.file("handlers.py", HANDLERS);
    world.file("hob.toml", CONFIG);
    world.file("sender.py", SENDER);
    world.hob(&["trust"]).go().succeeded();
    world
}

/// What was handled: payloads, each with the id of each time.
#[must_use]
pub fn handled(world: &World) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(world.path("work/handled")).unwrap_or_default();
    let mut handled: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (payload, id) in text.lines().filter_map(|line| line.split_once(' ')) {
        handled.entry(payload.to_owned()).or_default().push(id.to_owned());
    }
    handled
}

/// Waits until all of these were handled and the outbox is empty, or nothing more is handled.
pub fn settle(world: &World, sent: &BTreeSet<String>) {
    let all = || sent.iter().all(|payload| handled(world).contains_key(payload));
    let _ = wait::look(wait::LONG, || all().then_some(()));
    let waiting = || Some(world.status_if_any()?["messages"]["waiting"] == 0);
    let _ = wait::look(wait::LONG, || waiting()?.then_some(()));
}

/// Sends so many messages in all, with a restart of the daemon each `every`.
#[must_use]
pub fn run(binary: &Path, messages: usize, every: Duration) -> Report {
    let world = world(binary.to_owned());
    world.hob(&["start"]).go().succeeded();
    let each = messages.div_ceil(BY_COMMAND.len() + BY_LIBRARY.len());
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let world = &world;
        let commands = BY_COMMAND.map(|name| scope.spawn(move || by_command(world, name, each)));
        let libraries = BY_LIBRARY.map(|name| scope.spawn(move || by_library(world, name, each)));
        let senders: Vec<_> = commands.into_iter().chain(libraries).collect();
        while !senders.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let begun = Instant::now();
            let restarted = world.hob(&["restart"]).go();
            if restarted.end != End::Code(0) {
                report.refused.push(format!("hob restart: {}", restarted.complaint()));
            }
            report.restarts += 1;
            // sleeps: the pace of restarts is what is asked for.
            std::thread::sleep(every.saturating_sub(begun.elapsed()));
            until_more_is_handled(world);
        }
        for sender in senders {
            match sender.join() {
                Ok(refused) => report.refused.extend(refused),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let names = BY_COMMAND.into_iter().chain(BY_LIBRARY);
    let sent: BTreeSet<String> =
        names.flat_map(|name| (0..each).map(move |number| format!("{name}-{number}"))).collect();
    settle(&world, &sent);
    let handled = handled(&world);
    report.sent = sent.len();
    report.lost = sent.into_iter().filter(|payload| !handled.contains_key(payload)).collect();
    let doubled = handled.into_iter().filter(|(_, ids)| ids.len() > 1);
    report.doubled = doubled.map(|(payload, ids)| format!("{payload}: {ids:?}")).collect();
    report
}

/// Waits for a moment at most until one more message is handled: a daemon that never lives for long
/// enough to load a handler handles none.
pub fn until_more_is_handled(world: &World) {
    let before = handled(world).len();
    let _ = wait::look(MOMENT, || (handled(world).len() > before).then_some(()));
}

/// Asks and tells in turn; returns what was refused.
fn by_command(world: &World, name: &str, each: usize) -> Vec<String> {
    let mut refused = Vec::new();
    for number in 0..each {
        let (verb, payload) = (["ask", "tell"][number % 2], format!("{name}-{number}"));
        let sent = world.hob(&[verb, "note", &payload]).go();
        let answered = verb == "tell" || sent.text() == payload;
        if sent.end != End::Code(0) || !answered {
            refused.push(format!("{verb} {payload}: {:?}: {}", sent.end, sent.complaint()));
        }
    }
    refused
}

fn by_library(world: &World, name: &str, each: usize) -> Vec<String> {
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/python");
    let folder = world.binary().parent().unwrap_or(Path::new("/")).display().to_string();
    let path = format!("{folder}:/usr/local/bin:/usr/bin:/bin");
    let words = ["python3", "sender.py", name, "0", &each.to_string()].map(str::to_owned);
    let sender = world.run(&words).env("PYTHONPATH", library).env("PATH", path);
    let sent = sender.start().finish_within(SENDING_MAX);
    let ended = (sent.end != End::Code(0)).then(|| format!("{name}: {}", sent.complaint()));
    sent.text().lines().map(str::to_owned).chain(ended).collect()
}
