//! The thread that drives a shard: turns, what came from others, sleep; and what it runs within.
//!
//! That is a tokio runtime, with the feature `tokio`, so that futures of handlers find its timers,
//! sockets and tasks. The shard polls them; the runtime wakes them. Not here: a runtime of this
//! library's own. It starts none, and drives none.

use std::rc::Rc;
use std::sync::Arc;

use crate::runtime::pool::Pool;
use crate::runtime::{clock, current};
use crate::shard::{Shard, Shared};

/// How many parcels a turn handles at most before it looks at the clock and at other threads.
const TURN_PARCELS: usize = 256;

/// Runs a shard until it is told to end; an instance of a pool takes its messages from there.
pub(crate) fn run(shared: Arc<Shared>, pool: Option<Arc<Pool>>, within: &Within) {
    let _entered = within.enter();
    let shard = Rc::new(Shard::new(shared, clock::now));
    current::enter(Some(Rc::clone(&shard)));
    let mut batch = Vec::new();
    while !shard.has_ended() {
        shard.turn(None, TURN_PARCELS);
        shard.flush();
        shard.shared.inbox.take(&mut batch);
        for parcel in batch.drain(..) {
            shard.accept(parcel);
        }
        if let Some(pool) = &pool
            && shard.is_idle()
            && !shard.has_ended()
            && let Some(parcel) = pool.take(&shard.shared.inbox)
        {
            shard.accept(parcel);
            continue;
        }
        if shard.is_idle() && !shard.has_ended() && shard.shared.inbox.falls_asleep() {
            shard.sleep(shard.next_due().map(clock::until));
            // What the sleep has brought is there in the turn that follows.
            shard.woken();
        }
    }
    shard.close();
    current::enter(None);
}

#[cfg(feature = "tokio")]
pub(crate) use entered::Within;
#[cfg(not(feature = "tokio"))]
pub(crate) use plain::Within;

#[cfg(feature = "tokio")]
mod entered {
    use tokio::runtime::{EnterGuard, Handle};

    /// The runtime, if there is one.
    #[derive(Debug, Clone)]
    pub(crate) struct Within(Option<Handle>);

    impl Within {
        /// The one that this thread is in.
        pub(crate) fn here() -> Within {
            Within(Handle::try_current().ok())
        }

        pub(crate) fn runtime(handle: &Handle) -> Within {
            Within(Some(handle.clone()))
        }

        /// This thread is in it until the guard is dropped.
        pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
            self.0.as_ref().map(Handle::enter)
        }
    }
}

#[cfg(not(feature = "tokio"))]
mod plain {
    /// Nothing.
    #[derive(Debug, Clone)]
    pub(crate) struct Within;

    impl Within {
        pub(crate) fn here() -> Within {
            Within
        }

        pub(crate) fn enter(&self) -> Within {
            Within
        }
    }
}
