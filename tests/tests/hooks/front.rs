//! The hooks front, by a caller that says what it likes on the wire.

use hob_tests::socket::Client;
use hob_tests::{World, wait};
use hob_wire::call::Hello;
use hob_wire::frame::{self, Kind};
use hob_wire::hooks::{HookEnded, HookOutput, HookStarted, RunSet, SetBegun, SetEnded, Verdict};
use hob_wire::message::{Failure, Numbered, Reason};
use hob_wire::strings::Strings;

use super::caller::{hooks, pid, stays};

fn put(bytes: &mut Vec<u8>, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
    frame::append(bytes, kind, 0, body).unwrap();
}

fn hello() -> Vec<u8> {
    let mut bytes = Vec::new();
    // Of no build: what has to agree is the version in each frame.
    put(&mut bytes, Kind::Hello, |out| Hello { build: [0; 16], pid: 1 }.encode(out));
    bytes
}

fn run(set: u64, directory: &str) -> RunSet {
    RunSet {
        set,
        umask: 0o022,
        spawn: false,
        kill_after_ms: 0,
        warn_after_ms: 0,
        remaining_ms: 0,
        target: b"a target".to_vec(),
        directory: directory.into(),
        cwd: b"/".to_vec(),
        ignored: None,
        params: Strings::new(),
        env: ["PATH=/usr/bin:/bin"].into_iter().collect(),
    }
}

/// The frames that a connection said until its end.
fn frames(mut bytes: &[u8]) -> Vec<(Kind, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((header, payload, end)) = frame::split(bytes).unwrap() {
        all.push((header.kind, payload.to_vec()));
        bytes = &bytes[end..];
    }
    all
}

/// The processes that a process has started and that have not ended, by their command lines.
fn children(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<String> = listed
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let line = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok();
    pids.iter().filter_map(line).collect()
}

#[test]
fn shells_that_hooks_fork_from_are_given_up_when_no_hook_comes() {
    let world = World::started();
    let dir = hooks(&world, "set", &[("10-a", "echo a"), ("20-b", "echo b")]);
    let client = Client::connect(&world.hob_dir());
    client.send(&hello(), &[]);
    let shells = || children(world.daemon()).iter().filter(|line| line.contains("sh")).count();
    let mut set = 0;
    let mut runs_until_kept = || {
        wait::until("a shell that is kept", || {
            set += 1;
            let mut bytes = Vec::new();
            put(&mut bytes, Kind::RunSet, |out| run(set, &dir).encode(out));
            client.send(&bytes, &[]);
            (shells() > 0).then_some(())
        });
    };
    runs_until_kept();
    let gone = wait::look(std::time::Duration::from_secs(30), || (shells() == 0).then_some(()));
    assert!(gone.is_some(), "{:?}", children(world.daemon()));
    // The next sets have one of their own again.
    runs_until_kept();
}

