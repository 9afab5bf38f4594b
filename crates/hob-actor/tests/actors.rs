//! Actors on real threads, through the public interface: what a program sees.
#![expect(clippy::unwrap_used, reason = "a test fails where its setup does")]
#![expect(clippy::manual_async_fn, reason = "a handler's future must not borrow its actor")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hob_actor::{
    Actor, Address, AskError, AsyncHandler, Context, End, Handler, Mail, Message, NotSent, Policy,
    Reply, ReplyHandler, Scope, Supervision, System,
};

/// For waits that a broken build would make endless. No test measures it.
const LONG: Duration = Duration::from_secs(120);

macro_rules! messages {
    ($($name:ident$(($($field:ty),*))? -> $answer:ty;)*) => {$(
        #[derive(Debug)]
        struct $name$(($($field),*))?;
        impl Message for $name { type Answer = $answer; }
    )*};
}

messages! {
    Add(u64) -> u64;
    Fail -> u64;
    Ring(u64) -> Result<u64, AskError>;
    Next(Address<Node>) -> ();
    Never -> ();
    Hold(mpsc::Receiver<()>) -> ();
    Slow(Arc<[u8]>) -> ();
    Ended(End) -> ();
    Tick -> ();
    Left -> Option<Duration>;
    Relay(u64) -> u64;
    Where -> String;
    Drops(Gone) -> ();
}

/// Tells when it is dropped.
#[derive(Debug)]
struct Gone(mpsc::Sender<()>);
impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[derive(Default)]
struct Node {
    sum: u64,
    next: Option<Address<Node>>,
}
impl Actor for Node {}

