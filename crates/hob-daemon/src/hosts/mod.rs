//! Other hosts: asks that one of them performs, and those that one of them asks.
//!
//! | file | does |
//! |---|---|
//! | `settings` | the user's `config.toml`: who may be asked, by which credentials |
//! | `link` | the task that holds the connection: orders to it, news from it |
//! | `offers` | what this host offers, and where it comes from |
//! | `trails` | the ways of what is performed here and has come over hosts |
//! | `asks` | asks of this host's senders whose program is not here |
//! | `questions` | asks of other hosts: found, given, answered |
//! | `streams` | tells to other hosts' programs, and those that a stream gives to this one |
//! | `survey` | who waits for what all hosts say |
//!
//! What is decided of both is `hob_core::hosts`'; which protocol the task speaks is not known here.
//! Invariants: what this host has, or offers, is never asked elsewhere; nothing of this runs where the
//! user's configuration does not ask for it.

mod asks;
mod link;
mod offers;
mod questions;
pub(crate) mod settings;
pub(crate) mod streams;
mod survey;
mod trails;

use std::path::Path;
use std::sync::Arc;

use hob_core::hosts::asker;
use hob_core::hosts::trail::Trail;
use hob_core::hosts::{News, Order, Stats, addressed, is_subject};
use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::log::Category;
use hob_core::requests::Settled;
use hob_core::requests::dead::{Elsewhere, OfHost};
use hob_core::status::HostsPart;
use hob_os::clock;
use hob_wire::message::{Manner, Message, Reason};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::ctx::Ctx;
use crate::handlers::address::of_others;
use crate::handlers::route::{From, Refused};
use crate::inputs::{Came, Input};
use crate::jobs::job::Job;
use crate::jobs::origin::{AskedBy, Streamed};
use crate::outbox;
use crate::tables::Tables;

use asks::{Asks, not_asked};
use link::Link;
pub use link::{Connect, Inbox};
use offers::Offers;
use questions::Questions;
pub use settings::{Credentials, Settings};
use streams::{Buried, Streams, Word};
use survey::Surveys;
use trails::Trails;

/// All that the loop holds for other hosts.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    connection: Connection,
    offers: Offers,
    asks: Asks,
    questions: Questions,
    streams: Streams,
    surveys: Surveys,
    pub(crate) trails: Trails,
}

/// The connection, as it is now.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    link: Option<Link>,
    /// This host's name.
    name: String,
    /// The server that it is connected with, as it is configured.
    url: String,
    /// Why there is no connection, or what does not work of it.
    trouble: Option<String>,
    is_up: bool,
}

/// What is left of news for who keeps tells.
#[derive(Debug)]
pub(crate) enum Heard {
    Nothing,
    /// What tells wait for may be there now.
    Repaired,
    /// Words about tells.
    Words(Vec<Word>),
    /// How a program does is asked for.
    StatsWanted {
        to: String,
        program: String,
    },
    /// The dead letters of this host are.
    LettersWanted {
        to: String,
    },
}

/// What asks of other hosts and tells of streams reach beside their own.
struct Reach<'a> {
    tables: &'a mut Tables,
    connection: &'a Connection,
    offers: &'a mut Offers,
}

impl Connection {
    /// Whether this host is connected with others, or was to be.
    fn is_configured(&self) -> bool {
        self.link.is_some() || self.trouble.is_some()
    }

    /// Orders something of the task; `false`: nothing comes of it.
    fn order(&self, order: Order) -> bool {
        self.link.as_ref().is_some_and(|link| link.order(order))
    }

    /// Why no other host can be asked.
    fn why_off(&self) -> &str {
        self.trouble.as_deref().unwrap_or_default()
    }
}

