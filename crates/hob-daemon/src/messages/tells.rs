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

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::ids::{CallId, PoolId, Time};
use hob_core::log::Category;
use hob_core::requests::{Event, Given, Refusal, Settled};
use hob_os::clock;
use hob_wire::frame::{self, Kind};
use hob_wire::message::{DRAWN_BYTES, Manner, Message, Named, Reason};

use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::messages::Messages;
use crate::outbox::{self, Directory, Done, Ids, MessageId, Outbox, Queue, Verdict};

use super::address::{address, destination, elsewhere, of_others, parse};
use super::dead::Asked;
use super::route::From;
use super::{Open, Said};

/// Messages of one program that are with the core at one time.
const WINDOW: usize = 64;
/// Payloads that are kept in memory beside the disk, to be delivered without reading them again.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// For so long what was found about a sender's program holds for its next tell. It is asked again
/// when the message is delivered: this only spares a storm the same question.
const FOUND_FOR_NS: u64 = 1_000_000;
/// Addresses that are remembered as they are read.
const PARSED_MAX: usize = 64;

/// What the owner holds for tells.
#[derive(Debug)]
pub(super) struct Tells {
    outbox: Outbox,
    queue: Queue,
    ids: Ids,
    /// Whom to tell that its message is synced.
    accepting: HashMap<MessageId, (SenderId, u64)>,
    /// Dead letters of other hosts' streams that are not on the disk yet.
    burying: HashMap<MessageId, (outbox::Message, Burying)>,
    kept: HashMap<MessageId, outbox::Message>,
    kept_bytes: usize,
    /// The newest tell's sender and program, its address, and when that was found.
    found: Option<Address>,
    parsed: HashMap<Arc<[u8]>, Parsed>,
    /// Who waits for a word about dead letters.
    pub(super) asked: Asked,
}

/// Where a message comes from, and its program's name.
type Parsed = (Arc<From>, Arc<[u8]>);

/// A dead letter of a stream's that is not on the disk yet.
#[derive(Debug)]
pub(super) struct Burying {
    /// Where its end is said.
    pub(super) ack: String,
    pub(super) program: String,
    pub(super) tries: u32,
    pub(super) why: String,
}

#[derive(Debug)]
struct Address {
    sender: SenderId,
    program: Vec<u8>,
    at_ns: u64,
    bytes: Arc<[u8]>,
}

