//! Tells that are kept: from their sender to the outbox, from there to a pool, and back.
//!
//! ```text
//!   sender ─▶ accept ─▶ outbox ─Accepted─▶ sender hears the id; the queue has the message
//!                                            │ next, while fewer than WINDOW are with the core
//!   finished, again, bury ◀─ settle ◀─ core ◀┘
//!   held: the program cannot be had now, and nobody has tried
//! ```
//! Invariants: a sender hears `accepted` only after the sync; a message leaves the outbox only when
//! its handler has answered, or when a person drops what failed too often; what a message needs
//! to find its program again is in the outbox with it; a sender hears `accepted` before its
//! message is given, so that one which it sends to the next daemon waits there, and is known by what
//! its sender has drawn for it.

pub(crate) mod dead;

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::ids::{CallId, Time};
use hob_core::log::Category;
use hob_core::requests::{Given, Refusal, Settled};
use hob_core::status::MessagesPart;
use hob_os::clock;
use hob_wire::frame::{self, Kind};
use hob_wire::message::{DRAWN_BYTES, Manner, Named, Reason};

use crate::ctx::Ctx;
use crate::handlers::address::{destination, elsewhere, has_key, of_others, parse};
use crate::handlers::route::From;
use crate::hosts::Hosts;
use crate::hosts::streams::{Became, Buried, Word};
use crate::inputs::{Came, SenderId};
use crate::jobs::job::Asked;
use crate::jobs::origin::Origin;
use crate::outbox::{self, Directory, Done, Ids, MessageId, Outbox, Queue, Verdict};
use crate::tables::Tables;

use dead::Waiting;

/// Messages of one program that are with the core at one time.
const WINDOW: usize = 64;
/// Payloads that are kept in memory beside the disk, to be delivered without reading them again.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// For so long what was found about a sender's program holds for its next tell. It is asked again
/// when the message is delivered: this only spares a storm the same question.
const FOUND_FOR_NS: u64 = 1_000_000;
/// Addresses that are remembered as they are read.
const PARSED_MAX: usize = 64;

/// The tells that are kept.
#[derive(Debug)]
pub(crate) struct Tells {
    outbox: Outbox,
    queue: Queue,
    ids: Ids,
    /// Whom to tell that its message is synced.
    accepting: HashMap<MessageId, (SenderId, u64)>,
    /// Dead letters of other hosts' streams that are not on the disk yet.
    burying: HashMap<MessageId, (outbox::Message, Buried)>,
    kept: HashMap<MessageId, outbox::Message>,
    kept_bytes: usize,
    /// The newest tell's sender and program, its address, and when that was found.
    found: Option<Address>,
    parsed: HashMap<Arc<[u8]>, Parsed>,
    /// Who waits for a word about dead letters.
    dead: Waiting,
}

/// Where a message comes from, and its program's name.
type Parsed = (Arc<From>, Arc<[u8]>);

#[derive(Debug)]
struct Address {
    sender: SenderId,
    program: Vec<u8>,
    at_ns: u64,
    bytes: Arc<[u8]>,
}

impl Tells {
    pub(crate) fn new(outbox: Outbox) -> Tells {
        let mut drawn = [0; 8];
        // An id is also made of the time: without random bytes it is still no other's here.
        let _ = rustix::rand::getrandom(&mut drawn, rustix::rand::GetRandomFlags::empty());
        Tells {
            outbox,
            queue: Queue::new(),
            ids: Ids::new(u64::from_le_bytes(drawn)),
            accepting: HashMap::new(),
            burying: HashMap::new(),
            kept: HashMap::new(),
            kept_bytes: 0,
            found: None,
            parsed: HashMap::new(),
            dead: Waiting::default(),
        }
    }

    /// Reads an address, most often one that was read before.
    fn parse(&mut self, address: &Arc<[u8]>) -> Option<Parsed> {
        if let Some(known) = self.parsed.get(address) {
            return Some(known.clone());
        }
        let (from, program) = parse(address)?;
        if self.parsed.len() >= PARSED_MAX {
            self.parsed.clear();
        }
        let read = (from, Arc::from(program));
        self.parsed.insert(Arc::clone(address), Parsed::clone(&read));
        Some(read)
    }

