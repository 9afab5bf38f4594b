//! All links of a system, as the shard that owns them sees them: what goes out, and when.
//!
//! Invariants: only the shard's thread touches them; an open ask is failed when its link ends; a
//! frame is written in the turn in which it was made, unless the socket is full.

use std::cell::Cell;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::buffers::Room;
use super::calls::Calls;
use super::commands::Commands;
use super::frame::{Head, Kind, NO_LIMIT};
use super::names::{Along, Name, Names};
use super::one::{Link, Serving, State};
use super::process::Ended;
use super::rings::Rings;
use super::table::Messages;
use super::tokens::{Mixed, Tokens};
use super::wire::Encoder;
use crate::api::error::{AskError, NotSent};
use crate::api::panic::PanicText;
use crate::api::reply::Reply;
use crate::memory::parcel::{Kind as Content, Parcel, Slot, What};
use crate::memory::when::{NEVER, Place};
use crate::remote::{Edge, Far, Turn};
use crate::runtime::bell::Doorbell;
use crate::runtime::clock;
use crate::runtime::wakeful::{LOOKS_FOR, Wakeful};
use crate::shard::tells::Gathered;
use crate::shard::{Shard, count, count_many};

/// What an epoll event is about: a link's socket, or, with this bit, its process.
pub(crate) const PROCESS: u64 = 1 << 32;
/// Or the shard's bell.
const BELL: u64 = 1 << 33;
/// Or what those ring who have put something into a ring.
pub(crate) const RINGS: u64 = 1 << 34;
/// How many links are looked at in one turn: what they bring has to be kept somewhere.
pub(crate) const EVENTS: usize = 32;
/// A busy shard looks at its links in one of so many turns.
const BUSY_TURNS: u32 = 4;
/// One that never has anything left at a turn's end, and never sleeps either.
const WAKEFUL_TURNS: u32 = 64;
/// Who looks at rings before it sleeps asks the kernel in one of so many looks.
const RING_LOOKS: u32 = 32;
/// Who has more peers than this sleeps at once.
const FEW: usize = 2;
/// How much may wait to be written to one peer: more is refused.
pub(crate) const WAITING_MAX: usize = 64 << 20;

/// How a message of one type gets to one actor of a peer.
#[derive(Clone, Copy)]
struct Way {
    /// What stands for the type.
    what: usize,
    link: u32,
    message: u16,
    actor: u64,
    encode: fn(&mut Parcel, &mut Encoder<'_>) -> Result<(), AskError>,
}

/// The links.
pub(crate) struct Links {
    pub(crate) messages: Arc<Messages>,
    pub(crate) names: Rc<Names>,
    /// The place that answers for peers go to; known once this is attached.
    pub(crate) place: Rc<Cell<Place>>,
    pub(crate) epoll: OwnedFd,
    pub(crate) links: Vec<Link>,
    pub(crate) room: Room,
    pub(crate) rings: Rings,
    /// Rings had something when this was about to sleep.
    rings_wait: bool,
    pub(crate) by_node: HashMap<u64, u32, Mixed>,
    pub(crate) calls: Calls,
    /// By the actors' numbers in `names`: the way of what was sent there last.
    ways: Vec<Option<Way>>,
    /// Who was told that too much waits for a link, by its address here.
    refused: Vec<(u32, Slot)>,
    bell_is_watched: bool,
    /// How many links have a socket.
    pub(crate) sockets: usize,
    /// None: there is one processor, and looking is in the way of what it looks for.
    wakeful: Option<Wakeful>,
    /// What the last sleep has brought.
    events: Vec<epoll::Event>,
    pub(crate) serving: Tokens<Serving>,
    pub(crate) published: HashMap<String, (std::any::TypeId, Name)>,
    /// False in a worker process until it waits for its parent.
    pub(crate) is_set_up: bool,
    /// Which tags were asked for before that.
    pub(crate) early: Vec<(u32, Head, String)>,
    touched: Vec<u32>,
    commands: Commands,
    pub(crate) turns: u32,
    /// When links last were looked at, by that count.
    looked: u32,
    /// When the kernel was asked last.
    asked: u32,
    /// Which stalled link is the first to be tried.
    pub(crate) retry_first: u32,
    pub(crate) any_stalled: bool,
    pub(crate) drained: Vec<Reply<()>>,
    pub(crate) parent_waiters: Vec<Reply<()>>,
    /// Nobody will ask us to do anything any more.
    pub(crate) parent_is_done: bool,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Links").field("links", &self.links).finish_non_exhaustive()
    }
}

