//! Other hosts: asks that one of them performs, and those that one of them asks.
//!
//! | file | does |
//! |---|---|
//! | `asks` | asks of this host's senders whose program is not here |
//! | `questions` | asks of other hosts: found, given, answered |
//! | `tells` | tells to other hosts' programs, and those that a stream gives to this one |
//! | `accepted` | the receipts of tells that a stream has |
//! | `sampled` | which of these, and of asks, leave one |
//! | `survey` | how the offered programs do, here and at all hosts |
//!
//! What is decided of both is `hob_core::hosts`'; the connection is held by a task. Invariants: what
//! this host has, or offers, is never asked elsewhere; nothing of this runs where the user's
//! configuration does not ask for it.

mod accepted;
mod asks;
mod questions;
mod sampled;
mod survey;
mod tells;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::hosts::affinity::KeyAffinity;
use hob_core::hosts::asker::{self, Asker};
use hob_core::hosts::host::Host;
use hob_core::hosts::trail::Trail;
use hob_core::hosts::{News, Offered, Order, Stats};
use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::log::Category;
use hob_core::requests::dead::Elsewhere;
use hob_core::status::HostsPart;
use hob_os::{clock, process};
use hob_wire::strings::Strings;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::ctx::Ctx;
use crate::hosts::{Connect, Inbox, Link, settings};
use crate::inputs::Input;
use crate::messages::Messages;
use crate::outbox::MessageId;
use crate::trust;

use super::route::From;
use accepted::{Accepted, Sent};
use asks::{Away, Performed};
pub(super) use questions::AskedBy;
use sampled::Sampled;
pub(super) use tells::Streamed;

/// How far from a handler's process one may be that asks in its name.
const ANCESTORS_MAX: usize = 16;

/// What the owner holds for other hosts.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    link: Option<Link>,
    /// This host's name.
    name: String,
    /// The server that it is connected with, as it is configured.
    url: String,
    /// Why there is no connection, or what does not work of it.
    trouble: Option<String>,
    is_up: bool,
    asker: Asker,
    affinity: KeyAffinity,
    host: Host,
    away: HashMap<CallId, Away>,
    /// The messages that have come over hosts and are performed now: by which worker, and their
    /// ways.
    pub(super) trails: HashMap<CallId, (WorkerId, Trail)>,
    /// Tells that are said to their streams, and until when their word is waited for.
    telling: HashMap<MessageId, (Time, Sent)>,
    /// Tells that their streams have, and that have no receipt yet.
    accepted: Sampled<Arc<[u8]>, Accepted>,
    /// Asks that other hosts have performed, by their programs, and that have no receipt yet.
    performed: Sampled<String, Performed>,
    /// How often this process has gone on after a stop, and how long its machine has slept, in ns,
    /// when that was last looked at: at each ask, and each time that the loop wakes of itself.
    stood: (u64, u64),
    /// Why nothing comes of streams, by their names.
    tells_why: BTreeMap<String, String>,
    /// What is offered, by its name; and where its `hob.toml` is.
    offers: BTreeMap<String, (Offered, PathBuf)>,
    /// How the offered programs did.
    served: BTreeMap<String, Stats>,
    /// Who waits for what all hosts say.
    surveys: Vec<oneshot::Sender<Value>>,
    /// Who waits for the dead letters of other hosts.
    letters: Vec<oneshot::Sender<Value>>,
    /// Where what is asked of them comes from, by their directories.
    froms: BTreeMap<PathBuf, Arc<From>>,
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
            Err(why) => return Hosts::off(why),
        };
        let (name, url) = (settings.host.clone(), settings.url.clone());
        let stood = questions::stood();
        let link = Some(Link::start(connect, settings, Inbox::new(inbox)));
        Hosts { link, name, url, stood, ..Hosts::default() }
    }

    fn off(trouble: String) -> Hosts {
        Hosts { trouble: Some(trouble), ..Hosts::default() }
    }

    /// Whether this host is connected with others, or was to be.
    pub(super) fn is_configured(&self) -> bool {
        self.link.is_some() || self.trouble.is_some()
    }

    /// Whether somebody relies on this daemon to be there.
    pub(super) fn holds(&self) -> bool {
        self.link.is_some() && !self.offers.is_empty() || !self.asker.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let taken = self.host.next_deadline().map(|at| {
            // It is counted by the clock that goes on while the machine sleeps.
            Time(clock::now_ns() + at.0.saturating_sub(clock::since_boot_ns()))
        });
        let telling = self.telling.values().map(|(until, _)| *until).min();
        let receipts = [self.accepted.next_due(), self.performed.next_due()];
        let due = [self.asker.next_deadline(), taken, telling];
        due.into_iter().chain(receipts).flatten().min()
    }

    /// Offers nothing any more.
    pub(super) fn withdraw(&mut self) {
        self.offers.clear();
        self.order(Order::Offer(Vec::new()));
    }

    fn order(&self, order: Order) -> bool {
        self.link.as_ref().is_some_and(|link| link.order(order))
    }

    /// Where the messages of other hosts to an offered program come from, as far as that decides
    /// where they go.
    fn from(&mut self, program: &str) -> Option<Arc<From>> {
        let (_, directory) = self.offers.get(program)?;
        if let Some(from) = self.froms.get(directory) {
            return Some(Arc::clone(from));
        }
        let bytes = directory.as_os_str().as_encoded_bytes().to_vec();
        let from = Arc::new(From::new(bytes, own_environment()));
        self.froms.insert(directory.clone(), Arc::clone(&from));
        Some(from)
    }

    /// What `hob status` says; `None` where nothing is configured.
    pub(super) fn status(&self) -> Option<HostsPart> {
        self.is_configured().then(|| HostsPart {
            host: self.name.clone(),
            server: self.url.clone(),
            connected: self.is_up,
            why: self.trouble.clone(),
            offered: self.offers.keys().cloned().collect(),
            tells_why: self.tells_why.values().next().cloned(),
            telling: self.telling.len() as u64,
            asks: self.asker.len() as u64,
            questions: self.host.len() as u64,
        })
    }
}

