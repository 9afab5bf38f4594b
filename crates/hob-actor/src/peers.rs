//! Peers: worker processes and whoever they hear of, with actors that are used like local ones.
//!
//! The links belong to the system's first shard; this is how every other thread talks to them.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::api::actor::Actor;
use crate::api::address::Address;
use crate::api::asked::Asked;
use crate::api::reply::Reply;
use crate::link::commands::{Command, Commands, NameOf};
use crate::link::{Links, Messages, Names, Program, inherited};
use crate::memory::parcel::Slot;
use crate::memory::when::{NEVER, NOBODY, OUTSIDE, When};
use crate::runtime::mail::Mail;
use crate::runtime::outside;
use crate::shard::{Control, Shard, Shared};
use crate::system::System;

pub use crate::link::commands::PeerError;

/// Another system that this one has, or had, a link to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    node: u64,
}

/// A system's links to its peers. A clone is another handle to the same.
///
/// ```no_run
/// # use hob_actor::{Actor, Context, Handler, Message, Peers, System, link::Messages};
/// hob_actor::wire! { pub struct Add { pub value: u64 } }
/// impl Message for Add { type Answer = u64; }
/// pub struct Counter(u64);
/// impl Actor for Counter {}
/// impl Handler<Add> for Counter {
///     fn handle(&mut self, add: Add, _: &mut Context<'_, Self>) -> u64 { self.0 += add.value; self.0 }
/// }
/// fn messages() -> Messages { Messages::new().takes::<Counter, Add, _>("counter.add") }
///
/// // In the worker's program:
/// fn worker() -> Result<(), Box<dyn std::error::Error>> {
///     let system = System::with_shards(1)?;
///     let peers = Peers::join(&system, messages())?;
///     peers.publish("counter", &system.spawn(Counter(0)));
///     peers.until_drained();
///     Ok(())
/// }
///
/// // In the program that starts it:
/// let system = System::start()?;
/// let peers = Peers::start(&system, messages())?;
/// let worker = system.spawn_worker("./worker")?;
/// let counter = system.remote::<Counter>(worker, "counter")?;
/// assert_eq!(counter.ask(Add { value: 2 }).wait()?, 2);
/// peers.drain();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Peers {
    shared: Arc<Shared>,
    commands: Commands,
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

impl Peers {
    /// Gives a system links; there are none yet.
    ///
    /// # Errors
    /// When the kernel gives no descriptor, or the system has links already.
    pub fn start(system: &System, messages: Messages) -> Result<Peers, PeerError> {
        // Held meanwhile: a second one finds the first.
        let mut linked = system.linked();
        if linked.is_some() {
            return Err(PeerError::Linked);
        }
        let commands = Commands::default();
        let peers = Peers { shared: Arc::clone(system.first()), commands };
        let (reply, attached) = peers.promise();
        let commands = Arc::clone(&peers.commands);
        system.job(system.first(), move |shard| {
            reply.send(attach(shard, messages, commands).map_err(PeerError::Start));
        });
        attached.wait().map_err(|_| PeerError::Stopped)??;
        *linked = Some(Linked { peers: peers.clone(), resolved: HashMap::new() });
        Ok(peers)
    }

    /// In a worker process: links, and the first of them to whoever started it. The process is
    /// killed when that one ends.
    ///
    /// # Errors
    /// When it was not started as a worker, or the two programs do not agree on their messages.
    pub fn join(system: &System, messages: Messages) -> Result<Peers, PeerError> {
        let link = inherited().map_err(|error| PeerError::Start(error.to_string()))?;
        let link = link.ok_or(PeerError::NoParent)?;
        let peers = Peers::start(system, messages)?;
        let (ready, joined) = peers.promise();
        peers.command(Command::Join(link, ready));
        joined.wait().map_err(|_| PeerError::Stopped)??;
        Ok(peers)
    }

    /// Starts the program at `path` as a worker process, and waits until both have agreed on
    /// their messages.
    ///
    /// # Errors
    /// When it cannot be started, ends before it has said hello, or declares a message
    /// differently.
    pub fn spawn_worker(&self, path: impl Into<std::path::PathBuf>) -> Result<Peer, PeerError> {
        self.spawn(Program::new(path))
    }

    /// The same with arguments.
    ///
    /// # Errors
    /// As [`Peers::spawn_worker`].
    pub fn spawn(&self, program: Program) -> Result<Peer, PeerError> {
        self.spawning(program).wait().map_err(|_| PeerError::Stopped)?.map(|node| Peer { node })
    }

    /// The same for many: all are started before the first is waited for.
    ///
    /// # Errors
    /// The first error of any of them; the others are ended.
    pub fn spawn_all(&self, programs: Vec<Program>) -> Result<Vec<Peer>, PeerError> {
        let starting: Vec<_> = programs.into_iter().map(|one| self.spawning(one)).collect();
        let started = starting.into_iter().map(|one| one.wait().map_err(|_| PeerError::Stopped)?);
        started.map(|node| node.map(|node| Peer { node })).collect()
    }

    fn spawning(&self, program: Program) -> Asked<Result<u64, PeerError>> {
        let (ready, started) = self.promise();
        self.command(Command::Spawn(program, ready));
        started
    }

    /// Lets peers find this actor by a tag. A later one takes the tag over.
    pub fn publish<A: Actor>(&self, tag: &str, address: &Address<A>) {
        let address = address.clone();
        let name: NameOf = Box::new(move |names| names.name(&address));
        self.command(Command::Publish { tag: tag.to_owned(), actor: TypeId::of::<A>(), name });
    }

