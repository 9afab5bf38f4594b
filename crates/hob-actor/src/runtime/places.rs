//! All shards of this process, by number: how an answer finds its way to a thread that the
//! answering one has never met.
//!
//! Numbers are never used twice, so that a late answer finds nobody instead of somebody else.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::memory::parcel::Parcel;
use crate::memory::when::{NOBODY, OUTSIDE, Place};
use crate::runtime::bell::Doorbell;
use crate::runtime::inbox::Inbox;
use crate::runtime::outside;

/// What other threads have of a shard.
pub(crate) type ShardInbox = Inbox<Parcel, Doorbell>;

struct Places {
    next: Place,
    inboxes: Option<HashMap<Place, Weak<ShardInbox>>>,
}

static PLACES: RwLock<Places> = RwLock::new(Places { next: NOBODY + 1, inboxes: None });

/// A number for an inbox. None: sixteen million have been given out.
pub(crate) fn register(inbox: &Arc<ShardInbox>) -> Option<Place> {
    let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    let place = places.next;
    if place >= OUTSIDE {
        return None;
    }
    places.next += 1;
    places.inboxes.get_or_insert_default().insert(place, Arc::downgrade(inbox));
    Some(place)
}

/// The inbox is no more.
pub(crate) fn forget(place: Place) {
    let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(inboxes) = &mut places.inboxes {
        inboxes.remove(&place);
    }
}

/// The inbox of a shard that is still there.
pub(crate) fn inbox(place: Place) -> Option<Arc<ShardInbox>> {
    let places = PLACES.read().unwrap_or_else(PoisonError::into_inner);
    places.inboxes.as_ref()?.get(&place)?.upgrade()
}

/// Brings an answer or a failure to its place, from a thread that is no shard.
pub(crate) fn deliver(place: Place, parcel: Parcel) {
    match place {
        NOBODY => {}
        OUTSIDE => outside::settle(parcel),
        place => {
            if let Some(inbox) = inbox(place) {
                // A shard that has ended has told its askers already.
                let _ = inbox.put(parcel);
            }
        }
    }
}
