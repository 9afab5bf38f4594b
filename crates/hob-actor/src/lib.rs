//! Typed actors that talk by **ask** (await an answer) and **tell** (send and go on), in one
//! process and between peers on the same machine.
//!
//! ```
//! use hob_actor::{Actor, Context, Handler, Message, System};
//!
//! #[derive(Message)]
//! #[answer(String)]
//! struct Greet(String);
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
//! The features: `derive` (on by default) is `#[derive(Message)]`; `tokio` runs the futures of
//! handlers within a tokio runtime.
//!
//! How to use it: `docs/actors.md`. Why it is as it is, and what was measured:
//! `docs/why/actors.md`.
//!
//! `unsafe` code is denied but in four modules that say why they need it: `parcel` (payloads of
//! any type in cells of one size), `tasks` (parked futures of any type, packed and pinned), `waker`
//! (a waker without an allocation) and `link::rings::memory` (memory that processes share).
#![deny(unsafe_code)]

// `api` is what users hold, `memory` how things lie in memory, `runtime` where threads meet, `shard`
// what is decided, `link` the way to peers.

/// The examples of the pages for users are compiled and run.
#[cfg(all(doctest, feature = "derive", feature = "tokio"))]
mod pages {
    #[doc = include_str!("../../../docs/actors.md")]
    mod actors {}
    #[doc = include_str!("../../../docs/actors-peers.md")]
    mod peers {}
}

mod api;
#[cfg(test)]
mod days;
pub mod link;
mod memory;
mod peers;
mod remote;
mod runtime;
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

#[cfg(feature = "derive")]
pub use hob_actor_derive::Message;

pub use api::actor::{
    Actor, AsyncHandler, AtOnce, ByFuture, ByReply, Dispatch, Handler, Message, Receives,
    ReplyHandler,
};
pub use api::address::{ActorId, Address};
pub use api::asked::{Ask, Asked};
pub use api::context::{Context, This};
pub use api::error::{AskError, NotSent, TellError};
pub use api::panic::PanicText;
pub use api::registry::{Registry, TagTaken};
pub use api::reply::Reply;
pub use api::schedule::Scheduled;
pub use peers::{Peer, PeerError, Peers};
pub use runtime::mail::{MAILBOX_MESSAGES, Mail, Policy};
pub use shard::End;
pub use supervision::{Scope, Supervision};
pub use system::{StartError, Supervisor, System, Troubles};
