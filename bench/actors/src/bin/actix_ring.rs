//! A ring of actix actors on one arbiter: `--ask 0` passes a token on, `--ask 1` nests asks.

use std::time::Instant;

use actix::prelude::*;
use futures::channel::oneshot;

struct Node {
    next: Option<Addr<Node>>,
    done: Option<oneshot::Sender<u64>>,
}

impl Actor for Node {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "()")]
struct Link(Addr<Node>, Option<oneshot::Sender<u64>>);

#[derive(Message)]
#[rtype(result = "()")]
struct Token {
    left: u64,
    hops: u64,
}

#[derive(Message)]
#[rtype(result = "u64")]
struct Ask(u64);

impl Handler<Link> for Node {
    type Result = ();
    fn handle(&mut self, link: Link, _: &mut Self::Context) {
        self.next = Some(link.0);
        self.done = link.1;
    }
}

impl Handler<Token> for Node {
    type Result = ();
    fn handle(&mut self, token: Token, _: &mut Self::Context) {
        let next = self.next.as_ref().expect("linked");
        if token.left == 0 {
            let done = self.done.take().expect("the token ends where it began");
            done.send(token.hops).expect("main waits");
        } else {
            next.do_send(Token { left: token.left - 1, hops: token.hops + 1 });
        }
    }
}

impl Handler<Ask> for Node {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, ask: Ask, _: &mut Self::Context) -> Self::Result {
        if ask.0 == 0 {
            return Box::pin(async { 0 });
        }
        let sent = self.next.as_ref().expect("linked").send(Ask(ask.0 - 1));
        Box::pin(async move { sent.await.expect("every node answers") + 1 })
    }
}

#[actix::main]
async fn main() {
    let rounds = hob_bench_actors::option("--rounds", 200);
    let nodes = hob_bench_actors::option("--nodes", 5000);
    let asks = hob_bench_actors::option("--ask", 0) == 1;
    let ring: Vec<_> = (0..nodes).map(|_| Node { next: None, done: None }.start()).collect();
    let (done, ended) = oneshot::channel();
    let mut done = Some(done);
    for (at, node) in ring.iter().enumerate() {
        let next = ring[(at + 1) % ring.len()].clone();
        node.send(Link(next, done.take())).await.expect("linked");
    }
    let before = hob_bench_actors::peak_kib();
    let hops = rounds * nodes;
    let start = Instant::now();
    let check = if asks {
        ring[0].send(Ask(hops)).await.expect("answered")
    } else {
        ring[0].do_send(Token { left: hops, hops: 0 });
        ended.await.expect("the token comes back")
    };
    hob_bench_actors::told(hops, start, check, before);
}
