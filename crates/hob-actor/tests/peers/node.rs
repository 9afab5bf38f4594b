//! What the tests of links exchange, and the actor that takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hob_actor::link::{Decoder, Encoder, Messages, Schema, Wire, WireError};
use hob_actor::{Actor, Address, AsyncHandler, Context, Handler, Message, Reply, ReplyHandler};

hob_actor::wire! {
    #[derive(Debug)]
    pub(crate) struct Add { pub(crate) value: u64 }
    #[derive(Debug)]
    pub(crate) struct Text { pub(crate) text: String, pub(crate) many: Vec<u64> }
    /// Is never answered.
    pub(crate) struct Hold {}
    /// Ends the process with this code.
    pub(crate) struct Leave { pub(crate) code: u8 }
    /// How much shared memory of links is mapped, and how many descriptors of such, and of bells,
    /// are open.
    pub(crate) struct Shared {}
    /// Asks the other actor, which may be anywhere, `left` times in turn.
    pub(crate) struct Chain { pub(crate) other: Address<Node>, pub(crate) left: u64 }
    pub(crate) struct Left {}
    /// Panics.
    #[derive(Debug)]
    pub(crate) struct Fault {}
    /// Folds the value into the sum: another order gives another one.
    #[derive(Debug)]
    pub(crate) struct Fold { pub(crate) value: u64 }
    /// Folds too, but for one that cannot be encoded.
    #[derive(Debug)]
    pub(crate) struct Odd { pub(crate) value: Picky }
    /// Is never answered by what waits for it.
    pub(crate) struct Park {}
    /// How many of those wait.
    pub(crate) struct Parked {}
    /// Has the other actor park, and waits for it.
    pub(crate) struct Relay { pub(crate) other: Address<Node> }
    /// Has the other actor park for whoever asks.
    pub(crate) struct Pass { pub(crate) other: Address<Node> }
    /// Takes a while.
    pub(crate) struct Dig { pub(crate) load: String }
    /// Tells the other actor to dig, so many times, and waits for room where there is none.
    pub(crate) struct Order { pub(crate) other: Address<Node>, pub(crate) count: u64, pub(crate) waits: bool }
}

impl Message for Add {
    type Answer = u64;
}
impl Message for Text {
    type Answer = String;
}
impl Message for Hold {
    type Answer = ();
}
impl Message for Leave {
    type Answer = ();
}
impl Message for Shared {
    type Answer = (u64, u64);
}
impl Message for Chain {
    type Answer = Result<u64, String>;
}
impl Message for Left {
    type Answer = u64;
}
impl Message for Fault {
    type Answer = ();
}
impl Message for Fold {
    type Answer = u64;
}
impl Message for Odd {
    type Answer = Picky;
}
impl Message for Park {
    type Answer = ();
}
impl Message for Parked {
    type Answer = u64;
}
impl Message for Relay {
    type Answer = ();
}
impl Message for Pass {
    type Answer = ();
}
impl Message for Dig {
    type Answer = u64;
}
impl Message for Order {
    /// How many were taken, how many its address says were not, and how many have come.
    type Answer = (u64, u64, Option<u64>);
}

#[derive(Default)]
pub(crate) struct Node {
    sum: u64,
    held: Vec<Reply<()>>,
    parked: Arc<AtomicU64>,
    dug: u64,
}

/// Counts one that waits, for as long as it does.
struct Guard(Arc<AtomicU64>);

