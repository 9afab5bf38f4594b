//! A ring of ractor actors on one thread (their mailboxes have no bound); a token is passed on.

use std::time::Instant;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

struct Node;

#[derive(Default)]
struct State {
    next: Option<ActorRef<Message>>,
    done: Option<oneshot::Sender<u64>>,
}

enum Message {
    Link(ActorRef<Message>, Option<oneshot::Sender<u64>>),
    Token { left: u64, hops: u64 },
}

impl Actor for Node {
    type Msg = Message;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<State, ActorProcessingErr> {
        Ok(State::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Link(next, done) => {
                state.next = Some(next);
                state.done = done;
            }
            Message::Token { left: 0, hops } => {
                let done = state.done.take().expect("the token ends where it began");
                done.send(hops).expect("main waits");
            }
            Message::Token { left, hops } => {
                let next = state.next.as_ref().expect("linked");
                next.cast(Message::Token { left: left - 1, hops: hops + 1 })?;
            }
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = hob_bench_actors::option("--rounds", 200);
    let nodes = hob_bench_actors::option("--nodes", 5000);
    let mut ring = Vec::new();
    for _ in 0..nodes {
        let (node, _) = Actor::spawn(None, Node, ()).await.expect("spawned");
        ring.push(node);
    }
    let (done, ended) = oneshot::channel();
    let mut done = Some(done);
    for (at, node) in ring.iter().enumerate() {
        let next = ring[(at + 1) % ring.len()].clone();
        node.cast(Message::Link(next, done.take())).expect("linked");
    }
    let before = hob_bench_actors::peak_kib();
    let hops = rounds * nodes;
    let start = Instant::now();
    ring[0].cast(Message::Token { left: hops, hops: 0 }).expect("sent");
    let check = ended.await.expect("the token comes back");
    hob_bench_actors::told(hops, start, check, before);
}
