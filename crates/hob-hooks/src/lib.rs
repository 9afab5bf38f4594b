//! Runs hooks directories: each executable file of a directory after the other, for one target or
//! for thousands.
//!
//! # How to use it
//! One [`Runner`] on one thread. Give it [`Set`]s (one set is one run of a directory for one
//! target), and take what happens as [`Event`]s:
//!
//! ```no_run
//! use hob_hooks::{Event, Limits, Runner, Set, Variables, Wait};
//!
//! let mut runner = Runner::new(Limits { jobs: 4, ..Limits::default() })?;
//! let mut targets = ["one", "two", "three"].into_iter();
//! runner.run_all(
//!     &mut || {
//!         let target = targets.next()?;
//!         let mut variables = Variables::default();
//!         variables.set(b"NAME", target.as_bytes()).ok()?;
//!         Some(Set { target: target.into(), ..Set::new("/etc/hooks.d", &variables) })
//!     },
//!     &mut |event| match event {
//!         Event::HookEnded { record, .. } => drop(record.outcome),
//!         Event::SetEnded(record) => drop(record.outcome),
//!         Event::SetStarted { .. } | Event::HookStarted { .. } | Event::Output { .. } => {}
//!         Event::HookSlow { .. } | Event::Ready(_) => {}
//!     },
//! )?;
//! # Ok::<(), rustix::io::Errno>(())
//! ```
//!
//! - **Several targets**: up to [`Limits::jobs`] sets run at once, in the order in which they were
//!   submitted; the hooks of one set run one after another. Submit as many as you like, or, so
//!   that memory stays flat, only while [`Runner::room`] says that there is room
//!   ([`Runner::run_all`] does).
//! - **What else you wait for** (signals, a socket, a timer): [`Runner::watch`] its descriptor;
//!   [`Event::Ready`] comes while it is readable. Or call [`Runner::turn`] with a [`Wait`].
//! - **Cancellation**: [`Runner::drain`] begins no further set: what runs goes on to its end, what
//!   waits ends as cancelled. [`Runner::cancel`] and [`Runner::cancel_all`] end what runs, by
//!   SIGTERM and, after the grace that you name, SIGKILL. Each set that was submitted ends with
//!   exactly one [`Event::SetEnded`].
//! - **On all processors**: a [`ParallelRunner`] is a runner for each of them, which work through one
//!   [`WorkSource`] together. One runner is the right thing for a single set, and for sets that come from
//!   callers.
//! - **From other threads**: [`Runner::handle`] submits and cancels from anywhere and wakes the
//!   runner; [`Runner::serve`] runs until the last handle said [`Handle::close`].
//! - **Times** in records are microseconds since [`Runner::begun_ns`], the monotonic clock when
//!   the runner was made.
//!
//! # What it does not do
//! It prints nothing, writes no receipt and knows no front. It relies on no signal: the end of a
//! hook comes by its pidfd, never by SIGCHLD or by the end of its output.
#![forbid(unsafe_code)]

mod capture;
pub mod durations;
mod event;
mod handle;
mod listing;
mod parallel;
mod prestart;
mod runner;
mod set;
mod start;
mod warm;
#[cfg_attr(not(target_arch = "x86_64"), path = "zygotes_elsewhere.rs")]
mod zygotes;

pub use hob_entryfork::vfork::Signals;
pub use parallel::{ParallelHandle, ParallelRunner, WorkSource};

pub use event::{Event, SetId, Stream};
pub use handle::{Closed, Handle};
pub use listing::{Listing, Place, limits_of};
pub use runner::{Runner, Wait};
pub use set::{Isolation, Limits, Prestart, Set, VariableError, Variables};
pub use warm::{Connect, Connector};
