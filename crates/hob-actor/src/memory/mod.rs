//! How things lie in memory: parcels, slots of asks, packed futures. Nothing here decides.

pub(crate) mod asks;
pub(crate) mod hash;
pub(crate) mod parcel;
pub(crate) mod tasks;
pub(crate) mod waker;
pub(crate) mod when;
