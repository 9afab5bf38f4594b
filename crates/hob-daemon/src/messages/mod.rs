//! Messages in the daemon: who sends, what is open, which handlers are loaded. The owner's state
//! for them, and the inputs that concern them; what is decided is `hob_core::requests`'.
//!
//! | file | does |
//! |---|---|
//! | `route` | from a sender's program to a pool: the configuration, its freshness, the interpreter |
//! | `loading` | what is loaded of a handler, and what becomes of loading it anew |
//! | `perform` | the core's effects |
//! | `lanes` | lanes that are lent, and how many messages went on each |
//! | `workers` | what handlers' processes say |
//! | `settle` | outcomes: to the sender, and to the recorder |
//! | `thin` | which messages have a receipt of their own |
//! | `state` | the shared state |
//! | `tells` | tells that are kept: the outbox |
//! | `hosts` | asks that another host performs, and those that another host asks |
//! | `dead` | tells that failed too often: the list, one more try, the end |
//!
//! Invariants: a sender hears of each of its messages once; nothing of a message outlives its
//! outcome; a lane's doorbell is the watch that its pool's freshness is judged by, and the lane is
//! recalled before that watch is read (`docs/why/lanes.md`).

mod address;
pub(crate) mod dead;
mod hosts;
mod lanes;
mod loading;
mod perform;
mod route;
mod settle;
mod state;
mod tells;
#[cfg(test)]
mod tests;
mod thin;
mod workers;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hob_core::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use hob_core::log::Category;
use hob_core::phase::Mark;
use hob_core::receipt::trace::{self, Trace};
use hob_core::requests::shared_state::Shared;
use hob_core::requests::{Event, Found};
use hob_core::supervisor::Supervisor;
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{ALL_OPEN, Failure, Manner, Message, Named, Passed, Reason};
use rustix::fd::OwnedFd;

use crate::channel::{self, Outlet};
use crate::ctx::Ctx;
use crate::inputs::{SenderEvent, SenderId, Sent};
use crate::outbox::{MessageId, Outbox};
use crate::project::Declared;
use crate::recorder::ring;

pub(crate) use hosts::Hosts;
use hosts::{AskedBy, Streamed};
use lanes::Lane;
use loading::{Loaded, Reload};
use route::{Absences, From, Route, Way};
use settle::Held;
use tells::Tells;
use thin::Thin;

/// Payloads of messages that are open at one time.
const OPEN_BYTES_MAX: usize = 64 << 20;
/// Senders' routes that are remembered.
const ROUTES_MAX: usize = 256;
/// How long the loop's end waits for the disk.
const CLOSE_MAX_NS: u64 = 2_000_000_000;

/// All that the owner holds for messages.
#[derive(Debug)]
pub(crate) struct Messages {
    senders: HashMap<SenderId, Sender>,
    /// Those to whom something is said that is sent when the loop has taken all that has come.
    unsent: Vec<SenderId>,
    open: HashMap<CallId, Open>,
    /// Tells of which the core has not said yet whether it takes them.
    undecided: Vec<CallId>,
    /// What has come since the core was last asked.
    came: Vec<CallId>,
    lanes: HashMap<LaneId, Lane>,
    /// Processes that have ended and whose channel is not read to its end yet: their last words
    /// come before their end. Each with its handler and how it ended.
    leaving: HashMap<WorkerId, workers::Leaving>,
    /// Processes whose channel has ended, and that have not.
    silent: HashSet<WorkerId>,
    handlers: HashMap<PoolId, Loaded>,
    routes: HashMap<Way, Route>,
    /// Programs that no configuration of their senders' names.
    absences: Absences,
    /// The apps of the site that this process serves, by their mounts' paths.
    mounts: BTreeMap<String, Declared>,
    /// Reloads that are waited for.
    reloads: Vec<Reload>,
    shared: Shared,
    thin: Thin,
    /// Outcomes of requests whose front has not said yet that it is done with them.
    held: HashMap<(SenderId, u64), Held>,
    tells: Tells,
    hosts: Hosts,
    /// Nothing new is delivered.
    stopping: bool,
    /// Since when the loop waits for the outbox alone.
    closing_ns: Option<u64>,
    open_bytes: usize,
    next_lane: u64,
    /// Whether anything happened since the supervisor was last told.
    active: bool,
}

#[derive(Debug)]
struct Sender {
    from: Arc<From>,
    outlet: Outlet,
    pid: u32,
    /// Its open messages, by its own numbers.
    open: HashMap<u64, CallId>,
    /// Something was said to it that has not been sent yet.
    is_unsent: bool,
}

