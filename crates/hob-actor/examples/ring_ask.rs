//! A ring of actors in which each asks the next and answers with its answer: all asks are open at
//! once before the first answer comes, each in an actor that goes on taking messages.
//!
//! `--rounds N` of `--nodes N` actors are N × N nested asks, under one deadline that travels along.
//! `--forward 1` passes the asker's reply on instead, which needs no memory however deep it goes.

mod ring;

use std::time::Duration;

use hob_actor::{
    Actor, Address, AskError, AsyncHandler, Context, Handler, Mail, Message, Reply, ReplyHandler,
    System,
};
use ring::{Line, Options, Progress};

/// Long enough for any machine; it is there to be carried.
const WITHIN: Duration = Duration::from_secs(600);

/// How many nodes are still to be asked.
struct Step(u64);
impl Message for Step {
    /// How many have answered.
    type Answer = Result<u64, AskError>;
}

/// The same, to be forwarded.
struct Pass(u64);
impl Message for Pass {
    type Answer = u64;
}

struct Next(Address<Node>);
impl Message for Next {
    type Answer = ();
}

#[derive(Default)]
struct Node {
    next: Option<Address<Node>>,
}

impl Actor for Node {}

impl Handler<Next> for Node {
    fn handle(&mut self, Next(next): Next, _: &mut Context<'_, Self>) {
        self.next = Some(next);
    }
}

impl AsyncHandler<Step> for Node {
    fn handle(
        &mut self,
        Step(left): Step,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, AskError>> + 'static {
        let ask = match &self.next {
            Some(next) if left > 0 => Some(cx.ask(next, Step(left - 1))),
            Some(_) | None => None,
        };
        async move {
            match ask {
                Some(ask) => Ok(ask.await?? + 1),
                None => Ok(0),
            }
        }
    }
}

impl ReplyHandler<Pass> for Node {
    fn handle(&mut self, Pass(left): Pass, reply: Reply<u64>, cx: &mut Context<'_, Self>) {
        match &self.next {
            Some(next) if left > 0 => reply.forward(cx, next, Pass(left - 1)),
            Some(_) | None => reply.send(left),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let forward = std::env::args().any(|word| word == "--forward");
    let name = if forward { "forward" } else { "ring_ask" };
    let about =
        "A chain of open asks goes round a ring of actors: what one costs in time and memory.";
    let otherwise = Options { rounds: 2_000, nodes: 5_000, messages: 1, ask: 1 };
    let Some(options) = Options::read(name, about, otherwise)? else { return Ok(()) };
    let progress = Progress::start(name);
    let system = System::with_shards(1)?;
    let nodes: Vec<Address<Node>> = (0..options.nodes)
        .map(|_| system.spawn_on(0, Mail::bounded(1024), Node::default))
        .collect();
    for (node, next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
        node.ask(Next(next.clone())).wait()?;
    }
    progress.say("ring built");
    let before = ring::peak_rss_bytes();
    let asks = options.rounds * options.nodes;
    let first = &nodes[0];
    let started = std::time::Instant::now();
    for _ in 0..options.messages {
        let answered = if forward {
            asks - first.ask_within(Pass(asks), WITHIN).wait()?
        } else {
            first.ask_within(Step(asks), WITHIN).wait()??
        };
        assert_eq!(answered, asks, "every node of the chain has answered once");
    }
    let elapsed = started.elapsed();
    let grown = ring::peak_rss_bytes().saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let each = grown as f64 / asks as f64;
    Line::of(name, &options, elapsed, asks * options.messages)
        .with("bytes_per_open_ask", format_args!("{each:.1}"))
        .print()?;
    Ok(())
}
