//! A ring of xtra actors with bounded mailboxes on one thread; a token is passed on.

use std::time::Instant;

use tokio::sync::oneshot;
use xtra::{Actor, Address, Context, Handler, Mailbox};

#[derive(Default)]
struct Node {
    next: Option<Address<Node>>,
    done: Option<oneshot::Sender<u64>>,
}

impl Actor for Node {
    type Stop = ();
    async fn stopped(self) {}
}

struct Link(Address<Node>, Option<oneshot::Sender<u64>>);

struct Token {
    left: u64,
    hops: u64,
}

impl Handler<Link> for Node {
    type Return = ();
    async fn handle(&mut self, link: Link, _: &mut Context<Self>) {
        self.next = Some(link.0);
        self.done = link.1;
    }
}

impl Handler<Token> for Node {
    type Return = ();
    async fn handle(&mut self, token: Token, _: &mut Context<Self>) {
        if token.left == 0 {
            let done = self.done.take().expect("the token ends where it began");
            done.send(token.hops).expect("main waits");
            return;
        }
        let next = self.next.as_ref().expect("linked");
        let token = Token { left: token.left - 1, hops: token.hops + 1 };
        // Its receipt is dropped: nobody waits for an answer.
        drop(next.send(token).detach().await.expect("the ring is whole"));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = hob_bench_actors::option("--rounds", 200);
    let nodes = hob_bench_actors::option("--nodes", 5000);
    let ring: Vec<Address<Node>> =
        (0..nodes).map(|_| xtra::spawn_tokio(Node::default(), Mailbox::bounded(16))).collect();
    let (done, ended) = oneshot::channel();
    let mut done = Some(done);
    for (at, node) in ring.iter().enumerate() {
        let next = ring[(at + 1) % ring.len()].clone();
        node.send(Link(next, done.take())).await.expect("linked");
    }
    let before = hob_bench_actors::peak_kib();
    let hops = rounds * nodes;
    let start = Instant::now();
    drop(ring[0].send(Token { left: hops, hops: 0 }).detach().await.expect("sent"));
    let check = ended.await.expect("the token comes back");
    hob_bench_actors::told(hops, start, check, before);
}
