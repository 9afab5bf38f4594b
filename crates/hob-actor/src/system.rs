//! Shards and their threads, under one roof.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::api::actor::{Actor, AnyActor};
use crate::api::address::Address;
use crate::api::error::AskError;
use crate::api::registry::Registry;
use crate::memory::parcel::Slot;
use crate::peers::Linked;
use crate::runtime::bell::Doorbell;
use crate::runtime::inbox::Inbox;
use crate::runtime::mail::Mail;
use crate::runtime::mailbox::{Mailbox, Route};
use crate::runtime::pool::Pool;
use crate::runtime::thread::Within;
use crate::runtime::{current, places, pool, thread};
use crate::shard::{Control, Counts, Shard, Shared};
use crate::supervision::Supervision;

/// Why a system did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The kernel gives no thread or descriptor.
    #[error("cannot start a shard")]
    Kernel(#[from] std::io::Error),
    /// This process has started sixteen million shards.
    #[error("this process has no number for another shard")]
    Numbers,
}

/// What has not gone as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Troubles {
    /// Messages for actors that have ended.
    pub dead_letters: u64,
    /// Messages that full mailboxes did not take.
    pub refused: u64,
    /// Messages that full mailboxes dropped for newer ones.
    pub displaced: u64,
    /// Asks that were dropped by their askers before they were answered.
    pub cancelled: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Actors that were started anew.
    pub restarts: u64,
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Actors on shards, each shard a thread. Dropping it ends them all.
#[derive(Debug)]
pub struct System {
    shards: Vec<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
    next: AtomicUsize,
    /// The shards of pools' instances.
    members: Vec<Arc<Shared>>,
    pools: Vec<Arc<Pool>>,
    pool_counts: Arc<Counts>,
    registry: Registry,
    linked: Mutex<Option<Linked>>,
    /// What its threads run within.
    within: Within,
}

impl System {
    /// A system with a shard for each processor. With the feature `tokio`, its actors are in the
    /// tokio runtime that this is called in, if it is called in one.
    pub fn start() -> Result<System, StartError> {
        System::with_shards(processors())
    }

    /// A system with as many shards as said, at least one; otherwise as [`System::start`].
    pub fn with_shards(shards: usize) -> Result<System, StartError> {
        System::with(shards, Within::here())
    }

    /// A system with a shard for each processor, whose handlers and their futures are in a tokio
    /// runtime: its timers, sockets and `tokio::spawn` work there. The runtime must be driven, as
    /// one with worker threads is, and must outlive the system.
    #[cfg(feature = "tokio")]
    pub fn start_within(runtime: &tokio::runtime::Handle) -> Result<System, StartError> {
        System::with_shards_within(processors(), runtime)
    }

    /// The same with as many shards as said, at least one.
    #[cfg(feature = "tokio")]
    pub fn with_shards_within(
        shards: usize,
        runtime: &tokio::runtime::Handle,
    ) -> Result<System, StartError> {
        System::with(shards, Within::runtime(runtime))
    }

    fn with(shards: usize, within: Within) -> Result<System, StartError> {
        let mut system = System {
            shards: Vec::new(),
            threads: Vec::new(),
            next: AtomicUsize::new(0),
            members: Vec::new(),
            pools: Vec::new(),
            pool_counts: Arc::default(),
            registry: Registry::default(),
            linked: Mutex::default(),
            within,
        };
        for _ in 0..shards.max(1) {
            system.add_shard()?;
        }
        Ok(system)
    }

    fn add_shard(&mut self) -> Result<(), StartError> {
        let shard = self.start_shard(None)?;
        self.shards.push(shard);
        Ok(())
    }

    fn start_shard(&mut self, pool: Option<Arc<Pool>>) -> Result<Arc<Shared>, StartError> {
        let inbox = Arc::new(Inbox::new(Doorbell::new()?));
        let place = places::register(&inbox).ok_or(StartError::Numbers)?;
        let (next_record, next_group) = (AtomicU32::new(0), AtomicU32::new(0));
        let counts = Arc::new(Counts::default());
        let shared = Arc::new(Shared { place, inbox, next_record, next_group, counts });
        let thread = std::thread::Builder::new().name(format!("hob-shard-{place}"));
        let (run, within) = (Arc::clone(&shared), self.within.clone());
        self.threads.push(thread.spawn(move || thread::run(run, pool, &within))?);
        Ok(shared)
    }