    /// When a message that failed is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let due_ms = self.queue.next_due_ms()?;
        Some(Time(clock::now_ns().saturating_add(due_ms.saturating_sub(now_ms()) * 1_000_000)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.accepting.is_empty() && self.burying.is_empty()
    }

    /// Whether a message is with a worker, or on its way to a stream.
    pub(crate) fn flies(&self) -> bool {
        self.queue.flying() > 0 || !self.burying.is_empty()
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn keep(&mut self, message: outbox::Message) {
        if self.kept_bytes + message.payload.len() <= KEPT_BYTES_MAX {
            self.kept_bytes += message.payload.len();
            self.kept.insert(message.id, message);
        }
    }

    fn take(&mut self, id: MessageId) -> Option<outbox::Message> {
        let message = self.kept.remove(&id)?;
        self.kept_bytes -= message.payload.len();
        Some(message)
    }
}

impl Tells {
    /// Hands a tell to the outbox; its sender hears when it is synced.
    pub(crate) fn accept(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
        came: &Came<'_>,
    ) -> Result<(), (Reason, String)> {
        let Came { message, sender, .. } = came;
        let mut address = self.address(ctx, tables, hosts, *sender, message.program)?;
        if let Some(program) = elsewhere(&address)
            && !message.key.is_empty()
        {
            address = of_others(program, true);
        }
        let created_ms = now_ms();
        let drawn = <[u8; DRAWN_BYTES]>::try_from(message.message_id).map(u64::from_le_bytes).ok();
        let id = self.ids.next_of(created_ms, drawn);
        let kept = outbox::Message {
            id,
            program: address,
            key: (!message.key.is_empty()).then(|| message.key.to_vec()),
            content_type: message.content_type.to_vec(),
            payload: came.payload.clone(),
            created_ms,
        };
        let accepted = match drawn {
            Some(_) => self.outbox.accept_again(kept.clone()),
            None => self.outbox.accept(kept.clone()),
        };
        accepted.map_err(|why| (reason_of(&why), why.to_string()))?;
        self.accepting.insert(id, (*sender, message.id));
        self.keep(kept);
        Ok(())
    }

    /// Where a sender's tell goes. What is wrong with the program is told to who tells it.
    fn address(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
        sender: SenderId,
        program: &[u8],
    ) -> Result<Arc<[u8]>, (Reason, String)> {
        let now_ns = clock::now_ns();
        if let Some(found) = &self.found
            && found.sender == sender
            && found.program == program
            && now_ns < found.at_ns.saturating_add(FOUND_FOR_NS)
        {
            return Ok(Arc::clone(&found.bytes));
        }
        let from = tables.senders.from(sender)?;
        let bytes = match tables.catalog.route(ctx, &from, program) {
            Ok((pool, _)) => tables.catalog.address(&from, program, pool),
            Err(refused) if !refused.is_absent => return Err(refused.into()),
            Err(refused) => hosts.address(ctx, tables, program, refused)?,
        };
        let found =
            Address { sender, program: program.to_vec(), at_ns: now_ns, bytes: Arc::clone(&bytes) };
        self.found = Some(found);
        Ok(bytes)
    }

    /// What the outbox has done.
    pub(crate) fn outbox_did(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
        done: Vec<Done>,
    ) {
        let mut accepted: HashMap<SenderId, Vec<u8>> = HashMap::new();
        for done in done {
            self.did(ctx, tables, hosts, done, &mut accepted);
        }
        // One write a sender, however many of its messages the sync has carried.
        for (sender, frames) in accepted {
            if let Some(sender) = tables.senders.get(sender) {
                sender.outlet.send(Some(frames));
            }
        }
        self.deliver_all(ctx, tables, hosts);
    }

    fn did(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
        done: Done,
        accepted: &mut HashMap<SenderId, Vec<u8>>,
    ) {
        match done {
            Done::Opened { waiting, last, .. } => {
                if let Some(last) = last {
                    self.ids.go_on_after(last);
                }
                waiting.into_iter().for_each(|message| self.queue.push(message));
            }
            Done::Accepted(id) => {
                if let Some((message, buried)) = self.burying.remove(&id) {
                    hosts.buried(&buried, true);
                    let waiting = outbox::Waiting { tries: buried.tries, ..message.waiting() };
                    self.outbox.bury(&waiting, now_ms(), &buried.why);
                } else if let Some(waits) = self.accepting.remove(&id) {
                    match self.kept.get(&id) {
                        Some(message) => self.queue.push(message.waiting()),
                        None => self.outbox.read(id),
                    }
                    say_accepted(accepted, waits, id);
                }
            }
            Done::Known(id, kept) => {
                self.take(id);
                if let Some(waits) = self.accepting.remove(&id) {
                    say_accepted(accepted, waits, kept);
                }
            }
            Done::Refused(id, refusal) => {
                self.take(id);
                if let Some((_, buried)) = self.burying.remove(&id) {
                    hosts.buried(&buried, false);
                } else if let Some((sender, number)) = self.accepting.remove(&id) {
                    let (reason, why) = (reason_of(&refusal), refusal.to_string());
                    tables.senders.fail(sender, number, reason, &why);
                }
            }
            Done::Read(message) if self.queue.is_flying(message.id) => {
                self.deliver(ctx, tables, hosts, message);
            }
            // It was accepted when there was no room to keep it in memory.
            Done::Read(message) => self.queue.push(message.waiting()),
            Done::Unreadable(id, why) => self.failed(id, outbox::TRIES, &why),
            Done::Listed(token, letters) => self.dead.listed(hosts, token, letters),
            Done::Dropped(token, count) => self.dead.settled(token, count),
            Done::Revived(token, waiting) => {
                let count = waiting.as_ref().map_or(0, |waiting| waiting.len() as u64);
                let done = waiting.map(|waiting| {
                    waiting.into_iter().for_each(|message| self.queue.push(message));
                    count
                });
                self.dead.settled(token, done);
            }
            // The loop looks after each input.
            Done::Unusable(_) | Done::Closed => {}
        }
    }

    /// Makes due what is due, and delivers.
    pub(crate) fn tick(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables, hosts: &mut Hosts) {
        self.queue.tick(now_ms());
        self.deliver_all(ctx, tables, hosts);
    }

    /// Something was repaired, perhaps what messages are held for.
    pub(crate) fn release(&mut self, ctx: &mut Ctx<'_>, tables: &mut Tables, hosts: &mut Hosts) {
        self.queue.look_again();
        self.deliver_all(ctx, tables, hosts);
    }

    /// Delivers what is ready, as far as the core has room for it.
    pub(crate) fn deliver_all(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
    ) {
        if tables.is_stopping {
            return;
        }
        let programs: Vec<Arc<[u8]>> = self.queue.ready().cloned().collect();
        for program in programs {
            while self.queue.in_flight(&program) < WINDOW {
                let Some(waiting) = self.queue.next(&program) else { break };
                match self.take(waiting.id) {
                    Some(message) => self.deliver(ctx, tables, hosts, message),
                    None => self.outbox.read(waiting.id),
                }
            }
        }
    }

    fn deliver(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
        message: outbox::Message,
    ) {
        let id = message.id;
        match hosts.tell(&message) {
            None => {}
            Some(Ok(())) => return,
            Some(Err(why)) => return self.waits(id, &why, Directory::There),
        }
        let Some((from, program)) = self.parse(&message.program) else {
            return self.failed(id, outbox::TRIES, "its address cannot be read");
        };
        let pool = match tables.catalog.route(ctx, &from, &program) {
            Ok((pool, _)) => pool,
            Err(refused) => {
                let (reason, text): (Reason, String) = refused.into();
                let why = format!("{}: {text}", reason.code());
                return self.held(id, &why, &message.program);
            }
        };
        let call = CallId(ctx.recorder.next_call());
        let asked = Asked {
            key: message.key.unwrap_or_default(),
            content_type: message.content_type,
            message_id: id.to_string().into_bytes(),
            payload: message.payload,
            ..Asked::new(Manner::Tell, pool)
        };
        let name = tables.catalog.name_of(pool).unwrap_or("?");
        hob_os::debug!(Category::Tells, "{id} goes to {name} as call {}", call.0);
        let job = tables.message(Origin::Outbox(id), asked, clock::now_ns());
        tables.open(ctx, call, job);
    }

    /// A message that was told has its outcome: it leaves the outbox, or is tried again.
    pub(crate) fn settled(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        hosts: &mut Hosts,
        told: &Told<'_>,
    ) {
        let Told { id, asked, outcome, why } = *told;
        match outcome {
            Settled::Answered if asked.is_answered() => _ = self.done(id),
            // Not its own fault, and not given: it waits for its turn.
            Settled::Refused(Refusal::Stopping | Refusal::QueueFull | Refusal::SessionsFull)
            | Settled::Cancelled
            | Settled::TimedOut { given: Given::No } => self.queue.put_back(id),
            // What was cut short by a stop is not the message's fault either.
            Settled::Lost if tables.is_stopping => self.queue.put_back(id),
            Settled::Refused(Refusal::NotLoaded) => {
                let address = self.queue.program_of(id);
                self.held(id, why, address.as_deref().unwrap_or_default());
            }
            Settled::Answered | Settled::Lost | Settled::TimedOut { given: Given::Yes } => {
                self.failed(id, tables.catalog.tries(asked.pool), why);
            }
        }
        if !matches!(outcome, Settled::Refused(_)) {
            self.deliver_all(ctx, tables, hosts);
        }
    }

    /// A tell that a stream has given has failed too often here: it is kept as a dead letter, under
    /// this address. Its stream hears when that is done.
    pub(crate) fn bury(
        &mut self,
        hosts: &Hosts,
        address: Arc<[u8]>,
        asked: &Asked,
        buried: Buried,
    ) {
        let created_ms = now_ms();
        let id = std::str::from_utf8(&asked.message_id).ok().and_then(MessageId::parse);
        let id = id.unwrap_or_else(|| self.ids.next(created_ms));
        let message = outbox::Message {
            id,
            program: address,
            key: (!asked.key.is_empty()).then(|| asked.key.clone()),
            content_type: asked.content_type.clone(),
            payload: asked.payload.clone(),
            created_ms,
        };
        match self.outbox.accept(message.clone()) {
            Ok(()) => _ = self.burying.insert(id, (message, buried)),
            Err(_) => hosts.buried(&buried, false),
        }
    }

    /// Streams have said what became of tells. Of those that they have, a receipt is left.
    pub(crate) fn said(&mut self, ctx: &Ctx<'_>, tables: &mut Tables, words: Vec<Word>) {
        for Word { id, became } in words {
            match became {
                Became::Accepted(sent) => {
                    if let Some(message) = self.done(id) {
                        let job = sent.accepted(message.program);
                        tables.receipts.leave(ctx.recorder, job, 1);
                    }
                }
                Became::Failed { why } => self.failed(id, 1, &why),
                Became::NoStream => {
                    let address = self.queue.program_of(id);
                    let by_key = address.is_some_and(|address| has_key(&address));
                    self.waits(id, hob_core::hosts::tells::nobody(by_key), Directory::Gone);
                }
                Became::Waits { why } => self.waits(id, &why, Directory::There),
            }
        }
    }

    /// Its program cannot be had: not trusted, being edited, not loadable. The message has had no
    /// try, and waits until that is repaired.
    fn held(&mut self, id: MessageId, why: &str, program: &[u8]) {
        match destination(program) {
            Some((path, _)) if is_gone(path) => {
                self.waits(id, &format!("{why}; its directory is gone"), Directory::Gone);
            }
            Some(_) | None => self.waits(id, why, Directory::There),
        }
    }

    /// A message waits, without a try, until what it is for can be had.
    fn waits(&mut self, id: MessageId, why: &str, directory: Directory) {
        let now_ms = now_ms();
        hob_os::debug!(Category::Tells, "{id} is held: {why}");
        if let Some(message) = self.queue.hold(id, now_ms, why, directory) {
            self.outbox.bury(&message, now_ms, why);
        }
    }

    /// A message is performed, or another has it now. Returns it where it was not done before.
    fn done(&mut self, id: MessageId) -> Option<outbox::Waiting> {
        hob_os::debug!(Category::Tells, "{id} is done");
        let message = self.queue.finished(id)?;
        self.outbox.finished(&message);
        Some(message)
    }

    fn failed(&mut self, id: MessageId, tries: u32, why: &str) {
        let now_ms = now_ms();
        match self.queue.failed(id, now_ms, tries) {
            Some(Verdict::Again(message)) => {
                hob_os::debug!(Category::Tells, "{id} is tried again later: {}", code_of(why));
                self.outbox.again(&message, why);
            }
            Some(Verdict::Dead(message)) => {
                hob_os::debug!(Category::Tells, "{id} is dead: {}", code_of(why));
                self.outbox.bury(&message, now_ms, why);
            }
            None => {}
        }
    }

    /// What the status says of tells.
    pub(crate) fn status(&self) -> MessagesPart {
        let (held, why) = self.queue.held();
        let (is_open, outbox_why) = self.outbox.standing();
        MessagesPart {
            waiting: self.queue.len() as u64 + self.outbox.ending(),
            held: held as u64,
            held_why: why.map(str::to_owned),
            dead: self.outbox.depth().2,
            outbox_owner: is_open.then(std::process::id),
            outbox_why,
        }
    }
}

/// A message of the outbox's that has its outcome here, and why it has no answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) id: MessageId,
    pub(crate) asked: &'a Asked,
    pub(crate) outcome: Settled,
    pub(crate) why: &'a str,
}

/// Says to a sender under which id its message is kept.
fn say_accepted(accepted: &mut HashMap<SenderId, Vec<u8>>, waits: (SenderId, u64), id: MessageId) {
    let named = Named { id: waits.1, name: id.to_string().into_bytes() };
    let frames = accepted.entry(waits.0).or_default();
    // It is far within a frame.
    let _ = frame::append(frames, Kind::Accepted, 0, |out| named.encode(out));
}

/// The code that a reason begins with: what a handler raised may hold what it was told.
fn code_of(why: &str) -> &str {
    why.split_once(':').map_or(why, |(code, _)| code)
}

/// What a sender is told: one that the next daemon will keep is sent there again.
fn reason_of(refusal: &outbox::Refusal) -> Reason {
    match refusal {
        outbox::Refusal::Closed => Reason::Stopping,
        outbox::Refusal::Full { .. }
        | outbox::Refusal::Busy
        | outbox::Refusal::NoPlace
        | outbox::Refusal::Elsewhere
        | outbox::Refusal::Store(_) => Reason::NotKept,
    }
}

/// Whether there is certainly no such directory.
fn is_gone(path: &[u8]) -> bool {
    rustix::fs::stat(path).is_err_and(|error| error == rustix::io::Errno::NOENT)
}

fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