impl Links {
    pub(crate) fn new(
        messages: Arc<Messages>,
        names: Rc<Names>,
        place: Rc<Cell<Place>>,
        commands: Commands,
    ) -> std::io::Result<Links> {
        let calls = Calls::new(names.place);
        Ok(Links {
            messages,
            names,
            place,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            links: Vec::new(),
            room: Room::default(),
            rings: Rings::default(),
            rings_wait: false,
            by_node: HashMap::default(),
            calls,
            ways: Vec::new(),
            refused: Vec::new(),
            bell_is_watched: false,
            sockets: 0,
            wakeful: several_processors().then(Wakeful::default),
            events: Vec::with_capacity(EVENTS),
            serving: Tokens::default(),
            published: HashMap::new(),
            is_set_up: true,
            early: Vec::new(),
            touched: Vec::new(),
            commands,
            turns: 0,
            looked: 0,
            asked: 0,
            retry_first: 0,
            any_stalled: false,
            drained: Vec::new(),
            parent_waiters: Vec::new(),
            parent_is_done: false,
        })
    }

    /// The link's output is written at the end of this turn.
    #[inline]
    pub(crate) fn touch(&mut self, link: u32) {
        let one = &mut self.links[link as usize];
        if !one.is_touched {
            one.is_touched = true;
            self.touched.push(link);
        }
    }

    /// Sends a frame without a payload, or with a small one.
    pub(crate) fn push(&mut self, link: u32, head: Head, payload: &[u8]) {
        let one = &mut self.links[link as usize];
        if matches!(one.state, State::Ended(_)) {
            return;
        }
        let appended = one.outgoing.append(head, |out| out.extend_from_slice(payload));
        debug_assert!(appended.is_ok(), "a small frame");
        self.touch(link);
    }

    /// Writes what was gathered.
    fn flush(&mut self, shard: &Shard) {
        // While links are ended here, others may be touched.
        while let Some(link) = self.touched.pop() {
            self.links[link as usize].is_touched = false;
            if self.write(link).is_err() {
                self.broken(link, shard);
            }
        }
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, at: u32) -> Result<(), Errno> {
        let link = &mut self.links[at as usize];
        let Some(socket) = &link.socket else { return Ok(()) };
        let mut pair = self.rings.get(at);
        while !link.outgoing.is_empty() {
            let (mut bytes, descriptors) = link.outgoing.waiting();
            let by_socket = pair.as_ref().and_then(|pair| pair.by_socket());
            let sent = match (descriptors, by_socket) {
                (Some(descriptors), Some(0)) => match send_with(socket, &[0], descriptors) {
                    Ok(_) => {
                        link.outgoing.carried();
                        continue;
                    }
                    Err(error) => {
                        // The socket has no room; that the ring has is of no use.
                        if let Some(pair) = &mut pair {
                            pair.waits_for_room(false);
                        }
                        Err(error)
                    }
                },
                (None, Some(0)) => {
                    let Some(pair) = &mut pair else { break };
                    let count = pair.write(bytes)?;
                    let all = count == bytes.len();
                    link.outgoing.wrote(count);
                    if all {
                        continue;
                    }
                    break;
                }
                (descriptors, by_socket) => {
                    bytes = &bytes[..by_socket.unwrap_or(bytes.len()).min(bytes.len())];
                    match descriptors {
                        None => rustix::net::send(socket, bytes, SendFlags::NOSIGNAL),
                        Some(descriptors) => send_with(socket, bytes, descriptors),
                    }
                }
            };
            match sent {
                Ok(count) => {
                    link.outgoing.wrote(count);
                    if let Some(pair) = &mut pair {
                        pair.went_by_socket(count);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.set_full(at, true),
                Err(error) => return Err(error),
            }
        }
        if link.is_full { self.set_full(at, false) } else { Ok(()) }
    }

    #[cold]
    fn set_full(&mut self, at: u32, is_full: bool) -> Result<(), Errno> {
        let before = std::mem::replace(&mut self.links[at as usize].is_full, is_full);
        if before == is_full { Ok(()) } else { self.listen(at) }
    }

    /// Tells the kernel what is wanted of a link: what comes, and, if it is full, room.
    pub(crate) fn listen(&self, at: u32) -> Result<(), Errno> {
        let link = &self.links[at as usize];
        let Some(socket) = &link.socket else { return Ok(()) };
        let mut flags = epoll::EventFlags::empty();
        if link.stalled.is_none() {
            flags |= epoll::EventFlags::IN;
        }
        if link.is_full {
            flags |= epoll::EventFlags::OUT;
        }
        epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(u64::from(at)), flags)
    }

    /// Takes what has come on the links that the last sleep has named, or those that have something
    /// now.
    fn look(&mut self, shard: &Shard) -> Turn {
        let mut events = std::mem::take(&mut self.events);
        let spared = std::mem::take(&mut self.rings_wait) || self.rings.are_all(self.sockets);
        if events.is_empty() && (!spared || self.asks_kernel()) {
            self.wait(&mut events, Some(Duration::ZERO));
            self.asked = self.turns;
        }
        self.looked = self.turns;
        let mut found = events.len();
        for event in events.drain(..) {
            let (what, flags) = (event.data.u64(), event.flags);
            let link = u32::try_from(what & (PROCESS - 1)).unwrap_or(u32::MAX);
            if what >= PROCESS {
                self.look_otherwise(what, link, shard);
                continue;
            }
            if flags.contains(epoll::EventFlags::OUT) {
                self.touch(link);
            }
            if flags
                .intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR)
            {
                self.receive(link, shard);
            }
        }
        self.events = events;
        if !self.rings.is_empty() {
            found += self.look_at_rings(shard);
        }
        if found > 0 { Turn::Busy } else { Turn::Idle }
    }

