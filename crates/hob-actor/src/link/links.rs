//! All links of a system, as the shard that owns them sees them: what goes out, and when.
//!
//! Invariants: only the shard's thread touches them; an open ask is failed when its link ends; a
//! frame is written in the turn in which it was made, unless the socket is full.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::buffers::{Outgoing, Room, Tail};
use super::frame::{Head, Kind, NO_LIMIT};
use super::names::{Along, Names};
use super::process::{Ended, Process, Program};
use super::table::{Asker, HelloError, Messages};
use super::tokens::{Mixed, Tokens};
use super::wire::{Encoder, Wire};
use crate::error::AskError;
use crate::parcel::{Kind as Content, Parcel, Slot};
use crate::remote::{Edge, Far, Turn};
use crate::reply::Reply;
use crate::shard::Shard;
use crate::when::{NEVER, Place};

/// What an epoll event is about: a link's socket, or, with this bit, its process.
pub(crate) const PROCESS: u64 = 1 << 32;
/// How many links are looked at in one turn: what they bring has to be kept somewhere.
pub(crate) const EVENTS: usize = 8;
/// A busy shard looks at its links in one of so many turns.
const BUSY_TURNS: u32 = 4;
/// How much may wait to be written to one peer: more is refused.
pub(crate) const WAITING_MAX: usize = 64 << 20;

/// Why there is no peer, or no such actor of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The worker process could not be started.
    #[error("cannot start a worker process: {0}")]
    Start(String),
    /// The two programs do not agree on what they exchange.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// The peer has ended.
    #[error("the peer has ended: {0:?}")]
    Ended(Ended),
    /// The peer has published nothing under this tag.
    #[error("the peer has no actor with this tag")]
    Tag,
    /// The peer has published an actor of another type under this tag, or does not know the type.
    #[error("the actor with this tag is of another type")]
    Type,
    /// This process was not started as a worker.
    #[error("this process was not started as a worker")]
    NoParent,
    /// The system ends.
    #[error("the system ends")]
    Stopped,
}

/// Where a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Somebody was asked for a socket to that node.
    Awaited,
    /// The other end has not said hello yet.
    Greeting,
    /// Messages go both ways.
    Open,
    /// It has ended.
    Ended(Ended),
}

/// Who the other end is to us.
#[derive(Debug)]
pub(crate) enum Whose {
    /// A worker process that we have started.
    Worker(Process),
    /// The process that has started us.
    Parent,
    /// A peer that another one introduced.
    Sibling,
}

/// To be called with a link's node when it is open, or why it never will be.
pub(crate) type Ready = Reply<Result<u64, PeerError>>;
/// To be called with the name of an actor.
pub(crate) type Found = Box<dyn FnOnce(Result<(u64, u64), PeerError>, Along<'_>)>;

/// One link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) state: State,
    pub(crate) whose: Whose,
    pub(crate) node: u64,
    pub(crate) tail: Tail,
    pub(crate) outgoing: Outgoing<OwnedFd>,
    /// Descriptors that came and whose frame is still to be looked at.
    pub(crate) descriptors: VecDeque<OwnedFd>,
    /// Which of our messages the other end's numbers are.
    pub(crate) numbers: Vec<Option<u16>>,
    /// Asks of the other end, by its tokens.
    pub(crate) serving: HashMap<u64, u64, Mixed>,
    pub(crate) ready: Vec<Ready>,
    /// The socket is full: the kernel is asked to say when it is not.
    pub(crate) is_full: bool,
    /// There is something to write, and the link is in `touched`.
    pub(crate) is_touched: bool,
    /// A message that its actor's mailbox did not take: nothing else is taken off this link until
    /// it does, so that the sender slows down.
    pub(crate) stalled: Option<Parcel>,
    /// The other end sends nothing new.
    pub(crate) drains: bool,
}

/// What was asked of a peer and has no answer yet.
pub(crate) enum Call {
    Ask { link: u32, asker: Asker, entry: u16 },
    Resolve { link: u32, found: Found },
}

impl Call {
    pub(crate) fn link(&self) -> u32 {
        match self {
            Call::Ask { link, .. } | Call::Resolve { link, .. } => *link,
        }
    }
}

/// What a peer has asked and has no answer yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    pub(crate) link: u32,
    pub(crate) token: u64,
    pub(crate) entry: u16,
}

/// What other threads want of the links.
pub(crate) enum Command {
    Spawn(Program, Ready),
    Join(OwnedFd, Ready),
    Resolve {
        node: u64,
        actor: std::any::TypeId,
        tag: String,
        found: Found2,
    },
    Publish {
        tag: String,
        actor: std::any::TypeId,
        name: NameOf,
    },
    /// Answered when all worker processes have finished what is open, and have ended.
    Drain(Reply<()>),
    /// Answered when whoever started this process wants it to end.
    WaitForParent(Reply<()>),
    /// Which process is that peer?
    Process(u64, Reply<Option<u32>>),
}

