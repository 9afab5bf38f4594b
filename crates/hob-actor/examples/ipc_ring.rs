//! A ring of processes that pass one message on, by tell: what a hop between processes costs.
//!
//! `--nodes N` processes (this one among them), `--rounds N` times round. Every worker learns its
//! successor by an address in a message, and gets a link of its own to it.

mod ipc;

use hob_actor::link::Messages;
use hob_actor::{Actor, Address, Context, Handler, Message, Peers, Reply, ReplyHandler, System};

hob_actor::wire! {
    /// One hop: how many are left, and how many were made.
    struct Hop { left: u64, made: u64 }
    /// Whom a node passes on to.
    struct Next { next: Address<Node> }
}

impl Message for Hop {
    type Answer = ();
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

impl ReplyHandler<Done> for Node {
    fn handle(&mut self, _: Done, reply: Reply<u64>, _: &mut Context<'_, Self>) {
        self.waits = Some(reply);
    }
}

fn messages() -> Messages {
    Messages::new().takes::<Node, Hop, _>("node.hop").takes::<Node, Next, _>("node.next")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let about = "A message goes round a ring of processes by tells: what a hop costs.";
    let options =
        [("--nodes", "how many processes (2)"), ("--rounds", "how often (200,000 hops in all)")];
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
    let peers = Peers::start(&system, messages())?;
    ipc::progress("ipc_ring: starting the workers");
    let mut ring = vec![system.spawn(Node::default())];
    for worker in peers.spawn_all(ipc::workers(nodes - 1)?)? {
        ring.push(peers.remote::<Node>(worker, "node")?);
    }
    for (node, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        node.ask(Next { next: next.clone() }).wait()?;
    }
    // Once round first: every process has its link then.
    go(&ring[0], nodes)?;
    ipc::progress("ipc_ring: passing on");
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