    /// Whether it is time again to ask the kernel, although rings have something. If all that
    /// comes does by rings, sockets only say that a peer has ended.
    fn asks_kernel(&self) -> bool {
        let all = self.rings.are_all(self.sockets);
        let turns = if all { WAKEFUL_TURNS } else { BUSY_TURNS };
        self.turns.wrapping_sub(self.asked) >= turns
    }

    #[cold]
    fn watch_bell(&mut self, bell: &Doorbell) -> bool {
        let data = epoll::EventData::new_u64(BELL);
        let watched = epoll::add(&self.epoll, bell.descriptor(), data, epoll::EventFlags::IN);
        self.bell_is_watched = watched.is_ok();
        self.bell_is_watched
    }

    /// What is no link's socket.
    #[cold]
    fn look_otherwise(&mut self, what: u64, link: u32, shard: &Shard) {
        match what {
            BELL => shard.heard(),
            // All rings are looked at anyway.
            RINGS => {}
            _ => self.process_ended(link, shard),
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>, at_most: Option<Duration>) {
        let timeout = at_most.and_then(|at_most| rustix::event::Timespec::try_from(at_most).ok());
        let buffer = rustix::buffer::spare_capacity(events);
        // An interrupted sleep is a short one.
        let _ = epoll::wait(&self.epoll, buffer, timeout.as_ref());
    }

    /// Looks for a while, if that has proved better than to be woken. Who has many peers does not:
    /// what one of them sends soon needs the processor to be sent.
    #[cold]
    fn look_awake(&mut self, events: &mut Vec<epoll::Event>) {
        let start = clock::instant();
        let mut time = Duration::ZERO;
        let mut looks = 0u32;
        while events.is_empty() && !self.rings_wait && time < LOOKS_FOR {
            // Memory is looked at for nothing, and the kernel is asked now and then.
            if self.rings.is_empty() || looks.is_multiple_of(RING_LOOKS) {
                self.wait(events, Some(Duration::ZERO));
            }
            looks += 1;
            self.rings_wait = !self.rings.is_empty() && self.any_ring_waits();
            std::hint::spin_loop();
            time = start.elapsed();
        }
        if let Some(wakeful) = &mut self.wakeful {
            if time < LOOKS_FOR { wakeful.came() } else { wakeful.missed(time) }
        }
    }

    /// How a message gets to an actor over there.
    #[inline]
    fn way(&mut self, to: Far, what: &'static What) -> Result<Way, AskError> {
        let at = usize::try_from(to.actor).unwrap_or(usize::MAX);
        if let Some(Some(way)) = self.ways.get(at)
            && way.what == what.at()
        {
            return Ok(*way);
        }
        self.find_way(to, what)
    }

    #[cold]
    fn find_way(&mut self, to: Far, what: &'static What) -> Result<Way, AskError> {
        let known = self.names.known(to).ok_or(AskError::Stopped)?;
        let message = self.messages.number(known.of_type, what.type_id());
        let message = message.ok_or(AskError::Unregistered)?;
        let encode = self.messages.get(message).ok_or(AskError::Unregistered)?.encode;
        let link = self.way_to(known.node, known.via);
        let way = Way { what: what.at(), link, message, actor: known.actor, encode };
        let at = usize::try_from(to.actor).unwrap_or(usize::MAX);
        if at >= self.ways.len() {
            // `names` knows it, so it is one of a dense few.
            self.ways.resize_with(at + 1, || None);
        }
        self.ways[at] = Some(way);
        Ok(way)
    }

    /// Wakes those who wait to send, when what waits to be written is half of what may.
    #[cold]
    fn tell_room(&mut self, shard: &Shard) {
        let (links, refused) = (&self.links, &mut self.refused);
        refused.retain(|(link, slot)| {
            let waits = links[*link as usize].outgoing.len() > WAITING_MAX / 2;
            if !waits && let Some(mailbox) = shard.mailbox_of(*slot) {
                mailbox.wake_waiting();
            }
            waits
        });
    }

    #[cold]
    fn take_commands(&mut self, shard: &Shard) {
        while let Some(command) = self.commands.next() {
            self.perform(command, shard);
        }
    }

    /// Nobody will get an answer from what could not be sent; a tell is a dead letter.
    #[cold]
    fn refuse(&self, parcel: &mut Parcel, why: AskError, shard: &Shard) {
        let parcel = parcel.take_whole();
        if parcel.when.is_tell() {
            count(&shard.shared.counts.dead_letters);
        }
        shard.fail(parcel.asker, parcel.when, why);
    }
}

impl Edge for Links {
    #[inline]
    fn send(&mut self, to: Far, parcel: &mut Parcel, shard: &Shard) -> Result<(), NotSent> {
        let way = match self.way(to, parcel.what()) {
            Ok(way) => way,
            Err(why) => {
                self.refuse(parcel, why, shard);
                return Ok(());
            }
        };
        let at = way.link;
        let link = &mut self.links[at as usize];
        if let State::Ended(Ended { code, signal }) = link.state {
            self.refuse(parcel, AskError::Lost { code, signal }, shard);
            return Ok(());
        }
        if link.outgoing.len() > WAITING_MAX {
            if !self.refused.contains(&(at, parcel.to)) {
                self.refused.push((at, parcel.to));
            }
            return Err(NotSent::Full);
        }
        let along = Along { names: &self.names, shard, link: at };
        let mut failed = Ok(());
        let (asker, when) = (parcel.asker, parcel.when);
        let outgoing = &mut link.outgoing;
        let token = (!when.is_tell()).then(|| self.calls.token((asker, when), at, way.message));
        // What encodes a message may be a user's, and panic: nothing of it has gone then.
        let appended = catch_unwind(AssertUnwindSafe(|| {
            let Some(token) = token else {
                return outgoing.append_tell(way.message, way.actor, |out| {
                    failed = (way.encode)(parcel, &mut Encoder::new(out, Some(along)));
                });
            };
            let left = match when.deadline() {
                NEVER => NO_LIMIT,
                deadline => deadline.saturating_sub(shard.now()),
            };
            let head = Head { kind: Kind::Ask, message: way.message, to: way.actor };
            outgoing.append_ask(head, token, left, |out| {
                failed = (way.encode)(parcel, &mut Encoder::new(out, Some(along)));
            })
        }));
        debug_assert!(failed.is_ok(), "a parcel is of the type that it was looked up by");
        let why = match (appended, failed) {
            (Ok(Ok(())), Ok(())) => {
                if let Some(token) = token {
                    self.calls.sent((asker, when), token, at, way.message);
                }
                self.touch(at);
                return Ok(());
            }
            // The message is larger than a frame may be.
            (Ok(Err(_)), _) => AskError::Full,
            (Err(panic), _) => AskError::Panicked(PanicText::of(&*panic)),
            (Ok(Ok(())), Err(why)) => why,
        };
        if let Some(token) = token {
            self.calls.unsent(token);
        }
        count(&shard.shared.counts.refused);
        shard.fail(asker, when, why);
        Ok(())
    }

