//! How links begin, how actors are found over them, and how they end.
//!
//! ```text
//!  introduce ──▶ Awaited ──socket──▶ Greeting ──hello──▶ Open ──▶ Ended(exit)
//!  spawn, join ─────────────────────────▲  └──mismatch──────────────▲
//! ```
//! A worker's link has ended when its process has, and with that exit; what it still sent before
//! is taken first. Any other link has ended when its socket has.

use std::any::TypeId;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::event::epoll;

use super::buffers::{Outgoing, Tail};
use super::calls::Call;
use super::commands::{Command, Found2, PeerError, Ready};
use super::frame::{Head, Kind};
use super::links::{Links, PROCESS};
use super::names::{Along, Name};
use super::one::{Link, State, Whose};
use super::process::{Ended, Process, Program};
use super::receive::Nonsense;
use super::tokens::ByToken;
use super::wire::{Decoder, Encoder, Wire};
use crate::api::error::AskError;
use crate::shard::Shard;

impl Links {
    pub(super) fn perform(&mut self, command: Command, shard: &Shard) {
        match command {
            Command::Spawn(program, ready) => self.spawn(&program, ready),
            Command::Join(socket, ready) => {
                self.is_set_up = false;
                let at = self.add(Whose::Parent, 0, Some(socket));
                self.links[at as usize].ready.push(ready);
            }
            Command::Resolve { node, actor, tag, found } => {
                self.resolve(node, actor, tag, found, shard);
            }
            Command::Publish { tag, actor, name } => {
                let name = name(&self.names);
                self.published.insert(tag, (actor, name));
                self.answer_early();
            }
            Command::Drain(done) => {
                self.drained.push(done);
                for at in 0..u32::try_from(self.links.len()).unwrap_or(u32::MAX) {
                    if matches!(self.links[at as usize].whose, Whose::Worker(_)) {
                        self.push(at, Head::new(Kind::Drain, 0), &[]);
                    }
                }
            }
            Command::WaitForParent(done) => {
                self.is_set_up = true;
                self.answer_early();
                if self.parent_is_done { done.send(()) } else { self.parent_waiters.push(done) }
            }
            Command::Process(node, reply) => {
                let link = self.by_node.get(&node).map(|at| &self.links[*at as usize]);
                reply.send(link.and_then(|link| match &link.whose {
                    Whose::Worker(process) => Some(process.id()),
                    Whose::Parent | Whose::Sibling => None,
                }));
            }
        }
    }

    fn spawn(&mut self, program: &Program, ready: Ready) {
        let started = (|| -> std::io::Result<(Process, OwnedFd)> {
            let (ours, theirs) = hob_os::uds::pair()?;
            Ok((Process::start(program, theirs)?, ours))
        })();
        match started {
            Ok((process, socket)) => {
                let at = self.add(Whose::Worker(process), 0, Some(socket));
                if program.shares_memory {
                    self.offer_rings(at);
                }
                self.links[at as usize].ready.push(ready);
            }
            Err(error) => {
                let text = format!("{}: {error}", program.path.display());
                ready.send(Err(PeerError::Start(text)));
            }
        }
    }

    /// One more link; our hello is the first thing on it.
    pub(super) fn add(&mut self, whose: Whose, node: u64, socket: Option<OwnedFd>) -> u32 {
        let at = u32::try_from(self.links.len()).expect("memory ends before 4 billion links");
        self.links.push(Link {
            socket: None,
            state: State::Awaited,
            whose,
            node,
            tail: Tail::default(),
            outgoing: Outgoing::default(),
            descriptors: VecDeque::new(),
            numbers: Vec::new(),
            serving: ByToken::default(),
            ready: Vec::new(),
            is_full: false,
            is_touched: false,
            stalled: None,
            drains: false,
        });
        let hello = self.messages.hello(self.names.node);
        self.push(at, Head::new(Kind::Hello, 0), &hello);
        if let Some(socket) = socket {
            self.plug(at, socket);
        }
        at
    }

