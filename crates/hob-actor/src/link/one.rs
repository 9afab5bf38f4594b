//! One link, as its owner keeps it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use super::buffers::{Outgoing, Tail};
use super::commands::Ready;
use super::process::{Ended, Process};
use super::run::Run;
use super::tokens::ByToken;
use crate::memory::parcel::{Parcel, Slot};

/// Where a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Somebody was asked for a socket to that node.
    Awaited,
    /// The other end has not said hello yet.
    Greeting,
    /// Messages go both ways.
    Open,
    /// It has ended.
    Ended(Ended),
}

/// Who the other end is to us.
#[derive(Debug)]
pub(crate) enum Whose {
    /// A worker process that we have started.
    Worker(Process),
    /// The process that has started us.
    Parent,
    /// A peer that another one introduced.
    Sibling,
}

/// One link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) state: State,
    pub(crate) whose: Whose,
    pub(crate) node: u64,
    pub(crate) tail: Tail,
    pub(crate) outgoing: Outgoing<Vec<OwnedFd>>,
    /// Descriptors that came and whose frame is still to be looked at.
    pub(crate) descriptors: VecDeque<OwnedFd>,
    /// Which of our messages the other end's numbers are.
    pub(crate) numbers: Vec<Option<u16>>,
    /// Asks of the other end, by its tokens.
    pub(crate) serving: ByToken,
    pub(crate) ready: Vec<Ready>,
    /// The socket is full: the kernel is asked to say when it is not.
    pub(crate) is_full: bool,
    /// There is something to write, and the link is in `touched`.
    pub(crate) is_touched: bool,
    /// What its actor's mailbox did not take: nothing else is taken off this link until it does, so
    /// that the sender slows down.
    pub(crate) stalled: Option<Stalled>,
    /// The other end sends nothing new.
    pub(crate) drains: bool,
}

/// What waits for room in a mailbox.
#[derive(Debug)]
pub(crate) enum Stalled {
    One(Parcel),
    /// Tells of this message, to that actor.
    Run(Run, u16, Slot),
}

/// What a peer has asked and has no answer yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    pub(crate) link: u32,
    pub(crate) token: u64,
    pub(crate) entry: u16,
    /// Of whom it was asked.
    pub(crate) actor: u64,
}
