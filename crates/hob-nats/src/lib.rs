//! Other hosts over NATS: the one connection that a daemon has, in tasks beside its loop.
//!
//! ```text
//!   the loop ── Order ─▶ keeper ─▶ async-nats ─▶ nats-server
//!            ◀── News ──┘    the tasks of one connection end with it
//! ```
//! | file | does |
//! |---|---|
//! | `connection` | one connection from its beginning to its end |
//! | `tasks` | the tasks that end with a connection |
//! | `service` | the programs that are offered on it |
//! | `tells` | tells over JetStream |
//! | `micro` | what they say by the services API of NATS, and what others say |
//! | `ends` | the end of a subscription, and a way through the server and back |
//! | `survey` | what all hosts say when they are asked |
//! | `letters` | dead letters: asked of all hosts, and said |
//! | `headers` | asks and replies as messages of NATS |
//!
//! The client library connects anew by itself, and sends then what it had kept: an ask could go out
//! after its asker gave up. So a connection that is cut is over here, and its tasks are ended, the
//! library's too, with all that they kept. What is decided about asks and questions is `hob_core::hosts`'.
//!
//! Invariants: no order waits for the network; a question that finds no room in the loop is answered
//! `busy` at once, never dropped; no secret is in any text that leaves this crate.
#![forbid(unsafe_code)]

mod connection;
mod ends;
mod headers;
mod letters;
mod micro;
mod service;
mod survey;
mod tasks;
mod tells;

use std::time::Duration;

use hob_core::hosts::tells::NotKept;
use hob_core::hosts::{News, Offered, Order, Published};
use hob_core::requests::dead::Elsewhere;
use hob_daemon::hosts::{Inbox, Settings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use connection::Over;

/// How long the first attempt to connect anew waits, and how long the longest.
const AGAIN_MIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// Starts the keeper in the runtime of the loop. It ends after [`Order::Stop`].
#[must_use]
pub fn connect(settings: Settings, orders: mpsc::Receiver<Order>, inbox: Inbox) -> JoinHandle<()> {
    tokio::spawn(Keeper { settings, orders, inbox, offered: Vec::new() }.run())
}

/// Keeps one connection, and makes it anew when it is cut.
struct Keeper {
    settings: Settings,
    orders: mpsc::Receiver<Order>,
    inbox: Inbox,
    offered: Vec<Offered>,
}

impl Keeper {
    async fn run(mut self) {
        let mut pause = AGAIN_MIN;
        loop {
            let Over::Cut { why, was_up } = self.connected().await else { return };
            if was_up {
                pause = AGAIN_MIN;
            }
            if !self.inbox.tell(News::Down { why }).await || self.rest(pause).await {
                return;
            }
            pause = (pause * 2).min(AGAIN_MAX);
        }
    }

    /// Waits for this time; orders are taken meanwhile. `true`: the last one was to stop.
    async fn rest(&mut self, time: Duration) -> bool {
        let until = tokio::time::Instant::now() + time;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return false,
                order = self.orders.recv() => {
                    if self.unconnected(order).await {
                        return true;
                    }
                }
            }
        }
    }

    /// Takes an order without a connection; `true`: it is to stop.
    async fn unconnected(&mut self, order: Option<Order>) -> bool {
        match order {
            None | Some(Order::Stop) => return true,
            Some(Order::Offer(offered)) => self.offered = offered,
            // Its asker has lost the connection too, or waits until its time has passed.
            Some(
                Order::Answer { .. }
                | Order::Taken { .. }
                | Order::Stats { .. }
                | Order::SayLetters { .. },
            ) => {}
            // Its stream gives it to a host again.
            Some(Order::Settle { .. }) => {}
            Some(Order::Tell(telling)) => {
                let why = format!("{}: there is no connection", self.settings.url);
                let kept = Err(NotKept { why, nobody: false, never: false });
                return !self.inbox.tell(News::Kept { id: telling.id, kept }).await;
            }
            Some(Order::CatchUp) => return !self.inbox.tell(News::CaughtUp).await,
            Some(Order::AskLetters) => {
                return !self.inbox.tell(News::Letters(Elsewhere::default())).await;
            }
            Some(Order::Survey) => return !self.inbox.tell(News::Surveyed(Vec::new())).await,
            Some(Order::Publish(Published { attempt, .. }) | Order::Go { attempt, .. }) => {
                let why = format!("{}: there is no connection", self.settings.url);
                return !self.inbox.tell(News::NotSent { attempt, why }).await;
            }
        }
        false
    }
}
