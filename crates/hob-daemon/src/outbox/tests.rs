//! The outbox as the loop uses it, on a real disk.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names the one answer that it waits for; any other fails it"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use super::*;

/// An outbox, and what it told and nobody has looked at yet.
pub(super) struct Side {
    pub(super) outbox: Outbox,
    told: Receiver<Vec<Done>>,
    unseen: Vec<Done>,
}

impl Side {
    pub(super) fn start(state_dir: &Path) -> Side {
        let (tell, told) = channel();
        let notify: Notify = Box::new(move |done| {
            let _ = tell.send(done);
        });
        Side { outbox: Outbox::start(Some(state_dir), notify), told, unseen: Vec::new() }
    }

    /// Waits for the first `Done` that is looked for, and leaves the others.
    pub(super) fn wait<T>(&mut self, mut look: impl FnMut(&Done) -> Option<T>) -> T {
        loop {
            if let Some(at) = self.unseen.iter().position(|done| look(done).is_some()) {
                return look(&self.unseen.remove(at)).unwrap();
            }
            let done = self.told.recv().expect("the outbox tells before it ends");
            self.unseen.extend(done);
        }
    }

    pub(super) fn opened(&mut self) -> Vec<Waiting> {
        self.wait(|done| match done {
            Done::Opened { waiting, .. } => Some(waiting.clone()),
            _ => None,
        })
    }

    pub(super) fn accepted(&mut self, id: MessageId) {
        self.wait(|done| match done {
            Done::Accepted(other) if *other == id => Some(()),
            Done::Refused(other, why) if *other == id => panic!("{why}"),
            _ => None,
        });
    }

    pub(super) fn listed(&mut self) -> Vec<DeadLetter> {
        self.outbox.list_dead(7).unwrap();
        self.wait(|done| match done {
            Done::Listed(7, letters) => Some(letters.clone().unwrap()),
            _ => None,
        })
    }

    /// Closes it, and says what another one finds.
    pub(super) fn reopen(self, state_dir: &Path) -> (Side, Vec<Waiting>) {
        drop(self);
        let mut side = Side::start(state_dir);
        let waiting = side.opened();
        (side, waiting)
    }
}

pub(super) fn message(ids: &mut Ids, key: Option<&str>, payload: &[u8]) -> Message {
    Message {
        id: ids.next(1_000),
        program: Arc::from(*b"greeter"),
        key: key.map(|key| key.as_bytes().to_vec()),
        content_type: b"application/octet-stream".to_vec(),
        payload: payload.to_vec().into(),
        created_ms: 1_000,
    }
}

#[test]
fn what_was_accepted_is_there_after_a_restart_in_order_and_what_was_finished_is_not() {
    let state = tempfile::tempdir().unwrap();
    let mut side = Side::start(state.path());
    let mut ids = Ids::new(1);
    let messages: Vec<_> =
        (0..100u8).map(|n| message(&mut ids, (n % 2 == 0).then_some("k"), &[n; 3])).collect();
    for message in &messages {
        side.outbox.accept(message.clone()).unwrap();
    }
    for message in &messages {
        side.accepted(message.id);
    }
    for message in messages.iter().take(40) {
        side.outbox.finished(&message.waiting());
    }
    let (mut side, left) = side.reopen(state.path());
    let expected: Vec<_> = messages.iter().skip(40).map(Message::waiting).collect();
    assert_eq!(left, expected);
    side.outbox.read(messages[99].id);
    let read = side.wait(|done| match done {
        Done::Read(message) => Some(message.clone()),
        _ => None,
    });
    assert_eq!(read, messages[99]);
    assert_eq!(side.outbox.depth().0, 60);
}

