//! One connection, from its beginning to its end.

use std::error::Error as _;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::client::PublishErrorKind;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::reply::Reply;
use hob_core::hosts::tells::{NotKept, Telling};
use hob_core::hosts::{Attempt, News, Order, Published, Way, words};
use hob_core::ids::CallId;
use hob_daemon::hosts::{Inbox, Settings};
use hob_wire::message::Reason;
use tokio::sync::{mpsc, watch};

use crate::ends::round_trip;
use crate::service::Service;
use crate::survey::survey;
use crate::tasks::{Starter, Tasks};
use crate::{Keeper, headers, letters, micro, tells};

/// A server that does not speak within this time is none.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// How often a quiet connection is looked at.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Events of a connection that are not read yet; more say nothing new.
const EVENTS_MAX: usize = 64;
/// Replies and questions that the library keeps for us at most, of one subscription.
const SUBSCRIPTION_MAX: usize = 8192;
/// For so long the tasks of a connection may take to hand over what they have.
const HAND_OVER: Duration = Duration::from_millis(50);
/// How long the end waits until the server has what was sent.
const FLUSH_WAIT: Duration = Duration::from_millis(500);

/// How a connection ended.
pub(crate) enum Over {
    /// It was asked to.
    Stopped,
    /// It was cut, or there was none.
    Cut {
        /// A line for a person.
        why: String,
        /// Whether there had been one.
        was_up: bool,
    },
}

/// What the library says of a connection.
struct Watched {
    /// Set when it is cut.
    cut: watch::Receiver<bool>,
    troubles: mpsc::Receiver<String>,
    /// From now on the library may not connect any more.
    was_up: Arc<AtomicBool>,
}

impl Watched {
    /// Waits for something that needs the connection; `None`: it was cut meanwhile.
    async fn with<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = over(&mut self.cut) => None,
            done = work => Some(done),
        }
    }
}

impl Keeper {
    /// Connects, and serves the connection until it is over.
    pub(crate) async fn connected(&mut self) -> Over {
        let not_up = |why: String| Over::Cut { why, was_up: false };
        let settings = self.settings.clone();
        let (options, mut watched) = match options(&settings) {
            Ok(both) => both,
            Err(why) => return not_up(why),
        };
        let connecting = options.connect(settings.url.clone());
        tokio::pin!(connecting);
        let client = loop {
            tokio::select! {
                client = &mut connecting => break client,
                order = self.orders.recv() => {
                    if self.unconnected(order).await {
                        return Over::Stopped;
                    }
                }
            }
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => return not_up(refused(&settings, &error)),
        };
        // Nothing else ran in this thread between its connecting and this.
        watched.was_up.store(true, Ordering::Relaxed);
        let tasks = Tasks::default();
        let inbox = client.new_inbox();
        let (starter, loops) = (tasks.starter(), self.inbox.clone());
        let mut service = Service::new(client.clone(), starter, loops, &inbox, &settings.host);
        let begun = watched.with(async {
            let replies = client.subscribe(format!("{inbox}.*.*")).await.ok()?;
            service.offer(&self.offered).await?;
            client.flush().await.ok()?;
            if !self.offered.is_empty() {
                // Who is told that this host is connected finds what it offers.
                round_trip(&client).await;
            }
            Some(replies)
        });
        let cut = format!("{}: the connection was cut", settings.url);
        let Some(Some(replies)) = begun.await else { return Over::Cut { why: cut, was_up: true } };
        let bytes_max = client.max_payload();
        if !self.inbox.tell(News::Up { bytes_max }).await {
            return Over::Stopped;
        }
        let ours = Ours { client, tasks: tasks.starter(), inbox, host: settings.host };
        if self.serve(&ours, &mut service, replies, &mut watched).await {
            service.leave().await;
            let _ = tokio::time::timeout(FLUSH_WAIT, ours.client.flush()).await;
            return Over::Stopped;
        }
        Over::Cut { why: cut, was_up: true }
    }