impl Hosts {
    /// Reads the user's configuration, and begins to connect if it asks for that.
    pub(crate) fn start(
        connect: Option<Connect>,
        config: Option<&Path>,
        inbox: mpsc::Sender<Input>,
    ) -> Hosts {
        let (Some(connect), Some(path)) = (connect, config) else { return Hosts::default() };
        let settings = match settings::read(path) {
            Ok(None) => return Hosts::default(),
            Ok(Some(settings)) => settings,
            Err(why) => {
                let connection = Connection { trouble: Some(why), ..Connection::default() };
                return Hosts { connection, ..Hosts::default() };
            }
        };
        let (name, url) = (settings.host.clone(), settings.url.clone());
        let questions = Questions::begin();
        let link = Some(Link::start(connect, settings, Inbox::new(inbox)));
        let connection = Connection { link, name, url, ..Connection::default() };
        Hosts { connection, questions, ..Hosts::default() }
    }

    /// Whether somebody relies on this daemon to be there.
    pub(crate) fn holds(&self) -> bool {
        self.connection.link.is_some() && !self.offers.is_empty() || !self.asks.is_empty()
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let due =
            [self.asks.next_deadline(), self.questions.next_deadline(), self.streams.next_due()];
        due.into_iter().flatten().min()
    }

    /// Offers nothing any more.
    pub(crate) fn withdraw(&mut self) {
        self.offers.clear();
        self.connection.order(Order::Offer(Vec::new()));
    }

    /// Finds out what this host offers, and says so to the others.
    pub(crate) fn offer(&mut self, home: Option<&Path>) {
        if self.connection.link.is_some() && self.offers.look(home) {
            self.connection.order(Order::Offer(self.offers.all()));
        }
    }

