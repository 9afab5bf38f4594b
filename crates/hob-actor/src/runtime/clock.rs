//! The time, for those who drive shards, and the thread that ends asks of foreign executors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::api::error::AskError;
use crate::memory::parcel::Slot;
use crate::memory::when::{Millis, When};
use crate::runtime::outside;
use crate::shard::Shard;

/// The process's epoch is its first look at the clock.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Since then.
pub(crate) fn now() -> Millis {
    u64::try_from(epoch().elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The same as others count it.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// How long until then.
pub(crate) fn until(at: Millis) -> Duration {
    // A millisecond's fraction is over already: without the one more, the sleep ends too early and
    // the loop spins until the millisecond is full.
    Duration::from_millis(at).saturating_sub(epoch().elapsed())
}

static DUE: Mutex<BinaryHeap<Reverse<(Millis, u32, u32)>>> = Mutex::new(BinaryHeap::new());
static SOONER: Condvar = Condvar::new();

/// Ends a promise with `Expired` at `at`, unless it has ended by then. By a thread of its own: a
/// shard that is busy must not keep other people's deadlines waiting.
pub(crate) fn expire(slot: Slot, at: Millis) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = std::thread::Builder::new().name("hob-deadlines".to_owned());
        // Without the thread a deadline is kept by whoever waits in `wait`, and by nobody else.
        let _ = thread.stack_size(64 * 1024).spawn(run);
    });
    DUE.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse((
        at,
        slot.index,
        slot.generation,
    )));
    SOONER.notify_one();
}

fn run() {
    let mut due = DUE.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match due.peek().copied() {
            None => due = SOONER.wait(due).unwrap_or_else(PoisonError::into_inner),
            Some(Reverse((at, index, generation))) if at <= now() => {
                due.pop();
                drop(due);
                let slot = Slot { index, generation };
                outside::settle(Shard::failure_parcel(slot, When::TELL, AskError::Expired));
                due = DUE.lock().unwrap_or_else(PoisonError::into_inner);
            }
            Some(Reverse((at, ..))) => {
                let timeout = until(at);
                let woken = SOONER.wait_timeout(due, timeout);
                due = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}
