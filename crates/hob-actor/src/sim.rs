//! Seeded worlds: shards without threads, whose time, turns and deliveries are of chance, and
//! actors that answer, ask on, forward, keep silent, forget, panic, stop and are restarted.
//!
//! After each world: every ask has ended exactly once; what one sender sent to one receiver came in
//! its order, and none of it twice; no ask slot and no continuation is left. `HOB_SIM_ASKS` is how
//! many asks are made in all, `HOB_SIM_SEED` the first seed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::runtime::bell::Doorbell;
use crate::runtime::inbox::Inbox;
use crate::runtime::{current, places};
use crate::shard::{Shard, Shared};
use crate::supervision::{Scope, Supervision};
use crate::{
    Actor, Address, AskError, AsyncHandler, Context, Handler, Mail, Message, Policy, Reply,
    ReplyHandler,
};

#[derive(Debug, Clone)]
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        // Splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// What the world has seen.
#[derive(Debug, Default)]
struct Ledger {
    asked: u64,
    ended: HashMap<u64, Result<u64, AskError>>,
    seen: HashMap<(usize, usize), u64>,
    sent: HashMap<(usize, usize), u64>,
    stored: Vec<Reply<Result<u64, AskError>>>,
}

struct World {
    rng: RefCell<Rng>,
    ledger: RefCell<Ledger>,
    nodes: RefCell<Vec<Address<Node>>>,
}

/// A step of a chain of asks, and how deep it may go.
struct Step(u64);
impl Message for Step {
    type Answer = Result<u64, AskError>;
}

/// The same, handled by reply.
struct Pass(u64);
impl Message for Pass {
    type Answer = Result<u64, AskError>;
}

/// Ask somebody, and note how it ended.
struct Begin(u64);
impl Message for Begin {
    type Answer = ();
}

/// Numbered, from one node to another.
struct Numbered {
    from: usize,
    number: u64,
}
impl Message for Numbered {
    type Answer = ();
}

struct Node {
    number: usize,
    world: Rc<World>,
}

impl Actor for Node {}

impl Node {
    fn other(&self) -> (usize, Address<Node>) {
        let nodes = self.world.nodes.borrow();
        let at = self.world.rng.borrow_mut().below(nodes.len());
        (at, nodes[at].clone())
    }

    fn panics(&self, percent: u64) {
        let panics = self.world.rng.borrow_mut().chance(percent);
        assert!(!panics, "a node panics by chance");
    }
}

impl AsyncHandler<Begin> for Node {
    fn handle(
        &mut self,
        Begin(number): Begin,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = ()> + 'static {
        let (_, to) = self.other();
        let (depth, within, by_reply, gives_up) = {
            let rng = &mut *self.world.rng.borrow_mut();
            (rng.next() % 12, rng.next() % 400 + 1, rng.chance(50), rng.chance(10))
        };
        let within = Duration::from_millis(within);
        let ask = match by_reply {
            true => cx.ask_within(&to, Pass(depth), within),
            false => cx.ask_within(&to, Step(depth), within),
        };
        self.world.ledger.borrow_mut().asked += 1;
        let mut noted = Noted { number, world: Rc::clone(&self.world), result: None };
        async move {
            if gives_up {
                drop(ask);
                noted.end(Err(AskError::Unanswered));
                return;
            }
            noted.end(ask.await.and_then(|result| result));
        }
    }
}

/// Notes how an ask ended, also if its asker ended first.
struct Noted {
    number: u64,
    world: Rc<World>,
    result: Option<Result<u64, AskError>>,
}

impl Noted {
    fn end(&mut self, result: Result<u64, AskError>) {
        self.result = Some(result);
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.world.note(self.number, self.result.take().unwrap_or(Err(AskError::Stopped)));
    }
}

impl World {
    fn note(&self, number: u64, result: Result<u64, AskError>) {
        let before = self.ledger.borrow_mut().ended.insert(number, result);
        assert_eq!(before, None, "ask {number} ended twice");
    }
}

impl AsyncHandler<Step> for Node {
    fn handle(
        &mut self,
        Step(left): Step,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, AskError>> + 'static {
        self.panics(1);
        let (_, to) = self.other();
        let both = self.world.rng.borrow_mut().chance(10);
        let panics = self.world.rng.borrow_mut().chance(1);
        let first = (left > 0).then(|| cx.ask(&to, Step(left - 1)));
        let second = (left > 0 && both).then(|| cx.ask(&self.other().1, Pass(left - 1)));
        async move {
            let mut deep = 0;
            if let Some(first) = first {
                deep = first.await?? + 1;
            }
            assert!(!panics, "a continuation panics by chance");
            if let Some(second) = second {
                deep = deep.max(second.await?? + 1);
            }
            Ok(deep)
        }
    }
}