    /// `true`: it was asked to stop; `false`: it was cut.
    async fn serve(
        &mut self,
        ours: &Ours,
        service: &mut Service,
        mut replies: Subscriber,
        watched: &mut Watched,
    ) -> bool {
        let mut cut = watched.cut.clone();
        loop {
            tokio::select! {
                biased;
                () = over(&mut cut) => return false,
                order = self.orders.recv() => {
                    let order = match order {
                        None | Some(Order::Stop) => return true,
                        Some(order) => order,
                    };
                    if self.perform(order, ours, service, watched).await.is_none() {
                        return false;
                    }
                }
                Some(said) = watched.troubles.recv() => {
                    // The server has refused something. What it was is in its text only.
                    let why = format!("{}: {said}", self.settings.url);
                    if let Some(program) = forbidden(&said)
                        && self.say(News::Forbidden { program, why: said }).await.is_none()
                    {
                        return true;
                    }
                    if self.say(News::Trouble { why }).await.is_none() {
                        return true;
                    }
                }
                reply = replies.next() => {
                    let Some(message) = reply else { return false };
                    if self.came(message).await.is_none() {
                        return true;
                    }
                }
            }
        }
    }

    /// Takes a reply, or a stream's word; `None`: the loop has ended.
    async fn came(&self, message: Message) -> Option<()> {
        if let Some(id) = told_of(&message.subject) {
            let kept = tells::kept(&message);
            return self.say(News::Kept { id, kept }).await;
        }
        let Some(attempt) = attempt_of(&message.subject) else { return Some(()) };
        self.say(match headers::reply(message) {
            headers::Came::Taken(to) => News::Taken { attempt, to },
            headers::Came::Reply(reply) => News::Replied { attempt, reply },
        })
        .await
    }

    /// Does what the loop orders; `None`: the connection was cut.
    async fn perform(
        &mut self,
        order: Order,
        ours: &Ours,
        service: &mut Service,
        watched: &mut Watched,
    ) -> Option<()> {
        match order {
            Order::Stop => None,
            Order::Publish(published) => {
                let attempt = published.attempt;
                let sent = watched.with(ours.publish(published)).await;
                self.was_sent(attempt, sent).await
            }
            Order::Go { attempt, to, within_us } => {
                let sent = watched.with(ours.go(attempt, to, within_us)).await;
                self.was_sent(attempt, sent).await
            }
            Order::Tell(telling) => match watched.with(ours.tell(&telling)).await? {
                Ok(()) => Some(()),
                Err(not) => self.say(News::Kept { id: telling.id, kept: Err(not) }).await,
            },
            Order::Settle { program, ack, end } => {
                watched.with(service.settle(&program, ack, end)).await
            }
            Order::Taken { to, ticket } => watched.with(service.take(to, ticket)).await,
            Order::Answer { to, reply } => watched.with(ours.answer(to, reply)).await,
            Order::Stats { to, program, stats } => {
                watched.with(service.say_stats(to, &program, &stats)).await
            }
            Order::CatchUp => {
                let cut = watched.cut.clone();
                ours.tasks.spawn(catch_up(ours.client.clone(), self.inbox.clone(), cut));
                Some(())
            }
            Order::Survey => {
                let (client, inbox) = (ours.client.clone(), self.inbox.clone());
                ours.tasks
                    .spawn(async move { inbox.tell(News::Surveyed(survey(&client).await)).await });
                Some(())
            }
            Order::AskLetters => {
                ours.tasks.spawn(letters::ask(
                    ours.client.clone(),
                    self.inbox.clone(),
                    ours.host.clone(),
                ));
                Some(())
            }
            Order::SayLetters { to, letters } => {
                watched.with(letters::say(&ours.client, to, &letters)).await
            }
            Order::Offer(offered) => {
                self.offered = offered;
                watched.with(service.offer(&self.offered)).await.flatten()
            }
        }
    }

    /// Says what was not sent; `None`: the connection was cut, or the loop has ended.
    async fn was_sent(&self, attempt: Attempt, sent: Option<Result<(), String>>) -> Option<()> {
        match sent? {
            Ok(()) => Some(()),
            Err(why) => self.say(News::NotSent { attempt, why }).await,
        }
    }

    /// `None`: the loop has ended.
    async fn say(&self, news: News) -> Option<()> {
        self.inbox.tell(news).await.then_some(())
    }
}