    fn takes_many(&mut self, to: Far, what: &'static What) -> bool {
        self.way(to, what).is_ok_and(|way| {
            let link = &self.links[way.link as usize];
            !matches!(link.state, State::Ended(_)) && link.outgoing.len() <= WAITING_MAX
        })
    }

    fn send_many(&mut self, to: Far, told: &Gathered, shard: &Shard) {
        let lost = |count| count_many(&shard.shared.counts.dead_letters, count);
        let way = self.way(to, told.what());
        let entry = way.ok().and_then(|way| Some((way, self.messages.get(way.message)?)));
        let Some((way, entry)) = entry else { return lost(told.count()) };
        let link = &mut self.links[way.link as usize];
        if matches!(link.state, State::Ended(_)) {
            return lost(told.count());
        }
        let along = Along { names: &self.names, shard, link: way.link };
        let failed = (entry.encode_told)(told, &mut link.outgoing, way.message, way.actor, along);
        count_many(&shard.shared.counts.refused, failed);
        self.touch(way.link);
    }

    fn answer(&mut self, parcel: &mut Parcel, shard: &Shard) {
        let token = u64::from(parcel.to.generation) << 32 | u64::from(parcel.to.index);
        let Some(Serving { link: at, token: theirs, entry, .. }) = self.serving.close(token) else {
            return;
        };
        let link = &mut self.links[at as usize];
        link.serving.remove(theirs);
        if matches!(link.state, State::Ended(_)) {
            return;
        }
        let Some(encode) = self.messages.get(entry).map(|entry| entry.encode_answer) else {
            return;
        };
        if parcel.kind() == Content::Failure {
            let why = parcel.take::<AskError>().unwrap_or(AskError::Unanswered);
            return self.fail_theirs(at, theirs, why);
        }
        let along = Along { names: &self.names, shard, link: at };
        let mut encoded = Ok(());
        let outgoing = &mut link.outgoing;
        // What encodes it may be a user's.
        let appended = catch_unwind(AssertUnwindSafe(|| {
            outgoing.append(Head::new(Kind::Answer, theirs), |out| {
                encoded = encode(parcel, &mut Encoder::new(out, Some(along)));
            })
        }));
        debug_assert!(encoded.is_ok(), "an answer is of its message's answer type");
        match appended {
            Ok(Ok(())) => self.touch(at),
            // The answer is larger than a frame may be.
            Ok(Err(_)) => self.fail_theirs(at, theirs, AskError::Unanswered),
            Err(panic) => {
                count(&shard.shared.counts.panics);
                self.fail_theirs(at, theirs, AskError::Panicked(PanicText::of(&*panic)));
            }
        }
    }