impl ReplyHandler<Pass> for Node {
    fn handle(
        &mut self,
        Pass(left): Pass,
        reply: Reply<Result<u64, AskError>>,
        cx: &mut Context<'_, Self>,
    ) {
        self.panics(1);
        let (_, to) = self.other();
        let what = self.world.rng.borrow_mut().below(20);
        match what {
            0 => drop(reply),
            1 => self.world.ledger.borrow_mut().stored.push(reply),
            _ if left == 0 => reply.send(Ok(0)),
            2..12 => reply.forward(cx, &to, Pass(left - 1)),
            _ => reply.forward(cx, &to, Step(left - 1)),
        }
    }
}

impl Handler<Numbered> for Node {
    fn handle(&mut self, message: Numbered, cx: &mut Context<'_, Self>) {
        {
            let ledger = &mut *self.world.ledger.borrow_mut();
            let seen = ledger.seen.entry((message.from, self.number)).or_default();
            assert!(message.number > *seen, "{} to {}: order", message.from, self.number);
            *seen = message.number;
        }
        self.panics(1);
        if self.world.rng.borrow_mut().chance(70) {
            let (at, to) = self.other();
            let number = {
                let ledger = &mut *self.world.ledger.borrow_mut();
                let sent = ledger.sent.entry((self.number, at)).or_default();
                *sent += 1;
                *sent
            };
            let _ = cx.tell(&to, Numbered { from: self.number, number });
        }
    }
}

pub(crate) fn shard() -> Rc<Shard> {
    let inbox = Arc::new(Inbox::new(Doorbell::new().unwrap()));
    let place = places::register(&inbox).unwrap();
    Rc::new(Shard::new(
        Arc::new(Shared {
            place,
            inbox,
            next_record: AtomicU32::new(0),
            next_group: AtomicU32::new(0),
            counts: Arc::default(),
        }),
        || 0,
    ))
}

/// Runs something as the thread of a shard would.
pub(crate) fn on<R>(shard: &Rc<Shard>, run: impl FnOnce(&Shard) -> R) -> R {
    let before = current::enter(Some(Rc::clone(shard)));
    let result = run(shard);
    current::enter(before);
    result
}

fn some_mail(rng: &mut Rng) -> Mail {
    let mail = Mail::bounded(u32::try_from(rng.below(30) + 2).unwrap());
    let policies = [Policy::Wait, Policy::Refuse, Policy::DropOldest];
    mail.when_full(policies[rng.below(3)])
}

/// Some on their own, some in groups in which failures restart them.
fn populate(shard: &Rc<Shard>, world: &Rc<World>, count: usize) {
    let scopes = [Scope::One, Scope::All, Scope::Rest];
    for (number, scope) in (0u32..).zip(scopes) {
        let rules = Supervision::of(scope).intensity(20, Duration::from_millis(500));
        shard.add_group(number, rules, number.checked_sub(1));
    }
    for _ in 0..count {
        let number = world.nodes.borrow().len();
        let mail = some_mail(&mut world.rng.borrow_mut());
        let group = world.rng.borrow_mut().below(4);
        let (slot, mailbox) = (shard.shared.reserve(), shard.shared.mailbox(mail));
        let theirs = Arc::clone(&mailbox);
        let make = {
            let world = Rc::clone(world);
            move || Node { number, world: Rc::clone(&world) }
        };
        match u32::try_from(group).unwrap() {
            3 => shard.spawn_at(slot, Box::new(make()), theirs),
            group => shard.spawn_member(slot, Box::new(move || Box::new(make())), theirs, group),
        }
        let place = shard.shared.place;
        let address = Address { place, slot, mailbox, actor: PhantomData };
        world.nodes.borrow_mut().push(address);
    }
}

/// Takes what waits in a shard's inbox.
pub(crate) fn take(shard: &Rc<Shard>) {
    let mut batch = Vec::new();
    shard.shared.inbox.take(&mut batch);
    batch.into_iter().for_each(|parcel| shard.accept(parcel));
}

fn step(world: &Rc<World>, shards: &[Rc<Shard>], begun: &mut u64, now: &mut u64) {
    let (at, what) = {
        let rng = &mut *world.rng.borrow_mut();
        (rng.below(shards.len()), rng.below(20))
    };
    let shard = &shards[at];
    match what {
        0..4 => {
            let nodes = world.nodes.borrow();
            let node = &nodes[world.rng.borrow_mut().below(nodes.len())];
            // From a thread that is no shard.
            *begun += u64::from(node.tell(Begin(*begun)).is_ok());
        }
        4 => {
            let (from, number) = (usize::MAX, *begun + 1);
            let nodes = world.nodes.borrow();
            let node = &nodes[world.rng.borrow_mut().below(nodes.len())];
            let _ = node.tell(Numbered { from, number });
            *begun += 1;
            world.note(number - 1, Ok(0));
            world.ledger.borrow_mut().asked += 1;
        }
        5 => *now += world.rng.borrow_mut().next() % 40,
        6 if world.rng.borrow_mut().chance(2) => {
            let nodes = world.nodes.borrow();
            nodes[world.rng.borrow_mut().below(nodes.len())].stop();
        }
        7..10 => shard.flush(),
        10..12 => take(shard),
        _ => {
            let budget = world.rng.borrow_mut().below(12) + 1;
            on(shard, |shard| shard.turn(Some(*now), budget));
        }
    }
}

