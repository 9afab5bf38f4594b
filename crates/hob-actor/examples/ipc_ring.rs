//! A ring of processes that pass one message on, by tell or by ask: what a hop between processes
//! costs.
//!
//! `--nodes N` processes (this one among them), `--rounds N` times round. Every worker learns its
//! successor by an address in a message, and gets a link of its own to it.
//!
//! `--ask N`: each node asks the next one, and answers when that has: a chain N times round, whose
//! asks are all open before the first is answered. Chains follow one another until the rounds are
//! made. There and back are two hops. `--within N` gives each chain so many milliseconds: they travel
//! along, and what is left of them ends the whole chain.

mod ipc;

use std::time::Duration;

use hob_actor::link::Messages;
use hob_actor::{
    Actor, Address, AsyncHandler, Context, Handler, Message, Peers, Reply, ReplyHandler, System,
};

hob_actor::wire! {
    /// One hop: how many are left, and how many were made.
    struct Hop { left: u64, made: u64 }
    /// One ask of a chain: how many are still to be made.
    struct Step { left: u64 }
    /// Whom a node passes on to.
    struct Next { next: Address<Node> }
}

impl Message for Hop {
    type Answer = ();
}

impl Message for Step {
    /// The hops that its part of the chain has made, there and back.
    type Answer = Result<u64, String>;
}

impl Message for Next {
    type Answer = ();
}

/// Answered with the hops that were made, when the last has arrived. Not for other processes.
struct Done;
impl Message for Done {
    type Answer = u64;
}

#[derive(Default)]
struct Node {
    next: Option<Address<Node>>,
    waits: Option<Reply<u64>>,
}

impl Actor for Node {}

impl Handler<Next> for Node {
    fn handle(&mut self, Next { next }: Next, _: &mut Context<'_, Self>) {
        self.next = Some(next);
    }
}

impl Handler<Hop> for Node {
    fn handle(&mut self, Hop { left, made }: Hop, cx: &mut Context<'_, Self>) {
        if left == 0 {
            if let Some(waits) = self.waits.take() {
                waits.send(made);
            }
        } else if let Some(next) = &self.next {
            let sent = cx.tell(next, Hop { left: left - 1, made: made + 1 });
            assert!(sent.is_ok(), "one message fits into every mailbox");
        }
    }
}

impl AsyncHandler<Step> for Node {
    fn handle(
        &mut self,
        Step { left }: Step,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, String>> + 'static {
        let ask = match &self.next {
            Some(next) if left > 0 => Some(cx.ask(next, Step { left: left - 1 })),
            Some(_) | None => None,
        };
        async move {
            match ask {
                Some(ask) => Ok(ask.await.map_err(|error| error.to_string())?? + 2),
                None => Ok(0),
            }
        }
    }
}

impl ReplyHandler<Done> for Node {
    fn handle(&mut self, _: Done, reply: Reply<u64>, _: &mut Context<'_, Self>) {
        self.waits = Some(reply);
    }
}

fn messages() -> Messages {
    Messages::new()
        .takes::<Node, Hop, _>("node.hop")
        .takes::<Node, Step, _>("node.step")
        .takes::<Node, Next, _>("node.next")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let about = "A message goes round a ring of processes by tells or asks: what a hop costs.";
    let options = [
        ("--nodes", "how many processes (2)"),
        ("--rounds", "how often (200,000 hops in all)"),
        ("--ask", "by chains of open asks, each so many times round (0: by tells)"),
        ("--within", "how many milliseconds a chain may take (0: as long as it takes)"),
    ];
    if !ipc::begins("ipc_ring", about, &options)? {
        return Ok(());
    }
    let system = System::with_shards(1)?;
    if ipc::is_worker() {
        let peers = Peers::join(&system, messages())?;
        peers.publish("node", &system.spawn(Node::default()));
        peers.until_drained();
        return Ok(());
    }
    let nodes = ipc::option("--nodes", 2)?.max(2);
    let rounds = ipc::option("--rounds", 200_000 / nodes)?;
    let long = ipc::option("--ask", 0)?;
    let within = ipc::option("--within", 0)?;
    let within = (within > 0).then(|| Duration::from_millis(within));
    let peers = Peers::start(&system, messages())?;
    ipc::progress("ipc_ring: starting the workers");
    let mut ring = vec![system.spawn(Node::default())];
    let mut processes = vec![std::process::id()];
    for worker in peers.spawn_all(ipc::workers(nodes - 1)?)? {
        ring.push(peers.remote::<Node>(worker, "node")?);
        processes.extend(peers.process(worker));
    }
    for (node, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        node.ask(Next { next: next.clone() }).wait()?;
    }
    // Once round first: every process has its link then.
    go(&ring[0], nodes)?;
    ipc::progress("ipc_ring: passing on");
    if let Some(count) = rounds.checked_div(long) {
        let chains = Chains { count: count.max(1), asks: long * nodes, within };
        let told = chains.go(&ring[0], &processes)?;
        peers.drain();
        let (hops, elapsed, grown_kib) = (told.hops, told.elapsed, told.grown_kib);
        let more = [("nodes", nodes), ("check", hops), ("grown_kib", grown_kib)];
        return Ok(ipc::tell("ipc_ring", (hops, elapsed), &more)?);
    }
    let hops = rounds * nodes;
    let start = std::time::Instant::now();
    let made = go(&ring[0], hops)?;
    let elapsed = start.elapsed();
    peers.drain();
    ipc::tell("ipc_ring", (hops, elapsed), &[("nodes", nodes), ("check", made)])?;
    Ok(())
}

/// Sends the message round until it has made so many hops.
fn go(first: &Address<Node>, hops: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let done = first.ask(Done);
    first.tell(Hop { left: hops, made: 0 }).map_err(|failed| failed.why)?;
    Ok(done.wait()?)
}

/// Chains of asks, one after the other.
struct Chains {
    count: u64,
    /// Asks of one, all open at once.
    asks: u64,
    within: Option<Duration>,
}

struct Told {
    hops: u64,
    elapsed: Duration,
    /// Memory of all processes at the end, over what it was after the first tenth of the chains.
    grown_kib: u64,
}

impl Chains {
    fn go(
        &self,
        first: &Address<Node>,
        processes: &[u32],
    ) -> Result<Told, Box<dyn std::error::Error>> {
        let mut hops = 0;
        let (mut before, mut elapsed) = (0, Duration::ZERO);
        for chain in 0..self.count {
            if chain == self.count / 10 {
                before = ipc::memory_kib(processes);
            }
            let start = std::time::Instant::now();
            let step = Step { left: self.asks };
            let asked = match self.within {
                Some(within) => first.ask_within(step, within),
                None => first.ask(step),
            };
            hops += asked.wait()??;
            elapsed += start.elapsed();
        }
        let grown_kib = ipc::memory_kib(processes).saturating_sub(before);
        Ok(Told { hops, elapsed, grown_kib })
    }
}