impl Handler<Add> for Node {
    fn handle(&mut self, Add(n): Add, _: &mut Context<'_, Self>) -> u64 {
        self.sum += n;
        self.sum
    }
}
impl Handler<Fail> for Node {
    fn handle(&mut self, _: Fail, _: &mut Context<'_, Self>) -> u64 {
        panic!("as the test asks")
    }
}
impl Handler<Next> for Node {
    fn handle(&mut self, Next(next): Next, _: &mut Context<'_, Self>) {
        self.next = Some(next);
    }
}
impl AsyncHandler<Ring> for Node {
    fn handle(
        &mut self,
        Ring(left): Ring,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, AskError>> + 'static {
        let ask = self.next.as_ref().filter(|_| left > 0).map(|next| cx.ask(next, Ring(left - 1)));
        let this = cx.this();
        async move {
            let Some(ask) = ask else { return Ok(0) };
            let deep = ask.await?? + 1;
            this.with(|node: &mut Node, _| node.sum += 1);
            Ok(deep)
        }
    }
}
impl ReplyHandler<Relay> for Node {
    fn handle(&mut self, Relay(left): Relay, reply: Reply<u64>, cx: &mut Context<'_, Self>) {
        match &self.next {
            Some(next) if left > 0 => reply.forward(cx, next, Relay(left - 1)),
            Some(_) | None => reply.send(7),
        }
    }
}
impl AsyncHandler<Never> for Node {
    fn handle(
        &mut self,
        _: Never,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = ()> + 'static {
        std::future::pending()
    }
}
impl AsyncHandler<Drops> for Node {
    fn handle(
        &mut self,
        Drops(gone): Drops,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = ()> + 'static {
        async move {
            let _gone = gone;
            std::future::pending().await
        }
    }
}
impl Handler<Hold> for Node {
    fn handle(&mut self, Hold(until): Hold, _: &mut Context<'_, Self>) {
        let _ = until.recv();
    }
}
impl Handler<Slow> for Node {
    fn handle(&mut self, Slow(payload): Slow, _: &mut Context<'_, Self>) {
        self.sum += u64::from(payload.len() == 64);
    }
}
impl Handler<Left> for Node {
    fn handle(&mut self, _: Left, cx: &mut Context<'_, Self>) -> Option<Duration> {
        cx.remaining()
    }
}
impl Handler<Where> for Node {
    fn handle(&mut self, _: Where, _: &mut Context<'_, Self>) -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }
}

fn ring(system: &System, nodes: usize) -> Vec<Address<Node>> {
    let nodes: Vec<Address<Node>> = (0..nodes).map(|_| system.spawn(Node::default())).collect();
    for (node, next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
        node.ask(Next(next.clone())).wait().unwrap();
    }
    nodes
}

#[test]
fn actors_that_ask_each_other_in_a_ring_do_not_wait_for_each_other() {
    for shards in [1, 2] {
        let system = System::with_shards(shards).unwrap();
        let nodes = ring(&system, 3);
        // Three hundred times around: each actor waits for itself a hundred times over.
        assert_eq!(nodes[0].ask(Ring(300)).wait(), Ok(Ok(300)));
        assert_eq!(nodes[0].ask(Add(0)).wait(), Ok(100));
        assert_eq!(nodes[0].ask(Relay(300)).wait(), Ok(7));
    }
}

#[test]
fn a_handler_that_never_answers_ends_at_the_deadline_and_its_work_is_dropped() {
    let system = System::with_shards(1).unwrap();
    let node = system.spawn(Node::default());
    let (gone, dropped) = mpsc::channel();
    let ask = node.ask_within(Drops(Gone(gone)), Duration::from_millis(20));
    assert_eq!(ask.wait(), Err(AskError::Expired));
    dropped.recv_timeout(LONG).unwrap();
    assert_eq!(node.ask_within(Never, Duration::from_millis(5)).wait(), Err(AskError::Expired));
    assert_eq!(node.ask(Add(1)).wait(), Ok(1));
}

#[test]
fn dropping_an_ask_drops_what_is_done_for_it() {
    let system = System::with_shards(2).unwrap();
    let node = system.spawn(Node::default());
    let (gone, dropped) = mpsc::channel();
    drop(node.ask(Drops(Gone(gone))));
    dropped.recv_timeout(LONG).unwrap();
}

#[test]
fn a_deadline_travels_as_what_is_left_of_it() {
    let system = System::with_shards(1).unwrap();
    let node = system.spawn(Node::default());
    assert_eq!(node.ask(Left).wait(), Ok(None));
    let left = node.ask_within(Left, LONG).wait().unwrap().unwrap();
    assert!(left <= LONG + Duration::from_millis(1));
}

#[test]
fn a_panic_fails_that_message_only() {
    let system = System::with_shards(1).unwrap();
    let node = system.spawn(Node::default());
    node.ask(Add(2)).wait().unwrap();
    assert_eq!(node.ask(Fail).wait(), Err(AskError::Panicked("as the test asks".into())));
    assert_eq!(node.ask(Add(2)).wait(), Ok(4));
    assert_eq!(system.troubles().panics, 1);
}

/// Keeps an actor busy until the sender is dropped.
/// Answers, and panics when it is dropped.
struct Loud;
impl Future for Loud {
    type Output = u64;
    fn poll(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<u64> {
        std::task::Poll::Ready(5)
    }
}
impl Drop for Loud {
    fn drop(&mut self) {
        panic!("as asked");
    }
}
struct Aloud;
impl Message for Aloud {
    type Answer = u64;
}
impl AsyncHandler<Aloud> for Node {
    fn handle(
        &mut self,
        _: Aloud,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = u64> + 'static {
        Loud
    }
}

#[test]
fn what_an_answered_future_leaves_behind_may_panic_and_nobody_notices() {
    let system = System::with_shards(1).unwrap();
    let node = system.spawn(Node::default());
    for _ in 0..70 {
        assert_eq!(node.ask(Aloud).wait(), Ok(5));
    }
    assert_eq!(system.troubles().panics, 0);
    drop(system);
}

fn hold(node: &Address<Node>) -> mpsc::Sender<()> {
    let (sender, until) = mpsc::channel();
    node.tell(Hold(until)).unwrap();
    sender
}

#[test]
fn a_full_mailbox_refuses_or_drops_its_oldest_and_says_so() {
    let system = System::with_shards(1).unwrap();
    let busy = system.spawn(Node::default());
    let held = hold(&busy);
    let refuse = Mail::bounded(3).when_full(Policy::Refuse);
    let refuses = system.spawn_with(refuse, Node::default);
    let sent = (0..5).filter(|_| refuses.tell(Add(1)).is_ok()).count();
    assert_eq!((sent, refuses.refused()), (3, 2));
    assert_eq!(refuses.ask(Add(1)).wait(), Err(AskError::Full));

    let latest = system.spawn_with(Mail::bounded(3).when_full(Policy::DropOldest), Node::default);
    let displaced = latest.ask(Add(1));
    for n in [10, 100, 1000] {
        latest.tell(Add(n)).unwrap();
    }
    assert_eq!(displaced.wait(), Err(AskError::Displaced));
    let sum = latest.ask(Add(0));
    drop(held);
    // The ten made room for the ask.
    assert_eq!(sum.wait(), Ok(1100));
    assert_eq!(system.troubles().displaced, 2);
}

#[test]
fn a_slow_consumer_holds_its_senders_back_and_memory_is_flat() {
    const TELLS: u64 = 10_000_000;
    let system = System::with_shards(1).unwrap();
    let node = system.spawn_with(Mail::bounded(1024), Node::default);
    // The payload counts itself: no more are alive than the mailbox and the hands can hold.
    let payload: Arc<[u8]> = Arc::from([0; 64]);
    let mut most = 0;
    for _ in 0..TELLS {
        node.tell_waiting(Slow(Arc::clone(&payload))).unwrap();
        most = most.max(Arc::strong_count(&payload));
    }
    assert_eq!(node.ask(Add(0)).wait(), Ok(TELLS));
    assert!(most <= 1024 + 2, "{most} messages were alive at once");
}

#[test]
fn one_sender_to_one_receiver_keeps_its_order() {
    struct Ordered(u64);
    impl Actor for Ordered {}
    impl Handler<Add> for Ordered {
        fn handle(&mut self, Add(n): Add, _: &mut Context<'_, Self>) -> u64 {
            assert_eq!(n, self.0);
            self.0 += 1;
            n
        }
    }
    let system = System::with_shards(2).unwrap();
    let receiver = system.spawn(Ordered(0));
    let mut asks = Vec::new();
    for n in 0..10_000 {
        // Told and asked in turn: both are in the one order.
        if n % 2 == 0 {
            receiver.tell_waiting(Add(n)).unwrap();
        } else {
            asks.push((n, receiver.ask(Add(n))));
        }
    }
    for (n, ask) in asks {
        assert_eq!(ask.wait(), Ok(n));
    }
    assert_eq!(system.troubles().panics, 0);
}

#[test]
fn what_has_ended_is_told_and_what_comes_later_is_a_dead_letter() {
    struct Watches(Address<Node>, mpsc::Sender<End>);
    impl Actor for Watches {
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            cx.watch(&self.0, Ended);
        }
    }
    impl Handler<Ended> for Watches {
        fn handle(&mut self, Ended(end): Ended, _: &mut Context<'_, Self>) {
            let _ = self.1.send(end);
        }
    }
    let system = System::with_shards(2).unwrap();
    let node = system.spawn(Node::default());
    system.registry().register("the node", &node).unwrap();
    assert!(system.registry().register("the node", &node).is_err());
    assert_eq!(system.registry().find::<Node>("the node"), Some(node.clone()));
    assert_eq!(system.registry().find_id::<Node>(node.id()), Some(node.clone()));
    let (told, ends) = mpsc::channel();
    system.spawn(Watches(node.clone(), told));
    let open = node.ask(Never);
    let (ended, again) = (node.ended(), node.clone());
    node.stop();
    assert_eq!(ended.wait(), Ok(End::Stopped));
    assert_eq!(open.wait(), Err(AskError::Stopped));
    assert_eq!(ends.recv_timeout(LONG), Ok(End::Stopped));
    assert_eq!(again.ask(Add(1)).wait(), Err(AskError::Stopped));
    assert_eq!(again.ended().wait(), Ok(End::Stopped));
    assert_eq!(system.registry().find::<Node>("the node"), None);
    assert_eq!(system.troubles().dead_letters, 1);
}

#[test]
fn a_supervised_actor_begins_anew_until_it_fails_too_often() {
    let system = System::with_shards(1).unwrap();
    let rules = Supervision::of(Scope::One)
        .intensity(2, LONG)
        .back_off(Duration::from_millis(1), Duration::from_millis(1));
    let group = system.supervise(rules);
    let lives = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lives);
    let node = group.spawn(Mail::default(), move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Node::default()
    });
    let beside = group.spawn(Mail::default(), Node::default);
    beside.ask(Add(5)).wait().unwrap();
    for life in 1..=2 {
        assert_eq!(node.ask(Add(1)).wait(), Ok(1));
        assert_eq!(node.ask(Fail).wait(), Err(AskError::Panicked("as the test asks".into())));
        // Kept while it waits to be restarted, and the sum is a new one's.
        assert_eq!(node.ask(Add(0)).wait(), Ok(0));
        assert_eq!(lives.load(Ordering::SeqCst), life + 1);
    }
    assert_eq!(beside.ask(Add(0)).wait(), Ok(5));
    let ended = node.ended();
    assert_eq!(node.ask(Fail).wait(), Err(AskError::Panicked("as the test asks".into())));
    assert_eq!(ended.wait(), Ok(End::Failed));
    assert_eq!(beside.ended().wait(), Ok(End::Stopped));
    assert_eq!(system.troubles().restarts, 2);
}