/// Lets everything come to its end: past every deadline and every pause.
fn settle(world: &Rc<World>, shards: &[Rc<Shard>], now: &mut u64) {
    // Long enough for the longest chain over all shards, and more than once.
    for _ in 0..if cfg!(miri) { 12 } else { 40 } {
        *now += 1_000;
        for _ in 0..20 {
            for shard in shards {
                on(shard, |shard| shard.turn(Some(*now), 10_000));
                shard.flush();
                take(shard);
            }
        }
        let stored = std::mem::take(&mut world.ledger.borrow_mut().stored);
        on(&shards[0], |_| drop(stored));
    }
}

fn run(seed: u64, steps: usize, totals: &[Cell<u64>; 7]) -> u64 {
    let rng = RefCell::new(Rng(seed));
    let world = Rc::new(World { rng, ledger: RefCell::default(), nodes: RefCell::default() });
    let count = world.rng.borrow_mut().below(3) + 1;
    let shards: Vec<Rc<Shard>> = (0..count).map(|_| shard()).collect();
    for shard in &shards {
        let nodes = world.rng.borrow_mut().below(5) + 1;
        on(shard, |_| populate(shard, &world, nodes));
    }
    let (mut begun, mut now) = (0, 0);
    for _ in 0..steps {
        step(&world, &shards, &mut begun, &mut now);
    }
    settle(&world, &shards, &mut now);
    {
        let ledger = world.ledger.borrow();
        assert_eq!(ledger.ended.len() as u64, ledger.asked, "an ask has not ended");
        for ((from, to), seen) in &ledger.seen {
            let sent = ledger.sent.get(&(*from, *to));
            assert!(sent.is_none_or(|sent| seen <= sent), "{from} to {to}: more than was sent");
        }
    }
    for shard in &shards {
        assert_eq!(on(shard, Shard::open_now), (0, 0), "asks or continuations are left");
    }
    for shard in &shards {
        on(shard, Shard::close);
        let counts = &shard.shared.counts;
        let here = [
            &counts.dead_letters,
            &counts.refused,
            &counts.displaced,
            &counts.cancelled,
            &counts.panics,
            &counts.restarts,
        ];
        for (total, here) in totals.iter().zip(here) {
            total.set(total.get() + here.load(Ordering::Relaxed));
        }
    }
    world.nodes.borrow_mut().clear();
    let answered = world.ledger.borrow().ended.values().filter(|ended| ended.is_ok()).count();
    totals[6].set(totals[6].get() + answered as u64);
    world.ledger.borrow().asked
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn in_worlds_of_chance_every_ask_ends_once_and_order_holds() {
    // Panics by chance are part of the worlds: only those of the world itself are worth showing.
    let before = Arc::new(std::panic::take_hook());
    let shows = Arc::clone(&before);
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<&str>().copied().unwrap_or_default();
        if !text.ends_with("by chance") {
            shows(panic);
        }
    }));
    let (asks, steps) = if cfg!(miri) { (2, 30) } else { (200_000, 3_000) };
    let totals: [Cell<u64>; 7] = std::array::from_fn(|_| Cell::new(0));
    let mut seed = number("HOB_SIM_SEED", 1);
    let mut asked = 0;
    let failed = loop {
        match catch_unwind(AssertUnwindSafe(|| run(seed, steps, &totals))) {
            Ok(count) => asked += count,
            Err(panic) => break Some(panic),
        }
        if asked >= number("HOB_SIM_ASKS", asks) {
            break None;
        }
        seed += 1;
    };
    drop(std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| before(panic)));
    if let Some(panic) = failed {
        let text = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
        panic!("the world of seed {seed}: {text} (HOB_SIM_SEED={seed} HOB_SIM_ASKS=1)");
    }
    // Fewer asks may miss what is rare.
    if asked >= 200_000 {
        let names =
            ["dead letters", "refused", "displaced", "cancelled", "panics", "restarts", "answered"];
        for (name, total) in names.iter().zip(&totals) {
            assert!(total.get() > 1000, "{name} did not happen enough: {}", total.get());
        }
    }
}