#[test]
fn what_happens_is_told_in_order_and_what_is_refused_has_its_reason() {
    let world = World::started();
    let long = "head -c 300000 /dev/zero; echo err >&2";
    let dir = hooks(&world, "set", &[("10-a", long), ("20-b", "exit 1"), ("30-c", "true")]);
    let client = Client::connect(&world.hob_dir());
    let mut bytes = hello();
    put(&mut bytes, Kind::RunSet, |out| run(7, &dir).encode(out));
    let odd = RunSet { params: ["=x"].into_iter().collect(), ..run(8, &dir) };
    put(&mut bytes, Kind::RunSet, |out| odd.encode(out));
    // Of nothing that is open.
    put(&mut bytes, Kind::Cancel, |out| Numbered { id: 99 }.encode(out));
    client.send(&bytes, &[]);
    wait::until("the set's receipt", || (world.records(5).len() == 1).then_some(()));
    // What is no frame of a caller's ends the connection.
    let mut last = Vec::new();
    put(&mut last, Kind::Queued, |_| ());
    client.send(&last, &[]);
    let (mut said, mut refused) = (Vec::new(), Vec::new());
    let mut written = 0;
    for (kind, payload) in frames(&client.rest(wait::LONG).unwrap()) {
        if kind == Kind::SetBegun {
            let begun = SetBegun::decode(&payload).unwrap();
            assert_eq!((begun.set, begun.hooks.len()), (7, 3));
            assert_eq!(world.records(1)[0]["call"], begun.call);
            said.push("begun".to_owned());
        } else if kind == Kind::HookStarted {
            said.push(format!("started {}", HookStarted::decode(&payload).unwrap().hook));
        } else if kind == Kind::HookOutput {
            let output = HookOutput::decode(&payload).unwrap();
            written += output.bytes.len();
            said.push(format!("output {} {:?}", output.hook, output.part));
        } else if kind == Kind::HookEnded {
            let ended = HookEnded::decode(&payload).unwrap();
            let stamped: u64 = ended.stdout.stamps.iter().map(|stamp| stamp.1).sum();
            assert_eq!(stamped, ended.stdout.total);
            said.push(format!("ended {} {:?}", ended.hook, ended.outcome));
        } else if kind == Kind::SetEnded {
            let ended = SetEnded::decode(&payload).unwrap();
            assert_eq!(ended.not_run.iter().collect::<Vec<_>>(), [b"30-c"]);
            said.push(format!("set {:?}", ended.outcome));
        } else {
            assert_eq!(kind, Kind::Failure);
            let failure = Failure::decode(&payload).unwrap();
            refused.push((failure.id, failure.reason));
        }
    }
    let want = [
        "begun",
        "started 0",
        "output 0 OutHead",
        "output 0 OutHead",
        "output 0 ErrHead",
        "ended 0 Ok",
        "started 1",
        "ended 1 Error",
        "set Error",
    ];
    assert_eq!(said, want);
    assert_eq!(written, 300_004);
    assert_eq!(refused, [(8, Reason::Malformed)]);
}

#[test]
fn a_number_is_of_one_open_set_and_the_end_of_a_connection_ends_only_its_own() {
    let world = World::started();
    let (one, other) = (stays(&world, "one.pid"), stays(&world, "other.pid"));
    let (one, other) =
        (hooks(&world, "one", &[("10-a", &one)]), hooks(&world, "other", &[("10-a", &other)]));
    let clients = [one, other].map(|dir| {
        let client = Client::connect(&world.hob_dir());
        let mut bytes = hello();
        put(&mut bytes, Kind::RunSet, |out| run(1, &dir).encode(out));
        client.send(&bytes, &[]);
        (client, dir)
    });
    let pids = [pid(&world, "one.pid"), pid(&world, "other.pid")];
    let [(one, dir), (other, _)] = clients;
    let mut bytes = Vec::new();
    put(&mut bytes, Kind::RunSet, |out| run(1, &dir).encode(out));
    one.send(&bytes, &[]);
    drop(one);
    assert!(wait::ended(pids[0], wait::LONG));
    assert!(!matches!(hob_tests::run::state(pids[1]), None | Some('Z')));
    // Cancelled by number, the other one is told of its end.
    let mut bytes = Vec::new();
    put(&mut bytes, Kind::Cancel, |out| Numbered { id: 1 }.encode(out));
    other.send(&bytes, &[]);
    assert!(wait::ended(pids[1], wait::LONG));
    wait::until("both receipts", || (world.records(5).len() == 2).then_some(()));
    let mut last = Vec::new();
    put(&mut last, Kind::Queued, |_| ());
    other.send(&last, &[]);
    let said = frames(&other.rest(wait::LONG).unwrap());
    let (kind, payload) = said.last().unwrap();
    assert_eq!(*kind, Kind::SetEnded);
    assert_eq!(SetEnded::decode(payload).unwrap().outcome, Verdict::Cancelled);
}
