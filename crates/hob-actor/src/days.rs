//! Two systems with a link between them, on one thread and in a time that is made up: asks that
//! live for weeks. Nothing on their way has a limit of time of its own, and the limit that an ask
//! has is kept.
//!
//! Whatever of this library goes by time goes by the `now` that a shard's turn is given.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::task::{Context as Polling, Poll, Waker};
use std::time::Duration;

use crate::link::commands::{Command, Commands};
use crate::link::{Messages, Names};
use crate::memory::when::Millis;
use crate::runtime::bell::Doorbell;
use crate::runtime::inbox::Inbox;
use crate::runtime::{current, outside, places};
use crate::shard::{Shard, Shared};
use crate::{Actor, Address, AskError, Asked, AsyncHandler, Context, Handler, Message, Reply};

const MINUTE: Millis = 60_000;
const DAY: Millis = 24 * 60 * MINUTE;

crate::wire! {
    /// Asks the other one, `left` times in turn; each asks within so many days, 0: as long as it
    /// takes.
    struct Chain { other: Address<Node>, left: u64, days: u64 }
    /// How many continuations there were at once.
    struct Most {}
}

impl Message for Chain {
    type Answer = Result<u64, String>;
}

impl Message for Most {
    type Answer = (u64, u64);
}

#[derive(Default)]
struct Node {
    open: Rc<Cell<u64>>,
    most: Rc<Cell<u64>>,
}

impl Actor for Node {}

struct Open(Rc<Cell<u64>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl AsyncHandler<Chain> for Node {
    fn handle(
        &mut self,
        Chain { other, left, days }: Chain,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, String>> + 'static {
        let next = Chain { other: cx.address(), left: left.saturating_sub(1), days: 0 };
        let ask = match (left, days) {
            (0, _) => None,
            (_, 0) => Some(cx.ask(&other, next)),
            (_, days) => Some(cx.ask_within(&other, next, Duration::from_millis(days * DAY))),
        };
        self.open.set(self.open.get() + 1);
        self.most.set(self.most.get().max(self.open.get()));
        let open = Open(Rc::clone(&self.open));
        async move {
            let _open = open;
            match ask {
                None => Ok(0),
                Some(ask) => Ok(ask.await.map_err(|why| why.to_string())?? + 1),
            }
        }
    }
}

impl Handler<Most> for Node {
    fn handle(&mut self, _: Most, _: &mut Context<'_, Self>) -> (u64, u64) {
        (self.open.get(), self.most.get())
    }
}

fn messages() -> Messages {
    Messages::new().takes::<Node, Chain, _>("chain").takes::<Node, Most, _>("most")
}

struct System {
    shard: Rc<Shard>,
    names: Rc<Names>,
    node: Address<Node>,
}

/// Both of them, and what time it is.
struct Pair {
    systems: [System; 2],
    now: Millis,
}

impl Pair {
    fn new() -> Pair {
        let (left, right) = hob_os::uds::pair().unwrap();
        let mut joined: Vec<Asked<Result<u64, crate::PeerError>>> = Vec::new();
        let systems = [left, right].map(|socket| {
            let inbox = Arc::new(Inbox::new(Doorbell::new().unwrap()));
            let place = places::register(&inbox).unwrap();
            let shard = Rc::new(Shard::new(
                Arc::new(Shared {
                    place,
                    inbox,
                    next_record: AtomicU32::new(0),
                    next_group: AtomicU32::new(0),
                    counts: Arc::default(),
                }),
                || 0,
            ));
            let commands = Commands::default();
            crate::peers::attach(&shard, messages(), Arc::clone(&commands)).unwrap();
            let slot = outside::open();
            let when = crate::memory::when::When::new(
                crate::memory::when::OUTSIDE,
                crate::memory::when::NEVER,
            );
            let mailbox = shard.shared.mailbox(crate::Mail::default());
            joined.push(Asked::new(slot, crate::memory::when::NEVER, mailbox, None));
            commands.put(Command::Join(socket, Reply::to(slot, when)));
            commands.count_due();
            let (slot, mailbox) = shard.spawn(Box::new(Node::default()), crate::Mail::default());
            let node = Address { place, slot, mailbox, actor: std::marker::PhantomData };
            let names = shard.names().unwrap();
            System { shard, names, node }
        });
        let mut pair = Pair { systems, now: 1 };
        for joined in joined {
            pair.until(joined, 0).unwrap().unwrap();
        }
        pair
    }

    /// The address of the one's node, for whoever is in the other.
    fn remote(&self, of: usize, within: usize) -> Address<Node> {
        let (one, other) = (&self.systems[of], &self.systems[within]);
        other.names.address(one.names.name(&one.node), &other.shard, 0).unwrap()
    }

    /// Turns both until there is an answer; each turn takes `step`.
    fn until<T: Send + 'static>(&mut self, mut asked: Asked<T>, step: Millis) -> Result<T, AskError>
    where
        Asked<T>: Future<Output = Result<T, AskError>> + Unpin,
    {
        let cx = &mut Polling::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(answer) = std::pin::Pin::new(&mut asked).poll(cx) {
                return answer;
            }
            self.turn(step);
        }
    }

    fn turn(&mut self, step: Millis) {
        for System { shard, .. } in &self.systems {
            let before = current::enter(Some(Rc::clone(shard)));
            shard.turn(Some(self.now), 256);
            shard.flush();
            let mut came = Vec::new();
            shard.shared.inbox.take(&mut came);
            for parcel in came {
                shard.accept(parcel);
            }
            current::enter(before);
        }
        self.now += step;
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for System { shard, .. } in &self.systems {
            let before = current::enter(Some(Rc::clone(shard)));
            shard.close();
            current::enter(before);
        }
    }
}

