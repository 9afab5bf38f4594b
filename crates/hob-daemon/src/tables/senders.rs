//! Senders of messages: who is connected, what each waits for, and what is said to it.
//!
//! Invariant: a sender hears of each of its messages once. What it is told of the inputs that had come
//! is sent in one write.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::ids::CallId;
use hob_wire::frame::Kind;
use hob_wire::message::{ALL_OPEN, Answer, Attach, Failure, Reason};

use crate::channel::{self, Outlet};
use crate::handlers::route::{From, Refused};
use crate::inputs::SenderId;

/// The senders that are connected.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    senders: HashMap<SenderId, Sender>,
    /// Those to whom something is said that is sent when the loop has taken all that has come.
    unsent: Vec<SenderId>,
}

/// A sender.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) from: Arc<From>,
    pub(crate) outlet: Outlet,
    pub(crate) pid: u32,
    /// Its open messages, by its own numbers.
    open: HashMap<u64, CallId>,
    /// Something was said to it that has not been sent yet.
    is_unsent: bool,
}

impl Senders {
    pub(crate) fn attach(&mut self, id: SenderId, attach: Attach, outlet: Outlet, pid: u32) {
        let from = Arc::new(From::new(attach.directory, attach.env));
        let sender = Sender { from, outlet, pid, open: HashMap::new(), is_unsent: false };
        self.senders.insert(id, sender);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    pub(crate) fn get(&self, id: SenderId) -> Option<&Sender> {
        self.senders.get(&id)
    }

    /// Its process; 0 where it has left.
    pub(crate) fn pid(&self, id: SenderId) -> u32 {
        self.senders.get(&id).map_or(0, |sender| sender.pid)
    }

    /// Where its messages come from.
    pub(crate) fn from(&self, id: SenderId) -> Result<Arc<From>, Refused> {
        let known = self.senders.get(&id).map(|sender| Arc::clone(&sender.from));
        known.ok_or_else(|| (Reason::Cancelled, String::new()).into())
    }

    /// The job that it waits for under this number.
    pub(crate) fn job(&self, id: SenderId, number: u64) -> Option<CallId> {
        self.senders.get(&id)?.open.get(&number).copied()
    }

    /// It waits for a job under this number.
    pub(crate) fn waits(&mut self, id: SenderId, number: u64, call: CallId) {
        if let Some(sender) = self.senders.get_mut(&id) {
            sender.open.insert(number, call);
        }
    }

    /// It does not wait for this any more; whether it is there still.
    pub(crate) fn told(&mut self, id: SenderId, number: u64) -> bool {
        let sender = self.senders.get_mut(&id);
        sender.map(|sender| sender.open.remove(&number)).is_some()
    }

    /// It has left; the jobs that it has waited for.
    pub(crate) fn gone(&mut self, id: SenderId) -> Option<impl Iterator<Item = CallId> + use<>> {
        let sender = self.senders.remove(&id)?;
        // It may still read.
        sender.outlet.flush();
        Some(sender.open.into_values())
    }

    /// It is sent away: nothing that it says can be trusted to be meant.
    pub(crate) fn send_away(&self, id: SenderId) {
        if let Some(sender) = self.senders.get(&id) {
            sender.outlet.flush();
            sender.outlet.close();
        }
    }

    /// Says something to a sender, if it is there still. It is sent by [`Senders::flush`].
    pub(crate) fn say(&mut self, id: SenderId, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
        let Some(sender) = self.senders.get_mut(&id) else { return };
        sender.outlet.gather(kind, body);
        if !std::mem::replace(&mut sender.is_unsent, true) {
            self.unsent.push(id);
        }
    }

    /// Says why a message has no answer.
    pub(crate) fn fail(&mut self, id: SenderId, number: u64, reason: Reason, text: &str) {
        let failure = Failure { id: number, reason, text: text.as_bytes() };
        self.say(id, Kind::Failure, |out| failure.encode(out));
    }

    /// Says an answer.
    pub(crate) fn answer(&mut self, id: SenderId, answer: &Answer<'_>) {
        self.say(id, Kind::Answer, |out| answer.encode(out));
    }

    /// Sends what was said since the last time: one write for each sender.
    pub(crate) fn flush(&mut self) {
        for id in self.unsent.drain(..) {
            if let Some(sender) = self.senders.get_mut(&id) {
                sender.is_unsent = false;
                sender.outlet.flush();
            }
        }
    }

    /// The loop gives nothing any more: those who wait for a word have their last one, which is
    /// about all that they have sent, read or not.
    pub(crate) fn leave(&mut self) {
        self.senders.drain().for_each(|(_, sender)| leave(&sender.outlet));
    }
}

/// Says that what is open on a connection was not given, and never will be.
pub(crate) fn leave(outlet: &Outlet) {
    let failure = Failure { id: ALL_OPEN, reason: Reason::Stopping, text: b"hob stops" };
    outlet.send(channel::encode(Kind::Failure, 0, |out| failure.encode(out)));
}
