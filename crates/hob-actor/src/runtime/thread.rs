//! The thread that drives a shard: turns, what came from others, sleep.

use std::rc::Rc;
use std::sync::Arc;

use crate::runtime::pool::Pool;
use crate::runtime::{clock, current};
use crate::shard::{Shard, Shared};

/// How many parcels a turn handles at most before it looks at the clock and at other threads.
const TURN_PARCELS: usize = 256;

/// Runs a shard until it is told to end; an instance of a pool takes its messages from there.
pub(crate) fn run(shared: Arc<Shared>, pool: Option<Arc<Pool>>) {
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