impl Guard {
    fn new(parked: &Arc<AtomicU64>) -> Guard {
        parked.fetch_add(1, Ordering::Relaxed);
        Guard(Arc::clone(parked))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncHandler<Park> for Node {
    fn handle(&mut self, _: Park, _: &mut Context<'_, Self>) -> impl Future<Output = ()> + 'static {
        let guard = Guard::new(&self.parked);
        async move {
            std::future::pending::<()>().await;
            drop(guard);
        }
    }
}

impl Handler<Parked> for Node {
    fn handle(&mut self, _: Parked, _: &mut Context<'_, Self>) -> u64 {
        self.parked.load(Ordering::Relaxed)
    }
}

impl AsyncHandler<Relay> for Node {
    fn handle(
        &mut self,
        Relay { other }: Relay,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = ()> + 'static {
        let ask = cx.ask(&other, Park {});
        async move { ask.await.unwrap_or_default() }
    }
}

impl ReplyHandler<Pass> for Node {
    fn handle(&mut self, Pass { other }: Pass, reply: Reply<()>, cx: &mut Context<'_, Self>) {
        reply.forward(cx, &other, Park {});
    }
}

impl Actor for Node {}

impl Handler<Add> for Node {
    fn handle(&mut self, Add { value }: Add, _: &mut Context<'_, Self>) -> u64 {
        self.sum += value;
        self.sum
    }
}

pub(crate) fn fold(sum: u64, value: u64) -> u64 {
    sum.wrapping_mul(0x100_0000_01b3) ^ value
}

impl Handler<Fold> for Node {
    fn handle(&mut self, Fold { value }: Fold, _: &mut Context<'_, Self>) -> u64 {
        self.sum = fold(self.sum, value);
        self.sum
    }
}

pub(crate) const UNLUCKY: u64 = 13;

/// A number that panics when it is to be encoded, if it is the unlucky one.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) struct Picky(pub(crate) u64);

impl Wire for Picky {
    fn describe(schema: &mut Schema) {
        schema.add("picky");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        out.put(&[1]);
        assert!(self.0 != UNLUCKY, "as a user's may");
        out.put(&self.0.to_le_bytes());
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Picky, WireError> {
        Ok(Picky(<(u8, u64)>::decode(input)?.1))
    }
}

impl Handler<Odd> for Node {
    fn handle(&mut self, Odd { value }: Odd, _: &mut Context<'_, Self>) -> Picky {
        self.sum = fold(self.sum, value.0);
        Picky(value.0 + 1)
    }
}

/// Lives where the links are, as those do who tell a peer much.
pub(crate) struct Teller;
pub(crate) struct Mix(pub(crate) Address<Node>);

impl Actor for Teller {}
impl Message for Mix {
    type Answer = bool;
}

impl AsyncHandler<Mix> for Teller {
    fn handle(
        &mut self,
        Mix(node): Mix,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = bool> + 'static {
        let (mut wanted, mut asks) = (0, Vec::new());
        for value in 0..3000 {
            cx.tell(&node, Fold { value }).unwrap();
            wanted = fold(wanted, value);
            if value % 100 == 0 {
                cx.tell(&node, Fault {}).unwrap();
                for odd in 10..20 {
                    cx.tell(&node, Odd { value: Picky(odd) }).unwrap();
                    wanted = if odd == UNLUCKY { wanted } else { fold(wanted, odd) };
                }
            }
            if value % 70 == 0 {
                wanted = fold(wanted, 7);
                asks.push((cx.ask(&node, Fold { value: 7 }), wanted));
            }
        }
        async move {
            let mut right = true;
            for (ask, wanted) in asks {
                right &= ask.await == Ok(wanted);
            }
            right
        }
    }
}

impl Handler<Text> for Node {
    fn handle(&mut self, Text { text, many }: Text, _: &mut Context<'_, Self>) -> String {
        format!("{text} {}", many.iter().sum::<u64>())
    }
}

impl Handler<Left> for Node {
    fn handle(&mut self, _: Left, cx: &mut Context<'_, Self>) -> u64 {
        cx.remaining().map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Handler<Fault> for Node {
    fn handle(&mut self, _: Fault, _: &mut Context<'_, Self>) {
        panic!("as asked");
    }
}

impl ReplyHandler<Hold> for Node {
    fn handle(&mut self, _: Hold, reply: Reply<()>, _: &mut Context<'_, Self>) {
        self.held.push(reply);
    }
}

impl Handler<Shared> for Node {
    fn handle(&mut self, _: Shared, _: &mut Context<'_, Self>) -> (u64, u64) {
        let named = |line: &str| line.contains("memfd:hob-link");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let open = std::fs::read_dir("/proc/self/fd").unwrap().filter(|one| {
            // The one by which this directory is read is gone by the time that it is looked at.
            let target = std::fs::read_link(one.as_ref().unwrap().path()).unwrap_or_default();
            let target = target.to_string_lossy();
            named(&target) || target.contains("eventfd")
        });
        (maps.lines().filter(|line| named(line)).count() as u64, open.count() as u64)
    }
}

impl Handler<Leave> for Node {
    fn handle(&mut self, _: Leave, _: &mut Context<'_, Self>) {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::TERM).unwrap();
    }
}

impl AsyncHandler<Chain> for Node {
    fn handle(
        &mut self,
        Chain { other, left }: Chain,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, String>> + 'static {
        let me = cx.address();
        let ask = (left > 0).then(|| cx.ask(&other, Chain { other: me, left: left - 1 }));
        async move {
            match ask {
                None => Ok(0),
                Some(ask) => Ok(ask.await.map_err(|why| why.to_string())?? + 1),
            }
        }
    }
}

impl Handler<Dig> for Node {
    fn handle(&mut self, Dig { load }: Dig, _: &mut Context<'_, Self>) -> u64 {
        // Much more than what it takes to send it.
        for _ in 0..4 {
            let sum = load.bytes().fold(0, |sum, byte| (sum * 3 + u64::from(byte)) & 0xffff);
            self.dug += std::hint::black_box(sum) & 1;
        }
        self.sum += 1;
        self.sum
    }
}

impl AsyncHandler<Order> for Node {
    fn handle(
        &mut self,
        Order { other, count, waits }: Order,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = (u64, u64, Option<u64>)> + 'static {
        let load = "a".repeat(10_000);
        async move {
            let mut taken = 0;
            for _ in 0..count {
                let dig = Dig { load: load.clone() };
                let sent = if waits { other.send(dig).await } else { other.tell(dig) };
                taken += u64::from(sent.is_ok());
            }
            // Behind all that were taken, if there is room for it.
            let come = other.ask(Add { value: 0 }).await.ok();
            (taken, u64::from(other.refused()), come)
        }
    }
}

pub(crate) fn messages() -> Messages {
    Messages::new()
        .takes::<Node, Add, _>("add")
        .takes::<Node, Text, _>("text")
        .takes::<Node, Hold, _>("hold")
        .takes::<Node, Leave, _>("leave")
        .takes::<Node, Shared, _>("shared")
        .takes::<Node, Chain, _>("chain")
        .takes::<Node, Left, _>("left")
        .takes::<Node, Fault, _>("fault")
        .takes::<Node, Fold, _>("fold")
        .takes::<Node, Odd, _>("odd")
        .takes::<Node, Park, _>("park")
        .takes::<Node, Parked, _>("parked")
        .takes::<Node, Relay, _>("relay")
        .takes::<Node, Pass, _>("pass")
        .takes::<Node, Dig, _>("dig")
        .takes::<Node, Order, _>("order")
}
