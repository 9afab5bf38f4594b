//! The programs that are offered on a connection: for each one subscription in the queue group of
//! hosts, two more where it is claimed, and those of the services API. A withdrawn one is unsubscribed
//! first; what has come by then is still asked of the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::reply::Reply;
use hob_core::hosts::tells::End;
use hob_core::hosts::{News, Offered, Stats};
use hob_daemon::hosts::Inbox;
use hob_wire::message::Reason;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ends::UntilOver;
use crate::tasks::Starter;
use crate::{headers, letters, micro, tells};

pub(crate) struct Service {
    client: Client,
    tasks: Starter,
    inbox: Inbox,
    host: String,
    /// A word that no other connection has.
    id: String,
    started: String,
    running: BTreeMap<Offered, Running>,
    /// Tasks of what is offered no more, which tell of what was on its way.
    gone: Vec<JoinHandle<()>>,
    /// What hears the words to perform what is taken.
    words: Option<JoinHandle<()>>,
    /// What hears who asks for dead letters.
    letters: Option<JoinHandle<()>>,
    /// Dropped when no word is to come any more.
    hears: watch::Sender<()>,
}

/// The tasks of one program.
struct Running {
    service: Arc<micro::Service>,
    stays: watch::Sender<()>,
    /// What takes the questions: one task for each subject.
    asks: Vec<JoinHandle<()>>,
    told: JoinHandle<()>,
    /// What each stream has given.
    held: Vec<Arc<tells::Held>>,
}

impl Service {
    pub(crate) fn new(
        client: Client,
        tasks: Starter,
        inbox: Inbox,
        id: &str,
        host: &str,
    ) -> Service {
        let id = id.rsplit('.').next().unwrap_or_default().to_owned();
        let (host, started) = (host.to_owned(), jiff::Timestamp::now().to_string());
        let (running, gone) = (BTreeMap::new(), Vec::new());
        let (words, letters, hears) = (None, None, watch::channel(()).0);
        Service { client, tasks, inbox, host, id, started, running, gone, words, letters, hears }
    }

    /// Offers these, and no others; `None`: the connection is over.
    pub(crate) async fn offer(&mut self, offered: &[Offered]) -> Option<()> {
        let gone: Vec<Offered> =
            self.running.keys().filter(|known| !offered.contains(known)).cloned().collect();
        for each in gone {
            // Its task unsubscribes, and ends when it has told of all that had come.
            if let Some(gone) = self.running.remove(&each) {
                gone.told.abort();
                self.gone.retain(|task| !task.is_finished());
                self.gone.extend(gone.asks);
            }
        }
        if self.letters.is_none() && !offered.is_empty() {
            let asked = self.client.subscribe(letters::SUBJECT).await.ok()?;
            self.letters = Some(self.tasks.spawn(letters::hear(asked, self.inbox.clone())));
        }
        for each in offered {
            if self.running.contains_key(each) {
                continue;
            }
            self.hear_go(each.claimed).await?;
            let (stays, withdrawn) = watch::channel(());
            let mut asks = Vec::new();
            for (word, subject) in subjects(each, &self.host) {
                let questions = match word {
                    micro::CLAIM_OF_ALL => self.client.subscribe(subject).await.ok()?,
                    _ => {
                        let group = micro::GROUP.to_owned();
                        self.client.queue_subscribe(subject, group).await.ok()?
                    }
                };
                let task = Task {
                    client: self.client.clone(),
                    inbox: self.inbox.clone(),
                    by: format!("{}/0", self.host),
                    program: each.program.clone(),
                    is_claim: word != micro::ASK,
                };
                asks.push(self.tasks.spawn(task.run(questions, withdrawn.clone())));
            }
            let service = Arc::new(micro::Service {
                offered: each.clone(),
                id: format!("{}-{}", self.id, each.program),
                host: self.host.clone(),
                started: self.started.clone(),
            });
            let told = self.tells(Arc::clone(&service)).await?;
            let mut held = Vec::new();
            for kind in streams(each) {
                let of_this = Arc::new(tells::Held::default());
                held.push(Arc::clone(&of_this));
                let task = tells::Task {
                    client: self.client.clone(),
                    inbox: self.inbox.clone(),
                    program: each.program.clone(),
                    kind,
                    held: of_this,
                    tasks: self.tasks.clone(),
                };
                asks.push(self.tasks.spawn(task.run(withdrawn.clone())));
            }
            self.running.insert(each.clone(), Running { service, stays, asks, told, held });
        }
        Some(())
    }

    /// Offers nothing more, and waits until all that has come is told.
    pub(crate) async fn leave(&mut self) {
        for (_, Running { stays, asks, told, .. }) in std::mem::take(&mut self.running) {
            told.abort();
            drop(stays);
            self.gone.extend(asks);
        }
        if let Some(letters) = self.letters.take() {
            letters.abort();
        }
        // What was taken is not performed any more: its asker hears that, or that nobody is here.
        drop(std::mem::replace(&mut self.hears, watch::channel(()).0));
        self.gone.extend(self.words.take());
        for task in self.gone.drain(..) {
            let _ = task.await;
        }
    }

    /// Says to a stream what became of what it has given.
    pub(crate) async fn settle(&self, program: &str, ack: String, end: End) {
        let found = self.running.values().find(|each| each.service.offered.program == program);
        if let Some(running) = found {
            running.held.iter().any(|held| held.remove(&ack));
        }
        let _ = self.client.publish(ack, tells::word(end)).await;
    }