impl Tells {
    pub(super) fn new(outbox: Outbox) -> Tells {
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
            asked: Asked::default(),
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
    pub(super) fn next_due(&self) -> Option<Time> {
        let due_ms = self.queue.next_due_ms()?;
        Some(Time(clock::now_ns().saturating_add(due_ms.saturating_sub(now_ms()) * 1_000_000)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.accepting.is_empty() && self.burying.is_empty()
    }

    /// Whether a message is with a worker, or on its way to a stream.
    pub(super) fn flies(&self) -> bool {
        self.queue.flying() > 0 || !self.burying.is_empty()
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
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

impl Messages {
    /// Hands a tell to the outbox; its sender hears when it is synced.
    pub(super) fn keep_tell(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        message: &Message<'_>,
    ) -> Result<(), (Reason, String)> {
        let mut address = self.address(ctx, sender, message.program)?;
        if let Some(program) = elsewhere(&address)
            && !message.key.is_empty()
        {
            address = of_others(program, true);
        }
        let tells = &mut self.tells;
        let created_ms = now_ms();
        let drawn = <[u8; DRAWN_BYTES]>::try_from(message.message_id).map(u64::from_le_bytes).ok();
        let id = tells.ids.next_of(created_ms, drawn);
        let kept = outbox::Message {
            id,
            program: address,
            key: (!message.key.is_empty()).then(|| message.key.to_vec()),
            content_type: message.content_type.to_vec(),
            payload: message.payload.to_vec(),
            created_ms,
        };
        let accepted = match drawn {
            Some(_) => tells.outbox.accept_again(kept.clone()),
            None => tells.outbox.accept(kept.clone()),
        };
        accepted.map_err(|why| (reason_of(&why), why.to_string()))?;
        tells.accepting.insert(id, (sender, message.id));
        tells.keep(kept);
        Ok(())
    }

    /// Where a sender's tell goes. What is wrong with the program is told to who tells it.
    fn address(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        program: &[u8],
    ) -> Result<Arc<[u8]>, (Reason, String)> {
        let now_ns = clock::now_ns();
        if let Some(found) = &self.tells.found
            && found.sender == sender
            && found.program == program
            && now_ns < found.at_ns.saturating_add(FOUND_FOR_NS)
        {
            return Ok(Arc::clone(&found.bytes));
        }
        let from = self.from(sender)?;
        let bytes = match self.route(ctx, &from, program) {
            Ok((pool, _)) => self.address_of(&from, program, pool),
            Err(refused) if !refused.is_absent => return Err(refused.into()),
            Err(refused) => self.address_elsewhere(ctx, program, refused)?,
        };
        let found =
            Address { sender, program: program.to_vec(), at_ns: now_ns, bytes: Arc::clone(&bytes) };
        self.tells.found = Some(found);
        Ok(bytes)
    }

    /// The address of a program of this host's.
    pub(super) fn address_of(&self, from: &From, program: &[u8], pool: PoolId) -> Arc<[u8]> {
        let variables = self.handlers.get(&pool).map(|loaded| loaded.variables.as_slice());
        address(from, program, variables.unwrap_or_default())
    }

    /// What the outbox has done.
    pub(crate) fn outbox_did(&mut self, ctx: &mut Ctx<'_>, done: Vec<Done>) {
        self.active = true;
        let mut accepted: HashMap<SenderId, Vec<u8>> = HashMap::new();
        for done in done {
            self.outbox_did_one(ctx, done, &mut accepted);
        }
        // One write a sender, however many of its messages the sync has carried.
        for (sender, frames) in accepted {
            if let Some(sender) = self.senders.get(&sender) {
                sender.outlet.send(Some(frames));
            }
        }
        self.deliver_tells(ctx);
    }

    fn outbox_did_one(
        &mut self,
        ctx: &mut Ctx<'_>,
        done: Done,
        accepted: &mut HashMap<SenderId, Vec<u8>>,
    ) {
        let tells = &mut self.tells;
        match done {
            Done::Opened { waiting, last, .. } => {
                if let Some(last) = last {
                    tells.ids.go_on_after(last);
                }
                waiting.into_iter().for_each(|message| tells.queue.push(message));
            }
            Done::Accepted(id) if tells.burying.contains_key(&id) => {
                let Some((message, burying)) = tells.burying.remove(&id) else { return };
                let (tries, why) = self.buried(burying, true);
                let waiting = outbox::Waiting { tries, ..message.waiting() };
                self.tells.outbox.bury(&waiting, now_ms(), &why);
            }
            Done::Accepted(id) => {
                let Some((sender, number)) = tells.accepting.remove(&id) else { return };
                if let Some(message) = tells.kept.get(&id) {
                    tells.queue.push(message.waiting());
                } else {
                    tells.outbox.read(id);
                }
                let named = Named { id: number, name: id.to_string().into_bytes() };
                let frames = accepted.entry(sender).or_default();
                // It is far within a frame.
                let _ = frame::append(frames, Kind::Accepted, 0, |out| named.encode(out));
            }
            Done::Known(id, kept) => {
                tells.take(id);
                let Some((sender, number)) = tells.accepting.remove(&id) else { return };
                let named = Named { id: number, name: kept.to_string().into_bytes() };
                let frames = accepted.entry(sender).or_default();
                let _ = frame::append(frames, Kind::Accepted, 0, |out| named.encode(out));
            }
            Done::Refused(id, refusal) => {
                tells.take(id);
                if let Some((_, burying)) = tells.burying.remove(&id) {
                    self.buried(burying, false);
                    return;
                }
                if let Some((sender, number)) = tells.accepting.remove(&id) {
                    self.tell_failure(sender, number, reason_of(&refusal), &refusal.to_string());
                }
            }
            Done::Read(message) => self.was_read(ctx, message),
            Done::Unreadable(id, why) => self.tell_failed(id, outbox::TRIES, &why),
            Done::Listed(token, letters) => self.listed(token, letters),
            Done::Dropped(token, count) => tells.asked.settled(token, count),
            Done::Revived(token, waiting) => {
                let count = waiting.as_ref().map_or(0, |waiting| waiting.len() as u64);
                let done = waiting.map(|waiting| {
                    waiting.into_iter().for_each(|message| tells.queue.push(message));
                    count
                });
                tells.asked.settled(token, done);
            }
            // The loop looks after each input.
            Done::Unusable(_) | Done::Closed => {}
        }
    }

    fn was_read(&mut self, ctx: &mut Ctx<'_>, message: outbox::Message) {
        if self.tells.queue.is_flying(message.id) {
            self.deliver(ctx, message);
        } else {
            // It was accepted when there was no room to keep it in memory.
            self.tells.queue.push(message.waiting());
        }
    }

    /// Makes due what is due, and delivers.
    pub(crate) fn tick_tells(&mut self, ctx: &mut Ctx<'_>) {
        self.tells.queue.tick(now_ms());
        self.deliver_tells(ctx);
    }

    pub(super) fn deliver_tells(&mut self, ctx: &mut Ctx<'_>) {
        if self.stopping {
            return;
        }
        let programs: Vec<Arc<[u8]>> = self.tells.queue.ready().cloned().collect();
        for program in programs {
            while self.tells.queue.in_flight(&program) < WINDOW {
                let Some(waiting) = self.tells.queue.next(&program) else { break };
                match self.tells.take(waiting.id) {
                    Some(message) => self.deliver(ctx, message),
                    None => self.tells.outbox.read(waiting.id),
                }
            }
        }
    }

    fn deliver(&mut self, ctx: &mut Ctx<'_>, message: outbox::Message) {
        let id = message.id;
        if self.tell_elsewhere(&message) {
            return;
        }
        let Some((from, program)) = self.tells.parse(&message.program) else {
            return self.tell_failed(id, outbox::TRIES, "its address cannot be read");
        };
        let pool = match self.route(ctx, &from, &program) {
            Ok((pool, _)) => pool,
            Err(refused) => {
                let (reason, text): (Reason, String) = refused.into();
                let why = format!("{}: {text}", reason.code());
                return self.tell_held(id, (&why, &message.program));
            }
        };
        let call = CallId(ctx.recorder.next_call());
        let key = message.key.unwrap_or_default();
        let open = Open {
            key: key.clone(),
            content_type: message.content_type,
            message_id: id.to_string().into_bytes(),
            payload: message.payload,
            told: Some(id),
            ..Open::new(Manner::Tell, pool, clock::now_ns())
        };
        let name = self.name_of(pool).unwrap_or("?");
        hob_os::debug!(Category::Tells, "{id} goes to {name} as call {}", call.0);
        self.opened(call, open);
        ctx.request(Event::Arrived { call, pool, key, deadline: None });
    }

    /// A message that was told has its outcome: it leaves the outbox, or is tried again.
    pub(super) fn tell_settled(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: MessageId,
        open: &Open,
        outcome: Settled,
        why: &str,
    ) {
        match outcome {
            Settled::Answered if matches!(open.said, Some(Said::Answer { .. })) => {
                self.tell_done(id);
            }
            // Not its own fault, and not given: it waits for its turn.
            Settled::Refused(Refusal::Stopping | Refusal::QueueFull | Refusal::SessionsFull)
            | Settled::Cancelled
            | Settled::TimedOut { given: Given::No } => self.tells.queue.put_back(id),
            // What was cut short by a stop is not the message's fault either.
            Settled::Lost if self.stopping => self.tells.queue.put_back(id),
            Settled::Refused(Refusal::NotLoaded) => {
                let address = self.tells.queue.program_of(id);
                self.tell_held(id, (why, address.as_deref().unwrap_or_default()));
            }
            Settled::Answered | Settled::Lost | Settled::TimedOut { given: Given::Yes } => {
                let loaded = self.handlers.get(&open.pool);
                self.tell_failed(id, loaded.map_or(outbox::TRIES, |loaded| loaded.tries), why);
            }
        }
        if !matches!(outcome, Settled::Refused(_)) {
            self.deliver_tells(ctx);
        }
    }

    /// Its program cannot be had: not trusted, being edited, not loadable. The message has had no
    /// try, and waits until that is repaired.
    fn tell_held(&mut self, id: MessageId, (why, program): (&str, &[u8])) {
        match destination(program) {
            Some((path, _)) if is_gone(path) => {
                self.tell_waits(id, &format!("{why}; its directory is gone"), Directory::Gone);
            }
            Some(_) | None => self.tell_waits(id, why, Directory::There),
        }
    }

    /// A message waits, without a try, until what it is for can be had.
    pub(super) fn tell_waits(&mut self, id: MessageId, why: &str, directory: Directory) {
        let (tells, now_ms) = (&mut self.tells, now_ms());
        hob_os::debug!(Category::Tells, "{id} is held: {why}");
        if let Some(message) = tells.queue.hold(id, now_ms, (why, directory)) {
            tells.outbox.bury(&message, now_ms, why);
        }
    }

    /// A message is performed, or another has it now. Returns it where it was not done before.
    pub(super) fn tell_done(&mut self, id: MessageId) -> Option<outbox::Waiting> {
        let tells = &mut self.tells;
        hob_os::debug!(Category::Tells, "{id} is done");
        let message = tells.queue.finished(id)?;
        tells.outbox.finished(&message);
        Some(message)
    }

    /// Keeps a message that has failed too often at a stream's.
    pub(super) fn bury_of_others(
        &mut self,
        id: Option<MessageId>,
        program: Arc<[u8]>,
        open: &Open,
        burying: Burying,
    ) -> Result<(), outbox::Refusal> {
        let (tells, created_ms) = (&mut self.tells, now_ms());
        let id = id.unwrap_or_else(|| tells.ids.next(created_ms));
        let message = outbox::Message {
            id,
            program,
            key: (!open.key.is_empty()).then(|| open.key.clone()),
            content_type: open.content_type.clone(),
            payload: open.payload.clone(),
            created_ms,
        };
        tells.outbox.accept(message.clone())?;
        tells.burying.insert(id, (message, burying));
        Ok(())
    }

    /// Something was repaired, perhaps what messages are held for.
    pub(super) fn release_tells(&mut self, ctx: &mut Ctx<'_>) {
        self.tells.queue.look_again();
        self.deliver_tells(ctx);
    }

    pub(super) fn tell_failed(&mut self, id: MessageId, tries: u32, why: &str) {
        let (tells, now_ms) = (&mut self.tells, now_ms());
        match tells.queue.failed(id, now_ms, tries) {
            Some(Verdict::Again(message)) => {
                hob_os::debug!(Category::Tells, "{id} is tried again later: {}", code_of(why));
                tells.outbox.again(&message, why);
            }
            Some(Verdict::Dead(message)) => {
                hob_os::debug!(Category::Tells, "{id} is dead: {}", code_of(why));
                tells.outbox.bury(&message, now_ms, why);
            }
            None => {}
        }
    }
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