/// A message without its outcome.
#[derive(Debug)]
struct Open {
    /// Who hears of it, under which number; nobody, if it is a tell that was accepted.
    sender: Option<(SenderId, u64)>,
    pid: u32,
    manner: Manner,
    pool: PoolId,
    key: Vec<u8>,
    content_type: Vec<u8>,
    message_id: Vec<u8>,
    payload: Vec<u8>,
    /// What comes behind the payload, until it is given.
    file: Option<OwnedFd>,
    received_ns: u64,
    deadline_ns: Option<u64>,
    planned_ns: u64,
    given_ns: Option<u64>,
    worker: Option<WorkerId>,
    found: Found,
    /// Whether what it was given to was known not to be what would be loaded now.
    old: bool,
    at: jiff::Timestamp,
    /// What its worker has said.
    said: Option<Said>,
    /// What its front has said, where that was done with it first.
    passed: Option<Passed<'static>>,
    /// Where it stands in its sender's trace.
    trace: Option<Trace>,
    /// Its id in the outbox.
    told: Option<MessageId>,
    /// The other host that asks it, if one does.
    asked_by: Option<AskedBy>,
    /// What it is to the stream that has given it, if one has.
    streamed: Option<Streamed>,
    /// The hosts that it has come over.
    hops: u64,
}

impl Open {
    /// An empty message without a sender, which came then and is planned now.
    fn new(manner: Manner, pool: PoolId, received_ns: u64) -> Open {
        Open {
            sender: None,
            pid: 0,
            manner,
            pool,
            key: Vec::new(),
            content_type: Vec::new(),
            message_id: Vec::new(),
            payload: Vec::new(),
            file: None,
            received_ns,
            deadline_ns: None,
            planned_ns: clock::now_ns(),
            given_ns: None,
            worker: None,
            found: Found::Waiting,
            old: false,
            at: jiff::Timestamp::now(),
            said: None,
            passed: None,
            trace: None,
            told: None,
            asked_by: None,
            streamed: None,
            hops: 0,
        }
    }
}

/// What a worker says of its message.
#[derive(Debug)]
enum Said {
    Answer {
        content_type: Vec<u8>,
        payload: Vec<u8>,
    },
    Raised {
        text: Vec<u8>,
    },
    /// Whoever was to have the rest of the answer has left.
    Left,
}

impl Messages {
    pub(crate) fn new(
        outbox: Outbox,
        mounts: BTreeMap<String, Declared>,
        hosts: Hosts,
    ) -> Messages {
        Messages {
            senders: HashMap::new(),
            unsent: Vec::new(),
            open: HashMap::new(),
            undecided: Vec::new(),
            came: Vec::new(),
            lanes: HashMap::new(),
            leaving: HashMap::new(),
            silent: HashSet::new(),
            handlers: HashMap::new(),
            routes: HashMap::new(),
            absences: Absences::default(),
            mounts,
            reloads: Vec::new(),
            shared: Shared::default(),
            thin: Thin::default(),
            held: HashMap::new(),
            tells: Tells::new(outbox),
            hosts,
            stopping: false,
            closing_ns: None,
            open_bytes: 0,
            next_lane: 1,
            active: false,
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let lanes = self.lanes.values().filter_map(Lane::next_look).min();
        let hosts = self.hosts.next_deadline();
        let due = [self.tells.next_due(), self.thin.next_due(), lanes, hosts];
        due.into_iter().flatten().min()
    }

    /// Whether somebody relies on this daemon to be there: it does not leave for idleness.
    pub(crate) fn take_activity(&mut self) -> bool {
        let holds = !self.senders.is_empty()
            || !self.shared.is_empty()
            || !self.tells.is_empty()
            || self.hosts.holds();
        std::mem::take(&mut self.active) || holds
    }

    /// From now on nothing new is given.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.hosts.withdraw();
    }

    /// Gives the outbox up, for the next daemon to open, as soon as nothing new is given and no tell
    /// is with a worker any more. Whether that is done.
    pub(crate) fn hand_over(&self) -> bool {
        self.stopping && !self.tells.flies() && self.tells.outbox().begin_close()
    }

    /// At the loop's end it is given up whatever is on its way. Whether that is done, or the disk has
    /// taken too long.
    pub(crate) fn gives_up(&mut self) -> bool {
        let since_ns = *self.closing_ns.get_or_insert_with(clock::now_ns);
        self.tells.outbox().begin_close() || clock::now_ns() >= since_ns + CLOSE_MAX_NS
    }