    /// The address of the actor that a peer has published under this tag. Resolve it once: it is
    /// used like any other address, from any thread, and may be sent on in messages.
    ///
    /// # Errors
    /// When there is none, it is of another type, or the peer has ended.
    pub fn remote<A: Actor>(&self, peer: Peer, tag: &str) -> Result<Address<A>, PeerError> {
        self.resolving(peer, tag).wait().map_err(|_| PeerError::Stopped)?
    }

    /// The same, to be awaited: inside an actor's future, say.
    pub fn resolving<A: Actor>(
        &self,
        peer: Peer,
        tag: &str,
    ) -> Asked<Result<Address<A>, PeerError>> {
        let (reply, resolved) = self.promise();
        self.command(Command::Resolve {
            node: peer.node,
            actor: TypeId::of::<A>(),
            tag: tag.to_owned(),
            found: Box::new(move |name, along| {
                let found = name.and_then(|name| {
                    let address = along.names.address::<A>(name, along.shard, along.link);
                    address.map_err(|_| PeerError::Tag)
                });
                reply.send(found);
            }),
        });
        resolved
    }

    /// The process of a worker that this system has started, while it lives.
    #[must_use]
    pub fn process(&self, peer: Peer) -> Option<u32> {
        let (reply, told) = self.promise();
        self.command(Command::Process(peer.node, reply));
        told.wait().ok().flatten()
    }

    /// Ends all worker processes: each finishes what it was sent, and is waited for. There is no
    /// limit of time: a worker that never finishes is waited for until it does, or is killed.
    pub fn drain(&self) {
        let (done, drained) = self.promise();
        self.command(Command::Drain(done));
        // An error means that the system has ended, and with it the workers.
        let _ = drained.wait();
    }

    /// In a worker process: waits until whoever started it wants no more of it, and everything
    /// that it asked is answered. Return from `main` then.
    ///
    /// Publish before: until this is called, a peer that asks for a tag that is not there yet
    /// waits; from then on it is told that there is none.
    pub fn until_drained(&self) {
        let (done, drained) = self.promise();
        self.command(Command::WaitForParent(done));
        let _ = drained.wait();
    }

    fn promise<T: Send + 'static>(&self) -> (Reply<T>, Asked<T>) {
        let slot = outside::open();
        let reply = Reply::to(slot, When::new(OUTSIDE, NEVER));
        (reply, Asked::new(slot, NEVER, self.shared.mailbox(Mail::default()), None))
    }

    fn command(&self, command: Command) {
        self.commands.put(command);
        // The job wakes the shard, and keeps its place behind what was sent before it. A shard
        // that has ended has dropped the links, and these commands are dropped here: whoever
        // waits for one is told.
        let commands = Arc::clone(&self.commands);
        let job = Control::Job(Box::new(move |_| commands.count_due()));
        let job = Shard::control_parcel(Slot::NONE, Slot::NONE, job);
        if self.shared.inbox.put(job).is_err() {
            drop(self.commands.take_all());
        }
    }
}

/// A system's links, and what was resolved on them.
#[derive(Debug)]
pub(crate) struct Linked {
    peers: Peers,
    /// Addresses of actors in peers.
    resolved: HashMap<Resolved, Box<dyn Any + Send + Sync>>,
}

/// Which peer's actor of which type under which tag.
type Resolved = (Peer, TypeId, String);

impl System {
    /// The links to its peers, once [`Peers::start`] or [`Peers::join`] has given it some.
    #[must_use]
    pub fn peers(&self) -> Option<Peers> {
        self.linked().as_ref().map(|linked| linked.peers.clone())
    }

    /// As [`Peers::spawn_worker`].
    ///
    /// # Errors
    /// As there, and when this system has no links.
    pub fn spawn_worker(&self, path: impl Into<std::path::PathBuf>) -> Result<Peer, PeerError> {
        self.peers().ok_or(PeerError::Unlinked)?.spawn_worker(path)
    }

    /// The address of the actor that a peer has published under this tag, as [`Peers::remote`]
    /// finds it; from then on it is remembered. Who publishes another actor under the same tag
    /// wants that, which asks anew each time.
    ///
    /// # Errors
    /// As there, and when this system has no links.
    pub fn remote<A: Actor>(&self, peer: Peer, tag: &str) -> Result<Address<A>, PeerError> {
        let which = (peer, TypeId::of::<A>(), tag.to_owned());
        let peers = {
            let linked = self.linked();
            let linked = linked.as_ref().ok_or(PeerError::Unlinked)?;
            let known = linked.resolved.get(&which).and_then(|known| known.downcast_ref());
            if let Some(known) = known {
                return Ok(Address::clone(known));
            }
            linked.peers.clone()
        };
        let address = peers.remote::<A>(peer, tag)?;
        if let Some(linked) = self.linked().as_mut() {
            linked.resolved.insert(which, Box::new(address.clone()));
        }
        Ok(address)
    }
}

/// On the shard's thread: makes the links and hands them over.
pub(crate) fn attach(shard: &Shard, messages: Messages, commands: Commands) -> Result<(), String> {
    let mut node = [0; 8];
    let random = rustix::rand::getrandom(&mut node, rustix::rand::GetRandomFlags::empty());
    if random != Ok(node.len()) {
        return Err("the kernel gives no random number".to_owned());
    }
    let names = Rc::new(Names::new(u64::from_le_bytes(node), shard.shared.place));
    let place = Rc::new(Cell::new(NOBODY));
    let links = Links::new(Arc::new(messages), Rc::clone(&names), Rc::clone(&place), commands);
    let links = links.map_err(|error| error.to_string())?;
    let given =
        shard.attach(Box::new(links), names).ok_or("this process has no number for links")?;
    place.set(given);
    Ok(())
}
