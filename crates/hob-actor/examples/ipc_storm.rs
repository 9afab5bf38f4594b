//! Many processes ask, or tell, one actor of one process.
//!
//! `--nodes N` workers send `--messages N` messages each, with `--ask N` asks of each open at a
//! time; `--ask 0` tells instead, and asks once at the end, which the order of one sender's
//! messages puts behind all of them.

mod ipc;

use hob_actor::link::Messages;
use hob_actor::{Actor, Address, AskError, AsyncHandler, Context, Handler, Message, Peers, System};

hob_actor::wire! {
    /// Adds, and is answered with one more.
    struct Add { value: u64 }
    /// Adds, and is only told.
    struct Note { value: u64 }
    /// What was added up so far.
    struct Sum {}
    /// To a worker: ask, or tell, that actor.
    struct Run { counter: Address<Counter>, messages: u64, open: u64 }
    /// From a worker to itself: one of the asks that are open at a time.
    struct Lane { counter: Address<Counter>, from: u64, step: u64, messages: u64 }
    /// From a worker to itself: the next tells.
    struct Burst { counter: Address<Counter>, from: u64, messages: u64 }
}

impl Message for Add {
    type Answer = u64;
}
impl Message for Note {
    type Answer = ();
}
impl Message for Sum {
    type Answer = u64;
}
impl Message for Run {
    type Answer = bool;
}
impl Message for Lane {
    type Answer = bool;
}
impl Message for Burst {
    type Answer = bool;
}

#[derive(Default)]
struct Counter {
    sum: u64,
}

impl Actor for Counter {}

impl Handler<Add> for Counter {
    fn handle(&mut self, Add { value }: Add, _: &mut Context<'_, Self>) -> u64 {
        self.sum += value;
        value + 1
    }
}

impl Handler<Note> for Counter {
    fn handle(&mut self, Note { value }: Note, _: &mut Context<'_, Self>) {
        self.sum += value;
    }
}

impl Handler<Sum> for Counter {
    fn handle(&mut self, _: Sum, _: &mut Context<'_, Self>) -> u64 {
        self.sum
    }
}

struct Client;

impl Actor for Client {}

impl AsyncHandler<Run> for Client {
    fn handle(
        &mut self,
        Run { counter, messages, open }: Run,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = bool> + 'static {
        let me = cx.address();
        let mut parts = Vec::new();
        for from in 0..open {
            let counter = counter.clone();
            parts.push(cx.ask(&me, Lane { counter, from, step: open, messages }));
        }
        if open == 0 {
            parts.push(cx.ask(&me, Burst { counter, from: 0, messages }));
        }
        async move {
            let mut all_right = true;
            for part in parts {
                all_right &= part.await == Ok(true);
            }
            all_right
        }
    }
}

impl AsyncHandler<Lane> for Client {
    fn handle(
        &mut self,
        Lane { counter, from, step, messages }: Lane,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = bool> + 'static {
        let this = cx.this();
        async move {
            let mut value = from;
            while value < messages {
                if this.ask(&counter, Add { value }).await != Ok(value + 1) {
                    return false;
                }
                value += step;
            }
            true
        }
    }
}

/// As many as are sent in one turn.
const BURST: u64 = 4096;

impl AsyncHandler<Burst> for Client {
    fn handle(
        &mut self,
        Burst { counter, from, messages }: Burst,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = bool> + 'static {
        let until = messages.min(from + BURST);
        let told = (from..until).all(|value| cx.tell(&counter, Note { value }).is_ok());
        let (me, this) = (cx.address(), cx.this());
        async move {
            let rest: Result<bool, AskError> = if !told {
                Ok(false)
            } else if until < messages {
                this.ask(&me, Burst { counter, from: until, messages }).await
            } else {
                this.ask(&counter, Sum {}).await.map(|_| true)
            };
            rest == Ok(true)
        }
    }
}

fn messages() -> Messages {
    Messages::new()
        .takes::<Counter, Add, _>("counter.add")
        .takes::<Counter, Note, _>("counter.note")
        .takes::<Counter, Sum, _>("counter.sum")
        .takes::<Client, Run, _>("client.run")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let about = "Many processes ask an actor at once: what an ask costs.";
    let options = [
        ("--nodes", "how many processes (100)"),
        ("--messages", "how many asks each (10,000)"),
        ("--ask", "how many are open at once; 0: tells (1)"),
    ];
    if !ipc::begins("ipc_storm", about, &options)? {
        return Ok(());
    }
    let system = System::with_shards(1)?;
    if ipc::is_worker() {
        let peers = Peers::join(&system, messages())?;
        peers.publish("client", &system.spawn(Client));
        peers.until_drained();
        return Ok(());
    }
    let nodes = ipc::option("--nodes", 100)?;
    let each = ipc::option("--messages", 10_000)?;
    let open = ipc::option("--ask", 1)?;
    let peers = Peers::start(&system, messages())?;
    ipc::progress("ipc_storm: starting the workers");
    let workers = peers.spawn_all(ipc::workers(nodes)?)?;
    let processes = workers.iter().filter_map(|worker| peers.process(*worker));
    let idle = processes.map(|process| ipc::memory_kib(&[process])).max().unwrap_or(0);
    let mut clients = Vec::new();
    for worker in workers {
        clients.push(peers.remote::<Client>(worker, "client")?);
    }
    let counter = system.spawn(Counter::default());
    ipc::progress("ipc_storm: under way");
    let start = std::time::Instant::now();
    let run = || Run { counter: counter.clone(), messages: each, open };
    let running: Vec<_> = clients.iter().map(|client| client.ask(run())).collect();
    for one in running {
        assert!(one.wait()?, "a worker got a wrong answer");
    }
    let elapsed = start.elapsed();
    let check = counter.ask(Sum {}).wait()?;
    peers.drain();
    let more = [("nodes", nodes), ("open", open), ("check", check), ("idle_pss_kib", idle)];
    ipc::tell("ipc_storm", (nodes * each, elapsed), &more)?;
    Ok(())
}