    /// A link gets its socket.
    fn plug(&mut self, at: u32, socket: OwnedFd) {
        let data = epoll::EventData::new_u64(u64::from(at));
        let mut watched = epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN);
        let link = &mut self.links[at as usize];
        if let Whose::Worker(process) = &link.whose {
            let data = epoll::EventData::new_u64(u64::from(at) | PROCESS);
            let pidfd = process.pidfd();
            watched = watched.and(epoll::add(&self.epoll, pidfd, data, epoll::EventFlags::IN));
        }
        link.state = State::Greeting;
        // Without the kernel's notice nothing would ever come: the peer sees the link's end.
        link.socket = watched.is_ok().then_some(socket);
        self.sockets += usize::from(watched.is_ok());
        self.touch(at);
    }

    pub(super) fn take_hello(&mut self, at: u32, payload: &[u8]) -> Result<(), Nonsense> {
        let agreed = self.messages.agree(payload);
        let link = &mut self.links[at as usize];
        let ready = std::mem::take(&mut link.ready);
        match agreed {
            Ok((node, numbers)) => {
                link.node = node;
                link.numbers = numbers;
                link.state = State::Open;
                self.by_node.insert(node, at);
                for ready in ready {
                    ready.send(Ok(node));
                }
                Ok(())
            }
            Err(error) => {
                for ready in ready {
                    ready.send(Err(PeerError::Hello(error.clone())));
                }
                Err(Nonsense)
            }
        }
    }

    /// The link to a node; if there is none yet, `via` is asked to introduce us.
    #[inline]
    pub(super) fn way_to(&mut self, node: u64, via: u32) -> u32 {
        if let Some(at) = self.by_node.get(&node) {
            return *at;
        }
        let at = self.add(Whose::Sibling, node, None);
        self.by_node.insert(node, at);
        self.push(via, Head::new(Kind::Introduce, node), &[]);
        if matches!(self.links[via as usize].state, State::Ended(_)) {
            // Nobody is left who could do it.
            self.links[at as usize].state = State::Ended(Ended::default());
        }
        at
    }

    /// A peer wants a link to a node that it has heard of from us.
    pub(super) fn introduce(&mut self, at: u32, node: u64) {
        let other = self.by_node.get(&node).copied();
        let open = other.filter(|other| self.links[*other as usize].state == State::Open);
        let Some((other, (left, right))) = open.zip(hob_os::uds::pair().ok()) else {
            return self.push(at, Head::new(Kind::NoWay, node), &[]);
        };
        let asking = self.links[at as usize].node;
        let offers = u16::from(self.rings.get(at).is_some() && self.rings.get(other).is_some());
        for (link, node, socket, offers) in [(at, node, left, offers), (other, asking, right, 0)] {
            let head = Head { kind: Kind::Introduced, message: offers, to: node };
            let appended = self.links[link as usize].outgoing.append_with(head, vec![socket]);
            debug_assert!(appended.is_ok(), "a header");
            self.touch(link);
        }
    }

    pub(super) fn introduced(&mut self, node: u64, socket: OwnedFd, offers: bool) {
        let at = match self.by_node.get(&node).copied() {
            Some(at) if self.links[at as usize].state == State::Awaited => {
                self.plug(at, socket);
                at
            }
            // Both sides asked: the first socket is the one, for both.
            Some(_) => return,
            None => {
                let at = self.add(Whose::Sibling, node, Some(socket));
                self.by_node.insert(node, at);
                at
            }
        };
        if offers {
            self.offer_rings(at);
        }
    }

    pub(super) fn no_way(&mut self, node: u64, shard: &Shard) {
        if let Some(at) = self.by_node.get(&node).copied()
            && self.links[at as usize].state == State::Awaited
        {
            self.end(at, Ended::default(), shard);
        }
    }

    fn resolve(&mut self, node: u64, actor: TypeId, tag: String, found: Found2, shard: &Shard) {
        let at = self.by_node.get(&node).copied();
        let open = at.filter(|at| self.links[*at as usize].state == State::Open);
        let (Some(at), Some(number)) = (open, self.messages.any_of(actor)) else {
            let ended = at.and_then(|at| match self.links[at as usize].state {
                State::Ended(ended) => Some(PeerError::Ended(ended)),
                State::Awaited | State::Greeting | State::Open => None,
            });
            let along = Along { names: &self.names, shard, link: at.unwrap_or(0) };
            return found(Err(ended.unwrap_or(PeerError::Type)), along);
        };
        let token = self.calls.resolve(at, found);
        let mut payload = Vec::new();
        tag.encode(&mut Encoder::new(&mut payload, None));
        let head = Head { kind: Kind::Resolve, message: number, to: token };
        self.push(at, head, &payload);
    }

    pub(super) fn take_resolve(
        &mut self,
        at: u32,
        head: Head,
        payload: &[u8],
    ) -> Result<(), Nonsense> {
        let tag = Decoder::whole::<String>(payload, None).map_err(|_| Nonsense)?;
        self.answer_resolve(at, head, tag);
        Ok(())
    }

    /// Says which actor has a tag. As long as this process is still setting itself up, a tag that
    /// it has not published yet may be one that it will.
    fn answer_resolve(&mut self, at: u32, head: Head, tag: String) {
        let number = self.links[at as usize].numbers.get(usize::from(head.message));
        let entry = number.copied().flatten().and_then(|number| self.messages.get(number));
        let wanted = entry.map(|entry| entry.actor);
        match (self.published.get(&tag), wanted) {
            (Some((actor, name)), Some(wanted)) if *actor == wanted => {
                let mut payload = Vec::new();
                name.encode(&mut Encoder::new(&mut payload, None));
                self.push(at, Head::new(Kind::Resolved, head.to), &payload);
            }
            (Some(_), _) => self.fail_theirs(at, head.to, AskError::Unregistered),
            (None, _) if self.is_set_up => self.fail_theirs(at, head.to, AskError::Stopped),
            (None, _) => self.early.push((at, head, tag)),
        }
    }

    /// Looks again at what came before it could be answered.
    fn answer_early(&mut self) {
        for (at, head, tag) in std::mem::take(&mut self.early) {
            self.answer_resolve(at, head, tag);
        }
    }

    pub(super) fn resolved(&mut self, token: u64, name: Result<Name, PeerError>, shard: &Shard) {
        if let Some(Call::Resolve { link, found }) = self.calls.close(token) {
            found(name, Along { names: &self.names, shard, link });
        }
    }

    /// A link's socket has ended, or brought nonsense.
    pub(super) fn broken(&mut self, at: u32, shard: &Shard) {
        let link = &mut self.links[at as usize];
        if matches!(link.state, State::Ended(_)) {
            return;
        }
        if let Some(socket) = link.socket.take() {
            let _ = epoll::delete(&self.epoll, &socket);
            self.sockets -= 1;
        }
        self.rings.end(at);
        match &mut link.whose {
            // It is of no use without its link. One that is ending by itself ends with its own
            // exit nevertheless: that was settled before its socket was closed.
            Whose::Worker(process) if !link.drains => process.kill(),
            Whose::Worker(_) => {}
            Whose::Parent | Whose::Sibling => self.end(at, Ended::default(), shard),
        }
    }

    pub(super) fn process_ended(&mut self, at: u32, shard: &Shard) {
        self.receive_rest(at, shard);
        let link = &mut self.links[at as usize];
        let Whose::Worker(process) = &mut link.whose else { return };
        let _ = epoll::delete(&self.epoll, process.pidfd());
        let ended = process.ended();
        self.end(at, ended, shard);
    }

    /// A link is no more: everything that waits for it is told, at once.
    pub(super) fn end(&mut self, at: u32, ended: Ended, shard: &Shard) {
        let link = &mut self.links[at as usize];
        if matches!(link.state, State::Ended(_)) {
            return;
        }
        link.state = State::Ended(ended);
        if let Some(socket) = link.socket.take() {
            let _ = epoll::delete(&self.epoll, &socket);
            self.sockets -= 1;
        }
        self.rings.end(at);
        link.tail = Tail::default();
        link.outgoing = Outgoing::default();
        link.descriptors.clear();
        link.stalled = None;
        for ready in std::mem::take(&mut link.ready) {
            ready.send(Err(PeerError::Ended(ended)));
        }
        let serving = std::mem::take(&mut link.serving);
        let is_parent = matches!(link.whose, Whose::Parent);
        for token in serving.into_values() {
            self.given_up(token, shard);
        }
        for call in self.calls.end(at) {
            match call {
                Call::Ask { asker, .. } => {
                    let Ended { code, signal } = ended;
                    shard.fail(asker.0, asker.1, AskError::Lost { code, signal });
                }
                Call::Resolve { found, .. } => {
                    let along = Along { names: &self.names, shard, link: at };
                    found(Err(PeerError::Ended(ended)), along);
                }
            }
        }
        if is_parent {
            self.leave(shard);
        }
    }

    /// The process that has started us is gone, or does not want us any more.
    fn leave(&mut self, _: &Shard) {
        if !self.parent_is_done {
            // It did not say goodbye: whatever runs here runs for nobody.
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        }
    }

    /// Whether what was asked of us is done, and whether all our workers are.
    pub(super) fn finish_draining(&mut self, shard: &Shard) {
        if !self.drained.is_empty() {
            let working = |link: &Link| {
                matches!(link.whose, Whose::Worker(_)) && !matches!(link.state, State::Ended(_))
            };
            if !self.links.iter().any(working) {
                for done in self.drained.drain(..) {
                    done.send(());
                }
            }
        }
        if self.parent_is_done || !shard.is_idle() {
            return;
        }
        let parent = self.links.iter().position(|link| {
            link.drains && matches!(link.whose, Whose::Parent) && link.serving.is_empty()
        });
        if let Some(at) = parent {
            self.parent_is_done = true;
            self.push(u32::try_from(at).unwrap_or(0), Head::new(Kind::Drain, 0), &[]);
            for done in self.parent_waiters.drain(..) {
                done.send(());
            }
        }
    }

    /// The system ends: what was gathered is written as far as the sockets take it, and what is
    /// open fails.
    pub(super) fn end_all(&mut self, shard: &Shard) {
        self.parent_is_done = true;
        for at in 0..u32::try_from(self.links.len()).unwrap_or(u32::MAX) {
            self.end(at, Ended::default(), shard);
        }
        for done in self.drained.drain(..).chain(self.parent_waiters.drain(..)) {
            done.send(());
        }
    }
}