/// As [`Found`], from another thread.
pub(crate) type Found2 = Box<dyn FnOnce(Result<(u64, u64), PeerError>, Along<'_>) + Send>;
/// Names an address of ours.
pub(crate) type NameOf = Box<dyn FnOnce(&Names) -> (u64, u64) + Send>;
/// Commands that wait, and how many of them are due: a command takes its turn behind what its
/// thread has sent to the shard before, such as the actor that it is about to publish.
#[derive(Default)]
pub(crate) struct Waiting {
    commands: Mutex<VecDeque<Command>>,
    due: AtomicUsize,
}

/// The same, shared with all threads.
pub(crate) type Commands = Arc<Waiting>;

impl Waiting {
    pub(crate) fn put(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
    }

    /// One more is due.
    pub(crate) fn is_due(&self) {
        self.due.fetch_add(1, Ordering::Release);
    }

    /// All of them: nobody will perform them any more.
    pub(crate) fn take_all(&self) -> VecDeque<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next(&self) -> Option<Command> {
        // Only the links' thread takes any.
        if self.due.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.due.fetch_sub(1, Ordering::Relaxed);
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The links.
pub(crate) struct Links {
    pub(crate) messages: Arc<Messages>,
    pub(crate) names: Names,
    /// The place that answers for peers go to; known once this is attached.
    pub(crate) place: Rc<Cell<Place>>,
    pub(crate) epoll: OwnedFd,
    pub(crate) links: Vec<Link>,
    pub(crate) room: Room,
    pub(crate) by_node: HashMap<u64, u32, Mixed>,
    pub(crate) calls: Tokens<Call>,
    pub(crate) calls_by: HashMap<(Slot, Place), u64, Mixed>,
    pub(crate) serving: Tokens<Serving>,
    pub(crate) published: HashMap<String, (std::any::TypeId, (u64, u64))>,
    /// False in a worker process until it waits for its parent.
    pub(crate) is_set_up: bool,
    /// Which tags were asked for before that.
    pub(crate) early: Vec<(u32, Head, String)>,
    touched: Vec<u32>,
    commands: Commands,
    /// The shard has slept since the links were looked at.
    slept: Cell<bool>,
    turns: u32,
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
        names: Names,
        place: Rc<Cell<Place>>,
        commands: Commands,
    ) -> std::io::Result<Links> {
        Ok(Links {
            messages,
            names,
            place,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            links: Vec::new(),
            room: Room::default(),
            by_node: HashMap::default(),
            calls: Tokens::default(),
            calls_by: HashMap::default(),
            serving: Tokens::default(),
            published: HashMap::new(),
            is_set_up: true,
            early: Vec::new(),
            touched: Vec::new(),
            commands,
            slept: Cell::new(true),
            turns: 0,
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
        while !link.outgoing.is_empty() {
            let (bytes, descriptor) = link.outgoing.waiting();
            let sent = match descriptor {
                None => rustix::net::send(socket, bytes, SendFlags::NOSIGNAL),
                Some(descriptor) => hob_os::uds::send(socket, bytes, &[descriptor.as_fd()]),
            };
            match sent {
                Ok(count) => link.outgoing.wrote(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !link.is_full {
                        link.is_full = true;
                        self.listen(at)?;
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        if link.is_full {
            link.is_full = false;
            self.listen(at)?;
        }
        Ok(())
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

    /// Looks which links have something, and takes it.
    fn look(&mut self, shard: &Shard) -> Turn {
        let mut events = [const { None }; EVENTS];
        let found = {
            let mut space = Vec::with_capacity(EVENTS);
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            let buffer = rustix::buffer::spare_capacity(&mut space);
            let count = epoll::wait(&self.epoll, buffer, Some(&now)).unwrap_or(0);
            for (to, event) in events.iter_mut().zip(&space) {
                *to = Some((event.data.u64(), event.flags));
            }
            count
        };
        for (what, flags) in events.into_iter().flatten() {
            let link = u32::try_from(what & (PROCESS - 1)).unwrap_or(u32::MAX);
            if what & PROCESS != 0 {
                self.process_ended(link, shard);
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
        if found > 0 { Turn::Busy } else { Turn::Idle }
    }

    fn take_commands(&mut self, shard: &Shard) {
        while let Some(command) = self.commands.next() {
            self.perform(command, shard);
        }
    }

    /// Nobody will get an answer from what could not be sent.
    fn refuse(&self, parcel: &Parcel, why: AskError, shard: &Shard) {
        // A refused tell has nobody to be told; it is counted where it is refused.
        shard.fail(parcel.asker, parcel.when, why);
    }
}

impl Edge for Links {
    #[inline]
    fn send(&mut self, to: Far, parcel: Parcel, shard: &Shard) {
        let Some(known) = self.names.known(to) else {
            return self.refuse(&parcel, AskError::Stopped, shard);
        };
        let Some(number) = self.messages.number(known.of_type, parcel.type_id()) else {
            return self.refuse(&parcel, AskError::Unregistered, shard);
        };
        let at = self.way_to(known.node, known.via);
        let link = &mut self.links[at as usize];
        if let State::Ended(Ended { code, signal }) = link.state {
            return self.refuse(&parcel, AskError::Lost { code, signal }, shard);
        }
        if link.outgoing.len() > WAITING_MAX {
            return self.refuse(&parcel, AskError::Full, shard);
        }
        let Some(encode) = self.messages.get(number).map(|entry| entry.encode) else { return };
        let along = Along { names: &self.names, shard, link: at };
        let mut failed = Ok(());
        let (asker, when) = (parcel.asker, parcel.when);
        let appended = if when.is_tell() {
            let head = Head { kind: Kind::Tell, message: number, to: known.actor };
            link.outgoing.append(head, |out| {
                failed = encode(parcel, &mut Encoder::new(out, Some(along)));
            })
        } else {
            let token =
                self.calls.open(Call::Ask { link: at, asker: (asker, when), entry: number });
            self.calls_by.insert((asker, when.place()), token);
            let left = match when.deadline() {
                NEVER => NO_LIMIT,
                deadline => deadline.saturating_sub(shard.now()),
            };
            let head = Head { kind: Kind::Ask, message: number, to: known.actor };
            let appended = link.outgoing.append(head, |out| {
                out.extend_from_slice(&token.to_le_bytes());
                out.extend_from_slice(&left.to_le_bytes());
                failed = encode(parcel, &mut Encoder::new(out, Some(along)));
            });
            if appended.is_err() {
                self.calls.close(token);
                self.calls_by.remove(&(asker, when.place()));
            }
            appended
        };
        match (appended, failed) {
            (Ok(()), Ok(())) => self.touch(at),
            // The message is larger than a frame may be.
            (Err(_), _) => shard.fail(asker, when, AskError::Full),
            (Ok(()), Err(why)) => {
                debug_assert!(false, "a parcel is of the type that it was looked up by");
                shard.fail(asker, when, why);
            }
        }
    }

    fn answer(&mut self, parcel: Parcel, shard: &Shard) {
        let token = u64::from(parcel.to.generation) << 32 | u64::from(parcel.to.index);
        let Some(Serving { link: at, token: theirs, entry }) = self.serving.close(token) else {
            return;
        };
        let link = &mut self.links[at as usize];
        link.serving.remove(&theirs);
        if matches!(link.state, State::Ended(_)) {
            return;
        }
        let Some(encode) = self.messages.get(entry).map(|entry| entry.encode_answer) else {
            return;
        };
        if parcel.kind() == Content::Failure {
            let why = parcel.open::<AskError>().unwrap_or(AskError::Unanswered);
            return self.fail_theirs(at, theirs, why);
        }
        let along = Along { names: &self.names, shard, link: at };
        let mut encoded = Ok(());
        let appended = link.outgoing.append(Head::new(Kind::Answer, theirs), |out| {
            encoded = encode(parcel, &mut Encoder::new(out, Some(along)));
        });
        debug_assert!(encoded.is_ok(), "an answer is of its message's answer type");
        match appended {
            Ok(()) => self.touch(at),
            // The answer is larger than a frame may be.
            Err(_) => self.fail_theirs(at, theirs, AskError::Unanswered),
        }
    }

    fn cancel(&mut self, slot: Slot, place: Place, _: &Shard) {
        let Some(token) = self.calls_by.remove(&(slot, place)) else { return };
        if let Some(call) = self.calls.close(token) {
            self.push(call.link(), Head::new(Kind::Cancel, token), &[]);
        }
    }

    fn turn(&mut self, shard: &Shard) -> Turn {
        self.take_commands(shard);
        self.retry_stalled(shard);
        self.flush(shard);
        self.turns = self.turns.wrapping_add(1);
        let looks = self.slept.replace(false) || self.turns.is_multiple_of(BUSY_TURNS);
        let turn = if looks { self.look(shard) } else { Turn::Idle };
        self.finish_draining(shard);
        self.flush(shard);
        turn
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.slept.set(true);
        vec![self.epoll.as_fd()]
    }

    fn drain(&mut self, shard: &Shard) {
        self.end_all(shard);
    }
}

/// The payload of `Resolve` and `Resolved`.
pub(crate) fn named((node, actor): (u64, u64)) -> Vec<u8> {
    let mut bytes = Vec::new();
    (node, actor).encode(&mut Encoder::new(&mut bytes, None));
    bytes
}
