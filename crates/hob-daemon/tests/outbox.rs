//! The outbox in processes that are killed: the test starts itself again as the one that tells.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one thing of many")]
#![expect(clippy::unwrap_used, reason = "in a test, what is not there is a failure of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use hob_daemon::outbox::{Done, Ids, Message, MessageId, Notify, Outbox};

const STATE_DIR: &str = "HOB_TEST_OUTBOX";

fn outbox(state_dir: &Path) -> (Outbox, Receiver<Vec<Done>>) {
    let (tell, told) = channel();
    let notify: Notify = Box::new(move |done| _ = tell.send(done));
    (Outbox::start(Some(state_dir), notify), told)
}

fn message(ids: &mut Ids, number: u64) -> Message {
    Message {
        id: ids.next(1_000),
        program: Arc::from(*b"greeter"),
        key: None,
        content_type: Vec::new(),
        payload: number.to_be_bytes().repeat(40).into(),
        created_ms: 1_000,
    }
}

/// What was left, with what it says.
fn left(outbox: &Outbox, told: &Receiver<Vec<Done>>) -> BTreeMap<MessageId, Vec<u8>> {
    let mut payloads = BTreeMap::new();
    let mut expected = None;
    while expected != Some(payloads.len()) {
        for done in told.recv().expect("the outbox tells") {
            match done {
                Done::Opened { waiting, .. } => {
                    expected = Some(waiting.len());
                    waiting.iter().for_each(|one| outbox.read(one.id));
                }
                Done::Read(message) => _ = payloads.insert(message.id, message.payload.to_vec()),
                other => panic!("{other:?}"),
            }
        }
    }
    payloads
}

/// Not a test of its own: the process that is killed. It tells without end, with some in flight,
/// finishes every third message, and says on its output what it knows.
#[test]
fn tells_until_it_is_killed() {
    let Some(state_dir) = std::env::var_os(STATE_DIR) else { return };
    let (outbox, told) = outbox(Path::new(&state_dir));
    let mut ids = Ids::new(u64::from(std::process::id()));
    let mut sent = BTreeMap::new();
    let mut number = 0;
    let mut send = |sent: &mut BTreeMap<_, _>| {
        let message = message(&mut ids, number);
        number += 1;
        sent.insert(message.id, message.waiting());
        outbox.accept(message).is_ok()
    };
    if Path::new(&state_dir).join("outbox/outbox.redb").exists() {
        // The ids of this process must not be those of an earlier one.
        let Ok(done) = told.recv() else { return };
        assert!(matches!(done.first(), Some(Done::Opened { .. })), "{done:?}");
    }
    for _ in 0..64 {
        send(&mut sent);
    }
    let mut out = std::io::stdout().lock();
    for (count, done) in told.iter().flatten().enumerate() {
        match done {
            Done::Accepted(id) => {
                writeln!(out, "accepted {id}").unwrap();
                if count % 3 == 0 {
                    writeln!(out, "finishing {id}").unwrap();
                    outbox.finished(&sent[&id]);
                }
                sent.remove(&id);
                send(&mut sent);
            }
            Done::Refused(id, why) => {
                writeln!(out, "refused {id} {why}").unwrap();
                if std::env::var_os("HOB_TEST_STOP_FULL").is_some() {
                    return;
                }
            }
            _ => {}
        }
    }
}

fn child(state_dir: &Path, shell: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", shell, "sh"])
        .arg(own)
        .args(["--exact", "tells_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env(STATE_DIR, state_dir)
        .stdout(Stdio::piped());
    command
}

#[derive(Debug, Default)]
struct Known {
    accepted: BTreeSet<MessageId>,
    finishing: BTreeSet<MessageId>,
    refused: Vec<String>,
}

impl Known {
    fn line(&mut self, line: &str) {
        // The test harness writes its own before the first line.
        let words = ["accepted ", "finishing ", "refused "];
        let Some(at) = words.iter().find_map(|word| line.find(word)) else { return };
        let mut words = line[at..].splitn(3, ' ');
        let (word, id) = (words.next().unwrap(), words.next().and_then(MessageId::parse));
        // The last line may be cut short by the kill.
        let Some(id) = id else { return };
        match word {
            "accepted" => assert!(self.accepted.insert(id), "{id} was accepted twice"),
            "finishing" => _ = self.finishing.insert(id),
            _ => self.refused.push(words.next().unwrap_or_default().to_owned()),
        }
    }

    fn check(&self, left: &BTreeMap<MessageId, Vec<u8>>) {
        for id in self.accepted.difference(&self.finishing) {
            assert!(left.contains_key(id), "{id} was accepted, and is lost");
        }
        for payload in left.values() {
            assert_eq!(payload.len(), 320);
            assert_eq!(payload[..8].repeat(40), *payload);
        }
    }
}

#[test]
fn a_process_that_is_killed_twenty_times_loses_nothing_that_it_accepted() {
    let state = tempfile::tempdir().unwrap();
    let mut known = Known::default();
    for round in 0..20 {
        let mut teller = child(state.path(), "exec \"$@\"").spawn().unwrap();
        let mut lines = BufReader::new(teller.stdout.take().unwrap()).lines();
        // Killed after another number of lines each time, at whatever it does then.
        for line in lines.by_ref().take(100 + round * 37) {
            known.line(&line.unwrap());
        }
        teller.kill().unwrap();
        lines.map_while(Result::ok).for_each(|line| known.line(&line));
        teller.wait().unwrap();
    }
    assert!(known.accepted.len() > 1_000, "{}", known.accepted.len());
    let (outbox, told) = outbox(state.path());
    let left = left(&outbox, &told);
    known.check(&left);
    let finished: Vec<_> = known.finishing.iter().filter(|id| !left.contains_key(id)).collect();
    assert!(!finished.is_empty(), "nothing that was finished was forgotten");
}

#[test]
fn a_file_that_may_not_grow_refuses_with_the_cause_and_loses_nothing() {
    let state = tempfile::tempdir().unwrap();
    // In blocks of 512 or 1,024 bytes, as the shell has it.
    let shell = "trap '' XFSZ; ulimit -f 4000; exec \"$@\"";
    let mut command = child(state.path(), shell);
    let mut teller = command.env("HOB_TEST_STOP_FULL", "1").spawn().unwrap();
    let mut known = Known::default();
    for line in BufReader::new(teller.stdout.take().unwrap()).lines() {
        known.line(&line.unwrap());
    }
    assert!(teller.wait().unwrap().success());
    assert!(known.refused.iter().any(|why| why.starts_with("outbox-disk-full: ")), "{known:?}");
    let (outbox, told) = outbox(state.path());
    known.check(&left(&outbox, &told));
}
