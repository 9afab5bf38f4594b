//! Asks from threads and executors that are no shard: a table of promises, kept in stripes so that
//! many threads may ask at once.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use crate::memory::parcel::{Parcel, Slot};

const STRIPES: u32 = 16;

#[derive(Debug)]
enum Promise {
    Free,
    Waiting(Option<Waker>),
    Settled(Parcel),
}

#[derive(Debug)]
struct Stripe {
    slots: Vec<(u32, Promise)>,
    free: Vec<u32>,
}

static OUTSIDE: [Mutex<Stripe>; STRIPES as usize] =
    [const { Mutex::new(Stripe { slots: Vec::new(), free: Vec::new() }) }; STRIPES as usize];

fn with<R>(index: u32, change: impl FnOnce(&mut Stripe) -> R) -> R {
    let stripe = &OUTSIDE[(index % STRIPES) as usize];
    change(&mut stripe.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Which stripe this thread uses.
fn stripe() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static MINE: u32 = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    MINE.try_with(|mine| *mine).unwrap_or(0)
}

/// A new promise.
pub(crate) fn open() -> Slot {
    let stripe = stripe();
    with(stripe, |table| {
        let line = table.free.pop().unwrap_or_else(|| {
            table.slots.push((1, Promise::Free));
            u32::try_from(table.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let (generation, promise) = &mut table.slots[line as usize];
        *promise = Promise::Waiting(None);
        Slot { index: line * STRIPES + stripe, generation: *generation }
    })
}

fn get(table: &mut Stripe, at: Slot) -> Option<&mut Promise> {
    let slot = table.slots.get_mut((at.index / STRIPES) as usize)?;
    (slot.0 == at.generation).then_some(&mut slot.1)
}

/// An answer or a failure has come. The first one counts.
pub(crate) fn settle(parcel: Parcel) {
    let at = parcel.to;
    let waker = with(at.index, |table| match get(table, at) {
        Some(promise @ Promise::Waiting(_)) => {
            match std::mem::replace(promise, Promise::Settled(parcel)) {
                Promise::Waiting(waker) => waker,
                Promise::Free | Promise::Settled(_) => None,
            }
        }
        Some(Promise::Free | Promise::Settled(_)) | None => None,
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// What has come, or `waker` is woken when it does.
pub(crate) fn poll(at: Slot, waker: &Waker) -> Option<Parcel> {
    with(at.index, |table| {
        let promise = get(table, at)?;
        match std::mem::replace(promise, Promise::Free) {
            Promise::Settled(parcel) => Some(parcel),
            Promise::Waiting(Some(before)) if before.will_wake(waker) => {
                *promise = Promise::Waiting(Some(before));
                None
            }
            Promise::Waiting(_) | Promise::Free => {
                *promise = Promise::Waiting(Some(waker.clone()));
                None
            }
        }
    })
}

/// Nobody waits any more. False: an answer had come.
pub(crate) fn close(at: Slot) -> bool {
    let dropped = with(at.index, |table| {
        let line = at.index / STRIPES;
        let promise = std::mem::replace(get(table, at)?, Promise::Free);
        let slot = &mut table.slots[line as usize];
        slot.0 = slot.0.wrapping_add(1);
        table.free.push(line);
        Some(promise)
    });
    // An answer's drop is the user's code, and runs without the lock.
    matches!(dropped, Some(Promise::Waiting(_)))
}
