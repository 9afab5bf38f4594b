//! Where threads meet: inboxes, bells, pools, and the threads that drive shards.

pub(crate) mod bell;
pub(crate) mod clock;
pub(crate) mod current;
pub(crate) mod inbox;
pub(crate) mod mail;
pub(crate) mod mailbox;
pub(crate) mod outside;
pub(crate) mod places;
pub(crate) mod pool;
pub(crate) mod thread;
pub(crate) mod wakeful;