    /// Says that a question is taken.
    pub(crate) async fn take(&self, to: String, ticket: u64) {
        let (go, headers) =
            (format!("{}{}.{ticket}", headers::GO, self.id), headers::taken(&self.host));
        // Without it the asker says no word, and nothing is performed.
        let sent = self.client.publish_with_reply_and_headers(to, go, headers, Bytes::new());
        let _ = sent.await;
    }

    /// Hears the words to perform what is taken, from the first claimed program on; `None`: the
    /// connection is over.
    async fn hear_go(&mut self, is_claimed: bool) -> Option<()> {
        if !is_claimed || self.words.is_some() {
            return Some(());
        }
        let subject = format!("{}{}.*", headers::GO, self.id);
        let words = self.client.subscribe(subject).await.ok()?;
        let (client, inbox) = (self.client.clone(), self.inbox.clone());
        let task = Words { client, inbox, by: format!("{}/0", self.host) };
        self.words = Some(self.tasks.spawn(task.run(words, self.hears.subscribe())));
        Some(())
    }

    /// Says how a program does, as the services API has it.
    pub(crate) async fn say_stats(&self, to: String, program: &str, stats: &Stats) {
        let found = self.running.values().find(|each| each.service.offered.program == program);
        if let Some(running) = found {
            let text = running.service.stats(stats);
            let _ = self.client.publish(to, Bytes::from(text)).await;
        }
    }

    /// Answers what the services API asks of a program; `None`: the connection is over.
    async fn tells(&self, service: Arc<micro::Service>) -> Option<JoinHandle<()>> {
        let name = micro::name(&service.offered.program);
        let mut all = Vec::new();
        for subject in
            ["$SRV.*".to_owned(), format!("$SRV.*.{name}"), format!("$SRV.*.{name}.{}", service.id)]
        {
            all.push(self.client.subscribe(subject).await.ok()?);
        }
        let (client, inbox) = (self.client.clone(), self.inbox.clone());
        Some(self.tasks.spawn(async move {
            let mut all = futures_util::stream::select_all(all);
            while let Some(message) = all.next().await {
                let Some(to) = message.reply else { continue };
                let text = match micro::Verb::of(&message.subject) {
                    Some(micro::Verb::Ping) => service.ping(),
                    Some(micro::Verb::Info) => service.info(),
                    Some(micro::Verb::Stats) => {
                        // A loop that is too busy for it says nothing.
                        let (to, program) = (to.to_string(), service.offered.program.clone());
                        let _ = inbox.try_tell(News::StatsWanted { to, program });
                        continue;
                    }
                    None => continue,
                };
                let _ = client.publish(to, Bytes::from(text)).await;
            }
        }))
    }
}

/// The streams that have what was told to a program.
fn streams(offered: &Offered) -> Vec<tells::Kind> {
    let by_key = tells::Kind::ByKey { partitions: offered.partitions };
    let by_key = (offered.partitions > 0).then_some(by_key);
    std::iter::once(tells::Kind::Unordered).chain(by_key).collect()
}

/// Where the questions to a program come: to any of its hosts, and to this one.
fn subjects(offered: &Offered, host: &str) -> Vec<(&'static str, String)> {
    let program = &offered.program;
    let words: &[&str] = match offered.claimed {
        true => &[micro::ASK, micro::CLAIM],
        false => &[micro::ASK],
    };
    let both = words.iter().flat_map(|word| {
        [(*word, format!("hob.{word}.{program}")), (*word, format!("hob.{word}.{program}.{host}"))]
    });
    let all = (micro::CLAIM_OF_ALL, format!("hob.{}.{program}", micro::CLAIM_OF_ALL));
    both.chain(offered.claimed.then_some(all)).collect()
}

/// Takes the words to perform what is taken.
struct Words {
    client: Client,
    inbox: Inbox,
    by: String,
}

impl Words {
    async fn run(self, words: Subscriber, over: watch::Receiver<()>) {
        let mut words = UntilOver::new(&self.client, words, over);
        while let Some(message) = words.next().await {
            self.take(message).await;
        }
    }

    async fn take(&self, message: async_nats::Message) {
        let Some(news) = headers::went(&message) else { return };
        // There are no more of them than questions that may be taken.
        if !self.inbox.tell(news).await
            && let Some(to) = message.reply
        {
            refuse(&self.client, to.to_string(), self.by.clone(), Reason::Stopping).await;
        }
    }
}

/// Answers without the loop that a question is not given.
async fn refuse(client: &Client, to: String, by: String, reason: Reason) {
    let text = "its daemon takes no more".to_owned();
    let (headers, payload) = headers::answer(&Reply::Failure { by, spent_us: 0, reason, text });
    let _ = client.publish_with_headers(to, headers, Bytes::from(payload)).await;
}

/// Takes the questions to one program.
struct Task {
    client: Client,
    inbox: Inbox,
    by: String,
    program: String,
    /// Whether what comes is performed after a word only.
    is_claim: bool,
}

impl Task {
    async fn run(self, questions: Subscriber, withdrawn: watch::Receiver<()>) {
        let mut questions = UntilOver::new(&self.client, questions, withdrawn);
        while let Some(message) = questions.next().await {
            self.take(message).await;
        }
    }

    async fn take(&self, message: async_nats::Message) {
        let Some(question) = headers::question(message, &self.program, self.is_claim) else {
            return;
        };
        let to = question.reply_to.clone();
        if self.inbox.try_tell(News::Asked(Box::new(question))) {
            return;
        }
        refuse(&self.client, to, self.by.clone(), Reason::Busy).await;
    }
}
