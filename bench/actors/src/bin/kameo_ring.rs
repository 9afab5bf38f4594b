//! A ring of kameo actors with bounded mailboxes on one thread; a token is passed on.

use std::time::Instant;

use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};
use tokio::sync::oneshot;

#[derive(kameo::Actor, Default)]
struct Node {
    next: Option<ActorRef<Node>>,
    done: Option<oneshot::Sender<u64>>,
}

struct Link(ActorRef<Node>, Option<oneshot::Sender<u64>>);

struct Token {
    left: u64,
    hops: u64,
}

impl Message<Link> for Node {
    type Reply = ();
    async fn handle(&mut self, link: Link, _: &mut Context<Self, ()>) {
        self.next = Some(link.0);
        self.done = link.1;
    }
}

impl Message<Token> for Node {
    type Reply = ();
    async fn handle(&mut self, token: Token, _: &mut Context<Self, ()>) {
        if token.left == 0 {
            let done = self.done.take().expect("the token ends where it began");
            done.send(token.hops).expect("main waits");
            return;
        }
        let next = self.next.as_ref().expect("linked");
        let token = Token { left: token.left - 1, hops: token.hops + 1 };
        next.tell(token).await.unwrap_or_else(|_| panic!("the ring is whole"));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = hob_bench_actors::option("--rounds", 200);
    let nodes = hob_bench_actors::option("--nodes", 5000);
    let ring: Vec<ActorRef<Node>> = (0..nodes).map(|_| Node::spawn(Node::default())).collect();
    let (done, ended) = oneshot::channel();
    let mut done = Some(done);
    for (at, node) in ring.iter().enumerate() {
        let next = ring[(at + 1) % ring.len()].clone();
        node.ask(Link(next, done.take())).await.unwrap_or_else(|_| panic!("linked"));
    }
    let before = hob_bench_actors::peak_kib();
    let hops = rounds * nodes;
    let start = Instant::now();
    ring[0].tell(Token { left: hops, hops: 0 }).await.unwrap_or_else(|_| panic!("sent"));
    let check = ended.await.expect("the token comes back");
    hob_bench_actors::told(hops, start, check, before);
}