    fn cancel(&mut self, slot: Slot, place: Place, _: &Shard) {
        if let Some((token, link)) = self.calls.cancel(slot, place) {
            self.push(link, Head::new(Kind::Cancel, token), &[]);
        }
    }

    fn turn(&mut self, shard: &Shard) -> Turn {
        if self.commands.any_due() {
            self.take_commands(shard);
        }
        self.turns = self.turns.wrapping_add(1);
        if self.any_stalled {
            self.retry_stalled(shard);
        }
        self.flush(shard);
        // One that has nothing to do is about to look in its sleep, unless threads keep it awake.
        let turns = if shard.is_idle() { WAKEFUL_TURNS } else { BUSY_TURNS };
        let looks = self.turns.wrapping_sub(self.looked) >= turns;
        let turn = if looks { self.look(shard) } else { Turn::Idle };
        self.finish_draining(shard);
        self.flush(shard);
        if !self.refused.is_empty() {
            self.tell_room(shard);
        }
        turn
    }

    fn sleep(&mut self, bell: &Doorbell, at_most: Option<Duration>) {
        if !self.bell_is_watched && !self.watch_bell(bell) {
            // Without it the shard would not wake: do not sleep, look.
            return;
        }
        let mut events = std::mem::take(&mut self.events);
        if self.sockets <= FEW && self.wakeful.as_mut().is_some_and(Wakeful::looks) {
            self.look_awake(&mut events);
        }
        if events.is_empty() && !self.rings_wait {
            self.rings.fall_asleep();
            self.rings_wait = !self.rings.is_empty() && self.any_ring_waits();
            if !self.rings_wait {
                self.wait(&mut events, at_most);
            }
            self.rings.wake();
        }
        self.events = events;
    }

    fn woken(&mut self, shard: &Shard) {
        if !self.events.is_empty() || self.rings_wait {
            self.look(shard);
        }
    }

    fn drain(&mut self, shard: &Shard) {
        self.end_all(shard);
    }
}

#[cold]
fn send_with(socket: &OwnedFd, bytes: &[u8], descriptors: &[OwnedFd]) -> Result<usize, Errno> {
    let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
    hob_os::uds::send(socket, bytes, &descriptors)
}

fn several_processors() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}
