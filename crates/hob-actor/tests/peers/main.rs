//! Links with real processes: this test's own executable, started as a worker, runs the test
//! `a_worker_process`, which does nothing when it is not one.

#![expect(clippy::unwrap_used, reason = "the tests' own functions are tests too")]

mod node;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hob_actor::link::{HelloError, Messages, Program};
use hob_actor::{
    Address, AskError, Mail, Peer, PeerError, Peers, Policy, Scope, Supervision, System,
};
use node::{
    Add, Chain, Fault, Fold, Hold, Leave, Left, Mix, Node, Odd, Order, Park, Parked, Pass, Picky,
    Relay, Shared, Teller, Text, UNLUCKY, fold, messages,
};

/// What this executable does when a test below starts it as a worker.
#[test]
fn a_worker_process() {
    let system = System::with_shards(1).unwrap();
    let table = if std::env::var_os("HOB_TEST_SCHEMA").is_some() {
        // The same name for something else.
        Messages::new().takes::<Node, Text, _>("add")
    } else {
        messages()
    };
    let peers = match Peers::join(&system, table) {
        Ok(peers) => peers,
        // Started as a test, not as a worker.
        Err(PeerError::NoParent) => return,
        Err(other) => panic!("{other}"),
    };
    if let Some(over) = std::env::var_os("HOB_TEST_GRANDPARENT") {
        let over = if over == "rings" { Over::SharedMemory } else { Over::Sockets };
        let worker = peers.spawn(worker(over)).unwrap();
        println!("worker {}", peers.process(worker).unwrap());
    }
    peers.publish("node", &system.spawn(Node::default()));
    let narrow = |policy| Mail::bounded(3).when_full(policy);
    peers.publish("narrow", &system.spawn_with(narrow(Policy::Wait), Node::default));
    peers.publish("latest", &system.spawn_with(narrow(Policy::DropOldest), Node::default));
    let group = system.supervise(Supervision::of(Scope::One));
    peers.publish("supervised", &group.spawn(Mail::default(), Node::default));
    peers.until_drained();
    // The harness would say once more that a test has passed, in whoever started this.
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
    rustix::stdio::dup2_stdout(&null).unwrap();
}

/// What links to workers are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Sockets,
    SharedMemory,
}