    /// Where an ask of this host's own sender goes whose program is none of its directory's, and is
    /// offered here: it is asked here. With the program's name, without this host's.
    pub(crate) fn offered_here<'a>(
        &mut self,
        message: &Message<'a>,
    ) -> Option<(Arc<From>, &'a [u8])> {
        let program = std::str::from_utf8(message.program).ok()?;
        let (name, host) = addressed(program)?;
        let is_ours = host.is_none_or(|host| host == self.connection.name);
        let is_asked_here = message.manner == Manner::Ask && is_ours;
        is_asked_here.then(|| self.offers.from(name))?.map(|from| (from, name.as_bytes()))
    }

    /// A worker has a message that has come this way.
    pub(crate) fn given(&mut self, call: CallId, worker: WorkerId, trail: Trail) {
        if self.connection.is_configured() {
            self.trails.given(call, worker, trail);
        }
    }

    /// An ask whose program no `hob.toml` of its sender's names: another host may have it.
    pub(crate) fn ask(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        came: &Came<'_>,
        absent: Refused,
    ) -> Result<(), (Reason, String)> {
        let before = self.trails.of(ctx, tables.senders.pid(came.sender));
        self.asks.ask(ctx, tables, &self.connection, came, absent, before)
    }

    /// A sender does not wait for this any more; `false`: it is not asked elsewhere.
    pub(crate) fn take_back(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        call: CallId,
    ) -> bool {
        let is_away = self.asks.has(call);
        if is_away {
            self.decide(ctx, tables, asker::Event::TakenBack { call });
        }
        is_away
    }

    fn decide(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables, event: asker::Event) {
        self.asks.decide(ctx, tables, &self.connection, event);
    }

    /// The address of a tell whose program no `hob.toml` of its sender's names.
    pub(crate) fn address(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        program: &[u8],
        absent: Refused,
    ) -> Result<Arc<[u8]>, (Reason, String)> {
        let name = String::from_utf8_lossy(program).into_owned();
        if let Some(from) = self.offers.from(&name) {
            let (pool, _) = tables.catalog.route(ctx, &from, program)?;
            return Ok(tables.catalog.address(&from, program, pool));
        }
        if !self.connection.is_configured() || !is_subject(&name) {
            let named = addressed(&name).and_then(|(name, host)| Some((name, host?)));
            return Err(named.map_or(absent.into(), |parts| not_asked(parts, Manner::Tell)));
        }
        if self.connection.link.is_none() {
            let why = self.connection.why_off();
            let text = format!("{name}: not a program of this host, and no other is told: {why}");
            return Err((Reason::Config, text));
        }
        Ok(of_others(program, false))
    }

    /// Says a tell to its stream; `None`: it is for a program of this host.
    pub(crate) fn tell(&mut self, message: &outbox::Message) -> Option<Result<(), String>> {
        self.streams.tell(&self.connection, message)
    }

    /// A job that another host asked has its outcome: the answer, or why there is none.
    pub(crate) fn answer(&mut self, job: &Job, asked: &AskedBy, failed: Option<(Reason, &str)>) {
        self.questions.answer(&self.connection, job, asked, failed);
    }

    /// A tell that a stream has given has its outcome here. Returns it where it has failed too often,
    /// to be kept as a dead letter; its stream hears when that is done.
    pub(crate) fn settle(
        &mut self,
        tables: &mut Tables,
        job: &Job,
        streamed: &Streamed,
        outcome: Settled,
    ) -> Option<Arc<[u8]>> {
        let reach = Reach { tables, connection: &self.connection, offers: &mut self.offers };
        streams::settle(reach, job, streamed, outcome)
    }

    /// A dead letter of a stream's is on the disk, or cannot be.
    pub(crate) fn buried(&self, buried: &Buried, is_kept: bool) {
        streams::buried(&self.connection, buried, is_kept);
    }

    /// Takes in what the connection to other hosts says, and had come by then.
    pub(crate) fn heard(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        news: News,
        came_ns: u64,
    ) -> Heard {
        let Hosts { connection, offers, questions, streams, surveys, .. } = self;
        match news {
            News::Up { bytes_max } => {
                hob_os::debug!(Category::Hosts, "connected as {}", connection.name);
                (connection.is_up, connection.trouble) = (true, None);
                // What the connection before had is gone with it.
                questions.caught_up();
                self.begin_survey();
                self.decide(ctx, tables, asker::Event::Up { bytes_max });
                return Heard::Repaired;
            }
            News::Down { why } => {
                hob_os::debug!(Category::Hosts, "not connected: {why}");
                (connection.is_up, connection.trouble) = (false, Some(why.clone()));
                surveys.letters_came(&Elsewhere::default());
                let words = streams.not_kept(&why, None);
                self.surveys.seen(self.status(), &[]);
                self.decide(ctx, tables, asker::Event::Down { why });
                return Heard::Words(words);
            }
            News::Trouble { why } => {
                hob_os::debug!(Category::Hosts, "the server says: {why}");
                connection.trouble = Some(why);
            }
            News::Forbidden { program, why } => {
                self.decide(ctx, tables, asker::Event::Forbidden { program, why });
            }
            News::Replied { attempt, reply } => {
                self.decide(ctx, tables, asker::Event::Replied { attempt, reply });
            }
            News::Taken { attempt, to } => {
                self.decide(ctx, tables, asker::Event::Taken { attempt, to });
            }
            News::NotSent { attempt, why } => {
                self.decide(ctx, tables, asker::Event::NotSent { attempt, why });
            }
            News::StatsWanted { to, program } => return Heard::StatsWanted { to, program },
            News::Surveyed(seen) => self.surveys.seen(self.status(), &seen),
            News::LettersWanted { to } => return Heard::LettersWanted { to },
            News::Letters(elsewhere) => surveys.letters_came(&elsewhere),
            News::Asked(question) => {
                let reach = Reach { tables, connection, offers };
                questions.asked(ctx, reach, *question, came_ns);
            }
            News::Kept { id, kept } => return Heard::Words(streams.kept(&id, kept)),
            News::Told(told) => streams.told(ctx, Reach { tables, connection, offers }, *told),
            News::CaughtUp => {
                hob_os::debug!(Category::Hosts, "what came while it stood still has been seen");
                questions.caught_up();
            }
            News::Stream { name, why } => streams.heard_of(name, why),
            News::Went { ticket, reply_to, within } => {
                let word = (reply_to, within.as_deref());
                questions.went(ctx, Reach { tables, connection, offers }, ticket, word, came_ns);
            }
        }
        Heard::Nothing
    }

    /// Ends the asks whose time has passed, or tries them again; forgets what no word has come for.
    pub(crate) fn tick(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables) -> Vec<Word> {
        // Before somebody asks: what stood still hours ago refuses nothing now.
        self.questions.tick(&self.connection);
        let now = Time(clock::now_ns());
        let words = self.streams.not_kept("its stream has said nothing yet", Some(now));
        if self.asks.next_deadline().is_some_and(|at| at <= now) {
            self.decide(ctx, tables, asker::Event::Tick);
        }
        words
    }

    /// Nothing more comes: what is asked elsewhere is lost, and what was answered is sent.
    pub(crate) async fn leave(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables) {
        self.decide(ctx, tables, asker::Event::Stop);
        if let Some(link) = self.connection.link.take() {
            link.end().await;
        }
    }

    /// Asks all hosts how their programs do; the answer comes when they have said so.
    pub(crate) fn survey(&mut self, reply: oneshot::Sender<Value>) {
        let is_first = !self.surveys.is_wanted();
        if let Some(reply) = self.surveys.wait(&self.connection, reply) {
            // Whoever asked may have left.
            let _ = reply.send(survey::shown(self.status(), &[]));
        } else if self.connection.is_up && is_first {
            self.begin_survey();
        }
    }

    /// Asks for those who wait, if any do.
    fn begin_survey(&mut self) {
        if self.surveys.is_wanted() && !self.connection.order(Order::Survey) {
            self.surveys.seen(self.status(), &[]);
        }
    }

    /// Has somebody wait for the dead letters of other hosts; gives it back where none can come.
    pub(crate) fn wait_for_letters(
        &mut self,
        reply: oneshot::Sender<Value>,
    ) -> Option<oneshot::Sender<Value>> {
        self.surveys.wait_for_letters(&self.connection, reply)
    }

    /// Says how an offered program does; so many dead letters there are here.
    pub(crate) fn say_stats(
        &mut self,
        ctx: &Ctx<'_>,
        tables: &Tables,
        to: String,
        program: String,
        dead: u64,
    ) {
        let counted = self.questions.served(&program);
        let pools = tables.catalog.pools(ctx.core, clock::now_ns());
        let pool = pools.iter().find(|pool| pool.program == program);
        let (ready, busy, queued) =
            pool.map_or((0, 0, 0), |pool| (pool.ready, pool.busy, pool.queued));
        let stats = Stats { ready, busy, queued, dead, ..counted };
        self.connection.order(Order::Stats { to, program, stats });
    }

    /// Says the dead letters of offered programs: what else runs here is nobody's business there.
    pub(crate) fn say_letters(&self, to: String, letters: OfHost) {
        let letters = Box::new(OfHost { host: self.connection.name.clone(), ..letters });
        self.connection.order(Order::SayLetters { to, letters });
    }

    /// Where an offered program's `hob.toml` is.
    pub(crate) fn offered_from(&self, program: &str) -> Option<&Path> {
        self.offers.directory(program)
    }

    /// What `hob status` says; `None` where nothing is configured.
    pub(crate) fn status(&self) -> Option<HostsPart> {
        let Connection { name, url, trouble, is_up, .. } = &self.connection;
        self.connection.is_configured().then(|| HostsPart {
            host: name.clone(),
            server: url.clone(),
            connected: *is_up,
            why: trouble.clone(),
            offered: self.offers.names(),
            tells_why: self.streams.why(),
            telling: self.streams.len() as u64,
            asks: self.asks.len() as u64,
            questions: self.questions.len() as u64,
        })
    }
}