impl Messages {
    /// Finds out what this host offers, and says so to the others. Where two files offer one name,
    /// the first by its path counts.
    pub(crate) fn offer(&mut self, home: Option<&Path>) {
        if self.hosts.link.is_none() || self.stopping {
            return;
        }
        let trusted = home.map(trust::list).and_then(Result::ok).unwrap_or_default();
        let mut offers = BTreeMap::new();
        let mut files: Vec<PathBuf> = trusted.into_iter().map(|entry| entry.path).collect();
        files.sort();
        for directory in files.iter().filter_map(|file| file.parent()) {
            for offered in crate::project::offered(home, directory) {
                let name = offered.program.clone();
                offers.entry(name).or_insert_with(|| (offered, directory.to_owned()));
            }
        }
        if offers != self.hosts.offers {
            let names: Vec<&str> = offers.keys().map(String::as_str).collect();
            hob_os::debug!(Category::Hosts, "this host offers: {}", names.join(", "));
            self.hosts.offers = offers;
            self.hosts.froms.clear();
            let all = self.hosts.offers.values().map(|(offered, _)| offered.clone());
            self.hosts.order(Order::Offer(all.collect()));
        }
    }

    /// The way of what this process is asked, or one that it was started by: what it asks goes on
    /// with that. Where a worker performs several at one time, the longest way counts.
    pub(super) fn trail_of(&self, ctx: &Ctx<'_>, pid: u32) -> Option<Trail> {
        if self.hosts.trails.is_empty() {
            return None;
        }
        // One that was forked may have its number only after it was given something.
        let pids: HashMap<WorkerId, u32> = ctx.hands.pids().into_iter().collect();
        let mut next = Some(pid);
        for _ in 0..ANCESTORS_MAX {
            let pid = next.filter(|pid| *pid > 1)?;
            let of_this =
                self.hosts.trails.values().filter(|(worker, _)| pids.get(worker) == Some(&pid));
            if let Some((_, trail)) = of_this.max_by_key(|(_, trail)| trail.hops) {
                return Some(*trail);
            }
            next = process::parent_of(pid);
        }
        None
    }