    /// A pool: one queue and `instances` actors, each on a thread of its own; a message wakes one
    /// of them. For work that keeps a processor busy. It drops no oldest: it refuses.
    pub fn pool<A: Actor>(
        &mut self,
        instances: usize,
        mail: Mail,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Result<Address<A>, StartError> {
        let pool = Arc::new(Pool::default());
        let route = Route::Pool(Arc::clone(&pool));
        let mailbox = Arc::new(Mailbox::new(route, pool::mail(mail), &self.pool_counts));
        let make = Arc::new(make);
        let mut place = None;
        for _ in 0..instances.max(1) {
            let shard = self.start_shard(Some(Arc::clone(&pool)))?;
            pool.join(&shard.inbox);
            let slot = shard.reserve();
            let (make, theirs) = (Arc::clone(&make), Arc::clone(&mailbox));
            self.job(&shard, move |shard| shard.spawn_at(slot, Box::new(make()), theirs));
            self.members.push(shard);
            if place.is_none() {
                // A number of its own: what is sent to it never looks like a local send.
                let nobody = Arc::new(Inbox::new(Doorbell::new()?));
                place = Some(places::register(&nobody).ok_or(StartError::Numbers)?);
            }
        }
        self.pools.push(pool);
        let place = place.ok_or(StartError::Numbers)?;
        places::forget(place);
        Ok(Address { place, slot: pool::INSTANCE, mailbox, actor: PhantomData })
    }

    /// A group of actors that are made anew when they fail, all on one shard.
    pub fn supervise(&self, rules: Supervision) -> Supervisor {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let shard = Arc::clone(&self.shards[next % self.shards.len()]);
        Supervisor::new(shard, rules, None)
    }

    /// Actors by name.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// An actor on the next shard in turn.
    pub fn spawn<A: Actor + Send>(&self, actor: A) -> Address<A> {
        self.spawn_with(Mail::default(), move || actor)
    }

    /// The same with a mailbox as said, made on its shard's thread: what it holds need not be
    /// `Send`.
    pub fn spawn_with<A: Actor>(
        &self,
        mail: Mail,
        make: impl FnOnce() -> A + Send + 'static,
    ) -> Address<A> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.spawn_on(next % self.shards.len(), mail, make)
    }

    /// The same on a shard of your choice, by its number from 0 (more wrap around): actors that
    /// talk a lot belong together.
    pub fn spawn_on<A: Actor>(
        &self,
        shard: usize,
        mail: Mail,
        make: impl FnOnce() -> A + Send + 'static,
    ) -> Address<A> {
        let shared = &self.shards[shard % self.shards.len()];
        let (slot, mailbox) = (shared.reserve(), shared.mailbox(mail));
        let place = shared.place;
        let theirs = Arc::clone(&mailbox);
        self.job(shared, move |shard| shard.spawn_at(slot, Box::new(make()), theirs));
        Address { place, slot, mailbox, actor: PhantomData }
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// What has not gone as it should, up to now.
    #[must_use]
    pub fn troubles(&self) -> Troubles {
        let mut sum = Troubles::default();
        let shards = self.shards.iter().chain(&self.members).map(|shard| &shard.counts);
        for counts in shards.chain([&self.pool_counts]) {
            sum.dead_letters += counts.dead_letters.load(Ordering::Relaxed);
            sum.refused += counts.refused.load(Ordering::Relaxed);
            sum.displaced += counts.displaced.load(Ordering::Relaxed);
            sum.cancelled += counts.cancelled.load(Ordering::Relaxed);
            sum.panics += counts.panics.load(Ordering::Relaxed);
            sum.restarts += counts.restarts.load(Ordering::Relaxed);
        }
        sum
    }

    /// Its links to peers, if it has some.
    pub(crate) fn linked(&self) -> MutexGuard<'_, Option<Linked>> {
        self.linked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard that has the links.
    pub(crate) fn first(&self) -> &Arc<Shared> {
        &self.shards[0]
    }

    pub(crate) fn job(&self, shared: &Shared, job: impl FnOnce(&Shard) + Send + 'static) {
        let job = Control::Job(Box::new(job));
        // The inbox closes when the system is dropped, and not before.
        let _ = shared.inbox.put(Shard::control_parcel(Slot::NONE, Slot::NONE, job));
    }

    fn end(&mut self) {
        for pool in &self.pools {
            for parcel in pool.close() {
                current::fail(parcel.asker, parcel.when, AskError::Stopped);
            }
        }
        for shard in self.shards.iter().chain(&self.members) {
            let end = Shard::control_parcel(Slot::NONE, Slot::NONE, Control::End);
            let _ = shard.inbox.put(end);
        }
        for thread in self.threads.drain(..) {
            // A shard's thread catches what its actors do.
            let _ = thread.join();
        }
    }

    /// Ends all shards after what they have been sent so far, and waits for their threads.
    pub fn shutdown(mut self) {
        self.end();
    }
}

/// A group of supervised actors, and where it lives.
#[derive(Debug, Clone)]
pub struct Supervisor {
    shard: Arc<Shared>,
    group: u32,
}

impl Supervisor {
    fn new(shard: Arc<Shared>, rules: Supervision, within: Option<u32>) -> Supervisor {
        let group = shard.next_group.fetch_add(1, Ordering::Relaxed);
        let this = Supervisor { shard, group };
        this.job(move |shard| shard.add_group(group, rules, within));
        this
    }

    fn job(&self, job: impl FnOnce(&Shard) + Send + 'static) {
        let job = Control::Job(Box::new(job));
        let _ = self.shard.inbox.put(Shard::control_parcel(Slot::NONE, Slot::NONE, job));
    }

    /// A member; `make` makes it, now and after each failure. Its address stays the same.
    pub fn spawn<A: Actor>(
        &self,
        mail: Mail,
        mut make: impl FnMut() -> A + Send + 'static,
    ) -> Address<A> {
        let (slot, mailbox) = (self.shard.reserve(), self.shard.mailbox(mail));
        let (theirs, group) = (Arc::clone(&mailbox), self.group);
        self.job(move |shard| {
            let make = Box::new(move || -> Box<dyn AnyActor> { Box::new(make()) });
            shard.spawn_member(slot, make, theirs, group);
        });
        Address { place: self.shard.place, slot, mailbox, actor: PhantomData }
    }

    /// A group within this one. When it escalates, it fails as a whole.
    pub fn supervise(&self, rules: Supervision) -> Supervisor {
        Supervisor::new(Arc::clone(&self.shard), rules, Some(self.group))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.end();
    }
}