/// Waits until the connection is cut.
async fn over(cut: &mut watch::Receiver<bool>) {
    let _ = cut.wait_for(|cut| *cut).await;
}

/// What is sent by.
struct Ours {
    client: Client,
    tasks: Starter,
    /// Where replies come, with the numbers of a call and of its attempt behind it.
    inbox: String,
    host: String,
}

impl Ours {
    fn reply_to(&self, Attempt { call, number }: Attempt) -> String {
        format!("{}.{}.{number}", self.inbox, call.0)
    }

    async fn publish(&self, published: Published) -> Result<(), String> {
        let word = match published.way {
            Way::Plain => micro::ASK,
            Way::Claim => micro::CLAIM,
            // Of one host all are no more than that one.
            Way::ClaimOfAll if !published.host.is_empty() => micro::CLAIM,
            Way::ClaimOfAll => micro::CLAIM_OF_ALL,
        };
        let subject = match published.host.as_str() {
            "" => format!("hob.{word}.{}", published.program),
            host => format!("hob.{word}.{}.{host}", published.program),
        };
        let reply = self.reply_to(published.attempt);
        let headers = headers::ask(&published, &self.host);
        let payload = Bytes::from(published.payload);
        let sent = self.client.publish_with_reply_and_headers(subject, reply, headers, payload);
        sent.await.map_err(|error| error.to_string())
    }

    async fn tell(&self, telling: &Telling) -> Result<(), NotKept> {
        let reply = format!("{}.{TELL}.{}", self.inbox, telling.id);
        let headers = headers::tell(telling, &self.host);
        let payload = Bytes::from(telling.payload.clone());
        let subject = tells::subject(&telling.program, &telling.key);
        let sent = self.client.publish_with_reply_and_headers(subject, reply, headers, payload);
        sent.await.map_err(|error| NotKept {
            why: error.to_string(),
            nobody: false,
            never: error.kind() == PublishErrorKind::MaxPayloadExceeded,
        })
    }

    async fn go(&self, attempt: Attempt, to: String, within_us: u64) -> Result<(), String> {
        let (reply, headers) = (self.reply_to(attempt), headers::go(within_us));
        let sent = self.client.publish_with_reply_and_headers(to, reply, headers, Bytes::new());
        sent.await.map_err(|error| error.to_string())
    }

    async fn answer(&self, to: String, reply: Reply) {
        let (headers, payload) = headers::answer(&reply);
        let sent = self.client.publish_with_headers(to.clone(), headers, Bytes::from(payload));
        if let Err(error) = sent.await {
            // It ran; its asker is not to ask again, and not to wait.
            let by = match reply {
                Reply::Answer { by, .. } | Reply::Failure { by, .. } => by,
                Reply::NoResponders => String::new(),
            };
            let text = format!("its answer cannot be sent: {error}");
            let reply = Reply::Failure { by, spent_us: 0, reason: Reason::Lost, text };
            let (headers, payload) = headers::answer(&reply);
            let _ = self.client.publish_with_headers(to, headers, Bytes::from(payload)).await;
        }
    }
}

/// What stands in an address between the inbox and a tell's id.
const TELL: &str = "tell";

/// The program, as it is asked, of which the server says that no host may be asked to take it.
fn forbidden(said: &str) -> Option<String> {
    let (_, subject) = said.split_once("Permissions Violation for Publish to \"")?;
    let mut words = subject.split('"').next()?.strip_prefix("hob.")?.splitn(3, '.');
    let is_claim = matches!(words.next()?, micro::CLAIM | micro::CLAIM_OF_ALL);
    let program = words.next().filter(|_| is_claim)?;
    Some(words.next().map_or_else(|| program.to_owned(), |host| format!("{program}@{host}")))
}

/// The id of the tell that a stream speaks of.
fn told_of(subject: &str) -> Option<String> {
    let mut words = subject.rsplit('.');
    let id = words.next()?.to_owned();
    (words.next() == Some(TELL)).then_some(id)
}

