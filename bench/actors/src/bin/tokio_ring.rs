//! A ring of tasks with bounded channels on one thread, written by hand as one would without an
//! actor library: `--ask 0` passes a token on, `--ask 1` nests asks, each with a task of its own
//! (a node that waited for its answer itself would dead-lock the ring).

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

const MAILBOX: usize = 16;

enum Message {
    Token { left: u64, hops: u64 },
    Ask { left: u64, reply: oneshot::Sender<u64> },
}

async fn node(
    mut mailbox: mpsc::Receiver<Message>,
    next: mpsc::Sender<Message>,
    mut done: Option<oneshot::Sender<u64>>,
) {
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Token { left: 0, hops } => {
                let done = done.take().expect("the token ends where it began");
                done.send(hops).expect("main waits");
            }
            Message::Token { left, hops } => {
                let token = Message::Token { left: left - 1, hops: hops + 1 };
                next.send(token).await.unwrap_or_else(|_| panic!("the ring is whole"));
            }
            Message::Ask { left: 0, reply } => reply.send(0).expect("the asker waits"),
            Message::Ask { left, reply } => {
                let next = next.clone();
                tokio::spawn(async move {
                    let (answer, answered) = oneshot::channel();
                    let ask = Message::Ask { left: left - 1, reply: answer };
                    next.send(ask).await.unwrap_or_else(|_| panic!("the ring is whole"));
                    // The sender must not keep a mailbox open for as long as the answer takes.
                    drop(next);
                    let answer = answered.await.expect("every node answers");
                    reply.send(answer + 1).expect("the asker waits");
                });
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds = hob_bench_actors::option("--rounds", 200);
    let nodes = hob_bench_actors::option("--nodes", 5000);
    let asks = hob_bench_actors::option("--ask", 0) == 1;
    let (done, ended) = oneshot::channel();
    let mut done = Some(done);
    let (first, mailbox) = mpsc::channel(MAILBOX);
    let mut mailbox = Some(mailbox);
    for at in 0..nodes {
        let mine = mailbox.take().expect("made for this node");
        let next = if at + 1 == nodes {
            first.clone()
        } else {
            let (next, theirs) = mpsc::channel(MAILBOX);
            mailbox = Some(theirs);
            next
        };
        tokio::spawn(node(mine, next, done.take()));
    }
    let before = hob_bench_actors::peak_kib();
    let hops = rounds * nodes;
    let start = Instant::now();
    let check = if asks {
        let (reply, answer) = oneshot::channel();
        first.send(Message::Ask { left: hops, reply }).await.unwrap_or_else(|_| panic!("whole"));
        answer.await.expect("answered")
    } else {
        first
            .send(Message::Token { left: hops, hops: 0 })
            .await
            .unwrap_or_else(|_| panic!("whole"));
        ended.await.expect("the token comes back")
    };
    hob_bench_actors::told(hops, start, check, before);
}