#[test]
fn a_group_that_fails_too_often_fails_as_a_member_of_the_group_around_it() {
    let system = System::with_shards(1).unwrap();
    let outer = system.supervise(Supervision::of(Scope::All));
    let beside = outer.spawn(Mail::default(), Node::default);
    let inner = outer.supervise(Supervision::of(Scope::One).intensity(0, LONG));
    let node = inner.spawn(Mail::default(), Node::default);
    beside.ask(Add(5)).wait().unwrap();
    node.ask(Add(5)).wait().unwrap();
    assert_eq!(node.ask(Fail).wait(), Err(AskError::Panicked("as the test asks".into())));
    // All of the outer group began anew.
    assert_eq!(node.ask(Add(0)).wait(), Ok(0));
    assert_eq!(beside.ask(Add(0)).wait(), Ok(0));
}

#[test]
fn scheduled_messages_come_until_they_are_cancelled() {
    struct Ticks {
        seen: u64,
        enough: mpsc::Sender<Instant>,
        every: Option<hob_actor::Scheduled>,
    }
    impl Actor for Ticks {
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            let me = cx.address();
            self.every = Some(cx.every(Duration::from_millis(1), &me, || Tick));
            cx.after(LONG, &me, Tick).cancel();
        }
    }
    impl Handler<Tick> for Ticks {
        fn handle(&mut self, _: Tick, cx: &mut Context<'_, Self>) {
            self.seen += 1;
            match self.every.take() {
                every @ Some(_) if self.seen < 3 => self.every = every,
                Some(every) => {
                    every.cancel();
                    let me = cx.address();
                    cx.at(Instant::now(), &me, Tick);
                }
                None => drop(self.enough.send(Instant::now())),
            }
        }
    }
    let system = System::with_shards(1).unwrap();
    let (enough, reached) = mpsc::channel();
    let started = Instant::now();
    let ticks = system.spawn(Ticks { seen: 0, enough, every: None });
    assert!(reached.recv_timeout(LONG).unwrap() - started >= Duration::from_millis(2));
    ticks.stop();
    ticks.ended().wait().unwrap();
    assert!(reached.try_recv().is_err());
}