/// Each of these is a test over both.
macro_rules! over_both {
    ($($name:ident),* $(,)?) => {
        mod over_sockets {
            $(#[test] fn $name() { super::$name(super::Over::Sockets); })*
        }
        mod over_shared_memory {
            $(#[test] fn $name() { super::$name(super::Over::SharedMemory); })*
        }
    };
}

over_both! {
    what_processes_share_goes_with_their_link,
    a_remote_actor_is_asked_and_told_like_a_local_one_and_order_is_kept,
    tells_keep_their_order_and_a_panic_among_them_is_its_own,
    what_an_actor_tells_and_asks_a_peer_keeps_its_order_of_any_type,
    tells_to_a_mailbox_that_drops_the_oldest_or_to_an_actor_that_starts_anew_go_their_way,
    what_a_peer_that_does_not_read_is_told_is_refused_in_the_end_and_counted,
    a_slow_consumer_over_a_link_holds_its_sender_back_and_memory_is_bounded,
    every_open_ask_fails_with_the_exit_of_a_worker_that_is_killed,
    a_worker_that_ends_by_itself_says_with_what,
    two_systems_side_by_side_never_meet,
    addresses_travel_in_messages_and_workers_talk_to_each_other_directly,
    the_time_that_is_left_travels_and_ends_the_ask,
    a_cancel_that_comes_right_behind_its_ask_is_not_lost,
    a_cancel_goes_on_to_whom_a_peer_has_asked_or_forwarded_to,
    a_drain_lets_workers_finish_what_they_were_sent,
    a_parent_that_is_killed_takes_its_workers_with_it,
    an_idle_worker_process_is_small,
}

impl Over {
    fn program(self, program: Program) -> Program {
        if self == Over::SharedMemory { program.shared_memory() } else { program }
    }
}

fn worker(over: Over) -> Program {
    over.program(
        Program::new(std::env::current_exe().unwrap())
            .argument("--exact")
            .argument("a_worker_process")
            .argument("--nocapture"),
    )
}

fn start() -> (System, Peers) {
    let system = System::with_shards(1).unwrap();
    let peers = Peers::start(&system, messages()).unwrap();
    (system, peers)
}

fn node(over: Over, peers: &Peers) -> (Peer, Address<Node>) {
    let worker = peers.spawn(worker(over)).unwrap();
    (worker, peers.remote(worker, "node").unwrap())
}

fn kill(process: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn a_remote_actor_is_asked_and_told_like_a_local_one_and_order_is_kept(over: Over) {
    let (_system, peers) = start();
    let (_, remote) = node(over, &peers);
    for _ in 0..1000 {
        remote.tell(Add { value: 1 }).unwrap();
    }
    // One sender, one receiver: the ask comes after every tell before it.
    assert_eq!(remote.ask(Add { value: 1 }).wait(), Ok(1001));
    let text = Text { text: "ä".repeat(300_000), many: (0..100_000).collect() };
    let answer = remote.ask(text).wait().unwrap();
    assert!(answer.ends_with(" 4999950000") && answer.len() == 600_011);
    assert_eq!(remote.ask(Fault {}).wait(), Err(AskError::Panicked("as asked".into())));
    assert_eq!(remote.ask(Add { value: 0 }).wait(), Ok(1001), "the actor goes on");
    peers.drain();
}

/// Tells that are sent together travel together, and are one message each nevertheless.
fn tells_keep_their_order_and_a_panic_among_them_is_its_own(over: Over) {
    let (_system, peers) = start();
    let (worker, remote) = node(over, &peers);
    let narrow = peers.remote::<Node>(worker, "narrow").unwrap();
    for address in [remote, narrow] {
        for value in 0..5000 {
            if value % 1000 == 500 {
                address.tell(Fault {}).unwrap();
            }
            address.tell_waiting(Fold { value }).unwrap();
        }
        let wanted = (0..5001).fold(0, fold);
        assert_eq!(address.ask(Fold { value: 5000 }).wait(), Ok(wanted));
    }
    peers.drain();
}

/// One that cannot be encoded is not sent, and nobody else notices, on either side.
fn what_an_actor_tells_and_asks_a_peer_keeps_its_order_of_any_type(over: Over) {
    let (system, peers) = start();
    let (_, node) = node(over, &peers);
    let teller = system.spawn(Teller);
    assert_eq!(teller.ask(Mix(node.clone())).wait(), Ok(true));
    assert_eq!(system.troubles().refused, 30);
    assert_eq!(node.ask(Odd { value: Picky(1) }).wait(), Ok(Picky(2)));
    let unlucky = node.ask(Odd { value: Picky(UNLUCKY - 1) });
    assert_eq!(unlucky.wait(), Err(AskError::Panicked("as a user's may".into())));
    assert_eq!(
        node.ask(Odd { value: Picky(UNLUCKY) }).wait(),
        Err(AskError::Panicked("as a user's may".into()))
    );
    assert_eq!(node.ask(Odd { value: Picky(3) }).wait(), Ok(Picky(4)), "both go on");
    peers.drain();
}

fn tells_to_a_mailbox_that_drops_the_oldest_or_to_an_actor_that_starts_anew_go_their_way(
    over: Over,
) {
    let (_system, peers) = start();
    let (worker, _) = node(over, &peers);
    let latest = peers.remote::<Node>(worker, "latest").unwrap();
    for _ in 0..1000 {
        latest.tell(Add { value: 1 }).unwrap();
    }
    let sum = latest.ask(Add { value: 1 }).wait().unwrap();
    assert!((1..=1001).contains(&sum), "{sum}");
    let supervised = peers.remote::<Node>(worker, "supervised").unwrap();
    for value in 0..1000 {
        supervised.tell(Fold { value }).unwrap();
    }
    supervised.tell(Fault {}).unwrap();
    for value in 0..1000 {
        supervised.tell(Fold { value }).unwrap();
    }
    // What came after the fault waits for the new life, in its order.
    let wanted = (0..1001).fold(0, fold);
    assert_eq!(supervised.ask(Fold { value: 1000 }).wait(), Ok(wanted));
    peers.drain();
}

fn what_a_peer_that_does_not_read_is_told_is_refused_in_the_end_and_counted(over: Over) {
    let (system, peers) = start();
    let (worker, remote) = node(over, &peers);
    let process = i32::try_from(peers.process(worker).unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    // 80 MiB; 64 may wait.
    for _ in 0..80 {
        remote.tell(Text { text: "a".repeat(1 << 20), many: Vec::new() }).unwrap();
    }
    assert_eq!(remote.ask(Add { value: 1 }).wait(), Err(AskError::Full));
    let refused = remote.refused();
    assert!((10..=17).contains(&refused), "{refused}");
    assert_eq!(system.troubles().refused, u64::from(refused));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    peers.drain();
}

/// The most memory that a process has had, in MiB.
fn peak_mib(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() / 1024
}

/// Two workers: one tells the other much more than that can take, 100 MB each time.
fn a_slow_consumer_over_a_link_holds_its_sender_back_and_memory_is_bounded(over: Over) {
    const TELLS: u64 = 10_000;
    let (_system, peers) = start();
    let ((sender, from), (consumer, _)) = (node(over, &peers), node(over, &peers));
    // A mailbox for three, whose policy is to wait.
    let narrow = peers.remote::<Node>(consumer, "narrow").unwrap();
    let order = |waits| Order { other: narrow.clone(), count: TELLS, waits };
    // Who waits for room loses nothing, and keeps what may wait for one peer in memory at most.
    let (taken, waited, came) = from.ask(order(true)).wait().unwrap();
    assert!(taken == TELLS && waited > 0, "{taken} taken, {waited} times there was no room");
    assert_eq!(came, Some(TELLS), "all of them came");
    // Who does not wait is told, and counts it: nothing is lost silently.
    let (taken, refused, _) = from.ask(order(false)).wait().unwrap();
    let refused = refused - waited;
    assert!(refused > 0 && TELLS - taken <= refused, "{taken} taken, {refused} refused");
    // Those that wait take 64 MiB, and as much again while what was written before them is there.
    let (process, other) = (peers.process(sender).unwrap(), peers.process(consumer).unwrap());
    let (sent, took) = (peak_mib(process), peak_mib(other));
    assert!(sent < 160, "the sender had {sent} MiB");
    assert!(took < 32, "the consumer had {took} MiB");
    peers.drain();
}

fn every_open_ask_fails_with_the_exit_of_a_worker_that_is_killed(over: Over) {
    let (_system, peers) = start();
    let (worker, remote) = node(over, &peers);
    let open: Vec<_> = (0..10_000).map(|_| remote.ask(Hold {})).collect();
    // It has them all: this one was sent after them.
    assert_eq!(remote.ask(Add { value: 1 }).wait(), Ok(1));
    kill(peers.process(worker).unwrap());
    for ask in open {
        assert_eq!(ask.wait(), Err(AskError::Lost { code: None, signal: Some(9) }));
    }
    // And so does what is asked afterwards.
    let late = remote.ask(Add { value: 1 }).wait();
    assert_eq!(late, Err(AskError::Lost { code: None, signal: Some(9) }));
}

fn a_worker_that_ends_by_itself_says_with_what(over: Over) {
    let (_system, peers) = start();
    let (_, remote) = node(over, &peers);
    assert_eq!(
        remote.ask(Leave { code: 0 }).wait(),
        Err(AskError::Lost { code: None, signal: Some(15) })
    );
}

#[test]
fn a_message_of_another_schema_is_an_error_at_connect() {
    let (_system, peers) = start();
    let own = std::env::current_exe().unwrap();
    let program = Program::new("/usr/bin/env")
        .argument("HOB_TEST_SCHEMA=1")
        .argument(own)
        .argument("--exact")
        .argument("a_worker_process");
    let mismatch = PeerError::Hello(HelloError::Schema { message: "add".to_owned() });
    assert_eq!(peers.spawn(program), Err(mismatch));
    // The system is none the worse.
    assert_eq!(node(Over::Sockets, &peers).1.ask(Add { value: 2 }).wait(), Ok(2));
}

#[test]
fn what_is_no_worker_is_an_error_and_not_a_hang() {
    let (_system, peers) = start();
    assert!(matches!(peers.spawn_worker("/nonexistent/worker"), Err(PeerError::Start(_))));
    assert!(matches!(peers.spawn_worker("/bin/true"), Err(PeerError::Ended(_))));
    let (worker, _) = node(Over::Sockets, &peers);
    assert_eq!(peers.remote::<Node>(worker, "nobody").unwrap_err(), PeerError::Tag);
}

#[test]
fn a_system_starts_workers_and_remembers_what_it_resolved() {
    let system = System::with_shards(1).unwrap();
    assert_eq!(system.spawn_worker("/bin/true"), Err(PeerError::Unlinked));
    let peers = Peers::start(&system, messages()).unwrap();
    assert_eq!(Peers::start(&system, messages()).unwrap_err(), PeerError::Linked);
    // A program without arguments: one that calls this executable with them.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("worker");
    let own = std::env::current_exe().unwrap();
    let script =
        format!("#!/bin/sh\nexec {} --exact a_worker_process --nocapture\n", own.to_str().unwrap());
    std::fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).unwrap();
    assert!(matches!(system.spawn_worker("/bin/true"), Err(PeerError::Ended(_))));
    let worker = system.spawn_worker(&program).unwrap();
    let first = system.remote::<Node>(worker, "node").unwrap();
    let second = system.remote::<Node>(worker, "node").unwrap();
    assert_eq!(first, second, "resolved once");
    assert_ne!(first, system.remote::<Node>(worker, "narrow").unwrap());
    assert_eq!(first.ask(Add { value: 2 }).wait(), Ok(2));
    assert_eq!(second.ask(Add { value: 3 }).wait(), Ok(5));
    assert_eq!(system.remote::<Node>(worker, "nobody").unwrap_err(), PeerError::Tag);
    system.peers().unwrap().drain();
    drop(peers);
    let late = system.remote::<Node>(worker, "node").unwrap().ask(Add { value: 1 }).wait();
    assert!(matches!(late, Err(AskError::Lost { .. })), "{late:?}");
}

fn two_systems_side_by_side_never_meet(over: Over) {
    let ((_one, first), (_other, second)) = (start(), start());
    let ((_, a), (_, b)) = (node(over, &first), node(over, &second));
    assert_eq!((a.ask(Add { value: 1 }).wait(), b.ask(Add { value: 5 }).wait()), (Ok(1), Ok(5)));
    first.drain();
    assert_eq!(b.ask(Add { value: 5 }).wait(), Ok(10));
}

fn addresses_travel_in_messages_and_workers_talk_to_each_other_directly(over: Over) {
    let (_system, peers) = start();
    let ((_, a), (_, b)) = (node(over, &peers), node(over, &peers));
    // From a to b and back, each asking the other within its answer: a ring over processes.
    assert_eq!(a.ask(Chain { other: b.clone(), left: 500 }).wait(), Ok(Ok(500)));
    assert_eq!(b.ask(Chain { other: a, left: 3 }).wait(), Ok(Ok(3)));
    peers.drain();
}

fn what_processes_share_goes_with_their_link(over: Over) {
    let (_system, peers) = start();
    let ((_, a), (worker, b)) = (node(over, &peers), node(over, &peers));
    let shared = || a.ask(Shared {}).wait().unwrap();
    let alone = shared();
    assert_eq!(alone.0 > 0, over == Over::SharedMemory, "{alone:?}");
    // From now on these two have a link of the same kind.
    assert_eq!(a.ask(Chain { other: b, left: 3 }).wait(), Ok(Ok(3)));
    let linked = shared();
    let more = over == Over::SharedMemory;
    assert_eq!((linked.0 > alone.0, linked.1 > alone.1), (more, more), "{alone:?} {linked:?}");
    kill(peers.process(worker).unwrap());
    // The bound is only there so that a failure is seen.
    let limit = Instant::now() + Duration::from_secs(60);
    while shared() != alone {
        assert!(Instant::now() < limit, "{:?} is left of {linked:?}", shared());
    }
}

fn the_time_that_is_left_travels_and_ends_the_ask(over: Over) {
    let (_system, peers) = start();
    let (_, remote) = node(over, &peers);
    let left = remote.ask_within(Left {}, Duration::from_secs(1000)).wait().unwrap();
    assert!((1..=1_000_000).contains(&left), "{left} ms");
    assert_eq!(remote.ask(Left {}).wait(), Ok(0), "no limit is none there either");
    let expired = remote.ask_within(Hold {}, Duration::from_millis(1)).wait();
    assert_eq!(expired, Err(AskError::Expired));
    assert_eq!(remote.ask(Add { value: 3 }).wait(), Ok(3), "the link goes on");
}

/// Asks again and again; the bound is only there so that a failure is seen.
fn until_parked(node: &Address<Node>, wanted: u64) {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let parked = node.ask(Parked {}).wait().unwrap();
        if parked == wanted {
            return;
        }
        assert!(Instant::now() < limit, "{parked} are parked, not {wanted}");
    }
}

fn a_cancel_that_comes_right_behind_its_ask_is_not_lost(over: Over) {
    let (_system, peers) = start();
    let (_, remote) = node(over, &peers);
    for _ in 0..2000 {
        drop(remote.ask(Park {}));
    }
    // Behind all of them, on the same link, from the same sender.
    assert_eq!(remote.ask(Parked {}).wait(), Ok(0));
    let kept: Vec<_> = (0..100).map(|_| remote.ask(Park {})).collect();
    assert_eq!(remote.ask(Parked {}).wait(), Ok(100));
    drop(kept);
    assert_eq!(remote.ask(Parked {}).wait(), Ok(0));
    peers.drain();
}

fn a_cancel_goes_on_to_whom_a_peer_has_asked_or_forwarded_to(over: Over) {
    let (system, peers) = (System::with_shards(2).unwrap(), messages());
    let peers = Peers::start(&system, peers).unwrap();
    let ((_, middle), (_, far)) = (node(over, &peers), node(over, &peers));
    let mail = Mail::default;
    let (first, second) =
        (system.spawn_on(0, mail(), Node::default), system.spawn_on(1, mail(), Node::default));
    // In another peer, and back here on the links' shard and on another one.
    for end in [far, first, second] {
        for _ in 0..15 {
            let asks =
                [middle.ask(Relay { other: end.clone() }), middle.ask(Pass { other: end.clone() })];
            until_parked(&end, 2);
            drop(asks);
            until_parked(&end, 0);
        }
    }
    peers.drain();
}

fn a_drain_lets_workers_finish_what_they_were_sent(over: Over) {
    let (system, peers) = start();
    let (_, remote) = node(over, &peers);
    let here = system.spawn(Node::default());
    let answers: Vec<_> =
        (0..100).map(|_| remote.ask(Chain { other: here.clone(), left: 7 })).collect();
    peers.drain();
    for answer in answers {
        assert_eq!(answer.wait(), Ok(Ok(7)));
    }
    let late = remote.ask(Add { value: 1 }).wait();
    assert_eq!(late, Err(AskError::Lost { code: Some(0), signal: None }));
}

/// The middle one of three processes is killed: its worker goes with it.
fn a_parent_that_is_killed_takes_its_workers_with_it(over: Over) {
    let own = std::env::current_exe().unwrap();
    let (system, peers) = start();
    let _ = &system;
    // Its output goes to this test's, so a shell gives it a file of ours.
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let kind = if over == Over::SharedMemory { "rings" } else { "sockets" };
    let program = Program::new("/bin/sh")
        .argument("-c")
        .argument(
            "HOB_TEST_GRANDPARENT=$2 exec \"$0\" --exact a_worker_process --nocapture > \"$1\"",
        )
        .argument(&own)
        .argument(&said)
        .argument(kind);
    let middle = peers.spawn(over.program(program)).unwrap();
    // Published after its own worker was started.
    peers.remote::<Node>(middle, "node").unwrap();
    let text = std::fs::read_to_string(&said).unwrap();
    let line = text.lines().find_map(|line| line.split_once("worker ").map(|(_, pid)| pid));
    let last = line.unwrap().trim().parse::<i32>().unwrap();
    let pid = rustix::process::Pid::from_raw(last).unwrap();
    let flags = rustix::process::PidfdFlags::empty();
    let end = rustix::process::pidfd_open(pid, flags).unwrap();
    kill(peers.process(middle).unwrap());
    // Readable when the process has ended; a bound only so that a failure is seen.
    let limit = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut ends = [rustix::event::PollFd::new(&end, rustix::event::PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut ends, Some(&limit)), Ok(1), "an orphan is left");
}

fn an_idle_worker_process_is_small(over: Over) {
    let (_system, peers) = start();
    let (worker, _) = node(over, &peers);
    let process = peers.process(worker).unwrap();
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    let kib: u64 = line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
    assert!(kib <= 3 * 1024, "{kib} KiB");
}

#[test]
fn a_worker_started_by_hand_says_so() {
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own)
        .args(["--exact", "a_worker_process"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("1 passed")));
    assert!(child.wait().unwrap().success());
}