    /// The loop gives nothing any more: those who wait for a word have their last one, which is
    /// about all that they have sent, read or not.
    pub(crate) fn leave_senders(&mut self) {
        self.senders.drain().for_each(|(_, sender)| leave(&sender.outlet));
    }
}

impl Messages {
    /// The name of the program that a pool is for.
    pub(crate) fn name_of(&self, pool: PoolId) -> Option<&str> {
        self.handlers.get(&pool).map(|loaded| loaded.name.as_str())
    }

    pub(crate) fn sender(&mut self, ctx: &mut Ctx<'_>, id: SenderId, event: SenderEvent) {
        self.active = true;
        match event {
            SenderEvent::Attached { attach, outlet, pid } => {
                let from = Arc::new(From::new(attach.directory, attach.env));
                let sender = Sender { from, outlet, pid, open: HashMap::new(), is_unsent: false };
                self.senders.insert(id, sender);
            }
            SenderEvent::Messages { sent, received_ns } => {
                for each in sent {
                    self.message(ctx, id, each, received_ns);
                }
            }
            SenderEvent::Cancel { id: number } => {
                let open = self.senders.get(&id).and_then(|sender| sender.open.get(&number));
                if let Some(call) = open.copied() {
                    self.taken_back(ctx, call);
                }
            }
            SenderEvent::WantLane { id: number, program } => {
                self.want_lane(ctx, id, number, &program)
            }
            SenderEvent::LeaveLane { lane } => self.lane_left(ctx, id, LaneId(lane)),
            SenderEvent::Passed { passed, program } => self.passed(ctx, id, passed, &program),
            SenderEvent::Served { served, mount } => self.served(ctx, id, &served, &mount),
            SenderEvent::State { payload } => self.state(id, &payload),
            SenderEvent::Gone => self.sender_gone(ctx, id),
        }
    }

    fn message(&mut self, ctx: &mut Ctx<'_>, sender: SenderId, sent: Sent, received_ns: u64) {
        let Ok(message) = Message::decode(&sent.payload) else {
            hob_os::debug!(Category::Connection, "a sender is sent away: it says no message");
            // Nothing that it says from here on can be trusted to be meant.
            if let Some(sender) = self.senders.get(&sender) {
                sender.outlet.flush();
                sender.outlet.close();
            }
            return;
        };
        let number = message.id;
        match self.open_message(ctx, sender, (message, sent.file), received_ns) {
            Ok(()) => {}
            Err((reason, text)) => {
                hob_os::debug!(Category::Asks, "not taken: {}: {text}", reason.code());
                self.tell_failure(sender, number, reason, &text);
            }
        }
    }

