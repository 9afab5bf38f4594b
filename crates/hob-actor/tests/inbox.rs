//! The inbox under loom, which tries every order of its threads: nothing is lost, nothing is
//! doubled, and a shard does not sleep through what was put.
//!
//! The inbox's own source is compiled here with loom's mutex in place of std's.

#[path = "../src/runtime/inbox.rs"]
mod inbox;

mod sync {
    pub(crate) use loom::sync::Mutex;
}

use inbox::{Bell, Inbox};
use loom::sync::{Arc, Notify};

struct Rings(Notify);

impl Bell for Rings {
    fn ring(&self) {
        self.0.notify();
    }
}

/// Takes until `count` have come, sleeping as a shard's thread does.
fn take(inbox: &Inbox<u32, Rings>, count: usize) -> Vec<u32> {
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    loop {
        inbox.take(&mut batch);
        all.append(&mut batch);
        if all.len() >= count {
            return all;
        }
        if inbox.falls_asleep() {
            inbox.bell().0.wait();
        }
    }
}

#[test]
fn a_sender_wakes_a_shard_and_keeps_its_order() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::new(Rings(Notify::new())));
        let puts = Arc::clone(&inbox);
        let puts = loom::thread::spawn(move || {
            puts.put(1).expect("the inbox is open");
            puts.put(2).expect("the inbox is open");
        });
        assert_eq!(take(&inbox, 2), [1, 2]);
        puts.join().expect("it only puts");
    });
}

#[test]
fn two_senders_wake_a_shard() {
    // With every order of up to three changes of thread; all of them would take minutes.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let inbox = Arc::new(Inbox::new(Rings(Notify::new())));
        let senders = [1, 2].map(|item| {
            let inbox = Arc::clone(&inbox);
            loom::thread::spawn(move || {
                inbox.put_all(&mut vec![item]).expect("the inbox is open");
            })
        });
        let mut all = take(&inbox, 2);
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for sender in senders {
            sender.join().expect("it only puts");
        }
    });
}

#[test]
fn what_is_put_while_the_inbox_closes_comes_out_or_comes_back() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::new(Rings(Notify::new())));
        let puts = Arc::clone(&inbox);
        let puts = loom::thread::spawn(move || puts.put(1).is_err());
        let left = inbox.close();
        let came_back = puts.join().expect("it only puts");
        assert_eq!(left.len() + usize::from(came_back), 1);
    });
}