    /// Takes in what the connection to other hosts says, and had come by then.
    pub(crate) fn heard(&mut self, ctx: &mut Ctx<'_>, news: News, came_ns: u64) {
        self.active = true;
        let event = match news {
            News::Up { bytes_max } => {
                hob_os::debug!(Category::Hosts, "connected as {}", self.hosts.name);
                (self.hosts.is_up, self.hosts.trouble) = (true, None);
                // What the connection before had is gone with it.
                self.hosts.host.caught_up();
                self.begin_survey();
                self.release_tells(ctx);
                asker::Event::Up { bytes_max }
            }
            News::Down { why } => {
                hob_os::debug!(Category::Hosts, "not connected: {why}");
                (self.hosts.is_up, self.hosts.trouble) = (false, Some(why.clone()));
                self.surveyed(Vec::new());
                self.letters_came(&Elsewhere::default());
                self.not_kept(&why, None);
                asker::Event::Down { why }
            }
            News::Trouble { why } => {
                hob_os::debug!(Category::Hosts, "the server says: {why}");
                self.hosts.trouble = Some(why);
                return;
            }
            News::Forbidden { program, why } => asker::Event::Forbidden { program, why },
            News::Replied { attempt, reply } => asker::Event::Replied { attempt, reply },
            News::Taken { attempt, to } => asker::Event::Taken { attempt, to },
            News::NotSent { attempt, why } => asker::Event::NotSent { attempt, why },
            News::StatsWanted { to, program } => return self.say_stats(ctx, to, program),
            News::Surveyed(seen) => return self.surveyed(seen),
            News::LettersWanted { to } => return self.letters_wanted(to),
            News::Letters(elsewhere) => return self.letters_came(&elsewhere),
            News::Asked(question) => return self.asked(ctx, *question, came_ns),
            News::Kept { id, kept } => return self.kept(ctx, &id, kept),
            News::Told(told) => return self.told_by_stream(ctx, *told),
            News::CaughtUp => {
                hob_os::debug!(Category::Hosts, "what came while it stood still has been seen");
                return self.hosts.host.caught_up();
            }
            News::Stream { name, why } => {
                match why {
                    Some(why) => self.hosts.tells_why.insert(name, why),
                    None => self.hosts.tells_why.remove(&name),
                };
                return;
            }
            News::Went { ticket, reply_to, within } => {
                return self.went(ctx, ticket, (reply_to, within.as_deref()), came_ns);
            }
        };
        self.decide(ctx, event);
    }

    /// Ends the asks whose time has passed, or tries them again; forgets what no word has come for.
    pub(crate) fn tick_hosts(&mut self, ctx: &mut Ctx<'_>) {
        // Before somebody asks: what stood still hours ago refuses nothing now.
        self.look_at_stops();
        self.hosts.host.tick(Time(clock::since_boot_ns()));
        let now = Time(clock::now_ns());
        self.not_kept("its stream has said nothing yet", Some(now));
        if self.hosts.asker.next_deadline().is_some_and(|at| at.0 <= clock::now_ns()) {
            self.decide(ctx, asker::Event::Tick);
        }
    }

    /// Leaves the receipts that nothing else has come to stand for in time.
    pub(super) fn tick_sampled(&mut self, ctx: &mut Ctx<'_>, now: Time) {
        let hosts = &mut self.hosts;
        hosts.accepted.due(now).into_iter().for_each(|due| accepted::record(ctx, due));
        hosts.performed.due(now).into_iter().for_each(|due| asks::record(ctx, due));
    }

    /// Leaves all of them.
    pub(super) fn leave_all_sampled(&mut self, ctx: &mut Ctx<'_>, now: Time) {
        let hosts = &mut self.hosts;
        hosts.accepted.all(now).into_iter().for_each(|due| accepted::record(ctx, due));
        hosts.performed.all(now).into_iter().for_each(|due| asks::record(ctx, due));
    }

    /// Nothing more comes: what is asked elsewhere is lost, and what was answered is sent.
    pub(crate) async fn leave_hosts(&mut self, ctx: &mut Ctx<'_>) {
        self.decide(ctx, asker::Event::Stop);
        if let Some(link) = self.hosts.link.take() {
            link.end().await;
        }
    }

    /// What `hob status` says of other hosts.
    pub(crate) fn hosts_status(&self) -> Option<HostsPart> {
        self.hosts.status()
    }
}

/// The environment of this process.
fn own_environment() -> Strings {
    let variables = std::env::vars_os();
    let line = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let mut line = name.into_encoded_bytes();
        line.push(b'=');
        line.extend_from_slice(value.as_encoded_bytes());
        line
    };
    variables.map(line).collect()
}