    fn open_message(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: SenderId,
        (message, file): (Message<'_>, Option<OwnedFd>),
        received_ns: u64,
    ) -> Result<(), (Reason, String)> {
        let at = jiff::Timestamp::now();
        let known = self.senders.get(&id);
        let Some(pid) = known.map(|sender| sender.pid) else { return Ok(()) };
        if known.is_some_and(|sender| sender.open.contains_key(&message.id)) {
            return Err((Reason::Malformed, format!("message {} is open already", message.id)));
        }
        if self.open_bytes + message.payload.len() > OPEN_BYTES_MAX {
            let text = format!("more than {} MiB of messages are open", OPEN_BYTES_MAX >> 20);
            return Err((Reason::Busy, text));
        }
        if file.is_some() && message.manner != Manner::Ask {
            return Err((Reason::Malformed, "a request is asked, not told".to_owned()));
        }
        if message.manner == Manner::Tell {
            return self.keep_tell(ctx, id, &message);
        }
        let from = self.from(id)?;
        let pool = match self.route_of_came(ctx, &from, message.program, received_ns) {
            Ok((pool, _)) => pool,
            Err(refused) if !refused.is_absent => return Err(refused.into()),
            Err(refused) => match self.offered_here(&message) {
                Some((from, program)) => self.route_of_came(ctx, &from, program, received_ns)?.0,
                None if file.is_some() => return Err(refused.into()),
                None => return self.ask_elsewhere(ctx, id, &message, (received_ns, refused)),
            },
        };
        let call = CallId(ctx.recorder.next_call());
        let before = self.trail_of(ctx, pid);
        let deadline_ns = (message.remaining_us > 0)
            .then(|| received_ns.saturating_add(message.remaining_us.saturating_mul(1000)));
        let message_id = match message.manner {
            Manner::Ask => Vec::new(),
            Manner::Tell | Manner::TellOnce => new_message_id(call),
        };
        // What a site's front asks stands in its client's trace, and not in the one that started it.
        let seed = trace::seed(call, received_ns);
        let below = before.and_then(|trail| trail.trace).map(|trace| trace.below(seed));
        let parent = from.parent.filter(|_| self.mounts.is_empty());
        let trace = below.or_else(|| parent.map(|parent| parent.call(seed)));
        let open = Open {
            sender: Some((id, message.id)),
            pid,
            key: message.key.to_vec(),
            content_type: message.content_type.to_vec(),
            message_id,
            payload: message.payload.to_vec(),
            file,
            deadline_ns,
            at,
            hops: before.map_or(0, |trail| trail.hops),
            trace,
            ..Open::new(message.manner, pool, received_ns)
        };
        self.opened(call, open);
        if let Some(sender) = self.senders.get_mut(&id) {
            sender.open.insert(message.id, call);
        }
        let deadline = deadline_ns.map(Time);
        ctx.request(Event::Arrived { call, pool, key: message.key.to_vec(), deadline });
        if message.manner != Manner::Ask {
            self.undecided.push(call);
        }
        Ok(())
    }

    fn opened(&mut self, call: CallId, open: Open) {
        ring::edge(call, Mark::Received, open.received_ns);
        self.open_bytes += open.payload.len();
        self.open.insert(call, open);
        self.came.push(call);
    }

    /// After the core has decided: what came and was not given waits, and is noted with what it
    /// waits for.
    pub(crate) fn note_waits(&mut self, core: &Supervisor) {
        for call in self.came.drain(..) {
            if self.open.get(&call).is_some_and(|open| open.given_ns.is_none()) {
                ring::waits(call, &core.holders(call));
            }
        }
    }

    /// After the core has decided: the tells that it did not refuse are accepted, and their senders
    /// wait for nothing more.
    pub(crate) fn accept_tells(&mut self) {
        for call in std::mem::take(&mut self.undecided) {
            self.accept_tell(call);
        }
    }

    fn accept_tell(&mut self, call: CallId) {
        let Some(open) = self.open.get_mut(&call) else { return };
        let Some((sender, number)) = open.sender.take() else { return };
        let accepted = Named { id: number, name: open.message_id.clone() };
        if let Some(known) = self.senders.get_mut(&sender) {
            known.open.remove(&number);
        }
        self.say(sender, Kind::Accepted, |out| accepted.encode(out));
    }

    /// Says something to a sender, if it is there still. It is sent by [`Messages::flush`].
    fn say(&mut self, id: SenderId, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
        let Some(sender) = self.senders.get_mut(&id) else { return };
        sender.outlet.gather(kind, body);
        if !std::mem::replace(&mut sender.is_unsent, true) {
            self.unsent.push(id);
        }
    }

    /// Sends what was said since the last time: one write for each sender.
    pub(crate) fn flush(&mut self) {
        for id in self.unsent.drain(..) {
            if let Some(sender) = self.senders.get_mut(&id) {
                sender.is_unsent = false;
                sender.outlet.flush();
            }
        }
    }

    fn sender_gone(&mut self, ctx: &mut Ctx<'_>, id: SenderId) {
        let Some(sender) = self.senders.remove(&id) else { return };
        // It may still read.
        sender.outlet.flush();
        for call in sender.open.into_values() {
            self.taken_back(ctx, call);
        }
        self.lanes_left(ctx, id);
        self.leave_held_of(ctx, id);
    }

    /// A sender does not wait for its message any more.
    fn taken_back(&mut self, ctx: &mut Ctx<'_>, call: CallId) {
        if !self.take_back_elsewhere(ctx, call) {
            ctx.request(Event::SenderGone { call });
        }
    }

    fn tell_failure(&mut self, sender: SenderId, number: u64, reason: Reason, text: &str) {
        let failure = Failure { id: number, reason, text: text.as_bytes() };
        self.say(sender, Kind::Failure, |out| failure.encode(out));
    }
}

/// Says that what is open on a connection was not given, and never will be.
pub(crate) fn leave(outlet: &Outlet) {
    let failure = Failure { id: ALL_OPEN, reason: Reason::Stopping, text: b"hob stops" };
    outlet.send(channel::encode(Kind::Failure, 0, |out| failure.encode(out)));
}

/// An id that no other message has: the time, and the call's number.
fn new_message_id(call: CallId) -> Vec<u8> {
    let at = jiff::Timestamp::now().as_microsecond();
    format!("{at:x}-{:x}", call.0).into_bytes()
}
