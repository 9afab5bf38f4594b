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
//! `unsafe` code is denied but in three modules that say why they need it: `parcel` (payloads of
//! any type in cells of one size), `tasks` (parked futures of any type, packed and pinned) and
//! `waker` (a waker without an allocation).
#![deny(unsafe_code)]

mod actor;
mod address;
mod asked;
mod asks;
mod bell;
mod clock;
mod context;
mod current;
mod error;
mod hash;
mod inbox;
pub mod link;
mod mailbox;
mod outside;
mod parcel;
mod peers;
mod places;
mod pool;
mod registry;
mod remote;
mod reply;
mod schedule;
mod shard;
#[cfg(test)]
mod sim;
mod supervision;
mod sync {
    //! What `inbox` is made of; its test under loom brings another one.
    pub(crate) use std::sync::Mutex;
}
mod system;
mod tasks;
mod thread;
mod waker;
mod when;

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