const HOPS: u64 = if cfg!(miri) { 6 } else { 400 };

#[test]
fn a_ring_of_asks_over_a_link_that_takes_weeks_is_answered() {
    let mut pair = Pair::new();
    // From its own system's side the first one is told where the other one is.
    let other = pair.remote(1, 0);
    let begun = pair.now;
    let asked = pair.systems[0].node.ask(Chain { other, left: HOPS, days: 0 });
    assert_eq!(pair.until(asked, 5 * MINUTE), Ok(Ok(HOPS)));
    let days = (pair.now - begun) / DAY;
    assert!(days >= HOPS / 20, "{days} days went by");
    // They were open all at once, half of them on each side, and none is left.
    for system in 0..2 {
        let asked = pair.systems[system].node.ask(Most {});
        let (open, most) = pair.until(asked, 0).unwrap();
        assert!(open == 0 && most >= HOPS / 2, "{open} are open, {most} were");
    }
}

#[test]
fn a_limit_of_days_ends_the_whole_ring_when_it_has_passed_and_not_before() {
    for (days, in_time) in [(4 * HOPS, true), (2, false)] {
        let mut pair = Pair::new();
        let other = pair.remote(1, 0);
        let begun = pair.now;
        let asked = pair.systems[0].node.ask(Chain { other, left: HOPS, days });
        let answer = pair.until(asked, 5 * MINUTE);
        let went_by = pair.now - begun;
        if in_time {
            assert_eq!(answer, Ok(Ok(HOPS)));
            assert!(went_by < days * DAY);
            continue;
        }
        assert_eq!(answer, Ok(Err(AskError::Expired.to_string())));
        assert!((days * DAY..(days + 1) * DAY).contains(&went_by), "{went_by} ms");
        // What was still being done for it is dropped: the word of its end goes from one to the
        // other, as the ring did.
        for system in 0..2 {
            let open_after = |turns: u64, pair: &mut Pair| {
                (0..turns).for_each(|_| pair.turn(1));
                let asked = pair.systems[system].node.ask(Most {});
                pair.until(asked, 1).unwrap().0
            };
            let none = (0..2 * HOPS).any(|_| open_after(64, &mut pair) == 0);
            assert!(none, "something is still done for nobody");
        }
    }
}
