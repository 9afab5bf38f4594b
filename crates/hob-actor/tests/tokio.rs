//! Futures of handlers within a tokio runtime, by the feature `tokio`: its timers, sockets, tasks
//! and blocking threads.
#![expect(clippy::unwrap_used, reason = "a test fails where its setup does")]
#![expect(clippy::manual_async_fn, reason = "a handler's future must not borrow its actor")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use hob_actor::{Actor, Address, AsyncHandler, Context, Handler, Mail, Message, System};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};

/// How long the timer's handler waits at least.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Message)]
#[answer(Duration)]
struct Wait;

#[derive(Message)]
#[answer(Vec<u8>)]
struct Fetch(std::net::SocketAddr);

#[derive(Message)]
#[answer((u64, u64))]
struct Spawned(u64);

#[derive(Message)]
#[answer(bool)]
struct IsWithin;

struct Node;
impl Actor for Node {}
impl AsyncHandler<Wait> for Node {
    fn handle(
        &mut self,
        _: Wait,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = Duration> + 'static {
        async {
            let started = Instant::now();
            // sleeps: the timer is what is tested.
            tokio::time::sleep(PAUSE).await;
            started.elapsed()
        }
    }
}
impl AsyncHandler<Fetch> for Node {
    fn handle(
        &mut self,
        Fetch(from): Fetch,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = Vec<u8>> + 'static {
        async move {
            let mut bytes = Vec::new();
            TcpStream::connect(from).await.unwrap().read_to_end(&mut bytes).await.unwrap();
            bytes
        }
    }
}
impl AsyncHandler<Spawned> for Node {
    fn handle(
        &mut self,
        Spawned(n): Spawned,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = (u64, u64)> + 'static {
        let task = tokio::spawn(async move { n + 1 });
        let blocking = tokio::task::spawn_blocking(move || n + 2);
        async move { (task.await.unwrap(), blocking.await.unwrap()) }
    }
}
impl Handler<IsWithin> for Node {
    fn handle(&mut self, _: IsWithin, _: &mut Context<'_, Self>) -> bool {
        Handle::try_current().is_ok()
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn all_of_it_works(node: &Address<Node>) {
    assert!(node.ask(Wait).wait().unwrap() >= PAUSE);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let fetched = node.ask(Fetch(listener.local_addr().unwrap()));
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"bread").unwrap();
    drop(stream);
    assert_eq!(fetched.wait().unwrap(), b"bread");
    assert_eq!(node.ask(Spawned(3)).wait(), Ok((4, 5)));
}

#[test]
fn futures_of_handlers_find_the_runtime_that_a_system_was_given() {
    let runtime = runtime();
    let mut system = System::with_shards_within(2, runtime.handle()).unwrap();
    for node in [system.spawn(Node), system.spawn(Node)] {
        all_of_it_works(&node);
    }
    let pool = system.pool(2, Mail::default(), || Node).unwrap();
    all_of_it_works(&pool);
    system.shutdown();
}

#[test]
fn a_system_that_is_started_within_a_runtime_is_within_it() {
    let runtime = runtime();
    let entered = runtime.enter();
    let system = System::with_shards(1).unwrap();
    drop(entered);
    all_of_it_works(&system.spawn(Node));
    system.shutdown();
}

#[test]
fn many_timers_wait_beside_one_another() {
    let runtime = runtime();
    let system = System::with_shards_within(1, runtime.handle()).unwrap();
    let node = system.spawn(Node);
    let started = Instant::now();
    let open: Vec<_> = (0..100).map(|_| node.ask(Wait)).collect();
    for ask in open {
        ask.wait().unwrap();
    }
    assert!(started.elapsed() < PAUSE * 50, "one after the other takes a hundred pauses");
    system.shutdown();
}

#[test]
fn a_system_that_is_started_outside_has_none() {
    let system = System::with_shards(1).unwrap();
    let node = system.spawn(Node);
    assert_eq!(node.ask(IsWithin).wait(), Ok(false));
    let error = node.ask(Wait).wait().unwrap_err().to_string();
    assert!(error.contains("no reactor running"), "{error}");
}
