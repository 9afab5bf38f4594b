//! Typed actors that talk by **ask** (await an answer) and **tell** (send and go on), in one
//! process and between peers on the same machine.
//!
//! ```
//! use hob_actor::{Actor, Context, Handler, Message, System};
//!
//! struct Greet(String);
//! impl Message for Greet {
//!     type Answer = String;
//! }
//!
//! struct Greeter;
//! impl Actor for Greeter {}
//! impl Handler<Greet> for Greeter {
//!     fn handle(&mut self, Greet(name): Greet, _: &mut Context<'_, Self>) -> String {
//!         format!("hello {name}")
//!     }
//! }
//!
//! let system = System::start()?;
//! let greeter = system.spawn(Greeter);
//! assert_eq!(greeter.ask(Greet("you".to_owned())).wait()?, "hello you");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How to use it: `docs/actors.md`. Why it is as it is, and what was measured:
//! `docs/why/actors.md`.
//!
//! `unsafe` code is denied but in four modules that say why they need it: `parcel` (payloads of
//! any type in cells of one size), `tasks` (parked futures of any type, packed and pinned), `waker`
//! (a waker without an allocation) and `link::rings::memory` (memory that processes share).
#![deny(unsafe_code)]

// One flat list of modules, in folders by what they own: `talk` is what users hold, `cells` how
// things lie in memory, `threads` where threads meet, `shard` what is decided.

#[path = "talk/actor.rs"]
mod actor;
#[path = "talk/address.rs"]
mod address;
#[path = "talk/asked.rs"]
mod asked;
#[path = "cells/asks.rs"]
mod asks;
#[path = "threads/bell.rs"]
mod bell;
#[path = "threads/clock.rs"]
mod clock;
#[path = "talk/context.rs"]
mod context;
#[path = "threads/current.rs"]
mod current;
#[cfg(test)]
mod days;
#[path = "talk/error.rs"]
mod error;
#[path = "cells/hash.rs"]
mod hash;
#[path = "threads/inbox.rs"]
mod inbox;
pub mod link;
#[path = "threads/mailbox.rs"]
mod mailbox;
#[path = "threads/outside.rs"]
mod outside;
#[path = "cells/parcel.rs"]
mod parcel;
mod peers;
#[path = "threads/places.rs"]
mod places;
#[path = "threads/pool.rs"]
mod pool;
#[path = "talk/registry.rs"]
mod registry;
mod remote;
#[path = "talk/reply.rs"]
mod reply;
#[path = "talk/schedule.rs"]
mod schedule;
mod shard;
#[cfg(test)]
mod sim;
mod supervision;
mod sync {
    //! What `inbox` and `link::rings` are made of; their tests under loom bring other ones.
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicU64, fence};
}
mod system;
#[path = "cells/tasks.rs"]
mod tasks;
#[path = "threads/thread.rs"]
mod thread;
#[path = "threads/wakeful.rs"]
mod wakeful;
#[path = "cells/waker.rs"]
mod waker;
#[path = "cells/when.rs"]
mod when;
pub mod worker;

pub use actor::{
    Actor, AsyncHandler, AtOnce, ByFuture, ByReply, Dispatch, Handler, Message, Receives,
    ReplyHandler,
};
pub use address::{ActorId, Address};
pub use asked::{Ask, Asked};
pub use context::{Context, This};
pub use error::{AskError, NotSent, TellError};
pub use mailbox::{MAILBOX_MESSAGES, Mail, Policy};
pub use peers::{Peer, PeerError, Peers};
pub use registry::{Registry, TagTaken};
pub use reply::Reply;
pub use schedule::Scheduled;
pub use shard::End;
pub use supervision::{Scope, Supervision};
pub use system::{StartError, Supervisor, System, Troubles};