#[test]
fn a_message_to_a_pool_wakes_one_of_its_threads() {
    let mut system = System::with_shards(1).unwrap();
    let pool = system.pool(3, Mail::bounded(100), Node::default).unwrap();
    let held = [hold(&pool), hold(&pool)];
    // Two are busy; the third does all that comes.
    let names: std::collections::HashSet<String> =
        (0..50).map(|_| pool.ask(Where).wait().unwrap()).collect();
    assert_eq!(names.len(), 1);
    assert!(names.iter().all(|name| name.starts_with("hob-")));
    let last = hold(&pool);
    let sent = (0..200).filter(|_| pool.tell(Add(1)).is_ok()).count();
    assert!(sent <= 100);
    drop((held, last));
    let failed = loop {
        match pool.ask(Fail).wait() {
            Err(AskError::Full) => std::thread::yield_now(),
            other => break other,
        }
    };
    assert_eq!(failed, Err(AskError::Panicked("as the test asks".into())));
    let asker = system.spawn(Node { next: None, sum: 0 });
    asker.ask(Next(pool.clone())).wait().unwrap();
    // An actor asks a pool as it asks any other.
    assert_eq!(asker.ask(Ring(1)).wait(), Ok(Ok(1)));
    let ended = pool.ended();
    pool.stop();
    assert_eq!(ended.wait(), Ok(End::Stopped));
    assert_eq!(pool.tell(Add(1)).unwrap_err().why, NotSent::Stopped);
}

#[test]
fn the_end_of_a_system_ends_every_open_ask() {
    let system = System::with_shards(2).unwrap();
    let nodes = ring(&system, 4);
    let open: Vec<_> = nodes.iter().map(|node| node.ask(Never)).collect();
    system.shutdown();
    for ask in open {
        assert_eq!(ask.wait(), Err(AskError::Stopped));
    }
    assert_eq!(nodes[0].tell(Add(1)).unwrap_err().why, NotSent::Stopped);
}
