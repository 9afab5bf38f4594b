//! A host takes what a stream of its program gives: it asks each consumer for as many as it has room
//! for.
//!
//! Invariants: a host asks for no more than it may have open; what it has open and does not settle,
//! nor says that it works on, the stream gives to another host.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::{News, words};
use hob_daemon::hosts::Inbox;
use serde_json::json;
use tokio::sync::watch;

use super::stream::{Kind, Made};
use super::{Held, delivered, nanos};
use crate::{ends, headers};

/// How often a host says that it works on what it has.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// How long a request for messages stands.
const PULL: Duration = Duration::from_secs(30);
/// How long a host waits before it looks again for a stream that it could not have.
const AGAIN: Duration = Duration::from_secs(30);

/// Takes what one stream of a program has.
pub(crate) struct Task {
    pub(crate) client: Client,
    pub(crate) inbox: Inbox,
    pub(crate) program: String,
    pub(crate) kind: Kind,
    pub(crate) held: Arc<Held>,
}

/// Why a host pulls no more.
enum Over {
    Withdrawn,
    Cut,
    /// The stream or its consumer is not there any more.
    Gone(String),
}

/// What is asked of a stream's consumers.
struct Pulls {
    stream: String,
    /// Where what they say comes, each by its number.
    to: String,
    made: Made,
    /// How many messages each was asked for that have not come.
    wanted: Vec<usize>,
}

impl Pulls {
    fn new(stream: String, to: String, made: Made) -> Pulls {
        let wanted = vec![0; made.consumers.len()];
        Pulls { stream, to, made, wanted }
    }

    /// Asks those that were asked for nothing, as far as there is room; `None`: the connection is over.
    async fn ask(&mut self, client: &Client, held: &Held) -> Option<()> {
        let open = held.counts(self.wanted.len());
        for (number, (wanted, open)) in self.wanted.iter_mut().zip(open).enumerate() {
            let Some(room) = self.made.window.checked_sub(open).filter(|room| *room > 0) else {
                continue;
            };
            let Some(consumer) = self.made.consumers.get(number).filter(|_| *wanted == 0) else {
                continue;
            };
            *wanted = room;
            let next = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{consumer}", self.stream);
            let ask = json!({ "batch": room, "expires": nanos(PULL) }).to_string();
            client
                .publish_with_reply(next, format!("{}.{number}", self.to), ask.into())
                .await
                .ok()?;
        }
        Some(())
    }

    /// The number of a consumer.
    fn number(&self, consumer: &str) -> Option<usize> {
        self.made.consumers.iter().position(|each| each == consumer)
    }

    /// The one that a word comes from.
    fn wanted_of(&mut self, subject: &str) -> Option<&mut usize> {
        let number: usize = subject.rsplit('.').next()?.parse().ok()?;
        self.wanted.get_mut(number)
    }
}

impl Task {
    pub(crate) async fn run(self, mut withdrawn: watch::Receiver<()>) {
        let name = self.kind.stream(&self.program);
        let mut was_told = false;
        loop {
            let made = tokio::select! {
                made = self.kind.make(&self.client, &self.program) => made,
                _ = withdrawn.changed() => break,
            };
            let why = match made {
                Err(why) => why,
                Ok(made) => {
                    was_told = made.differs.is_some();
                    if !self.say(&name, made.differs.clone()).await {
                        return;
                    }
                    match self.pull(made, &mut withdrawn).await {
                        Over::Withdrawn => break,
                        Over::Cut => return,
                        Over::Gone(why) => why,
                    }
                }
            };
            was_told = true;
            if !self.say(&name, Some(why)).await {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                _ = withdrawn.changed() => break,
            }
        }
        if was_told {
            // It is nobody's trouble any more.
            self.say(&name, None).await;
        }
    }

    /// Says why nothing comes of the stream; `false`: the loop has ended.
    async fn say(&self, name: &str, why: Option<String>) -> bool {
        self.inbox.tell(News::Stream { name: name.to_owned(), why }).await
    }

    async fn pull(&self, made: Made, withdrawn: &mut watch::Receiver<()>) -> Over {
        let to = self.client.new_inbox();
        let Ok(mut messages) = self.client.subscribe(format!("{to}.*")).await else {
            return Over::Cut;
        };
        let mut pulls = Pulls::new(self.kind.stream(&self.program), to, made);
        let mut progress = tokio::time::interval(PROGRESS_EVERY);
        progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if pulls.ask(&self.client, &self.held).await.is_none() {
                return Over::Cut;
            }
            tokio::select! {
                message = messages.next() => {
                    let Some(message) = message else { return Over::Cut };
                    match message.status.map(|status| status.as_u16()) {
                        None => {
                            if !self.deliver(message, &mut pulls).await {
                                return Over::Cut;
                            }
                        }
                        Some(404 | 408) => {
                            if let Some(wanted) = pulls.wanted_of(&message.subject) {
                                *wanted = 0;
                            }
                        }
                        Some(100) => {}
                        Some(_) => {
                            let why = message.description.as_deref().unwrap_or("its stream is gone");
                            return Over::Gone(format!("JetStream: {}", words::line(why)));
                        }
                    }
                }
                () = self.held.freed.notified() => {}
                _ = progress.tick(), if !self.held.all().is_empty() => {
                    for ack in self.held.all() {
                        let _ = self.client.publish(ack, Bytes::from_static(b"+WPI")).await;
                    }
                }
                _ = withdrawn.changed() => {
                    self.rest(messages, &mut pulls).await;
                    return Over::Withdrawn;
                }
            }
        }
    }

    /// What had come before this host took no more.
    async fn rest(&self, mut messages: Subscriber, pulls: &mut Pulls) {
        ends::unsubscribe(&self.client, &mut messages).await;
        while let Some(message) = messages.next().await {
            if message.status.is_none() && !self.deliver(message, pulls).await {
                return;
            }
        }
    }

    /// Gives one to the loop; `false`: that has ended.
    async fn deliver(&self, message: Message, pulls: &mut Pulls) -> bool {
        let Some(ack) = message.reply.as_ref().map(ToString::to_string) else { return true };
        let Some((consumer, delivered)) = delivered(&ack) else { return true };
        let Some(number) = pulls.number(consumer) else { return true };
        if let Some(wanted) = pulls.wanted.get_mut(number) {
            *wanted = wanted.saturating_sub(1);
        }
        self.held.add(&ack, number);
        let told = headers::told(message, (&self.program, ack, delivered));
        self.inbox.tell(News::Told(Box::new(told))).await
    }
}
