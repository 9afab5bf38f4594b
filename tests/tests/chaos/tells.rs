//! Tells and a daemon that is killed: none that was accepted is lost, and a message keeps its id.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use hob_tests::teller::{Reply, Teller};
use hob_tests::{World, wait};
use rustix::process::{Pid, Signal, kill_process};

const TELLS: usize = 10_000;
const KILLS: usize = 20;
const IN_FLIGHT: usize = 256;
const HANDLER: &str = "\
import os

OUT = os.open(os.path.join(os.path.dirname(__file__), \"handled\"), os.O_WRONLY | os.O_APPEND)


def handle(payload, message):
    os.write(OUT, b\"%s %s\\n\" % (message.id.encode(), payload))
";
const CONFIG: &str = "[program.notes]\nhandler = \"notes.py:handle\"\nworkers = 2\n";
/// Between what two daemons had handled, in the file.
const CUT: &str = "-- killed --";

/// Everything that is known of the tells.
#[derive(Debug, Default)]
struct Known {
    /// Numbers by the ids under which they were accepted.
    accepted: BTreeMap<String, u64>,
    /// What is still to be told.
    left: BTreeSet<u64>,
}

impl Known {
    fn take(&mut self, reply: Reply) {
        match reply {
            Reply::Accepted(number, id) => {
                let other = self.accepted.insert(id.clone(), number);
                assert_eq!(other, None, "{id} was given to two messages");
                self.left.remove(&number);
            }
            other @ (Reply::Answered(..) | Reply::Failed(..)) => panic!("{other:?}"),
        }
    }

    /// Tells, with so many in flight, until so many more are accepted or nothing is left.
    fn tell(&mut self, teller: &mut Teller, goal: usize) {
        let mut to_send: Vec<u64> = self.left.iter().copied().rev().collect();
        let (mut flying, mut accepted) = (0, 0);
        while accepted < goal && !self.left.is_empty() {
            while flying < IN_FLIGHT
                && let Some(number) = to_send.pop()
            {
                teller.tell(number, "notes", number.to_string().as_bytes()).unwrap();
                flying += 1;
            }
            teller.flush().unwrap();
            let reply = teller.reply().unwrap().expect("the daemon answers until it is killed");
            self.take(reply);
            flying -= 1;
            accepted += 1;
        }
    }
}

fn teller(world: &World) -> Teller {
    let environment: Vec<Vec<u8>> = world
        .environment()
        .into_iter()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .collect();
    let folder = world.path("work").canonicalize().unwrap();
    Teller::connect(&world.hob_dir(), &folder, environment.iter().map(Vec::as_slice)).unwrap()
}

/// What each daemon had handled: ids and numbers.
fn handled(world: &World) -> Vec<Vec<(String, u64)>> {
    let text = std::fs::read_to_string(world.path("work/handled")).unwrap();
    text.split(CUT)
        .map(|part| {
            let lines = part.lines().filter_map(|line| line.split_once(' '));
            lines.map(|(id, number)| (id.to_owned(), number.parse().unwrap())).collect()
        })
        .collect()
}

#[test]
fn of_ten_thousand_tells_and_a_daemon_killed_twenty_times_none_is_lost() {
    let world = World::new();
    world.file("notes.py", HANDLER);
    world.file("hob.toml", CONFIG);
    let record = world.file("handled", "");
    world.hob(&["trust", "."]).go().succeeded();
    let mut known = Known { left: (0..TELLS as u64).collect(), ..Known::default() };
    for kill in 0..KILLS {
        world.hob(&["start"]).go().succeeded();
        let mut teller = teller(&world);
        known.tell(&mut teller, TELLS / (KILLS + 4) + kill);
        let daemon = world.daemon();
        let pid = Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        assert!(wait::ended(daemon, wait::LONG), "a killed daemon ends");
        // What it had answered before counts.
        while let Some(reply) = teller.reply().unwrap() {
            known.take(reply);
        }
        // Its workers end with it, and write nothing after this.
        let folder = world.path("run").parent().unwrap().to_path_buf();
        wait::until("the end of the daemon's workers", || {
            hob_tests::leftovers::processes(&folder).is_empty().then_some(())
        });
        let mut file = std::fs::OpenOptions::new().append(true).open(&record).unwrap();
        writeln!(file, "{CUT}").unwrap();
    }
    world.hob(&["start"]).go().succeeded();
    known.tell(&mut teller(&world), TELLS);
    assert_eq!(known.accepted.values().collect::<BTreeSet<_>>().len(), TELLS);

    // As long as more is handled, there is something to wait for.
    let mut seen = 0;
    loop {
        let ids: BTreeSet<String> =
            handled(&world).into_iter().flatten().map(|one| one.0).collect();
        if known.accepted.keys().all(|id| ids.contains(id)) {
            break;
        }
        let count = std::mem::replace(&mut seen, ids.len());
        assert!(
            wait::look(wait::LONG, || {
                let now = handled(&world).into_iter().flatten().map(|one| one.0);
                (now.collect::<BTreeSet<_>>().len() > count.max(ids.len())).then_some(())
            })
            .is_some(),
            "{} of {} are handled",
            ids.len(),
            known.accepted.len()
        );
    }
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    for daemon in handled(&world) {
        let mut of_this = BTreeSet::new();
        for (id, number) in daemon {
            assert!(of_this.insert(id.clone()), "{id} was handled twice by one daemon");
            let told = *numbers.entry(id.clone()).or_insert(number);
            assert_eq!(told, number, "{id} is the id of two messages");
            let accepted = known.accepted.get(&id);
            assert!(accepted.is_none_or(|told| *told == number), "{id} is {accepted:?}");
        }
    }
}
