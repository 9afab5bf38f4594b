//! Tests of what waits for an actor's restart, on shards whose time is given.

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::shard::Shard;
use crate::sim::{on, shard, take};
use crate::supervision::{Scope, Supervision};
use crate::{Actor, Address, AskError, AsyncHandler, Context, Handler, Mail, Message};

struct Fail;
impl Message for Fail {
    type Answer = ();
}

struct Note(u32);
impl Message for Note {
    type Answer = u32;
}

/// What drops when the message does.
struct Held(#[expect(dead_code, reason = "dropped with its message")] Arc<()>);
impl Message for Held {
    type Answer = ();
}

/// Which messages were handled.
type Noted = Arc<Mutex<Vec<u32>>>;

struct Node {
    noted: Noted,
}
impl Actor for Node {}
impl Handler<Fail> for Node {
    fn handle(&mut self, _: Fail, _: &mut Context<'_, Self>) {
        panic!("as asked");
    }
}
impl Handler<Note> for Node {
    fn handle(&mut self, Note(number): Note, _: &mut Context<'_, Self>) -> u32 {
        self.noted.lock().unwrap().push(number);
        number
    }
}
impl Handler<Held> for Node {
    fn handle(&mut self, _: Held, _: &mut Context<'_, Self>) {
        self.noted.lock().unwrap().push(u32::MAX);
    }
}

/// Asks for whoever asks it, and no longer than that.
struct Asker {
    of: Address<Node>,
}
impl Actor for Asker {}
struct AskNote(u32);
impl Message for AskNote {
    type Answer = u32;
}
impl AsyncHandler<AskNote> for Asker {
    fn handle(
        &mut self,
        AskNote(number): AskNote,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = u32> + 'static {
        let ask = cx.ask(&self.of, Note(number));
        async move { ask.await.unwrap_or(0) }
    }
}

/// An actor whose restart is due at one second, and what its lives note.
fn waiting(shard: &Rc<Shard>) -> (Address<Node>, Noted) {
    let pause = Duration::from_secs(1);
    let rules = Supervision::of(Scope::One).intensity(9, pause * 60).back_off(pause, pause);
    shard.add_group(0, rules, None);
    let (slot, mailbox) = (shard.shared.reserve(), shard.shared.mailbox(Mail::default()));
    let noted = Noted::default();
    let theirs = Arc::clone(&noted);
    let make = move || Node { noted: Arc::clone(&theirs) };
    on(shard, |shard| {
        shard.spawn_member(slot, Box::new(move || Box::new(make())), Arc::clone(&mailbox), 0);
    });
    let place = shard.shared.place;
    let address = Address { place, slot, mailbox, actor: PhantomData };
    // The first restart is at once.
    for _ in 0..2 {
        let failed = address.ask(Fail);
        turn(shard, 0);
        assert_eq!(failed.wait(), Err(AskError::Panicked("as asked".into())));
    }
    (address, noted)
}

/// Everything that there is to do by a time.
fn turn(shard: &Rc<Shard>, now: u64) {
    for _ in 0..4 {
        take(shard);
        on(shard, |shard| shard.turn(Some(now), 1_000));
        shard.flush();
    }
}

fn cancelled(shard: &Rc<Shard>) -> u64 {
    shard.shared.counts.cancelled.load(Ordering::Relaxed)
}

#[test]
fn an_ask_that_is_dropped_while_its_actor_waits_is_not_handled_after_the_restart() {
    let shard = shard();
    let (node, noted) = waiting(&shard);
    let [first, second, third] = [1, 2, 3].map(|number| node.ask(Note(number)));
    let held = Arc::new(());
    let holds = node.ask(Held(Arc::clone(&held)));
    turn(&shard, 10);
    drop((second, holds));
    turn(&shard, 20);
    assert_eq!((cancelled(&shard), Arc::strong_count(&held)), (2, 1), "dropped at once");
    assert!(noted.lock().unwrap().is_empty(), "it waits still");
    turn(&shard, 2_000);
    assert_eq!((first.wait(), third.wait()), (Ok(1), Ok(3)));
    assert_eq!(*noted.lock().unwrap(), [1, 3]);
    on(&shard, Shard::close);
}

#[test]
fn so_it_is_where_the_asker_is_an_actor_of_another_shard_that_ends() {
    let (home, away) = (shard(), shard());
    let (node, noted) = waiting(&home);
    let (slot, mailbox) = (away.shared.reserve(), away.shared.mailbox(Mail::default()));
    let of = node.clone();
    on(&away, |away| away.spawn_at(slot, Box::new(Asker { of }), Arc::clone(&mailbox)));
    let asker: Address<Asker> =
        Address { place: away.shared.place, slot, mailbox, actor: PhantomData };
    let asks = [7, 8].map(|number| asker.ask(AskNote(number)));
    turn(&away, 10);
    turn(&home, 10);
    let [dropped, kept] = asks;
    drop(dropped);
    turn(&away, 20);
    turn(&home, 20);
    assert_eq!(cancelled(&home), 1);
    turn(&home, 2_000);
    turn(&away, 2_000);
    assert_eq!(kept.wait(), Ok(8));
    assert_eq!(*noted.lock().unwrap(), [8]);
    on(&home, Shard::close);
    on(&away, Shard::close);
}