#[test]
fn tries_are_kept_over_a_restart_and_the_dead_are_listed_revived_and_dropped() {
    let state = tempfile::tempdir().unwrap();
    let mut side = Side::start(state.path());
    let mut ids = Ids::new(1);
    let messages: Vec<_> = (0..3u8).map(|n| message(&mut ids, None, &[n])).collect();
    for message in &messages {
        side.outbox.accept(message.clone()).unwrap();
        side.accepted(message.id);
    }
    let failed = Waiting { tries: 2, due_ms: 5_000, ..messages[0].waiting() };
    side.outbox.again(&failed, "handler-raised: ValueError");
    for dead in &messages[1..] {
        side.outbox.bury(&Waiting { tries: 8, ..dead.waiting() }, 9_000, "worker-lost");
    }
    let (mut side, left) = side.reopen(state.path());
    assert_eq!(left, [failed]);
    let letters = side.listed();
    let told: Vec<_> = letters.iter().map(|one| (one.message.clone(), one.tries)).collect();
    assert_eq!(told, [(messages[1].clone(), 8), (messages[2].clone(), 8)]);
    assert_eq!((letters[0].at_ms, letters[0].why.as_str()), (9_000, "worker-lost"));

    side.outbox.retry_dead(8, Which::One(messages[1].id)).unwrap();
    let revived = side.wait(|done| match done {
        Done::Revived(8, waiting) => Some(waiting.clone().unwrap()),
        _ => None,
    });
    assert_eq!(revived, [messages[1].waiting()]);
    side.outbox.drop_dead(9, Which::Of(Arc::from(*b"greeter"))).unwrap();
    let dropped = side.wait(|done| match done {
        Done::Dropped(9, count) => Some(count.clone().unwrap()),
        _ => None,
    });
    assert_eq!(dropped, 1);
    assert_eq!(side.outbox.depth().2, 0);
    let (mut side, left) = side.reopen(state.path());
    assert_eq!(left.iter().map(|one| one.id).collect::<Vec<_>>(), [messages[0].id, messages[1].id]);
    assert_eq!(side.listed(), []);
}

#[test]
fn the_file_is_private_and_nothing_is_made_before_the_first_message() {
    let state = tempfile::tempdir().unwrap();
    let mut side = Side::start(state.path());
    let place = state.path().join("outbox");
    assert!(!place.exists());
    let message = message(&mut Ids::new(1), None, b"x");
    side.outbox.accept(message.clone()).unwrap();
    side.accepted(message.id);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(&place.join("outbox.redb"))), (0o700, 0o600));
}

#[test]
fn a_second_outbox_waits_for_the_first_and_says_so() {
    let state = tempfile::tempdir().unwrap();
    let mut first = Side::start(state.path());
    let mut ids = Ids::new(1);
    let one = message(&mut ids, None, b"1");
    first.outbox.accept(one.clone()).unwrap();
    first.accepted(one.id);
    assert_eq!(owner(state.path()), Some(std::process::id()));
    let mut second = Side::start(state.path());
    let two = message(&mut ids, None, b"2");
    second.outbox.accept(two.clone()).unwrap();
    let taken = loop {
        match second.outbox.standing() {
            (false, Some(why)) => break why,
            (is_open, _) => assert!(!is_open, "two have it"),
        }
        std::thread::yield_now();
    };
    assert!(taken.starts_with("outbox-taken: "), "{taken}");
    // What the first is told last, it keeps; what comes behind its end is the second's.
    let three = message(&mut ids, None, b"3");
    first.outbox.accept(three.clone()).unwrap();
    first.outbox.begin_close();
    assert_eq!(first.outbox.accept(two.clone()), Err(Refusal::Closed));
    first.accepted(three.id);
    assert_eq!(second.opened(), [one.waiting(), three.waiting()]);
    second.accepted(two.id);
    assert_eq!(second.outbox.standing(), (true, None));
}

/// Its sender had no word of the daemon that kept it: that was killed.
#[test]
fn what_is_sent_again_to_the_next_daemon_is_kept_once() {
    let state = tempfile::tempdir().unwrap();
    let mut side = Side::start(state.path());
    let mut ids = Ids::new(1);
    let drawn = |ids: &mut Ids, drawn| Message {
        id: ids.next_of(1_000, Some(drawn)),
        ..message(&mut Ids::new(2), None, b"x")
    };
    let one = drawn(&mut ids, 77);
    side.outbox.accept_again(one.clone()).unwrap();
    side.accepted(one.id);
    let (mut side, left) = side.reopen(state.path());
    assert_eq!(left, [one.waiting()]);
    // It may be handled before its sender has found the next daemon.
    side.outbox.finished(&one.waiting());
    let again = drawn(&mut ids, 77);
    side.outbox.accept_again(again.clone()).unwrap();
    let kept = side.wait(|done| match done {
        Done::Known(id, kept) if *id == again.id => Some(*kept),
        _ => None,
    });
    assert_eq!(kept, one.id);
    assert_eq!(side.outbox.depth(), (0, 0, 0));
    let other = drawn(&mut ids, 78);
    side.outbox.accept_again(other.clone()).unwrap();
    side.accepted(other.id);
    assert_eq!(side.reopen(state.path()).1, [other.waiting()]);
}
