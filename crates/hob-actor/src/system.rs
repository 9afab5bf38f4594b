//! Shards and their threads, under one roof.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::actor::Actor;
use crate::address::Address;
use crate::bell::Doorbell;
use crate::inbox::Inbox;
use crate::mailbox::Mail;
use crate::parcel::Slot;
use crate::places;
use crate::shard::{Control, Counts, Shard, Shared};
use crate::thread;

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

/// Actors on shards, each shard a thread. Dropping it ends them all.
#[derive(Debug)]
pub struct System {
    shards: Vec<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
    next: AtomicUsize,
}

impl System {
    /// A system with a shard for each processor.
    pub fn start() -> Result<System, StartError> {
        System::with_shards(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// A system with as many shards as said, at least one.
    pub fn with_shards(shards: usize) -> Result<System, StartError> {
        let mut system =
            System { shards: Vec::new(), threads: Vec::new(), next: AtomicUsize::new(0) };
        for _ in 0..shards.max(1) {
            system.add_shard()?;
        }
        Ok(system)
    }

    fn add_shard(&mut self) -> Result<(), StartError> {
        let inbox = Arc::new(Inbox::new(Doorbell::new()?));
        let place = places::register(&inbox).ok_or(StartError::Numbers)?;
        let (next_record, counts) = (AtomicU32::new(0), Counts::default());
        let shared = Arc::new(Shared { place, inbox, next_record, counts });
        let thread = std::thread::Builder::new().name(format!("hob-shard-{place}"));
        let run = Arc::clone(&shared);
        self.threads.push(thread.spawn(move || thread::run(run))?);
        self.shards.push(shared);
        Ok(())
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
        for counts in self.shards.iter().map(|shard| &shard.counts) {
            sum.dead_letters += counts.dead_letters.load(Ordering::Relaxed);
            sum.refused += counts.refused.load(Ordering::Relaxed);
            sum.displaced += counts.displaced.load(Ordering::Relaxed);
            sum.cancelled += counts.cancelled.load(Ordering::Relaxed);
            sum.panics += counts.panics.load(Ordering::Relaxed);
            sum.restarts += counts.restarts.load(Ordering::Relaxed);
        }
        sum
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
        for shard in &self.shards {
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

impl Drop for System {
    fn drop(&mut self) {
        self.end();
    }
}
