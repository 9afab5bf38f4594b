//! A host takes what a stream of its program gives: it asks each consumer for as many as it has room
//! for.
//!
//! A partition is pinned to the host that was given its first message, until that asks no more for a
//! while. A host that has more than its share of them, or stops, unpins some.
//!
//! Invariants: a host asks for no more than it may have open; what it has open and does not settle,
//! nor says that it works on, the stream gives to another host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::{News, tells, words};
use hob_daemon::hosts::Inbox;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::stream::{GROUP, Kind, Made};
use super::{Held, delivered, nanos};
use crate::tasks::Starter;
use crate::{ends, headers, micro, survey};

/// How often a host says that it works on what it has.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// How long a request for messages stands; where it also says that this host is there still, less.
const PULL: Duration = Duration::from_secs(30);
const PULL_PINNED: Duration = Duration::from_secs(10);
/// The header with the pin of a partition.
const PIN: &str = "Nats-Pin-Id";
/// How long a host waits before it looks again for a stream that it could not have.
const AGAIN: Duration = Duration::from_secs(30);

/// Takes what one stream of a program has.
pub(crate) struct Task {
    pub(crate) client: Client,
    pub(crate) inbox: Inbox,
    pub(crate) program: String,
    pub(crate) kind: Kind,
    pub(crate) held: Arc<Held>,
    pub(crate) tasks: Starter,
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
    /// The pin of each that is this host's.
    pins: Vec<Option<String>>,
    /// How many hosts keep the order of this program's keys, when that was last found out; 0: never.
    hosts: Arc<AtomicUsize>,
}

impl Pulls {
    fn new(stream: String, to: String, made: Made) -> Pulls {
        let count = made.consumers.len();
        let (wanted, pins) = (vec![0; count], vec![None; count]);
        Pulls { stream, to, made, wanted, pins, hosts: Arc::default() }
    }

    /// What a consumer is asked for.
    fn request(&self, number: usize, room: usize) -> Value {
        if !self.made.is_pinned {
            return json!({ "batch": room, "expires": nanos(PULL) });
        }
        let expires = nanos(PULL_PINNED);
        match &self.pins[number] {
            None => json!({ "batch": room, "expires": expires, "group": GROUP }),
            Some(pin) => json!({ "batch": room, "expires": expires, "group": GROUP, "id": pin }),
        }
    }

    /// The consumers that are this host's.
    fn pinned(&self) -> Vec<usize> {
        (0..self.pins.len()).filter(|number| self.pins[*number].is_some()).collect()
    }

    /// Unpins a consumer: the host that has waited longest for it has it next.
    async fn unpin(&mut self, client: &Client, number: usize) {
        self.pins[number] = None;
        let consumer = &self.made.consumers[number];
        let subject = format!("$JS.API.CONSUMER.UNPIN.{}.{consumer}", self.stream);
        let group = json!({ "group": GROUP }).to_string();
        // Without the right to it the others wait until this host has not asked for long enough.
        let _ = client.publish(subject, group.into()).await;
    }

    /// Asks those that were asked for nothing, as far as there is room; `None`: the connection is over.
    async fn ask(&mut self, client: &Client, held: &Held) -> Option<()> {
        for (number, open) in held.counts(self.wanted.len()).into_iter().enumerate() {
            let room = self.made.window.saturating_sub(open);
            if room == 0 || self.wanted[number] > 0 {
                continue;
            }
            self.wanted[number] = room;
            let consumer = &self.made.consumers[number];
            let next = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{consumer}", self.stream);
            let ask = self.request(number, room).to_string();
            let to = format!("{}.{number}", self.to);
            client.publish_with_reply(next, to, ask.into()).await.ok()?;
        }
        Some(())
    }

    /// The number of a consumer.
    fn number(&self, consumer: &str) -> Option<usize> {
        self.made.consumers.iter().position(|each| each == consumer)
    }

    /// The one that a word comes from.
    fn number_of(&self, subject: &str) -> Option<usize> {
        let number = subject.rsplit('.').next()?.parse().ok()?;
        (number < self.wanted.len()).then_some(number)
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
                        Some(status @ (404 | 408 | 423)) => {
                            if let Some(number) = pulls.number_of(&message.subject) {
                                pulls.wanted[number] = 0;
                                if status == 423 {
                                    // Another host has it.
                                    pulls.pins[number] = None;
                                }
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
                _ = progress.tick(), if !self.held.is_empty() || pulls.pinned().len() > 1 => {
                    for ack in self.held.all() {
                        let _ = self.client.publish(ack, Bytes::from_static(b"+WPI")).await;
                    }
                    self.rebalance(&mut pulls).await;
                }
                _ = withdrawn.changed() => {
                    self.rest(messages, &mut pulls).await;
                    for number in pulls.pinned() {
                        pulls.unpin(&self.client, number).await;
                    }
                    return Over::Withdrawn;
                }
            }
        }
    }

    /// Unpins one partition, where this host has more than its share.
    async fn rebalance(&self, pulls: &mut Pulls) {
        let pinned = pulls.pinned();
        if pinned.len() < 2 {
            return;
        }
        let (most, hosts) = (pulls.pins.len(), pulls.hosts.load(Ordering::Relaxed));
        if pinned.len() > tells::share(most, hosts)
            && let Some(last) = pinned.last()
        {
            pulls.unpin(&self.client, *last).await;
        }
        let (client, hosts) = (self.client.clone(), Arc::clone(&pulls.hosts));
        let subject = format!("$SRV.PING.{}", micro::name(&self.program));
        self.tasks.spawn(async move {
            let mut seen = 0;
            survey::ask_all(&client, subject, |message| {
                seen += usize::from(micro::has_partitions(&message.payload));
                seen < most
            })
            .await;
            hosts.store(seen, Ordering::Relaxed);
        });
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
        pulls.wanted[number] = pulls.wanted[number].saturating_sub(1);
        let pin = message.headers.as_ref().and_then(|headers| headers.get(PIN));
        pulls.pins[number] = pin.map(ToString::to_string);
        self.held.add(&ack, number);
        let told = headers::told(message, &self.program, ack, delivered);
        self.inbox.tell(News::Told(Box::new(told))).await
    }
}
