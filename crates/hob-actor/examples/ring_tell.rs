//! A ring of actors that pass messages on, by tell: what one hop costs.
//!
//! `--nodes N` actors, `--messages N` messages at once, `--rounds N` rounds of each.

mod ring;

use hob_actor::{Actor, Address, Context, Handler, Mail, Message, Reply, ReplyHandler, System};
use ring::{Line, Options, Progress};

/// One hop, and how many are left.
struct Hop(u64);
impl Message for Hop {
    type Answer = ();
}

/// Whom a node passes on to.
struct Next(Address<Node>);
impl Message for Next {
    type Answer = ();
}

/// Answered when all messages have made all their rounds.
struct Done;
impl Message for Done {
    type Answer = ();
}

struct Node {
    next: Option<Address<Node>>,
    ended: Option<Address<Finish>>,
}

impl Actor for Node {}

impl Handler<Next> for Node {
    fn handle(&mut self, Next(next): Next, _: &mut Context<'_, Self>) {
        self.next = Some(next);
    }
}

impl Handler<Hop> for Node {
    fn handle(&mut self, Hop(left): Hop, cx: &mut Context<'_, Self>) {
        let sent = match (left, &self.next, &self.ended) {
            (0, _, Some(ended)) => cx.tell(ended, Hop(0)).is_ok(),
            (left, Some(next), _) => cx.tell(next, Hop(left - 1)).is_ok(),
            (_, None, _) => false,
        };
        assert!(sent, "the next mailbox has room for every message of the ring");
    }
}

struct Finish {
    missing: u64,
    waits: Option<Reply<()>>,
}

impl Actor for Finish {}

impl Handler<Hop> for Finish {
    fn handle(&mut self, _: Hop, _: &mut Context<'_, Self>) {
        self.missing -= 1;
        if self.missing == 0
            && let Some(waits) = self.waits.take()
        {
            waits.send(());
        }
    }
}

impl ReplyHandler<Done> for Finish {
    fn handle(&mut self, _: Done, reply: Reply<()>, _: &mut Context<'_, Self>) {
        match self.missing {
            0 => reply.send(()),
            _ => self.waits = Some(reply),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let about = "Messages go round a ring of actors by tells: what a hop costs.";
    let otherwise = Options { rounds: 2_000, nodes: 5_000, messages: 1, ask: 1 };
    let Some(options) = Options::read("ring_tell", about, otherwise)? else { return Ok(()) };
    let progress = Progress::start("ring_tell");
    let system = System::with_shards(1)?;
    let missing = options.messages;
    let ended = system.spawn(Finish { missing, waits: None });
    let room = u32::try_from(options.messages.max(16))?;
    let nodes: Vec<Address<Node>> = (0..options.nodes)
        .map(|_| {
            let ended = Some(ended.clone());
            system.spawn_on(0, Mail::bounded(room), || Node { next: None, ended })
        })
        .collect();
    for (node, next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
        node.ask(Next(next.clone())).wait()?;
    }
    progress.say("ring built");
    let hops = options.rounds * options.nodes;
    let started = std::time::Instant::now();
    for message in 0..options.messages {
        let at = usize::try_from(message % options.nodes)?;
        nodes[at].tell(Hop(hops - 1)).map_err(|failed| failed.why)?;
    }
    ended.ask(Done).wait()?;
    let elapsed = started.elapsed();
    Line::of("ring_tell", &options, elapsed, hops * options.messages).print()?;
    Ok(())
}