/// The numbers at the end of a reply's address.
fn attempt_of(subject: &str) -> Option<Attempt> {
    let mut words = subject.rsplit('.');
    let number = words.next()?.parse().ok()?;
    Some(Attempt { call: CallId(words.next()?.parse().ok()?), number })
}

/// What the server had sent before it answers this is here by then; a moment later it is with the
/// loop.
async fn catch_up(client: Client, inbox: Inbox, mut cut: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = over(&mut cut) => return,
            is_back = round_trip(&client) => if is_back { break },
        }
    }
    tokio::time::sleep(HAND_OVER).await;
    inbox.tell(News::CaughtUp).await;
}

/// How the library is to connect, and what it says.
fn options(settings: &Settings) -> Result<(ConnectOptions, Watched), String> {
    let (cuts, cut) = watch::channel(false);
    let (tells, troubles) = mpsc::channel(EVENTS_MAX);
    let was_up = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&was_up);
    let mut options = ConnectOptions::new()
        .name(format!("hob {}", settings.host))
        // So the server can let each host read its own answers only. The name is one word of it: what
        // `web` may hear is not what comes to `web.lan`.
        .custom_inbox_prefix(format!("_INBOX.{}", words::subject(settings.host.as_bytes())))
        .require_tls(settings.is_tls)
        .ignore_discovered_servers()
        .connection_timeout(CONNECT_WAIT)
        .ping_interval(PING_EVERY)
        .subscription_capacity(SUBSCRIPTION_MAX)
        .reconnect_delay_callback(move |_| {
            if is_over.load(Ordering::Relaxed) {
                // It asks this in its task before it connects anew, which nothing else prevents. The
                // task ends here with all that it kept; the runtime takes that as its result.
                std::panic::resume_unwind(Box::new("a connection that is cut is over"));
            }
            Duration::ZERO
        })
        .event_callback(move |event| {
            let trouble = match event {
                Event::Disconnected | Event::Closed => {
                    cuts.send_replace(true);
                    None
                }
                Event::ServerError(error) => {
                    let said = error.to_string();
                    Some(said.strip_prefix("nats: ").unwrap_or(&said).to_owned())
                }
                Event::SlowConsumer(_) => {
                    Some("more came than could be taken; some of it is lost".to_owned())
                }
                Event::Connected
                | Event::LameDuckMode
                | Event::Draining
                | Event::ClientError(_) => None,
            };
            if let Some(why) = trouble {
                let _ = tells.try_send(why);
            }
            std::future::ready(())
        });
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some(credentials) = &settings.credentials {
        let secret = credentials.secret.as_str();
        options = if secret.contains("-----BEGIN") {
            options
                .credentials(secret)
                .map_err(|_| format!("{}: no credentials of NATS", credentials.path.display()))?
        } else {
            options.nkey(secret.trim().to_owned())
        };
    }
    Ok((options, Watched { cut, troubles, was_up }))
}

/// Why there is no connection, in a line for a person.
fn refused(settings: &Settings, error: &async_nats::ConnectError) -> String {
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    let what = match error.kind() {
        ConnectErrorKind::AuthorizationViolation => match &settings.credentials {
            Some(credentials) => {
                format!("does not accept the credentials in {}", credentials.path.display())
            }
            None => "wants credentials; name their file by `creds`".to_owned(),
        },
        ConnectErrorKind::Authentication => match &settings.credentials {
            Some(credentials) => {
                format!("{} holds no credentials that can be used", credentials.path.display())
            }
            None => "wants credentials; name their file by `creds`".to_owned(),
        },
        ConnectErrorKind::TimedOut => {
            format!("did not speak NATS within {} s", CONNECT_WAIT.as_secs())
        }
        ConnectErrorKind::Dns => format!("cannot be found: {source}"),
        ConnectErrorKind::Tls => format!("TLS: {source}"),
        ConnectErrorKind::ServerParse => format!("cannot be understood: {source}"),
        ConnectErrorKind::Io | ConnectErrorKind::MaxReconnects => {
            format!("cannot be reached: {source}")
        }
    };
    let line: String =
        what.chars().map(|char| if char.is_control() { '?' } else { char }).collect();
    format!("{}: {}", settings.url, line.chars().take(300).collect::<String>())
}
